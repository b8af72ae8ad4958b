"""Attempts: the raw table of one campaign, of all known ones, or of a file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Input, Static

from gpucost_tui.text import clean, count
from gpucost_tui.tui.attempts_columns import DEFAULT, shown_columns
from gpucost_tui.tui.attempts_data import Attempts, known_campaigns, of_all, of_campaign, of_file
from gpucost_tui.tui.attempts_query import QUICK, Query, apply, row_like
from gpucost_tui.tui.attempts_words import NO_ATTEMPT, NO_CAMPAIGN, NONE_LEFT, about
from gpucost_tui.tui.safe import TYPED, filled, fit, plain
from gpucost_tui.tui.screen import PlaceScreen
from gpucost_tui.tui.table_view import FrameRows, VirtualTable

if TYPE_CHECKING:
    import polars as pl

    from gpucost_tui.tui.context import Snapshot


class AttemptsScreen(PlaceScreen):
    """One row per attempt, stopped ones included; a virtual table, whatever their number."""

    PLACE: ClassVar[str] = "attempts"
    AUTO_FOCUS = "VirtualTable"
    HELP = (
        "One row is one attempted pass; failed and stopped ones keep theirs. A dash is a missing "
        "measurement: enter tells why. Filters add up; escape takes them back. In the text filter "
        "every word must occur in the row; column:word looks into one column."
    )
    CSS_PATH = "attempts.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "details", "Details", tooltip="All about the highlighted attempt"),
        Binding("p", "predictions", "Predictions", tooltip="Its predictions, wrong ones first"),
        Binding("d", "durations", "Durations", tooltip="One dot a pass, by variant"),
        Binding("slash", "text", "Filter", tooltip="Filter by a typed text"),
        Binding("f", "quick('failed')", "Failed", tooltip="Only failed attempts", show=False),
        Binding("j", "quick('rejected')", "Rejected", tooltip="Only rejected ones", show=False),
        Binding("x", "quick('excluded')", "Excluded", tooltip="Only excluded ones", show=False),
        Binding("v", "variant", "Variant", tooltip="Only the highlighted variant", show=False),
        Binding("escape", "back", "All rows", tooltip="Cancel, or take filters back", show=False),
        Binding("s", "sort", "Sort", tooltip="Sort by a column", show=False),
        Binding("r", "reverse", "Reverse", tooltip="Turn the order round", show=False),
        Binding("c", "columns", "Columns", tooltip="Choose the columns", show=False),
        Binding("e", "export", "Export", tooltip="Write what is shown to a file", show=False),
        Binding("a", "all", "All campaigns", tooltip="One campaign, or all known", show=False),
        Binding("o", "open", "Open table", tooltip="Open a raw table file", show=False),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.attempts: Attempts | None = None
        self.shown: pl.DataFrame | None = None
        self.query_now = Query()
        self.chosen: tuple[str, ...] = DEFAULT
        self._source: str = "campaign"  # or all, or file
        self._read_as: object = None
        self._front: Path | None = None
        self._problem = ""

    def content(self) -> Iterable[Widget]:
        yield Static(id="said", markup=False)
        yield Input(placeholder="words, or column:word", id="filter", compact=True, restrict=TYPED)
        yield Static(id="empty", markup=False)
        yield VirtualTable(id="attempts")
        yield Static(id="about", markup=False)

    def on_mount(self) -> None:
        self._paint()

    # Reading

    def show(self, snapshot: Snapshot) -> None:
        if snapshot.folder not in (self._front, None):
            self._source = "campaign"  # another campaign was opened: it is what one wants to see
        self._front = snapshot.folder
        if self._source == "campaign":
            self._read_campaign(snapshot)

    def on_screen_resume(self) -> None:
        table = self.gpucost.table_asked_for
        if table is not None:
            self.gpucost.table_asked_for = None
            self.read_file(table)

    def _read_campaign(self, snapshot: Snapshot) -> None:
        folder, state = snapshot.folder, snapshot.state
        key = (folder, snapshot.versions.get("journal"), snapshot.problem)
        if key == self._read_as:
            return
        self._read_as = key
        self._problem = snapshot.problem or ""
        if folder is None or state is None:
            self.attempts = self.shown = None
            self._paint()
            return
        if self.attempts is not None and self.attempts.folder != folder:
            self.query_now = replace(self.query_now, variant=None)
        name = snapshot.name
        self.work(
            "read",
            lambda work: of_campaign(folder, name, state),
            done=self._read,
            failed=self._failed,
        )

    def read_file(self, path: Path) -> None:
        """Open a raw table file."""
        self._source, self._read_as = "file", None
        self.query_one("#said", Static).update(plain(f"Reading {clean(path.name, limit=60)} …"))
        self.work("read", lambda work: of_file(path), done=self._opened, failed=self._failed)

    def _opened(self, attempts: Attempts) -> None:
        self._source, self._read_as = "file", None
        self.query_now = Query()
        for note in attempts.notes:
            self.gpucost.say(note, severity="warning")
        self._read(attempts)

    def _read(self, attempts: Attempts) -> None:
        self.attempts, self._problem = attempts, ""
        self._look()

    def _failed(self, why: str) -> None:
        self._problem = why
        self._paint()

    def _progressed(self, text: str, done: int | None, total: int | None) -> None:
        step = f" ({done + 1} of {total})" if done is not None and total else ""
        self.query_one("#said", Static).update(plain(f"{text}{step} … escape cancels"))

    # Which rows, and in which order

    def look_for(self, query: Query) -> None:
        """Show what another query keeps."""
        self.query_now = query
        self._look()

    def _look(self) -> None:
        attempts, query = self.attempts, self.query_now
        if attempts is not None:
            self.work(
                "look",
                lambda work: apply(query, attempts.frame),
                done=self._looked,
                failed=self._failed,
            )

    def _looked(self, frame: pl.DataFrame) -> None:
        table, kept = self.query_one(VirtualTable), self.highlighted()
        self.shown = frame
        attempts = self.attempts
        assert attempts is not None  # noqa: S101 - it was looked at
        table.frozen = 2 if attempts.many else 1
        cursor = row_like(frame, kept) if kept else 0
        table.fill(FrameRows(frame), shown_columns(self.chosen, many=attempts.many), cursor=cursor)
        self._paint()

    def highlighted(self) -> dict[str, Any] | None:
        """Return the highlighted attempt's row, every column."""
        return self._row(0)

    def _row(self, further: int) -> dict[str, Any] | None:
        row = self.query_one(VirtualTable).cursor + further
        if self.shown is None or not 0 <= row < self.shown.height:
            return None
        return self.shown.row(row, named=True)

    # Painting

    def _paint(self) -> None:
        table, empty = self.query_one(VirtualTable), self.query_one("#empty", Static)
        frame = self.shown
        rows = frame is not None and frame.height > 0
        table.display = self.query_one("#about").display = rows
        empty.display = not rows
        if not rows:
            empty.update(self._why_empty())
        elif self.focused is None:
            table.focus()
        self.query_one("#said", Static).update(self._said())
        self.refresh_bindings()

    def _why_empty(self) -> Content:
        if self._problem:
            return filled("[$text-error]✗ $x[/]", x=self._problem)
        if self.attempts is None:
            return filled(NO_CAMPAIGN) if self.gpucost.snapshot.folder is None else plain("…")
        if self.attempts.frame.height and self.query_now.filtered:
            return filled(NONE_LEFT, x=self.query_now.said())
        return filled(NO_ATTEMPT)

    def _said(self) -> Content:
        if self.attempts is None or self.shown is None:
            return plain("")
        all_, here = self.attempts.frame.height, self.shown.height
        number = count(all_, "attempt") if here == all_ else f"{here:,} of {all_:,} attempts"
        said = self.query_now.said()
        more = f" · {said}" if said else ""
        problems = f" · ! {self._problem}" if self._problem and here else ""
        if self.attempts.many and self.attempts.notes:
            problems += f" · ! not read: {'; '.join(self.attempts.notes)}"
        title = fit(self.attempts.title, max(self.size.width // 2, 12))
        return filled("[b]$t[/b] · $n$m$p", t=title, n=number, m=more, p=problems)

    def on_virtual_table_highlighted(self) -> None:
        row = self.highlighted()
        self.query_one("#about", Static).update(about(row) if row else "")

    def on_virtual_table_chosen(self) -> None:
        self.action_details()

    def on_virtual_table_head_clicked(self, event: VirtualTable.HeadClicked) -> None:
        self._sorted_by(event.column)

    # Actions

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in ("details", "predictions", "variant") and self.highlighted() is None:
            return None
        if action in ("durations", "export", "sort", "reverse") and self.shown is None:
            return None
        return True

    def action_details(self) -> None:
        """Show all that is known of the highlighted attempt."""
        row = self.highlighted()
        if row is not None:
            from gpucost_tui.tui.attempts_detail import AttemptDialog

            self.app.push_screen(AttemptDialog(row, self._beside))

    def _beside(self, step: int) -> dict[str, Any] | None:
        row = self._row(step)
        if row is not None:
            self.query_one(VirtualTable).cursor += step
        return row

    def action_predictions(self) -> None:
        row = self.highlighted()
        if row is not None:
            from gpucost_tui.tui.attempts_predictions import PredictionsDialog

            self.app.push_screen(PredictionsDialog(row))

    def action_durations(self) -> None:
        if self.attempts is not None and self.shown is not None:
            from gpucost_tui.tui.attempts_durations import DurationsDialog

            said = self.query_now.said() if self.query_now.filtered else ""
            self.app.push_screen(DurationsDialog(self.attempts, self.shown, said))

    def action_text(self) -> None:
        field = self.query_one("#filter", Input)
        field.display = True
        field.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        self.look_for(replace(self.query_now, text=event.value))

    def on_input_submitted(self) -> None:
        self.query_one(VirtualTable).focus()

    def action_quick(self, name: str) -> None:
        """Keep only failed, rejected or excluded attempts; once more takes it back."""
        if name in QUICK:
            quick = "" if self.query_now.quick == name else name
            self.look_for(replace(self.query_now, quick=quick))

    def action_variant(self) -> None:
        row = self.highlighted()
        if row is not None:
            variant = None if self.query_now.variant is not None else row["variant"]
            self.look_for(replace(self.query_now, variant=variant))

    def action_back(self) -> None:
        """Cancel reading; else take the filters back."""
        if self.busy("read"):
            self.cancel("read")
            self._failed("Reading was cancelled. a or o reads again.")
            return
        field = self.query_one("#filter", Input)
        with self.prevent(Input.Changed):
            field.value = ""
        field.display = False
        self.query_one(VirtualTable).focus()
        self.look_for(Query(sort=self.query_now.sort, descending=self.query_now.descending))

    def action_sort(self) -> None:
        from gpucost_tui.campaign.columns import MEANING
        from gpucost_tui.tui.pick import PickDialog

        options = [("", plain("as they were made"))]
        options += [(name, filled("[b]$n[/b]  $m", n=name, m=m)) for name, m in MEANING.items()]
        self.app.push_screen(
            PickDialog("Sort by", options, self.query_now.sort),
            lambda name: None if name is None else self._sorted_by(name),
        )

    def _sorted_by(self, name: str) -> None:
        again = bool(name) and name == self.query_now.sort
        descending = again and not self.query_now.descending
        self.look_for(replace(self.query_now, sort=name, descending=descending))

    def action_reverse(self) -> None:
        query = self.query_now
        sort = query.sort or "attempt"
        self.look_for(replace(query, sort=sort, descending=not query.descending))

    def action_columns(self) -> None:
        from gpucost_tui.campaign.columns import MEANING
        from gpucost_tui.tui.attempts_dialogs import ColumnsDialog

        columns = {name: meaning for name, meaning in MEANING.items() if name != "attempt"}
        self.app.push_screen(ColumnsDialog(columns, self.chosen), self._columns_chosen)

    def _columns_chosen(self, chosen: tuple[str, ...] | None) -> None:
        if chosen is not None:
            self.chosen = chosen
            self._look()

    def action_export(self) -> None:
        if self.shown is None or self.attempts is None:
            return
        from gpucost_tui.tui.attempts_dialogs import ExportDialog

        columns = [c.name for c in shown_columns(self.chosen, many=self.attempts.many)]
        self.app.push_screen(
            ExportDialog(self.gpucost.here, "attempts.csv", self.shown, columns),
            lambda said: self.gpucost.say(said) if said else None,
        )

    def action_all(self) -> None:
        """Change between the campaign in front and all known ones."""
        if self._source == "all":
            self._source, self._read_as = "campaign", None
            self._read_campaign(self.gpucost.snapshot)
            return
        self._source, self._read_as = "all", None
        here, recent = self.gpucost.here, [f for f, _ in self.gpucost.remembered.recent]
        self._progressed("Reading campaigns", None, None)
        self.work(
            "read",
            lambda work: of_all(work, known_campaigns(here, recent)),
            done=self._read,
            failed=self._failed,
            progress=self._progressed,
        )

    def action_open(self) -> None:
        from gpucost_tui.tui.attempts_dialogs import OpenTableDialog

        self.app.push_screen(
            OpenTableDialog(self.gpucost.here),
            lambda attempts: self._opened(attempts) if attempts is not None else None,
        )
