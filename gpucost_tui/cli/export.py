"""``gpucost export``: packs campaigns into one ZIP for somebody else."""

from __future__ import annotations

import click

from gpucost_tui.cli.common import json_option, parents_option, print_json, say, take_over_option


@click.command()
@click.argument("places", metavar="DIR… OUT.zip", nargs=-1, required=True, type=click.Path())
@click.option("--anyway", is_flag=True, help="Pack a campaign that differs from its record too.")
@parents_option
@take_over_option
@json_option
def export(
    places: tuple[str, ...],
    anyway: bool,
    parents: tuple[str, ...],
    take_over: bool,
    as_json: bool,
) -> None:
    """Pack one campaign, or several with one manifest, into a dossier that anybody can verify.

    The same content gives the same bytes. It is verified first; no runner may be at work.
    """
    from pathlib import Path

    from gpucost_tui.dossier.export import export as pack
    from gpucost_tui.errors import WrongUse
    from gpucost_tui.text import clean, count, size

    if len(places) < 2 or not places[-1].lower().endswith(".zip"):
        raise WrongUse(
            "campaigns and the ZIP to write are expected",
            fix="Write `gpucost export DIR OUT.zip`",
        )
    *folders, target = (Path(place) for place in places)
    done = pack(
        folders,
        target,
        anyway=anyway,
        parents=[Path(one) for one in parents],
        take_over=take_over,
    )
    for name in done.unrecorded:
        say(f"note: '{name}' can't be written to: its journal does not hold this export.")
    if as_json:
        print_json(
            {
                "path": str(done.path),
                "sha256": done.sha256,
                "bytes": done.bytes,
                "files": done.files,
                "seconds": done.seconds,
                "manifest": done.manifest,
                "heads": list(done.heads),
                "referred": list(done.referred),
                "differences": len(done.verification.findings.differences),
            }
        )
        return
    click.echo(f"Exported {count(done.files, 'file')}, {size(done.bytes)}: {clean(done.path)}")
    click.echo(f"SHA-256   {done.sha256}")
    click.echo(f"Manifest  {done.manifest}")
    for head in done.heads:
        click.echo(f"Head      {head}   keep it elsewhere")
    for name in done.referred:
        click.echo(f"Referred to, not packed: {clean(name)}")
    if found := done.verification.findings.differences:
        click.echo(f"It was packed with {count(len(found), 'difference')} (--anyway).")
    click.echo(f"Anybody can check it: gpucost verify {clean(target)}")
