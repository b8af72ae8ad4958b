"""The review's sections as lines: problems, decision, model, settings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.cells import cell_len, chop_cells
from textual.content import Content

from gpucost_tui.text import clean, count, size
from gpucost_tui.tui.safe import LONGEST, filled, fit, plain

if TYPE_CHECKING:
    from gpucost_tui.models.fingerprint import ModelFile
    from gpucost_tui.protocol.model import Protocol
    from gpucost_tui.tui.review_facts import Review

_LABEL = 20
#: Below this width values stand below their names.
NARROW = 60


def pair(label: str, value: object, width: int) -> Content:
    """Return one fact: its name, then its value beside it, or below it in a narrow window."""
    words = "not given" if value is None or value == "" else str(value)
    narrow = width < NARROW
    indent = 2 if narrow else _LABEL
    lines = wrapped(clean(words, one_line=False, limit=LONGEST), max(width - indent, 8))
    shown = ("\n" + " " * indent).join(lines)
    gap = "\n" + " " * indent if narrow else ""
    label = fit(label, _LABEL - 1)
    padded = label if narrow else label + " " * (_LABEL - cell_len(label))
    return filled("[$text-muted]$label[/]$gap$shown", label=padded, gap=gap, shown=shown)


def wrapped(text: str, cells: int) -> list[str]:
    """Break cleaned text into lines of at most ``cells`` cells, between words where it can."""
    lines = []
    for paragraph in text.split("\n"):
        line = ""
        for word in paragraph.split(" "):
            if line and cell_len(line) + 1 + cell_len(word) <= cells:
                line += f" {word}"
                continue
            if line:
                lines.append(line)
            *full, line = chop_cells(word, cells) or [""]
            lines.extend(full)
        lines.append(line)
    return lines


def title(text: str) -> Content:
    return filled("\n[b $text-accent]$x[/]", x=text)


def problems(review: Review) -> Iterator[Content]:
    """Yield every problem of ``check``: whether it blocks, where, what, what to do."""
    found = review.survey.problems
    if not found:
        yield plain("✓ No problem was found.")
    for problem in sorted(found, key=lambda one: not one.blocking):
        mark = "[$text-error b]✗ BLOCKS[/]" if problem.blocking else "[$text-warning b]! note[/]"
        yield filled(f"{mark}  [b]$where[/b]", where=problem.where)
        yield filled("   $what.", what=problem.what)
        yield filled("   [$text-accent]→[/] $fix.\n", fix=problem.fix)


def decision(protocol: Protocol, width: int) -> Iterator[Content]:
    """Yield what was asked and the bounds that the seal fixes (R1)."""

    def fact(label: str, value: object) -> Content:
        return pair(label, value, width)

    asked, quality = protocol.decision, protocol.quality
    yield filled("[b]$x[/b]", x=asked.question)
    yield Content("")
    yield fact("Scenario", asked.scenario)
    yield fact("Deadline", f"{asked.deadline_hours:g} h from the start of the rental")
    yield fact("Budget", "none is set" if asked.budget_usd is None else f"{asked.budget_usd} USD")
    yield fact("Quality", f"{quality.metric} at least {quality.threshold:g}")
    if quality.interval == "lower-bound":
        yield fact("", "the lower end of its 95 % interval must reach it too")
    if quality.tolerance is not None:
        yield fact(
            "Tolerance", f"{quality.tolerance:g} below '{quality.tolerance_variant}' at most"
        )
    for group in quality.subgroups:
        yield fact(
            "  each subgroup",
            f"{group.column}: at least {group.threshold:g} (from {group.min_entries:,} entries)",
        )
    yield fact("Reference", _reference(protocol))
    aim = protocol.reproduction
    bound = "" if aim.max_difference is None else f", at most {aim.max_difference:g}"
    yield fact("To be reproduced", f"{aim.aim}{bound}; seeds {', '.join(map(str, aim.seeds))}")
    yield fact("Right of use", protocol.corpus.right_of_use.strip() or None)
    if protocol.corpus.synthetic:
        yield fact("Corpus", "synthetic: a demonstration, said wherever its quality is shown")
    tuning = protocol.tuning
    declared = "given as files" if tuning.declared == "files" else tuning.statement
    yield fact("Tuning data", declared)
    yield fact("Deliverables", ", ".join(one.name for one in protocol.deliverables))
    if protocol.parent is not None:
        yield fact("Parent", protocol.parent.manifest)
        yield fact("  reason", protocol.parent.reason)


def _reference(protocol: Protocol) -> str:
    reference = protocol.reference
    if reference.kind == "variant":
        return f"variant '{reference.variant}' makes an untimed pass first (round 0)"
    if reference.kind == "procedure":
        return f"procedure '{reference.procedure}': {reference.description}"
    return f"answers in column '{reference.column}'" if reference.column else "answers, as given"


def model(review: Review, width: int) -> Iterator[Content]:
    """Yield model and tokenizer with revision and fingerprints (R8)."""
    found, facts = _named(review), review.survey.model_facts
    if found is None:
        yield plain("The model could not be read: Problems says why.")
        return

    def fact(label: str, value: object) -> Content:
        return pair(label, value, width)

    yield filled("[b]$x[/b]", x=found.name)
    yield Content("")
    yield fact("Kind", found.kind)
    yield fact("Revision", found.revision or "none: the fingerprint names it")
    yield fact("Fingerprint", found.sha256)
    yield fact("Tokenizer", found.tokenizer_sha256)
    total = sum(file.bytes for file in found.files)
    yield fact("Files", f"{count(len(found.files), 'file')}, {size(total)}")
    for file in found.files:
        yield fact(f"  {size(file.bytes)}", f"{file.path}  {file.sha256[:16]}…")
    for note in found.notes:
        yield fact("Note", note)
    if facts is None:
        return
    yield fact("Architecture", facts.architecture)
    yield fact("Parameters", None if facts.parameters is None else f"{facts.parameters:,}")
    yield fact("Stored as", _dtypes(facts.weights_dtypes) or facts.dtype)
    yield fact("Positions", None if facts.max_tokens is None else f"{facts.max_tokens:,} tokens")
    labels = facts.labels or ()
    more = f" and {len(labels) - 20} more" if len(labels) > 20 else ""
    yield fact("Labels", ", ".join(labels[:20]) + more if labels else "none")


class _Model(NamedTuple):
    """A model as the review shows it, found here or as it was sealed."""

    name: str
    kind: str
    revision: str | None
    sha256: str
    tokenizer_sha256: str
    files: tuple[ModelFile, ...]
    notes: tuple[str, ...] = ()


def _named(review: Review) -> _Model | None:
    if review.manifest is not None:
        from gpucost_tui.models.fingerprint import ModelFile

        sealed = review.manifest.json["model"]
        source = review.manifest.protocol.model.source
        kind = "embedded" if source == "demo" else "Hugging Face" if source else "folder"
        files = tuple(ModelFile(**file) for file in sealed["files"])
        prints = sealed["sha256"], sealed["tokenizer_sha256"]
        return _Model(sealed["name"], kind, sealed["revision"], *prints, files)
    found = review.survey.model
    if found is None:
        return None
    name = review.protocol.model.name if review.protocol is not None else None
    kind = {"hub": "Hugging Face", "demo": "embedded"}.get(found.kind, found.kind)
    prints = found.sha256, found.tokenizer_sha256
    return _Model(name or found.name, kind, found.revision, *prints, found.files, found.notes)


def _dtypes(found: dict[str, int] | None) -> str:
    return ", ".join(f"{name}" for name in found) if found else ""


def settings(protocol: Protocol, width: int) -> Iterator[Content]:
    """Yield every setting of execution, variants, warm-up, measurement, causes, window."""

    def facts(pairs: Iterable[tuple[str, Any]]) -> Iterator[Content]:
        return (pair(name, _spelled(value), width) for name, value in pairs)

    yield filled("[b $text-accent]Execution: the baseline[/]")
    yield from facts(protocol.execution)
    yield title("Variants")
    for name in protocol.variants:
        changes = protocol.variants[name]
        told = ", ".join(f"{key} = {_spelled(value)}" for key, value in changes.items())
        yield pair(name, told or "as the baseline", width)
    for series in protocol.series:
        names = ", ".join(series.variants)
        yield pair("Series", f"{series.name}: {series.factor} differs ({names})", width)
    yield title("Warm-up: one rule for every variant")
    yield from facts(protocol.warmup)
    yield title("Measurement")
    yield from facts(protocol.measurement)
    yield title("Allowed exclusion causes")
    for cause in protocol.exclusion_causes:
        yield pair(cause.name, cause.description, width)
    if not protocol.exclusion_causes:
        yield plain("none")
    yield title("Task and model")
    yield from facts(protocol.task.items())
    allowed = (name for name in ("allow_remote_code", "allow_pickle"))
    yield from facts((name, getattr(protocol.model, name)) for name in allowed)
    yield title("Window: the rental's tasks")
    for task in protocol.window.tasks:
        yield pair(task.name, _task(task), width)


def _task(task: Any) -> str:
    parts = [f"{task.hours:g} h" if task.hours is not None else "not given"]
    if task.measured:
        parts.append(f"measured: {', '.join(task.measured)}")
    if task.after:
        parts.append(f"after {', '.join(task.after)}")
    if task.kind == "wait":
        parts.append("wait")
    return "; ".join(parts)


def _spelled(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)
