"""Takes out of text what belongs to nobody else: secrets, user names, places of this machine.

Journal, log, ``failure.txt`` and tables travel with the dossier. What comes into them from outside
(an error's text, a traceback, what a library prints) passes through :meth:`Private.hide` first.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

_SECRET_NAME = re.compile(
    r"TOKEN(?!IZER)|SECRET|PASSWORD|PASSWD|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|CREDENTIAL"
    r"|(?:^|_)(?:KEY|PAT|AUTH|PWD|PASS|PASSPHRASE)$"
)
_PLACE_NAME = re.compile(r"_(?:FILE|PATH|DIR|HOME|SOCK)$|^(?:OLD)?PWD$")
#: Tokens that are known by their form: Hugging Face, GitHub, AWS, bearer headers, user:password@.
_SECRET_FORM = re.compile(
    r"hf_[A-Za-z0-9]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|AKIA[0-9A-Z]{16}|(?<=[Bb]earer )[\w.~+/=-]{8,}"
    r"|(?<=://)[^/\s:@]+:[^/\s@]+(?=@)"
)
_SOMEONES_HOME = re.compile(r"/(home|Users)/[^/\s'\":,;()]+")
_END = r"(?=[/\s'\":,;()\]]|$)"
_LEAST = 6  # characters of a value that is taken for a secret
#: Outside of a path a name is hidden where it is long enough to be no word of a sentence by chance,
#: and no name that machines give their users.
_SHORT = 4
_NOBODY = re.compile(
    "admin|centos|debian|default|docker|fedora|guest|jovyan|nobody|runner|student|ubuntu|vscode|worker"
)


class Private:
    """Knows what to hide on this machine.

    Args:
        folder: The campaign's folder; a path in it becomes ``<campaign>/…``.
        environ: The environment, by default that of this process.
    """

    def __init__(self, folder: Path, environ: Mapping[str, str] | None = None) -> None:
        environ = os.environ if environ is None else environ
        rules = [(re.escape(secret), "(secret)") for secret in _secrets(environ)]
        for place in {folder.absolute(), folder.resolve()}:
            if len(place.parts) > 1:
                rules.append((re.escape(str(place)) + _END, "<campaign>"))
        for home in _homes(environ):
            rules.append((re.escape(home) + _END, "~"))
        for name in _names(environ):
            rules.append((r"(?<=/)" + re.escape(name) + _END, "(user)"))
            if len(name) > _SHORT and not _NOBODY.fullmatch(name):
                rules.append((r"(?<![\w-])" + re.escape(name) + r"(?![\w-])", "(user)"))
        self._rules = [(re.compile(pattern), shown) for pattern, shown in rules]

    def hide(self, text: str) -> str:
        """Return text without secrets, user names and home folders."""
        for pattern, shown in self._rules:
            text = pattern.sub(shown, text)
        text = _SOMEONES_HOME.sub(r"/\1/(user)", text)
        return _SECRET_FORM.sub("(secret)", text)


def _secrets(environ: Mapping[str, str]) -> Iterator[str]:
    for name, value in environ.items():
        if not _SECRET_NAME.search(name.upper()):
            continue
        # A file's place is no secret; what it holds is read only for the hub's token.
        there = value.startswith("/") and os.path.exists(value)  # noqa: PTH110 - never raises
        named = value.startswith("/") and _PLACE_NAME.search(name)
        if not (there or named or value.isdigit()):
            yield from _lines(value)
    home = environ.get("HF_HOME") or str(Path(environ.get("HOME", "/")) / ".cache/huggingface")
    for place in (environ.get("HF_TOKEN_PATH"), str(Path(home) / "token")):
        try:
            token = Path(place).read_text("utf-8").strip() if place else ""
        except (OSError, ValueError):
            continue
        yield from _lines(token)


def _lines(secret: str) -> Iterator[str]:
    """Yield a secret, and each line of it: a log is written line by line."""
    yield from dict.fromkeys(
        part for part in (secret, *map(str.strip, secret.splitlines())) if len(part) >= _LEAST
    )


def _homes(environ: Mapping[str, str]) -> Iterator[str]:
    homes = {environ.get("HOME", "").rstrip("/")}
    with contextlib.suppress(KeyError):  # a container's user may have no entry
        homes.add(pwd.getpwuid(os.getuid()).pw_dir.rstrip("/"))
    for home in sorted(homes, key=len, reverse=True):
        if len(home) > 1:
            yield home
            if (real := os.path.realpath(home)) != home:
                yield real


def _names(environ: Mapping[str, str]) -> set[str]:
    names = {environ.get(name, "") for name in ("USER", "LOGNAME", "SUDO_USER")}
    with contextlib.suppress(KeyError):
        names.add(pwd.getpwuid(os.getuid()).pw_name)  # a service's environment may name nobody
    return {name for name in names if re.fullmatch(r"[\w.-]{2,}", name)}
