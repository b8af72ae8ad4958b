"""`new` makes a whole campaign or nothing: files, deliverables, settings, parents, broken input."""

from __future__ import annotations

import copy
import json
import os
import resource
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import tomlkit
from campaign_parts import RIGHT, TEMPLATE, edited, made, rows, template, write_jsonl
from hypothesis import given, settings
from hypothesis import strategies as st

from gpucost_tui.campaign.create import Inputs, create
from gpucost_tui.campaign.folder import Campaign
from gpucost_tui.campaign.seal import seal
from gpucost_tui.campaign.settings import Document, parse_setting
from gpucost_tui.campaign.survey import survey
from gpucost_tui.corpus.read import read_entries, read_tuning
from gpucost_tui.demo import generate
from gpucost_tui.errors import (
    Differs,
    EnvironmentLacks,
    GpucostError,
    InputError,
    NotACampaign,
    Refused,
    WrongUse,
)
from gpucost_tui.protocol.lines import split_key
from gpucost_tui.protocol.load import Source

TUNING = [{"id": "t1", "text": "a text of its own"}, {"text": "and another one"}]
TWO = '[[deliverables]]\nname = "letters"\n\n[[deliverables]]\nname = "mails"\n'


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_jsonl(tmp_path / "source.jsonl", rows())


def nothing_left(folder: Path, before: set[Path]) -> None:
    assert set(folder.rglob("*")) == before


def fails(tmp_path: Path, kind: type[GpucostError], match: str, **inputs: Any) -> GpucostError:
    """Make a campaign that can't be made; nothing of it is left."""
    before = set(tmp_path.rglob("*"))
    given_ = {"protocol": TEMPLATE, "model": "demo", **inputs}
    with pytest.raises(kind, match=match) as refusal:
        create(tmp_path / "deep" / "er" / "new", Inputs(**given_))
    nothing_left(tmp_path, before)
    assert "\n" not in str(refusal.value)
    return refusal.value


def test_what_a_campaign_holds(tmp_path: Path, source: Path) -> None:
    tuning = write_jsonl(tmp_path / "tuning.jsonl", TUNING)
    campaign = create(
        tmp_path / "new",
        Inputs(TEMPLATE, [str(source)], "demo", [str(tuning)], settings=[RIGHT]),
    )
    assert {path.name for path in campaign.folder.iterdir()} == {
        "corpus", "protocol.toml", "reference", "sources.json", "tuning",
    }  # fmt: skip
    _, protocol = campaign.draft()
    assert (protocol.model.source, protocol.model.name) == ("demo", "demo")
    assert protocol.tuning.declared == "files" and protocol.tuning.statement is None
    assert [e.id for e in read_entries([campaign.corpus_file("corpus")])] == [
        row["id"] for row in rows()
    ]
    assert [row.id for row in read_tuning([campaign.tuning_file])] == ["t1", None]
    text = campaign.protocol_file.read_text("utf-8")
    assert "# one rule for every variant" in text and "#" in text.split('declared = "files"')[1]
    assert not survey(campaign).blocking


def test_an_empty_folder_is_filled_where_it_stands(tmp_path: Path, source: Path) -> None:
    folder = tmp_path / "volume"
    folder.mkdir()
    inode = folder.stat().st_ino
    create(folder, Inputs(TEMPLATE, [str(source)], "demo"))
    assert folder.stat().st_ino == inode and (folder / "protocol.toml").is_file()
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(InputError):
        create(empty, Inputs(TEMPLATE, [str(tmp_path / "absent.jsonl")], "demo"))
    assert list(empty.iterdir()) == []


def test_the_current_folder(tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    create(Path(), Inputs(TEMPLATE, [str(source)], "demo"))
    assert Path("protocol.toml").is_file() and Path.cwd() == tmp_path / "here"


@pytest.mark.parametrize(
    "name",
    ["with space", "ünï✓", "quo'te\"s", "-dash", "new\nline", "[glob]*?", "\x1b[2J", "n" * 250],
)
def test_hostile_names(tmp_path: Path, name: str) -> None:
    source = write_jsonl(tmp_path / (name[:200] + ".jsonl"), rows())
    given_ = Inputs(TEMPLATE, [str(source)], "demo", settings=[RIGHT])
    campaign = create(tmp_path / name, given_)
    assert not survey(campaign).blocking
    manifest, _ = seal(campaign)
    assert manifest.sha256 == Campaign.open(tmp_path / name).manifest.sha256


def test_a_folder_in_use(tmp_path: Path, source: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    for name in (".", "file", "dangling"):
        with pytest.raises(WrongUse, match="exists and is not empty"):
            create(tmp_path / name, Inputs(TEMPLATE, [str(source)], "demo"))


@pytest.mark.parametrize("place", ["source.jsonl/new", "n" * 300, "a/" * 3000 + "new"])
def test_a_place_where_nothing_can_be_made(tmp_path: Path, source: Path, place: str) -> None:
    with pytest.raises(EnvironmentLacks, match="can't be made") as refusal:
        create(tmp_path / place, Inputs(TEMPLATE, [str(source)], "demo"))
    assert refusal.value.exit_status == 3
    nothing_left(tmp_path, {source})


def _small_files() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))


def test_a_disk_that_takes_no_more(tmp_path: Path) -> None:
    source = tmp_path / "big.jsonl"
    generate.write_jsonl(source, generate.corpus())
    words = ["new", str(tmp_path / "a" / "new"), "--protocol", TEMPLATE, "--model", "demo"]
    done = subprocess.run(
        [sys.executable, "-m", "gpucost_tui", *words, "--corpus", str(source)],
        preexec_fn=_small_files, capture_output=True, text=True, timeout=120,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip
    assert done.returncode == 3 and done.stderr.count("\n") == 1, done
    assert "File too large" in done.stderr
    assert "/a/new/corpus/corpus.jsonl: " in done.stderr, "the file as it would be called"
    nothing_left(tmp_path, {source})


@contextmanager
def without_rights(folder: Path) -> Iterator[None]:
    """A folder that may be read and not written; root stops being root meanwhile."""
    root = os.geteuid() == 0
    for path in (folder, *folder.parents) if root else ():
        if path.stat().st_mode & 0o777 == 0o700 and "pytest" in str(path):
            path.chmod(0o755)  # pytest's own folders, as deep as its workers make them
    folder.chmod(0o555)
    try:
        if root:
            os.seteuid(65534)
        yield
    finally:
        if root:
            os.seteuid(0)
        folder.chmod(0o755)


def test_a_folder_without_the_right_to_write(tmp_path: Path) -> None:
    campaign = made(tmp_path / "whole")  # everything is imported before rights are given up
    inputs = Inputs(TEMPLATE, [str(tmp_path / "whole-corpus.jsonl")], "demo")
    before = set(tmp_path.rglob("*"))
    with without_rights(tmp_path), pytest.raises(EnvironmentLacks, match="Permission denied"):
        create(tmp_path / "new", inputs)
    nothing_left(tmp_path, before)
    with without_rights(campaign.folder), pytest.raises(EnvironmentLacks, match="Permission"):
        seal(campaign)
    nothing_left(tmp_path, before)
    (campaign.folder / "runner.lock").touch(mode=0o666)
    (campaign.folder / "runner.lock").chmod(0o666)
    with without_rights(campaign.folder), pytest.raises(EnvironmentLacks, match="not sealed"):
        seal(campaign)
    assert not campaign.sealed
    seal(campaign)


# -- what is given -----------------------------------------------------------------------------


def test_what_is_missing(tmp_path: Path, source: Path) -> None:
    corpus = [str(source)]
    fails(tmp_path, WrongUse, "no protocol is named", protocol=None, corpus=corpus)
    fails(tmp_path, WrongUse, "'corpus' has no corpus.*--corpus corpus=FILE")
    fails(tmp_path, InputError, "neither a template", protocol="nope", corpus=corpus)
    fails(tmp_path, InputError, "no such file", corpus=[str(tmp_path / "no.jsonl")])
    fails(tmp_path, InputError, "no such folder", corpus=corpus, model="./no-model")
    fails(tmp_path, InputError, "is not a file|a folder", corpus=[str(tmp_path)])
    fails(tmp_path, NotACampaign, "no folder", corpus=corpus, parent=tmp_path / "no")
    fails(tmp_path, InputError, "no such file", corpus=corpus, tuning=[str(tmp_path / "t.csv")])
    fails(tmp_path, InputError, "no such file", corpus=corpus, reference=[str(tmp_path / "r.csv")])


@pytest.mark.parametrize(
    ("rows_", "match"),
    [
        ([], "no entries"),
        ([{"id": "a", "text": "x"}, {"id": "a", "text": "y"}], r"\(R7\)|'a'"),
        ([{"id": "a", "text": "x"}, {"text": "y"}], r"line 2: there is no id"),
        ([{"id": "a", "text": "x"}, {"id": "", "text": "y"}], r"line 2: the id is empty.*\(R7\)"),
        (
            [{"id": "a", "text": "x"}, {"id": "b", "text": " "}],
            r"line 2, id 'b': the text is empty",
        ),
        ([{"id": "a"}], r"line 1, id 'a': there is no text"),
    ],
)
def test_r7_a_corpus_with_mistakes(tmp_path: Path, rows_: list[dict[str, Any]], match: str) -> None:
    source = write_jsonl(tmp_path / "source.jsonl", rows_)
    error = fails(tmp_path, InputError, match, corpus=[str(source)])
    assert "source.jsonl" in str(error)


def test_a_failed_child_leaves_nothing(tmp_path: Path) -> None:
    draft = made(tmp_path / "draft")
    error = fails(tmp_path, Refused, "not sealed", protocol=None, parent=draft.folder)
    assert "gpucost seal" in str(error)


@pytest.mark.parametrize(
    ("settings_", "match"),
    [
        ([("quality.threshold", "high")], r"with --set, \[quality\] threshold: a number is"),
        ([("quality.treshold", 1)], "did you mean|Did you mean 'threshold'"),
        ([("nowhere.key", 1)], r"'nowhere' is unknown here"),
        ([("deliverables.7.name", "x")], "'deliverables.7.name' is no place"),
        ([("deliverables.-1.name", "x")], "is no place"),
        ([("deliverables.x.name", "x")], "is no place"),
        ([("quality.threshold.deep", 1)], "is no place"),
        ([("", 1)], "is no place"),
        ([("a..b", 1)], "is no place"),
        ([("quality", 1)], "a table is expected, found 1"),
        ([("quality.tolerance", 0.1)], "go together"),
    ],
)
def test_settings_in_bad_places(
    tmp_path: Path, source: Path, settings_: list[tuple[str, Any]], match: str
) -> None:
    error = fails(tmp_path, WrongUse, match, corpus=[str(source)], settings=settings_)
    assert "line" not in str(error)  # of a file that nobody has


def test_settings_that_need_each_other(tmp_path: Path, source: Path) -> None:
    changes = [
        parse_setting("quality.tolerance=0.1"),
        parse_setting("quality.tolerance_variant=batch-1"),
        parse_setting("deliverables.0.name = letters"),
        parse_setting('variants."batch-4".threads=1'),
        parse_setting("reproduction.seeds=[1, 2]"),
        parse_setting("decision.question=Which one = best?"),
    ]
    campaign = create(tmp_path / "new", Inputs(TEMPLATE, [str(source)], "demo", settings=changes))
    protocol = campaign.draft()[1]
    assert protocol.quality.tolerance == 0.1 and protocol.reproduction.seeds == (1, 2)
    assert protocol.variants["batch-4"] == {"batch_size": 4, "threads": 1}
    assert protocol.decision.question == "Which one = best?"
    assert campaign.corpus_file("letters").is_file()


def _inline(value: Any) -> str:
    if isinstance(value, dict):
        pairs = ", ".join(f"{json.dumps(k)} = {_inline(v)}" for k, v in value.items())
        return f"{{ {pairs} }}"
    if isinstance(value, list):
        return "[\n" + "".join(f"  {_inline(item)},\n" for item in value) + "]"
    return json.dumps(value)


def _dotted(value: dict[str, Any], before: str = "") -> str:
    lines = ""
    for key, item in value.items():
        if isinstance(item, dict):
            lines += _dotted(item, f"{before}{key}.")
        else:
            lines += f"{before}{key} = {_inline(item)}\n"
    return lines


@pytest.mark.parametrize("style", ["inline", "dotted", "plain"])
def test_any_style_of_toml_can_be_changed(tmp_path: Path, source: Path, style: str) -> None:
    tables = tomllib.loads(template())
    text = {
        "inline": "".join(f"{key} = {_inline(value)}\n" for key, value in tables.items()),
        "dotted": _dotted(tables),
        "plain": tomlkit.dumps(tables),
    }[style]
    assert tomllib.loads(text) == tables
    (tmp_path / "mine.toml").write_text(text, "utf-8")
    tuning = write_jsonl(tmp_path / "tuning.jsonl", TUNING)
    answers = write_jsonl(
        tmp_path / "a.jsonl", [{"id": r["id"], "answer": r["label"]} for r in rows()]
    )
    changes = [
        RIGHT,
        ("variants.batch-4.grouping", "none"),
        ("deliverables.0.description", "Letters of a year."),
        ("window.tasks.2.hours", 3),
        ("corpus.source_distribution", {"praise": 0.5, "defect": 0.5}),
    ]
    hashes = []
    for name in (TEMPLATE, str(tmp_path / "mine.toml")):
        campaign = create(
            tmp_path / f"c{len(hashes)}",
            Inputs(
                name,
                [str(source)],
                "demo",
                [str(tuning)],
                [str(answers)],
                settings=changes,
            ),
        )
        hashes.append(seal(campaign)[0].sha256)
        child = create(tmp_path / f"child{len(hashes)}", Inputs(None, parent=campaign.folder))
        assert child.draft()[1].parent is not None
    assert hashes[0] == hashes[1]


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=30), st.text(max_size=20))
def test_no_setting_is_too_strange(key: str, value: str) -> None:
    document = Document(Source('a = 1\n[b]\nc = "x"\n[[d]]\ne = 2\n', "x.toml"))
    try:
        document.put(*parse_setting(f"{key}={value}"))
    except WrongUse as error:
        assert "\n" not in str(error)
    assert tomllib.loads(document.text()) == document.values


_KEYS = st.sampled_from(
    ["a", "b", "b.c", "b.new.deep", "d.0.e", "d.0.f", "f.g.h", "f.g.new", "f.i", "top.x", '"q r".s']
)
_NEW = st.sampled_from([1, "x", True, [1, 2], {"k": 1}, {"k": {"l": "m"}}, [{"k": 1}], {}, []])
_STYLES = st.sampled_from(
    [
        'a = 1\n[b]\nc = "x"\n[[d]]\ne = 2\n[f.g]\nh = 1\n[f]\ni = 2\n',
        'a = 1\nb.c = "x"\nd = [{ e = 2 }]\nf.g.h = 1\nf.i = 2\nb.z = 3\n',
        'a = 1\nb = { c = "x" }\nd = [\n { e = 2 },\n]\n[f.g]\nh = 1 # why\n[b2]\n[f.z]\ny = 1\n',
    ]
)


@settings(max_examples=300, deadline=None)
@given(_STYLES, st.lists(st.tuples(_KEYS, _NEW), max_size=4))
def test_a_change_says_what_it_should_in_any_style(
    text: str, changes: list[tuple[str, Any]]
) -> None:
    document = Document(Source(text, "x.toml"))
    for dotted, value in changes:
        with suppress(WrongUse):
            document.put(dotted, copy.deepcopy(value))
            path, node = split_key(dotted), document.values
            for part in path:
                node = node[int(part)] if isinstance(node, list) else node[part]
            assert node == value
    assert tomllib.loads(document.text()) == document.values


@pytest.mark.parametrize("text", ["", "=", "=1", "key", " =1"])
def test_what_is_no_setting(text: str) -> None:
    with pytest.raises(WrongUse, match="is no setting"):
        parse_setting(text)


# -- several deliverables ----------------------------------------------------------------------


@pytest.fixture
def two(tmp_path: Path) -> Path:
    path = tmp_path / "two.toml"
    path.write_text(template().replace('[[deliverables]]\nname = "corpus"\n', TWO), "utf-8")
    return path


def test_several_deliverables(tmp_path: Path, two: Path, source: Path) -> None:
    mails = write_jsonl(tmp_path / "mails=1.jsonl", rows()[:5])
    campaign = create(
        tmp_path / "new",
        Inputs(
            str(two),
            [f"mails={mails}", f"letters={source}"],
            "demo",
            settings=[RIGHT],
        ),
    )
    manifest, _ = seal(campaign)
    assert list(manifest.json["corpora"]) == ["letters", "mails"]
    assert manifest.corpus("mails")["entries"] == 5
    assert manifest.corpus("letters")["sha256"] != manifest.corpus("mails")["sha256"]
    # one deliverable in several files
    parts = [write_jsonl(tmp_path / f"p{i}.jsonl", rows()[i::2]) for i in range(2)]
    corpus = [f"mails={part}" for part in parts]
    several = create(tmp_path / "more", Inputs(str(two), [*corpus, f"letters={source}"], "demo"))
    assert survey(several).corpora["mails"].entries == len(rows())


def test_deliverables_are_named(tmp_path: Path, two: Path, source: Path) -> None:
    named = {"protocol": str(two)}
    fails(tmp_path, WrongUse, "NAME=FILE.*letters, mails", corpus=[str(source)], **named)
    fails(tmp_path, WrongUse, "'mails' has no corpus", corpus=[f"letters={source}"], **named)
    fails(tmp_path, WrongUse, "for which", corpus=[f"post={source}"], **named)
    fails(tmp_path, WrongUse, "among: corpus", corpus=[f"post={source}"])
    fails(tmp_path, InputError, "no file name", corpus=["corpus="])
    both = [f"letters={source}", f"mails={source}"]
    fails(tmp_path, WrongUse, "--reference", corpus=both, reference=[str(source)], **named)


def test_a_file_name_with_an_equals_sign(tmp_path: Path) -> None:
    source = write_jsonl(tmp_path / "a=b.jsonl", rows())
    campaign = create(tmp_path / "new", Inputs(TEMPLATE, [str(source)], "demo"))
    assert survey(campaign).corpora["corpus"].entries == len(rows())


# -- references --------------------------------------------------------------------------------


def test_answers_from_a_file(tmp_path: Path) -> None:
    answers = [{"key": row["id"], "truth": row["label"]} for row in reversed(rows())]
    pl.DataFrame(answers).write_csv(tmp_path / "answers.csv")
    bare = [{"key": row["id"], "text": row["text"]} for row in rows()]
    campaign = made(
        tmp_path / "new",
        bare,
        settings=[("corpus.label_column", "kind"), ("reference.column", "gone")],
        reference=[str(tmp_path / "answers.csv")],
        id_column="key",
        answer_column="truth",
    )
    assert campaign.draft()[1].reference.column is None
    text = campaign.protocol_file.read_text("utf-8")
    campaign.protocol_file.write_text(text.replace('label_column = "kind"', ""), "utf-8")
    manifest, _ = seal(campaign)
    straight = made(tmp_path / "other")
    assert seal(straight)[0].corpus("corpus")["reference"] == manifest.corpus("corpus")["reference"]
    sealed = [json.loads(line)["id"] for line in campaign.reference_file("corpus").open()]
    assert sealed == [row["id"] for row in rows()]


def test_answers_where_a_variant_is_the_reference(tmp_path: Path, source: Path) -> None:
    fails(
        tmp_path,
        WrongUse,
        "reference is a variant",
        protocol="embedding-batch",
        corpus=[str(source)],
        reference=[str(source)],
    )


def test_a_named_procedure(tmp_path: Path) -> None:
    answers = write_jsonl(
        tmp_path / "a.jsonl", [{"id": r["id"], "answer": r["label"]} for r in rows()]
    )
    campaign = made(
        tmp_path / "new",
        settings=[
            ("reference", {
                "kind": "procedure",
                "procedure": "two readers",
                "description": "Two people labelled each text; a third one settled the rest.",
            }),
        ],
        reference=[str(answers)],
    )  # fmt: skip
    sealed = seal(campaign)[0].json["protocol"]["reference"]
    assert sealed["procedure"] == "two readers"


# -- --link ------------------------------------------------------------------------------------


def test_a_linked_corpus_stays_where_it_is(tmp_path: Path, source: Path) -> None:
    linked = create(
        tmp_path / "linked", Inputs(TEMPLATE, [str(source)], "demo", link=True, settings=[RIGHT])
    )
    path = linked.corpus_file("corpus")
    assert path.is_symlink() and path.resolve() == source.resolve()
    copied = create(tmp_path / "copied", Inputs(TEMPLATE, [str(source)], "demo", settings=[RIGHT]))
    manifest, _ = seal(linked)
    assert manifest.sha256 == seal(copied)[0].sha256
    child = create(tmp_path / "child", Inputs(None, parent=linked.folder))
    assert child.corpus_file("corpus").resolve() == source.resolve()


@pytest.mark.parametrize("kind", ["csv", "gz", "two", "numbers", "columns"])
def test_what_can_not_be_linked(tmp_path: Path, source: Path, kind: str) -> None:
    import gzip

    files, extra = [source], {}
    if kind == "csv":
        files = [tmp_path / "s.csv"]
        pl.DataFrame(rows()).write_csv(files[0])
    elif kind == "gz":
        files = [tmp_path / "s.jsonl.gz"]
        files[0].write_bytes(gzip.compress(source.read_bytes()))
    elif kind == "two":
        files.append(write_jsonl(tmp_path / "b.jsonl", [{"id": "b", "text": "x"}]))
    elif kind == "numbers":
        files = [write_jsonl(tmp_path / "n.jsonl", [{"id": 1, "text": "x"}])]
    else:
        files = [write_jsonl(tmp_path / "c.jsonl", [{"key": "b", "text": "x"}])]
        extra = {"id_column": "key"}
    fails(
        tmp_path, WrongUse, "--link takes one", corpus=[str(f) for f in files], link=True, **extra
    )


# -- children ----------------------------------------------------------------------------------


@pytest.fixture
def parent(tmp_path: Path) -> Campaign:
    tuning = write_jsonl(tmp_path / "tuning.jsonl", TUNING)
    answers = write_jsonl(
        tmp_path / "answers.jsonl", [{"id": r["id"], "answer": r["label"]} for r in rows()]
    )
    model = tmp_path / "my model"
    shutil.copytree(Path(generate.__file__).parent / "model", model)
    campaign = made(
        tmp_path / "parent", tuning=[str(tuning)], reference=[str(answers)], model=str(model)
    )
    seal(campaign)
    return campaign


def test_a_child_takes_over_what_was_sealed(tmp_path: Path, parent: Campaign) -> None:
    child = create(
        tmp_path / "child",
        Inputs(None, parent=parent.folder, settings=[("parent.reason", "another threshold")]),
    )
    protocol = child.draft()[1]
    assert protocol.parent is not None
    assert protocol.parent.manifest == parent.manifest.sha256
    assert protocol.parent.head == parent.events()[-1].hash
    assert protocol.parent.reason == "another threshold"
    manifest, _ = seal(child)
    for key in ("corpora", "tuning", "model"):
        assert manifest.json[key] == parent.manifest.json[key]
    assert manifest.sha256 != parent.manifest.sha256
    grand = create(tmp_path / "grand", Inputs(None, parent=child.folder))
    grand_parent = grand.draft()[1].parent
    assert grand_parent is not None and grand_parent.reason is None
    assert grand_parent.manifest == manifest.sha256


def test_a_child_of_an_edited_protocol(tmp_path: Path, parent: Campaign) -> None:
    edited(parent, "threshold = 0.85", "threshold = 0.8")
    child = create(tmp_path / "child", Inputs(None, parent=parent.folder))
    assert child.draft()[1].quality.threshold == 0.8


def test_a_child_where_the_protocol_file_is_gone(tmp_path: Path, parent: Campaign) -> None:
    before = parent.draft()[1]
    parent.protocol_file.unlink()
    child = create(tmp_path / "child", Inputs(None, parent=parent.folder))
    after = child.draft()[1]
    assert after.quality == before.quality and after.window == before.window
    assert seal(child)[0].json["model"] == parent.manifest.json["model"]


def test_a_child_with_another_model_and_corpus(tmp_path: Path, parent: Campaign) -> None:
    other = write_jsonl(tmp_path / "other.jsonl", rows()[:6])
    child = create(
        tmp_path / "child",
        Inputs(None, parent=parent.folder, model="demo", corpus=[str(other)]),
    )
    found = survey(child)
    assert found.corpora["corpus"].entries == 6
    assert child.draft()[1].model.name == "demo"  # not the parent's model's name any more
    assert "8 ids not in the corpus" in found.blocking[0].what


def test_a_child_whose_parents_model_moved(tmp_path: Path, parent: Campaign) -> None:
    (tmp_path / "my model").rename(tmp_path / "elsewhere")
    error = fails(tmp_path, EnvironmentLacks, "not where it was", protocol=None, model=None,
                  parent=parent.folder)  # fmt: skip
    assert "--model FOLDER" in str(error)
    child = create(
        tmp_path / "child",
        Inputs(None, parent=parent.folder, model=str(tmp_path / "elsewhere")),
    )
    assert seal(child)[0].json["model"] == parent.manifest.json["model"]


@pytest.mark.parametrize("what", ["corpus", "reference", "model", "manifest"])
def test_a_parent_that_is_not_what_was_sealed(tmp_path: Path, parent: Campaign, what: str) -> None:
    path = {
        "corpus": parent.corpus_file("corpus"),
        "reference": parent.reference_file("corpus"),
        "model": tmp_path / "my model" / "config.json",
        "manifest": parent.manifest_file,
    }[what]
    data = path.read_bytes()
    path.write_bytes(data.replace(b"defect", b"defekt"))
    assert path.read_bytes() != data
    error = fails(tmp_path, Differs, what, protocol=None, model=None, parent=parent.folder)
    assert "Restore it" in str(error)
