"""The fingerprint follows (id, text) in order and nothing else (R8)."""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpucost_tui.corpus.answers import read_answers
from gpucost_tui.corpus.fingerprint import Fingerprint, answers_fingerprint, fingerprint
from gpucost_tui.corpus.read import Entry, read_entries
from gpucost_tui.corpus.store import read_sealed, write_sealed

CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
IDS = st.text(CHARACTERS, min_size=1, max_size=12)
TEXTS = st.text(CHARACTERS, min_size=1, max_size=40).filter(lambda text: not text.isspace())
CORPORA = st.lists(st.tuples(IDS, TEXTS), min_size=1, max_size=8, unique_by=lambda pair: pair[0])
Pairs = list[tuple[str, str]]


def of(pairs: Pairs) -> str:
    found = Fingerprint()
    for name, text in pairs:
        found.update(name, text)
    return found.hexdigest()


def jsonl(pairs: Pairs, *, ascii_: bool) -> bytes:
    lines = [json.dumps({"text": t, "id": i, "n": 1}, ensure_ascii=ascii_) for i, t in pairs]
    return "\n".join(lines).encode()


def table(path: Path, pairs: Pairs) -> Path:
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, quoting=csv.QUOTE_ALL, lineterminator="\r\n")
        writer.writerows([("note", "id", "text"), *((f"n{i}", *p) for i, p in enumerate(pairs))])
    return path


def test_the_bytes_that_are_hashed() -> None:
    expected = hashlib.sha256(
        bytes(7) + b"\x02" + "é".encode() + bytes(7) + b"\x03abc" + bytes(7) + b"\x01b" + bytes(8)
    )
    assert of([("é", "abc"), ("b", "")]) == expected.hexdigest()


@settings(max_examples=60, deadline=None)
@given(pairs=CORPORA, cut=st.integers(0, 8))
def test_it_is_the_same_in_every_format(
    tmp_path_factory: pytest.TempPathFactory, pairs: Pairs, cut: int
) -> None:
    folder = tmp_path_factory.getbasetemp()
    plain, packed = folder / "a.jsonl", folder / "a.jsonl.gz"
    plain.write_bytes(jsonl(pairs, ascii_=False))
    packed.write_bytes(gzip.compress(jsonl(pairs, ascii_=True)))
    parquet, sealed = folder / "a.parquet", folder / "sealed.jsonl"
    schema = {"id": pl.String, "text": pl.String}
    pl.DataFrame(pairs, schema=schema, orient="row").write_parquet(parquet)
    table(folder / "a.csv", pairs)
    (folder / "b.csv.gz").write_bytes(gzip.compress((folder / "a.csv").read_bytes()))
    first, second = folder / "part-1.jsonl", folder / "part-2.csv"
    first.write_bytes(jsonl(pairs[:cut], ascii_=False) + b"\n")
    table(second, pairs[cut:])
    expected = of(pairs)
    for given_ in ([plain], [packed], [parquet], [folder / "a.csv"], [folder / "b.csv.gz"]):
        assert fingerprint(read_entries(given_)) == expected, given_
    assert fingerprint(read_entries([first, second])) == expected
    assert fingerprint(read_entries([str(folder / "part-*")])) == expected
    assert write_sealed(read_entries([plain]), sealed).sha256 == expected
    assert fingerprint(read_sealed(sealed)) == fingerprint(read_entries([sealed])) == expected


@settings(max_examples=200)
@given(one=CORPORA, other=CORPORA)
def test_another_corpus_has_another_fingerprint(one: Pairs, other: Pairs) -> None:
    assert (of(one) == of(other)) == (one == other)
    if len(one) > 1:
        assert of(one) != of(one[::-1])
    joined = [(one[0][0] + one[0][1][:1], one[0][1][1:])]
    assert of(joined) != of(one[:1])


def test_no_normalization() -> None:
    assert of([("é", "x")]) != of([("e\u0301", "x")])
    assert of([("a", "x ")]) != of([("a", "x")])


def test_answers_have_one_too(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"id":"a","answer":"x"}\n{"id":"b","answer":"y"}\n')
    (tmp_path / "a.csv").write_text("answer,id\nx,a\ny,b\n")
    labels = [answers_fingerprint(read_answers([tmp_path / f"a.{e}"])) for e in ("jsonl", "csv")]
    assert labels == [of([("a", "x"), ("b", "y")])] * 2
    (tmp_path / "v.jsonl").write_text('{"id":"a","answer":[1, 0.50]}')
    pl.DataFrame({"id": ["a"], "answer": [[1.0, 0.5]]}).write_parquet(tmp_path / "v.parquet")
    vectors = [
        answers_fingerprint(read_answers([tmp_path / f"v.{e}"])) for e in ("jsonl", "parquet")
    ]
    assert vectors == [of([("a", "[1.0,0.5]")])] * 2


def test_entries_need_no_file() -> None:
    assert fingerprint([Entry("a", "x", {}, "", None)]) == of([("a", "x")])
