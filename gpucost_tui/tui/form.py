"""Fields of a form: a label, a value on one line, and what is wrong with it, in place."""

from __future__ import annotations

import os
from pathlib import Path

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.suggester import Suggester
from textual.widgets import Input, Label, Static

from gpucost_tui.tui.safe import TYPED, filled, plain


class Field(Vertical):
    """One field. ``hint`` stands in it while it is empty."""

    def __init__(
        self, name: str, label: str, hint: str = "", value: str = "", *, here: Path | None = None
    ) -> None:
        super().__init__(id=f"field-{name}")
        self.field_name = name
        self._label = label
        self._input = Input(
            value,
            placeholder=hint,
            compact=True,
            restrict=TYPED,
            id=name,
            suggester=PathSuggester(here) if here is not None else None,
        )

    def compose(self) -> ComposeResult:
        with Horizontal():
            yield Label(filled("$x", x=self._label))
            yield self._input
        yield Static(classes="field-error", markup=False)

    @property
    def value(self) -> str:
        return self._input.value.strip()

    @value.setter
    def value(self, text: str) -> None:
        self._input.value = text

    def wrong(self, sentence: str | None) -> None:
        """Show what is wrong with the value, or nothing."""
        self.set_class(sentence is not None, "-wrong")
        self.query_one(".field-error", Static).update(plain(f"✗ {sentence}" if sentence else ""))

    def take_focus(self) -> None:
        self._input.focus()


class PathSuggester(Suggester):
    """Suggests the first file or folder that begins like what is typed (right arrow takes it)."""

    def __init__(self, here: Path) -> None:
        super().__init__(use_cache=False, case_sensitive=True)
        self._here = here

    async def get_suggestion(self, value: str) -> str | None:
        head, name = os.path.split(value)
        if not name:
            return None
        folder = (self._here / Path(head).expanduser()) if head else self._here
        try:
            with os.scandir(folder) as entries:
                # A folder with a million files must not hold up the keys.
                near = (entry for entry, _ in zip(entries, range(5_000), strict=False))
                fits = sorted(
                    (entry.name, entry.is_dir()) for entry in near if entry.name.startswith(name)
                )
        except (OSError, ValueError):
            return None
        if not fits or not fits[0][0].isprintable():
            return None
        return os.path.join(head, fits[0][0]) + ("/" if fits[0][1] else "")  # noqa: PTH118
