"""Pricing: price lists, windows, lots, and what an accepted corpus costs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, cast

from textual.binding import Binding, BindingType
from textual.containers import Container, Horizontal, VerticalScroll
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Button, Input, Label, Static

from gpucost_tui.text import clean, money
from gpucost_tui.tui.pricing_commit import Wish, record
from gpucost_tui.tui.pricing_facts import Facts, read_facts
from gpucost_tui.tui.pricing_state import (
    VIEWS,
    Asked,
    Entry,
    as_pack,
    columns,
    committed_usd,
    counted,
    entries,
    first_row,
    packs_of,
    shown_columns,
)
from gpucost_tui.tui.pricing_window import GivenWindow
from gpucost_tui.tui.pricing_words import (
    ByHand,
    offer_panel,
    pack_panel,
    said,
    ways,
    why_empty,
    window_words,
)
from gpucost_tui.tui.safe import filled, plain
from gpucost_tui.tui.screen import PlaceScreen
from gpucost_tui.tui.table_view import ListRows, VirtualTable
from gpucost_tui.tui.tick import Tick

if TYPE_CHECKING:
    from gpucost_tui.pricing.catalogue import Catalogue, HourlyOffer, PackPrice
    from gpucost_tui.tui.context import Snapshot

_DAYS = (None, 3, 7, 30)


class PricingScreen(PlaceScreen):
    """A pack is paid whole, however short the run; hourly offers stand apart."""

    PLACE: ClassVar[str] = "pricing"
    HELP = (
        "Prices are dated facts of the lists in force. A pack is committed whole: price of a lot "
        "times lots, whatever GPUs a lot holds. The cost per accepted corpus is that amount over "
        "the distinct corpora that the campaign's verdicts accept, or that you state by hand."
    )
    CSS_PATH = "pricing.tcss"
    AUTO_FOCUS = "VirtualTable"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "commit", "Commit", tooltip="Record it as the campaign's commitment"),
        Binding("c", "view('window')", "Covering", tooltip="What covers the window, and what not"),
        Binding("w", "window", "Window", tooltip="Give a window by dates"),
        Binding(
            "s", "need", "Schedule", tooltip="The window of the campaign's schedule", show=False
        ),
        Binding("p", "view('packs')", "Packs", tooltip="Flat packs by lot", show=False),
        Binding("h", "view('hourly')", "Hourly", tooltip="Pay-as-you-go offers", show=False),
        Binding("plus,equals_sign", "lots(1)", "Lots +", tooltip="One lot more", priority=True),
        Binding("minus", "lots(-1)", "Lots -", tooltip="One less", priority=True, show=False),
        Binding("l", "field('lots')", "Lots", tooltip="Type the number of lots", show=False),
        Binding("n", "field('accepted')", "Accepted", tooltip="State corpora by hand", show=False),
        Binding("k", "checked", "Checked", tooltip="Quality checked by me, or not", show=False),
        Binding("g", "gpu", "GPU", tooltip="Only one GPU", show=False),
        Binding("d", "days", "Days", tooltip="Only packs of 3, 7 or 30 days", show=False),
        Binding("v", "provider", "Provider", tooltip="Only one provider", show=False),
        Binding("r", "look", "Look again", tooltip="Read the price lists again", show=False),
        Binding("escape", "back", "Any", tooltip="Take the filters back", show=False),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.asked = Asked()
        self.hand = ByHand()
        self.facts = Facts()
        self.catalogue: Catalogue | None = None
        self.entries: list[Entry] = []
        self.seconds: Fraction | None = None
        self.basis = ""
        self._by_schedule = False
        self._window_texts: tuple[str, ...] = ()
        self._problem = ""
        self._read_as: object = None
        self._begun_at: object = None  # the price that the place itself put the cursor on

    def content(self) -> Iterable[Widget]:
        yield Static(id="said", markup=False)
        yield Static(id="empty", markup=False)
        yield VirtualTable(id="prices")
        yield VerticalScroll(Static(id="words", markup=False), id="panel", can_focus=False)
        with Container(id="form"):
            with Horizontal(classes="part"):
                yield Label("Lots")
                yield Button("-", id="minus", compact=True)
                yield Input("1", id="lots", compact=True, restrict="[0-9]*", max_length=5)
                yield Button("+", id="plus", compact=True)
            with Horizontal(classes="part"):
                yield Label("Accepted")
                yield Input(
                    id="accepted",
                    compact=True,
                    restrict="[0-9]*",
                    max_length=7,
                    placeholder="verdicts",
                )
                yield Tick("quality checked by me", id="checked")

    def on_mount(self) -> None:
        self.query_one("#said", Static).update(plain("Reading the price lists …"))
        self.call_after_refresh(self.action_look)

    # Reading

    def action_look(self) -> None:
        """Read the price lists in force again."""
        self.work("prices", _load, done=self._loaded, failed=self._failed)

    def _loaded(self, catalogue: Catalogue) -> None:
        self.catalogue, self._problem = catalogue, ""
        known = (self.asked.gpu in catalogue.gpus(), self.asked.provider in catalogue.providers())
        if not known[0]:
            self.asked = replace(self.asked, gpu=None)
        if not known[1]:
            self.asked = replace(self.asked, provider=None)
        self._fill()

    def _failed(self, why: str) -> None:
        self._problem = why
        self._fill()

    def show(self, snapshot: Snapshot) -> None:
        versions = snapshot.versions
        key = (snapshot.folder, *(versions.get(n) for n in ("journal", "manifest", "protocol")))
        if key == self._read_as:
            return
        if snapshot.folder is None or snapshot.state is None:
            self._read(Facts())
            return
        self._read_as = key
        self.work("campaign", lambda work: read_facts(snapshot), done=self._read)

    def _read(self, facts: Facts) -> None:
        self.facts = facts
        if self._by_schedule:
            self._take_need()
        self._fill()

    # Painting

    def ask(self, asked: Asked) -> None:
        """Ask something else of the price lists."""
        again = asked.view != self.asked.view
        self.asked = asked
        self._fill(top=again)

    def _fill(self, *, top: bool = False) -> None:
        table, empty = self.query_one(VirtualTable), self.query_one("#empty", Static)
        kept = self._entry()
        self.entries = []
        if self.catalogue is not None:
            self.entries = entries(self.catalogue, self.asked, self.seconds)
        shown = bool(self.entries) and not (self.asked.view == "window" and self.seconds is None)
        table.display, empty.display = shown, not shown
        empty.update(self._why_empty())
        cursor = self._cursor(None if top else kept)
        names = [column.name for column in columns(self.asked.view)]
        look = shown_columns(self.asked.view, window=self.seconds is not None)
        table.fill(ListRows([e.cells for e in self.entries], names), look, cursor=cursor)
        if shown and self.focused is None:
            table.focus()
        self._said()
        self._panel()

    def _cursor(self, kept: Entry | None) -> int:
        """Return the row for the cursor: where somebody put it, else where a price is."""
        prices = [entry.price for entry in self.entries]
        if kept and kept.price != self._begun_at and kept.price in prices:
            return prices.index(kept.price)
        # What covers a window stands on top, the cheapest first, whatever the campaign ran on.
        row = first_row(self.entries, () if self.asked.view == "window" else self.facts.gpus)
        self._begun_at = prices[row] if prices else None
        return row

    def _why_empty(self) -> Content:
        if self._problem:
            return filled("[$text-error]✗ $x[/]", x=self._problem)
        if self.catalogue is None:
            return plain("Reading the price lists …")
        return why_empty(self.asked, self.seconds)

    def _said(self) -> None:
        found = counted(self.entries, self.asked, self.seconds) if self.catalogue else ""
        if self._problem and self.entries:
            found += f" · ! {self._problem}"
        window = window_words(self.seconds, self.basis)
        self.query_one("#said", Static).update(said(self.asked, window, found))

    def _panel(self) -> None:
        entry, words = self._entry(), self.query_one("#words", Static)
        if entry is None or not self.query_one(VirtualTable).display:
            words.update("")
        elif (pack := as_pack(entry.price)) is not None:
            content = pack_panel(pack, self.asked, self.seconds, self.facts, self.hand)
            words.update(Content("\n").join([content, *self._ways()]))
        else:
            words.update(offer_panel(cast("HourlyOffer", entry.price)))
        self.refresh_bindings()

    def _ways(self) -> Iterable[Content]:
        """Say what to do where no pack covers the window: renewal is never assumed."""
        if self.seconds is None or self.seconds <= 30 * 86_400 * self.asked.periods:
            return
        packs = packs_of(self.entries)
        priced = tuple(sorted({row.days for row in packs if row.usd_per_lot is not None}))
        yield filled("[$text-warning]! $x[/]", x=ways(self.seconds, priced))

    def _entry(self) -> Entry | None:
        row = self.query_one(VirtualTable).cursor
        return self.entries[row] if 0 <= row < len(self.entries) else None

    def _pack(self) -> PackPrice | None:
        entry = self._entry()
        shown = self.query_one(VirtualTable).display
        return as_pack(entry.price) if entry is not None and shown else None

    def on_virtual_table_highlighted(self) -> None:
        self._panel()

    def on_virtual_table_chosen(self) -> None:
        self.action_commit()

    # What is asked for

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "commit" and (self._pack() is None or not self.gpucost.snapshot.sealed):
            return None
        return True

    def action_view(self, view: str) -> None:
        """Show packs, hourly offers, or what covers the window."""
        if view in VIEWS:
            self.ask(replace(self.asked, view=view))

    def action_lots(self, step: int) -> None:
        """Take one lot more, or one less."""
        self._lots(self.asked.lots + step)

    def _lots(self, number: int) -> None:
        from gpucost_tui.pricing.calculator import MAX_LOTS

        number = max(1, min(number, MAX_LOTS))
        field = self.query_one("#lots", Input)
        if field.value != str(number):
            with self.prevent(Input.Changed):
                field.value = str(number)
        self.ask(replace(self.asked, lots=number))

    def action_field(self, name: str) -> None:
        """Put the cursor into a field."""
        if name in ("lots", "accepted"):
            self.query_one(f"#{name}", Input).focus()

    def action_checked(self) -> None:
        self.query_one(Tick).toggle()

    def on_input_changed(self, event: Input.Changed) -> None:
        if event.input.id == "lots":
            if event.value:
                self._lots(int(event.value))
        else:
            self.hand = replace(self.hand, text=event.value)
            self._panel()

    def on_input_submitted(self) -> None:
        self.query_one(VirtualTable).focus()

    def on_checkbox_changed(self, event: Tick.Changed) -> None:
        self.hand = replace(self.hand, checked=event.value)
        self._panel()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        self.action_lots(1 if event.button.id == "plus" else -1)

    def action_days(self) -> None:
        """Show packs of 3, 7, 30 or any days, in turn."""
        following = _DAYS[(_DAYS.index(self.asked.days) + 1) % len(_DAYS)]
        self.ask(replace(self.asked, days=following))

    def action_gpu(self) -> None:
        if self.catalogue is not None:
            names = self.catalogue.gpus()
            self._pick("GPU", names, self.asked.gpu, lambda gpu: replace(self.asked, gpu=gpu))

    def action_provider(self) -> None:
        if self.catalogue is not None:
            names = self.catalogue.providers()
            self._pick(
                "Provider", names, self.asked.provider, lambda p: replace(self.asked, provider=p)
            )

    def _pick(self, title: str, names: Iterable[str], current: str | None, then: Any) -> None:
        from gpucost_tui.tui.pick import PickDialog

        options = [("", plain("any")), *((n, plain(n, one_line=True, limit=80)) for n in names)]
        self.app.push_screen(
            PickDialog(title, options, current or ""),
            lambda name: None if name is None else self.ask(then(name or None)),
        )

    def action_back(self) -> None:
        """Take the filters back, and go to the table."""
        self.query_one(VirtualTable).focus()
        self.ask(replace(self.asked, gpu=None, days=None, provider=None))

    # The window

    def action_window(self) -> None:
        from gpucost_tui.tui.pricing_window import WindowDialog

        self.app.push_screen(WindowDialog(self._window_texts), self._window_given)

    def _window_given(self, given: GivenWindow | None) -> None:
        if given is None:
            return
        self._by_schedule = False
        self._window_texts, self.seconds, self.basis = given.texts, given.seconds, given.basis
        self.ask(replace(self.asked, periods=given.periods, view="window"))

    def action_need(self) -> None:
        """Take the window that the campaign's schedule needs."""
        self._by_schedule = True
        if self._take_need():
            self.ask(replace(self.asked, view="window"))

    def _take_need(self) -> bool:
        need, why = self.facts.need, self.facts.need_problem
        if need is None or need.schedule is None:
            self._by_schedule = False
            unknown = ", ".join(clean(name, limit=40) for name in (need.unknown if need else ()))
            if unknown:
                why = f"These tasks have neither a measured nor a given figure: {unknown}."
            self.gpucost.say(why or "No campaign with a schedule is open.", severity="warning")
            return False
        self.seconds = need.schedule.seconds
        self.basis = f"by the schedule of {clean(self.facts.name, limit=30)}, {need.basis}"
        return True

    # The commitment

    def action_commit(self) -> None:
        """Ask, then record the highlighted pack as the campaign's commitment."""
        row, snapshot = self._pack(), self.gpucost.snapshot
        amount = committed_usd(row, self.asked) if row is not None else None
        if row is None or amount is None:
            self.gpucost.say("Only a pack with a price can be committed.", severity="warning")
        elif snapshot.folder is None or not snapshot.sealed:
            self.gpucost.say("Open a sealed campaign first: it records it.", severity="warning")
        elif self.asked.periods > 1:
            self.gpucost.say("One pack is committed at a time: w sets 1.", severity="warning")
        else:
            self._ask_commit(row, money(amount), snapshot)

    def _ask_commit(self, row: PackPrice, amount: str, snapshot: Snapshot) -> None:
        from gpucost_tui.tui.dialogs import ConfirmDialog

        wish = Wish(
            snapshot, row, self.asked.lots, amount, (self.facts.committed or {}).get(row.gpu)
        )
        catalogue = self.catalogue

        def answered(yes: bool | None) -> None:
            if yes:
                self.work(
                    "recording the commitment",
                    lambda work: record(wish, catalogue),
                    done=self._committed,
                    failed=lambda why: self.gpucost.say(why, severity="error"),
                    writes=True,
                )

        dialog = ConfirmDialog("Record this commitment?", wish.question(), yes="Record it")
        self.app.push_screen(dialog, answered)

    def _committed(self, words: str) -> None:
        self.gpucost.say(f"Committed: {words}.")
        self.gpucost.context.nudge()


def _load(work: Any) -> Catalogue:
    from gpucost_tui.pricing.catalogue import load

    return load()
