"""The form of a variant: its name, what it changes, its series; what the rules say, at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.timer import Timer
from textual.widgets import Button, Checkbox, Input, Label, Static, TextArea

from gpucost_tui.tui.safe import filled
from gpucost_tui.tui.work import Work, Worker

if TYPE_CHECKING:
    from gpucost_tui.campaign.edit import Draft, Edit

#: Seconds after the last key before the rules are asked.
_QUIET_S = 0.15
_NAMELESS = "Name the variant, such as batch-16."


@dataclass(frozen=True, slots=True)
class VariantForm:
    """What the dialog starts with. ``old``: the variant that is changed; None: a new one."""

    title: str
    name: str
    changes: str
    series: tuple[str, ...]
    old: str | None = None
    settings: tuple[str, ...] = field(default=())


class Changes(TextArea):
    """The settings that a variant changes, as lines of TOML."""

    HELP = (
        "What this variant changes of [execution], one setting a line, as in the protocol:\n"
        '  batch_size = 16\n  dtype = "bfloat16"\n'
        "An empty field is the baseline. Tab leaves the field."
    )


class VariantDialog(Worker, ModalScreen[str | None]):
    """Edits one variant of a draft, and writes it; its result is the sentence of what was done."""

    CSS_PATH = "schedule_dialog.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "save", "Save", tooltip="Write it to protocol.toml", priority=True),
        Binding("escape", "leave", "Cancel", tooltip="Change nothing"),
    ]

    def __init__(self, draft: Draft, form: VariantForm) -> None:
        super().__init__()
        self._draft, self._form = draft, form
        self._quiet: Timer | None = None
        self._series = [series.name for series in draft.protocol.series]

    def compose(self) -> ComposeResult:
        form = self._form
        with Vertical(classes="dialog variant"):
            yield Label(filled("[b]$x[/b]", x=form.title), classes="dialog-title")
            with VerticalScroll(classes="dialog-body", can_focus=False):
                with Horizontal(id="name-line"):
                    yield Label("Name")
                    yield Input(form.name, id="name", compact=True, max_length=64)
                yield Label("Changes, one setting a line")
                yield Changes(form.changes, id="changes", compact=True)
                yield Label("In series")
                for number, name in enumerate(self._series):
                    label = filled("$x", x=name)
                    yield Checkbox(label, name in form.series, id=f"series-{number}", compact=True)
                yield Static(filled("Settings: $x", x=", ".join(form.settings)), classes="hint")
            yield Static(id="said", markup=False)
            with Horizontal(classes="dialog-buttons"):
                yield Button("Cancel", id="no", compact=True)
                yield Button("Save", id="yes", variant="primary", compact=True)

    def on_mount(self) -> None:
        name = self.query_one("#name", Input)
        name.focus()
        self._look()

    def on_input_changed(self) -> None:
        self._look_soon()

    def on_text_area_changed(self) -> None:
        self._look_soon()

    def on_checkbox_changed(self) -> None:
        self._look_soon()

    def on_input_submitted(self) -> None:
        self.action_save()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        if event.button.id == "yes":
            self.action_save()
        else:
            self.action_leave()

    def action_leave(self) -> None:
        if not self.busy("saving the variant"):
            self.dismiss(None)

    def action_save(self) -> None:
        """Write what the fields say; a refusal stays in the dialog."""
        if not self._named:
            self._failed(_NAMELESS)
            self.query_one("#name", Input).focus()
            return
        edit = self._edit()

        def save(work: Work) -> None:
            self._draft.write(edit())

        # What the rules say would take the place of a refusal.
        if self._quiet is not None:
            self._quiet.stop()
        self.cancel("rules")
        self.work("saving the variant", save, done=self._saved, failed=self._failed, writes=True)

    def _saved(self, _: object) -> None:
        name = self._named
        what = "changed" if self._form.old else "added"
        self.dismiss(f"Variant '{name}' is {what}: protocol.toml is written.")

    # What the rules say

    def _look_soon(self) -> None:
        if self._quiet is not None:
            self._quiet.stop()
        self._quiet = self.set_timer(_QUIET_S, self._look)

    @property
    def _named(self) -> str:
        return self.query_one("#name", Input).value.strip()

    def _look(self) -> None:
        if not self._named:
            self.cancel("rules")
            self._say(filled("[$text-muted]$x[/]", x=_NAMELESS), "Save")
            return
        edit = self._edit()
        work = self.work("rules", lambda work: edit(), done=self._judged)
        work.failed = lambda why: None if work.cancelled else self._failed(why)

    def _edit(self) -> Callable[[], Edit]:
        """Return a function that makes the edit of what the fields say now."""
        draft, form = self._draft, self._form
        name = self._named
        typed = self.query_one("#changes", TextArea).text
        boxes = [self.query_one(f"#series-{n}", Checkbox).value for n in range(len(self._series))]
        series = [name for name, ticked in zip(self._series, boxes, strict=True) if ticked]

        def edit() -> Edit:
            from gpucost_tui.campaign.edit import changes_from

            changes = changes_from(typed)
            if form.old is None:
                return draft.add(name, changes, series)
            return draft.change(form.old, name, changes, series)

        return edit

    def _judged(self, edit: Edit) -> None:
        if not edit.fresh:
            self._say(filled("[$text-success]✓[/] No rule speaks against it."), "Save")
            return
        lines = [filled("[$text-error]✗[/] $x", x=p.what + ".") for p in edit.fresh[:4]]
        lines.append(
            filled("[$text-muted]Saved all the same, it stands in the way of the seal.[/]")
        )
        self._say(Content("\n").join(lines), "Save anyway")

    def _failed(self, why: str) -> None:
        self._say(filled("[$text-error]✗[/] $x", x=why), "Save")

    def _say(self, words: Content, label: str) -> None:
        self.query_one("#said", Static).update(words)
        self.query_one("#yes", Button).label = label
