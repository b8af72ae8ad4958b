"""Words of the attempts: what to do where there are none, and one attempt in a few lines."""

from __future__ import annotations

from typing import Any

from textual.content import Content

from gpucost_tui.text import clean
from gpucost_tui.tui.attempts_columns import shown_value
from gpucost_tui.tui.safe import filled, plain, state_word

NO_CAMPAIGN = """[b]No campaign is open.[/b]

  [b $text-accent]1[/]  Home opens one
  [b $text-accent]a[/]  shows the attempts of all campaigns here and recently opened
  [b $text-accent]o[/]  opens a raw table file (.csv, .parquet), filled by hand or exported"""
NO_ATTEMPT = """[b]No attempt yet.[/b]

  [b $text-accent]2[/]  Review seals the campaign, [b $text-accent]4[/] Run makes its attempts
  [b $text-accent]a[/]  shows those of all known campaigns
  [b $text-accent]o[/]  opens a table file"""
NONE_LEFT = """No attempt is left by the filters: $x.

  [b $text-accent]esc[/]  takes them back"""


def about(row: dict[str, Any]) -> Content:
    """Return the highlighted attempt in a few lines: what the narrow table has no room for."""
    parts = [state_word(row["status"] or "running")]
    if row["corpus_accepted"] is not None:
        parts.append(state_word("accepted" if row["corpus_accepted"] else "rejected"))
    if row["excluded"]:
        parts.append(state_word("excluded"))
    if row["pass_s"] is not None:
        parts.append(f"pass {shown_value('pass_s', row['pass_s'])}")
    if row["finished_entries"] is not None and row["expected_ids"] is not None:
        parts.append(f"{row['finished_entries']:,} of {row['expected_ids']:,} entries")
    name = f"{row['configuration'] or row['variant'] or 'attempt'}"
    first = filled("[b]$n[/b]  $s", n=clean(name, limit=80), s=" · ".join(parts))
    return Content("\n").join([first, plain(row["notes"] or "", limit=600)])
