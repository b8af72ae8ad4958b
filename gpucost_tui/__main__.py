"""``python -m gpucost_tui`` is the same program as ``gpucost``."""

from gpucost_tui.cli import main

if __name__ == "__main__":
    main()
