"""Base of the dialogs that take the whole window."""

from __future__ import annotations

from textual.screen import ModalScreen

from gpucost_tui.tui.work import Worker


class WholeDialog(Worker, ModalScreen[None]):
    """A dialog as large as the window, with a ``Vertical`` of the class ``dialog``."""

    CSS_PATH = "whole.tcss"
