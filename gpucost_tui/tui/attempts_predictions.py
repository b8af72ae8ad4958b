"""The dialog with an attempt's predictions: a virtual table, and the highlighted one in full."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Input, Label, Static

from gpucost_tui.text import clean, count
from gpucost_tui.tui.attempts_prediction_rows import Predictions, read_predictions
from gpucost_tui.tui.safe import TYPED, filled, plain
from gpucost_tui.tui.table_view import Column, FrameRows, VirtualTable, words
from gpucost_tui.tui.whole import WholeDialog
from gpucost_tui.tui.work import Work

if TYPE_CHECKING:
    import polars as pl

_GLYPH = {"right": "✓", "wrong": "✗", "missing": "✗", "repeated": "!", "not asked for": "!"}
_NUMBERS = 6


class PredictionsDialog(WholeDialog):
    """Predictions beside text and reference, wrong ones first.

    Args:
        row: The attempt's row.
    """

    HELP = (
        "Wrong predictions stand first, where vectors are compared the least alike ones. w leaves "
        "out the right ones, / looks for a text in id, text, reference and prediction."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "Close", tooltip="Cancel, leave the search, or close"),
        Binding("w", "wrong", "Only wrong", tooltip="Show or leave out the right ones"),
        Binding("slash", "search", "Search", tooltip="Look for a text"),
    ]

    def __init__(self, row: dict[str, Any]) -> None:
        super().__init__()
        self.row = row
        self.found: Predictions | None = None
        self.only_wrong = False

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Label(self._title(), classes="dialog-title")
            yield Static(id="said", markup=False)
            yield Input(placeholder="a text to look for", id="search", compact=True, restrict=TYPED)
            yield VirtualTable(id="predictions", frozen=2)
            yield VerticalScroll(Static(id="entry", markup=False), id="whole", can_focus=False)

    def _title(self) -> Content:
        return filled(
            "[b]Predictions of attempt $n[/b] $v  [$text-muted]w wrong  / search  esc[/]",
            n=self.row["attempt"],
            v=clean(self.row["variant"], limit=24),
        )

    def on_mount(self) -> None:
        self.query_one(VirtualTable).focus()
        row = self.row
        self.work(
            "predictions",
            lambda work: read_predictions(work, row),
            done=self._done,
            failed=self._failed,
            progress=self._progressed,
        )

    def _progressed(self, text: str, done: int | None, total: int | None) -> None:
        step = f" ({done + 1} of {total})" if done is not None and total else ""
        self._say(f"{text}{step} … escape cancels")

    def _failed(self, why: str) -> None:
        self._say(f"✗ {why}")

    def _say(self, sentence: str) -> None:
        self.query_one("#said", Static).update(plain(sentence))

    def _done(self, found: Predictions) -> None:
        self.found = found
        self._look()

    # Which rows

    def _look(self) -> None:
        found = self.found
        if found is None:
            return
        only, text = self.only_wrong, self.query_one(Input).value
        self.work(
            "rows",
            lambda work: _chosen(work, found.frame, only, text),
            done=self._fill,
            failed=self._failed,
        )

    def _fill(self, frame: pl.DataFrame) -> None:
        found = self.found
        if found is None:
            return
        columns = (
            Column("what", "", False, 16, _mark, _tone),
            Column("id", "id", False, 20),
            Column("text", "text", False, max(16, min(self.size.width - 66, 60))),
            Column("reference", "reference", False, 22, _short),
            Column("prediction", "prediction", False, 22, _short),
            Column("score", found.measure, True, 10, _score),
        )
        self.query_one(VirtualTable).fill(FrameRows(frame), columns)
        parts = [f"{frame.height:,} of {count(found.frame.height, 'entry', 'entries')}"]
        if found.wrong is not None:
            parts.append(f"{found.wrong:,} not right")
        if self.only_wrong:
            parts.append("right ones are left out")
        self._say(" · ".join([*parts, *found.notes]))

    def on_virtual_table_highlighted(self, event: VirtualTable.Highlighted) -> None:
        cells = event.table.cells(event.row)
        if not cells:
            self.query_one("#entry", Static).update("")
            return
        lines = [
            filled(
                "[b]$id[/b]  $what", id=clean(cells["id"], limit=400), what=_mark(cells["what"])
            ),
            filled(
                "reference [b]$r[/b]  prediction [b]$p[/b]  $m $s",
                r=_short(cells["reference"], 24),
                p=_short(cells["prediction"], 24),
                m=self.found.measure if self.found else "",
                s=_score(cells["score"]),
            ),
            plain(words(cells["text"])),
        ]
        self.query_one("#entry", Static).update(Content("\n").join(lines))
        self.query_one("#whole").scroll_home(animate=False)

    # Actions

    def action_wrong(self) -> None:
        self.only_wrong = not self.only_wrong
        self._look()

    def action_search(self) -> None:
        search = self.query_one(Input)
        search.display = True
        search.focus()

    def on_input_changed(self) -> None:
        self._look()

    def on_input_submitted(self) -> None:
        self.query_one(VirtualTable).focus()

    def action_back(self) -> None:
        search = self.query_one(Input)
        if self.busy("predictions"):
            self.cancel("predictions")
            self.dismiss()
        elif search.display:
            search.display = False
            search.value = ""
            self.query_one(VirtualTable).focus()
        else:
            self.dismiss()


def _chosen(work: Work, frame: pl.DataFrame, only_wrong: bool, text: str) -> pl.DataFrame:
    import polars as pl

    if only_wrong:
        frame = frame.filter(pl.col("what") != "right")
    for word in text.split():
        work.report("Searching")
        cells = [pl.col(n) for n, kind in frame.schema.items() if kind == pl.String]
        joined = pl.concat_str(cells, separator="\x1f", ignore_nulls=True).str.to_lowercase()
        frame = frame.filter(joined.str.contains(word.lower(), literal=True))
    return frame


def _mark(what: str) -> str:
    return f"{_GLYPH.get(what, '·')} {what}"


def _tone(what: str) -> str:
    return "good" if what == "right" else "bad" if what in ("wrong", "missing") else ""


def _short(value: Any, numbers: int = _NUMBERS) -> str:
    """Return a label, or the first numbers of a vector with its length."""
    if not isinstance(value, list):
        return words(value)
    some = ", ".join("-" if v is None else f"{v:.4g}" for v in value[:numbers])
    return f"[{len(value)}] {some}{' …' if len(value) > numbers else ''}"


def _score(value: float | None) -> str:
    return "-" if value is None else f"{value:.6f}"
