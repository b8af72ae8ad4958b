"""What `gpucost demo` prints at its end: every figure, 80 columns, words that can be typed."""

from __future__ import annotations

import shlex
from pathlib import Path

from runner_parts import campaign, run_here

from gpucost_tui.campaign.summary import by_variant
from gpucost_tui.cli import WORDS
from gpucost_tui.cli.demo import answer


def test_the_answer_fits_a_terminal_and_its_words_can_be_typed(tmp_path: Path) -> None:
    made = campaign(tmp_path / "demo", corpus__synthetic=True, measurement__rounds=1)
    end = run_here(made)
    lines = "\n".join(answer("demo campaign", made, end.state)).splitlines()
    assert max(map(len, lines)) <= 80
    told = "\n".join(lines)
    for one in by_variant(made.manifest.protocol, end.state):
        assert f"{one.durations_s[0]:.2f}" in told
        assert "1 of 1" in next(
            line for line in lines if line.startswith(one.variant) and "of" in line
        )
    assert "Quality: synthetic demonstration: accuracy" in told
    typed = told.replace("\\\n", " ").splitlines()
    words = [shlex.split(line.partition("gpucost ")[2]) for line in typed if "gpucost " in line]
    assert [word[0] for word in words] == ["compare", "demo campaign", "new"]
    assert words[0][1] == "demo campaign" and words[2][0] in WORDS
    assert "demo campaign/corpus/corpus.jsonl" in words[2]
