"""From TOML to a protocol: every mistake is located and said in the words of TOML."""

from __future__ import annotations

import os
from decimal import Decimal
from pathlib import Path

import pytest
from campaign_parts import line_of, only, refused, template
from hypothesis import given, settings
from hypothesis import strategies as st

from gpucost_tui.campaign.window import check_tasks
from gpucost_tui.errors import InputError
from gpucost_tui.protocol.load import Source, find, load, parse, read_source, template_names
from gpucost_tui.protocol.problem import ProtocolError
from gpucost_tui.protocol.rules import problems


def changed(before: str, after: str) -> str:
    text = template()
    assert text.count(before) == 1, before
    return text.replace(before, after)


_MISTAKES = [
    # unknown keys, in a table, an item, at the top; with the nearest known one
    ("rounds = 5", "round = 5", "[measurement] round", "'round' is unknown", "mean 'rounds'"),
    ("min_entries = 50", "min_entry = 5", "[quality.subgroups.0] min_entry", "unknown", "entries"),
    ("format = 1", "format = 1\ncolour = 'red'", "colour", "'colour' is unknown here", "name"),
    ("passes = 1", "passes = 1\nzzz = 1", "[warmup] zzz", "unknown", "inputs, passes"),
    # wrong types
    ("rounds = 5", 'rounds = "5"', "[measurement] rounds", "a whole number is", "found '5'"),
    ("rounds = 5", "rounds = 5.0", "[measurement] rounds", "a whole number", "found 5.0"),
    ("rounds = 5", "rounds = true", "[measurement] rounds", "a whole number", "found true"),
    ('metric = "accuracy"', "metric = 3", "[quality] metric", "text in quotes", "found 3"),
    ("seeds = [0]", "seeds = 0", "[reproduction] seeds", "a list in [ ]", "found 0"),
    ("threshold = 0.85", "threshold = 'high'", "[quality] threshold", "a number is", "'high'"),
    ("threshold = 0.85", "threshold = nan", "[quality] threshold", "finite", "found nan"),
    # impossible values
    ("rounds = 5", "rounds = 0", "[measurement] rounds", "at least 1", "found 0"),
    ("rounds = 5", "rounds = 99999", "[measurement] rounds", "at most 1,000", "found 99999"),
    ("rounds = 5", "rounds = 11", "[measurement]", "max_rounds (10) is below rounds (11)", ""),
    ("max_length = 128", "max_length = 0", "[execution] max_length", "at least 1", "found 0"),
    ("max_length = 128", f"max_length = 0x{'f' * 5000}", "[execution] max_length", "", "digits"),
    ('padding = "longest"', 'padding = "left"', "[execution] padding", "'longest' or", "'left'"),
    ('device = "auto"', 'device = "gpu"', "[execution] device", "cuda or cuda:N", "'gpu'"),
    ("deadline_hours = 168.0", "deadline_hours = 0", "[decision]", "more than 0", ""),
    ("deadline_hours = 168.0", "deadline_hours = 1e300", "[decision]", "at most 87,600", ""),
    ('# budget_usd = "500.00"', "budget_usd = 500.5", "[decision] budget_usd", "in quotes", ""),
    ('# budget_usd = "500.00"', 'budget_usd = "5.001"', "[decision] budget_usd", "decimals", ""),
    ('# budget_usd = "500.00"', 'budget_usd = "-5"', "[decision] budget_usd", "US dollars", ""),
    ('# budget_usd = "500.00"', f'budget_usd = "{"9" * 60}"', "[decision] budget_usd", "US", ""),
    ('# budget_usd = "500.00"', "budget_usd = -5", "[decision] budget_usd", "from 0 up", ""),
    ("seeds = [0]", "seeds = [0, 0]", "[reproduction]", "a seed is named twice", ""),
    ("seeds = [0]", "seeds = []", "[reproduction] seeds", "it is empty", ""),
    ("seeds = [0]", "seeds = [1, -1]", "[reproduction] seeds.1", "at least 0", "found -1"),
    ("[variants.batch-8]", '[variants."a/b"]', "variants", "a name of letters", "'a/b'"),
    ('name = "corpus"', 'name = "../up"', "[deliverables.0] name", "a name of letters", ""),
    ("format = 1", "format = 2", "format", "at most 1 is", "found 2"),
    ("format = 1", "format = true", "format", "a whole number", "found true"),
    ("format = 1", "format = 1.0", "format", "a whole number", "found 1.0"),
    ('[reference]\n', "[reference]\ndescription = ' '\n", "[reference] desc", "not blank", ""),
    # what belongs together
    ("threshold = 0.85", "threshold = 0.85\ntolerance = 0.01", "[quality]", "go together", ""),
    ('kind = "answers"', 'kind = "variant"', "[reference]", "'variant' is named", ""),
    ('kind = "answers"', 'kind = "procedure"', "[reference]", "named and described", ""),
    ('"business-quality"', '"bounded-difference"', "[reproduction]", "max_difference", ""),
    ("max_tokens = 96", "max_tokens = 16", "[corpus]", "rising max_tokens", ""),
    ('name = "long"', 'name = "long"\nmax_tokens = 200', "[corpus]", "last stratum", ""),
    ('name = "medium"', 'name = "short"', "[corpus]", "two strata have one name", ""),
    ("# source_distribution = { billing = 0.2, delivery = 0.8 }",
     "source_distribution = { a = 0.2, b = 0.2 }", "[corpus]", "add up to 0.4, not 1", ""),
    ("# source_distribution = { billing = 0.2, delivery = 0.8 }",
     "source_distribution = { a = -0.2, b = 1.2 }", "source_distribution] a", "at least 0", ""),
    ('factor = "batch_size"', 'factor = "batch"', "[series.0]", "factor 'batch' is none of", ""),
    ('"batch-4", "batch-8"]', '"batch-4", "batch-4"]', "[series.0]", "named twice", ""),
    ('kind = "answers" ', 'label_map = 3\nkind = "answers"', "[reference]", "a table is", ""),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after", "place", "what", "more"), _MISTAKES)
def test_mistakes_are_located(before: str, after: str, place: str, what: str, more: str) -> None:
    text = changed(before, after)
    problem = refused(text)[0]
    assert problem.where.startswith("p.toml, line "), problem
    assert place in problem.where
    assert what in problem.what
    assert more in problem.what + problem.fix
    said = problem.sentence()
    assert "\n" not in said and len(said) < 700 and said.endswith(".")


def test_a_missing_table_and_a_missing_key() -> None:
    text = template()
    gone = text[: text.index("[reproduction]")] + text[text.index("[model]") :]
    problem = only(refused(gone))
    assert (problem.where, problem.what) == ("p.toml", "'reproduction' is missing")
    problem = only(refused(changed('scenario = "offline-corpus"', "")))
    line = line_of(text, "[decision]")
    assert problem.where == f"p.toml, line {line}, [decision]"
    assert problem.what == "'scenario' is missing"


def test_every_problem_is_told_and_the_first_is_said() -> None:
    text = changed("rounds = 5", "rounds = 0").replace('metric = "accuracy"', "metric = 1")
    with pytest.raises(ProtocolError) as refusal:
        parse(Source(text, "p.toml"))
    assert len(refusal.value.problems) == 2
    assert "(and 1 more problem)" in str(refusal.value)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("format = 1\nname = ", "p.toml, line 2"),
        ("format = 1\nformat = 2", "p.toml, line 2"),
        ("[a]\n[a]", "p.toml, line 2"),
        ("a = 2021-99-99", "p.toml, line 1"),
        ("b = 1\na = '''", "p.toml, line 2"),
        (f"b = 1\n\na = {'9' * 5000}", "p.toml, line 3"),
        ("a = " + "[" * 5000, "p.toml"),
        ("a = " + "{a=" * 5000, "p.toml"),
        ("a\x00 = 1", "p.toml, line 1"),
    ],
)
def test_what_is_not_toml(text: str, place: str) -> None:
    problem = only(refused(text))
    assert problem.where.startswith(place)
    assert any(word in problem.what for word in ("TOML", "nested", "digits"))


def test_files_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    path.write_bytes(b"format = 1\nname = '\xff'\n")
    with pytest.raises(InputError, match=r"p.toml, line 2: byte 0xff is not UTF-8"):
        load(path)
    path.write_bytes(b"\xef\xbb\xbfname = '\xe9'\n")
    with pytest.raises(InputError, match=r"line 1: byte 0xe9"):
        load(path)
    path.write_bytes(b"#" * 1_000_001)
    with pytest.raises(InputError, match="larger than 1 MB"):
        load(path)
    with pytest.raises(InputError, match="can't be read"):
        load(tmp_path)
    path.write_bytes(b"")
    with pytest.raises(ProtocolError, match="'format' is missing"):
        load(path)


def test_names_of_templates_and_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert set(template_names()) >= {
        "classification-batch", "classification-precision", "embedding-batch"
    }  # fmt: skip
    (tmp_path / "classification-batch").mkdir()  # a folder of that name is no protocol
    assert find("classification-batch").is_file()
    mine = tmp_path / "mine.toml"
    mine.write_text(template(), "utf-8")
    assert find("mine.toml") == Path("mine.toml")
    for wrong in (
        "nothing",
        "",
        "..",
        "../protocols/x",
        "a\0b",
        "x" * 300,
        "classification-batch/",
    ):
        with pytest.raises(InputError) as refusal:
            find(wrong)
        assert refusal.value.exit_status == 2 and "\n" not in str(refusal.value)


def test_hostile_text_is_shown_and_not_obeyed() -> None:
    problem = refused(changed("rounds = 5", 'rounds = "\\u001b]0;x\\u0007"'))[0]
    assert "\x1b" not in problem.sentence() and "\\x1b" in problem.sentence()
    problem = refused(changed("rounds = 5", 'rounds = 5\n"\\u001b[2J" = 1'))[0]
    assert "\x1b" not in problem.sentence()


def test_amounts_are_exact() -> None:
    for text in ("500", "500.0", "500.00", '"500"'):
        written = text if text.startswith('"') or text == "500" else f'"{text}"'
        protocol = parse(Source(changed('# budget_usd = "500.00"', f"budget_usd = {written}"), "p"))
        assert protocol.decision.budget_usd == Decimal("500.00")
        assert protocol.model_dump(mode="json")["decision"]["budget_usd"] == "500.00"


# -- damage ------------------------------------------------------------------------------------

_BYTES = {name: template(name).encode() for name in template_names()}


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    data = bytearray(_BYTES[draw(st.sampled_from(sorted(_BYTES)))])
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, max(len(data) - 1, 0)))
        how = draw(st.sampled_from(["cut", "flip", "drop", "insert", "rename", "line", "value"]))
        line_start = data.rfind(b"\n", 0, at) + 1
        line_end = data.find(b"\n", at) if data.find(b"\n", at) >= 0 else len(data)
        if how == "cut":
            del data[at:]
        elif how == "flip" and data:
            data[at] ^= draw(st.integers(1, 255))
        elif how == "drop":
            del data[at : at + draw(st.integers(1, 200))]
        elif how == "insert":
            data[at:at] = draw(st.binary(max_size=8))
        elif how == "rename":
            data[line_start:line_start] = draw(st.sampled_from([b"x", b"x.", b'"', b"[", b"#"]))
        elif how == "line":
            data[at:at] = b"\n" + bytes(data[line_start:line_end]) + b"\n"
        else:
            equals = data.find(b"= ", line_start, line_end)
            if equals > 0:
                value = draw(st.sampled_from(_STRANGE))
                data[equals + 2 : line_end] = value
    return bytes(data)


_STRANGE = [
    b"-1", b"0", b"nan", b"inf", b"1e400", b"1979-05-27", b"07:32:00", b"[]", b"{}", b"''",
    b"[[[1]]]", b'"\\u0000"', b'"\\u202e"', b"0x" + b"f" * 5000, b"9" * 30, b"true", b"[1, 'a']",
    b"{ name = 'x' }", b"'''\n\n'''", b"'x' # \xe2\x80\xa8",
]  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(damaged())
def test_damage_ends_in_a_protocol_or_a_located_sentence(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / f"damaged-{os.getpid()}.toml"
    path.write_bytes(data)
    try:
        source = read_source(path)
        protocol = parse(source)
    except ProtocolError as error:
        found = error.problems
        assert found
    except InputError as error:
        assert error.where and error.where.startswith(path.name)
        return
    else:
        found = [*problems(protocol, source), *check_tasks(protocol, source)]
    for problem in found:
        said = problem.sentence()
        assert problem.where.startswith(path.name) and problem.fix
        assert "\n" not in said and said.isprintable(), said
