"""The dialog with all raw durations: one dot a pass, median, minimum, maximum, what is settled;
and beside them quality and the entries predicted differently."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Label, Static

from gpucost_tui.errors import GpucostError
from gpucost_tui.text import clean
from gpucost_tui.tui.attempts_columns import FOLDER
from gpucost_tui.tui.attempts_data import Attempts, without_own
from gpucost_tui.tui.safe import filled, plain
from gpucost_tui.tui.whole import WholeDialog
from gpucost_tui.tui.work import Work

if TYPE_CHECKING:
    import polars as pl

    from gpucost_tui.analysis.compare import Comparison
    from gpucost_tui.analysis.predicted import Flips, Quality

#: More groups than this are no picture any more; the table says them all.
_MOST = 400
_SYNTHETIC = "A synthetic demonstration: its quality says nothing of real documents."


@dataclass(frozen=True)
class Compared:
    """The durations of one campaign or table, or why they can't be compared."""

    title: str
    folder: Path | None
    comparison: Comparison | None
    problem: str = ""


@dataclass(frozen=True)
class Predicted:
    """What the variants of a campaign predicted, or why that can't be told."""

    qualities: tuple[Quality, ...] = ()
    flips: tuple[Flips, ...] = ()
    synthetic: bool = False
    problem: str = ""


def compared(work: Work, attempts: Attempts, frame: pl.DataFrame) -> list[Compared]:
    """Compare the variants of rows, each campaign apart and by its own sealed rule.

    Args:
        work: Reports progress.
        attempts: Where the rows come from.
        frame: The rows: all of a source, or what a filter left of them.
    """
    parts = list(_campaigns(attempts, frame))
    found = []
    for number, (title, folder, rows) in enumerate(parts):
        work.report("Comparing durations", number, len(parts))
        try:
            found.append(Compared(title, folder, _compare(folder, rows)))
        except GpucostError as error:
            found.append(Compared(title, folder, None, str(error)))
    return found


def predicted(work: Work, found: Iterable[Compared]) -> dict[Path, Predicted]:
    """Return what the variants of each campaign predicted; prediction files are read for it."""
    from gpucost_tui.analysis.predicted import qualities, variant_flips
    from gpucost_tui.analysis.together import read_together

    told: dict[Path, Predicted] = {}
    for part in found:
        if part.folder is None or part.comparison is None or _too_many(part.comparison):
            continue
        flips: list[Flips] = []
        pairs = part.comparison.pairs
        try:
            together = read_together([part.folder])
            for number, pair in enumerate(pairs):
                work.report("Comparing predictions", number, len(pairs))
                flips += variant_flips(together, [pair])
            synthetic = together.protocol.corpus.synthetic
            told[part.folder] = Predicted(tuple(qualities(together)), tuple(flips), synthetic)
        except GpucostError as error:
            told[part.folder] = Predicted(problem=str(error))
    return told


def _campaigns(
    attempts: Attempts, frame: pl.DataFrame
) -> Iterator[tuple[str, Path | None, pl.DataFrame]]:
    import polars as pl

    if not attempts.many:
        folders = frame[FOLDER].drop_nulls().unique()
        yield attempts.title, Path(folders[0]) if len(folders) else None, frame
        return
    for folder in frame[FOLDER].unique(maintain_order=True):
        rows = frame.filter(pl.col(FOLDER) == folder)
        yield f"{rows['campaign'][0]}  ({folder})", Path(folder), rows


def _compare(folder: Path | None, rows: pl.DataFrame) -> Comparison:
    from gpucost_tui.analysis.compare import compare, sealed_reading
    from gpucost_tui.campaign.fold import fold
    from gpucost_tui.campaign.folder import Campaign

    reading = None
    if folder is not None:
        campaign = Campaign.open(folder)
        protocol = campaign.manifest.protocol
        reading = sealed_reading(protocol, fold(campaign.events()).rounds(protocol))
    return compare(without_own(rows), reading)


class DurationsDialog(WholeDialog):
    """Every duration of every variant: the median hides none.

    Args:
        attempts: Where the rows come from.
        frame: The rows to compare.
        said: Which rows these are, in words; empty: all.
    """

    HELP = (
        "One dot a pass; dots that fall on one cell are stacked. Below: which differences are "
        "settled by the sealed rule, and what could settle the others; of all rows of a campaign "
        "also the lowest quality of each variant, and the entries predicted differently."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "back", "Close", tooltip="Cancel, or back to the table"),
    ]

    def __init__(self, attempts: Attempts, frame: pl.DataFrame, said: str) -> None:
        super().__init__()
        self._attempts, self._frame, self._filter = attempts, frame, said
        self.found: list[Compared] | None = None
        self.told: dict[Path, Predicted] = {}
        self._telling = ""

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Label(
                filled("[b]Durations[/b] of the measured passes, in seconds  [$text-muted]esc[/]"),
                classes="dialog-title",
            )
            with VerticalScroll(classes="dialog-body"):
                yield Static(id="dots", markup=False)

    def on_mount(self) -> None:
        self.query_one(VerticalScroll).focus()
        self._progressed("Comparing durations", None, None)
        self.work(
            "durations",
            lambda work: compared(work, self._attempts, self._frame),
            done=self._done,
            failed=self._failed,
            progress=self._progressed,
        )

    def _progressed(self, text: str, done: int | None, total: int | None) -> None:
        step = f" ({done + 1} of {total})" if done is not None and total else ""
        self.query_one("#dots", Static).update(plain(f"{text}{step} … escape cancels"))

    def _failed(self, why: str) -> None:
        self.query_one("#dots", Static).update(filled("[$text-error]✗ $x[/]", x=why))

    def _done(self, found: list[Compared]) -> None:
        self.found = found
        self._paint()
        # Of all rows only: quality and flips are those of every pass.
        if not self._filter:
            self.work(
                "predictions",
                lambda work: predicted(work, found),
                done=self._predicted,
                failed=self._tell,
                progress=lambda text, done, total: self._tell(f"{text} ({done} of {total}) …"),
            )

    def _predicted(self, told: dict[Path, Predicted]) -> None:
        self.told = told
        self._tell("")

    def _tell(self, words: str) -> None:
        self._telling = words
        self._paint()

    def on_resize(self, event: events.Resize) -> None:
        self.call_after_refresh(self._paint)

    def _paint(self) -> None:
        if self.found is not None and self.is_mounted:
            width = self.query_one(VerticalScroll).scrollable_content_region.width
            lines = list(self._lines(self.found, max(width, 60)))
            self.query_one("#dots", Static).update(Content("\n").join(lines))

    def _lines(self, found: Iterable[Compared], width: int) -> Iterator[Content]:
        if self._filter:
            yield filled("[$text-warning]Only what is shown: $x[/]", x=self._filter)
        for part in found:
            yield filled("[b]$x[/b]", x=part.title)
            if part.comparison is None:
                yield filled("[$text-error]✗ $x[/]", x=part.problem)
            elif not any(group.durations_s for group in part.comparison.variants):
                yield plain("No measured pass yet: durations appear with the first one.")
            else:
                yield from map(plain, _drawn(part.comparison, width))
                yield from self._beside(part, width)
            yield Content("")
        if self._telling:
            yield filled("[$text-muted]$x[/]", x=self._telling)

    def _beside(self, part: Compared, width: int) -> Iterator[Content]:
        from gpucost_tui.analysis.render import predicted_lines

        told = self.told.get(part.folder) if part.folder is not None else None
        if told is not None and told.problem:
            yield filled("[$text-error]✗ Predictions: $x[/]", x=told.problem)
        elif told is not None:
            yield from map(plain, predicted_lines(told.qualities, told.flips, width=width))
            if told.synthetic:
                yield filled("[$text-warning]$x[/]", x=_SYNTHETIC)

    def action_back(self) -> None:
        self.cancel("durations")
        self.cancel("predictions")
        self.dismiss()


def _too_many(comparison: Comparison) -> bool:
    return len(comparison.variants) > _MOST


def _drawn(comparison: Comparison, width: int) -> list[str]:
    from gpucost_tui.analysis.render import compare_lines

    if _too_many(comparison):
        many = len(comparison.variants)
        return [clean(f"{many:,} groups: filter the table to {_MOST} or fewer to see their dots.")]
    return compare_lines(comparison, width=width)
