"""Forks processes that act on campaigns at given moments: a start costs milliseconds.

``python together_zygote.py``: each line on standard input is a JSON list of steps, each a dict with
``do`` (a function below), its arguments, and ``at``: seconds after a common start, one number for
each of its moments. Every step runs in a process of its own. One line comes back: a JSON list with
what each said, as ``{"ok": …}``, ``{"refused": sentence, "kind": class}`` or ``{"crash": trace}``.
Only for engines without torch and policy ``thread``.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gpucost_tui.campaign.committing import Pack, commit
from gpucost_tui.campaign.edit import read_draft
from gpucost_tui.campaign.folder import Campaign
from gpucost_tui.campaign.lock import RunnerLock
from gpucost_tui.campaign.runner import Listener, Options, Wishes, run
from gpucost_tui.campaign.seal import seal
from gpucost_tui.dossier.export import export
from gpucost_tui.errors import Differs, GpucostError, Refused
from gpucost_tui.pricing import catalogue

Wait = Callable[[], None]


def edit(wait: Wait, folder: str, name: str, size: int) -> list[str]:
    """Read the draft at the first moment, write a variant into it at the second."""
    wait()
    draft = read_draft(Campaign(Path(folder)))
    change = draft.add(name, {"batch_size": size}, [draft.protocol.series[0].name])
    wait()
    draft.write(change)
    return list(change.protocol.variants)


def edit_until_done(wait: Wait, folder: str, names: list[str]) -> int:
    """Put variants in, one after the other, looking again whenever somebody was quicker."""
    wait()
    again = 0
    for name in names:
        while True:
            try:
                draft = read_draft(Campaign(Path(folder)))
                draft.write(draft.add(name, {"batch_size": 2}, []))
                break
            except Differs:
                again += 1
    return again


def outside(wait: Wait, folder: str, old: str, new: str, how: str) -> None:
    """Edit as a text editor does: read at the first moment, save at the second, look at nothing."""
    path = Path(folder) / "protocol.toml"
    wait()
    text = path.read_text("utf-8").replace(old, new)
    assert new in text
    wait()
    if how == "in place":
        path.write_text(text, "utf-8")
    else:
        path.with_name("protocol.toml~").write_text(text, "utf-8")
        path.with_name("protocol.toml~").replace(path)


def sealing(wait: Wait, folder: str) -> str:
    wait()
    return seal(Campaign(Path(folder)))[0].sha256


def running(wait: Wait, folder: str, take_over: bool = False) -> int:
    wait()
    options = Options(take_over=take_over)
    return run(
        Campaign(Path(folder)), wishes=Wishes(), listener=Listener(), options=options
    ).open_slots


def exporting(wait: Wait, folder: str, target: str) -> list[str]:
    wait()
    return list(export([Path(folder)], Path(target)).heads)


def committing(wait: Wait, folder: str, lots: int) -> str:
    wait()
    pack = Pack("rtx-4090", 7, lots)
    return commit(Campaign(Path(folder)), pack, catalogue.load(), correct=True).words


def locking(wait: Wait, folder: str, times: int) -> list[int]:
    """Hold the lock as often as it is free; nobody else may be inside meanwhile."""
    wait()
    held = refused = 0
    for _ in range(times):
        try:
            with RunnerLock(Path(folder)):
                inside = os.open(f"{folder}/inside", os.O_CREAT | os.O_EXCL)
                os.close(inside)
                Path(folder, "inside").unlink()
                held += 1
        except Refused:
            refused += 1
    return [held, refused]


DOES: dict[str, Callable[..., Any]] = {
    one.__name__: one
    for one in (edit, edit_until_done, outside, sealing, running, exporting, committing, locking)
}


def act(step: dict[str, Any], began: float) -> dict[str, Any]:
    moments = iter(step.pop("at"))

    def wait() -> None:
        time.sleep(max(began + next(moments) - time.monotonic(), 0))

    try:
        return {"ok": DOES[step.pop("do")](wait, **step)}
    except GpucostError as error:
        return {"refused": str(error), "kind": type(error).__name__}
    except BaseException:
        return {"crash": traceback.format_exc()}


def forked(step: dict[str, Any], began: float) -> tuple[int, int]:
    """Return pid and pipe of a process that acts."""
    source, sink = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.write(sink, json.dumps(act(step, began)).encode())
        finally:
            os._exit(0)
    os.close(sink)
    return pid, source


def main() -> None:
    for line in sys.stdin:
        began = time.monotonic() + 0.02
        children = [forked(step, began) for step in json.loads(line)]
        said = []
        for pid, source in children:
            with os.fdopen(source, "rb") as pipe:
                words = pipe.read()
            os.waitpid(pid, 0)
            said.append(json.loads(words or b'{"crash": "no word"}'))
        print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main()
