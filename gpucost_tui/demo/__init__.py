"""The embedded demonstration's inputs: a synthetic corpus, its tuning data and a small classifier.

Everything here is made: invented support tickets from seeded templates, and a model trained on
them. Wherever a quality of it is shown it is called a synthetic demonstration.
"""

from __future__ import annotations

from pathlib import Path

#: The classes, in the order of the model's outputs.
CATEGORIES: tuple[str, ...] = (
    "billing",
    "delivery",
    "access",
    "defect",
    "cancellation",
    "praise",
)

#: Stratum -> greatest number of tokens of the demonstration's tokenizer, special tokens included
#: (R12); None: no bound.
STRATA: dict[str, int | None] = {"short": 32, "medium": 96, "long": None}

#: Stratum -> entries of the comparison corpus.
STRATA_ENTRIES: dict[str, int] = {"short": 600, "medium": 300, "long": 100}

#: Tokens kept of an entry; a few long entries exceed it, so that truncation is really counted.
MAX_LENGTH = 128

#: Folder with config.json, model.safetensors, tokenizer.json and tokenizer_config.json.
MODEL_FOLDER = Path(__file__).resolve().parent / "model"
