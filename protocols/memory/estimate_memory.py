"""Estimates the memory of one forward pass, and on a GPU shows what it really took beside it.

    python estimate_memory.py MODEL_FOLDER --batch 8 --length 128 [--dtype float16]
        [--attention eager] [--observe]

Needs Python 3.10 alone: the estimate reads config.json and the headers of the safetensors files.
With --observe it also needs torch and transformers, and a GPU: without one it says so and only
estimates. An estimate never stands in for an observation, nor the other way round.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import platform
import struct
import sys
from pathlib import Path
from typing import Any

BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}


def environment() -> dict[str, object]:
    """Say what is installed here: Python, torch, transformers, GPUs. Nothing is assumed."""
    found: dict[str, object] = {"python": platform.python_version()}
    for name in ("torch", "transformers"):
        found[name] = importlib.util.find_spec(name) is not None
    found["gpus"] = []
    if found["torch"]:
        try:
            import torch
        except (ImportError, OSError) as error:
            found["torch"] = f"can't be loaded ({type(error).__name__})"
            return found
        found["torch"] = torch.__version__
        if torch.cuda.is_available():
            found["gpus"] = [
                torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())
            ]
    return found


def parameters(folder: Path) -> int:
    """Count the parameters by the headers of the safetensors files."""
    return sum(count(path) for path in weights(folder))


def weights(folder: Path) -> list[Path]:
    """Return the files that transformers would load: the single one, else those of the index."""
    single, index = folder / "model.safetensors", folder / "model.safetensors.index.json"
    if single.is_file():
        return [single]
    if not index.is_file():
        raise SystemExit(f"{folder.name} has no model.safetensors: nothing to estimate from.")
    try:
        named = json.loads(index.read_text("utf-8"))["weight_map"].values()
        return [folder / name for name in sorted(set(named))]
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise SystemExit(f"{index.name} names no files: {error!r}.") from None


def count(path: Path) -> int:
    """Count the parameters of one file by its header."""
    try:
        with path.open("rb") as stream:
            (length,) = struct.unpack("<Q", stream.read(8))
            header = json.loads(stream.read(min(length, path.stat().st_size)))
        return sum(
            math.prod(tensor["shape"])
            for name, tensor in header.items()
            if name != "__metadata__" and not name.endswith("position_ids")
        )
    except (OSError, ValueError, KeyError, AttributeError, TypeError, struct.error) as error:
        raise SystemExit(f"{path.name} can't be read as safetensors: {error!r}.") from None


def configuration(folder: Path) -> dict[str, Any]:
    """Return config.json, with a hidden size and a number of attention heads."""
    try:
        config: dict[str, Any] = json.loads((folder / "config.json").read_text("utf-8"))
        for name in ("hidden_size", "num_attention_heads"):
            int(config[name])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SystemExit(f"{folder.name}/config.json does not say enough: {error!r}.") from None
    return config


def estimate(
    folder: Path, *, batch: int, length: int, dtype: str = "float32", attention: str = "sdpa"
) -> dict[str, int]:
    """Estimate weights and activations in bytes, for an encoder of transformer layers.

    Weights: parameters x bytes. Activations of one layer: the larger of attention (5 B L H, and
    2 B A L L where scores are written to memory) and the inner layer (2 B L H + 2 B L I).
    """
    config = configuration(folder)
    width, heads = config["hidden_size"], config["num_attention_heads"]
    inner = config.get("intermediate_size") or 4 * width
    tokens = batch * length
    in_attention = 5 * tokens * width
    if attention == "eager":
        in_attention += 2 * tokens * heads * length
    activations = BYTES[dtype] * max(in_attention, 2 * tokens * width + 2 * tokens * inner)
    held = parameters(folder) * BYTES[dtype]
    return {"weights": held, "activations": activations, "together": held + activations}


def observe(
    folder: Path, *, batch: int, length: int, dtype: str, attention: str
) -> dict[str, int] | None:
    """Run one batch on the first GPU; return its peaks in bytes, None where there is no GPU.

    allocated follows tensors, reserved the allocator: separate counters, never added.
    """
    found = environment()
    if not found["gpus"] or not found["transformers"]:
        return None
    longest = configuration(folder).get("max_position_embeddings")
    if longest is not None and length > longest:
        raise SystemExit(f"A length of {length} is beyond the model's {longest} positions.")
    try:
        return peaks(folder, batch=batch, length=length, dtype=dtype, attention=attention)
    except RuntimeError as error:  # out of memory is one of them
        said = str(error).strip().splitlines()[0]
        raise SystemExit(f"The batch could not be run: {said}") from None


def peaks(folder: Path, *, batch: int, length: int, dtype: str, attention: str) -> dict[str, int]:
    """Run one batch on the first GPU and return its peaks in bytes."""
    import torch
    from transformers import AutoModel

    model = AutoModel.from_pretrained(
        folder, local_files_only=True, dtype=getattr(torch, dtype), attn_implementation=attention
    )
    model = model.eval().to("cuda:0")
    torch.cuda.reset_peak_memory_stats(0)
    ids = torch.ones((batch, length), dtype=torch.long, device="cuda:0")
    with torch.inference_mode():
        model(input_ids=ids, attention_mask=torch.ones_like(ids))
    torch.cuda.synchronize(0)
    return {
        "allocated": torch.cuda.max_memory_allocated(0),
        "reserved": torch.cuda.max_memory_reserved(0),
    }


def shown(values: dict[str, int]) -> str:
    return ", ".join(f"{name} {value / 2**20:,.1f} MiB" for name, value in values.items())


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Estimated and observed memory of one batch.")
    parser.add_argument("model", type=Path, help="folder with config.json and safetensors files")
    parser.add_argument("--batch", type=int, default=8, help="entries of the batch")
    parser.add_argument("--length", type=int, default=128, help="padded length in tokens")
    parser.add_argument("--dtype", choices=sorted(BYTES), default="float32")
    parser.add_argument("--attention", choices=["sdpa", "eager"], default="sdpa")
    parser.add_argument("--observe", action="store_true", help="run the batch on the first GPU")
    chosen = parser.parse_args(words)
    if chosen.batch < 1 or chosen.length < 1:
        parser.error("--batch and --length are at least 1")
    if not chosen.model.is_dir():
        parser.error(f"there is no folder {chosen.model}")
    settings = {
        "batch": chosen.batch,
        "length": chosen.length,
        "dtype": chosen.dtype,
        "attention": chosen.attention,
    }
    # Before torch is loaded: a wrong file says so at once.
    guess = estimate(chosen.model, **settings)
    found = environment()
    gpus = found["gpus"] or "none: estimate only"
    torch_here = found["torch"] or "not installed"
    print(f"Python {found['python']}, torch {torch_here}, GPUs: {gpus}")
    print(f"estimated: {shown(guess)}")
    if chosen.observe:
        seen = observe(chosen.model, **settings)
        missing = "nothing: there is no GPU that torch and transformers could use"
        print(f"observed:  {shown(seen) if seen else missing}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
