"""``gpucost verify``: recomputes everything from the files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gpucost_tui.cli.common import json_option, parents_option, print_json

if TYPE_CHECKING:
    from gpucost_tui.dossier.verify import Verification

_HASH = 64


@click.command()
@click.argument("places", metavar="DIR…|ZIP", nargs=-1, required=True, type=click.Path())
@click.option("--head", "heads", multiple=True, metavar="HASH", help="A head kept elsewhere.")
@parents_option
@json_option
@click.pass_context
def verify(
    ctx: click.Context,
    places: tuple[str, ...],
    heads: tuple[str, ...],
    parents: tuple[str, ...],
    as_json: bool,
) -> None:
    """Recompute a campaign, or an exported dossier, from its files; exit 1 on any difference.

    Nothing is written. Without --head a consistent rewrite of all files can't be excluded.
    """
    from gpucost_tui.dossier.open import verify_places

    _check(heads)
    answer = verify_places(places, heads=heads, parents=parents)
    if as_json:
        print_json(answer.to_json())
    else:
        _show(answer)
    if not answer.ok:
        ctx.exit(1)


def _check(heads: tuple[str, ...]) -> None:
    from gpucost_tui.errors import WrongUse
    from gpucost_tui.text import clean

    for head in heads:
        plain = head.strip().lower()
        if len(plain) != _HASH or set(plain) - set("0123456789abcdef"):
            raise WrongUse(
                f"'{clean(head, limit=80)}' is no SHA-256",
                where="--head",
                fix="Give the 64 hexadecimal digits that `gpucost verify` or a note showed",
            )


def _show(answer: Verification) -> None:
    from gpucost_tui.text import clean, count

    for subject in answer.subjects:
        sealed = subject.manifest.sha256 if subject.manifest else subject.state.manifest
        click.echo(f"Campaign  {clean(subject.name)}")
        click.echo(f"Manifest  {sealed or 'none'}")
        click.echo(f"Head      {subject.chain.head or 'none'}")
    findings = answer.findings
    for one in findings.differences:
        click.echo(f"\nDIFFERS   {clean(one.where, limit=300)}")
        click.echo(f"  expected  {clean(one.expected, limit=400)}")
        click.echo(f"  found     {clean(one.found, limit=400)}")
    if findings.checked:
        counts = (f"{number:,} {name.replace('_', ' ')}" for name, number in _sorted(findings))
        click.echo(f"\nRecomputed: {', '.join(counts)}.")
    for sentence in findings.notes:
        click.echo(f"Note: {clean(sentence, limit=600)}")
    for sentence in findings.not_checkable:
        click.echo(f"Not checkable: {clean(sentence, limit=600)}")
    if findings.differences:
        click.echo(f"\n{count(len(findings.differences), 'difference')}.")
    elif answer.sealed:
        click.echo("\nNo difference.")
    else:
        click.echo("\nNothing is sealed here: there is nothing to verify.")


def _sorted(findings: object) -> list[tuple[str, int]]:
    from gpucost_tui.dossier.findings import Findings

    assert isinstance(findings, Findings)  # noqa: S101 - for the type checker
    return sorted(findings.checked.items())
