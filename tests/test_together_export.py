"""An export beside a run, a commitment, another export: what is packed verifies."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest
import runner_parts as parts
from together_parts import done, forge

from gpucost_tui.campaign.lock import RunnerLock
from gpucost_tui.dossier.archive import verify_archive
from gpucost_tui.dossier.export import export
from gpucost_tui.dossier.verify import verify
from gpucost_tui.errors import Refused
from gpucost_tui.files import sha256_file

SCRIPT = {
    "devices": [{"name": "NVIDIA GeForce RTX 4090", "capacity_bytes": 24 << 30}],
    "default": {"batch_s": 0.001},
}
THREAD = {"measurement__process": "thread", "measurement__rounds": 1}


def run_and_export(tmp_path: Path, timings: int, seed: int) -> Counter[str]:
    """A run of three attempts, and an export that begins before, in or after it."""
    chance, met = random.Random(seed), Counter[str]()
    with forge(SCRIPT) as at:
        for turn in range(timings):
            made = parts.campaign(tmp_path / f"c{turn}", **THREAD)
            target = tmp_path / f"{turn}.zip"
            begins = chance.random() * 0.3, chance.random() * 1.5
            ran, packed = at.at_once(
                {"do": "running", "folder": made.folder, "at": [begins[0]]},
                {"do": "exporting", "folder": made.folder, "target": target, "at": [begins[1]]},
            )
            if done(packed):
                answer = verify_archive(target, heads=packed["ok"])
                assert answer.ok, answer.findings.differences
                attempts = answer.findings.checked["attempts"]
                met[f"packed with {attempts} attempts"] += 1
            else:
                assert "a runner is already at work" in packed["refused"], packed
                assert "needs the record at rest" in packed["refused"]
                assert not target.exists()
                met["export refused"] += 1
            if not done(ran):
                assert "an export is already at work" in ran["refused"], ran
                assert "Try again when it has ended" in ran["refused"]
                met["run refused"] += 1
                parts.run_here(made, script=SCRIPT)
            assert done(ran) or done(packed)
            parts.sound(made, [1, 2, 3])
            assert verify([made.folder]).ok
            assert not (made.folder / "runner.lock").exists()
    return met


def test_a_run_and_an_export(tmp_path: Path) -> None:
    met = run_and_export(tmp_path, 12, seed=1)
    assert met.total() >= 12


def test_an_export_while_a_run_by_command_is_at_work(tmp_path: Path) -> None:
    made = parts.campaign(tmp_path / "c", measurement__rounds=1)
    target = tmp_path / "out.zip"
    target.write_bytes(b"an older one")
    runner = parts.start("run", made.folder, script={"default": {"batch_s": 0.1}})
    parts.until(lambda: parts.running(made))
    said = parts.gpucost("export", made.folder, target)
    assert said.returncode == 1
    assert f"a runner is already at work on this campaign (process {runner.pid}" in said.stderr
    assert "`gpucost stop` ends it" in said.stderr
    assert target.read_bytes() == b"an older one"
    parts.gpucost("stop", made.folder)
    runner.communicate(timeout=30)
    said = parts.gpucost("export", made.folder, target)
    assert said.returncode == 0, said.stderr
    assert parts.gpucost("verify", target).returncode == 0


def test_an_export_is_no_runner(tmp_path: Path) -> None:
    """Nobody can stop it, and a run that it keeps out says what to wait for."""
    made = parts.campaign(tmp_path / "c", **THREAD)
    with RunnerLock(made.folder, "export"):
        for word, sentence in (("run", "an export is already at work"), ("stop", "no runner")):
            said = parts.gpucost(word, made.folder)
            assert said.returncode == 1
            assert sentence in said.stderr
            assert "`gpucost stop` ends it" not in said.stderr
        assert "sealed" in parts.gpucost("status", made.folder).stdout.splitlines()[0]
        detached = parts.gpucost("run", made.folder, "--detach")
        assert detached.returncode == 1
        assert "an export is already at work" in detached.stderr
    assert parts.gpucost("run", made.folder).returncode == 0


def test_exports_and_commitments_at_once(tmp_path: Path) -> None:
    made = parts.campaign(tmp_path / "c", **THREAD)
    parts.run_here(made, script=SCRIPT)
    chance, heads = random.Random(5), []
    with forge() as at:
        for turn in range(5):
            steps = [
                {
                    "do": "exporting",
                    "folder": made.folder,
                    "target": tmp_path / f"{turn}-{who}.zip",
                    "at": [chance.random() * 0.1],
                }
                for who in range(2)
            ]
            buys = [
                {"do": "committing", "folder": made.folder, "lots": lots, "at": [chance.random()]}
                for lots in (1 + 2 * turn, 2 + 2 * turn)
            ]
            *packed, one, other = at.at_once(*steps, *buys)
            assert done(one) and done(other), (one, other)
            for step, said in zip(steps, packed, strict=True):
                if done(said):
                    answer = verify_archive(Path(step["target"]), heads=said["ok"])
                    assert answer.ok, answer.findings.differences
                    heads += said["ok"]
                else:
                    assert "is already at work" in said["refused"] or "grew" in said["refused"]
                    assert not Path(step["target"]).exists()
            assert any(map(done, packed)), packed
    answer = verify([made.folder], heads=heads)
    assert answer.ok, answer.findings.differences


def test_a_journal_that_never_rests_leaves_the_older_dossier(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gpucost_tui.dossier import export as module

    made = parts.campaign(tmp_path / "c", **THREAD)
    parts.run_here(made, script=SCRIPT)
    target = tmp_path / "out.zip"
    export([made.folder], target)
    before = sha256_file(target)
    numbers = iter(range(100))
    monkeypatch.setattr(module, "_head", lambda campaign: f"{next(numbers)}")
    with pytest.raises(Refused, match="grew while it was packed"):
        export([made.folder], target)
    assert sha256_file(target) == before
    assert sorted(p.name for p in tmp_path.glob("*out.zip*")) == ["out.zip"]


@pytest.mark.slow
def test_a_run_and_an_export_at_two_hundred_timings(tmp_path: Path) -> None:
    print(dict(run_and_export(tmp_path, 200, seed=100)))
