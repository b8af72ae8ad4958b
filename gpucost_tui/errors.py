"""The errors that a person may meet, drawn in one place.

::

    GpucostError                exit status 1
    ├── AnswerIsNo              1   the question was understood and the answer is no
    │   ├── Refused             1   a rule refuses (R1, R2, R5 ... ); nothing was changed
    │   └── Differs             1   something sealed is no longer what it was
    ├── WrongUse                2   an impossible value, an unknown word, a file that can't be read
    │   ├── InputError          2   a corpus, protocol, catalogue or table with a located mistake
    │   └── NotACampaign        2
    ├── EnvironmentLacks        3   model, token, disk, device or package that is not there
    ├── Interrupted           130   SIGINT
    └── Terminated            143   SIGTERM or SIGHUP

Every error says what is wrong, where, and what to do; :func:`str` joins them to one paragraph.
"""

from __future__ import annotations


class GpucostError(Exception):
    """An error with a sentence for the person at the keyboard.

    Args:
        what: What is wrong, a sentence without its final stop.
        where: File, line, table, key or id that it is about.
        fix: What to do about it, a sentence without its final stop.
    """

    exit_status = 1

    def __init__(self, what: str, *, where: str | None = None, fix: str | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.fix = fix

    def __str__(self) -> str:
        first = f"{self.where}: {self.what}" if self.where else self.what
        return f"{first}. {self.fix}." if self.fix else f"{first}."


class AnswerIsNo(GpucostError):
    """The question was understood; the answer is no."""


class Refused(AnswerIsNo):
    """A rule forbids it; nothing was changed."""


class Differs(AnswerIsNo):
    """Something that was sealed or recorded is no longer what it was."""


class WrongUse(GpucostError):
    """An impossible value or an unknown word."""

    exit_status = 2


class InputError(WrongUse):
    """A file of the user's with a mistake that can be located."""


class NotACampaign(WrongUse):
    """The folder named is no campaign."""


class EnvironmentLacks(GpucostError):
    """A model, token, device, package or disk space that is not there."""

    exit_status = 3


class Interrupted(GpucostError):
    """Ended by SIGINT."""

    exit_status = 130


class Terminated(GpucostError):
    """Ended by SIGTERM or SIGHUP."""

    exit_status = 143
