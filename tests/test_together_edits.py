"""Two that edit, and a seal beside an edit: nobody's change is lost, at many timings."""

from __future__ import annotations

import random
import shutil
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import runner_parts as parts
from together_parts import Forge, done, forge

from gpucost_tui.campaign.create import Inputs, create
from gpucost_tui.campaign.folder import Campaign
from gpucost_tui.campaign.seal import ensure_unchanged, seal
from gpucost_tui.campaign.swapping import exchange
from gpucost_tui.errors import Differs

WORK_S = 0.04  # about what reading a draft and changing it takes
#: What an editor of somebody else's changes; the rest of the file stays as it is.
OLD, NEW = "threshold = 0.5", "threshold = 0.25"


@pytest.fixture(scope="module")
def draft(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A draft that nothing blocks; never written to."""
    folder = tmp_path_factory.mktemp("draft")
    corpus = parts.write_corpus(folder / "corpus.jsonl", parts.corpus_rows())
    settings = {**parts.SETTINGS, "measurement.process": "thread", "measurement.rounds": 1}
    inputs = Inputs(
        "classification-batch", [str(corpus)], model="demo", settings=list(settings.items())
    )
    made = create(folder / "c", inputs)
    assert OLD in made.protocol_file.read_text()
    return made.folder


def copied(draft: Path, folder: Path) -> Campaign:
    return Campaign(Path(shutil.copytree(draft, folder)))


def variants(made: Campaign) -> list[str]:
    return list(tomllib.loads(made.protocol_file.read_text("utf-8"))["variants"])


def tidy(made: Campaign) -> bool:
    """Tell whether no half-written file and no lock is left."""
    return not any(p.name == "runner.lock" or p.name[0] == "." for p in made.folder.iterdir())


# -- two editors ----------------------------------------------------------------------------------


def two_editors(draft: Path, tmp_path: Path, timings: int, seed: int) -> Counter[str]:
    chance, met = random.Random(seed), Counter[str]()
    with forge() as at:
        for turn in range(timings):
            made = copied(draft, tmp_path / f"c{turn}")
            steps: list[dict[str, Any]] = []
            for name, size in (("from-a", 16), ("from-b", 32)):
                read = chance.random() * 0.12
                moments = [read, read + WORK_S + chance.random() * 0.03]
                step = {"do": "edit", "folder": made.folder, "name": name, "size": size}
                steps.append({**step, "at": moments})
            said = at.at_once(*steps)
            there = variants(made)
            for step, one in zip(steps, said, strict=True):
                assert done(one) == (step["name"] in there), (said, there)
                if not done(one):
                    assert one["kind"] == "Differs", one
            met[f"{sum(map(done, said))} of two written"] += 1
            assert any(map(done, said)), said
            made.draft()
            assert tidy(made)
    return met


def test_of_two_editors_none_loses_a_change(draft: Path, tmp_path: Path) -> None:
    two_editors(draft, tmp_path, 20, seed=1)


def test_editors_that_look_again_bring_in_everything(draft: Path, tmp_path: Path) -> None:
    made = copied(draft, tmp_path / "c")
    names = [[f"v{who}-{n}" for n in range(4)] for who in range(3)]
    steps = [
        {"do": "edit_until_done", "folder": made.folder, "names": mine, "at": [0]} for mine in names
    ]
    with forge() as at:
        said = at.at_once(*steps)
    assert all(map(done, said)), said
    all_ = {name for mine in names for name in mine}
    assert set(variants(made)) == {*variants(Campaign(draft)), *all_}
    assert tidy(made)


# -- an editor, and somebody else's ---------------------------------------------------------------


def editor_and_outside(draft: Path, tmp_path: Path, timings: int, seed: int) -> Counter[str]:
    for name in ("one", "other"):
        (tmp_path / name).touch()
    if not exchange(tmp_path / "one", tmp_path / "other"):
        pytest.skip("this file system can't let two files change places: a moment is left")
    chance, met = random.Random(seed), Counter[str]()
    with forge() as at:
        for turn in range(timings):
            made = copied(draft, tmp_path / f"c{turn}")
            read, saved = sorted([chance.random() * 0.15, chance.random() * 0.15])
            mine = chance.random() * 0.1
            written = mine + WORK_S + chance.random() * 0.03
            how = chance.choice(["in place", "renamed"])
            edit = {"do": "edit", "folder": made.folder, "name": "mine", "size": 16}
            other = {"do": "outside", "folder": made.folder, "old": OLD, "new": NEW, "how": how}
            said, _ = at.at_once({**edit, "at": [mine, written]}, {**other, "at": [read, saved]})
            text = made.protocol_file.read_text("utf-8")
            # What they have saved is never lost to ours; ours may be, as they look at nothing.
            assert NEW in text, (turn, how, said)
            if not done(said):
                assert said["kind"] in ("Differs", "InputError"), said
            met[f"{how}: {'written' if done(said) else said['kind']}"] += 1
            made.draft()
            assert tidy(made)
    return met


def test_what_somebody_else_saves_is_never_lost(draft: Path, tmp_path: Path) -> None:
    editor_and_outside(draft, tmp_path, 20, seed=2)


# -- a seal and an edit ---------------------------------------------------------------------------


def seal_and_edit(draft: Path, tmp_path: Path, timings: int, seed: int) -> Counter[str]:
    """Ours: whatever was written is sealed, or was refused."""
    chance, met = random.Random(seed), Counter[str]()
    with forge() as at:
        for turn in range(timings):
            made = copied(draft, tmp_path / f"c{turn}")
            read = chance.random() * 0.25
            edit = {"do": "edit", "folder": made.folder, "name": "mine", "size": 16}
            sealed, edited = at.at_once(
                {"do": "sealing", "folder": made.folder, "at": [0.1]},
                {**edit, "at": [read, read + WORK_S + chance.random() * 0.05]},
            )
            assert done(edited) == ("mine" in variants(made)), (turn, edited)
            assert done(sealed) or done(edited)
            if done(sealed):
                ensure_unchanged(made)
            else:
                assert "changed while it was being sealed" in sealed["refused"]
                assert made.sealed_hash() is None
            if not done(edited):
                assert "the campaign is sealed" in edited["refused"], edited
            met[f"seal {_word(sealed)}, edit {_word(edited)}"] += 1
            assert tidy(made)
            if not done(sealed):
                seal(made)
                ensure_unchanged(made)
    return met


def _word(said: dict[str, Any]) -> str:
    return "done" if done(said) else "refused"


def test_a_seal_and_an_edit(draft: Path, tmp_path: Path) -> None:
    seal_and_edit(draft, tmp_path, 12, seed=3)


def seal_and_outside(draft: Path, tmp_path: Path, timings: int, seed: int) -> Counter[str]:
    chance, met = random.Random(seed), Counter[str]()
    with forge() as at:
        for turn in range(timings):
            made = copied(draft, tmp_path / f"c{turn}")
            saved = chance.random() * 0.3
            how = chance.choice(["in place", "renamed"])
            other = {"do": "outside", "folder": made.folder, "old": OLD, "new": NEW, "how": how}
            sealed, _ = at.at_once(
                {"do": "sealing", "folder": made.folder, "at": [0.1]},
                {**other, "at": [saved, saved]},
            )
            assert NEW in made.protocol_file.read_text("utf-8")
            if not done(sealed):
                met["refused"] += 1
                assert made.sealed_hash() is None
                seal(made)
                ensure_unchanged(made)
            elif made.manifest.protocol.quality.threshold == 0.25:
                met["sealed as saved"] += 1
                ensure_unchanged(made)
            else:
                met["saved after the seal"] += 1
                with pytest.raises(Differs, match=r"protocol\.toml"):
                    ensure_unchanged(made)
            assert tidy(made)
    return met


def test_a_seal_and_somebody_elses_editor(draft: Path, tmp_path: Path) -> None:
    seal_and_outside(draft, tmp_path, 12, seed=4)


def test_a_seal_that_was_cut_off_leaves_a_draft_that_can_be_edited(
    draft: Path, tmp_path: Path
) -> None:
    made = copied(draft, tmp_path / "c")
    seal(made)
    for name in ("journal.jsonl", "journal.head"):
        (made.folder / name).unlink()
    step = {"do": "edit", "folder": made.folder, "name": "mine", "size": 16, "at": [0, 0]}
    with forge() as at:
        assert done(at.at_once(step)[0])
    assert "mine" in seal(Campaign(made.folder))[0].protocol.variants


@pytest.mark.slow
@pytest.mark.parametrize("act", [two_editors, editor_and_outside, seal_and_edit, seal_and_outside])
def test_at_two_hundred_timings(draft: Path, tmp_path: Path, act: Any) -> None:
    print(act.__name__, dict(act(draft, tmp_path, 200, seed=100)))


def test_at_once_is_at_once(draft: Path, tmp_path: Path) -> None:
    """The two do overlap: with a common beginning, one of them is refused."""
    made = copied(draft, tmp_path / "c")
    steps = [
        {"do": "edit", "folder": made.folder, "name": name, "size": 16, "at": [0, 0.1]}
        for name in ("a", "b")
    ]
    with forge() as at:
        assert _refused(at, steps) == 1


def _refused(at: Forge, steps: list[dict[str, Any]]) -> int:
    return sum(not done(one) for one in at.at_once(*steps))
