"""From texts to padded batches on the host, with the model's own tokenizer (numpy only).

Calling the Rust tokenizer directly gives the ids that ``tokenizer(texts, ...)`` gives and skips
the Python bookkeeping around it, which is a fifth of a pass of a small model at batch 1. Tokenizer
classes that change the call, and any whose ids differ in :meth:`Encoder.agrees`, go the long way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gpucost_tui.errors import InputError


class Tokens(NamedTuple):
    """One entry's token ids after truncation; ``types`` is None where all are 0."""

    ids: Sequence[int] | np.ndarray
    types: Sequence[int] | np.ndarray | None
    truncated: bool


@dataclass(slots=True)
class Batch:
    """A padded batch: arrays of shape (entries, width), dtype int64."""

    arrays: dict[str, np.ndarray]
    real_tokens: int
    computed_tokens: int


class Encoder:
    """A tokenizer with explicit truncation and padding.

    Args:
        tokenizer: A loaded ``PreTrainedTokenizerBase``.
        max_length: Tokens kept of an entry, special tokens included.
        pad_to_max: Pad to ``max_length`` and not to the longest entry of the batch.
        padding_side, truncation_side: ``right`` or ``left``.
        multiple: A padded length is rounded up to a multiple of it, at most ``max_length``.
        inputs: Names that the model's forward takes.

    Raises:
        InputError: ``max_length`` leaves no room beside the special tokens.
    """

    def __init__(
        self,
        tokenizer: Any,
        *,
        max_length: int,
        pad_to_max: bool = False,
        padding_side: str = "right",
        truncation_side: str = "right",
        multiple: int = 1,
        inputs: Sequence[str] = ("input_ids", "attention_mask"),
    ) -> None:
        special = tokenizer.num_special_tokens_to_add()
        if max_length <= special:
            raise InputError(
                f"max_length {max_length} leaves no room: this tokenizer adds {special} special "
                "tokens to every entry",
                where="execution.max_length",
                fix=f"Take at least {special + 1}",
            )
        tokenizer.truncation_side = truncation_side
        tokenizer.padding_side = padding_side
        self.tokenizer = tokenizer
        self.max_length = max_length
        self.pad_to_max = pad_to_max
        self.multiple = multiple
        self._left = padding_side == "left"
        self._pad_id = tokenizer.pad_token_id or 0
        self._pad_type = getattr(tokenizer, "pad_token_type_id", 0) or 0
        names = tokenizer.model_input_names
        self._with_mask = "attention_mask" in inputs
        self._with_types = "token_type_ids" in names and "token_type_ids" in inputs
        probe = tokenizer("a", max_length=max_length, truncation=True, return_token_type_ids=True)
        self._typed = self._with_types and any(probe.get("token_type_ids", ()))
        self.direct = self._can_be_direct()
        if self.direct:
            self._prepare_backend()

    def _can_be_direct(self) -> bool:
        """Whether the class leaves the call as the library's base class has it."""
        tokenizer = self.tokenizer
        if not getattr(tokenizer, "is_fast", False):
            return False
        owners = {
            next(c.__module__ for c in type(tokenizer).__mro__ if method in vars(c))
            for method in ("__call__", "_encode_plus")
        }
        return all(m.rpartition(".")[2].startswith("tokenization_utils_") for m in owners)

    def _prepare_backend(self) -> None:
        tokenizer = self.tokenizer
        backend = tokenizer.backend_tokenizer
        backend.no_padding()
        backend.enable_truncation(
            max_length=self.max_length,
            stride=0,
            strategy="longest_first",
            direction=tokenizer.truncation_side,
        )
        backend.encode_special_tokens = tokenizer.split_special_tokens
        self._encode = backend.encode_batch_fast

    def agrees(self, texts: list[str]) -> bool:
        """Compare the direct way with the library's own call; on a difference leave it."""
        if not self.direct:
            return True
        quick = [list(tokens.ids) for tokens in self.tokens(texts)]
        self.direct = False
        slow = [list(tokens.ids) for tokens in self.tokens(texts)]
        if quick != slow:
            return False
        self.direct = True
        self._prepare_backend()
        return True

    def tokens(self, texts: list[str]) -> list[Tokens]:
        """Return the tokens of each text, truncated and not padded."""
        if not self.direct:
            return self._tokens_by_call(texts)
        full, typed = self.max_length, self._typed
        result = []
        for encoding in self._encode(texts):
            ids = encoding.ids
            cut = len(ids) >= full and len(encoding.overflowing) > 0
            result.append(Tokens(ids, encoding.type_ids if typed else None, cut))
        return result

    def _tokens_by_call(self, texts: list[str]) -> list[Tokens]:
        cut = self.tokenizer(
            texts, truncation=True, max_length=self.max_length, return_token_type_ids=self._typed
        )
        types = cut["token_type_ids"] if self._typed else [None] * len(texts)
        whole: dict[int, bool] = {}
        at_limit = [i for i, ids in enumerate(cut["input_ids"]) if len(ids) >= self.max_length]
        if at_limit:
            # A slow tokenizer does not say what it cut: only the entries at the limit are asked.
            again = self.tokenizer([texts[i] for i in at_limit], truncation=False, verbose=False)
            whole = {
                i: len(ids) > self.max_length
                for i, ids in zip(at_limit, again["input_ids"], strict=True)
            }
        return [
            Tokens(ids, kinds, whole.get(i, False))
            for i, (ids, kinds) in enumerate(zip(cut["input_ids"], types, strict=True))
        ]

    def collate(self, entries: Sequence[Tokens]) -> Batch:
        """Return a padded batch of the entries, in their order."""
        lengths = [len(entry.ids) for entry in entries]
        real = sum(lengths)
        width = self._width(max(1, *lengths, 1))
        arrays = {"input_ids": self._rows([e.ids for e in entries], lengths, width, self._pad_id)}
        if self._with_mask:
            arrays["attention_mask"] = self._mask(lengths, width)
        if self._typed:
            kinds = [e.types if e.types is not None else () for e in entries]
            arrays["token_type_ids"] = self._rows(kinds, lengths, width, self._pad_type)
        elif self._with_types:
            arrays["token_type_ids"] = np.zeros((len(entries), width), dtype=np.int64)
        return Batch(arrays, real, len(entries) * width)

    def _width(self, longest: int) -> int:
        if self.pad_to_max:
            return self.max_length
        rounded = -(-longest // self.multiple) * self.multiple
        return max(longest, min(rounded, self.max_length))

    def _rows(
        self, rows: Sequence[Any], lengths: Sequence[int], width: int, filler: int
    ) -> np.ndarray:
        if min(lengths) == width:
            return np.array(rows, dtype=np.int64)
        full = np.full((len(rows), width), filler, dtype=np.int64)
        for row, values, length in zip(full, rows, lengths, strict=True):
            if self._left:
                row[width - length :] = values
            else:
                row[:length] = values
        return full

    def _mask(self, lengths: Sequence[int], width: int) -> np.ndarray:
        if min(lengths) == width:
            return np.ones((len(lengths), width), dtype=np.int64)
        sizes = np.asarray(lengths)[:, None]
        places = np.arange(width)
        inside = places >= width - sizes if self._left else places < sizes
        return inside.astype(np.int64)
