"""Which files make up a corpus, and their bytes as lines of text with located mistakes."""

from __future__ import annotations

import glob
import gzip
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal

from gpucost_tui.errors import InputError
from gpucost_tui.text import clean, listed

#: A line longer than this is a mistake (a quote left open, a file without line ends), not a text.
MAX_LINE_BYTES = 1 << 26

Kind = Literal["jsonl", "csv", "parquet"]
_KINDS: dict[str, Kind] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".parquet": "parquet",
}
_FORMS = "Give .jsonl, .csv or .parquet files (.jsonl.gz and .csv.gz too)"
_BOM = b"\xef\xbb\xbf"
#: How files that are named wrongly begin.
_SIGNS = (
    (b"\x1f\x8b", "The file is gzip data: give its name the ending .gz"),
    (b"PAR1", "The file is Parquet: give its name the ending .parquet"),
    (b"PK\x03\x04", "The file is a zip archive or a workbook: export it as .csv or .jsonl"),
    (b"\xff\xfe", "The file looks like UTF-16: save it as UTF-8"),
    (b"\xfe\xff", "The file looks like UTF-16: save it as UTF-8"),
)


@dataclass(frozen=True, slots=True)
class Source:
    """One file of a corpus."""

    path: Path
    kind: Kind
    gzipped: bool = False

    def at(self, line: int, name: str | None = None) -> str:
        """Return the place of an entry for a sentence: ``a.jsonl, line 7, id 'x'``."""
        unit = "row" if self.kind == "parquet" else "line"
        place = f"{clean(self.path)}, {unit} {line}"
        return place if name is None else f"{place}, id '{clean(name, limit=80)}'"


def find_sources(sources: Sequence[str | Path]) -> list[Source]:
    """Return the files of a corpus in order; a glob stands for its files sorted by name.

    A name that exists is taken as it is, even with ``*``, ``?`` or ``[`` in it.

    Raises:
        InputError: A file or a glob's match isn't there, is a folder, has an unknown ending, or is
            named twice.
    """
    found = [
        _source(path)
        for given in ([sources] if isinstance(sources, str | Path) else sources)
        for path in _expanded(str(given))
    ]
    if not found:
        raise InputError("no corpus file was named", fix=_FORMS)
    seen: set[Path] = set()
    for source in found:
        real = source.path.resolve()
        if real in seen:
            raise InputError(
                "the file is named twice", where=clean(source.path), fix="Name every file once"
            )
        seen.add(real)
    return found


def _expanded(given: str) -> list[Path]:
    if "\0" in given or not given:
        raise InputError(f"'{clean(given)}' is no file name", fix=_FORMS)
    if not glob.has_magic(given) or _exists(Path(given)):
        return [Path(given)]
    # Path.glob takes no absolute pattern.
    names = sorted(glob.glob(given, recursive=True))  # noqa: PTH207
    matches = [path for name in names if not (path := Path(name)).is_dir()]
    if not matches:
        raise InputError("no file matches this pattern", where=clean(given), fix="Check the path")
    return matches


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a pattern too long for a name
        return False


def _source(path: Path) -> Source:
    try:
        is_file, is_folder = path.is_file(), path.is_dir()
    except OSError as error:
        raise unreadable(path, error) from None
    if is_folder:
        inside = f"{clean(path)}/*.jsonl"
        raise InputError(
            "this is a folder, not a file", where=clean(path), fix=f"Name its files, as '{inside}'"
        )
    if not is_file:
        there = path.exists()
        raise InputError(
            "this is no regular file" if there else "there is no such file",
            where=clean(path),
            fix=_FORMS if there else "Check the path",
        )
    suffixes = [suffix.lower() for suffix in path.suffixes]
    gzipped = suffixes[-1:] == [".gz"]
    ending = suffixes[-2:-1] if gzipped else suffixes[-1:]
    kind = _KINDS.get(ending[0]) if ending else None
    if kind is None or (gzipped and kind == "parquet"):
        shown = "".join(suffixes[-2:] if gzipped else suffixes[-1:]) or "none"
        raise InputError(
            f"files with this ending ({clean(shown)}) are not read", where=clean(path), fix=_FORMS
        )
    return Source(path, kind, gzipped)


def text_lines(source: Source) -> Iterator[str]:
    """Yield a file's lines as written, line ends included; a byte order mark is left out.

    Lines end at LF alone, so that a line separator within a text (U+2028, CR) stays in it.

    Raises:
        InputError: Invalid UTF-8 (with the byte's offset in the uncompressed file), a line beyond
            :data:`MAX_LINE_BYTES`, damaged gzip data, or a file that can't be read.
    """
    offset = 0
    for number, raw in enumerate(_raw_lines(source), start=1):
        if len(raw) > MAX_LINE_BYTES:
            raise InputError(
                f"the line is longer than {MAX_LINE_BYTES:,} bytes",
                where=source.at(number),
                fix="Put every entry on a line of its own",
            )
        start = len(_BOM) if number == 1 and raw.startswith(_BOM) else 0
        try:
            line = raw.decode("utf-8") if not start else raw[start:].decode("utf-8")
        except UnicodeDecodeError as error:
            at = start + error.start
            raise InputError(
                f"byte 0x{raw[at]:02x} at offset {offset + at:,} of the file is not UTF-8",
                where=source.at(number),
                fix=_sign(raw) if number == 1 else "Save the file as UTF-8",
            ) from None
        offset += len(raw)
        if line:
            yield line


def _raw_lines(source: Source) -> Iterator[bytes]:
    number = 0
    try:
        with _opened(source) as stream:
            while raw := stream.readline(MAX_LINE_BYTES + 1):
                number += 1
                yield raw
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(
            f"the gzip data are damaged after line {number:,} ({clean(error)})",
            where=clean(source.path),
            fix="Make or copy the file again",
        ) from None
    except OSError as error:
        raise unreadable(source.path, error) from None


def _opened(source: Source) -> IO[bytes] | gzip.GzipFile:
    if source.gzipped:
        return gzip.open(source.path, "rb")
    return source.path.open("rb")


def _sign(start: bytes) -> str:
    for sign, fix in _SIGNS:
        if start.startswith(sign):
            return fix
    return "Save the file as UTF-8"


def unreadable(path: Path, error: Exception) -> InputError:
    """Return the error for a file that the system or a library refuses to read."""
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    first = next(iter(reason.splitlines()), type(error).__name__)
    return InputError(
        f"the file can't be read ({clean(first, limit=200)})",
        where=clean(path),
        fix="Check the file and the right to read it",
    )


def columns_of(names: Sequence[str]) -> str:
    """Return the columns that are there, for a sentence about one that isn't."""
    return (
        f"columns here: {listed(list(names), limit=12)}" if names else "there are no columns here"
    )
