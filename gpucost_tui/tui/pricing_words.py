"""The panel of the prices: what the highlighted pack commits, and what an accepted corpus costs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from textual.content import Content

from gpucost_tui.errors import GpucostError
from gpucost_tui.text import clean, count, money
from gpucost_tui.tui.pricing_facts import Facts, scope_words
from gpucost_tui.tui.pricing_state import Asked, committed_usd, fit_of, rounded_hours
from gpucost_tui.tui.safe import filled, plain

if TYPE_CHECKING:
    from gpucost_tui.pricing.catalogue import HourlyOffer, PackPrice

_TITLES = {"packs": "Flat packs", "hourly": "Hourly offers", "window": "Packs for the window"}
_NO_WINDOW = """[b]No window is given.[/b]

  [b $text-accent]w[/]  gives one by dates with a time zone
  [b $text-accent]s[/]  takes the one that the campaign's schedule needs"""


@dataclass(frozen=True, slots=True)
class ByHand:
    """Accepted corpora as the user states them; counted only with the quality box ticked."""

    text: str = ""
    checked: bool = False

    @property
    def given(self) -> bool:
        return bool(self.text.strip())


def pack_panel(
    row: PackPrice, asked: Asked, seconds: Fraction | None, facts: Facts, hand: ByHand
) -> Content:
    """Say all about one pack."""
    lines = [*_price(row, asked, facts, hand)]
    if seconds is not None:
        fit = fit_of(row, seconds, asked.periods)
        lines.append(filled("Window: $x", x=fit.words))
        if fit.covers:
            lines.append(
                filled("[$text-muted]$x[/]", x="That does not prove that the work ends in time.")
            )
    if row.gpu in (facts.committed or {}):
        lines.append(filled("◆ Committed: $x", x=(facts.committed or {})[row.gpu]))
    return Content("\n").join(lines)


def _price(row: PackPrice, asked: Asked, facts: Facts, hand: ByHand) -> Iterator[Content]:
    from gpucost_tui.pricing.calculator import empty_cell, quote

    lots = count(asked.lots, "lot")
    amount = committed_usd(row, asked)
    if amount is None:
        yield filled("[b]No price[/b] for $l of $g, $d days", l=lots, g=row.gpu, d=row.days)
        yield plain(empty_cell(row))
        return
    priced = quote(row, asked.lots)
    gpus = count(priced.gpus, "GPU")
    packs = f", {asked.periods} packs in sequence" if asked.periods > 1 else ""
    yield filled(
        "[b]$a USD[/b] committed for $n: $l of $g, $d days$p",
        a=money(amount),
        n=gpus,
        l=lots,
        g=row.gpu,
        d=row.days,
        p=packs,
    )
    yield filled(
        "[$text-muted]$a USD a lot of $n, $p, catalogue of $d ($c, line $i)[/]",
        a=money(priced.usd_per_lot),
        n=count(row.gpus_per_lot, "GPU"),
        p=clean(row.provider, limit=40),
        d=row.catalogue_date,
        c=clean(row.catalogue, limit=60),
        i=row.line,
    )
    yield from _cost(row.gpu, amount, facts, hand)


def _cost(gpu: str, amount: Decimal, facts: Facts, hand: ByHand) -> Iterator[Content]:
    """Say the cost per accepted corpus: the whole amount over what was really accepted (R36)."""
    from gpucost_tui.pricing.calculator import AS_STATED, NOT_INVENTED, whole_accepted

    if hand.given:
        try:
            number = whole_accepted(hand.text.strip())
        except GpucostError as error:
            yield filled("[$text-error]✗ $x[/]", x=error)
            return
        if not hand.checked:
            yield plain(
                "Cost per accepted corpus: not computed until you tick 'quality checked by me': a "
                "written file is no accepted result"
            )
            return
        yield _per_corpus(amount, number)
        yield plain(f"  {count(number, 'accepted result')}, count and quality {AS_STATED}")
        return
    delivered = facts.on(gpu)
    elsewhere = facts.elsewhere(gpu)
    if facts.accepted is None or (not delivered and not facts.accepted):
        yield plain(f"No corpus is accepted yet: {NOT_INVENTED}")
    elif not delivered and elsewhere:
        where = ", ".join(elsewhere[:4])
        yield plain(
            f"Cost per accepted corpus on {gpu}: {NOT_INVENTED}. The campaign's corpora were "
            f"accepted on {where}; what another GPU would deliver is a forecast, no result"
        )
    else:
        yield _per_corpus(amount, len(delivered))
        yield plain(f"  by the campaign's verdicts, {scope_words(delivered, facts.expected)}")


def _per_corpus(amount: Decimal, number: int) -> Content:
    from gpucost_tui.pricing.amounts import exact
    from gpucost_tui.pricing.calculator import UNDEFINED

    if not number:
        return plain(f"Cost per accepted corpus: {UNDEFINED}")
    with exact():
        cost = amount / number
    return filled("Cost per accepted corpus: [b]$x USD[/b]", x=money(cost))


def offer_panel(offer: HourlyOffer) -> Content:
    """Say all about one hourly offer: another billing kind, apart from the packs."""
    lines = [
        filled(
            "[b]$u USD[/b] for one $g and hour, $k, $p",
            u=f"{offer.usd_per_gpu_hour:f}",
            g=offer.gpu,
            k=offer.provisioning,
            p=clean(offer.provider, limit=40),
        ),
        plain(f"{offer.product}; rented at once: {offer.gpus:f} GPU", limit=400),
        plain(f"observed on {offer.observed_on}: {offer.source}", limit=400),
        plain(offer.notes, limit=400),
        filled(
            "[$text-muted]$x[/]",
            x="Pay as you go is another billing kind: an estimate, no commitment, never ranked "
            "with the packs.",
        ),
    ]
    return Content("\n").join(lines)


def window_words(seconds: Fraction | None, basis: str) -> str:
    """Say how long the window is, and where it is from."""
    return "no window" if seconds is None else f"{rounded_hours(seconds)} h, {basis}"


def ways(seconds: Fraction, priced_days: tuple[int, ...]) -> str:
    """Say what to do where no single pack covers a window (R34)."""
    from gpucost_tui.pricing.candidates import ways_to_cover

    said = ways_to_cover(seconds, priced_days)
    return " ".join(said).replace("--periods ", "packs in sequence (w): ")


def said(asked: Asked, window: str, found: str) -> Content:
    """Say which prices are shown: view, filters, window, and what there is."""
    days = "any days" if asked.days is None else f"{asked.days} days"
    filters = [asked.gpu or "any GPU", days, clean(asked.provider or "any provider", limit=30)]
    if asked.view == "hourly":
        del filters[1]
    if asked.periods > 1:
        window += f", {asked.periods} packs in sequence"
    title = _TITLES[asked.view]
    return filled("[b]$t[/b] · $f · $w\n$c", t=title, f=", ".join(filters), w=window, c=found)


def why_empty(asked: Asked, seconds: Fraction | None) -> Content:
    """Say what to do where no price is shown."""
    if asked.view == "window" and seconds is None:
        return filled(_NO_WINDOW)
    words = "No price for that choice.\n\n  [b $text-accent]esc[/]  takes the filters back"
    if not asked.filtered:
        words = "No price.\n\n  [b]gpucost catalogue add FILE[/b] brings a price list of your own"
    return filled(words)
