"""Reading a corpus: every format, ids as text, and mistakes that are located (R7)."""

from __future__ import annotations

import csv
import datetime
import gzip
import json
import os
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpucost_tui.corpus import sources
from gpucost_tui.corpus.read import Entry, read_entries, read_tuning
from gpucost_tui.errors import GpucostError, InputError

A = '{"id":"a","text":"one"}\n'
B = '{"id":"b","text":"two"}\n'


def put(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def pairs(*files: Path | str, **columns: str) -> list[tuple[str, str]]:
    return [(entry.id, entry.text) for entry in read_entries(list(files), **columns)]


def refused(*files: Path | str, **columns: str) -> str:
    with pytest.raises(InputError) as caught:
        pairs(*files, **columns)
    assert caught.value.exit_status == 2
    return str(caught.value)


def test_an_entry_keeps_its_other_columns_as_written(tmp_path: Path) -> None:
    line = '{"n":1,"id":"a","f":1.5,"t":true,"z":null,"text":" one ","l":[1,"x"],"o":{"k":2}}'
    path = put(tmp_path, "a.jsonl", "\n" + line + "\r\n")
    other = {"n": 1, "f": 1.5, "t": True, "z": None, "l": [1, "x"], "o": {"k": 2}}
    assert list(read_entries([path])) == [Entry("a", " one ", other, str(path), 2)]


def test_csv_gives_text_alone_and_the_line_where_an_entry_begins(tmp_path: Path) -> None:
    path = put(
        tmp_path, "a.csv", 'id,text,n\r\n007,"first, ""quoted""\r\nsecond",1\r\n\r\n7,x,1.50\r\n'
    )
    first, second = read_entries([path])
    assert first == Entry("007", 'first, "quoted"\r\nsecond', {"n": "1"}, str(path), 2)
    assert second == Entry("7", "x", {"n": "1.50"}, str(path), 5)


def test_parquet_gives_rows_and_plain_values(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pl.DataFrame(
        {
            "id": [7, 8],
            "text": pl.Series(["x", "y"], dtype=pl.Categorical),
            "day": [datetime.date(2026, 9, 24), None],
            "price": [Decimal("1.50"), None],
            "v": [[0.5, 1.0], None],
            "n": pl.Series([None, None], dtype=pl.Null),
        }
    ).write_parquet(path)
    first, second = read_entries([path])
    other = {"day": "2026-09-24", "price": "1.50", "v": [0.5, 1.0], "n": None}
    assert first == Entry("7", "x", other, str(path), 1)
    assert (second.id, second.line) == ("8", 2)
    assert set(second.other.values()) == {None}


def test_a_parquet_file_larger_than_a_slice_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    ids = [f"d{i}" for i in range(40_000)]
    pl.DataFrame({"id": ids, "text": ids}).write_parquet(path, row_group_size=7_000)
    entries = list(read_entries([path]))
    assert [entry.id for entry in entries] == ids
    assert entries[-1].line == 40_000


@pytest.mark.parametrize(
    "spelled", ["007", "7", "1e3", "1.0", "é", "e\u0301", " a ", "A", "a", "٧"]
)
def test_ids_are_text_and_never_normalized(tmp_path: Path, spelled: str) -> None:
    quoted = json.dumps(spelled)
    jsonl = put(tmp_path, "a.jsonl", f'{{"id":{quoted},"text":"x"}}')
    table = put(tmp_path, "a.csv", f'id,text\n"{spelled}",x\n')
    assert pairs(jsonl) == pairs(table) == [(spelled, "x")]


def test_a_whole_number_is_taken_as_its_decimal_text(tmp_path: Path) -> None:
    path = put(
        tmp_path, "a.jsonl", '{"id":7,"text":"x"}\n{"id":-12345678901234567890,"text":"y"}\n'
    )
    assert pairs(path) == [("7", "x"), ("-12345678901234567890", "y")]


def test_files_and_globs_are_one_corpus_in_the_given_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, "part-2.jsonl", A)
    put(tmp_path, "part-1.jsonl.gz", gzip.compress(B.encode()))
    put(tmp_path, "z.CSV.GZ", gzip.compress(b"id,text\nc,three\n"))
    pl.DataFrame({"id": ["d"], "text": ["four"]}).write_parquet(tmp_path / "d.parquet")
    (tmp_path / "part-folder").mkdir()
    monkeypatch.chdir(tmp_path)
    given_ = ["z.CSV.GZ", "part-*", Path("d.parquet")]
    assert pairs(*given_) == [("c", "three"), ("b", "two"), ("a", "one"), ("d", "four")]
    assert [e.file for e in read_entries(given_)][1] == "part-1.jsonl.gz"


def test_a_name_that_exists_is_no_glob(tmp_path: Path) -> None:
    path = put(tmp_path, "a[1].jsonl", A)
    put(tmp_path, "a1.jsonl", B)
    assert pairs(path) == [("a", "one")]
    table = tmp_path / "x*.parquet"
    pl.DataFrame({"id": ["p"], "text": ["t"]}).write_parquet(table)
    pl.DataFrame({"id": ["q"], "text": ["t"]}).write_parquet(tmp_path / "xy.parquet")
    assert pairs(table) == [("p", "t")]


def test_a_byte_order_mark_and_both_line_ends_are_accepted(tmp_path: Path) -> None:
    jsonl = put(tmp_path, "a.jsonl", b"\xef\xbb\xbf" + A.encode() + b"\r\n \t\r\n" + B.encode())
    table = put(tmp_path, "a.csv", b'\xef\xbb\xbf"id",text\r\na,one\r\nb,two')
    assert pairs(jsonl) == pairs(table) == [("a", "one"), ("b", "two")]
    assert pairs(jsonl, put(tmp_path, "only-mark.jsonl", b"\xef\xbb\xbf"))[0] == ("a", "one")


def test_line_separators_within_a_text_end_no_line(tmp_path: Path) -> None:
    text = "a\u2028b\u2029c\x85d\x0be\x0cf"
    path = put(tmp_path, "a.jsonl", json.dumps({"id": "a", "text": text}, ensure_ascii=False))
    table = put(tmp_path, "a.csv", f"id,text\na,{text}\n")
    assert pairs(path) == pairs(table) == [("a", text)]


def test_long_documents_in_csv_are_read(tmp_path: Path) -> None:
    text = "word " * 100_000
    assert pairs(put(tmp_path, "a.csv", f"id,text\na,{text}\n")) == [("a", text)]


def test_other_names_for_the_columns(tmp_path: Path) -> None:
    path = put(tmp_path, "a.csv", "key,body,n\na,one,1\n")
    assert pairs(path, id_column="key", text_column="body") == [("a", "one")]
    both = put(tmp_path, "b.csv", "key,body,text\na,one,1\n")
    assert "there is a column 'text' too" in refused(both, id_column="key", text_column="body")


BAD_JSONL = {
    "no id": ('{"text":"x"}', "line 2: there is no id: no column 'id' (columns here: text)"),
    "null id": ('{"id":null,"text":"x"}', "line 2: the id is missing (null)"),
    "empty id": ('{"id":"","text":"x"}', "line 2: the id is empty"),
    "float id": ('{"id":7.0,"text":"x"}', "line 2: the id is a number (7.0), not text"),
    "bool id": ('{"id":true,"text":"x"}', "line 2: the id is true or false"),
    "list id": ('{"id":["a"],"text":"x"}', "line 2: the id is a list"),
    "NUL in id": ('{"id":"\\u0000","text":"x"}', "line 2, id '\\x00': the id has a NUL character"),
    "no text": ('{"id":"x"}', "line 2, id 'x': there is no text: no column 'text'"),
    "null text": ('{"id":"x","text":null}', "line 2, id 'x': the text is missing (null)"),
    "empty text": ('{"id":"x","text":""}', "line 2, id 'x': the text is empty"),
    "blank text": ('{"id":"x","text":" \\n "}', "line 2, id 'x': the text is empty"),
    "number text": ('{"id":"x","text":5}', "line 2, id 'x': the text is a number (5), not text"),
    "NUL in text": ('{"id":"x","text":"a\\u0000b"}', "line 2, id 'x': the text has a NUL"),
    "cut short": (
        '{"id":"x","te',
        "line 2: not valid JSON: Unterminated string starting at column 11",
    ),
    "two objects": ('{"id":"x","text":"y"}{}', "line 2: not valid JSON: Extra data at column 22"),
    "array": ('["x","y"]', "line 2: a JSON array stands where an object belongs"),
    "number": ("7", "line 2: a JSON number stands where an object belongs"),
    "null": ("null", "line 2: a JSON null stands where an object belongs"),
    "key twice": ('{"id":"x","id":"y","text":"z"}', "line 2: key 'id' stands twice"),
    "NaN": ('{"id":"x","text":"y","n":NaN}', "line 2: NaN is no JSON number"),
    "infinite": ('{"id":"x","text":"y","n":[1e999]}', "line 2: a number is not finite"),
    "digits": ('{"id":"x","text":"y","n":' + "9" * 5000 + "}", "line 2: a number has too many"),
    "deep": (
        '{"id":"x","text":"y","n":' + "[" * 9999 + "]" * 9999 + "}",
        "line 2: the JSON is nes",
    ),
    "rather deep": ('{"id":"x","text":"y","n":' + "[" * 80 + "]" * 80 + "}", "line 2: the JSON is"),
    "surrogate": ('{"id":"x","text":"\\ud83d"}', "line 2: the line has half of a surrogate pair"),
    "surrogate key": ('{"id":"x","text":"y","\\uDE00":1}', "line 2: the line has half of a surr"),
    "raw control": ('{"id":"x","text":"a\x01b"}', "line 2: not valid JSON: Invalid control"),
    "latin-1": (b'{"id":"x","text":"caf\xe9"}', "line 2: byte 0xe9 at offset 45 of the file"),
    "encoded surrogate": (b'{"id":"\xed\xa0\x80","text":"y"}', "line 2: byte 0xed at offset 31"),
}


@pytest.mark.parametrize("case", BAD_JSONL)
def test_mistakes_in_jsonl_are_located(tmp_path: Path, case: str) -> None:
    line, sentence = BAD_JSONL[case]
    raw = line.encode() if isinstance(line, str) else line
    path = put(tmp_path, "bad.jsonl", A.encode() + raw + b"\n" + B.encode())
    assert refused(path).startswith(f"{path}, {sentence}")
    packed = put(tmp_path, "bad.jsonl.gz", gzip.compress(path.read_bytes()))
    assert refused(packed).startswith(f"{packed}, {sentence}")


def test_a_surrogate_pair_written_as_escapes_is_a_character(tmp_path: Path) -> None:
    assert pairs(put(tmp_path, "a.jsonl", '{"id":"x","text":"\\ud83d\\ude00"}')) == [("x", "😀")]


BAD_CSV = {
    "empty file": ("", ": the file is empty"),
    "fields": ("id,text\na,b,c\n", ", line 2: the row has 3 fields, the header 2"),
    "too few": ("id,text\na,b\n\nc\n", ", line 4: the row has 1 field, the"),
    "no column": ("key,text\na,b\n", ", line 2: there is no id: no column 'id' (columns here: key"),
    "twice": ("id,text,text\na,b,c\n", ", line 1: column 'text' stands twice in the header"),
    "semicolons": ("id;text\na;b\n", ", line 1: the header is one column"),
    "open quote": ('id,text\na,b\nc,"d\ne\n', ", line 3: a quoted field that begins here is never"),
    "after quote": ('id,text\na,"b"c\n', ", line 2: not valid CSV: ',' expected after '\"'"),
    "lone CR": ("id,text\ra,b\r", ", line 1: a carriage return stands outside quotes"),
    "empty id": ("id,text\n,b\n", ", line 2: the id is empty"),
    "empty text": ("id,text\na,\n", ", line 2, id 'a': the text is empty"),
    "NUL": ("id,text\na,b\0\n", ", line 2, id 'a': the text has a NUL character"),
    "latin-1": (b"id,text\na,caf\xe9\n", ", line 2: byte 0xe9 at offset 13 of the file"),
    "header only": ("id,text\n", ": there are no entries"),
}


@pytest.mark.parametrize("case", BAD_CSV)
def test_mistakes_in_csv_are_located(tmp_path: Path, case: str) -> None:
    content, sentence = BAD_CSV[case]
    path = put(tmp_path, "bad.csv", content)
    assert refused(path).startswith(f"{path}{sentence}")


BAD_PARQUET = {
    "null id": ({"id": ["a", None], "text": ["x", "y"]}, ", row 2: the id is missing (null)"),
    "float id": ({"id": [1.0], "text": ["x"]}, ", row 1: the id is a number (1.0), not text"),
    "null text": ({"id": ["a"], "text": [None]}, ", row 1, id 'a': the text is missing (null)"),
    "NaN": ({"id": ["a"], "text": ["x"], "n": [float("nan")]}, ", row 1: a number is not finite"),
    "NaN inside": (
        {"id": ["a"], "text": ["x"], "n": [[float("nan")]]},
        ", row 1: a number is not finite",
    ),
    "bytes": (
        {"id": ["a"], "text": ["x"], "picture": [b"\x00"]},
        ": column 'picture' holds Binary, which a corpus can't carry",
    ),
    "duration": (
        {"id": ["a"], "text": ["x"], "d": [[datetime.timedelta(1)]]},
        ": column 'd' holds List(Duration",
    ),
    "no rows": ({"id": [], "text": []}, ": there are no entries"),
}


@pytest.mark.parametrize("case", BAD_PARQUET)
def test_mistakes_in_parquet_are_located(tmp_path: Path, case: str) -> None:
    data, sentence = BAD_PARQUET[case]
    path = tmp_path / "bad.parquet"
    pl.DataFrame(data).write_parquet(path)
    assert refused(path).startswith(f"{path}{sentence}")


def test_files_that_are_no_corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    put(tmp_path, "a.jsonl", A)
    put(tmp_path, "a.txt", A)
    put(tmp_path, "plain", A)
    put(tmp_path, "a.parquet.gz", A)
    put(tmp_path, "gz.jsonl", gzip.compress(A.encode()))
    put(tmp_path, "wide.csv", "id,text".encode("utf-16"))
    put(tmp_path, "not.parquet", "PAR1")
    put(tmp_path, "empty.jsonl", "")
    os.mkfifo("pipe.jsonl")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link.jsonl").symlink_to("a.jsonl")
    cases = {
        "folder": "folder: this is a folder, not a file",
        "none.jsonl": "none.jsonl: there is no such file",
        "none-*.jsonl": "none-*.jsonl: no file matches this pattern",
        "folder*": "folder*: no file matches",
        "pipe.jsonl": "pipe.jsonl: this is no regular file",
        "a.txt": "a.txt: files with this ending (.txt) are not read. Give .jsonl, .csv or .parquet",
        "plain": "plain: files with this ending (none)",
        "a.parquet.gz": "a.parquet.gz: files with this ending (.parquet.gz)",
        "gz.jsonl": "gz.jsonl, line 1: byte 0x8b at offset 1 of the file is not UTF-8. The fil",
        "wide.csv": "wide.csv, line 1: byte 0xff at offset 0 of the file is not UTF-8. The fil",
        "not.parquet": "not.parquet: the file can't be read (parquet",
        "empty.jsonl": "empty.jsonl: there are no entries",
        "": "'' is no file name",
        "a\0b.jsonl": "'a\\x00b.jsonl' is no file name",
        "x" * 5000 + ".jsonl": "x" * 5000 + ".jsonl: the file can't be read (File name too long)",
    }
    for name, sentence in cases.items():
        assert refused(name).startswith(sentence), name
    os.link("a.jsonl", "\udcff.jsonl")
    os.link("a.jsonl", "\udcff.parquet")
    assert pairs("\udcff.jsonl") == [("a", "one")]
    assert refused("\udcff.parquet").startswith("\\udcff.parquet: the file's name is not UTF-8")
    assert "named twice" in refused("a.jsonl", "link.jsonl")
    assert refused() == f"no corpus file was named. {sources._FORMS}."


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv"])
def test_a_file_that_the_system_refuses_to_read(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.symlink_to("/proc/self/mem")  # refused to everybody, root too
    assert refused(path).startswith(f"{path}: the file can't be read (")


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-12],
        lambda data: data + b"tail",
        lambda data: data[:30] + bytes(20) + data[50:],
        lambda data: b"no gzip at all",
    ],
)
def test_damaged_gzip_data_are_named(tmp_path: Path, damage) -> None:
    lines = "".join(f'{{"id":"{i}","text":"text {i * 7919}"}}\n' for i in range(500))
    path = put(tmp_path, "a.jsonl.gz", damage(gzip.compress(lines.encode())))
    assert "the gzip data are damaged after line" in refused(path)


def test_a_line_without_end_is_no_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "MAX_LINE_BYTES", 1000)
    path = put(tmp_path, "bomb.jsonl.gz", gzip.compress(A.encode() + b"x" * 1_000_000))
    assert refused(path).startswith(f"{path}, line 2: the line is longer than 1,000 bytes")


def test_an_unclosed_quote_stops_before_the_memory_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpucost_tui.corpus.rows.MAX_LINE_BYTES", 1000)
    before = csv.field_size_limit()
    try:
        path = put(tmp_path, "a.csv", 'id,text\na,b\nb,"' + "open\n" * 1000)
        assert refused(path).startswith(f"{path}, line 3: a field is longer than 1,000 characters")
    finally:
        csv.field_size_limit(before)


def test_repeated_ids_are_named_with_both_places(tmp_path: Path) -> None:
    one = put(tmp_path, "1.jsonl", A + B + A)
    two = put(tmp_path, "2.csv", "id,text\n7,x\nb,y\na,z\n")
    three = put(tmp_path, "3.jsonl", '{"id":7,"text":"x"}\n')
    assert refused(one, two, three) == (
        f"3 ids stand more than once: 'a' ({one}, line 1 and {one}, line 3); "
        f"'b' ({one}, line 2 and {two}, line 3); '7' ({two}, line 2 and {three}, line 1). "
        "Give every entry an id of its own (R7)."
    )


def test_of_many_repeated_ids_five_are_named(tmp_path: Path) -> None:
    lines = [json.dumps({"id": f"d{i}", "text": "x"}) for i in range(100)]
    path = put(tmp_path, "a.jsonl", "\n".join(lines + lines))
    sentence = refused(path)
    assert sentence.startswith("100 ids stand more than once: 'd0' (")
    assert "'d4'" in sentence and "'d5'" not in sentence and "and 95 more" in sentence
    assert f"'d4' ({path}, line 5 and {path}, line 105)" in sentence


def test_hashes_that_collide_are_no_repeated_ids(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpucost_tui.corpus.unique.hash", lambda name: 1, raising=False)
    path = put(tmp_path, "a.jsonl", A + B)
    assert pairs(path) == [("a", "one"), ("b", "two")]


def test_ids_in_sentences_cannot_steer_a_terminal(tmp_path: Path) -> None:
    path = put(tmp_path, "a.jsonl", '{"id":"\\u001b[2J\\u202e","text":""}')
    assert "id '\\x1b[2J\\u202e'" in refused(path)


def test_tuning_rows_need_a_text_and_no_id(tmp_path: Path) -> None:
    path = put(tmp_path, "t.jsonl", '{"text":"x"}\n{"id":3,"text":"x"}\n{"id":"3","text":"y"}\n')
    rows = list(read_tuning([path]))
    assert [(row.id, row.name) for row in rows] == [
        (None, f"{path}, line 1"),
        ("3", "3"),
        ("3", "3"),
    ]
    assert [row.text for row in read_tuning([put(tmp_path, "t.csv", "text\nx\ny\n")])] == ["x", "y"]
    for content, sentence in (
        ('{"id":"a"}', "line 1, id 'a': there is no text"),
        ('{"id":1.5,"text":"x"}', "line 1: the id is a number"),
        ("", "there are no entries"),
    ):
        with pytest.raises(InputError, match=sentence):
            list(read_tuning([put(tmp_path, "bad.jsonl", content)]))


HOSTILE = st.one_of(
    st.binary(max_size=60),
    st.text(alphabet='{}[]":,\\u\n\r\0idtextabc01.e-+dD8\ufeff ', max_size=60).map(str.encode),
    st.lists(
        st.sampled_from(
            [A.encode(), B.encode(), b"\n", b"\x00", b"\xff", b'"', b"id,text\n", b"a,b\n"]
        )
    ).map(b"".join),
)


@pytest.mark.parametrize("name", ["f.jsonl", "f.csv", "f.jsonl.gz", "f.csv.gz", "f.parquet"])
@settings(max_examples=60, deadline=None)
@given(content=HOSTILE, packed=st.booleans())
def test_any_bytes_end_in_entries_or_in_one_sentence(
    tmp_path_factory: pytest.TempPathFactory, name: str, content: bytes, packed: bool
) -> None:
    path = tmp_path_factory.getbasetemp() / name
    path.write_bytes(gzip.compress(content) if packed and name.endswith(".gz") else content)
    try:
        entries = list(read_entries([path]))
    except GpucostError as error:
        assert str(path) in str(error) and error.fix
    else:
        assert entries and all(entry.id and entry.text for entry in entries)
        assert len({entry.id for entry in entries}) == len(entries)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_damaged_parquet_ends_in_entries_or_in_one_sentence(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.getbasetemp() / "damaged.parquet"
    ids = [f"d{i}" for i in range(50)]
    pl.DataFrame({"id": ids, "text": ids}).write_parquet(path)
    content = bytearray(path.read_bytes())
    for position in data.draw(st.lists(st.integers(0, len(content) - 1), min_size=1, max_size=4)):
        content[position] = data.draw(st.integers(0, 255))
    path.write_bytes(content[: data.draw(st.integers(0, len(content)))])
    try:
        assert all(entry.id for entry in read_entries([path]))
    except GpucostError as error:
        assert str(path) in str(error)
