"""The predictions of an attempt beside text and reference, wrong ones first. Read in a thread."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpucost_tui.errors import InputError
from gpucost_tui.text import clean
from gpucost_tui.tui.attempts_columns import FOLDER
from gpucost_tui.tui.work import Work

if TYPE_CHECKING:
    import polars as pl

    from gpucost_tui.campaign.fold import State
    from gpucost_tui.campaign.folder import Campaign, Manifest

_STEPS = 4
#: What an entry is, in the order in which they are shown.
MARKS = ("missing", "wrong", "repeated", "not asked for", "no reference", "right", "by likeness")


@dataclass(frozen=True)
class Predictions:
    """Columns ``what, id, text, reference, prediction, score``, wrong ones first.

    ``score`` is the label's score, or the cosine to the reference where vectors are compared.
    """

    frame: pl.DataFrame
    measure: str
    wrong: int | None  # none where entries are told by likeness, or there is no reference
    notes: tuple[str, ...] = ()


def read_predictions(work: Work, row: dict[str, Any]) -> Predictions:
    """Read an attempt's predictions and hold them against its deliverable's reference.

    Raises:
        GpucostError: There are none, or a file can't be read; the sentence says which.
        Cancelled: The work was cancelled.
    """
    import polars as pl

    from gpucost_tui.campaign.fold import fold
    from gpucost_tui.campaign.folder import Campaign
    from gpucost_tui.tasks.registry import create

    if not row.get(FOLDER):
        raise InputError(
            "the row of a table file has no predictions here",
            fix="Open the campaign that it was exported from",
        )
    work.report("Reading predictions", 0, _STEPS)
    campaign = Campaign.open(Path(row[FOLDER]))
    manifest = campaign.manifest
    if not row["predictions_path"]:
        raise InputError(
            f"the attempt has no predictions: it is {row['status'] or 'not finished'}",
            fix="A pass that was killed has none; one that failed or was stopped may have some",
        )
    found = _parquet(campaign.folder / row["predictions_path"])
    notes: list[str] = []
    work.report("Reading the reference", 1, _STEPS)
    answers = _answers(campaign, manifest, fold(campaign.events()), row, notes)
    work.report("Reading the corpus", 2, _STEPS)
    texts = _texts(campaign, row["deliverable"], notes)
    work.report("Comparing", 3, _STEPS)
    task = create(manifest.protocol.task)
    wrong = [clean(problem, limit=200) for problem in task.check_format(found)[:3]]
    notes += [f"format: {problem}" for problem in wrong]
    compared = None
    if answers is not None:
        try:
            compared = task.compared(found, answers)
        except pl.exceptions.PolarsError as error:
            notes.append(f"not compared: {clean(error, limit=200)}")
    rows, measure, number = _laid_out(found, compared)
    if texts is not None:
        rows = rows.join(texts, on="id", how="left", maintain_order="left")
    else:
        rows = rows.with_columns(pl.lit(None, dtype=pl.String).alias("text"))
    order = ["what", "id", "text", "reference", "prediction", "score"]
    return Predictions(rows.select(order), measure, number, tuple(notes))


def _parquet(path: Path) -> pl.DataFrame:
    import polars as pl

    try:
        frame = pl.read_parquet(path, glob=False)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise InputError(
            f"the prediction file can't be read ({clean(error, limit=200)})",
            where=clean(path.name),
            fix="Restore it from a copy; `gpucost verify` shows what else differs",
        ) from None
    lacking = [name for name in ("id", "prediction") if name not in frame.columns]
    if lacking:
        raise InputError(
            f"the prediction file has no column '{lacking[0]}'", where=clean(path.name)
        )
    return frame.with_columns(pl.col("id").cast(pl.String))


def _answers(
    campaign: Campaign, manifest: Manifest, state: State, row: dict[str, Any], notes: list[str]
) -> pl.DataFrame | None:
    """Return what the predictions are held against: answers, or those of the reference pass."""
    from gpucost_tui.campaign.judge import Judge

    sealed = Judge(campaign, manifest).answers(row["deliverable"])
    if sealed is not None:
        return sealed
    for attempt in state.attempts.values():
        other = attempt.row
        sound = other["round"] == 0 and other["status"] == "completed" and other["format_ok"]
        if sound and other["deliverable"] == row["deliverable"] and other["predictions_path"]:
            if attempt.number == row["attempt"]:
                notes.append("this is the reference pass: the others are held against it")
                return None
            passed = _parquet(campaign.folder / other["predictions_path"])
            answers = passed.select("id", answer="prediction")
            return answers.unique("id", keep="first", maintain_order=True)
    notes.append("there is no reference pass yet")
    return None


def _texts(campaign: Campaign, deliverable: str, notes: list[str]) -> pl.DataFrame | None:
    from gpucost_tui.corpus.store import sealed_frame

    try:
        frame = sealed_frame(campaign.corpus_file(deliverable), columns=["id", "text"])
    except InputError as error:
        notes.append(f"texts are not shown: {error}")
        return None
    return frame.unique("id", keep="first")


def _laid_out(
    found: pl.DataFrame, compared: pl.DataFrame | None
) -> tuple[pl.DataFrame, str, int | None]:
    """Return rows in the order in which they are shown, the measure's name, and wrong ones."""
    import polars as pl

    scores = pl.col("score") if "score" in found.columns else pl.lit(None, dtype=pl.Float32)
    given = found.select("id", pl.col("prediction"), scores.alias("score").cast(pl.Float64))
    again = given.filter(~pl.col("id").is_first_distinct())
    if compared is None:
        rows = given.with_columns(
            what=pl.lit("no reference"), reference=pl.lit(None, given.schema["prediction"])
        )
        return rows, "score", None
    mark = pl.lit("by likeness") if "similarity" in compared.columns else _right_or_wrong()
    rows = compared.rename({"answer": "reference"}).with_columns(
        pl.when(pl.col("prediction").is_null() & ~pl.col("id").is_in(given["id"].implode()))
        .then(pl.lit("missing"))
        .otherwise(mark)
        .alias("what")
    )
    if "similarity" in compared.columns:
        rows = rows.with_columns(score=pl.col("similarity"))
    else:
        first = given.unique("id", keep="first").select("id", "score")
        rows = rows.join(first, on="id", how="left", maintain_order="left")
    parts = [rows.select("what", "id", "reference", "prediction", "score")]
    others = given.join(compared.select("id"), on="id", how="anti", maintain_order="left")
    for frame, what in ((again, "repeated"), (others, "not asked for")):
        parts.append(
            frame.with_columns(
                what=pl.lit(what), reference=pl.lit(None, parts[0].schema["reference"])
            ).select(parts[0].columns)
        )
    rows = pl.concat(parts, how="vertical_relaxed")
    rank = pl.col("what").replace_strict({m: n for n, m in enumerate(MARKS)}, default=len(MARKS))
    if "similarity" in compared.columns:
        rows = rows.sort(rank, "score", nulls_last=False, maintain_order=True)
        return rows, "cosine", None
    rows = rows.sort(rank, maintain_order=True)
    return rows, "score", rows.filter(~pl.col("what").is_in(["right"])).height


def _right_or_wrong() -> pl.Expr:
    import polars as pl

    return pl.when(pl.col("correct")).then(pl.lit("right")).otherwise(pl.lit("wrong"))
