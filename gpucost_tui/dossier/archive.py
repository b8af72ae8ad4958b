"""Opens an exported dossier without trusting it: no path leaves its folder, nothing grows unasked.

A ZIP from elsewhere may name paths outside, links, two files of one name, or hold a bomb. Nothing
is extracted before all of it is looked at, and what is extracted is bounded by what was declared.
"""

from __future__ import annotations

import shutil
import stat
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from gpucost_tui.dossier.findings import Findings
from gpucost_tui.dossier.readme import README, SUMS, readme, sums
from gpucost_tui.dossier.verify import REWRITE, Verification, verify
from gpucost_tui.errors import EnvironmentLacks, GpucostError, InputError, NotACampaign
from gpucost_tui.text import clean, size

#: Folder in the ZIP that holds one folder for each campaign.
CAMPAIGNS = "campaigns"
#: The same for the parent campaigns that they were made from.
PARENTS = "parents"
MOST_FILES = 200_000
MOST_BYTES = 64 << 30
#: Longest path in a dossier; file systems refuse names of more than 255 bytes.
_LONGEST = 1000
_LEFT = 64 << 20  # bytes of the disk that stay free


def verify_archive(path: Path, *, heads: Sequence[str] = ()) -> Verification:
    """Verify an exported dossier, extracted into a temporary folder that goes away again.

    Raises:
        InputError: The file is no dossier, damaged, or not safe to extract.
        EnvironmentLacks: There is no room to extract it.
    """
    with extracted(path) as folder:
        campaigns = sorted((folder / CAMPAIGNS).glob("*/"))
        if not campaigns:
            raise InputError(
                "this ZIP holds no campaign", where=clean(path), fix="Verify an exported dossier"
            )
        parents = sorted((folder / PARENTS).glob("*/"))
        names = [one.name for one in campaigns]
        try:
            answer = verify(campaigns, heads=heads, names=names, parents=parents)
            _parents(parents, answer.findings)
        except NotACampaign as error:
            raise InputError(
                f"a folder in it is no campaign ({error.what})", where=clean(path)
            ) from None
        _listed(folder, answer.findings)
        _readme(folder, campaigns, [one.name for one in parents], answer.findings)
        return answer


@contextmanager
def extracted(path: Path) -> Iterator[Path]:
    """Give a temporary folder with a ZIP's files, all of them checked before the first is written.

    Raises:
        InputError: The file is no ZIP, damaged, or not safe to extract.
        EnvironmentLacks: There is no room.
    """
    where = clean(path, limit=200)
    try:
        with (
            zipfile.ZipFile(path) as archive,
            tempfile.TemporaryDirectory(prefix="gpucost-") as made,
        ):
            folder = Path(made)
            for info in _safe(archive, folder, where):
                _extract(archive, info, folder, where)
            yield folder
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        if isinstance(error, GpucostError):
            raise
        raise InputError(
            f"the ZIP can't be read ({clean(error, limit=120)})",
            where=where,
            fix="Copy it again from where it was exported",
        ) from None


def _safe(archive: zipfile.ZipFile, folder: Path, where: str) -> list[zipfile.ZipInfo]:
    infos = archive.infolist()
    if len(infos) > MOST_FILES:
        raise _unsafe(f"it holds {len(infos):,} files, more than {MOST_FILES:,}", where)
    seen: set[str] = set()
    for info in infos:
        _safe_name(info, where)
        key = info.filename.rstrip("/").casefold()
        if key in seen:
            raise _unsafe(f"two files are called '{clean(info.filename, limit=120)}'", where)
        seen.add(key)
    total = sum(info.file_size for info in infos)
    if total > MOST_BYTES:
        raise _unsafe(f"its files are {size(total)}, more than {size(MOST_BYTES)}", where)
    free = shutil.disk_usage(folder).free
    if total + _LEFT > free:
        raise EnvironmentLacks(
            f"there is no room to extract {size(total)} ({size(free)} free)",
            where="the folder for temporary files",
            fix="Make room, or name another folder in TMPDIR",
        )
    return [info for info in infos if not info.is_dir()]


def _safe_name(info: zipfile.ZipInfo, where: str) -> None:
    name = info.filename
    shown = f"'{clean(name, limit=120)}'"
    parts = name.rstrip("/").split("/")
    if not name or len(name) > _LONGEST or any(len(part.encode()) > 255 for part in parts):
        raise _unsafe(f"the path {shown} is too long or empty", where)
    if PurePosixPath(name).is_absolute() or "\\" in name or "\0" in name or ":" in parts[0]:
        raise _unsafe(f"the path {shown} leads outside", where)
    if any(part in ("", ".", "..") for part in parts):
        raise _unsafe(f"the path {shown} leads outside", where)
    kind = stat.S_IFMT(info.external_attr >> 16)
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise _unsafe(f"{shown} is a link or a special file", where)
    if info.flag_bits & 1:
        raise _unsafe(f"{shown} is encrypted", where)


def _extract(archive: zipfile.ZipFile, info: zipfile.ZipInfo, folder: Path, where: str) -> None:
    target = folder.joinpath(*info.filename.split("/"))
    left = info.file_size
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with archive.open(info) as source, target.open("xb") as stream:
            while chunk := source.read(1 << 20):
                left -= len(chunk)
                if left < 0:
                    raise _unsafe(f"'{clean(info.filename)}' is longer than it says", where)
                stream.write(chunk)
    except (FileExistsError, NotADirectoryError):
        raise _unsafe(
            f"'{clean(info.filename, limit=120)}' is a file and a folder", where
        ) from None
    except OSError as error:
        raise EnvironmentLacks(
            f"it can't be extracted ({error.strerror or error})",
            where="the folder for temporary files",
            fix="Make room, or name another folder in TMPDIR",
        ) from None


def _unsafe(what: str, where: str) -> InputError:
    return InputError(
        f"the ZIP is not extracted: {what}", where=where, fix="It is no dossier of this program"
    )


def _parents(parents: Sequence[Path], findings: Findings) -> None:
    """Verify each parent campaign too: the balance rests on it."""
    for place in parents:
        own = verify([place], parents=parents).findings
        own.not_checkable = [said for said in own.not_checkable if said != REWRITE]
        findings.merge(own.named(f"{PARENTS}/{place.name}: "))


def _listed(folder: Path, findings: Findings) -> None:
    """Hold every file against the list of checksums."""
    found = sums(folder)
    try:
        told = (folder / SUMS).read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        findings.differs(SUMS, "the list of checksums", "no file, or unreadable")
        return
    listed = {}
    for line in told.splitlines():
        digest, _, name = line.partition("  ")
        listed[name] = digest
    for name, digest in listed.items():
        if name not in found:
            findings.differs(name, f"SHA-256 {digest} ({SUMS})", "no file")
        elif found[name] != digest:
            findings.differs(name, f"SHA-256 {digest} ({SUMS})", found[name])
    for name in found:
        if name not in listed:
            findings.differs(name, f"a file that {SUMS} lists", "one that it does not")
    findings.checked["listed_files"] += len(listed)


def _readme(
    folder: Path, campaigns: Sequence[Path], parents: Sequence[str], findings: Findings
) -> None:
    try:
        told = (folder / README).read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        findings.differs(README, "the dossier's own description", "no file, or unreadable")
        return
    try:
        expected = readme(campaigns, parents=parents)
    except GpucostError:
        return  # what is wrong with the campaigns is named already
    if told == expected:
        return
    pairs = zip(expected.splitlines(), told.splitlines(), strict=False)
    first = next(((a, b) for a, b in pairs if a != b), ("its end", "another end"))
    findings.differs(README, first[0], clean(first[1], limit=200))
