"""``gpucost catalogue``: list, check, add, remove and import price lists (R35, R42)."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path

import click

from gpucost_tui.cli.common import json_option, print_json
from gpucost_tui.errors import EnvironmentLacks, WrongUse
from gpucost_tui.files import write_atomic
from gpucost_tui.pricing import gpus, kept, listing, skypilot
from gpucost_tui.pricing.calculator import pack_days
from gpucost_tui.pricing.catalogue import checked, load, read_catalogue, vocabulary
from gpucost_tui.pricing.price_list import iso_date, parse
from gpucost_tui.pricing.sheets import read_bytes, refuse
from gpucost_tui.text import clean, count, listed

_SHOWN = 50


@click.group()
def catalogue() -> None:
    """List, check, add and import price lists.

    A price list is a CSV file with the columns of data/pack-prices.csv (flat packs by lot) or of
    data/hourly-offers.csv (pay-as-you-go). A list that you add speaks before the shipped ones.
    """


@catalogue.command("list")
@click.option("--gpu", metavar="GPU", help="Only this GPU.")
@click.option("--provider", metavar="NAME", help="Only this provider.")
@click.option("--days", metavar="D", help="Only packs of 3, 7 or 30 days.")
@click.option("--catalogue", "catalogues", multiple=True, metavar="FILE", help="Use this list.")
@json_option
def list_(
    gpu: str | None,
    provider: str | None,
    days: str | None,
    catalogues: tuple[str, ...],
    as_json: bool,
) -> None:
    """Show the prices in force, by GPU, provider and days."""
    length = None if days is None else pack_days(days)
    prices = load([Path(name) for name in catalogues])
    chosen = listing.chosen(prices, gpu=gpu, provider=provider, days=length)
    if as_json:
        print_json(listing.listing_json(chosen))
    else:
        click.echo("\n".join(listing.listing_lines(chosen)))


@catalogue.command("check")
@click.argument("file", metavar="FILE")
@json_option
def check(file: str, as_json: bool) -> None:
    """Show every problem of a price list with its line; exit status 1 if there is one."""
    found = checked(Path(file))
    if as_json:
        document = {
            "ok": not found.problems,
            "file": file,
            "form": found.form or None,
            "rows": len(found.rows),
            "problems": [{"line": p.line, "what": p.what, "fix": p.fix} for p in found.problems],
        }
        print_json(document)
    else:
        for problem in found.problems[:_SHOWN]:
            click.echo(f"{clean(file)}, {problem}")
        rest = len(found.problems) - _SHOWN
        if rest > 0:
            click.echo(f"and {count(rest, 'more problem')}")
        said = count(len(found.problems), "problem") if found.problems else "no problem"
        click.echo(f"{clean(file)}: {said}, {count(len(found.rows), 'good row')}.")
    if found.problems:
        raise click.exceptions.Exit(1)


@catalogue.command("add")
@click.argument("file", metavar="FILE")
def add(file: str) -> None:
    """Keep a price list of your own; one with a problem is refused, and nothing is changed."""
    path = Path(file)
    data = read_bytes(path)
    found = read_catalogue(path, data)
    put = kept.keep(data, path.name)
    said = "replaced" if put.replaced else "added"
    dates = " to ".join(dict.fromkeys(str(day) for day in (found.dates[0], found.dates[-1])))
    click.echo(f"{put.path.name}: {said}, {count(len(found.rows), 'row')} of {dates}.")
    click.echo(f"  {clean(put.path)}")


@catalogue.command("remove")
@click.argument("name", metavar="NAME")
def remove(name: str) -> None:
    """Forget a price list that was added or imported."""
    click.echo(f"{kept.forget(name).name}: removed.")


@catalogue.command("import")
@click.argument("file", metavar="FILE")
@click.option(
    "--format",
    "form",
    metavar="skypilot",
    required=True,
    help="Whose form the file has.",
)
@click.option("--provider", metavar="NAME", help="Who sells; default: the file's folder or name.")
@click.option("--observed-on", metavar="DATE", help="Default: the file's date.")
@click.option("--source", metavar="TEXT", help="Where the file is from.")
@click.option("--out", metavar="FILE", help="Write the price list there instead of keeping it.")
def import_(
    file: str,
    form: str,
    provider: str | None,
    observed_on: str | None,
    source: str | None,
    out: str | None,
) -> None:
    """Read somebody else's price list into hourly offers.

    SkyPilot's vms.csv prices whole instances; what is kept is the price of one GPU and hour.
    Every name that became an id is shown: none becomes another GPU.
    """
    if form != "skypilot":
        raise WrongUse("the one form that is read is skypilot", where=f"--format '{clean(form)}'")
    path = Path(file)
    data = read_bytes(path)
    seller = " ".join((provider or _seller(path)).split())
    told = " ".join((source or f"SkyPilot catalogue file {path.name}").split())
    day = _day(path, observed_on)
    found = skypilot.read_skypilot(
        data, name=path.name, provider=seller, observed_on=day, source=told, known=vocabulary()
    )
    written = skypilot.offers_csv(found.offers)
    name = f"skypilot-{seller}.csv"
    refuse(name, parse(written, name, vocabulary()).problems)
    put = kept.keep(written, name) if out is None else _write(Path(out), written)
    target = put.path
    rows = count(len(found.offers), "hourly offer")
    click.echo(f"{clean(path)}: {rows} by {clean(seller)}, observed on {day}.")
    known = load().gpus() if out is None else load([target]).gpus()
    for given, gpu in sorted(found.names.items()):
        click.echo(f"  {clean(given)} is listed as {gpu}{_remark(gpu, known)}")
    for reason, number in found.left_out.items():
        click.echo(f"  left out: {count(number, 'row')} {reason}")
    click.echo(f"  {clean(target)}{', in place of the list of that name' if put.replaced else ''}")


def _seller(path: Path) -> str:
    """SkyPilot keeps its files as ``<provider>/vms.csv``."""
    return path.resolve().parent.name if path.stem == "vms" else path.stem


def _day(path: Path, given: str | None) -> date:
    if given is None:
        # Not today: a price list that lay around must not look fresh.
        return datetime.fromtimestamp(path.stat().st_mtime, UTC).date()
    day = iso_date(given)
    if day is None:
        raise WrongUse(
            f"--observed-on '{clean(given, limit=40)}' is no date", fix="Write 2026-09-24"
        )
    return day


def _remark(gpu: str, known: tuple[str, ...]) -> str:
    others = gpus.more_specific(gpu, known)
    return f" (the file does not say which: not taken for {listed(others)})" if others else ""


def _write(target: Path, data: bytes) -> kept.Kept:
    where = clean(target)
    try:
        if target.is_dir():
            raise WrongUse("there is a folder of that name", where=where, fix="Name a file")
        replaced = target.exists()
        write_atomic(target, data)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise EnvironmentLacks(
            f"the price list can't be written: {clean(reason)}",
            where=where,
            fix="Name another place",
        ) from None
    return kept.Kept(target, replaced)
