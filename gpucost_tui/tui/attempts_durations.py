"""The dialog with all raw durations: one dot a pass, median, minimum, maximum, and what differs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

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

#: More groups than this are no picture any more; the table says them all.
_MOST = 400


@dataclass(frozen=True)
class Compared:
    """The durations of one campaign or table, or why they can't be compared."""

    title: str
    comparison: Comparison | None
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
            found.append(Compared(title, _compare(folder, rows)))
        except GpucostError as error:
            found.append(Compared(title, None, str(error)))
    return found


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
        "settled by the sealed rule, and what could settle the others."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "back", "Close", tooltip="Cancel, or back to the table"),
    ]

    def __init__(self, attempts: Attempts, frame: pl.DataFrame, said: str) -> None:
        super().__init__()
        self._attempts, self._frame, self._filter = attempts, frame, said
        self.found: list[Compared] | None = None

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
            yield Content("")

    def action_back(self) -> None:
        self.cancel("durations")
        self.dismiss()


def _drawn(comparison: Any, width: int) -> list[str]:
    from gpucost_tui.analysis.render import compare_lines

    many = len(comparison.variants)
    if many > _MOST:
        return [clean(f"{many:,} groups: filter the table to {_MOST} or fewer to see their dots.")]
    lines: list[str] = compare_lines(comparison, width=width)
    return lines
