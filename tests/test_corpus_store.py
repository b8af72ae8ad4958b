"""The sealed corpus: canonical bytes, nothing half-written, types from all values."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpucost_tui.corpus.read import Entry, read_entries
from gpucost_tui.corpus.store import CorpusFacts, column, read_sealed, sealed_frame, write_sealed
from gpucost_tui.errors import EnvironmentLacks, InputError
from gpucost_tui.files import sha256_file


def entry(name: str, text: str = "x", **other: object) -> Entry:
    return Entry(name, text, other, "", None)  # type: ignore[arg-type]


def test_one_canonical_object_a_line_with_facts(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    facts = write_sealed([entry("é", "a\n", z=1.0, b=None), entry("2", "y", m=[1])], path)
    assert path.read_bytes() == (
        '{"b":null,"id":"é","text":"a\\n","z":1.0}\n{"id":"2","m":[1],"text":"y"}\n'.encode()
    )
    assert facts == CorpusFacts(2, facts.sha256, path.stat().st_size, ("b", "m", "z"))
    assert json.loads(json.dumps(facts.to_json())) == {
        "entries": 2,
        "sha256": facts.sha256,
        "bytes": path.stat().st_size,
        "columns": ["b", "m", "z"],
    }


def test_sealing_again_gives_the_same_bytes(tmp_path: Path) -> None:
    one, two = tmp_path / "1.jsonl", tmp_path / "2.jsonl"
    first = write_sealed([entry("a", "x\u2028", n=1, o={"z": 1, "a": 2.50})], one)
    assert write_sealed(read_entries([one]), two) == first
    assert sha256_file(one) == sha256_file(two)
    assert list(read_sealed(one)) == [
        Entry("a", "x\u2028", {"n": 1, "o": {"z": 1, "a": 2.5}}, str(one), 1)
    ]


def test_a_mistake_leaves_nothing_and_harms_nothing(tmp_path: Path) -> None:
    source, path = tmp_path / "in.jsonl", tmp_path / "out" / "c.jsonl"
    path.parent.mkdir()
    path.write_text("before")
    for content in (
        '{"id":"a","text":"x"}\n{"id":"a","text":"y"}\n',
        '{"id":"a","text":"x"}\n{',
        "",
    ):
        source.write_text(content)
        with pytest.raises(InputError):
            write_sealed(read_entries([source]), path)
        assert [p.name for p in path.parent.iterdir()] == ["c.jsonl"]
        assert path.read_text() == "before"
    with pytest.raises(InputError, match="no entries"):
        write_sealed([], path)
    with pytest.raises(EnvironmentLacks, match="can't be written \\(No such file"):
        write_sealed([entry("a")], tmp_path / "none" / "c.jsonl")


def test_a_full_disk_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / ".c").symlink_to("/dev/full")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "with_name", lambda self, name: tmp_path / ".c")
        with pytest.raises(EnvironmentLacks, match="No space left on device"):
            write_sealed([entry("a")], tmp_path / "c.jsonl")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "line",
    ["{", "[]", "3", "", '{"id":"a"}', '{"id":1,"text":"x"}', '{"id":"a","text":null}', "[" * 9999],
)
def test_a_damaged_sealed_line_is_located(tmp_path: Path, line: str) -> None:
    path = tmp_path / "c.jsonl"
    path.write_text('{"id":"a","text":"x"}\n' + line + "\n")
    with pytest.raises(InputError, match="line 2: the line is no sealed entry"):
        list(read_sealed(path))


def test_a_missing_or_empty_sealed_corpus(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    with pytest.raises(InputError, match="the sealed corpus is not there"):
        list(read_sealed(path))
    path.write_text("")
    with pytest.raises(InputError, match="the sealed corpus is empty"):
        sealed_frame(path)


def test_types_come_from_all_values_never_from_the_first_hundred(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    entries = [entry(f"{i:03d}", n=i, late_float=1, mixed=i) for i in range(250)]
    entries += [entry("1.0", n=2, late_float=1.5, mixed="007", late="x", flag=True)]
    write_sealed(entries, path)
    frame = sealed_frame(path)
    assert frame.schema == {
        "id": pl.String,
        "text": pl.String,
        "flag": pl.Boolean,
        "late": pl.String,
        "late_float": pl.Float64,
        "mixed": pl.String,
        "n": pl.Int64,
    }
    assert frame.height == 251
    assert frame.row(250) == ("1.0", "x", True, "x", 1.5, "007", 2)
    assert frame.row(7) == ("007", "x", None, None, 1.0, "7", 7)


def test_more_entries_than_a_chunk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpucost_tui.corpus.store._CHUNK", 3)
    path = tmp_path / "c.jsonl"
    entries = [
        entry(str(i), **({"odd": i} if i % 2 else {}), **({"l": "x"} if i > 7 else {}))
        for i in range(10)
    ]
    write_sealed(entries, path)
    frame = sealed_frame(path, ["l", "odd", "id"])
    assert frame.columns == ["l", "odd", "id"]
    assert frame["id"].to_list() == [str(i) for i in range(10)]
    assert frame["odd"].to_list() == [i if i % 2 else None for i in range(10)]
    assert frame["l"].to_list() == [None] * 8 + ["x"] * 2
    with pytest.raises(InputError, match="there is no column 'label'"):
        sealed_frame(path, ["label"])


@pytest.mark.parametrize(
    ("values", "dtype", "expected"),
    [
        ([True, None], pl.Boolean, [True, None]),
        ([1, None, 1 << 62], pl.Int64, [1, None, 1 << 62]),
        ([1, 1 << 63], pl.String, ["1", "9223372036854775808"]),
        ([1, 0.5], pl.Float64, [1.0, 0.5]),
        ([(1 << 53) + 1, 0.5], pl.String, ["9007199254740993", "0.5"]),
        ([True, 1], pl.String, ["true", "1"]),
        ([None, None], pl.String, [None, None]),
        (["a", 1.0, [1, {"b": None}]], pl.String, ["a", "1.0", '[1,{"b":null}]']),
    ],
)
def test_the_type_of_a_column(values: list, dtype: pl.DataType, expected: list) -> None:
    series = column("c", values)
    assert series.dtype == dtype
    assert series.to_list() == expected


SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
)
OTHERS = st.dictionaries(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=4).filter(
        lambda name: name not in ("id", "text")
    ),
    st.recursive(
        SCALARS | st.text(st.characters(exclude_categories=["Cs"])), st.lists, max_leaves=4
    ),
    max_size=4,
)


@settings(max_examples=60, deadline=None)
@given(others=st.lists(OTHERS, min_size=1, max_size=6))
def test_other_columns_come_back_as_they_were(
    tmp_path_factory: pytest.TempPathFactory, others: list[dict]
) -> None:
    path = tmp_path_factory.getbasetemp() / "others.jsonl"
    facts = write_sealed([entry(str(i), **other) for i, other in enumerate(others)], path)
    assert [e.other for e in read_sealed(path)] == others
    assert [e.other for e in read_entries([path])] == others
    frame = sealed_frame(path)
    assert frame.columns == ["id", "text", *facts.columns]
    for name in facts.columns:
        nulls = [other.get(name) is None for other in others]
        assert frame[name].is_null().to_list() == nulls
