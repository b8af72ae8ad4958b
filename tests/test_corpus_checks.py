"""Classes beside their source (R12), overlap with tuning data (R6), answers (R27)."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpucost_tui.corpus.answers import answers_for, answers_frame, read_answers
from gpucost_tui.corpus.classes import class_distribution, deviations
from gpucost_tui.corpus.overlap import overlap
from gpucost_tui.corpus.read import Entry, TuningRow, read_entries, read_tuning
from gpucost_tui.errors import InputError, Refused


def labelled(**counts: int) -> pl.DataFrame:
    labels = [label for label, number in counts.items() for _ in range(number)]
    return pl.DataFrame({"id": [f"d{i}" for i in range(len(labels))], "label": labels})


def test_classes_of_the_corpus_and_of_each_stratum() -> None:
    frame = labelled(a=3, b=2).with_columns(
        pl.Series("stratum", ["short", "long", "short", "long", "long"])
    )
    found = class_distribution(frame, "label")
    assert found.overall == {"a": 3, "b": 2}
    assert found.strata == {"short": {"a": 2}, "long": {"a": 1, "b": 2}}
    assert class_distribution(labelled(a=1), "label").strata == {}


def test_classes_that_are_no_text_are_counted_by_their_spelling() -> None:
    for values, spelled in (
        ([1, 0, 1], {"0": 1, "1": 2}),
        ([True, False], {"false": 1, "true": 1}),
    ):
        assert class_distribution(pl.DataFrame({"c": values}), "c").overall == spelled


def test_entries_without_a_class_are_named() -> None:
    frame = pl.DataFrame({"id": ["a", "b", "c"], "label": ["x", None, ""]})
    with pytest.raises(InputError, match=r"2 entries have no class in column 'label' \(ids b, c\)"):
        class_distribution(frame, "label")
    with pytest.raises(InputError, match=r"no label column 'kind' \(columns here: id, label\)"):
        class_distribution(frame, "kind")


def test_the_limit_is_compared_exactly() -> None:
    # 0.35 - 0.3 is 0.04999..., 0.4 - 0.35 is 0.05000...4 in binary: both are 0.05, within.
    found = class_distribution(labelled(a=35, b=40, c=25), "label")
    assert deviations(found, {"a": 0.3, "b": 0.35, "c": 0.35}, 0.1) == []
    named = deviations(found, {"a": 0.3, "b": 0.35, "c": 0.35}, 0.05)
    assert [(d.label, d.reason) for d in named] == [("c", "share")]
    assert str(named[0]) == "class 'c' is 25.0% of the corpus, 35.0% of the source"


def test_a_class_that_one_side_lacks_is_named_however_small() -> None:
    found = class_distribution(labelled(a=98, tpyo=2), "label")
    named = deviations(found, {"a": 0.97, "rare": 0.03}, 0.05)
    assert [(d.label, d.reason, d.entries) for d in named] == [
        ("rare", "absent", 0),
        ("tpyo", "undeclared", 2),
    ]
    assert str(named[0]) == "class 'rare' is in the source (3.0%) and not in the corpus"
    assert str(named[1]) == "class 'tpyo' is in the corpus (2.0%) and not in the source"


def test_strata_are_compared_too() -> None:
    frame = labelled(a=5, b=5).with_columns(pl.Series("stratum", ["s"] * 5 + ["l"] * 5))
    found = class_distribution(frame, "label")
    named = deviations(found, {"a": 0.5, "b": 0.5}, 0.1)
    assert [(d.stratum, d.label, d.share, d.reason) for d in named] == [
        ("s", "a", 1.0, "share"),
        ("s", "b", 0.0, "absent"),
        ("l", "a", 0.0, "absent"),
        ("l", "b", 1.0, "share"),
    ]
    assert deviations(found, {}, 0.1) == []


@given(st.dictionaries(st.sampled_from("abcd"), st.integers(1, 50), min_size=1), st.floats(0, 1))
def test_nothing_beyond_the_limit_is_left_out(counts: dict[str, int], limit: float) -> None:
    total = sum(counts.values())
    source = {"a": 0.25, "b": 0.25, "c": 0.5}
    named = {
        d.label for d in deviations(class_distribution(labelled(**counts), "label"), source, limit)
    }
    for label in {*counts, *source}:
        distance = abs(counts.get(label, 0) / total - source.get(label, 0))
        if distance > limit + 1e-9 or (label in counts) != (label in source):
            assert label in named
        elif distance < limit - 1e-9:
            assert label not in named


def entry(name: str, text: str) -> Entry:
    return Entry(name, text, {}, "", None)


def test_overlap_by_id_and_by_exact_text(tmp_path: Path) -> None:
    path = tmp_path / "tuning.jsonl"
    path.write_text('{"id":"a","text":"x"}\n{"text":"two"}\n{"id":"t3","text":"Three"}\n')
    corpus = [entry("a", "one"), entry("b", "two"), entry("c", "three"), entry("d", "x")]
    found = overlap(corpus, read_tuning([path]))
    assert (found.ids, found.texts) == (1, 2)
    assert found.id_examples == ("a",)
    assert found.text_examples == (("b", f"{path}, line 2"), ("d", "a"))
    with pytest.raises(Refused) as caught:
        found.refuse(where="corpus 'main'")
    assert str(caught.value).startswith(
        f"corpus 'main': the corpus shares 1 id (such as 'a') and 2 texts (such as 'b' = '{path}, "
        "line 2', 'd' = 'a') with the tuning data (R6). Take"
    )


def test_apart_is_apart() -> None:
    found = overlap([entry("a", "x"), entry("1", "é")], [TuningRow("01", "e\u0301", "t, line 1")])
    assert not found
    found.refuse()


def test_five_examples_and_all_counts() -> None:
    corpus = [entry(f"c{i}", f"t{i % 3}") for i in range(20)]
    tuning = [TuningRow(f"c{i}", f"t{i}", "") for i in range(20)] * 2
    found = overlap(corpus, tuning)
    assert (found.ids, found.texts) == (20, 20)
    assert found.id_examples == ("c0", "c1", "c2", "c3", "c4")
    assert found.text_examples[4] == ("c4", "c1")


TEXTS = st.lists(st.sampled_from(["a", "b", "c", "A", "a ", "é", "e\u0301"]), max_size=6)


@given(corpus=TEXTS, tuning=TEXTS)
def test_overlap_is_what_comparing_one_by_one_gives(corpus: list[str], tuning: list[str]) -> None:
    found = overlap(
        [entry(text, text) for text in corpus], [TuningRow(text, text, "") for text in tuning]
    )
    assert found.ids == found.texts == sum(text in tuning for text in corpus)


def answers(folder: Path, *rows: dict, name: str = "a.jsonl") -> list:
    path = folder / name
    path.write_text("\n".join(json.dumps(row) for row in rows))
    return list(read_answers([path]))


def test_labels_from_every_format(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,answer\na,x\nb,3\nc,true\n")
    pl.DataFrame({"id": ["a"], "answer": [3]}).write_parquet(tmp_path / "a.parquet")
    rows = [{"id": "a", "answer": "x"}, {"id": "b", "answer": 3}, {"id": "c", "answer": True}]
    assert answers(tmp_path, *rows) == list(read_answers([tmp_path / "a.csv"]))
    assert list(read_answers([tmp_path / "a.parquet"])) == [("a", "3")]
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text('{"id":"a","text":"t","label":"x"}')
    assert list(read_answers([corpus], answer_column="label")) == [("a", "x")]


def test_vectors_from_json_and_parquet(tmp_path: Path) -> None:
    frame = pl.DataFrame({"id": ["a", "b"], "answer": [[1.0, 0.5], [0.0, 1.0]]})
    wide = frame.with_columns(pl.col("answer").cast(pl.Array(pl.Float32, 2)))
    for number, table in enumerate((frame, wide)):
        path = tmp_path / f"{number}.parquet"
        table.write_parquet(path)
        assert list(read_answers([path])) == [("a", [1.0, 0.5]), ("b", [0.0, 1.0])]
    assert answers(tmp_path, {"id": "a", "answer": [1, 0.5]}) == [("a", [1.0, 0.5])]


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ({"id": "b"}, "line 2, id 'b': there is no answer: no column 'answer'"),
        ({"id": "b", "answer": None}, "line 2, id 'b': the answer is missing or empty"),
        ({"id": "b", "answer": ""}, "line 2, id 'b': the answer is missing or empty"),
        ({"id": "b", "answer": []}, "line 2, id 'b': the answer is missing or empty"),
        ({"id": "b", "answer": 1.5}, "line 2, id 'b': the answer is neither a label nor a vector"),
        ({"id": "b", "answer": {"x": 1}}, "line 2, id 'b': the answer is neither"),
        ({"id": "b", "answer": [1, "x"]}, "line 2, id 'b': the vector has a component that is no"),
        ({"id": "b", "answer": [True]}, "line 2, id 'b': the vector has a component that is no"),
        (
            {"id": "b", "answer": [10**400]},
            "line 2, id 'b': a component of the vector is too large",
        ),
        ({"id": "b", "answer": "x"}, "line 2, id 'b': the answer is a label, after a vector of 2"),
        (
            {"id": "b", "answer": [1]},
            "line 2, id 'b': the answer is a vector of 1 components, after",
        ),
        ({"answer": [1, 2]}, "line 2: there is no id"),
        ({"id": "a", "answer": [1, 2]}, "an id stands more than once: 'a' ("),
    ],
)
def test_mistakes_in_answers_are_located(tmp_path: Path, row: dict, sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        answers(tmp_path, {"id": "a", "answer": [1, 2]}, row)
    assert sentence in str(caught.value)


def test_no_answers_at_all(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there are no entries"):
        answers(tmp_path)


def test_answers_come_in_the_order_of_the_corpus(tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    path.write_text("id,text\n2,x\n1,y\n01,z\n")
    ids = [e.id for e in read_entries([path])]
    for given_ in (ids, pl.Series(ids)):
        frame = answers_for(given_, [("01", "c"), ("2", "a"), ("1", "b")])
        assert frame.schema == {"id": pl.String, "answer": pl.String}
        assert frame.rows() == [("2", "a"), ("1", "b"), ("01", "c")]
    vectors = answers_for(["a"], [("a", [1.0, 2.0])])
    assert vectors.schema["answer"] == pl.List(pl.Float64)


def test_answers_that_do_not_fit_the_corpus_are_named() -> None:
    with pytest.raises(InputError) as caught:
        answers_for(["a", "b"], [("a", "x"), ("a", "x"), ("c", "y")], where="answers.csv")
    assert str(caught.value) == (
        "answers.csv: the answers don't fit the corpus: 1 id repeated (a); 1 id missing (b); "
        "1 id not in the corpus (c). "
        "Give every entry of the corpus exactly one answer, and no others (R27)."
    )
    with pytest.raises(InputError, match="1 id missing"):
        answers_for(["a"], [])


def test_more_answers_than_a_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpucost_tui.corpus.answers._CHUNK", 4)
    rows = [(f"d{i}", [float(i), 0.5]) for i in range(11)]
    assert answers_frame(iter(rows)).rows() == rows
