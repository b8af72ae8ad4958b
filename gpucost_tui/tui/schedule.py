"""Variants and schedule: what is compared, in which order, and how long the rental must last."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widget import Widget
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from gpucost_tui.tui.safe import GLYPHS, filled, plain
from gpucost_tui.tui.schedule_grid import SlotGrid
from gpucost_tui.tui.screen import PlaceScreen
from gpucost_tui.tui.work import Work

if TYPE_CHECKING:
    from gpucost_tui.campaign.edit import Draft, Edit
    from gpucost_tui.tui.context import Snapshot
    from gpucost_tui.tui.schedule_dialog import VariantForm
    from gpucost_tui.tui.schedule_view import Plan, SeriesLines, VariantLine

_NONE = "No campaign is open. 1 Home opens one, makes one, or makes the demonstration."
_WRITING = "removing the variant"


class VariantList(OptionList):
    """Variants by series; one that several series share stands in each."""

    HELP = (
        "Variants by series. ◆ marks the one setting in which the variants of a series differ; "
        "✗ marks what R10 does not allow. Before the seal: a adds, c copies, e or enter changes, "
        "d removes the variant under the cursor."
    )


class WindowNeeded(VerticalScroll):
    """Hours that the rental must last, and what would cover them."""

    HELP = (
        "The window that the plan needs (R32): tasks of the rental by their order, waits included. "
        "Measured durations take the place of given hours once every slot is done. Arrows scroll."
    )


class ScheduleScreen(PlaceScreen):
    """Variants by series, the rotated order as a grid, the window needed."""

    PLACE: ClassVar[str] = "schedule"
    CSS_PATH = "schedule.tcss"
    HELP = (
        "Variants by series with the one factor that differs; the rotated order, round by "
        "position; the window that the plan needs, with its basis, and the packs that cover it. "
        "Variants change before the seal only; they are written to protocol.toml, whose comments "
        "stay. Arrows move in the part that has the focus, tab goes to the next."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "add", "Add", tooltip="Add a variant to the protocol"),
        Binding("c", "copy", "Copy", tooltip="Copy the variant under the cursor"),
        Binding("e", "change", "Change", tooltip="Change the variant under the cursor"),
        Binding("d,delete", "remove", "Remove", tooltip="Take the variant out of the protocol"),
    ]

    _key: object = None
    _plan: Plan | None = None

    def content(self) -> Iterable[Widget]:
        yield VerticalScroll(
            Vertical(
                Static("Variants", classes="section", markup=False),
                VariantList(id="variants", markup=False),
                Static(id="note", markup=False),
                id="left",
            ),
            Vertical(
                Static("Order", classes="section", id="order-title", markup=False),
                SlotGrid(id="order"),
                Static(id="slot", markup=False),
                Static(id="counts", markup=False),
                id="right",
            ),
            WindowNeeded(
                Static("Window needed", classes="section", markup=False),
                Static(id="window", markup=False),
                Static(id="timeline", markup=False),
                id="below",
            ),
            id="plan",
            can_focus=False,
        )

    # Showing

    def show(self, snapshot: Snapshot) -> None:
        if snapshot.protocol is None:
            self._nothing(snapshot)
            return
        watched = ("protocol", "manifest", "journal")
        key = (
            snapshot.folder,
            *(snapshot.versions.get(name) for name in watched),
            snapshot.word in ("running", "paused"),
        )
        if key == self._key:
            return
        self._key = key

        def plan(work: Work) -> Plan:
            from gpucost_tui.tui.schedule_view import plan_of

            return plan_of(snapshot)

        self.work("plan", plan, done=self._show_plan, failed=self._failed)

    def _nothing(self, snapshot: Snapshot) -> None:
        self._key = self._plan = None
        self.cancel("plan")
        self.query_one(VariantList).clear_options()
        self.query_one(SlotGrid).clear_plan()
        if snapshot.folder is None:
            note = filled("$x", x=_NONE)
        elif snapshot.problem:
            note = filled(
                "[$text-error]✗[/] $x\nWhat the protocol says is corrected in 2 Review.",
                x=snapshot.problem,
            )
        else:
            note = filled("[$text-muted]Reading…[/]")
        self.query_one("#note", Static).update(note)
        for name in ("#slot", "#counts", "#window", "#timeline"):
            self.query_one(name, Static).update("")
        self.refresh_bindings()

    def _failed(self, why: str) -> None:
        self._key = None
        if why != "Cancelled.":
            self.query_one("#note", Static).update(filled("[$text-error]✗[/] $x", x=why))

    def _show_plan(self, plan: Plan) -> None:
        self._plan = plan
        self._show_variants(plan)
        self.query_one(SlotGrid).show_plan(plan.rows, plan.positions)
        parts = [f"{GLYPHS[word]} {number:,} {word}" for word, number in plan.counts.items()]
        self.query_one("#counts", Static).update(filled("$x", x="  ".join(parts)))
        title = filled("Order [not b]· $x[/]", x=plan.rounds)
        self.query_one("#order-title", Static).update(title)
        self.query_one("#window", Static).update(plain("\n".join(plan.window)))
        self.query_one("#timeline", Static).update(plain("\n".join(plan.timeline)))
        self.refresh_bindings()

    def _show_variants(self, plan: Plan) -> None:
        listed = self.query_one(VariantList)
        before = listed.highlighted_option
        options = [
            option for number, one in enumerate(plan.series) for option in _options(number, one)
        ]
        listed.set_options(options)
        ids = [option.id for option in options]
        if before is not None and before.id in ids:
            listed.highlighted = ids.index(before.id)
        else:
            listed.highlighted = next((n for n, o in enumerate(options) if not o.disabled), None)
        self.query_one("#note", Static).update(self._note(plan))

    def _note(self, plan: Plan) -> Content:
        if self.gpucost.snapshot.sealed:
            return filled(
                "[$text-muted]◆ Sealed: variants can't change any more (R1). Another plan is a new "
                "campaign made from this one.[/]"
            )
        if not plan.problems:
            return filled("[$text-success]✓[/] Each series changes one factor (R10).")
        lines = [filled("[$text-error]✗[/] $x", x=sentence) for sentence in plan.problems[:5]]
        if len(plan.problems) > 5:
            lines.append(filled("and $n more: 2 Review", n=len(plan.problems) - 5))
        return Content("\n").join(lines)

    def on_slot_grid_pointed(self, event: SlotGrid.Pointed) -> None:
        cell = event.cell
        words = filled("$x", x=f"{GLYPHS[cell.state]} {cell.detail}") if cell else Content("")
        self.query_one("#slot", Static).update(words)

    # Changing

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in ("add", "copy", "change", "remove"):
            snapshot = self.gpucost.snapshot
            if snapshot.protocol is None or snapshot.sealed or self.busy(_WRITING):
                return False
        return True

    @property
    def chosen(self) -> str | None:
        """The variant under the cursor."""
        option = self.query_one(VariantList).highlighted_option
        return option.id.partition(":")[2] if option is not None and option.id else None

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        if self.check_action("change", ()):
            self.action_change()

    def action_add(self) -> None:
        """Add a variant, to the series under the cursor."""
        self._open("add")

    def action_copy(self) -> None:
        """Copy the variant under the cursor."""
        self._open("copy")

    def action_change(self) -> None:
        """Change the variant under the cursor."""
        self._open("change")

    def _open(self, how: str) -> None:
        from gpucost_tui.tui.schedule_dialog import VariantDialog

        folder, chosen = self.gpucost.snapshot.folder, self.chosen
        if how != "add" and chosen is None:
            self.gpucost.say("Choose a variant first.", severity="warning")
            return

        def read(work: Work) -> tuple[Draft, VariantForm]:
            from gpucost_tui.tui.schedule_forms import form_of, read_draft_of

            draft = read_draft_of(folder)
            return draft, form_of(draft, how, chosen)

        def opened(both: tuple[Draft, VariantForm]) -> None:
            if self in self.app.screen_stack:
                self.app.push_screen(VariantDialog(*both), self._done)

        self.work("draft", read, done=opened, failed=self._refused)

    def action_remove(self) -> None:
        """Ask, then take the variant under the cursor out of the protocol."""
        folder, chosen = self.gpucost.snapshot.folder, self.chosen
        if chosen is None:
            self.gpucost.say("Choose a variant first.", severity="warning")
            return

        def read(work: Work) -> tuple[Draft, Edit]:
            from gpucost_tui.tui.schedule_forms import read_draft_of

            draft = read_draft_of(folder)
            return draft, draft.remove(chosen)

        self.work("draft", read, done=lambda both: self._ask(chosen, *both), failed=self._refused)

    def _ask(self, name: str, draft: Draft, edit: Edit) -> None:
        from gpucost_tui.tui.dialogs import ConfirmDialog

        body = "It leaves every series, and its table leaves protocol.toml; other comments stay."
        if edit.fresh:
            body += "\n\nThen this stands in the way of the seal:"
            body += "".join(f"\n✗ {problem.what}." for problem in edit.fresh)

        def answered(yes: bool | None) -> None:
            if yes:
                self.work(
                    _WRITING,
                    lambda work: draft.write(edit),
                    done=lambda _: self._done(
                        f"Variant '{name}' is out: protocol.toml is written."
                    ),
                    failed=self._refused,
                    writes=True,
                )

        self.app.push_screen(
            ConfirmDialog(f"Remove variant '{name}'?", body, yes="Remove"), answered
        )

    def _done(self, sentence: str | None) -> None:
        if sentence:
            self.gpucost.say(sentence)
            self.gpucost.context.nudge()

    def _refused(self, why: str) -> None:
        if why != "Cancelled.":
            self.gpucost.say(why, severity="error")
            self.gpucost.context.nudge()


def _options(number: int, series: SeriesLines) -> Iterable[Option]:
    if series.factor:
        head = filled(
            "[b]$name[/b] [$text-muted]· changes $f[/]", name=series.name, f=series.factor
        )
    else:
        head = filled("[b]✗ $name[/b]", name=series.name)
    yield Option(head, disabled=True)
    for variant in series.variants:
        yield Option(_prompt(variant), id=f"{number}:{variant.name}")


def _prompt(variant: VariantLine) -> Content:
    parts = [filled("  $name", name=variant.name)]
    if variant.factor:
        parts.append(filled("[b]◆ $x[/b]", x=variant.factor))
    parts += [filled("[$text-muted]$x[/]", x=words) for words in variant.others]
    if variant.extra:
        words = ", ".join(variant.extra)
        parts.append(filled("[$text-error]✗ also differs: $x (R10)[/]", x=words))
    return Content("  ").join(parts)
