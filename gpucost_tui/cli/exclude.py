"""``gpucost exclude``: leaves a pass out for a sealed cause, with trace (R24)."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from gpucost_tui.cli.common import campaign_argument, json_option, print_json, typed

if TYPE_CHECKING:
    from gpucost_tui.campaign.excluding import Left


@click.command()
@campaign_argument
@click.argument("attempts", metavar="ATTEMPT…", nargs=-1, required=True, type=int)
@click.option("--cause", metavar="NAME", help="A cause that the seal allows.")
@click.option("--from", "since", metavar="T", help="When a cause without a condition began.")
@click.option("--to", "until", metavar="T", help="When it ended.")
@click.option("--timezone", metavar="ZONE", help="Of --from and --to, such as Europe/Paris.")
@click.option("--withdraw", is_flag=True, help="Take an exclusion back; both acts stay.")
@json_option
def exclude(
    folder: str,
    attempts: tuple[int, ...],
    cause: str | None,
    since: str | None,
    until: str | None,
    timezone: str | None,
    withdraw: bool,
    as_json: bool,
) -> None:
    """Leave passes of DIR out for an external cause, or take that back.

    The row stays, with its cause. The other attempts to which the same cause applies are named:
    one rule holds for every variant.
    """
    from gpucost_tui.campaign import excluding
    from gpucost_tui.campaign.folder import Campaign
    from gpucost_tui.errors import WrongUse

    campaign = Campaign.open(folder)
    if withdraw:
        if cause or since or until:
            raise WrongUse("--withdraw stands alone", fix="Leave --cause, --from and --to out")
        done = excluding.withdraw(campaign, attempts)
    else:
        if cause is None:
            raise WrongUse(
                "no cause is named (R24)", where="--cause", fix=_causes(campaign) or None
            )
        interval = [instant(since, timezone, "from"), instant(until, timezone, "to")]
        done = [excluding.exclude(campaign, attempts, cause, *interval)]
    if as_json:
        print_json([_json(left, withdraw) for left in done])
        return
    for left in done:
        _show(folder, left, withdraw, since, until)


def instant(text: str | None, timezone: str | None, option: str) -> datetime | None:
    """Return a moment given by hand, aware.

    Raises:
        WrongUse: It is none, or has neither a zone nor an offset.
    """
    if text is None:
        return None
    from gpucost_tui.pricing.window import moment, zone_named

    return moment(text, None if timezone is None else zone_named(timezone), option)


def _causes(campaign: Any) -> str:
    from gpucost_tui.text import listed

    causes = [cause.name for cause in campaign.manifest.protocol.exclusion_causes]
    return f"Sealed causes: {listed(causes, limit=10)}" if causes else "The seal allows none"


def _json(left: Left, withdrawn: bool) -> dict[str, Any]:
    return {
        "act": "withdrawn" if withdrawn else "excluded",
        "attempts": list(left.attempts),
        "cause": left.cause,
        "also_applies_to": list(left.also),
    }


def _show(folder: str, left: Left, withdrawn: bool, since: str | None, until: str | None) -> None:
    from gpucost_tui.text import clean

    numbers = ", ".join(map(str, left.attempts))
    word = "Attempt" if len(left.attempts) == 1 else "Attempts"
    done = "counted again" if withdrawn else "left out; the rows stay"
    click.echo(f"{word} {numbers}: {done} (cause '{clean(left.cause)}').")
    if not left.also:
        return
    others = " ".join(map(str, left.also))
    click.echo(f"The same cause applies to: {', '.join(map(str, left.also))}.")
    if withdrawn:
        click.echo("One rule holds for every pass: `gpucost verify` names the difference (R24).")
        return
    interval = f" --from {clean(since)} --to {clean(until)}" if since and until else ""
    click.echo(
        "One rule holds for every variant (R24): "
        f"gpucost exclude {typed(folder)} {others} --cause {clean(left.cause)}{interval}"
    )
