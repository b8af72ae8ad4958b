"""The raw table's columns: one row per attempt, stopped ones included (R19).

Ids and names are text, times UTC, durations seconds, memory bytes, ``null`` a missing measurement
whose reason stands in ``missing`` as ``column: reason; …`` (R20). The scope of every counter is
said here, in :data:`MEANING`.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

_TEXT, _TIME, _COUNT, _SECONDS, _FLAG = "text", "time", "count", "float", "flag"

#: name -> (type, meaning), in the order of the files
_COLUMNS: dict[str, tuple[str, str]] = {
    "attempt": (_COUNT, "number of the attempt in this campaign, from 1"),
    "campaign": (_TEXT, "name in the protocol"),
    "manifest": (_TEXT, "SHA-256 of the sealed manifest: the campaign's identity"),
    "host": (_TEXT, "name of the host record, hosts/<host>.json"),
    "configuration": (_TEXT, "variant × hardware (× pack, once committed)"),
    "gpu": (_TEXT, "model of the device used; empty without one"),
    "started_at": (_TIME, "when the attempt began, wall clock"),
    "ended_at": (_TIME, "when it ended, wall clock; durations never come from these two"),
    "series": (_TEXT, "series that the variant belongs to, joined by ' | '"),
    "variant": (_TEXT, "name of the variant"),
    "round": (_COUNT, "round, from 1; 0 is the untimed reference pass"),
    "position": (_COUNT, "position in the round, from 1"),
    "deliverable": (_TEXT, "which corpus"),
    "seed": (_COUNT, "seed of this attempt"),
    "corpus_sha256": (_TEXT, "fingerprint of the corpus over (id, text) in order"),
    "model": (_TEXT, "name of the model, with its revision"),
    "model_sha256": (_TEXT, "fingerprint over the model's files"),
    "batch_size": (_COUNT, "entries per batch; empty where a token budget decides"),
    "dtype_requested": (_TEXT, "dtype asked for, with tf32 products where they are"),
    "dtype_effective": (_TEXT, "dtype of the loaded weights before quantization"),
    "quantization": (_TEXT, "scheme in effect, with what computes it and how many layers; 'none'"),
    "attention_requested": (_TEXT, "attention implementation asked for"),
    "attention_effective": (_TEXT, "attention in effect; of sdpa the kernels that the warm-up saw"),
    "compiled": (_FLAG, "torch.compile in effect"),
    "padding": (_TEXT, "padding policy and side, and the multiple it is rounded up to"),
    "max_length": (_COUNT, "tokens kept of an entry, special tokens included"),
    "grouping": (_TEXT, "how entries were ordered and grouped into batches"),
    "prefetch": (_COUNT, "batches prepared ahead; 0: none"),
    "threads": (_COUNT, "compute threads on the CPU"),
    "device": (_TEXT, "device of the pass: cpu, cuda:0"),
    "devices": (_TEXT, "all devices used, joined by ' | '"),
    "process_policy": (_TEXT, "child, child-per-attempt or thread"),
    "cache_policy": (_TEXT, "what was done to the page cache before the pass"),
    "install_s": (_SECONDS, "installation before this attempt (R14)"),
    "download_s": (_SECONDS, "download of the model before this attempt (R14)"),
    "load_s": (_SECONDS, "loading weights; belongs to the attempt that loaded (R14)"),
    "compile_s": (_SECONDS, "torch's own record of compiling before the pass (R14)"),
    "warmup_s": (_SECONDS, "warm-up before the pass (R14, R15)"),
    "pass_s": (_SECONDS, "the measured pass, by the host's monotonic clock (R16, R17)"),
    "read_s": (_SECONDS, "reading the corpus, inside the pass"),
    "tokenize_s": (_SECONDS, "tokenization, inside the pass"),
    "transfer_s": (_SECONDS, "transfers to the device, inside the pass"),
    "forward_s": (_SECONDS, "forward passes, inside the pass; by device events on a GPU"),
    "materialize_s": (_SECONDS, "predictions brought to the host, inside the pass"),
    "evaluate_s": (_SECONDS, "verification and quality, after the pass"),
    "write_s": (_SECONDS, "writing the prediction file, after the pass"),
    "status": (_TEXT, "completed, failed, stopped or interrupted"),
    "failure": (_TEXT, "out-of-memory, fallback, device-error, killed or error"),
    "finished_entries": (_COUNT, "entries predicted before the attempt ended"),
    "expected_ids": (_COUNT, "number of ids of the corpus"),
    "observed_ids": (_COUNT, "number of rows in the prediction file"),
    "ids_match": (_FLAG, "the two sets of ids are equal and no id is repeated (R13)"),
    "format_ok": (_FLAG, "every prediction has the task's form; scores finite"),
    "truncated_entries": (_COUNT, "entries longer than max_length"),
    "padding_ratio": (_SECONDS, "tokens computed over real tokens"),
    "quality_metric": (_TEXT, "the sealed metric"),
    "quality": (_SECONDS, "its value against the sealed reference"),
    "quality_ok": (_FLAG, "threshold reached, and tolerance kept where one is sealed"),
    "subgroups_ok": (_FLAG, "every judged subgroup reaches its threshold"),
    "corpus_accepted": (_FLAG, "the verdict (R3)"),
    "peak_allocated_bytes": (_COUNT, "tensors of this process; maximum over the devices (R30)"),
    "peak_reserved_bytes": (_COUNT, "allocator of this process; maximum over the devices (R30)"),
    "peak_device_used_bytes": (_COUNT, "whole device, every process; sampled at 10 Hz (R30)"),
    "peak_rss_bytes": (_COUNT, "host memory of the measuring process since its last reset"),
    "energy_j": (_SECONDS, "energy of whole devices during the pass, by the driver's counter"),
    "excluded": (_FLAG, "left out for a declared external cause (R24)"),
    "exclusion_cause": (_TEXT, "which"),
    "predictions_path": (_TEXT, "prediction file, relative to the campaign"),
    "predictions_sha256": (_TEXT, "its SHA-256"),
    "missing": (_TEXT, "why cells of this row are empty: 'column: reason; …'"),
    "notes": (_TEXT, "errors and paths in words"),
}

NAMES: tuple[str, ...] = tuple(_COLUMNS)
KINDS: dict[str, str] = {name: kind for name, (kind, _) in _COLUMNS.items()}
MEANING: dict[str, str] = {name: meaning for name, (_, meaning) in _COLUMNS.items()}

_REACHED = "phase in which it was reached (load, compile, warm-up, pass)"
_AT = "seconds from the attempt's load to the sample that saw it; 10 Hz and the ends of phases"

#: One row per attempt and device (device_memory.csv): name -> (type, meaning)
_DEVICE_COLUMNS: dict[str, tuple[str, str]] = {
    "attempt": (_COUNT, "number of the attempt"),
    "device": (_COUNT, "index as torch counts the devices that it may see"),
    "name": (_TEXT, "model of the device"),
    "uuid": (_TEXT, "UUID by torch; the driver's figures are matched by it"),
    "capacity_bytes": (_COUNT, "memory of the device by torch"),
    "peak_allocated_bytes": (_COUNT, "tensors of this process on this device, counted by torch"),
    "peak_allocated_phase": (_TEXT, _REACHED),
    "peak_allocated_at_s": (_SECONDS, _AT),
    "peak_reserved_bytes": (_COUNT, "allocator of this process on this device, by torch"),
    "peak_reserved_phase": (_TEXT, _REACHED),
    "peak_reserved_at_s": (_SECONDS, _AT),
    "peak_device_used_bytes": (_COUNT, "every process on this device, by the driver, sampled"),
    "peak_device_used_phase": (_TEXT, _REACHED),
    "peak_device_used_at_s": (_SECONDS, _AT),
    "peak_process_used_bytes": (_COUNT, "this process on this device, by the driver, sampled"),
    "peak_process_used_phase": (_TEXT, _REACHED),
    "peak_process_used_at_s": (_SECONDS, _AT),
    "missing": (_TEXT, "why cells of this row are empty: 'column: reason; …'"),
}
DEVICE_KINDS: dict[str, str] = {name: kind for name, (kind, _) in _DEVICE_COLUMNS.items()}
DEVICE_MEANING: dict[str, str] = {name: meaning for name, (_, meaning) in _DEVICE_COLUMNS.items()}


def described(width: int) -> Iterator[str]:
    """Say line by line what every column of the two tables means, in ``width`` characters."""
    for file, meanings in (("raw_results.csv", MEANING), ("device_memory.csv", DEVICE_MEANING)):
        title = f"Columns of {file}"
        yield from ("", title, "-" * len(title))
        for name, meaning in meanings.items():
            line = f"{name:<24} {meaning}"
            yield from textwrap.wrap(line, width, subsequent_indent=" " * 25)
