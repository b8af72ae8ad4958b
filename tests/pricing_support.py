"""Shared by the tests of prices, windows and the kit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from gpucost_tui.cli import main
from gpucost_tui.pricing.catalogue import Catalogue, assembled, built_in
from gpucost_tui.pricing.price_list import parse

GOLDEN = Path(__file__).parent / "golden"
PACK_HEADER = "provider,gpu,gpus_per_lot,days,usd_per_lot,catalogue_date,missing_reason\n"
HOURLY_HEADER = "provider,gpu,gpus,provisioning,usd_per_gpu_hour,product,observed_on,source,notes\n"


class Said(NamedTuple):
    """What a command left behind."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Command:
    """Runs ``gpucost`` in this process, through its real entry."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *words: object) -> Said:
        self._capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            main([str(word) for word in words])
        out, err = self._capsys.readouterr()
        assert "Traceback" not in out + err
        status = stop.value.code
        assert isinstance(status, int)
        return Said(status, out, err)

    def refused(self, *words: object, status: int = 2) -> str:
        """Run words that must end in one sentence on standard error, and nothing else."""
        said = self(*words)
        assert (said.status, said.out) == (status, ""), said
        assert said.err.startswith("gpucost: ")
        assert said.err.count("\n") == 1
        assert said.err.rstrip().endswith((".", "?")), said.err
        return said.err


def golden(name: str) -> list[dict[str, Any]]:
    cases = json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))
    assert cases
    return cases


def packs(*rows: str) -> Catalogue:
    """A catalogue of the given pack rows alone."""
    file = parse((PACK_HEADER + "\n".join(rows) + "\n").encode(), "mine.csv")
    assert not file.problems, file.problems
    return assembled([file])


def shipped() -> Catalogue:
    """The two lists that ship with the program, and nothing of this machine."""
    return assembled(built_in())
