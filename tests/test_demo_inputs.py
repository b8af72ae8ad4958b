"""The demonstration's inputs: bytes, strata, classes, separation from tuning, the kept model."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from gpucost_tui.demo import (
    CATEGORIES,
    MAX_LENGTH,
    MODEL_FOLDER,
    STRATA,
    STRATA_ENTRIES,
    generate,
    wording,
)
from gpucost_tui.demo.generate import Draws, Entry, corpus, tuning, write_jsonl
from gpucost_tui.errors import EnvironmentLacks, WrongUse
from gpucost_tui.files import sha256_file


@pytest.fixture(scope="module")
def final() -> list[Entry]:
    return list(corpus())


@pytest.fixture(scope="module")
def tuned() -> list[Entry]:
    return list(tuning())


@pytest.fixture(scope="module")
def tokens(final: list[Entry]) -> dict[str, int]:
    """Tokens of each corpus entry by the kept tokenizer alone, special tokens included."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(MODEL_FOLDER / "tokenizer.json"))
    return {entry.id: len(tokenizer.encode(entry.text).ids) for entry in final}


def _stratum(count: int) -> str:
    return next(name for name, bound in STRATA.items() if bound is None or count <= bound)


# ---------------------------------------------------------------- bytes


def test_files_have_the_sealed_bytes(
    final: list[Entry], tuned: list[Entry], tmp_path: Path
) -> None:
    write_jsonl(tmp_path / "corpus.jsonl", final)
    write_jsonl(tmp_path / "tuning.jsonl", tuned)
    assert sha256_file(tmp_path / "corpus.jsonl") == generate.CORPUS_SHA256
    assert sha256_file(tmp_path / "tuning.jsonl") == generate.TUNING_SHA256
    assert sorted(path.name for path in tmp_path.iterdir()) == ["corpus.jsonl", "tuning.jsonl"]


def test_bytes_do_not_depend_on_hash_seed_or_locale(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from gpucost_tui.demo.generate import *\n"
        "write_jsonl(Path(sys.argv[1]), corpus())\n"
        "heavy = {'torch', 'transformers', 'tokenizers', 'polars', 'numpy', 'random'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    out = tmp_path / "c.jsonl"
    env = {**os.environ, "PYTHONHASHSEED": "77", "LC_ALL": "C", "TZ": "Asia/Kathmandu"}
    done = subprocess.run(
        [sys.executable, "-c", script, str(out)],
        env=env,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"
    assert sha256_file(out) == generate.CORPUS_SHA256


def test_no_global_random_state(final: list[Entry]) -> None:
    random.seed(1)
    before = random.getstate()
    assert list(corpus()) == final
    assert random.getstate() == before


def test_lines_are_canonical(final: list[Entry], tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    write_jsonl(path, final)
    data = path.read_bytes()
    assert data.endswith(b"}\n")
    assert not data.startswith(b"\xef\xbb\xbf")
    assert b"\r" not in data
    rows = [json.loads(line) for line in data.decode("utf-8").splitlines()]
    assert [set(row) for row in rows] == [{"id", "text", "label"}] * 1000
    assert [(r["id"], r["text"], r["label"]) for r in rows] == [
        (e.id, e.text, e.label) for e in final
    ]


def test_a_broken_source_leaves_the_old_file(final: list[Entry], tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    path.write_text("before")

    def broken() -> object:
        yield final[0]
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write_jsonl(path, broken())  # type: ignore[arg-type]
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_missing_folder_is_named(final: list[Entry], tmp_path: Path) -> None:
    with pytest.raises(EnvironmentLacks, match=r"absent/c\.jsonl: the file can't be written"):
        write_jsonl(tmp_path / "absent" / "c.jsonl", final)


def test_draws_are_fixed_and_complete() -> None:
    block = hashlib.sha256(b"name/0").digest() + hashlib.sha256(b"name/1").digest()
    draws = Draws("name")
    expected = [int.from_bytes(block[at : at + 4], "big") for at in range(0, 64, 4)]
    assert [draws.below(2**32) for _ in expected] == expected
    draws = Draws("other")
    assert {draws.between(2, 4) for _ in range(100)} == {2, 3, 4}
    assert sorted(draws.shuffled(range(50))) == list(range(50))
    assert Draws("a").shuffled(range(50)) != Draws("b").shuffled(range(50))


# ---------------------------------------------------------------- strata and classes (R12)


def test_strata_by_the_real_tokenizer(final: list[Entry], tokens: dict[str, int]) -> None:
    assert len(final) == 1000
    assert Counter(_stratum(count) for count in tokens.values()) == STRATA_ENTRIES
    assert STRATA_ENTRIES == {"short": 600, "medium": 300, "long": 100}
    assert [e.id for e in final if e.stratum != _stratum(tokens[e.id])] == []


def test_a_few_long_entries_are_truncated(tokens: dict[str, int]) -> None:
    assert 10 <= sum(count > MAX_LENGTH for count in tokens.values()) <= 30


def test_classes_are_balanced_overall_and_in_each_stratum(final: list[Entry]) -> None:
    groups = [final] + [[e for e in final if e.stratum == name] for name in STRATA]
    for group in groups:
        counts = Counter(e.label for e in group)
        assert set(counts) == set(CATEGORIES)
        assert max(counts.values()) - min(counts.values()) <= 1


@pytest.mark.parametrize("kind", ["stratum", "label"])
def test_order_is_mixed(final: list[Entry], kind: str) -> None:
    whole = Counter(getattr(e, kind) for e in final)
    for start in range(0, 1000, 250):
        part = Counter(getattr(e, kind) for e in final[start : start + 250])
        for value, count in whole.items():
            assert abs(part[value] / 250 - count / 1000) < 0.08
    runs = sum(a.label == b.label for a, b in itertools.pairwise(final))
    assert runs < 250  # about 1000 / 6 where the order is without meaning


def test_honest_text(final: list[Entry]) -> None:
    texts = [e.text for e in final]
    for marks in ("éüñøŁáöèç", "“”", "🙂😕🙏👍😅📦", "\n", "["):
        assert sum(any(mark in text for mark in marks) for text in texts) >= 5, marks
    assert not any("{" in t or "}" in t or "<" in t or ">" in t or "|" in t for t in texts)
    assert not any("  " in t or t != t.strip() for t in texts)


# ---------------------------------------------------------------- tuning data (R6)


def test_tuning_is_apart(final: list[Entry], tuned: list[Entry]) -> None:
    assert len(tuned) == 12_000
    every = final + tuned
    assert len({e.id for e in every}) == len(every)
    assert len({" ".join(e.text.casefold().split()) for e in every}) == len(every)
    assert final[0].id == "ticket-0001"
    assert tuned[0].id == "tuning-00001"


def test_held_out_families_are_absent_from_tuning(final: list[Entry], tuned: list[Entry]) -> None:
    assert {name for families in wording.CLEAR.values() for name in families} >= wording.HELD_OUT
    assert wording.HELD_OUT.isdisjoint(e.family for e in tuned)
    in_corpus = Counter(e.family for e in final)
    assert all(in_corpus[name] >= 5 for name in wording.HELD_OUT)
    every = {name for families in wording.CLEAR.values() for name in families}
    assert every - wording.HELD_OUT <= {e.family for e in tuned}
    # The words too: a fixed piece of each held-out template, as typos leave most of them whole.
    for piece in ("in three parts", "parcel shop", "permission to log in", "it rattles"):
        assert any(piece in e.text.lower() for e in final), piece
        assert not any(piece in e.text.lower() for e in tuned), piece


@pytest.mark.parametrize("data", ["final", "tuned"])
def test_ambiguous_share_and_its_labels(data: str, request: pytest.FixtureRequest) -> None:
    entries: list[Entry] = request.getfixturevalue(data)
    pairs = {f"{a}-or-{b}": (a, b) for a, b in wording.AMBIGUOUS}
    unclear = [e for e in entries if e.family in pairs]
    assert len(unclear) / len(entries) == pytest.approx(0.14, abs=0.001)
    assert all(e.label in pairs[e.family] for e in unclear)
    likelier = sum(e.label == pairs[e.family][0] for e in unclear) / len(unclear)
    assert likelier == pytest.approx(0.62, abs=0.08 if data == "final" else 0.03)


def test_ambiguous_pairs_weigh_every_category_alike() -> None:
    # Otherwise equal classes would not give 62 to 38 within a family.
    for place in (0, 1):
        counts = Counter(pair[place] for pair in wording.AMBIGUOUS)
        assert counts == dict.fromkeys(CATEGORIES, 2)
    assert list(wording.CLEAR) == list(CATEGORIES)
    assert {len(families) for families in wording.CLEAR.values()} == {8}


def test_typos_are_about_three_in_a_hundred_words() -> None:
    text = "house " * 20_000
    words = generate._with_typos(text, Draws("typos")).split()
    wrong = sum(word != "house" for word in words)
    assert wrong / len(words) == pytest.approx(0.03, abs=0.005)


# ---------------------------------------------------------------- the kept model


def test_model_files_are_small_and_complete() -> None:
    files = {path.name: path.stat().st_size for path in MODEL_FOLDER.iterdir()}
    assert set(files) == {
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
        "MODEL_CARD.md",
    }
    assert sum(files.values()) <= 4_000_000
    card = (MODEL_FOLDER / "MODEL_CARD.md").read_text(encoding="utf-8")
    assert "synthetic demonstration" in card
    config = json.loads((MODEL_FOLDER / "config.json").read_text())
    assert [config["id2label"][str(i)] for i in range(6)] == list(CATEGORIES)
    assert config["dtype"] == "float32"


def test_tokenizer_sets_no_length_of_its_own() -> None:
    data = json.loads((MODEL_FOLDER / "tokenizer.json").read_text(encoding="utf-8"))
    assert data["truncation"] is None
    assert data["padding"] is None
    assert len(data["model"]["vocab"]) == 3900


def test_accuracy_of_the_kept_model(final: list[Entry]) -> None:
    """Loaded as anybody would, offline, with the tokenizer of transformers; torch for real."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(MODEL_FOLDER, local_files_only=True)
    model = AutoModelForSequenceClassification.from_pretrained(MODEL_FOLDER, local_files_only=True)
    assert {weights.dtype for weights in model.parameters()} == {torch.float32}
    assert tokenizer.pad_token == "[PAD]"
    assert tokenizer.model_max_length == model.config.max_position_embeddings == 256
    assert model.config.pad_token_id == tokenizer.pad_token_id

    model.eval()
    found = []
    with torch.inference_mode():
        for start in range(0, 1000, 50):
            texts = [e.text for e in final[start : start + 50]]
            inputs = tokenizer(
                texts, padding=True, truncation=True, max_length=MAX_LENGTH, return_tensors="pt"
            )
            found += model(**inputs).logits.argmax(dim=-1).tolist()
    right = sum(
        model.config.id2label[index] == e.label for index, e in zip(found, final, strict=True)
    )
    assert 0.85 <= right / 1000 <= 0.95
    # The card's figure is this one, made by train.py's own loop: the two ways agree.
    card = (MODEL_FOLDER / "MODEL_CARD.md").read_text(encoding="utf-8")
    assert f"(synthetic demonstration): {right / 1000:.3f}" in card


def test_float32_holds_the_kept_weights_unchanged() -> None:
    import torch
    from safetensors.torch import load_file
    from transformers import AutoModelForSequenceClassification

    kept = load_file(MODEL_FOLDER / "model.safetensors")
    assert {tensor.dtype for tensor in kept.values()} == {torch.float16}
    assert all(torch.isfinite(tensor).all() for tensor in kept.values())
    model = AutoModelForSequenceClassification.from_pretrained(MODEL_FOLDER, dtype=torch.float32)
    loaded = model.state_dict()
    assert set(kept) == set(loaded)
    for name, tensor in kept.items():
        assert torch.equal(loaded[name].half(), tensor), name
        assert torch.equal(loaded[name], tensor.float()), name


def test_training_saves_what_it_measured(final: list[Entry], tmp_path: Path) -> None:
    """The whole way of train.py on little: tokenizer, training, saving, reloading."""
    import torch
    from tokenizers import Tokenizer
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    from gpucost_tui.demo import train

    few = [e for e in final if e.stratum == "short"][:160]
    tokenizer = train.build_tokenizer([e.text for e in few])
    again = train.build_tokenizer([e.text for e in few])
    assert tokenizer.to_str() == again.to_str()
    torch.manual_seed(1)
    model = train.new_model(tokenizer.get_vocab_size())
    train.train(model, tokenizer, few)
    model.half().float()
    expected = train.predict(model, tokenizer, few)
    folder = tmp_path / "model"
    folder.mkdir()
    train.save(model, tokenizer, folder, "card")

    loaded = AutoModelForSequenceClassification.from_pretrained(folder)
    alone = Tokenizer.from_file(str(folder / "tokenizer.json"))
    assert train.predict(loaded, alone, few) == expected
    fast = AutoTokenizer.from_pretrained(folder)
    assert fast(few[0].text)["input_ids"] == alone.encode(few[0].text).ids
    assert train.accuracy(expected, few) == sum(
        a == e.label for a, e in zip(expected, few, strict=True)
    ) / len(few)


def test_train_says_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from gpucost_tui.demo import train

    file = tmp_path / "file"
    file.write_text("x")
    with pytest.raises(WrongUse, match="a folder can't be made here"):
        train.build(file)
    assert train.main([]) == 2
    assert "one folder is expected" in capsys.readouterr().err
    assert file.read_text() == "x"
