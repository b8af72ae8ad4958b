"""Variants of a draft are changed in its file: comments kept, nobody's edit lost."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpucost_tui.campaign import edit_text
from gpucost_tui.campaign.create import Inputs, create
from gpucost_tui.campaign.edit import Draft, changes_from, changes_text, read_draft
from gpucost_tui.campaign.folder import Campaign
from gpucost_tui.campaign.seal import seal
from gpucost_tui.errors import (
    Differs,
    EnvironmentLacks,
    GpucostError,
    InputError,
    Refused,
    WrongUse,
)

#: Comments in every place where one can stand.
VARIANTS = """\
# about all variants

# about one
[variants.batch-1] # beside the header
# first inside
batch_size = 1   # beside a value
# last inside

# about four
[variants.batch-4]
batch_size = 4
  # indented, glued
\t
[variants."batch.8"]
batch_size = 8
dtype = 'float32' # the same as the baseline

# about the series
[[series]] # beside
name = "batch size"
factor = "batch_size"
variants = [ # open
  "batch-1", # one
  "batch-4", # four
  # before eight
  "batch.8",
] # close
"""


def template() -> str:
    return (Path(__file__).parent.parent / "protocols" / "classification-batch.toml").read_text()


def with_comments() -> str:
    """The template with the part above in place of its variants and series."""
    before, _, rest = template().partition("[variants.batch-1]")
    return f"{before}{VARIANTS}\n{rest[rest.index('[[deliverables]]') :]}"


def comments(text: str) -> list[str]:
    return [line.partition("#")[2] for line in text.splitlines() if "#" in line]


@pytest.fixture
def draft_folder(tmp_path: Path) -> Path:
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text('{"id": "a", "text": "Where is my parcel?", "label": "delivery"}\n')
    protocol = tmp_path / "mine.toml"
    protocol.write_text(with_comments())
    create(tmp_path / "c", Inputs(protocol=str(protocol), corpus=[str(corpus)], model="demo"))
    return tmp_path / "c"


def opened(folder: Path) -> Draft:
    return read_draft(Campaign(folder))


# -- the text ------------------------------------------------------------------------------------


def test_adding_moves_nothing_else() -> None:
    text = with_comments()
    edited = edit_text.add(text, "batch-16", {"batch_size": 16}, ["batch size"])
    assert [line for line in edited.splitlines() if line not in text.splitlines()] == [
        "[variants.batch-16]",
        "batch_size = 16",
        '  "batch-16",',
    ]
    assert comments(edited) == comments(text)
    assert edited.index("[variants.batch-16]") < edited.index("# about the series")


def test_removing_takes_only_what_belongs_to_it() -> None:
    text = with_comments()
    edited = edit_text.remove(text, "batch-4")
    gone = [line for line in text.splitlines() if line not in edited.splitlines()]
    assert [line for line in gone if line.strip()] == [
        "[variants.batch-4]",
        "batch_size = 4",
        "  # indented, glued",
        '  "batch-4", # four',
    ]


def test_a_changed_value_keeps_its_line_and_comment() -> None:
    edited = edit_text.change(with_comments(), "batch-1", {"batch_size": 2, "threads": 3})
    assert "batch_size = 2   # beside a value\n# last inside\nthreads = 3\n" in edited
    assert comments(edited) == comments(with_comments())


def test_a_name_changes_wherever_it_stands() -> None:
    text = with_comments().replace('kind = "answers" ', 'kind = "variant"\nvariant = "batch-1" ')
    text = text.replace('\ncolumn = "label"', "")
    edited = edit_text.rename(text, "batch-1", "one.1")
    assert '[variants."one.1"] # beside the header' in edited
    assert '"one.1", # one' in edited
    assert tomllib.loads(edited)["reference"]["variant"] == "one.1"
    assert "batch-1" not in edited.partition("[window")[0].replace("classification-batch-1", "")
    assert comments(edited) == comments(text)


#: Other spellings that TOML allows; each edit works or refuses, none spoils.
SPELLINGS = [
    "variants = {a = {batch_size = 1}, b = {batch_size = 2}}\n[x]\ny = 1\n",
    "[variants]\na = {batch_size = 1} # c\nb = {batch_size = 2}\n[x]\ny = 1\n",
    "variants.a.batch_size = 1\nvariants.b.batch_size = 2\n[x]\ny = 1\n",
    "[variants]\na.batch_size = 1\nb.batch_size = 2\n[x]\ny = 1\n",
    "[variants.a]\nbatch_size = 1\n[x]\ny = 1\n[variants.b]\nbatch_size = 2\n[z]\n",
    "[variants]\n[variants.a]\nbatch_size = 1\n['variants'.\"b\"]\nbatch_size = 2\n[z]\n",
    '[variants.a]\nx = """\n[variants.b]\n"""\ny = [\n[1],\n[2]]\n[variants.b]\nbatch_size = 2',
]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_other_spellings_work_or_refuse(spelling: str) -> None:
    text = f'{spelling}\n[[series]]\nname = "s"\nvariants = ["a", "b"]'
    before = tomllib.loads(text)
    for edit in (
        lambda: edit_text.add(text, "c", {"batch_size": 3}, ["s"]),
        lambda: edit_text.change(text, "b", {"batch_size": 9, "dtype": "float16"}),
        lambda: edit_text.rename(text, "b", "r"),
        lambda: edit_text.remove(text, "b"),
        lambda: edit_text.set_series(text, "b", []),
    ):
        try:
            after = tomllib.loads(edit())
        except InputError as error:
            assert "form" in error.what
            continue
        same = {k: v for k, v in after.items() if k not in ("variants", "series")}
        assert same == {k: v for k, v in before.items() if k not in ("variants", "series")}
        assert after["variants"]["a"] == before["variants"]["a"]


names = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,6}", fullmatch=True)
changes = st.fixed_dictionaries(
    {"batch_size": st.integers(1, 512)},
    optional={
        "dtype": st.sampled_from(["float32", "bfloat16"]),
        "deterministic": st.booleans(),
        "threads": st.integers(0, 8),
    },
)
steps = st.lists(
    st.tuples(
        st.sampled_from(["add", "change", "rename", "remove"]), names, changes, st.integers()
    ),
    max_size=6,
)


@settings(max_examples=60, deadline=None)
@given(steps=steps)
def test_any_edits_mean_what_they_say_and_keep_all_other_comments(steps: list[Any]) -> None:
    text, model = with_comments(), tomllib.loads(with_comments())["variants"]
    for what, name, values, pick in steps:
        chosen = sorted(model)[pick % len(model)]
        if what == "add" and name not in model:
            text = edit_text.add(text, name, values, ["batch size"])
            model[name] = values
        elif what == "change":
            text = edit_text.change(text, chosen, values)
            model[chosen] = values
        elif what == "rename" and name not in model:
            text = edit_text.rename(text, chosen, name)
            model[name] = model.pop(chosen)
        elif what == "remove" and len(model) > 1:
            text = edit_text.remove(text, chosen)
            del model[chosen]
        found = tomllib.loads(text)
        assert found["variants"] == model
        assert set(found["series"][0]["variants"]) == set(model)
    for outside in ("about all variants", "about one", "about four", "about the series", "beside"):
        assert f"# {outside}" in text
    head = with_comments().partition("# about all variants")[0]
    assert text.startswith(head)


# -- the draft -----------------------------------------------------------------------------------


def test_a_variant_goes_in_is_changed_and_goes_out_again(draft_folder: Path) -> None:
    before = (draft_folder / "protocol.toml").read_bytes()
    draft = opened(draft_folder)
    draft.write(draft.add("batch-16", {"batch_size": 16}, ["batch size"]))
    draft = opened(draft_folder)
    assert draft.protocol.series[0].variants[-1] == "batch-16"
    draft.write(draft.change("batch-16", "batch-32", {"batch_size": 32}, ["batch size"]))
    draft = opened(draft_folder)
    assert draft.protocol.variants["batch-32"] == {"batch_size": 32}
    draft.write(draft.remove("batch-32"))
    assert (draft_folder / "protocol.toml").read_bytes() == before


def test_r10_is_told_before_anything_is_written(draft_folder: Path) -> None:
    draft = opened(draft_folder)
    edit = draft.add("mixed", {"batch_size": 16, "dtype": "bfloat16"}, ["batch size"])
    assert any("R10" in problem.what and "dtype" in problem.what for problem in edit.fresh)
    assert all("R10" not in p.what for p in draft.add("ok", {"batch_size": 16}, []).fresh)
    same = draft.add("again", {"batch_size": 8}, ["batch size"])
    assert any("nothing is compared" in problem.what for problem in same.fresh)
    assert opened(draft_folder).sha256 == draft.sha256


def test_what_cannot_be_is_refused_in_words(draft_folder: Path) -> None:
    draft = opened(draft_folder)
    for attempt, words in (
        (lambda: draft.add("batch-1", {}, []), "already"),
        (lambda: draft.add("x", {}, ["nope"]), "no series 'nope'"),
        (lambda: draft.remove("nope"), "no variant 'nope'"),
        (lambda: draft.change("batch-1", "batch-4", {"batch_size": 1}, ["batch size"]), "already"),
        (lambda: draft.change("nope", "nope", {}, []), "no variant"),
    ):
        with pytest.raises(WrongUse, match=words):
            attempt()
    for name in ("", " ", "a b", "a/../b", 'a"b', "ü", "a\x00b", "[/b]", "x" * 65, "a\nb"):
        with pytest.raises(InputError) as caught:
            draft.add(name, {"batch_size": 3}, [])
        assert "\x00" not in str(caught.value)
    unknown = draft.add("x", {"batch": 3}, ["batch size"])
    assert any("no execution setting" in problem.what for problem in unknown.fresh)
    wrong = draft.add("x", {"batch_size": "many"}, ["batch size"])
    assert any("batch_size" in problem.where for problem in wrong.fresh)


def test_the_last_variant_of_a_series_stays(draft_folder: Path) -> None:
    for name in ("batch-4", "batch.8"):
        draft = opened(draft_folder)
        draft.write(draft.remove(name))
    draft = opened(draft_folder)
    with pytest.raises(WrongUse, match="only variant of series 'batch size'"):
        draft.remove("batch-1")
    with pytest.raises(WrongUse, match="only variant"):
        draft.change("batch-1", "batch-1", {"batch_size": 1}, [])


def test_an_edit_from_outside_is_not_lost(draft_folder: Path) -> None:
    draft = opened(draft_folder)
    edit = draft.add("batch-16", {"batch_size": 16}, ["batch size"])
    path = draft_folder / "protocol.toml"
    status = path.stat()
    outside = path.read_text().replace("batch_size = 4", "batch_size = 5")
    path.write_text(outside)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))  # same size, same time
    with pytest.raises(Differs, match="changed outside"):
        draft.write(edit)
    assert path.read_text() == outside
    assert sorted(p.name for p in draft_folder.iterdir() if p.name.startswith(".")) == []


def test_a_sealed_campaign_is_left_alone(tmp_path: Path) -> None:
    from tui_support import draft_campaign

    campaign = draft_campaign(tmp_path / "c", 30)
    draft = read_draft(campaign)
    edit = draft.add("batch-16", {"batch_size": 16}, ["batch size"])
    seal(campaign)
    with pytest.raises(Refused, match="sealed"):
        draft.write(edit)
    with pytest.raises(Refused, match="sealed"):
        read_draft(Campaign(campaign.folder))


@pytest.mark.parametrize(("bom", "ends"), [(b"\xef\xbb\xbf", "\n"), (b"", "\r\n"), (b"", "\n")])
def test_line_ends_and_mark_stay(draft_folder: Path, bom: bytes, ends: str) -> None:
    path = draft_folder / "protocol.toml"
    path.write_bytes(bom + path.read_text().replace("\n", ends).encode())
    before = path.read_bytes()
    draft = opened(draft_folder)
    draft.write(draft.add("batch-16", {"batch_size": 16}, ["batch size"]))
    written = path.read_bytes()
    assert written.startswith(bom)
    assert written.count(b"\n") == written.count(ends.encode()) > before.count(b"\n")
    draft = opened(draft_folder)
    draft.write(draft.remove("batch-16"))
    assert path.read_bytes() == before


def test_a_folder_that_may_not_be_written_is_one_sentence(draft_folder: Path) -> None:
    draft = opened(draft_folder)
    edit = draft.add("batch-16", {"batch_size": 16}, ["batch size"])
    path = draft_folder / "protocol.toml"
    before = path.read_bytes()
    if os.geteuid() == 0:
        path.unlink()  # root may write anywhere: the file is gone instead
        with pytest.raises(EnvironmentLacks, match="can't be written"):
            draft.write(edit)
        return
    draft_folder.chmod(0o500)
    try:
        with pytest.raises(EnvironmentLacks, match="can't be written"):
            draft.write(edit)
    finally:
        draft_folder.chmod(0o700)
    assert path.read_bytes() == before


def test_a_link_and_a_mode_stay_what_they_are(draft_folder: Path, tmp_path: Path) -> None:
    path, elsewhere = draft_folder / "protocol.toml", tmp_path / "elsewhere.toml"
    path.rename(elsewhere)
    elsewhere.chmod(0o640)
    path.symlink_to(elsewhere)
    draft = opened(draft_folder)
    draft.write(draft.add("batch-16", {"batch_size": 16}, []))
    assert path.is_symlink()
    assert elsewhere.stat().st_mode & 0o777 == 0o640
    assert "batch-16" in elsewhere.read_text()


def test_changes_as_typed() -> None:
    typed = 'batch_size = 16\ndtype = "bfloat16" # why\n'
    assert changes_from(typed) == {"batch_size": 16, "dtype": "bfloat16"}
    assert changes_from(changes_text({"a": True, "b": "x\ny"})) == {"a": True, "b": "x\ny"}
    assert changes_text({}) == ""
    for wrong in (
        "batch_size",
        "a = [1]",
        "[a]\nb = 1",
        "a = 1\na = 2",
        "\x1b[31m",
        "a = 1979-05-27",
    ):
        with pytest.raises(GpucostError) as caught:
            changes_from(wrong)
        assert "\x1b" not in str(caught.value)
