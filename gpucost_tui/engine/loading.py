"""Loads a model and its tokenizer with every setting explicit, and asks what took effect.

Imports torch and transformers: only the measuring process comes here.
"""

from __future__ import annotations

import inspect
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from gpucost_tui.engine import quantizing
from gpucost_tui.engine.attention import implementation
from gpucost_tui.engine.batching import Batching
from gpucost_tui.engine.contract import Job, PassFailed
from gpucost_tui.errors import EnvironmentLacks, InputError
from gpucost_tui.protocol.execution import Execution, dtype_words
from gpucost_tui.tasks.base import ModelFacts, Task
from gpucost_tui.tasks.encoding import Encoder
from gpucost_tui.text import listed

#: Names under which models keep a learned table of positions: an index beyond it crashes.
_POSITION_TABLES = ("position_embeddings", "position_embedding", "wpe", "embed_positions")


@dataclass(slots=True)
class LoadedModel:
    """A model on its device, in evaluation mode, with what was found about it."""

    model: Any
    tokenizer: Any
    facts: ModelFacts
    dtype_effective: str
    attention_effective: str
    quantization: str
    vocabulary: int | None  # rows of the table of token embeddings
    positions: int | None  # longest input, where the model has a table of positions
    inputs: tuple[str, ...]  # names that forward takes
    notes: list[str] = field(default_factory=list)


def load_model(job: Job, execution: Execution, task: Task, device: str) -> LoadedModel:
    """Load a folder's weights and tokenizer.

    Raises:
        EnvironmentLacks, InputError: Files are absent, or the model does not fit the task.
        PassFailed: ``fallback``: dtype or attention took effect otherwise than requested.
    """
    tokenizer = _tokenizer(job)
    model, info = _weights(job, execution, task, device)
    notes = [*_check_weights(task, info), *quantizing.notes(execution)]
    model.eval()
    if not quantizing.by_bitsandbytes(execution):
        model.to(device)
    _keep_no_cache(model)
    dtype_effective = _dtype(model, execution.dtype, notes)
    embeddings = model.get_input_embeddings()
    model, quantization = quantizing.quantize(model, execution, device)
    loaded = LoadedModel(
        model=model,
        tokenizer=tokenizer,
        facts=task.facts(model),
        dtype_effective=dtype_words(dtype_effective, tf32=execution.tf32),
        attention_effective=_attention(model, implementation(execution.attention)),
        quantization=quantization,
        vocabulary=getattr(embeddings, "num_embeddings", None),
        positions=_positions(model),
        inputs=tuple(inspect.signature(model.forward).parameters),
        notes=notes,
    )
    _settle_padding(loaded)
    if loaded.attention_effective == "flash_attention_2":
        notes.append(f"attention by {quantizing.named('flash_attn')}")
    return loaded


def _tokenizer(job: Job) -> Any:
    from transformers import AutoTokenizer

    try:
        return AutoTokenizer.from_pretrained(
            job.model,
            local_files_only=True,
            use_fast=True,
            trust_remote_code=job.allow_remote_code,
        )
    except (OSError, ValueError, ImportError) as error:
        raise EnvironmentLacks(
            f"the tokenizer can't be loaded ({_first_line(error)})",
            where=job.model,
            fix="The folder needs the tokenizer's files, such as tokenizer.json",
        ) from None


def _weights(job: Job, execution: Execution, task: Task, device: str) -> tuple[Any, dict[str, Any]]:
    import torch
    import transformers

    chosen = getattr(transformers, task.auto_model)
    quantized = quantizing.loading_options(execution, device, torch)
    try:
        return chosen.from_pretrained(  # type: ignore[no-any-return]
            job.model,
            local_files_only=True,
            use_safetensors=None if job.allow_pickle else True,
            trust_remote_code=job.allow_remote_code,
            dtype=getattr(torch, execution.dtype),
            attn_implementation=implementation(execution.attention),
            output_loading_info=True,
            **quantized,
        )
    except (OSError, ValueError, ImportError) as error:
        text = str(error)
        asked = execution.attention in text or "attn_implementation" in text
        if asked or ("flash" in execution.attention and "lash" in text):
            raise EnvironmentLacks(
                f"attention '{execution.attention}' can't be had for this model here "
                f"({_first_line(error)})",
                where="execution.attention",
                fix="Declare another attention, or install what it needs",
            ) from None
        if isinstance(error, OSError) and error.errno is not None:
            raise  # a full memory or disk is typed by its number
        said = f"the model can't be loaded ({_first_line(error)})"
        where, fix = job.model, "The folder needs config.json and its safetensors files"
        if quantized:
            where = "execution.quantization"
            fix = "Declare another quantization, or install what it needs"
        raise EnvironmentLacks(said, where=where, fix=fix) from None


def _keep_no_cache(model: Any) -> None:
    """Leave out keys and values that only a next token would need: no pass asks for one."""
    for module in model.modules():
        config: Any = getattr(module, "config", None)
        if getattr(config, "use_cache", False):
            config.use_cache = False


def _first_line(error: BaseException) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), "no reason")


def _check_weights(task: Task, info: dict[str, Any]) -> list[str]:
    """Refuse a model whose files lack weights: they would be random, and no two loads alike."""
    mismatched = [str(key[0] if isinstance(key, tuple) else key) for key in info["mismatched_keys"]]
    absent = sorted(
        key
        for key in [*info["missing_keys"], *mismatched]
        if not any(key.startswith(p) or f".{p}" in key for p in task.unused_weights)
    )
    if absent:
        raise InputError(
            f"the model's files lack {len(absent)} weights that {task.name} needs "
            f"({listed(absent, limit=3)}): they would be random",
            where="model",
            fix=f"Take a model that was trained for {task.name}",
        )
    unused = len(info["unexpected_keys"])
    return [f"{unused} weights of the files are not used by {task.auto_model}"] if unused else []


def _dtype(model: Any, requested: str, notes: list[str]) -> str:
    sizes: Counter[str] = Counter()
    for parameter in model.parameters():
        if parameter.is_floating_point():
            sizes[str(parameter.dtype).removeprefix("torch.")] += parameter.numel()
    kinds = [name for name, _ in sizes.most_common()]
    if not kinds or kinds[0] != requested:
        found = listed(kinds) or "none"
        raise PassFailed("fallback", f"dtype {requested} was requested and {found} took effect.")
    if len(kinds) > 1:
        notes.append(f"the model keeps some weights in {listed(kinds[1:])}")
    return "+".join(kinds)


def _attention(model: Any, requested: str) -> str:
    """Ask the loaded modules, not only the configuration: a part may have its own."""
    found = {
        str(config._attn_implementation)
        for module in model.modules()
        if (config := getattr(module, "config", None)) is not None
        and hasattr(config, "_attn_implementation")
    }
    effective = "+".join(sorted(found))
    if effective != requested:
        raise PassFailed(
            "fallback",
            f"attention '{requested}' was requested and '{effective or 'none'}' took effect.",
        )
    return effective


def _positions(model: Any) -> int | None:
    sizes = []
    for name, module in model.named_modules():
        rows = getattr(module, "num_embeddings", None)
        if rows is not None and name.rpartition(".")[2] in _POSITION_TABLES:
            # RoBERTa counts positions from padding_idx + 1, OPT from a stated offset.
            first = module.padding_idx + 1 if module.padding_idx is not None else 0
            sizes.append(rows - max(first, getattr(module, "offset", 0) or 0))
    return min(sizes, default=None)


def _settle_padding(loaded: LoadedModel) -> None:
    """Give the model the tokenizer's pad token where it has none, and say so."""
    tokenizer, config = loaded.tokenizer, loaded.model.config
    pad = tokenizer.pad_token_id
    if pad is None:
        return
    if getattr(config, "pad_token_id", None) is None:
        config.pad_token_id = pad
        loaded.notes.append(f"the model states no pad token: the tokenizer's ({pad}) was set")
    if pad == tokenizer.eos_token_id:
        loaded.notes.append("pad token and end-of-text token are one: padding may change answers")


def make_encoder(loaded: LoadedModel, execution: Execution) -> Encoder:
    """Return the encoder of an execution.

    Raises:
        InputError: ``max_length`` is beyond the model's positions, or padding is needed and the
            tokenizer has no pad token.
    """
    length = execution.max_length
    if loaded.positions is not None and length > loaded.positions:
        raise InputError(
            f"max_length {length} is beyond the model's {loaded.positions} positions: a long entry "
            "would end the pass with an index error",
            where="execution.max_length",
            fix=f"Take at most {loaded.positions}",
        )
    batching = Batching.of(execution)
    if batching.pads and loaded.tokenizer.pad_token_id is None:
        raise InputError(
            f"the tokenizer has no pad token, and {_batches(execution)} with padding "
            f"'{execution.padding}' needs one",
            where="model",
            fix="Take batch size 1 with padding 'longest', or a model whose tokenizer has one",
        )
    return Encoder(
        loaded.tokenizer,
        max_length=length,
        pad_to_max=execution.padding == "max_length",
        padding_side=execution.padding_side,
        truncation_side=execution.truncation_side,
        multiple=execution.pad_multiple,
        inputs=loaded.inputs,
    )


def _batches(execution: Execution) -> str:
    if execution.token_budget:
        return f"a token budget of {execution.token_budget:,}"
    return f"batch size {execution.batch_size}"


def limits_note(loaded: LoadedModel, execution: Execution) -> list[str]:
    """Return what should be known of a max_length that is allowed and unusual."""
    stated = getattr(loaded.tokenizer, "model_max_length", None)
    if isinstance(stated, int) and execution.max_length > stated:
        return [f"max_length {execution.max_length} is above the tokenizer's own {stated:,}"]
    return []
