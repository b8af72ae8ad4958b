"""``compare``, ``commit``, ``spend``, ``decide`` over small real campaigns, recorded hosts."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import runner_parts as parts
from decide_support import B200, RTX, TIMES, document, go_on, gpucost, ran, refused, told
from test_analysis_decide import GOLDEN, toml_of

from gpucost_tui.campaign.acts import committed_so_far
from gpucost_tui.campaign.create import Inputs, create
from gpucost_tui.campaign.fold import fold
from gpucost_tui.campaign.folder import Campaign
from gpucost_tui.campaign.gpu_names import HOST_NAMES
from gpucost_tui.campaign.journal import Journal
from gpucost_tui.campaign.runner import Options
from gpucost_tui.campaign.seal import seal
from gpucost_tui.errors import Differs, EnvironmentLacks, NotACampaign, Refused, WrongUse
from gpucost_tui.pricing import catalogue
from gpucost_tui.text import clean

COMMIT = ("--gpu", "rtx-4090", "--days", "7")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A campaign of five rounds on one RTX 4090, every slot done, the export measured."""
    folder = tmp_path_factory.mktemp("finished") / "one"
    with pytest.MonkeyPatch.context() as patch:
        ran(folder, patch)
    return folder


@pytest.fixture
def made(finished: Path, tmp_path: Path) -> Path:
    shutil.copytree(finished, tmp_path / "one")
    return tmp_path / "one"


def test_compare_shows_durations_and_settled_pairs(made: Path) -> None:
    found = document("compare", made)
    by_variant = {one["variant"]: one for one in found["variants"]}
    assert by_variant["batch-8"]["durations_s"] == TIMES["batch-8"]
    assert by_variant["batch-8"]["median_s"] == 3.1
    assert (by_variant["batch-8"]["min_s"], by_variant["batch-8"]["max_s"]) == (3.0, 3.2)
    assert by_variant["batch-1"]["succeeded"] == 5
    assert all(pair["settled"] for pair in found["pairs"])
    assert [pair["faster"] for pair in found["pairs"]] == ["batch-4", "batch-8", "batch-8"]
    assert found["manifest"] == Campaign(made).manifest.sha256
    assert len(found["hosts"]) == 1
    assert found["stack_differences"] == []
    text = " ".join(told("compare", made).split())
    assert "●" in text
    assert "settled, batch-8 is faster" in text
    assert "p95" not in text.lower()


def test_an_unsettled_pair_says_what_could_settle_it_and_more_rounds_show_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    near = {
        "batch-1": [10.0, 10.4, 10.2, 10.9, 10.1],
        "batch-4": [9.3, 9.9, 9.5, 10.05, 9.4],
    }
    series = [{"name": "batch", "factor": "batch_size", "variants": list(near)}]
    variants = {"batch-1": {"batch_size": 1}, "batch-4": {"batch_size": 4}}
    campaign = ran(
        tmp_path / "near", monkeypatch, times=near, exported=False, series=series, variants=variants
    )
    found = document("compare", campaign.folder)
    pair = found["pairs"][0]
    assert (pair["settled"], pair["faster"]) == (False, None)
    assert "overlap" in pair["why"]
    assert "more whole rounds (to" in " ".join(pair["could_settle"])
    assert found["before_more_rounds"] is None
    more = pair["more_rounds"]
    assert f"{more} more whole rounds (to {5 + more})" in " ".join(pair["could_settle"])
    text = " ".join(told("compare", campaign.folder).split())
    assert f"gpucost run {campaign.folder} --more-rounds {more}" in text
    go_on(campaign, monkeypatch, times=near, options=Options(more_rounds=5))
    after = document("compare", campaign.folder)
    assert (after["planned_rounds"], after["rounds"], after["rule"]) == (5, 10, "interval")
    assert [p["settled"] for p in after["before_more_rounds"]] == [False]
    assert after["pairs"][0]["settled"]
    assert "Before more rounds (after 5):" in told("compare", campaign.folder)


def test_compare_shows_quality_with_its_interval_and_flips_between_variants(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = parts.campaign(tmp_path / "c", measurement__rounds=1)
    # Slots 1 to 3 are batch-1, batch-4 and batch-8 of the first round.
    parts.run_here(campaign, script={"attempts": {"1": {"accuracy": 1.0}, "2": {"accuracy": 0.8}}})
    frames = {
        row["variant"]: pl.read_parquet(campaign.folder / row["predictions_path"])
        for row in parts.rows(campaign)
    }
    one, other = (dict(frames[v].select("id", "prediction").rows()) for v in ("batch-1", "batch-4"))
    differing = [name for name in one if one[name] != other[name]]
    assert differing
    found = document("compare", campaign.folder)
    flips = {(each["a"], each["b"]): each for each in found["flips"]}
    assert flips["batch-1", "batch-4"]["flipped_ids"] == differing
    assert flips["batch-1", "batch-4"]["flips"] == len(differing)
    assert (flips["batch-1", "batch-4"]["attempts"], len(flips)) == ([1, 2], 3)
    qualities = {each["variant"]: each for each in found["qualities"]}
    quality = qualities["batch-4"]
    assert quality["metric"] == "accuracy" and quality["lowest"] == quality["highest"] < 1
    assert quality["interval"]["low"] < quality["lowest"] < quality["interval"]["high"]
    text = " ".join(told("compare", campaign.folder).split())
    bound = f"{quality['interval']['low']:.4f}"
    assert f"accuracy {quality['lowest']:.4f}, 95 % interval {bound}" in text
    assert f"{len(differing)} of {len(one)}: " in text
    assert clean(differing[0]) in text
    path = campaign.folder / parts.rows(campaign)[1]["predictions_path"]
    path.write_bytes(path.read_bytes() + b" ")
    found = document("compare", campaign.folder)
    flips = {(each["a"], each["b"]): each for each in found["flips"]}
    assert flips["batch-1", "batch-4"]["flips"] is None
    assert "attempt 2 are not those written" in flips["batch-1", "batch-4"]["why"]
    assert flips["batch-1", "batch-8"]["flips"] is not None


def test_a_table_by_hand_is_compared(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text(
        "variant,round,status,pass_s\n"
        + "".join(
            f"a,{n},completed,{10 + n / 10}\nb,{n},completed,{5 + n / 10}\n" for n in range(1, 6)
        )
    )
    found = document("compare", tmp_path / "mine.csv")
    assert found["pairs"][0]["faster"] == "b"
    assert isinstance(refused("compare", tmp_path / "mine.csv", tmp_path), WrongUse)
    assert isinstance(refused("compare", tmp_path / "nothing.csv"), WrongUse)
    assert isinstance(refused("compare", tmp_path), NotACampaign)
    frame = pl.read_csv(tmp_path / "mine.csv").with_columns(
        pl.when(pl.col("variant") == "a").then(pl.lit("0" * 64)).otherwise(pl.lit("1" * 64))
        .alias("manifest")
    )  # fmt: skip
    frame.write_csv(tmp_path / "two.csv")
    assert "2 campaigns" in str(refused("compare", tmp_path / "two.csv"))


def test_a_commitment_decides_at_a_frozen_price(made: Path, tmp_path: Path) -> None:
    assert document("decide", made, status=1)["balance"][0]["reasons"] == ["price"]
    done = document("commit", made, *COMMIT)
    assert (done["committed_usd"], done["gpus"], done["gpus_used"]) == ("110.00", 1, 1)
    found = document("decide", made)
    assert (found["outcome"], found["committed_usd"]) == ("decided", "110.00")
    assert found["configuration"] == "batch-8 on 1 lot of rtx-4090"
    assert [row["configuration"] for row in found["balance"]] == [
        f"{variant} on 1 lot of rtx-4090" for variant in ("batch-1", "batch-4", "batch-8")
    ]
    row = found["balance"][2]
    assert row["pack"]["days"] == 7
    assert row["window_basis"] == "measured"
    assert row["cost_per_accepted_usd"] == "110.00"
    assert (row["attempts"], row["failures"], row["planned_attempts"]) == (5, 0, 5)
    # 0.5 + 0.25 h sealed, passes measured, 36 s of export
    passes = sum(sum(values) for values in TIMES.values())
    assert row["window_hours"] == pytest.approx(0.75 + 0.01 + passes / 3600, abs=0.01)
    text = told("decide", made)
    assert "Decided: batch-8 on 1 lot of rtx-4090." in text
    assert "110.00 USD a lot, iteragpu, catalogue of 2026-09-24" in text
    # Whatever a catalogue says later, the commitment keeps its price.
    frozen = next((made / "prices").glob("*.json"))
    frozen.write_bytes(frozen.read_bytes().replace(b"110.00", b"100.00"))
    assert isinstance(refused("decide", made), Differs)


def test_commit_refuses_another_gpu_and_a_second_pack(made: Path, tmp_path: Path) -> None:
    before = parts.events(Campaign(made))
    for words in (
        ("--gpu", "b200", "--days", "7"),  # the host has an RTX 4090
        ("--gpu", "h100-pcie", "--days", "7"),
    ):
        error = refused("commit", made, *words)
        assert error.exit_status in (1, 2)
    assert RTX in str(refused("commit", made, "--gpu", "b200", "--days", "7"))
    assert "rtx-4090" in str(refused("commit", made, "--gpu", "RTX 4090", "--days", "7"))
    assert "not stated" in str(refused("commit", made, "--gpu", "rtx-4090", "--days", "3"))
    assert isinstance(refused("commit", made, *COMMIT, "--lots", "1e3"), WrongUse)
    assert isinstance(refused("commit", made, "--gpu", "rtx-4090", "--days", "5"), WrongUse)
    assert isinstance(refused("commit", made, *COMMIT, "--host-gpu", B200), Refused)
    assert isinstance(refused("commit", made, *COMMIT, "--paid", "-1"), WrongUse)
    assert isinstance(
        refused("commit", made, *COMMIT, "--rented-from", "2026-09-28T09:00Z"), WrongUse
    )
    assert parts.events(Campaign(made)) == before
    assert not (made / "prices").exists()
    told("commit", made, *COMMIT)
    error = refused("commit", made, *COMMIT, "--lots", "2")
    assert "committed already" in str(error)
    assert "committed already" in str(refused("commit", made, *COMMIT))
    told("commit", made, *COMMIT, "--lots", "2", "--correct")
    found = document("decide", made)
    assert found["committed_usd"] == "220.00"
    assert any("was corrected" in note for note in found["notes"])
    assert any("2 GPUs are rented, 1 is used" in note for note in found["notes"])
    state = parts.state(Campaign(made))
    assert committed_so_far(state)["committed_usd"] == "220.00"
    assert document("status", made)["committed_usd"] == "220.00"
    assert "220.00 USD (2 lots of rtx-4090 for 7 days)" in told("status", made)


def test_commit_needs_a_host_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fresh = parts.campaign(tmp_path / "fresh")
    assert "no host record" in str(refused("commit", fresh.folder, *COMMIT))
    go_on(fresh, monkeypatch, gpu=None)
    error = refused("commit", fresh.folder, *COMMIT)
    assert "have no GPU" in str(error)
    record = next((fresh.folder / "hosts").glob("*.json"))
    changed = json.loads(record.read_text())
    changed["gpus"] = [{"name": RTX}]
    record.write_text(json.dumps(changed))
    assert isinstance(refused("commit", fresh.folder, *COMMIT), Differs)
    found = gpucost("decide", fresh.folder)
    assert isinstance(found.exception, Differs)


def test_the_real_rental_stands_beside_the_plan(made: Path) -> None:
    told("commit", made, *COMMIT)
    told(
        *("commit", made, *COMMIT, "--rented-from", "2026-09-28T09:00", "--rented-to"),
        *("2026-10-02T09:00", "--timezone", "Europe/Paris", "--paid", "115.50"),
        *("--reference", "INV-\x1b[31m7"),
    )
    found = document("decide", made)
    assert found["committed_usd"] == "110.00"
    rental = found["balance"][0]["pack"]["rental"]
    assert rental["from"] == "2026-09-28T07:00:00Z"
    assert (rental["paid_usd"], rental["reference"]) == ("115.50", "INV-\x1b[31m7")
    notes = " ".join(found["notes"])
    assert "115.50 USD were paid, 110.00 USD" in notes
    assert "rented for 96 h" in notes
    assert "15 attempts ran outside" in notes
    assert "\x1b" not in told("decide", made)


def test_spending_is_for_every_configuration_or_for_none(made: Path) -> None:
    told("commit", made, *COMMIT)
    name = "batch-{} on 1 lot of rtx-4090".format
    assert isinstance(
        refused("spend", made, "--configuration", "nope", "--usd", "1", "--reason", "x"), WrongUse
    )
    assert isinstance(
        refused("spend", made, "--configuration", name(1), "--usd", "1.234", "--reason", "x"),
        WrongUse,
    )
    said = told("spend", made, "--configuration", name(1), "--usd", "12.50", "--reason", "disk")
    assert name(4) in said
    error = refused("decide", made)
    assert isinstance(error, Refused)
    assert name(4) in str(error)
    assert name(8) in str(error)
    for batch in (4, 8):
        told("spend", made, "--configuration", name(batch), "--usd", "0.00", "--reason", "none")
    found = document("decide", made)
    assert found["balance"][0]["other_spending"]["total_usd"] == "12.50"
    assert found["committed_usd"] == "110.00"
    assert committed_so_far(parts.state(Campaign(made)))["spent_usd"] == "12.50"
    told(
        "spend", made, "--configuration", name(8), "--usd", "0.00", "--reason", "none", "--withdraw"
    )
    assert name(8) in str(refused("decide", made))


def test_spending_keeps_its_configuration_when_a_pack_is_recorded_or_corrected(made: Path) -> None:
    for batch in (1, 4, 8):
        name = f"batch-{batch} on {RTX}"
        told("spend", made, "--configuration", name, "--usd", "1.00", "--reason", "disk")
    told("commit", made, *COMMIT, "--lots", "2")
    for batch in (1, 4, 8):
        name = f"batch-{batch} on 2 lots of rtx-4090"
        told("spend", made, "--configuration", name, "--usd", "2.00", "--reason", "egress")
    told("commit", made, *COMMIT, "--correct")
    found = document("decide", made)
    assert {row["other_spending"]["total_usd"] for row in found["balance"]} == {"3.00"}
    assert "other spending 2.00 USD, egress" in " ".join(told("decide", made).split())


def test_nothing_is_decided_without_an_export_or_with_open_slots(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = ran(tmp_path / "some", monkeypatch, options=Options(limit=4), exported=False)
    told("commit", campaign.folder, *COMMIT)
    found = document("decide", campaign.folder, status=1)
    assert found["outcome"] == "undecided"
    assert all("window" in row["reasons"] for row in found["balance"])
    assert "11 slots are still open" in str(found["balance"][0]["why"])
    assert found["committed_usd"] == "110.00"
    assert len(found["balance"]) == 3
    go_on(campaign, monkeypatch)
    found = document("decide", campaign.folder, status=1)
    assert "export" in str(found["balance"][0]["why"])
    Journal(campaign.folder).append("exported", {"seconds": 1.5})
    assert document("decide", campaign.folder)["outcome"] == "decided"


def test_several_machines_are_read_together(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "one"
    shutil.copytree(finished, here)
    fast = {variant: [value / 4 for value in values] for variant, values in TIMES.items()}
    there = ran(tmp_path / "two", monkeypatch, gpu=B200, gpus=2, driver="580.9", times=fast)
    told("commit", here, *COMMIT)
    told("commit", there.folder, "--gpu", "b200", "--days", "7")
    found = document("compare", here, there.folder)
    assert len(found["hosts"]) == 2
    between = [pair for pair in found["pairs"] if pair["host"] is None]
    assert [pair["settled"] for pair in between] == [] or all(p["settled"] for p in between)
    entries = {one["entry"] for one in found["stack_differences"]}
    assert {"gpus", "driver.driver"} <= entries
    balance = document("decide", here, there.folder)
    assert balance["configuration"] == "batch-8 on 1 lot of rtx-4090"
    assert len(balance["balance"]) == 6
    assert {row["committed_usd"] for row in balance["balance"]} == {"110.00", "2071.00"}
    assert any("whole configurations" in note for note in balance["notes"])
    assert any("2 GPUs are rented, 1 is used" in note for note in balance["notes"])
    # Named twice, copied, or another manifest: refused, each with its reason.
    assert "twice" in str(refused("decide", here, here))
    shutil.copytree(here, tmp_path / "copy")
    assert "copy" in str(refused("decide", here, tmp_path / "copy"))
    other = parts.campaign(tmp_path / "other", quality__threshold=0.6)
    error = refused("compare", here, other.folder)
    assert "quality.threshold is 0.5 and 0.6" in str(error)


def test_a_folder_copied_while_it_ran_counts_shared_attempts_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few: dict[str, Any] = {"exported": False, "measurement__rounds": 2}
    one = ran(tmp_path / "one", monkeypatch, options=Options(limit=3), **few)
    shutil.copytree(one.folder, tmp_path / "two")
    two = Campaign(tmp_path / "two")
    go_on(one, monkeypatch)
    go_on(two, monkeypatch, driver="580.9")
    found = document("compare", one.folder, two.folder)
    assert sum(len(v["durations_s"]) for v in found["variants"]) == 6 + 3
    assert any("counted once" in note for note in found["notes"])


def test_a_hardware_series_is_compared_like_any_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    series = [{"name": "card", "factor": "hardware", "variants": ["batch-8"]}]
    settings: dict[str, Any] = {"series": series, "variants": {"batch-8": {"batch_size": 8}}}
    one = ran(tmp_path / "one", monkeypatch, **settings)
    fast = {"batch-8": [value / 4 for value in TIMES["batch-8"]]}
    two = ran(tmp_path / "two", monkeypatch, gpu=B200, driver="580.9", times=fast, **settings)
    found = document("compare", one.folder, two.folder)
    (pair,) = found["pairs"]
    assert pair["settled"]
    assert pair["faster"].startswith("batch-8 on 1x-nvidia-b200")


def test_a_child_takes_over_attempts_time_and_commitment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = {"attempts": {"1": {"fail": {"kind": "out-of-memory", "after": 4}}}}
    parent = ran(tmp_path / "parent", monkeypatch, script_=lost, measurement__rounds=1)
    told("commit", parent.folder, *COMMIT)
    settings = [("measurement.rounds", 5), ("name", "child")]
    child = create(tmp_path / "child", Inputs(None, parent=parent.folder, settings=settings))
    seal(child)
    go_on(child, monkeypatch)
    Journal(child.folder).append("exported", {"seconds": 36.0})
    told("commit", child.folder, *COMMIT)
    found = document("decide", child.folder)
    (taken,) = found["parents"]
    assert (taken["attempts"], taken["failures"], taken["committed_usd"]) == (3, 1, "110.00")
    row = found["balance"][0]
    assert (row["parent_attempts"], row["parent_failures"]) == (3, 1)
    assert found["committed_usd"] == "110.00"  # one rental, shared
    assert row["window_hours"] > 2 * 0.75  # its own installation and checks, and the parent's
    assert "From the parent campaign" in told("decide", child.folder)
    # Another rental, by the user's own record: both amounts are committed.
    told("commit", parent.folder, *COMMIT, "--reference", "A")
    told("commit", child.folder, *COMMIT, "--reference", "B")
    assert document("decide", child.folder)["committed_usd"] == "220.00"
    # Without its parent the child says so and decides nothing; named, it is found again.
    parent.folder.rename(tmp_path / "away")
    found = document("decide", child.folder, status=1)
    assert "not here" in str(found["balance"][0]["why"])
    assert found["balance"][0]["reasons"] == ["missing"]
    assert "is not counted" in told("decide", child.folder)
    again = document("decide", child.folder, "--parent", tmp_path / "away")
    assert again["committed_usd"] == "220.00"
    # A folder that holds something else is no parent.
    other = parts.campaign(tmp_path / "other")
    found = document("decide", child.folder, "--parent", other.folder, status=1)
    assert "holds another campaign" in str(found["balance"][0]["why"])


@pytest.mark.parametrize("case", GOLDEN, ids=[case["name"] for case in GOLDEN])
def test_golden_decisions_by_the_command(case: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(toml_of(case))
    columns = list(case["attempts"][0])
    pl.DataFrame(
        {c: [None if (v := a[c]) is None else str(v) for a in case["attempts"]] for c in columns},
        schema=dict.fromkeys(columns, pl.String),
    ).write_csv(tmp_path / "table.csv")
    expect = case["expect"]
    status = 0 if expect["outcome"] == "decided" else 1
    words = ("decide", tmp_path / "table.csv", "--plan", tmp_path / "plan.toml")
    found = document(*words, status=status)
    for key in set(expect) - {"not_admissible"}:
        assert found[key] == expect[key], key
    shown = gpucost(*words)
    assert shown.exit_code == status
    assert max(map(len, shown.stdout.splitlines())) <= 120


def test_decide_says_what_goes_with_what(made: Path, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("configuration,status,corpus_accepted\n")
    (tmp_path / "p.toml").write_text("deliverables = [")
    for words in (
        (tmp_path / "t.csv",),
        (made, "--plan", tmp_path / "p.toml"),
        (made, "--catalogue", tmp_path / "t.csv"),
        (tmp_path / "t.csv", "--plan", tmp_path / "p.toml"),
        (tmp_path / "t.csv", "--plan", tmp_path / "p.toml", "--parent", made),
        (made, tmp_path / "t.csv", "--plan", tmp_path / "p.toml"),
        (tmp_path / "none",),
    ):
        error = refused("decide", *words)
        assert error.exit_status == 2, words


def test_a_line_written_by_hand_is_no_commitment(made: Path) -> None:
    told("commit", made, *COMMIT)
    last = parts.events(Campaign(made))[-1].data
    for change in ({"usd": "1e999"}, {"usd": "-1"}, {"lots": 0}, {"rental": 5}, {"usd": "NaN"}):
        copy = made.parent / f"forged-{next(iter(change))}-{next(iter(change.values()))}"
        shutil.copytree(made, copy)
        Journal(copy).append("committed", {**last, **change})
        assert isinstance(refused("decide", copy), Differs), change
    Journal(made).append("committed", {**last, "usd": "90.00"})
    assert "its frozen price says 110.00" in str(refused("decide", made))


def test_a_commitment_that_fails_leaves_nothing(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise EnvironmentLacks("the journal can't be written")

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "append", full)
        assert isinstance(refused("commit", made, *COMMIT), EnvironmentLacks)
    assert list((made / "prices").iterdir()) == []
    assert document("decide", made, status=1)["outcome"] == "undecided"


def test_a_gpu_that_no_table_names_is_named_by_the_user(made: Path, tmp_path: Path) -> None:
    head = "provider,gpu,gpus_per_lot,days,usd_per_lot,catalogue_date,missing_reason\n"
    mine = tmp_path / "mine.csv"
    rows = (
        "mine,rig-x,1,7,50.00,2026-11-01,",
        "mine,rtx-4090,1,7,60.00,2026-11-01,",
        "other,rtx-4090,1,7,70.00,2026-11-01,",
        "other,rtx-4090,8,7,500.00,2026-11-01,",
    )
    mine.write_text(head + "\n".join(rows) + "\n")
    use = ("--days", "7", "--catalogue", mine)
    error = refused("commit", made, "--gpu", "rig-x", *use)
    assert "--host-gpu" in str(error)
    error = refused("commit", made, "--gpu", "rig-x", *use, "--host-gpu", "NVIDIA GeForce RTX 4080")
    assert RTX in str(error)
    error = refused("commit", made, "--gpu", "rtx-4090", *use)
    assert "several packs fit" in str(error)
    error = refused("commit", made, "--gpu", "rtx-4090", *use, "--provider", "other")
    assert "several packs fit" in str(error)
    wrong = ("--provider", "mine", "--gpus-per-lot", "4")
    assert refused("commit", made, "--gpu", "rtx-4090", *use, *wrong).exit_status == 1
    done = document("commit", made, "--gpu", "rig-x", *use, "--host-gpu", RTX)
    assert (done["host_gpu"], done["committed_usd"]) == (RTX, "50.00")
    mine.unlink()  # the price is frozen
    assert document("decide", made)["configuration"] == "batch-8 on 1 lot of rig-x"


def test_every_gpu_of_the_catalogue_has_its_names() -> None:
    known = {row.gpu for file in catalogue.built_in() for row in file.rows}
    assert known <= set(HOST_NAMES)
    names = [name for ids in HOST_NAMES.values() for name in ids]
    shared = {name for name in names if names.count(name) > 1}
    # Only the id that leaves the form open shares its names with those that say it.
    assert shared == set(HOST_NAMES["a100-40gb"])


def test_every_differing_stack_entry_is_named() -> None:
    from gpucost_tui.analysis.stack import stack_differences, stack_notes
    from gpucost_tui.environment.host import host_record
    from gpucost_tui.environment.recorded import RecordedDriver

    record = host_record(driver=RecordedDriver({"vendor": "nvidia", "devices": []}))
    other = json.loads(json.dumps(record))
    other["software"]["torch"] = "1.0 \x1b[31m"
    other["driver"]["driver"] = "570"
    other["os"]["kernel"] = "9"
    other["settings"]["CUDA_VISIBLE_DEVICES"] = "1"
    other["memory"]["total_bytes"] = 1
    other["machine"] = "another"
    found = stack_differences({"a": record, "b": other})
    entries = {one.entry for one in found}
    assert entries == {"software.torch", "driver.driver", "os.kernel",
                       "settings.CUDA_VISIBLE_DEVICES"}  # fmt: skip
    notes = stack_notes({"a": record, "b": other, "c": None})
    assert "\x1b" not in " ".join(notes)
    assert "c is not here" in notes[0]
    assert stack_differences({"a": record, "b": dict(record)}) == []


def test_every_prefix_of_a_journal_with_acts_folds(made: Path) -> None:
    told("commit", made, *COMMIT)
    told("commit", made, *COMMIT, "--paid", "100")
    told("commit", made, *COMMIT, "--lots", "2", "--correct")
    name = "batch-1 on 2 lots of rtx-4090"
    told("spend", made, "--configuration", name, "--usd", "1.00", "--reason", "disk")
    told("spend", made, "--configuration", name, "--usd", "1.00", "--reason", "disk", "--withdraw")
    events = parts.events(Campaign(made))
    spent = [fold(events[:number]).acts for number in range(len(events) + 1)]
    assert [len(acts.spending) for acts in spent[-3:]] == [0, 1, 0]
    assert [len(acts.corrected) for acts in spent[-5:]] == [0, 0, 1, 1, 1]
    paid = spent[-4].commitments["rtx-4090"].rental
    assert paid is not None
    assert paid.to_json() == {"from": None, "to": None, "paid_usd": "100.00", "reference": None}
