"""What `run` and `attempts` say: devices, what was not judged, why cells are empty."""

from __future__ import annotations

import pytest

from gpucost_tui.campaign.attempt import check_device, ensure_device
from gpucost_tui.campaign.fold import joined
from gpucost_tui.campaign.folder import Manifest
from gpucost_tui.campaign.slots import schedule
from gpucost_tui.cli.attempts import _notes, _outcome, _status
from gpucost_tui.errors import EnvironmentLacks, Refused, WrongUse
from gpucost_tui.files import canonical_json
from gpucost_tui.protocol.load import find, load


def manifest(device: str) -> Manifest:
    protocol = load(find("classification-batch")).model_dump(mode="json")
    protocol["execution"]["device"] = device
    return Manifest(canonical_json({"protocol": protocol}))


def test_a_device_is_chosen_only_where_the_seal_leaves_it_open() -> None:
    check_device(manifest("auto"), "cuda:1")
    check_device(manifest("auto"), None)
    check_device(manifest("cuda:1"), "cuda:1")
    with pytest.raises(Refused, match=r"sealed for cpu, cuda:1 is asked for \(R1\)"):
        check_device(manifest("cpu"), "cuda:1")
    for wrong in ("gpu0", "auto", "", "cuda:x"):
        with pytest.raises(WrongUse, match="is no device"):
            check_device(manifest("auto"), wrong)


def test_a_device_that_is_not_there_uses_no_slot_up() -> None:
    two = {"devices": [{"name": "NVIDIA H100"}, {"name": "NVIDIA H100"}]}
    sealed = manifest("auto")
    slot = schedule(sealed.protocol)[0]
    ensure_device(sealed, slot, two, "cuda:1")
    ensure_device(sealed, slot, {"devices": []}, "cpu")
    with pytest.raises(EnvironmentLacks, match="needs cuda:2; torch sees cuda:0 NVIDIA H100"):
        ensure_device(sealed, slot, two, "cuda:2")
    with pytest.raises(EnvironmentLacks, match="torch sees no GPU here"):
        ensure_device(manifest("cuda"), slot, {"devices": []}, None)


def row(**values: object) -> dict[str, object]:
    given = dict.fromkeys(
        ("status", "failure", "finished_entries", "expected_ids", "corpus_accepted")
    )
    return {**given, "excluded": False, "round": 1, "attempt": 3, **values}


@pytest.mark.parametrize("status", ["failed", "stopped", "interrupted"])
def test_what_did_not_end_is_not_called_rejected(status: str) -> None:
    one = row(status=status, corpus_accepted=False, finished_entries=356, expected_ids=1000)
    assert _outcome(one) == "-"
    assert _outcome({**one, "failure": "out-of-memory"}) == "out-of-memory"
    assert _status(one) == f"{status} 356/1,000"


def test_completed_passes_have_their_outcome() -> None:
    assert _outcome(row(status="completed", corpus_accepted=False)) == "rejected"
    assert _outcome(row(status="completed", corpus_accepted=True)) == "accepted"
    assert _outcome(row(status="completed", round=0)) == "reference"


def test_the_separator_of_reasons_stands_inside_none() -> None:
    assert (
        joined(["load_s: lost; found later", "two\nlines"])
        == "load_s: lost, found later; two lines"
    )
    assert joined([]) is None


def test_reasons_are_told_once_with_their_columns(capsys: pytest.CaptureFixture[str]) -> None:
    missing = "gpu: no GPU; energy_j: no GPU; compile_s: not compiled"
    _notes(row(notes="seed 0; [/INST]\x1b[2J", missing=missing))
    said = capsys.readouterr().out
    assert "empty, no GPU: gpu, energy_j\n" in said
    assert "note: [/INST]\\x1b[2J" in said
