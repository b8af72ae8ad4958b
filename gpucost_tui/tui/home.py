"""Home: the campaigns here and the recent ones, and how to get another."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widget import Widget
from textual.widgets import DataTable, Static

from gpucost_tui.text import clean, count
from gpucost_tui.tui.listing import Listed, Lister, Listing
from gpucost_tui.tui.next_step import next_place, next_words
from gpucost_tui.tui.safe import cell, filled, plain, state_word
from gpucost_tui.tui.screen import PlaceScreen

if TYPE_CHECKING:
    from gpucost_tui.tui.context import Snapshot

_EVERY_S = 5.0

_EMPTY = (
    "[b]No campaign here yet.[/b]\n\n"
    "A campaign answers one question: which configuration processes the whole corpus, reaches the "
    "minimum quality, finishes before the deadline, and commits the least budget?\n\n"
    "[b $text-accent] d [/] makes the demonstration: 1000 made-up tickets and a tiny classifier, "
    "offline; its passes take about two minutes on two cores.\n"
    "[b $text-accent] n [/] makes a campaign from a template, your corpus and your model.\n\n"
    "In another folder: [b]gpucost DIR[/b]"
)


class HomeScreen(PlaceScreen):
    """Campaigns with state, progress, last verdict and question; the next step is always named."""

    PLACE: ClassVar[str] = "home"
    HELP = (
        "Campaigns of the current folder, the latest first, then those opened recently elsewhere. "
        "Enter opens the highlighted one where its next step is done. The list looks again by "
        "itself every five seconds."
    )
    CSS_PATH = "home.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("o", "open", "Open", tooltip="Open the highlighted campaign"),
        Binding("n", "new", "New", tooltip="Make a campaign from template, corpus and model"),
        Binding("d", "demo", "Demo", tooltip="Make the embedded demonstration, offline"),
        Binding("r", "look", "Look again", tooltip="Read the folder again", show=False),
        Binding("f", "forget", "Forget", tooltip="Take it from the recent ones", show=False),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._lister = Lister()
        self._listing: Listing | None = None
        self._painted: object = None
        self.form_values: dict[str, str] = {}

    def content(self) -> Iterable[Widget]:
        # The table comes with the first campaigns: the first paint does without it.
        yield Static(plain("Looking for campaigns …"), id="empty", markup=False)

    def _mount_table(self) -> None:
        if not self.query(DataTable):
            table: DataTable[object] = DataTable(id="campaigns", cursor_type="row")
            table.border_title = "Campaigns"
            detail = VerticalScroll(Static(id="about", markup=False), id="detail", can_focus=False)
            self.mount_all([table, detail], after="#empty")
        self.call_after_refresh(self._paint)

    def on_mount(self) -> None:
        self.call_after_refresh(self.action_look)
        self.set_interval(_EVERY_S, self._look_again)

    def show(self, snapshot: Snapshot) -> None:
        self._look_again()

    def on_resize(self, event: events.Resize) -> None:
        self._paint()

    # Looking

    def _look_again(self) -> None:
        if self in self.app.screen_stack and self.is_mounted and not self.busy("list"):
            self.action_look()

    def action_look(self) -> None:
        """Read the folder and the recent campaigns."""
        here = self.gpucost.here
        recent = [folder for folder, _ in self.gpucost.remembered.recent]
        self.work(
            "list",
            lambda work: self._lister.list(work, here, recent),
            done=self._listed,
            failed=self._not_listed,
        )

    def _listed(self, listing: Listing) -> None:
        self._listing = listing
        self._paint()

    def _not_listed(self, why: str) -> None:
        if self._listing is None:
            self.query_one("#empty", Static).update(plain(why))

    # Painting

    def _paint(self) -> None:
        listing = self._listing
        if listing is None:
            return
        empty = self.query_one("#empty", Static)
        empty.display = not listing.rows
        for widget in self.query("#campaigns, #detail"):
            widget.display = bool(listing.rows)
        if not listing.rows:
            empty.update(plain(listing.problem) if listing.problem else filled(_EMPTY))
            return
        if not self.query("#about"):
            self._mount_table()
            return
        table = self.query_one(DataTable)
        painted = (listing.rows, self.size.width, self.gpucost.snapshot.folder)
        if painted != self._painted:
            self._painted = painted
            self._fill(table, listing)
        self._about()
        self.refresh_bindings()

    def _fill(self, table: DataTable[object], listing: Listing) -> None:
        kept = self._highlighted()
        columns = _columns(self.size.width)
        table.clear(columns=True)
        for name, width in columns.items():
            table.add_column(name, width=width)
        folders = [row.folder.resolve() for row in listing.rows]
        front = self.gpucost.snapshot.folder
        for number, row in enumerate(listing.rows):
            cells = _cells(row, front is not None and folders[number] == front.resolve())
            table.add_row(*(cell(cells[n], w) for n, w in columns.items()), key=str(number))
        table.border_subtitle = f"{listing.more:,} more are not shown" if listing.more else ""
        wanted = kept.folder if kept else front
        if wanted is not None and wanted.resolve() in folders:
            table.move_cursor(row=folders.index(wanted.resolve()))
        if self.focused is None:
            table.focus()

    def _highlighted(self) -> Listed | None:
        if self._listing is None or not self.query("#about"):
            return None
        at, rows = self.query_one(DataTable).cursor_row, self._listing.rows
        return rows[at] if 0 <= at < len(rows) else None

    def on_data_table_row_highlighted(self) -> None:
        self._about()

    def _about(self) -> None:
        row = self._highlighted()
        if row is None:
            return
        lines = [filled("[b]$x[/b]  [$text-muted]$y[/]", x=row.name, y=row.folder)]
        lines.append(filled("[$text-accent]Next:[/] enter, to $x", x=next_words(row.state)))
        if row.problem:
            lines.append(filled("[$text-error]✗ $x[/]", x=row.problem))
        if row.question:
            lines.append(plain(row.question, limit=600))
        if row.slots:
            lines.append(plain(f"{row.done} of {count(row.slots, 'slot')} done"))
        self.query_one("#about", Static).update(Content("\n").join(lines))

    # Actions

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in ("open", "forget") and self._highlighted() is None:
            return None
        return True

    def on_data_table_row_selected(self) -> None:
        self.action_open()

    def action_open(self) -> None:
        """Open the highlighted campaign where its next step is done."""
        row = self._highlighted()
        if row is not None:
            self.gpucost.open_campaign(row.folder, place=next_place(row.state))

    def action_forget(self) -> None:
        """Take the highlighted campaign from the recent ones; its files stay."""
        row = self._highlighted()
        if row is None:
            return
        key = str(row.folder.resolve())
        memory = self.gpucost.remembered
        memory.recent = [entry for entry in memory.recent if entry[0] != key]
        self.gpucost.keep()
        words = "It stays listed: it is in this folder." if row.here else "Its files stay."
        self.gpucost.say(f"Forgotten: {clean(row.name, limit=60)}. {words}")
        self.action_look()

    def action_new(self) -> None:
        """Open the form for a campaign."""
        from gpucost_tui.tui.new_campaign import NewCampaignDialog

        self.app.push_screen(NewCampaignDialog(self.gpucost.here, self.form_values), self._made)

    def action_demo(self) -> None:
        """Ask where the demonstration goes, and make it."""
        from gpucost_tui.tui.demo_dialog import DemoDialog

        self.app.push_screen(DemoDialog(self.gpucost.here), self._made)

    def _made(self, folder: Path | None) -> None:
        if folder is not None:
            self.form_values.clear()
            self.gpucost.open_campaign(folder, place="review")


def _columns(width: int) -> dict[str, int]:
    """Return the columns that fit, with their widths in cells; each has two cells of padding."""
    if width < 80:
        return {"campaign": max(width - 30, 8), "state": 11, "done": 8}
    columns = {"campaign": 22, "state": 11, "done": 9, "last verdict": 18, "": 8}
    if width >= 110:
        columns = {**columns, "question": max(width - 84, 10)}
    return columns


def _cells(row: Listed, front: bool) -> dict[str, object]:
    where = "open now" if front else "here" if row.here else "recent"
    return {
        "campaign": row.name,
        "state": state_word(row.state),
        "done": f"{row.done} of {row.slots}" if row.slots else None,
        "last verdict": row.verdict or None,
        "": where,
        "question": row.question or None,
    }
