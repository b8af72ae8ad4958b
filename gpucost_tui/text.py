"""Words and numbers on their way to a person: cleaned, rounded, with units.

Stored data stay as written. Whatever came from outside (ids, documents, errors, model names)
passes through :func:`clean` once on its way to a terminal, a screen or a report.
"""

from __future__ import annotations

import re
from decimal import ROUND_HALF_UP, Decimal

# Controls (C0 without tab and newline, DEL, C1), bidirectional overrides and isolates,
# zero-width marks that reorder or hide, line and paragraph separators, lone surrogates.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff"
    "\ud800-\udfff]"
)


def clean(text: object, *, one_line: bool = True, limit: int | None = None) -> str:
    """Make outside text safe to print: what could steer a terminal is shown, not obeyed.

    Control characters become ``\\x1b`` and the like, so nothing disappears silently.

    Args:
        text: Anything; ``str()`` is taken of it.
        one_line: Show line breaks and tabs as ``\\n`` and ``\\t`` too.
        limit: Greatest number of characters; the rest is replaced by an ellipsis.
    """
    raw = str(text)
    if limit is not None and len(raw) > limit:
        raw = raw[: max(limit - 1, 0)] + "…"
    safe = _UNSAFE.sub(_shown, raw)
    if one_line:
        safe = safe.replace("\n", "\\n").replace("\t", "\\t")
    return safe


def _shown(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def money(amount: Decimal) -> str:
    """Return US dollars as text with two decimals, rounded half up (only when shown)."""
    return str(amount.quantize(Decimal("0.01"), rounding=ROUND_HALF_UP))


def count(number: int, noun: str, plural: str | None = None) -> str:
    """Return ``1 attempt``, ``1,000 attempts``."""
    word = noun if number == 1 else plural or f"{noun}s"
    return f"{number:,} {word}"


def seconds(value: float | None) -> str:
    """Return a duration for people: ``0.42 s``, ``12.3 s``, ``4 min 05 s``, ``3 h 20 min``."""
    if value is None:
        return "-"
    if value < 60:
        return f"{value:.2f} s" if value < 10 else f"{value:.1f} s"
    whole = round(value)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    minutes = round(value / 60)
    return f"{minutes // 60} h {minutes % 60:02d} min"


def size(value: int | None) -> str:
    """Return a number of bytes for people, in binary units: ``1.9 MiB``."""
    if value is None:
        return "-"
    amount = float(value)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(amount) < 1024:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"


def listed(words: list[str] | tuple[str, ...], limit: int = 5, *, length: int | None = 80) -> str:
    """Join words for a sentence, naming at most ``limit`` of them: ``a, b and 3 more``.

    Each is cut to ``length`` characters; a path is named whole (``length=None``).
    """
    shown = [clean(word, limit=length) for word in words[:limit]]
    rest = len(words) - len(shown)
    return ", ".join(shown) + (f" and {rest:,} more" if rest else "")
