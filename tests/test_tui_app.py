"""The app's skeleton: places, keys, palette, help, theme, memory, sizes."""

from __future__ import annotations

from pathlib import Path

import pytest
from tui_support import SIZES, app_on, pressed, sealed_campaign, until

from gpucost_tui.tui.places import PLACES


@pytest.mark.parametrize("size", SIZES)
async def test_each_place_is_one_key_from_every_other(size: tuple[int, int]) -> None:
    app = app_on()
    async with app.run_test(size=size) as pilot:
        for start in PLACES:
            for place in PLACES:
                await pressed(pilot, start.key, place.key)
                assert app.current_mode == place.name
        await pressed(pilot, "ctrl+q")
    assert app.return_code == 0


async def test_a_snapshot_reaches_the_place_in_front(tmp_path: Path) -> None:
    campaign = sealed_campaign(tmp_path / "one")
    app = app_on(campaign.folder)
    async with app.run_test() as pilot:
        await until(pilot, lambda: app.snapshot.status is not None)
        assert app.snapshot.word == "sealed"
        assert app.snapshot.status["open"] == 6
