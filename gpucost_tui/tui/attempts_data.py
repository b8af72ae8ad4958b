"""Where attempts come from: one campaign, every known one, or a table file. Read in a thread."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gpucost_tui.errors import GpucostError
from gpucost_tui.text import clean, count
from gpucost_tui.tui.attempts_columns import FOLDER, LINE, OWN
from gpucost_tui.tui.work import Work

if TYPE_CHECKING:
    import polars as pl

    from gpucost_tui.campaign.fold import State


@dataclass(frozen=True)
class Attempts:
    """Rows to look at. ``title`` and ``notes`` are outside text; ``many``: several campaigns."""

    title: str
    frame: pl.DataFrame
    many: bool = False
    notes: tuple[str, ...] = ()
    folder: Path | None = None  # the campaign, where it is one


def of_campaign(folder: Path, name: str, state: State) -> Attempts:
    """Return the raw table of a folded journal."""
    from gpucost_tui.campaign.table import raw_table

    return Attempts(name, _placed(raw_table(state), folder), folder=folder)


def of_all(work: Work, folders: Sequence[Path]) -> Attempts:
    """Return the attempts of several campaigns; one that can't be read is a note."""
    import polars as pl

    from gpucost_tui.campaign.fold import fold
    from gpucost_tui.campaign.folder import Campaign
    from gpucost_tui.campaign.table import raw_table

    frames, notes = [], []
    for number, folder in enumerate(folders):
        work.report("Reading campaigns", number, len(folders))
        try:
            campaign = Campaign.open(folder)
            if campaign.sealed:
                frames.append(_placed(raw_table(fold(campaign.events())), folder))
        except GpucostError as error:
            notes.append(f"{clean(folder.name, limit=60)}: {error}")
    title = f"{count(len(frames), 'sealed campaign')} here and opened recently"
    if not frames:
        frames = [_placed(raw_table(fold(())), None)]
    return Attempts(title, pl.concat(frames), many=True, notes=tuple(notes))


def of_file(path: Path) -> Attempts:
    """Return a raw table that somebody filled, or that was exported.

    Raises:
        GpucostError: It can't be read, or a cell is wrong; it is named.
    """
    import polars as pl

    from gpucost_tui.analysis.table import read_table

    read = read_table(path)
    frame = read.frame.with_columns(
        pl.lit(None, dtype=pl.String).alias(FOLDER), pl.Series(LINE, read.lines, dtype=pl.Int64)
    )
    return Attempts(path.name, frame, notes=tuple(read.notes))


def known_campaigns(here: Path, recent: Iterable[str]) -> list[Path]:
    """Return the campaigns of a folder, then those opened recently elsewhere."""
    from gpucost_tui.tui.listing import campaigns_in, is_campaign

    found, _ = campaigns_in(here)
    resolved = {folder.resolve() for folder in found}
    return [*found, *(Path(r) for r in recent if Path(r) not in resolved and is_campaign(Path(r)))]


def without_own(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the frame with the raw table's columns only."""
    return frame.drop(name for name in OWN if name in frame.columns)


def _placed(frame: pl.DataFrame, folder: Path | None) -> pl.DataFrame:
    import polars as pl

    where = pl.lit(None if folder is None else str(folder), dtype=pl.String)
    return frame.with_columns(where.alias(FOLDER), pl.lit(None, dtype=pl.Int64).alias(LINE))


def export(frame: pl.DataFrame, path: Path) -> int:
    """Write rows as CSV or Parquet, whole or not at all; return how many.

    Raises:
        WrongUse: The name ends in neither.
        EnvironmentLacks: It can't be written.
    """
    from gpucost_tui.errors import EnvironmentLacks, WrongUse
    from gpucost_tui.files import replacing

    suffix = path.suffix.lower()
    if suffix not in (".csv", ".parquet"):
        raise WrongUse(
            "what is shown is exported as .csv or .parquet",
            where=clean(path, limit=200),
            fix="End the name in one of them",
        )
    try:
        with replacing(path) as scratch:
            if suffix == ".csv":
                frame.write_csv(scratch, datetime_format="%Y-%m-%dT%H:%M:%S%.6fZ")
            else:
                frame.write_parquet(scratch)
    except OSError as error:
        raise EnvironmentLacks(
            f"the file can't be written ({error.strerror or error})",
            where=clean(path, limit=200),
            fix="Check the folder, its permissions and the space left",
        ) from None
    return frame.height
