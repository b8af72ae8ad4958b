"""An estimate of the memory of a forward pass, for planning. It is no observation (R31).

For an encoder of transformer layers in inference mode, where one layer's activations live at a
time, with ``B`` entries of ``L`` tokens, width ``H``, inner width ``I`` and ``A`` heads:

* weights: parameters × bytes per parameter (quantized linear layers hold fewer);
* activations: the larger of attention (input, query, key, value, output: ``5·B·L·H``; where scores
  are materialized, ``2·B·A·L²`` beside them) and the inner layer (``2·B·L·H + 2·B·L·I``).

The allocator's rounding, workspaces of libraries, the context of a device (hundreds of MiB) and the
process itself are not in it.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpucost_tui.models.facts import ModelFacts
from gpucost_tui.protocol.execution import Execution

_BYTES = {"float32": 4.0, "float16": 2.0, "bfloat16": 2.0}
_QUANTIZED = {"int8-dynamic": 1.0, "int8": 1.0, "int4": 0.5, "bnb-int8": 1.0, "bnb-nf4": 0.5}
#: Attention that writes its scores to memory.
_MATERIALIZES = ("eager", "sdpa-math")


@dataclass(frozen=True, slots=True)
class Estimate:
    """Bytes; ``None`` with the reason in ``reason`` where the model's files do not say enough."""

    weights_bytes: int | None
    activations_bytes: int | None
    reason: str | None = None

    @property
    def total_bytes(self) -> int | None:
        if self.weights_bytes is None or self.activations_bytes is None:
            return None
        return self.weights_bytes + self.activations_bytes


def estimate(facts: ModelFacts, execution: Execution, entries: int, length: int) -> Estimate:
    """Estimate weights and activations of one batch.

    Args:
        facts: What the model's files say.
        execution: The variant's settings.
        entries: Entries of the batch.
        length: Their padded length, in tokens.
    """
    each = _BYTES[execution.dtype]
    weights = _weights(facts, execution, each)
    width, heads = facts.hidden_size, facts.heads
    if width is None or heads is None:
        said = "config.json states no hidden size or number of attention heads"
        return Estimate(weights, None, said)
    inner = facts.intermediate_size or 4 * width
    tokens = entries * length
    attention = 5 * tokens * width
    if execution.attention in _MATERIALIZES:
        attention += 2 * tokens * heads * length
    activations = int(each * max(attention, 2 * tokens * width + 2 * tokens * inner))
    reason = None if weights is not None else "the number of parameters is not known"
    return Estimate(weights, activations, reason)


def _weights(facts: ModelFacts, execution: Execution, each: float) -> int | None:
    if facts.parameters is None:
        return None
    smaller = _QUANTIZED.get(execution.quantization)
    if smaller is None:
        return int(facts.parameters * each)
    # Embeddings keep their dtype; without their size all would be taken for quantized.
    kept = min(facts.parameters, (facts.vocabulary or 0) * (facts.hidden_size or 0))
    return int(kept * each + (facts.parameters - kept) * smaller)
