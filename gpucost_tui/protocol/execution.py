"""How a pass is executed: the baseline of a protocol, and what a variant may change (R8, R10)."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from gpucost_tui.protocol.base import Count, Frozen

Quantization = Literal["none", "int8-dynamic", "int8", "int4", "bnb-int8", "bnb-nf4"]
Attention = Literal[
    "eager", "sdpa", "sdpa-math", "sdpa-flash", "sdpa-efficient", "sdpa-cudnn", "flash_attention_2"
]
CompileMode = Literal[
    "none", "default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"
]

#: Settings that came after the first protocols. At their default they change nothing and are left
#: out of what is sealed: a manifest made before them keeps its hash.
_LATER = (
    "tf32",
    "quantization",
    "compile",
    "compile_dynamic",
    "compile_cache",
    "pad_multiple",
    "tokenize",
    "token_budget",
    "prefetch",
)

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
    tf32: bool = Field(
        default=False,
        strict=True,
        description="products of float32 in tf32, on devices that have it; goes with dtype float32",
    )
    quantization: Quantization = Field(
        default="none",
        description="int8-dynamic: weights and activations of linear layers (torch on a CPU, "
        "torchao on a GPU); int8, int4: weights alone, torchao on a GPU; bnb-int8, bnb-nf4: "
        "bitsandbytes on a GPU",
    )
    attention: Attention = Field(
        default="sdpa",
        description="'sdpa' takes the kernel that torch chooses, which the row names; "
        "'sdpa-flash' and the like allow that kernel alone",
    )
    compile: CompileMode = Field(
        default="none", description="mode of torch.compile; compile_s stands apart"
    )
    compile_dynamic: Literal["auto", "yes", "no"] = Field(
        default="auto", description="whether compiled code is for any shape; auto: after the second"
    )
    compile_cache: Literal["keep", "fresh"] = Field(
        default="keep",
        description="'fresh' forgets compiled code before every attempt, on the disk too",
    )
    padding: Literal["longest", "max_length"] = "longest"
    pad_multiple: Annotated[int, Field(strict=True, ge=1, le=4096)] = Field(
        default=1,
        description="a padded length is rounded up to a multiple of it, at most max_length",
    )
    padding_side: Literal["right", "left"] = "right"
    truncation_side: Literal["right", "left"] = "right"
    grouping: Literal["none", "length"] = Field(
        default="none",
        description="'length' sorts entries by tokens before batching and restores the order (R11)",
    )
    tokenize: Literal["by-batch", "first"] = Field(
        default="by-batch",
        description="'first' tokenizes the whole corpus before the first forward pass, inside the "
        "measured pass (R16); grouping by length needs that anyway",
    )
    token_budget: Annotated[int, Field(strict=True, ge=0, le=1_000_000_000)] = Field(
        default=0,
        description="a batch takes as many entries as fit so many tokens, padding included, and "
        "at least one; batch_size is not used then; 0: batches of batch_size",
    )
    prefetch: Annotated[int, Field(strict=True, ge=0, le=64)] = Field(
        default=0,
        description="batches that are tokenized and sent to the device (pinned, asynchronous) "
        "beside the forward passes; 0: none",
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

    @model_serializer(mode="wrap")
    def _without_later_defaults(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        values: dict[str, Any] = dump(self)
        fields = Execution.model_fields
        return {
            name: value
            for name, value in values.items()
            if name not in _LATER or value != fields[name].default
        }


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


class Conflict(NamedTuple):
    """Two settings that can't be had together: the key to change, what is wrong, what to do."""

    key: str
    what: str
    fix: str


def conflicts(one: Execution) -> list[Conflict]:
    """Return the settings of an execution that contradict each other."""
    found = []
    if one.tf32 and one.dtype != "float32":
        what = f"tf32 is a way to multiply float32, and dtype is {one.dtype}"
        found.append(Conflict("tf32", what, "Take dtype float32, or leave tf32 out"))
    if one.pad_multiple > 1 and one.padding == "max_length":
        what = "padding 'max_length' fixes the length, which pad_multiple would round"
        found.append(Conflict("pad_multiple", what, "Take padding 'longest', or no multiple"))
    if one.quantization == "int8-dynamic" and one.device == "cpu" and one.dtype != "float32":
        what = f"int8-dynamic on a CPU begins from float32, and dtype is {one.dtype}"
        found.append(Conflict("quantization", what, "Take dtype float32"))
    if one.quantization == "int4" and one.dtype != "bfloat16":
        what = f"torchao's int4 kernels multiply bfloat16, and dtype is {one.dtype}"
        found.append(Conflict("quantization", what, "Take dtype bfloat16"))
    if one.quantization != "none" and one.compile != "none" and one.device == "cpu":
        what = "torch's quantized layers of a CPU can't be compiled"
        found.append(Conflict("compile", what, "Take one of the two"))
    if one.attention == "flash_attention_2" and (one.dtype == "float32" or one.device == "cpu"):
        what = "flash_attention_2 computes float16 or bfloat16 on a GPU, and "
        what += f"dtype is {one.dtype}" if one.dtype == "float32" else "device is cpu"
        fix = "Take dtype bfloat16 and a GPU, or another attention"
        found.append(Conflict("attention", what, fix))
    if one.compile == "reduce-overhead" and one.device == "cpu":
        what = "compile 'reduce-overhead' records device graphs, which a CPU does not have"
        found.append(Conflict("compile", what, "Take compile 'default'"))
    return found


def requested_columns(one: Execution) -> dict[str, Any]:
    """Return the raw table's columns that say what was asked for."""
    rounded = f", multiple of {one.pad_multiple}" if one.pad_multiple > 1 else ""
    grouping: list[str] = [one.grouping]
    if one.tokenize == "first":
        grouping.append("tokenized first")
    if one.token_budget:
        grouping.append(f"token budget {one.token_budget}")
    return {
        "batch_size": None if one.token_budget else one.batch_size,
        "dtype_requested": dtype_words(one.dtype, tf32=one.tf32),
        "attention_requested": one.attention,
        "padding": f"{one.padding} {one.padding_side}{rounded}",
        "max_length": one.max_length,
        "grouping": ", ".join(grouping),
        "prefetch": one.prefetch,
    }


def requested_words(one: Execution) -> str:
    """Return what was asked for where the raw table has a column for what took effect alone."""
    names = ("device", "threads", "quantization", "compile", "truncation_side")
    return "requested: " + ", ".join(f"{name} {getattr(one, name)}" for name in names)


def dtype_words(dtype: str, *, tf32: bool) -> str:
    """Return how a row names a dtype: with the way in which float32 is multiplied, if not exact."""
    return f"{dtype}, tf32 products" if tf32 else dtype
