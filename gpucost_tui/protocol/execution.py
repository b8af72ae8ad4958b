"""How a pass is executed: the baseline of a protocol, and what a variant may change (R8, R10)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from gpucost_tui.protocol.base import Count, Frozen

#: What a device may be called; ROCm's devices are cuda in torch too.
DEVICE = r"^(auto|cpu|cuda(:[0-9]{1,3})?)$"


class Execution(Frozen):
    """Every setting of one pass. Each is a possible factor of a series.

    The values are what is *requested*; what took effect is found by the engine and stands beside
    them in the raw table.
    """

    batch_size: Count = 1
    max_length: Annotated[Count, Field(le=1_000_000)] = Field(
        description="tokens kept of an entry, special tokens included; always explicit, because "
        "some tokenizers state a length near 1e30 and would truncate nothing"
    )
    dtype: Literal["float32", "float16", "bfloat16"] = "float32"
    attention: Literal["eager", "sdpa", "flash_attention_2"] = "sdpa"
    padding: Literal["longest", "max_length"] = "longest"
    padding_side: Literal["right", "left"] = "right"
    truncation_side: Literal["right", "left"] = "right"
    grouping: Literal["none", "length"] = Field(
        default="none",
        description="'length' sorts entries by tokens before batching and restores the order (R11)",
    )
    device: Annotated[str, Field(strict=True, pattern=DEVICE)] = Field(
        default="auto", description="auto, cpu, cuda or cuda:N"
    )
    threads: Annotated[int, Field(strict=True, ge=0, le=1024)] = Field(
        default=0,
        description="compute threads on a CPU; 0 takes the cores less one, at least one",
    )
    deterministic: bool = Field(
        default=False, strict=True, description="torch.use_deterministic_algorithms (R28)"
    )


#: Names that a series may declare as its factor. ``hardware`` is no setting: the same variants
#: run on several hosts.
FACTORS: tuple[str, ...] = (*Execution.model_fields, "hardware")


def differing(one: Execution, other: Execution) -> list[str]:
    """Return the names of the settings in which two executions differ, in the model's order."""
    return [name for name in Execution.model_fields if getattr(one, name) != getattr(other, name)]


def with_changes(baseline: Execution, changes: dict[str, Any]) -> Execution:
    """Return the baseline with a variant's declared changes, validated again.

    Raises:
        pydantic.ValidationError: A key is no setting, or a value is impossible.
    """
    return Execution.model_validate({**baseline.model_dump(), **changes})
