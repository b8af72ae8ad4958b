"""The command palette: every place and every action, wherever one is."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from functools import partial

from textual.binding import Binding
from textual.command import DiscoveryHit, Hit, Hits, Provider

from gpucost_tui.tui.places import PLACES


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the palette. ``place`` is where its action lives; empty: anywhere."""

    title: str
    about: str
    place: str
    action: str


def entries() -> Iterator[Entry]:
    """Yield every place, then every action of every place, then those of the app."""
    from gpucost_tui.tui.app import GpucostApp

    for place in PLACES:
        yield Entry(f"Go to {place.label}", place.about, "", f"app.place('{place.name}')")
    for place in PLACES:
        for binding in _bindings(place.screen_class().BINDINGS):
            title = f"{place.label}: {binding.description}"
            yield Entry(title, binding.tooltip, place.name, binding.action)
    for binding in _bindings(GpucostApp.BINDINGS):
        if not binding.action.startswith("place("):
            yield Entry(binding.description, binding.tooltip, "", f"app.{binding.action}")


def _bindings(declared: object) -> Iterator[Binding]:
    seen = set()
    for binding in Binding.make_bindings(declared):  # type: ignore[arg-type]
        if binding.description and not binding.system and binding.action not in seen:
            seen.add(binding.action)
            yield binding


class ActionsProvider(Provider):
    """Offers :func:`entries`; an action of another place goes there first."""

    async def discover(self) -> Hits:
        async for entry in self._entries():
            yield DiscoveryHit(entry.title, self._act(entry), help=entry.about or None)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        async for entry in self._entries():
            score = matcher.match(entry.title)
            if score > 0:
                title = matcher.highlight(entry.title)
                yield Hit(score, title, self._act(entry), help=entry.about or None)

    async def _entries(self) -> AsyncIterator[Entry]:
        for entry in entries():
            yield entry

    def _act(self, entry: Entry):  # type: ignore[no-untyped-def]
        return partial(self.app.act, entry.place, entry.action)  # type: ignore[attr-defined]
