"""Manifest review: everything that a seal freezes, what blocks it, and the seal itself."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.app import SuspendNotSupported
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from gpucost_tui.text import count
from gpucost_tui.tui.safe import filled, plain
from gpucost_tui.tui.screen import PlaceScreen

if TYPE_CHECKING:
    from gpucost_tui.tui.context import Snapshot, Version
    from gpucost_tui.tui.review_facts import Review

#: Below this width only the section in front is named.
NARROW = 60
SECTIONS = ("problems", "decision", "corpus", "model", "settings", "host")
_SEAL_WORDS = (
    "Sealing fixes, before the first duration is seen, what can no longer be changed afterwards:\n"
    "• the question, the deadline, the budget and the minimum quality\n"
    "• the corpus, its order, the reference answers, and the model, byte for byte\n"
    "• every variant and setting, the warm-up rule, rounds and their order\n"
    "• the causes for which a pass may be excluded\n\n"
    "A later change makes a new campaign, which names this one as its parent. Nothing is run yet."
)
_NO_CAMPAIGN = "No campaign is open. [b $text-accent]1[/] Home lists them, and makes one."


class ReviewScreen(PlaceScreen):
    """The decision, the corpus, the model, every setting, this machine, and the problems."""

    PLACE: ClassVar[str] = "review"
    HELP = (
        "Left and right go from section to section, up and down scroll. Everything shown here is "
        "frozen by the seal, except this machine, which every attempt refers to. The protocol is "
        "edited in your editor (VISUAL or EDITOR); an edit made elsewhere is noticed."
    )
    CSS_PATH = "review.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "seal", "Seal", tooltip="Freeze the campaign; asks first"),
        Binding("e", "edit", "Edit", tooltip="Open protocol.toml in your editor"),
        Binding("r", "look", "Check", tooltip="Look at everything again"),
        Binding("right,l", "section(1)", "Next section", tooltip="Next section", show=False),
        Binding("left,h", "section(-1)", "Section before", tooltip="Section before", show=False),
        Binding("escape", "cancel", "Cancel", tooltip="Cancel the check or seal", show=False),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._section = "decision"
        self._review: Review | None = None
        self._looked: tuple[Path, Version, Version] | None = None
        self._said = ""
        self._failure = ""

    def content(self) -> Iterable[Widget]:
        yield Static(id="banner", markup=False)
        yield Static(id="sections", markup=False)
        pane = VerticalScroll(Static(id="section", markup=False), id="pane")
        side = VerticalScroll(Static(id="beside", markup=False), id="side", can_focus=False)
        side.border_title = "Problems"
        yield Horizontal(pane, side, id="panes")

    def on_mount(self) -> None:
        self._paint()

    def on_resize(self, event: events.Resize) -> None:
        self.call_after_refresh(self._paint)

    # Looking

    def show(self, snapshot: Snapshot) -> None:
        versions = snapshot.versions
        if snapshot.folder is None or not versions:
            self._forget(snapshot)
            return
        now = (snapshot.folder, versions.get("protocol"), versions.get("manifest"))
        # What a seal in progress writes is looked at when it has ended.
        if self._looked != now and not self.busy("sealing"):
            if self._looked is not None and self._looked[0] == now[0]:
                changed = self._looked[1] != now[1]
                self._said = "protocol.toml was changed" if changed else ""
            if self._looked is None or self._looked[0] != now[0]:
                self._review, self._said = None, ""
            self._looked = now
            # Reading a corpus beside a measured pass would cost it time.
            if snapshot.word not in ("running", "paused"):
                self.action_look()
        self._paint()

    def _forget(self, snapshot: Snapshot) -> None:
        if self._looked is not None and self._looked[0] != snapshot.folder:
            self.cancel("check")
            self._looked, self._review, self._failure = None, None, ""
        self._paint()

    def action_look(self) -> None:
        """Look at protocol, corpora, model, machine and disk, in a thread."""
        from gpucost_tui.tui.review_facts import look

        folder = self.gpucost.snapshot.folder
        if folder is None or self.busy("sealing"):
            return
        self._failure = ""
        self.work(
            "check",
            lambda work: look(work, folder),
            done=self._looked_at,
            failed=self._not_looked_at,
            progress=self._progress,
        )
        self._progress("Looking", None, None)

    def _progress(self, text: str, done: int | None, total: int | None) -> None:
        words = f"{self._said}. " if self._said else ""
        self._banner(
            filled("… $words$text  [$text-muted]escape cancels[/]", words=words, text=text)
        )

    def _looked_at(self, review: Review) -> None:
        first = self._review is None
        self._review, self._said = review, ""
        if first and review.blocking:
            self._section = "problems"
        self._paint()

    def _not_looked_at(self, why: str) -> None:
        self._failure = f"{why} r looks again." if why == "Cancelled." else why
        self._paint()

    def action_cancel(self) -> None:
        """Cancel the check, or a seal that is not being written yet; both end where they stand."""
        if self.cancel("check"):
            self._failure = "Cancelled. r looks again."
            self._works.pop("check", None)
            self._paint()
        elif self.cancel("sealing"):
            self._banner(plain("… Cancelling the seal"))

    # Painting

    def _paint(self) -> None:
        if not self.is_mounted:
            return
        snapshot = self.gpucost.snapshot
        if not self.busy("check") and not self.busy("sealing"):
            self._banner(self._verdict())
        self.query_one("#sections").display = snapshot.folder is not None
        self.query_one("#sections", Static).update(self._tabs())
        width = max(self.query_one("#section").size.width, 20)
        lines = list(self._lines(self._section, width))
        self.query_one("#section", Static).update(Content("\n").join(lines))
        review = self._review
        beside = self._section != "problems" and review is not None and review.survey.problems
        self.query_one("#side").set_class(not beside, "-empty")
        if beside:
            self.query_one("#beside", Static).update(
                Content("\n").join(self._lines("problems", 36))
            )
        self.refresh_bindings()

    def _banner(self, content: Content) -> None:
        self.query_one("#banner", Static).update(content)

    def _verdict(self) -> Content:
        snapshot, review = self.gpucost.snapshot, self._review
        if snapshot.folder is None:
            return filled(_NO_CAMPAIGN)
        if self._failure:
            return filled("[$text-error]✗ $x[/]", x=self._failure)
        if review is None:
            if snapshot.word in ("running", "paused"):
                return plain("A run is at work: a check would disturb it. r looks all the same.")
            return (
                filled("[$text-error]✗ $x[/]", x=snapshot.problem)
                if snapshot.problem
                else plain("…")
            )
        notes = len(review.survey.problems) - review.blocking
        told = f", {count(notes, 'note')}" if notes else ""
        if review.manifest is not None:
            mark = "[$text-error]✗ differs:[/] see the problems. " if review.blocking else ""
            return filled(f"{mark}◆ Sealed as [b]$x[/b]", x=review.manifest.sha256)
        if review.blocking:
            verb = "blocks" if review.blocking == 1 else "block"
            words = (
                f"{count(review.blocking, 'problem')} {verb} the seal{told}. e edits the protocol."
            )
            return filled("[$text-error]✗ $x[/]", x=words)
        return filled("[$text-success]✓ $x[/]", x=f"Nothing blocks the seal{told}. s seals.")

    def _tabs(self) -> Content:
        """Return the sections' names; in a narrow window the one in front, between its arrows."""
        if self.size.width < NARROW:
            at = SECTIONS.index(self._section)
            before, after = SECTIONS[at - 1], SECTIONS[(at + 1) % len(SECTIONS)]
            words = f"{self._label(self._section)} ({at + 1} of {len(SECTIONS)})"
            names = [
                (f"show_section('{before}')", "‹", ""),
                ("", words, "bold"),
                (f"show_section('{after}')", "›", ""),
            ]
        else:
            names = [
                (
                    f"show_section('{name}')",
                    self._label(name),
                    "bold reverse" if name == self._section else "",
                )
                for name in SECTIONS
            ]
        return Content(" ").join(
            Content.from_markup(f"[@click=screen.{click}][{style or '$foreground'}] {words} [/][/]")
            if click
            else Content.styled(words, style)
            for click, words, style in names
        )

    def _label(self, name: str) -> str:
        if name == "problems" and self._review is not None:
            return f"Problems {len(self._review.survey.problems)}"
        return name.capitalize()

    def _lines(self, section: str, width: int) -> Iterator[Content]:
        from gpucost_tui.tui import review_text

        review = self._review
        protocol = review.protocol if review is not None else self.gpucost.snapshot.protocol
        if section in ("decision", "settings"):
            if protocol is None:
                yield plain("The protocol can't be read: Problems says why." if review else "…")
            elif section == "decision":
                yield from review_text.decision(protocol, width)
            else:
                yield from review_text.settings(protocol, width)
        elif review is None:
            yield plain(self._not_yet())
        elif section == "problems":
            yield from review_text.problems(review)
        elif section == "model":
            yield from review_text.model(review, width)
        elif section == "corpus":
            from gpucost_tui.tui.review_corpus import corpus

            yield from corpus(review, width)
        else:
            from gpucost_tui.tui.review_host import host

            yield from host(review, width)

    def _not_yet(self) -> str:
        if self.busy("check"):
            return "…"
        at_work = self.gpucost.snapshot.word in ("running", "paused")
        return "Not looked at beside the run. r looks all the same." if at_work else "Not yet."

    # Actions

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        snapshot = self.gpucost.snapshot
        if action in ("seal", "edit") and (snapshot.folder is None or snapshot.sealed):
            return None
        if action == "look" and snapshot.folder is None:
            return None
        return True

    def action_section(self, step: int) -> None:
        """Go to another section."""
        at = SECTIONS.index(self._section)
        self.action_show_section(SECTIONS[(at + step) % len(SECTIONS)])

    def action_show_section(self, name: str) -> None:
        if name in SECTIONS:
            self._section = name
            self._paint()
            self.query_one("#pane", VerticalScroll).scroll_home(animate=False)

    def action_edit(self) -> None:
        """Open the protocol in the person's editor; the app waits, and looks again afterwards."""
        folder = self.gpucost.snapshot.folder
        if folder is None:
            return
        editor = find_editor()
        if editor is None:
            words = "No editor was found: set EDITOR, or edit protocol.toml elsewhere."
            self.gpucost.say(words, severity="error")
            return
        try:
            with self.app.suspend():
                ended = subprocess.run([*editor, str(folder / "protocol.toml")], check=False)
        except SuspendNotSupported:
            self.gpucost.say("This terminal can't be lent to an editor.", severity="error")
            return
        except OSError as error:
            words = f"'{editor[0]}' can't be started ({error.strerror}): set EDITOR."
            self.gpucost.say(words, severity="error")
            return
        if ended.returncode:
            words = f"The editor ended with status {ended.returncode}."
            self.gpucost.say(words, severity="warning")
        self.gpucost.context.nudge()

    def action_seal(self) -> None:
        """Ask once, then seal."""
        from gpucost_tui.tui.dialogs import ConfirmDialog

        review = self._review
        if review is None or self.busy("check"):
            self.gpucost.say("The check is not done yet.", severity="warning")
        elif review.blocking:
            self.action_show_section("problems")
            words = f"{count(review.blocking, 'problem')} in the way of sealing: see the list."
            self.gpucost.say(words, severity="warning")
        else:
            self.app.push_screen(
                ConfirmDialog("Seal this campaign?", _SEAL_WORDS, yes="Seal", no="Not yet"),
                self._seal,
            )

    def _seal(self, yes: bool | None) -> None:
        from gpucost_tui.tui.review_facts import seal_it

        review = self._review
        if not yes or review is None:
            return
        self.work(
            "sealing",
            lambda work: seal_it(work, review.folder),
            done=self._sealed,
            failed=self._not_sealed,
            progress=self._sealing,
            writes=True,
        )
        self._sealing("Looking", None, None)

    def _sealing(self, text: str, done: int | None, total: int | None) -> None:
        self._banner(filled("… Sealing: $x  [$text-muted]escape cancels[/]", x=text))

    def _sealed(self, sha256: str) -> None:
        # The banner keeps it once the campaign has been looked at again.
        self.gpucost.say(f"Sealed as {sha256}. Next: 4 Run.", timeout=6)
        self.show(self.gpucost.snapshot)
        self.gpucost.context.nudge()

    def _not_sealed(self, why: str) -> None:
        if why == "Cancelled.":
            self._failure = "Not sealed: cancelled. s seals."
        else:
            self._failure = f"Not sealed: {why}"
            self.gpucost.say(self._failure, severity="error")  # the next look takes the banner
        self.show(self.gpucost.snapshot)


def find_editor() -> list[str] | None:
    """Return the person's editor as a command, or a common one that is here."""
    for name in ("VISUAL", "EDITOR"):
        try:
            words = shlex.split(os.environ.get(name, ""))
        except ValueError:
            words = []  # an unclosed quote: the next one
        if words:
            return words
    return next(([found] for name in ("nano", "vim", "vi") if (found := shutil.which(name))), None)
