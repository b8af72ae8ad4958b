"""What the rules refuse in a protocol that is well-formed: each refusal has its sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from pydantic import ValidationError

from gpucost_tui.protocol.execution import Execution, conflicts, differing
from gpucost_tui.protocol.load import Source
from gpucost_tui.protocol.model import Protocol, Series
from gpucost_tui.protocol.problem import Problem
from gpucost_tui.protocol.words import expected, shown
from gpucost_tui.text import clean

OFFLINE = "offline-corpus"

_SERVING = "interactive serving (arrivals, concurrency, latency)"
_TRAINING = "training to convergence"
_OTHER_SCENARIOS = {
    _SERVING: (
        "interactive", "serving", "server", "online", "chat", "streaming", "real-time", "latency",
        "single-stream", "multi-stream",
    ),
    _TRAINING: ("training", "train", "fine-tuning", "finetuning", "pretraining"),
}  # fmt: skip
_WARMUP_KEYS = frozenset({"warmup", "warm_up", "inputs", "passes", "recompilation"})
_SEED_KEYS = frozenset({"seed", "seeds"})


def problems(protocol: Protocol, source: Source) -> list[Problem]:
    """Return every refusal of the rules that the protocol alone shows (R2, R5, R10, R15, R28).

    What needs the corpora, the tuning data or the model is found by the campaign's survey.
    """
    return [
        *_scenario(protocol, source),
        *_right_of_use(protocol, source),
        *_model(protocol, source),
        *_names(protocol, source),
        *_variants(protocol, source),
        *_conflicts(protocol, source),
        *_series(protocol, source),
        *_seeds(protocol, source),
        *_references(protocol, source),
        *_columns(protocol, source),
    ]


def _scenario(protocol: Protocol, source: Source) -> Iterator[Problem]:
    asked = protocol.decision.scenario
    if asked == OFFLINE:
        return
    word = asked.lower().replace("_", "-").replace(" ", "-")
    other = next((o for o, words in _OTHER_SCENARIOS.items() if word in words), None)
    yield Problem(
        source.where("decision", "scenario"),
        f"the scenario asked for is {other or shown(asked)}, which is another question: this "
        "program answers for an offline corpus only (R2)",
        f"Write scenario = '{OFFLINE}', or use another tool for that question",
    )


def _right_of_use(protocol: Protocol, source: Source) -> Iterator[Problem]:
    if not protocol.corpus.right_of_use.strip():
        yield Problem(
            source.where("corpus", "right_of_use"),
            "the right to use this corpus is not stated (R5)",
            "Say on what ground these texts may be processed here, such as a licence or a contract",
        )


def _model(protocol: Protocol, source: Source) -> Iterator[Problem]:
    if not protocol.model.source.strip():
        yield Problem(
            source.where("model", "source"),
            "no model is named",
            "Name a folder, org/name@revision, or 'demo'",
        )


def _names(protocol: Protocol, source: Source) -> Iterator[Problem]:
    for table, names in (
        ("deliverables", [d.name for d in protocol.deliverables]),
        ("series", [s.name for s in protocol.series]),
        ("exclusion_causes", [c.name for c in protocol.exclusion_causes]),
    ):
        for name, times in Counter(names).items():
            if times > 1:
                where = source.where(table, names.index(name), "name")
                yield Problem(where, f"'{clean(name)}' is used {times} times", "Name each once")


def _variants(protocol: Protocol, source: Source) -> Iterator[Problem]:
    used = set(protocol.order())
    for name, changes in protocol.variants.items():
        if name not in used:
            where = source.where("variants", name)
            yield Problem(where, f"variant '{name}' is in no series", "Name it in one or remove it")
        yield from _changes(name, changes, source)


def _changes(name: str, changes: dict[str, object], source: Source) -> Iterator[Problem]:
    for key, value in changes.items():
        where = source.where("variants", name, key)
        if key in _WARMUP_KEYS:
            yield Problem(
                where,
                "a variant can't have a warm-up of its own: one rule holds for all (R15)",
                "Set it in [warmup]",
            )
        elif key in _SEED_KEYS:
            yield Problem(
                where,
                "a variant can't have seeds of its own: they are common to all (R28)",
                "Set them in [reproduction]",
            )
        elif key not in Execution.model_fields:
            known = ", ".join(Execution.model_fields)
            yield Problem(
                where, f"'{clean(key)}' is no execution setting", f"Known settings: {known}"
            )
        else:
            yield from _value(where, key, value)


def _conflicts(protocol: Protocol, source: Source) -> Iterator[Problem]:
    """Settings that contradict each other, in the baseline or as soon as a variant is applied."""
    common = conflicts(protocol.execution)
    for conflict in common:
        yield Problem(source.where("execution", conflict.key), conflict.what, conflict.fix)
    for name, changes in protocol.variants.items():
        try:
            settings = protocol.settings(name)
        except ValidationError:
            continue  # an impossible value, which has a problem of its own
        for conflict in conflicts(settings):
            if conflict in common:
                continue
            own = (name, conflict.key) if conflict.key in changes else (name,)
            yield Problem(source.where("variants", *own), conflict.what, conflict.fix)


def _value(where: str, key: str, value: object) -> Iterator[Problem]:
    # max_length is the one setting without a default, so it makes a lone setting checkable.
    try:
        Execution.model_validate({"max_length": 1, key: value})
    except ValidationError as error:
        yield Problem(where, *expected(error.errors()[0], [key]))


def _series(protocol: Protocol, source: Source) -> Iterator[Problem]:
    for number, series in enumerate(protocol.series):
        where = source.where("series", number, "variants")
        unknown = [name for name in series.variants if name not in protocol.variants]
        for name in unknown:
            place = source.where("series", number, "variants", series.variants.index(name))
            fix = f"Define [variants.{name}] or remove it"
            yield Problem(place, f"variant '{name}' is not defined", fix)
        if not unknown:
            yield from one_factor(protocol, series, where)


def one_factor(protocol: Protocol, series: Series, where: str) -> Iterator[Problem]:
    """Yield what R10 refuses in a series: variants that differ in more than its factor."""
    try:
        settings = {name: protocol.settings(name) for name in series.variants}
    except ValidationError:
        return  # an impossible value, which has a problem of its own
    first, *others = series.variants
    allowed = set() if series.factor == "hardware" else {series.factor}
    for name in others:
        extra = [f for f in differing(settings[first], settings[name]) if f not in allowed]
        if extra:
            yield Problem(
                where,
                f"'{first}' and '{name}' differ in {', '.join(extra)} beside the declared factor "
                f"'{series.factor}': a series changes one variable (R10)",
                "Give them the same values, or declare another series for that factor",
            )
    if allowed:
        yield from _distinct(series, settings, where)


def _distinct(series: Series, settings: dict[str, Execution], where: str) -> Iterator[Problem]:
    seen: dict[object, str] = {}
    for name in series.variants:
        value = getattr(settings[name], series.factor)
        if value in seen:
            yield Problem(
                where,
                f"'{seen[value]}' and '{name}' have the same {series.factor} ({shown(value)}): "
                "nothing is compared (R10)",
                "Give each variant of the series a value of its own",
            )
        seen.setdefault(value, name)


def _seeds(protocol: Protocol, source: Source) -> Iterator[Problem]:
    if protocol.reproduction.stochastic and len(protocol.reproduction.seeds) < 2:
        yield Problem(
            source.where("reproduction", "seeds"),
            "a stochastic protocol with one seed can't tell the method from its luck (R28)",
            "Name several common seeds; their results are kept apart",
        )


def _references(protocol: Protocol, source: Source) -> Iterator[Problem]:
    for table, key, name in (
        ("reference", "variant", protocol.reference.variant),
        ("quality", "tolerance_variant", protocol.quality.tolerance_variant),
    ):
        if name is not None and name not in protocol.order():
            where = source.where(table, key)
            yield Problem(where, f"variant '{name}' is in no series", "Name a variant of a series")
    both = {protocol.reference.variant, protocol.quality.tolerance_variant} - {None}
    if len(both) > 1:
        yield Problem(
            source.where("quality", "tolerance_variant"),
            "the reference and the tolerance name two different variants",
            "One variant makes the reference pass (round 0): name it in both",
        )


def _columns(protocol: Protocol, source: Source) -> Iterator[Problem]:
    """Columns that have a meaning of their own can't be a class, an answer or a subgroup."""
    named: list[tuple[tuple[str | int, ...], str | None]] = [
        (("corpus", "label_column"), protocol.corpus.label_column),
        (("reference", "column"), protocol.reference.column),
    ]
    groups = [group.column for group in protocol.quality.subgroups]
    for number, column in enumerate(groups):
        if column == "stratum" and not protocol.corpus.strata:
            yield Problem(
                source.where("quality", "subgroups", number, "column"),
                "'stratum' is the length class, and no stratum is declared (R12)",
                "Declare [[corpus.strata]], or name a column of the corpus",
            )
        if column != "stratum":
            named.append((("quality", "subgroups", number, "column"), column))
    for path, name in named:
        if name in ("id", "text", "stratum"):
            what = f"'{name}' can't serve here: it is the entry's own {name}"
            fix = "Name the column of the corpus that holds the class or the answer"
            yield Problem(source.where(*path), what, fix)
    for column, times in Counter(groups).items():
        if times > 1:
            where = source.where("quality", "subgroups", groups.index(column), "column")
            what = f"subgroups of '{clean(column, limit=60)}' are planned {times} times"
            yield Problem(where, what, "Name each column once")
