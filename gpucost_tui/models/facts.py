"""What a model's JSON files and headers say, read without transformers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpucost_tui.errors import InputError
from gpucost_tui.models import layout, weights

#: Families whose first position is ``pad_token_id + 1``: that many fewer tokens fit.
_SHIFTED = {"roberta", "xlm-roberta", "camembert", "xlm-roberta-xl", "mpnet", "longformer"}
_POSITIONS = ("max_position_embeddings", "n_positions", "max_seq_len", "max_sequence_length")
_BEYOND_ANY_MODEL = 10**9


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """Facts of a model; None where its files do not say.

    ``max_tokens`` is the greatest number of tokens that fits its positions, special tokens
    included. ``labels`` are in the order of the scores. Sizes are in elements, not bytes.
    """

    architecture: str | None
    model_type: str | None
    labels: tuple[str, ...] | None
    max_tokens: int | None
    tokenizer_max_tokens: int | None
    dtype: str | None
    parameters: int | None
    weights_bytes: int
    weights_dtypes: dict[str, int] | None
    hidden_size: int | None
    layers: int | None
    heads: int | None
    intermediate_size: int | None
    vocabulary: int | None
    pad_token_id: int | None


def read(folder: Path) -> ModelFacts:
    """Read the facts of a checked model folder.

    Raises:
        InputError: A file can't be read, or its labels are not numbered from 0.
    """
    config = layout.read_json(folder / "config.json")
    pickle = layout.uses_pickle(layout.names(folder))
    held = weights.check(folder, pickle=pickle)
    names = config.get("architectures")
    architecture = names[0] if isinstance(names, list) and names else None
    return ModelFacts(
        architecture=architecture if isinstance(architecture, str) else None,
        model_type=_text(config, "model_type"),
        labels=_labels(folder / "config.json", config, architecture),
        max_tokens=_max_tokens(config),
        tokenizer_max_tokens=_tokenizer_length(folder),
        dtype=(_text(config, "dtype") or _text(config, "torch_dtype") or "").removeprefix("torch.")
        or None,
        parameters=held.parameters,
        weights_bytes=held.bytes,
        weights_dtypes=held.dtypes,
        hidden_size=_count(config, "hidden_size", "d_model", "dim", "n_embd"),
        layers=_count(config, "num_hidden_layers", "n_layers", "num_layers", "n_layer"),
        heads=_count(config, "num_attention_heads", "n_heads", "num_heads", "n_head"),
        intermediate_size=_count(config, "intermediate_size", "hidden_dim", "d_ff", "n_inner"),
        vocabulary=_count(config, "vocab_size"),
        pad_token_id=_count(config, "pad_token_id"),
    )


def _text(config: dict[str, Any], key: str) -> str | None:
    value = config.get(key)
    return value if isinstance(value, str) and value else None


def _count(config: dict[str, Any], *keys: str) -> int | None:
    for key in keys:
        value = config.get(key)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
    return None


def _labels(path: Path, config: dict[str, Any], architecture: object) -> tuple[str, ...] | None:
    """Return the labels by their numbers; transformers' own names where a classifier has none."""
    table = config.get("id2label")
    if table is None:
        if not str(architecture or "").endswith("ForSequenceClassification"):
            return None
        number = _count(config, "num_labels", "_num_labels")
        return tuple(f"LABEL_{i}" for i in range(2 if number is None else number))
    if not isinstance(table, dict):
        raise InputError("'id2label' is no table of labels", where=str(path))
    try:
        numbered = {int(key): str(label) for key, label in table.items()}
    except ValueError:
        raise InputError("'id2label' has a key that is no number", where=str(path)) from None
    if sorted(numbered) != list(range(len(table))):
        raise InputError("the labels of 'id2label' are not numbered from 0", where=str(path))
    return tuple(numbered[number] for number in range(len(numbered)))


def _max_tokens(config: dict[str, Any]) -> int | None:
    positions = _count(config, *_POSITIONS)
    if positions is None or config.get("model_type") not in _SHIFTED:
        return positions
    padding = _count(config, "pad_token_id")
    return max(positions - (1 if padding is None else padding) - 1, 0)


def _tokenizer_length(folder: Path) -> int | None:
    """Return the tokenizer's own limit; some state a number near 1e30, which limits nothing."""
    found = []
    for name, key in (
        ("tokenizer_config.json", "model_max_length"),
        ("sentence_bert_config.json", "max_seq_length"),
    ):
        if (folder / name).is_file():
            value = layout.read_json(folder / name).get(key)
            if isinstance(value, int | float) and 0 < value < _BEYOND_ANY_MODEL:
                found.append(int(value))
    return min(found, default=None)
