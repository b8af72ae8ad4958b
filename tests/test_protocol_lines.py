"""Where a key stands in a TOML file: nested tables, arrays, dotted keys, strings, line ends."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from campaign_parts import refused, template
from hypothesis import example, given
from hypothesis import strategies as st

from gpucost_tui.errors import InputError
from gpucost_tui.protocol.lines import Lines, split_key
from gpucost_tui.protocol.load import load, template_names

_DOCUMENT = '''\
top = 1
"quoted # = [key]" = "x"   # a comment with [brackets] = and """
dotted.inner."last one" = 2

[table] # ]
text = """
[not.a.table]
no_key = 1
"""
literal = \'\'\'one line\'\'\'
after = "\u2028\u0085 no line ends \\" here"

[[items]]
name = "a"
list = [
  "x",  # [[items]]
  ["y"],
  { deep = 1, deeper.still = 2 },
]

[items.sub]
key = 3

[[items]]
name = "b"
fence = [\'\'\'
"""\'\'\', """
\'\'\'""", "c"]

[[items.nested]]
[[items.nested]]
end = 1979-05-27T07:32:00.5-07:00
'''

_PLACES: list[tuple[tuple[str | int, ...], int]] = [
    (("top",), 1),
    (("quoted # = [key]",), 2),
    (("dotted", "inner", "last one"), 3),
    (("dotted",), 3),
    (("table",), 5),
    (("table", "text"), 6),
    (("table", "literal"), 10),
    (("table", "after"), 11),
    (("items",), 13),
    (("items", 0), 13),
    (("items", 0, "list", 0), 16),
    (("items", 0, "list", 1, 0), 17),
    (("items", 0, "list", 2, "deeper", "still"), 18),
    (("items", 0, "sub", "key"), 22),
    (("items", 1), 24),
    (("items", 1, "name"), 25),
    (("items", 1, "fence", 1), 27),
    (("items", 1, "fence", 2), 28),
    (("items", 1, "nested", 0), 30),
    (("items", 1, "nested", 1), 31),
    (("items", 1, "nested", 1, "end"), 32),
]


@pytest.mark.parametrize(("path", "line"), _PLACES)
def test_the_line_of_a_path(path: tuple[str | int, ...], line: int) -> None:
    assert Lines(_DOCUMENT).line_of(path) == line


def test_what_stands_in_strings_is_no_key() -> None:
    lines = Lines(_DOCUMENT)
    assert set(tomllib.loads(_DOCUMENT)["table"]) == {"text", "literal", "after"}
    assert lines.is_table(("items", 0, "sub")) and not lines.is_table(("not", "a", "table"))
    assert lines.line_of(("not",)) is None and lines.line_of(("no_key",)) is None


def test_what_is_missing_is_located_by_the_table_around_it() -> None:
    lines = Lines(_DOCUMENT)
    assert lines.line_of(("items", 1, "absent")) == 24
    assert lines.line_of(("nowhere", "key")) is None


_WORDS = st.sampled_from(["a", "b-c", "d_1", "x y", "é", "#", "[k]", "=", ""])
_VALUES = st.sampled_from(
    ["1", '"#"', "'['", '"""\n[t]\nk = 1\n"""', "'''\n\n'''", "[\n1,\n[2],\n]", "{ k = [1] }"]
)


@given(st.lists(st.tuples(st.booleans(), _WORDS, _VALUES), max_size=8, unique_by=lambda x: x[1]))
def test_lines_agree_with_where_they_were_written(items: list[tuple[bool, str, str]]) -> None:
    text, places = "", {}
    for is_table, name, value in items:
        quoted = f'"{name}"'
        places[name] = text.count("\n") + 1
        text += f"[{quoted}]\nkey = {value}\n" if is_table else f"[[{quoted}]]\nkey = {value}\n"
    tomllib.loads(text)
    lines = Lines(text)
    for (is_table, name, _), line in zip(items, places.values(), strict=True):
        assert lines.line_of((name,)) == line
        path = (name, "key") if is_table else (name, 0, "key")
        assert lines.line_of(path) == line + 1


@given(st.text(alphabet="ab[]{}=.,\"'#\n \\", max_size=60))
@example("a=[}]")
@example("a=[{}}]")
@example("a=[[1]2]")
@example("a={b=1 c}")
def test_no_text_is_too_strange(text: str) -> None:
    Lines(text).line_of(("a", 0, "b"))


def _keys() -> list[tuple[str, int, str]]:
    found = []
    for name in template_names():
        table = ""
        for number, line in enumerate(template(name).split("\n")):
            if line.startswith("["):
                table = line.strip("[] ")
            key, equals, _ = line.partition(" = ")
            # What a variant or a task may be given is for the rules and the task to say.
            if equals and not key.startswith("#") and not table.startswith(("variants", "task")):
                found.append((name, number, key))
    assert len(found) > 100
    return found


@pytest.mark.parametrize(("name", "number", "key"), _keys())
def test_a_wrong_type_is_located_on_its_line(name: str, number: int, key: str) -> None:
    lines = template(name).split("\n")
    lines[number] = f"{key} = 1979-05-27 # a date is expected nowhere"
    problems = refused("\n".join(lines))
    assert any(p.where.startswith(f"p.toml, line {number + 1}, ") for p in problems), problems
    assert all("1979-05-27" in p.what for p in problems if f"line {number + 1}," in p.where)


@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf"], ids=["plain", "bom"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"], ids=["lf", "crlf"])
def test_line_ends_and_byte_order_marks(tmp_path: Path, start: bytes, end: bytes) -> None:
    text = template().replace("batch_size = 1\nmax_length", 'batch_size = "1"\nmax_length')
    path = tmp_path / "mine.toml"
    path.write_bytes(start + text.encode().replace(b"\n", end))
    line = text[: text.index('batch_size = "1"')].count("\n") + 1
    with pytest.raises(InputError) as refusal:
        load(path)
    assert refusal.value.where == f"mine.toml, line {line}, [execution] batch_size"
    path.write_bytes(start + template().encode().replace(b"\n", end))
    assert load(path).name == "classification-batch"


def test_keys_are_split_as_toml_does() -> None:
    assert split_key("deliverables.0.name") == ["deliverables", "0", "name"]
    assert split_key('variants."a.b" . x') == ["variants", "a.b", "x"]
    for wrong in ("", ".", "a..b", "a b", "a = 1\nb", "a]", '"', "a.", "# a"):
        with pytest.raises(ValueError):
            split_key(wrong)
