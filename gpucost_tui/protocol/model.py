"""The tables of a protocol as frozen models. The file's form is described by its templates.

Format history:

* 1 (2026-11-30): first.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from gpucost_tui.protocol.base import Count, Frozen, Number, Prose, Slug, Usd, Word
from gpucost_tui.protocol.execution import FACTORS, Execution, with_changes

FORMAT = 1

#: Longest time that a protocol may name, in hours: ten years. More is a slip of the pen.
MAX_HOURS = 87_600
SHA256 = r"^[0-9a-f]{64}$"

Seed = Annotated[int, Field(strict=True, ge=0, lt=2**63)]


class Decision(Frozen):
    """What is asked, and the bounds that are fixed before the first duration is seen (R1)."""

    question: Prose
    scenario: Word = Field(description="offline-corpus is the one this program answers (R2)")
    deadline_hours: Annotated[Number, Field(gt=0, le=MAX_HOURS)]
    budget_usd: Usd | None = None


class Stratum(Frozen):
    """A length class: entries of at most ``max_tokens`` tokens of the chosen tokenizer (R12)."""

    name: Slug
    max_tokens: Count | None = Field(default=None, description="absent in the last: no bound")
    entries: Count | None = Field(default=None, description="how many the corpus should have")


class Corpus(Frozen):
    """What the corpora are, and how they relate to their source."""

    right_of_use: Annotated[str, Field(strict=True, max_length=20_000)] = Field(
        description="why this text may be used here (R5); empty in a template, refused at the seal"
    )
    synthetic: bool = Field(
        default=False, strict=True, description="made up: said wherever its quality is shown"
    )
    strata: tuple[Stratum, ...] = ()
    label_column: Word | None = Field(
        default=None, description="column with the class, for the distribution (R12)"
    )
    source_distribution: dict[str, Annotated[Number, Field(ge=0, le=1)]] = Field(
        default={}, description="share of each class in the source, declared (R12)"
    )
    max_class_deviation: Annotated[Number, Field(gt=0, le=1)] = 0.05

    @model_validator(mode="after")
    def _bounds_rise(self) -> Corpus:
        bounds = [s.max_tokens for s in self.strata]
        if bounds and bounds[-1] is not None:
            raise ValueError("the last stratum has no max_tokens: every entry must fall in one")
        known = [b for b in bounds[:-1] if b is not None]
        if len(known) != max(len(bounds) - 1, 0) or sorted(set(known)) != known:
            raise ValueError("strata are named from short to long with rising max_tokens")
        names = [s.name for s in self.strata]
        if len(set(names)) != len(names):
            raise ValueError("two strata have one name")
        total = sum(self.source_distribution.values())
        if self.source_distribution and abs(total - 1) > 0.01:
            raise ValueError(f"the shares of source_distribution add up to {total:g}, not 1")
        return self


class Tuning(Frozen):
    """Data that a configuration was tuned on: apart from the corpora of the campaign (R6)."""

    declared: Literal["files", "none"] = Field(
        description="'files' are given to `gpucost new --tuning`; 'none' states that there are none"
    )
    statement: Prose | None = None


class Reference(Frozen):
    """What every variant's predictions are held against (R27)."""

    kind: Literal["answers", "procedure", "variant"]
    column: Word | None = Field(
        default=None, description="column of the corpus that holds the answer (kind answers)"
    )
    procedure: Word | None = Field(
        default=None, description="name of the evaluation procedure that gave the answers"
    )
    description: Prose | None = None
    variant: Slug | None = Field(
        default=None, description="variant that makes an untimed reference pass, round 0"
    )
    label_map: dict[str, str] = Field(
        default={}, description="answer as written in the data -> label of the model"
    )

    @model_validator(mode="after")
    def _complete(self) -> Reference:
        if self.kind == "procedure" and not (self.procedure and self.description):
            raise ValueError("a procedure is named and described (procedure, description)")
        if (self.kind == "variant") != (self.variant is not None):
            raise ValueError("'variant' is named for kind 'variant', and for no other")
        if self.kind != "answers" and self.column is not None:
            raise ValueError("'column' goes with kind 'answers'")
        if self.kind == "variant" and self.label_map:
            raise ValueError("'label_map' goes with answers: a variant gives the model's labels")
        return self


class Subgroup(Frozen):
    """A part of the corpus with a minimum of its own: each value of a column is one group."""

    column: Word = Field(description="'stratum' (the length class), or a column of the corpus")
    threshold: Number
    min_entries: Count = Field(
        default=1, description="smaller groups are shown and not judged (fixed by the seal)"
    )


class Quality(Frozen):
    """The minimum that makes a corpus acceptable, fixed by the seal (R1, R27)."""

    metric: Slug
    threshold: Number
    tolerance: Annotated[Number, Field(ge=0)] | None = Field(
        default=None, description="greatest loss of the metric against the reference variant"
    )
    tolerance_variant: Slug | None = None
    subgroups: tuple[Subgroup, ...] = ()
    interval: Literal["shown", "lower-bound"] = Field(
        default="shown",
        description="what the metric's 95 % confidence interval is for: 'shown' beside it, or "
        "'lower-bound': its lower end must reach the threshold",
    )

    @model_serializer(mode="wrap")
    def _without_later_defaults(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        # Came after the first protocols: at its default a manifest made before keeps its hash.
        values: dict[str, Any] = dump(self)
        return {k: v for k, v in values.items() if (k, v) != ("interval", "shown")}

    @model_validator(mode="after")
    def _tolerance_has_a_variant(self) -> Quality:
        if (self.tolerance is None) != (self.tolerance_variant is None):
            raise ValueError("'tolerance' and 'tolerance_variant' go together")
        return self


class Reproduction(Frozen):
    """What two passes are meant to have in common, and the seeds (R28)."""

    aim: Literal["identical-outputs", "bounded-difference", "business-quality"]
    max_difference: Annotated[Number, Field(ge=0)] | None = None
    stochastic: bool = Field(default=False, strict=True, description="outputs depend on the seed")
    seeds: Annotated[tuple[Seed, ...], Field(min_length=1)] = (0,)

    @model_validator(mode="after")
    def _bounded(self) -> Reproduction:
        if (self.aim == "bounded-difference") != (self.max_difference is not None):
            raise ValueError(
                "aim 'bounded-difference' needs a 'max_difference', and no other aim has one"
            )
        if len(set(self.seeds)) != len(self.seeds):
            raise ValueError("a seed is named twice")
        return self


class Model(Frozen):
    """The model: a folder on this machine or a Hugging Face id with a revision."""

    source: Annotated[str, Field(strict=True, max_length=1000)] = Field(
        description="a folder, 'demo', or org/name[@revision]; empty in a template"
    )
    name: Word | None = Field(default=None, description="how tables call it; default: from source")
    allow_remote_code: bool = Field(default=False, strict=True)
    allow_pickle: bool = Field(default=False, strict=True)


class Warmup(Frozen):
    """One rule for every variant (R15)."""

    inputs: Literal["every-shape", "spread", "longest", "first-batch"] = Field(
        default="every-shape",
        description="every distinct shape of the pass; 'spread' takes 16 of them, evenly by "
        "length; the last, smaller batch is a shape of its own and always in",
    )
    passes: Count = 1
    recompilation: Literal["refuse", "record"] = Field(
        default="record", description="what a recompilation inside a measured pass does to it"
    )


class Measurement(Frozen):
    """How passes are repeated and read (R18, R26)."""

    rounds: Annotated[int, Field(strict=True, ge=1, le=1000)] = 5
    max_rounds: Annotated[int, Field(strict=True, ge=1, le=1000)] = 10
    order: Literal["rotated"] = "rotated"
    process: Literal["child", "child-per-attempt", "thread"] = "child"
    cache: Literal["keep", "drop"] = Field(
        default="keep", description="'drop' asks the kernel to forget the corpus file before a pass"
    )
    settled_rule: Literal["auto", "range", "interval"] = "auto"
    settled_factor: Annotated[Number, Field(gt=0)] = 1.5

    @model_validator(mode="after")
    def _maximum(self) -> Measurement:
        if self.max_rounds < self.rounds:
            raise ValueError(f"max_rounds ({self.max_rounds}) is below rounds ({self.rounds})")
        return self


class ExclusionCause(Frozen):
    """An external cause for which a pass may be left out, with the trace it must leave (R24)."""

    name: Slug
    description: Prose
    condition: Word | None = Field(
        default=None, description="on a column of the raw table, such as 'peak_rss_bytes > 1e9'"
    )


class Series(Frozen):
    """Variants that differ in one declared factor (R10)."""

    name: Word
    factor: Word
    variants: Annotated[tuple[Slug, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _known_factor(self) -> Series:
        if self.factor not in FACTORS:
            raise ValueError(f"factor '{self.factor}' is none of: {', '.join(FACTORS)}")
        if len(set(self.variants)) != len(self.variants):
            raise ValueError("a variant is named twice in one series")
        return self


class Deliverable(Frozen):
    """A corpus that the user needs once (R38)."""

    name: Slug
    description: Prose | None = None


class WindowTask(Frozen):
    """A piece of the rental's schedule (R32). Tasks without ``after`` start at hour 0."""

    name: Word
    hours: Annotated[Number, Field(ge=0, le=MAX_HOURS)] | None = Field(
        default=None, description="absent where the campaign measures it"
    )
    after: tuple[Word, ...] = ()
    kind: Literal["work", "wait"] = "work"
    measured: tuple[Literal["load", "warm-up", "pass", "evaluate", "export"], ...] = Field(
        default=(), description="phases of the campaign whose durations replace 'hours'"
    )
    scope: Literal["campaign", "deliverable"] = Field(
        default="campaign",
        description="'campaign': all attempts count; 'deliverable': one pass of each deliverable",
    )


class Window(Frozen):
    tasks: tuple[WindowTask, ...] = ()


class Parent(Frozen):
    """The campaign that this one was made from, by its manifest's hash (R1, R21)."""

    manifest: Annotated[str, Field(strict=True, pattern=SHA256)]
    head: Annotated[str, Field(strict=True, pattern=SHA256)] | None = None
    reason: Prose | None = None


class Protocol(Frozen):
    """A whole protocol. :mod:`gpucost_tui.protocol.load` reads one from a file."""

    format: Annotated[int, Field(strict=True, ge=FORMAT, le=FORMAT)]
    name: Word
    task: dict[str, Any] = Field(description="'name' and the options of that task")
    decision: Decision
    corpus: Corpus
    tuning: Tuning
    reference: Reference
    quality: Quality
    reproduction: Reproduction
    model: Model
    execution: Execution
    warmup: Warmup = Warmup()
    measurement: Measurement = Measurement()
    exclusion_causes: tuple[ExclusionCause, ...] = ()
    variants: Annotated[dict[Slug, dict[str, Any]], Field(min_length=1)]
    series: Annotated[tuple[Series, ...], Field(min_length=1)]
    deliverables: Annotated[tuple[Deliverable, ...], Field(min_length=1)]
    window: Window = Window()
    parent: Parent | None = None

    def order(self) -> tuple[str, ...]:
        """Return the variants in the order in which the series name them, each once."""
        return tuple(dict.fromkeys(name for series in self.series for name in series.variants))

    def settings(self, variant: str) -> Execution:
        """Return the baseline with the changes of a variant."""
        return with_changes(self.execution, self.variants[variant])

    def series_of(self, variant: str) -> tuple[str, ...]:
        """Return the names of the series that a variant belongs to."""
        return tuple(series.name for series in self.series if variant in series.variants)

    def reference_variant(self) -> str | None:
        """Return the variant that makes the untimed reference pass (round 0), or none."""
        return self.reference.variant or self.quality.tolerance_variant
