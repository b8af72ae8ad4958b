"""Forks runners from a process that has imported everything: a run begins in milliseconds.

``python runner_zygote.py FOLDER``: for each line on standard input a runner is forked; its pid is
printed, and when it has ended, its status. Only for policy ``thread`` and engines without torch.
"""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path

from gpucost_tui.campaign.folder import Campaign
from gpucost_tui.campaign.runner import Listener, Wishes, run


def main() -> None:
    for _ in sys.stdin:
        pid = os.fork()
        if not pid:
            try:
                run(Campaign(Path(sys.argv[1])), wishes=Wishes(), listener=Listener())
                os._exit(0)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
        print(pid, flush=True)
        print(os.waitpid(pid, 0)[1], flush=True)


if __name__ == "__main__":
    main()
