"""``gpucost new``: makes a campaign from a protocol, a corpus and a model."""

from __future__ import annotations

import click


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path())
@click.option("--protocol", metavar="NAME|FILE", help="A template's name, or a TOML file.")
@click.option(
    "--corpus",
    multiple=True,
    metavar="[NAME=]FILE",
    help="JSONL, CSV or Parquet (.gz too), a glob, or several; NAME is a deliverable.",
)
@click.option("--model", metavar="M[@REVISION]", help="A folder, org/name@revision, or 'demo'.")
@click.option("--tuning", multiple=True, metavar="FILE", help="Data that was used for tuning.")
@click.option(
    "--reference", multiple=True, metavar="[NAME=]FILE", help="Answers: id and answer columns."
)
@click.option("--from", "parent", metavar="DIR", help="Make a child of this sealed campaign.")
@click.option(
    "--id-column", default="id", show_default=True, help="In corpus, tuning and reference files."
)
@click.option(
    "--text-column", default="text", show_default=True, help="In corpus and tuning files."
)
@click.option("--answer-column", default="answer", show_default=True, help="In --reference files.")
@click.option("--right-of-use", metavar="TEXT", help="Why these texts may be processed here (R5).")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="TABLE.KEY=VALUE",
    help="Change the protocol, such as quality.threshold=0.8.",
)
@click.option("--link", is_flag=True, help="Refer to a large .jsonl corpus instead of copying it.")
def new(
    folder: str,
    protocol: str | None,
    corpus: tuple[str, ...],
    model: str | None,
    tuning: tuple[str, ...],
    reference: tuple[str, ...],
    parent: str | None,
    id_column: str,
    text_column: str,
    answer_column: str,
    right_of_use: str | None,
    settings: tuple[str, ...],
    link: bool,
) -> None:
    """Make the campaign DIR from a protocol, a corpus and a model.

    \b
    Templates: classification-batch, classification-precision, embedding-batch.
    Labels in another column than `label`:
      --set corpus.label_column=NAME --set reference.column=NAME
    """
    from pathlib import Path

    from gpucost_tui.campaign.create import Inputs, create, parse_setting
    from gpucost_tui.cli.common import typed
    from gpucost_tui.text import clean

    changes = [parse_setting(text) for text in settings]
    if right_of_use is not None:
        changes.append(("corpus.right_of_use", right_of_use))
    campaign = create(
        Path(folder),
        Inputs(
            protocol=protocol,
            corpus=corpus,
            model=model,
            tuning=tuning,
            reference=reference,
            parent=Path(parent) if parent else None,
            id_column=id_column,
            text_column=text_column,
            answer_column=answer_column,
            link=link,
            settings=changes,
        ),
    )
    click.echo(f"Made the campaign {clean(folder)}.")
    click.echo(f"The decision is written in {clean(campaign.protocol_file)}: edit it now.")
    click.echo(f"Next: gpucost check {typed(folder)}")
