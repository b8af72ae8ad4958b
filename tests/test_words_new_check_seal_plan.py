"""The words new, check, seal and plan: what they print, their JSON, their exit statuses."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from campaign_parts import RIGHT, TEMPLATE, made, minilm, rows, write_jsonl
from pricing_support import Command
from runner_parts import run_here
from test_seal_manifest import MODEL

from gpucost_tui.campaign.fold import fold
from gpucost_tui.campaign.folder import Campaign
from gpucost_tui.campaign.hosts import record_host
from gpucost_tui.campaign.journal import Journal
from gpucost_tui.campaign.lock import RunnerLock
from gpucost_tui.campaign.seal import seal
from gpucost_tui.environment.host import host_record
from gpucost_tui.files import canonical_json, sha256_bytes
from gpucost_tui.protocol.load import template_names


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_jsonl(tmp_path / "source.jsonl", rows())


def new(folder: object, source: Path, *more: object) -> list[object]:
    words = ["new", "--protocol", TEMPLATE, "--corpus", source, "--model", "demo"]
    return [*words, "--right-of-use", RIGHT[1], *more, "--", folder]


def test_new_names_the_templates(command: Command) -> None:
    told = " ".join(command("new", "--help").out.split())
    assert all(name in told for name in template_names())


def test_check_says_what_is_next_of_a_finished_campaign(tmp_path: Path, command: Command) -> None:
    campaign = made(tmp_path / "c", settings=[("measurement.rounds", 1)])
    blocked = made(tmp_path / "b", settings=[("corpus.right_of_use", "")])
    assert f"Then again: gpucost check {blocked.folder}" in command("check", blocked.folder).out
    seal(campaign)
    assert f"Next: gpucost run {campaign.folder}" in command("check", campaign.folder).out
    run_here(campaign)
    assert f"Next: gpucost attempts {campaign.folder}" in command("check", campaign.folder).out


# -- the way from new to plan ------------------------------------------------------------------


def test_the_way_from_new_to_plan(tmp_path: Path, source: Path, command: Command) -> None:
    folder = tmp_path / "c"
    said = command(*new(folder, source, "--set", "quality.threshold=0.8"))
    assert (said.status, said.err) == (0, "")
    assert said.out.splitlines()[-1] == f"Next: gpucost check {folder}"
    said = command("check", folder)
    assert said.status == 0 and "Nothing blocks the seal" in said.out
    assert "14 entries" in said.out and "[note]" in said.out
    said = command("plan", folder)
    assert said.status == 0 and said.out.count("batch-") == 15 and "Window: not known" in said.out
    said = command("seal", folder)
    manifest = Campaign.open(folder).manifest.sha256
    assert said.status == 0 and f"Sealed: {manifest}" in said.out and said.err.startswith("note: ")
    said = command("plan", folder)
    assert said.status == 0 and said.out.count(" open") == 15
    said = command("check", folder)
    assert (
        said.status == 0 and "Everything is as it was sealed" in said.out and manifest in said.out
    )


@pytest.mark.parametrize("name", ["with space", "-dash", "quo'te", "$(x)", "ünï✓", "\x1b[31mred"])
def test_what_is_next_can_be_typed(
    tmp_path: Path,
    source: Path,
    command: Command,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    said = command(*new(name, source))
    assert said.status == 0 and "\x1b" not in said.out
    line = said.out.splitlines()[-1].removeprefix("Next: ")
    words = shlex.split(line)
    assert words[:2] == ["gpucost", "check"] and len(words) == 3
    if "\x1b" not in name:
        said = command(*words[1:])
        assert said.status == 0
        assert command("seal", words[2]).status == 0
        assert shlex.split(said.out.splitlines()[-1].partition("Next: ")[2])[2] == words[2]


# -- JSON --------------------------------------------------------------------------------------


def test_check_json(tmp_path: Path, command: Command) -> None:
    settings = [("quality.metric", "f1"), ("corpus.label_column", "x\u202ey")]
    campaign = made(tmp_path / "c", settings=settings)
    said = command("check", campaign.folder, "--json")
    assert (said.status, said.err) == (1, "") and said.out.isascii()
    assert set(said.json) >= {"ok", "problems"} and said.json["ok"] is False
    for problem in said.json["problems"]:
        assert set(problem) == {"where", "what", "fix", "blocking"}
    blocking = [p for p in said.json["problems"] if p["blocking"]]
    assert len(blocking) == 2 and "[quality] metric" in blocking[0]["where"]
    said = command("check", campaign.folder)
    assert "\u202e" not in said.out and "x\\u202ey" in said.out


@pytest.mark.parametrize("damage", ["protocol", "journal", "manifest", "lock"])
def test_check_json_whatever_is_damaged(tmp_path: Path, command: Command, damage: str) -> None:
    campaign = made(tmp_path / "c")
    seal(campaign)
    path = {
        "protocol": campaign.protocol_file,
        "journal": campaign.journal_file,
        "manifest": campaign.manifest_file,
        "lock": campaign.folder / "runner.lock",
    }[damage]
    path.write_bytes(b"\xff{\n")
    said = command("check", campaign.folder, "--json")
    assert said.status == (0 if damage == "lock" else 1) and said.err == ""
    assert said.json["ok"] is (damage == "lock")


def test_plan_json_of_a_draft_and_of_a_sealed_campaign(tmp_path: Path, command: Command) -> None:
    campaign = made(tmp_path / "c")
    draft = command("plan", campaign.folder, "--json").json
    assert set(draft) >= {"slots", "window_hours", "window_basis"}
    assert draft["window_hours"] is None and draft["window_basis"] == "assumed"
    assert len(draft["slots"]) == 15
    assert {"slot", "round", "position", "variant", "deliverable", "seed"} <= set(draft["slots"][0])
    order = [slot["variant"] for slot in draft["slots"][3:6]]
    assert order == ["batch-4", "batch-8", "batch-1"]
    seal(campaign)
    campaign.protocol_file.write_text("format = 1\n")  # what is sealed is what is planned
    assert command("plan", campaign.folder, "--json").json == draft


def test_plan_of_several_seeds_deliverables_and_a_reference_pass(
    tmp_path: Path, source: Path, command: Command
) -> None:
    two = '[{name="a"},{name="b"}]'
    corpora = [word for n in "ab" for word in ("--corpus", f"{n}={source}")]
    words = ["new", tmp_path / "c", "--protocol", "embedding-batch", "--model", minilm()]
    settings = ["--set", f"deliverables={two}", "--set", "reproduction.seeds=[1, 2]"]
    rounds = ["--set", "measurement.rounds=2"]
    assert command(*words, *corpora, *settings, *rounds).status == 0
    slots = command("plan", tmp_path / "c", "--json").json["slots"]
    assert [s["round"] for s in slots] == [0] * 2 + [1] * 12 + [2] * 12
    assert [(s["variant"], s["deliverable"], s["seed"]) for s in slots[:4]] == [
        ("batch-1", "a", 1), ("batch-1", "b", 1), ("batch-1", "a", 1), ("batch-1", "a", 2),
    ]  # fmt: skip
    assert [s["position"] for s in slots[2:14]] == list(range(1, 13))


def test_seal_json(tmp_path: Path, command: Command) -> None:
    campaign = made(tmp_path / "c")
    said = command("seal", campaign.folder, "--json")
    assert said.status == 0 and said.err == ""
    assert said.json["manifest"] == Campaign.open(campaign.folder).manifest.sha256
    assert {note["blocking"] for note in said.json["notes"]} == {False}


# -- exit statuses -----------------------------------------------------------------------------


def test_wrong_use(tmp_path: Path, source: Path, command: Command) -> None:
    for word in ("check", "seal", "plan"):
        assert "there is no folder" in command.refused(word, tmp_path / "no")
        assert "is no campaign" in command.refused(word, tmp_path)
        assert "can't be read" in command.refused(word, "x" * 5000)
        assert command(word).status == 2
    assert command("new").status == 2
    assert "neither a template" in command.refused("new", tmp_path / "c", "--protocol", "x")
    assert "is no setting" in command.refused(*new(tmp_path / "c", source, "--set", "x"))
    assert "is no place" in command.refused(*new(tmp_path / "c", source, "--set", "a..b=1"))
    assert not (tmp_path / "c").exists()


def test_answers_that_are_no(tmp_path: Path, command: Command) -> None:
    campaign = made(tmp_path / "c", settings=[("corpus.right_of_use", " ")])
    assert "(R5)" in command.refused("seal", campaign.folder, status=1)
    assert command("check", campaign.folder).status == 1
    good = made(tmp_path / "d")
    assert command("seal", good.folder).status == 0
    sentence = command.refused("seal", good.folder, status=1)
    assert "sealed already" in sentence and "--from" in sentence
    draft = made(tmp_path / "e")
    words = ["new", tmp_path / "f", "--from", draft.folder]
    assert "not sealed" in command.refused(*words, status=1)


def test_what_the_environment_lacks(tmp_path: Path, source: Path, command: Command) -> None:
    words = new(tmp_path / "c", source)
    words[words.index("demo")] = "somebody/something@main"
    sentence = command.refused(*words, status=3)
    assert "HF_HUB_OFFLINE" in sentence and not (tmp_path / "c").exists()
    assert "can't be made" in command.refused(*new(source / "c", source), status=3)


def test_check_says_what_blocks(tmp_path: Path, command: Command) -> None:
    campaign = made(tmp_path / "c", settings=[("decision.scenario", "serving")])
    said = command("check", campaign.folder)
    assert said.status == 1 and "\n1 problem blocks the seal. Then again: " in said.out
    assert "[BLOCKS] protocol.toml, line " in said.out and "(R2)" in said.out
    campaign.protocol_file.write_text("format = 1\nformat = 1\n")
    said = command("check", campaign.folder)
    assert said.status == 1 and "line 2" in said.out


# -- two at once -------------------------------------------------------------------------------


def test_two_seals_at_once(tmp_path: Path) -> None:
    campaign = made(tmp_path / "c")
    words = [sys.executable, "-m", "gpucost_tui", "seal", str(campaign.folder)]
    done: list[subprocess.CompletedProcess[str]] = []

    def one() -> None:
        env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
        done.append(subprocess.run(words, capture_output=True, text=True, timeout=120, env=env))

    threads = [threading.Thread(target=one) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(result.returncode for result in done) == [0, 1, 1], done
    for result in done:
        if result.returncode:
            assert result.stderr.count("\n") == 1
            assert "at work" in result.stderr or "sealed already" in result.stderr
    sealed = [event for event in campaign.events() if event.event == "sealed"]
    assert len(sealed) == 1 and sealed[0].data["manifest"] == campaign.manifest.sha256


def test_a_seal_while_another_works(tmp_path: Path, command: Command) -> None:
    campaign = made(tmp_path / "c")
    with RunnerLock(campaign.folder):
        assert "already at work" in command.refused("seal", campaign.folder, status=1)
    assert not campaign.sealed
    assert command("seal", campaign.folder).status == 0


# -- the model's place -------------------------------------------------------------------------


def test_run_with_the_place_of_a_model(
    tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Where a model lies is found before the engine is asked: a fake one saves importing torch.
    monkeypatch.setenv("GPUCOST_ENGINE", "fake_engine:FakeEngine")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    model = tmp_path / "model"
    shutil.copytree(MODEL, model)
    campaign = made(tmp_path / "c", model=str(model))
    seal(campaign)
    words = ["run", campaign.folder, "--limit", "1"]
    moved = model.rename(tmp_path / "moved")
    assert "--model FOLDER" in command.refused(*words, status=3)
    wrong = tmp_path / "wrong"
    shutil.copytree(moved, wrong)
    (wrong / "config.json").write_text("{}")
    assert "config.json" in command.refused(*words, "--model", wrong, status=1)
    assert "there is no folder" in command.refused(*words, "--model", model, status=3)
    assert "--model FOLDER" in command.refused(*words, status=3)  # the wrong one is not kept
    assert not (campaign.folder / "attempts").exists()
    assert command(*words, "--model", moved).status == 0
    assert [event.event for event in campaign.events()].count("attempt_judged") == 1


# -- host records ------------------------------------------------------------------------------


def test_a_changed_stack_is_another_host_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = made(tmp_path / "c")
    manifest, _ = seal(campaign)
    journal, names, version = Journal(campaign.folder), [], ""

    def record(**given: Any) -> dict[str, Any]:
        found = host_record(**given)
        return {**found, "software": {**found["software"], "torch": version}}

    monkeypatch.setattr("gpucost_tui.campaign.hosts.host_record", record)
    for version in ("2.6.0", "2.6.0", "2.7.0"):  # noqa: B007 - read by record()
        names.append(record_host(campaign, journal, {"missing": {}}, fold(campaign.events())))
    assert names[0] == names[1] != names[2]
    seen = [event for event in campaign.events() if event.event == "host_seen"]
    assert [event.data["host"] for event in seen] == [names[0], names[2]]
    for event, version in zip(seen, ("2.6.0", "2.7.0"), strict=True):
        kept = json.loads(campaign.host_file(event.data["host"]).read_bytes())
        assert kept["software"]["torch"] == version
        assert sha256_bytes(canonical_json(kept)) == event.data["record_sha256"]
    assert Campaign.open(campaign.folder).manifest.sha256 == manifest.sha256
