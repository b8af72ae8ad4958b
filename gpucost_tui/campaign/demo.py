"""Makes the embedded campaign: a synthetic demonstration, from the installed package alone."""

from __future__ import annotations

import tempfile
from pathlib import Path

from gpucost_tui.campaign.create import Inputs, create
from gpucost_tui.campaign.folder import Campaign
from gpucost_tui.demo import CATEGORIES
from gpucost_tui.demo.generate import corpus, tuning, write_jsonl
from gpucost_tui.watch import NOBODY, Watch

RIGHT_OF_USE = (
    "Synthetic texts, made by a generator that is part of this program and under its licence. "
    "They demonstrate the method and say nothing of real documents."
)


def make_demo(folder: Path, watch: Watch = NOBODY) -> Campaign:
    """Make the demonstration's campaign in ``folder`` (not sealed, not run).

    Args:
        folder: Is not there yet.
        watch: Is told of the entries written; may end the work until "Making the campaign".

    Raises:
        WrongUse: The folder is in use.
        EnvironmentLacks: The disk refuses.
    """
    with tempfile.TemporaryDirectory(prefix="gpucost-demo-") as scratch:
        texts, tuned = Path(scratch) / "corpus.jsonl", Path(scratch) / "tuning.jsonl"
        watch.stage("Writing the corpus")
        write_jsonl(texts, watch.each(corpus()))
        watch.stage("Writing the tuning data")
        write_jsonl(tuned, watch.each(tuning()))
        watch.stage("Making the campaign")
        return create(
            folder,
            Inputs(
                protocol="classification-batch",
                corpus=[str(texts)],
                model="demo",
                tuning=[str(tuned)],
                settings=[
                    ("name", "synthetic-demonstration"),
                    ("corpus.right_of_use", RIGHT_OF_USE),
                    ("corpus.synthetic", True),
                    ("corpus.source_distribution", _even(CATEGORIES)),
                    ("model.name", "synthetic-demonstration"),
                    ("deliverables.0.name", "tickets"),
                ],
            ),
        )


def _even(categories: tuple[str, ...]) -> dict[str, float]:
    return {category: round(1 / len(categories), 4) for category in categories}
