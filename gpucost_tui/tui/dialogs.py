"""Dialogs of the whole app: a question, and the help for what has the focus."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen, Screen
from textual.widget import Widget
from textual.widgets import Button, DataTable, Input, Label, Select, Static

from gpucost_tui.tui.safe import filled


class ConfirmDialog(ModalScreen[bool]):
    """Asks once. The careful answer has the focus; escape gives it.

    Args:
        title: The question.
        body: What will happen, in words (plain text or content).
        yes: Words of the button that acts.
        no: Words of the button that does not.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "answer(False)", "No", tooltip="Change nothing"),
        Binding("y", "answer(True)", "Yes", show=False),
        Binding("n", "answer(False)", "No", show=False),
        Binding("left,right", "app.focus_next", "Other button", show=False),
        Binding("question_mark", "app.help", "Help", show=False),
    ]

    def __init__(
        self, title: str, body: str | Content, *, yes: str = "Yes", no: str = "Cancel"
    ) -> None:
        super().__init__()
        self._title, self._yes, self._no = title, yes, no
        self._body = body if isinstance(body, Content) else filled("$x", x=body)

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Label(filled("[b]$x[/b]", x=self._title), classes="dialog-title")
            with VerticalScroll(classes="dialog-body", can_focus=False):
                yield Static(self._body, markup=False)
            with Horizontal(classes="dialog-buttons"):
                yield Button(filled("$x", x=self._no), id="no", compact=True)
                yield Button(filled("$x", x=self._yes), id="yes", variant="primary", compact=True)

    def on_mount(self) -> None:
        self.query_one("#no").focus()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.id == "yes")

    def action_answer(self, yes: bool) -> None:
        self.dismiss(yes)


_KINDS: tuple[tuple[type[Widget], str], ...] = (
    (DataTable, "a table"),
    (Input, "a text field"),
    (Select, "a choice"),
    (Button, "a button"),
    (VerticalScroll, "a part that scrolls"),
)
_SCROLLS = "Up, down, page up, page down, home and end scroll."


class HelpDialog(ModalScreen[None]):
    """What the widget in focus, the place, and the app can do, with their keys."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark,q", "dismiss", "Close", tooltip="Close the help"),
    ]

    def __init__(self, screen: Screen[object]) -> None:
        super().__init__()
        # Asked now: once the dialog is in front, nothing of the place has the focus.
        self._content = Content("\n").join(_lines(screen))

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog help"):
            yield Label(
                filled("[b]Help[/b]  [$text-muted]escape closes[/]"), classes="dialog-title"
            )
            with VerticalScroll(classes="dialog-body"):
                yield Static(self._content, markup=False)

    def on_mount(self) -> None:
        self.query_one(VerticalScroll).focus()


def _lines(screen: Screen[object]) -> Iterator[Content]:
    focused = screen.focused
    if focused is not None:
        yield filled("[b]In focus: $x[/b]", x=_kind(focused))
        if isinstance(focused, Input):
            yield filled("Letters and digits go into the field; escape or tab leaves it.")
        # Parts of ours say in a sentence what the keys of the library's list would.
        if focused.HELP:
            yield filled("$x", x=focused.HELP.strip())
        elif isinstance(focused, VerticalScroll):
            yield filled(_SCROLLS)
        else:
            yield from _keys(screen, lambda node: node is focused)
        yield Content("")
    yield filled("[b]This place[/b]")
    if screen.HELP:
        yield filled("$x", x=screen.HELP.strip())
    yield from _keys(screen, lambda node: node is screen)
    yield Content("")
    yield filled("[b]Everywhere[/b]")
    yield from _keys(screen, lambda node: node is screen.app)


def _kind(widget: Widget) -> str:
    name = next((words for kind, words in _KINDS if isinstance(widget, kind)), "")
    title = _title(widget)
    return f"{name} ({title})" if name and title else name or title or "this part"


def _title(widget: Widget) -> str:
    """Return what stands at a widget on the screen: its border's title, its field's label."""
    if widget.border_title:
        return str(widget.border_title)
    labels = widget.parent.query(Label) if isinstance(widget, Input) and widget.parent else ()
    return next((str(label.content) for label in labels), "")


def _keys(screen: Screen[object], wanted) -> Iterator[Content]:  # type: ignore[no-untyped-def]
    seen: dict[tuple[str, str], list[str]] = {}
    for active in screen.active_bindings.values():
        binding = active.binding
        if wanted(active.node) and binding.description and not binding.system:
            about = binding.tooltip or binding.description
            seen.setdefault((binding.action, about), []).append(screen.app.get_key_display(binding))
    for (_, about), keys in seen.items():
        yield filled("  [$text-accent]$keys[/]  $about", keys=f"{' '.join(keys):<12}", about=about)
