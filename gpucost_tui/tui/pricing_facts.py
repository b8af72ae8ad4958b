"""What the campaign in front says to the prices: its window, its accepted corpora, its packs.

Read in a thread: the campaign's modules are heavy, the price lists are not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpucost_tui.errors import GpucostError
from gpucost_tui.text import clean, count, listed

if TYPE_CHECKING:
    import polars as pl

    from gpucost_tui.campaign.window import WindowNeed
    from gpucost_tui.tui.context import Snapshot


@dataclass(frozen=True, slots=True)
class Facts:
    """``accepted``: GPU as the host names it (None: CPU) → deliverable → configurations that it
    was accepted in. ``ids``: GPU of a price list → names that hosts give it."""

    name: str = ""
    need: WindowNeed | None = None
    need_problem: str = ""
    expected: int = 0
    accepted: dict[str | None, dict[str, tuple[str, ...]]] | None = None  # None: not sealed
    ids: dict[str, frozenset[str]] | None = None
    committed: dict[str, str] | None = None  # GPU of a price list -> what is committed, in words

    @property
    def gpus(self) -> tuple[str, ...]:
        """The GPUs of price lists that the campaign has: committed ones, else those it ran on."""
        if self.committed:
            return tuple(self.committed)
        ran_on = {name for name in self.accepted or {} if name is not None}
        return tuple(gpu for gpu, names in (self.ids or {}).items() if names & ran_on)

    def on(self, gpu: str) -> dict[str, tuple[str, ...]]:
        """Return the deliverables accepted on a GPU of a price list."""
        names = (self.ids or {}).get(gpu, frozenset())
        found: dict[str, tuple[str, ...]] = {}
        for name, deliverables in (self.accepted or {}).items():
            if name in names:
                for deliverable, configurations in deliverables.items():
                    found[deliverable] = (*found.get(deliverable, ()), *configurations)
        return found

    def elsewhere(self, gpu: str) -> list[str]:
        """Return the devices, other than a GPU of a price list, on which a corpus was accepted."""
        names = (self.ids or {}).get(gpu, frozenset())
        return [
            "the CPU" if name is None else clean(name, limit=40)
            for name, deliverables in (self.accepted or {}).items()
            if deliverables and name not in names
        ]


def read_facts(snapshot: Snapshot) -> Facts:
    """Return what the campaign of a snapshot says; nothing, where none can be read."""
    from gpucost_tui.campaign.gpu_names import HOST_NAMES
    from gpucost_tui.campaign.window import need
    from gpucost_tui.text import money

    protocol, state = snapshot.protocol, snapshot.state
    if protocol is None or state is None:
        return Facts(snapshot.name)
    found, problem = None, ""
    try:
        found = need(protocol, state, state.acts.export_s)
    except GpucostError as error:
        problem = str(error)
    ids = {gpu: frozenset(names) for gpu, names in HOST_NAMES.items()}
    committed = {}
    for gpu, act in state.acts.commitments.items():
        ids[gpu] = ids.get(gpu, frozenset()) | {act.host_gpu}
        committed[gpu] = f"{act.words}, {clean(act.provider, limit=30)}, {money(act.usd)} USD"
    return Facts(
        snapshot.name,
        found,
        problem,
        len(protocol.deliverables),
        _accepted(state) if snapshot.sealed else None,
        ids,
        committed,
    )


def _accepted(state: Any) -> dict[str | None, dict[str, tuple[str, ...]]]:
    """Return what each device delivered: every deliverable once, however many passes (R38)."""
    from gpucost_tui.analysis.verdicts import verdict
    from gpucost_tui.campaign.table import raw_table

    frame = _named(raw_table(state))
    found: dict[str | None, dict[str, tuple[str, ...]]] = {}
    keys = ["gpu", "deliverable", "configuration"]
    for (gpu, deliverable, configuration), rows in frame.group_by(keys, maintain_order=True):
        device = None if gpu is None else str(gpu)
        delivered = found.setdefault(device, {})
        if verdict(str(deliverable), rows).accepted:
            before = delivered.get(str(deliverable), ())
            delivered[str(deliverable)] = (*before, str(configuration))
    return found


def _named(frame: pl.DataFrame) -> pl.DataFrame:
    import polars as pl

    return frame.with_columns(pl.coalesce("configuration", "variant").alias("configuration"))


def scope_words(delivered: dict[str, tuple[str, ...]], expected: int) -> str:
    """Name the corpora that were accepted, and in which configurations (R36: the scope)."""
    parts = [
        f"{clean(name, limit=40)} ({listed(list(configurations), limit=3)})"
        for name, configurations in delivered.items()
    ]
    return f"{len(delivered)} of {count(expected, 'expected corpus', 'expected corpora')}" + (
        f": {'; '.join(parts[:6])}" if parts else ""
    )
