"""The two looks of the app. Textual's light one has accents too pale to read as text."""

from __future__ import annotations

from textual.theme import Theme

DARK = "textual-dark"

LIGHT = Theme(
    name="gpucost-light",
    primary="#004578",
    secondary="#0068B8",
    accent="#9A5000",
    warning="#9A5000",
    error="#BA3C5B",
    success="#218A43",
    surface="#D8D8D8",
    panel="#D0D0D0",
    background="#E0E0E0",
    dark=False,
    variables={"footer-key-foreground": "#004F8B"},
)
