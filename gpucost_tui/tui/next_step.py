"""What to do next with a campaign, by its state: the place that does it, and the words."""

from __future__ import annotations

from gpucost_tui.tui.places import BY_NAME

NEXT = {
    "draft": ("review", "read what a seal would freeze, mend what blocks it, then seal"),
    "sealed": ("run", "start the run: it outlives this app and the connection"),
    "running": ("run", "watch it, pause it or stop it"),
    "paused": ("run", "resume it, or stop it"),
    "idle": ("run", "start again: it fills the open slots"),
    "finished": ("attempts", "read the raw table; then 6 Pricing says what it commits"),
    "damaged": ("review", "read what is wrong; nothing is changed"),
}


def next_place(state: str | None) -> str:
    """Return the name of the place where the next step is done."""
    return NEXT.get(state or "draft", NEXT["draft"])[0]


def next_words(state: str | None) -> str:
    """Return ``4 Run: start the run …``."""
    name, words = NEXT.get(state or "draft", NEXT["draft"])
    place = BY_NAME[name]
    return f"{place.key} {place.label}: {words}"
