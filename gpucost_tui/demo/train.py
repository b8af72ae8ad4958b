"""Trains the demonstration's classifier: ``python -m gpucost_tui.demo.train OUT``.

The only module of the demonstration that imports torch, inside its functions; the program itself
never runs it. About two minutes on one core.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpucost_tui.demo import CATEGORIES, MAX_LENGTH, STRATA_ENTRIES, wording
from gpucost_tui.demo.generate import (
    AMBIGUOUS_SHARE,
    LIKELIER_SHARE,
    Draws,
    Entry,
    corpus,
    tuning,
)
from gpucost_tui.errors import GpucostError, WrongUse
from gpucost_tui.files import write_atomic

if TYPE_CHECKING:
    import torch
    from tokenizers import Tokenizer

SEED = 20261130
VOCABULARY = 3900
POSITIONS = 256
VALIDATION_SHARE = 10  # one in so many tuning entries is kept from training
EPOCHS = 2
BATCH = 32
POOL = 8  # batches whose entries are sorted by length together
LEARNING_RATE = 1e-3
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")

_CARD = """---
license: apache-2.0
language: en
pipeline_tag: text-classification
---

# Synthetic demonstration: support tickets in {classes} classes

A synthetic demonstration. `gpucost_tui/demo/generate.py` made both the texts and their answers from
templates; no customer wrote them, and the quality below says nothing about real tickets.

- Model: BERT, 2 layers, width 128, {parameters:,} parameters, kept as float16; own WordPiece
  tokenizer of {vocabulary:,} pieces.
- Classes: {names}.
- Trained by `python -m gpucost_tui.demo.train` on {trained:,} tuning texts,
  {epochs} epochs, AdamW.
- Accuracy on {validated:,} tuning texts kept from training: {validation:.3f}.
- Accuracy on the comparison corpus of {corpus:,} texts (synthetic demonstration): {accuracy:.3f},
  float32, at most {max_length} tokens. {ambiguous} % of the answers are drawn {likelier} to {rest}
  between two classes, and {held_out} of {clear} clear templates never occur in the tuning data, so
  1.0 is out of reach.
- Longest tuning text: {longest} tokens of {positions} positions.

Use: as a small model that loads offline, to try the program. Nothing else.
"""


def build_tokenizer(texts: Sequence[str]) -> Tokenizer:
    """Return a WordPiece tokenizer trained on the texts, without truncation or padding set.

    Single continuing letters are given to the trainer in order: left to itself it numbers them as
    they turn up in a hash map, and ties between later pieces fall differently on every run.
    """
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
    from tokenizers.processors import TemplateProcessing

    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))  # noqa: S106 - no password
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    letters = sorted(
        {letter for text in texts for letter in tokenizer.normalizer.normalize_str(text)}
    )
    continuing = [f"##{letter}" for letter in letters if letter.isalnum()]
    trainer = trainers.WordPieceTrainer(
        vocab_size=VOCABULARY, special_tokens=[*SPECIAL, *continuing], show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    # A new one with the same pieces, in which only SPECIAL is found before splitting.
    kept = Tokenizer(models.WordPiece(tokenizer.get_vocab(), unk_token="[UNK]"))  # noqa: S106
    kept.normalizer, kept.pre_tokenizer = tokenizer.normalizer, tokenizer.pre_tokenizer
    kept.decoder = decoders.WordPiece()
    kept.add_special_tokens(list(SPECIAL))
    ends = [(token, kept.token_to_id(token)) for token in ("[CLS]", "[SEP]")]
    kept.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=ends
    )
    return kept


def new_model(vocabulary: int) -> torch.nn.Module:
    """Return an untrained BERT classifier; torch's seed decides its weights."""
    from transformers import BertConfig, BertForSequenceClassification

    config = BertConfig(
        vocab_size=vocabulary,
        hidden_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=512,
        max_position_embeddings=POSITIONS,
        pad_token_id=SPECIAL.index("[PAD]"),
        id2label=dict(enumerate(CATEGORIES)),
        label2id={name: index for index, name in enumerate(CATEGORIES)},
        problem_type="single_label_classification",
    )
    model: torch.nn.Module = BertForSequenceClassification(config)
    return model


def train(model: torch.nn.Module, tokenizer: Tokenizer, entries: Sequence[Entry]) -> None:
    """Train in place: AdamW, one-cycle rate, batches of like lengths in a drawn order."""
    import torch

    steps = EPOCHS * -(-len(entries) // BATCH)
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, LEARNING_RATE, total_steps=steps)
    model.train()
    for epoch in range(EPOCHS):
        total = 0.0
        for batch in _epoch(entries, Draws(f"gpucost-demo/train/{epoch}")):
            inputs = _inputs(tokenizer, batch, POSITIONS)
            answers = torch.tensor([CATEGORIES.index(entry.label) for entry in batch])
            loss = model(**inputs, labels=answers).loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item() * len(batch)
        print(f"epoch {epoch + 1} of {EPOCHS}: mean loss {total / len(entries):.3f}", flush=True)


def predict(model: torch.nn.Module, tokenizer: Tokenizer, entries: Sequence[Entry]) -> list[str]:
    """Return the category predicted for each entry, of its first ``MAX_LENGTH`` tokens."""
    import torch

    model.eval()
    found: list[str] = []
    with torch.inference_mode():
        for batch in _batches(entries):
            best = model(**_inputs(tokenizer, batch, MAX_LENGTH)).logits.argmax(dim=-1)
            found += [CATEGORIES[index] for index in best.tolist()]
    return found


def accuracy(predictions: Sequence[str], entries: Sequence[Entry]) -> float:
    """Return the share of right predictions."""
    pairs = zip(predictions, entries, strict=True)
    return sum(found == entry.label for found, entry in pairs) / len(entries)


def save(model: Any, tokenizer: Tokenizer, folder: Path, card: str) -> None:
    """Write the model's files into a folder; each file is whole or not there.

    The weights are kept as float16 and the configuration asks for float32, which holds every
    float16 value unchanged.
    """
    from safetensors.torch import save_file
    from transformers import PreTrainedTokenizerFast

    fast = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=tokenizer,
        model_max_length=POSITIONS,
        model_input_names=["input_ids", "attention_mask"],
        **{f"{token[1:-1].lower()}_token": token for token in SPECIAL},
    )
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        fast.save_pretrained(scratch)
        model.config.architectures = [type(model).__name__]
        model.config.dtype = "float32"
        model.config.save_pretrained(scratch)
        weights = {key: value.half().contiguous() for key, value in model.state_dict().items()}
        save_file(weights, scratch / "model.safetensors", metadata={"format": "pt"})
        (scratch / "MODEL_CARD.md").write_text(card, encoding="utf-8")
        for file in sorted(scratch.iterdir()):
            write_atomic(folder / file.name, file.read_bytes())


def build(folder: Path) -> None:
    """Train, measure and write everything that stands in ``gpucost_tui/demo/model``.

    Raises:
        WrongUse: The folder can't be made (found before the training, not after it).
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WrongUse(
            f"a folder can't be made here: {error.strerror}", where=str(folder)
        ) from error
    import torch

    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(SEED)
    entries, final = list(tuning()), list(corpus())
    kept = entries[::VALIDATION_SHARE]
    trained = [entry for place, entry in enumerate(entries) if place % VALIDATION_SHARE]
    tokenizer = build_tokenizer([entry.text for entry in trained])
    model = new_model(tokenizer.get_vocab_size())
    train(model, tokenizer, trained)
    model.half().float()  # what is measured is what is kept
    figures = {
        "parameters": sum(weights.numel() for weights in model.parameters()),
        "vocabulary": tokenizer.get_vocab_size(),
        "trained": len(trained),
        "validated": len(kept),
        "validation": accuracy(predict(model, tokenizer, kept), kept),
        "accuracy": accuracy(predict(model, tokenizer, final), final),
        "longest": max(len(tokenizer.encode(entry.text).ids) for entry in trained),
    }
    print(f"accuracy on {len(kept):,} tuning texts kept apart: {figures['validation']:.3f}")
    print(f"accuracy on the corpus (synthetic demonstration): {figures['accuracy']:.3f}")
    save(model, tokenizer, folder, _card(figures))


def _card(figures: dict[str, float]) -> str:
    return _CARD.format(
        classes=len(CATEGORIES),
        names=", ".join(CATEGORIES),
        corpus=sum(STRATA_ENTRIES.values()),
        epochs=EPOCHS,
        positions=POSITIONS,
        max_length=MAX_LENGTH,
        ambiguous=AMBIGUOUS_SHARE,
        likelier=LIKELIER_SHARE,
        rest=100 - LIKELIER_SHARE,
        held_out=len(wording.HELD_OUT),
        clear=sum(map(len, wording.CLEAR.values())),
        **figures,
    )


def _epoch(entries: Sequence[Entry], draws: Draws) -> list[Sequence[Entry]]:
    """Return the batches of one epoch: sorted by length within pools, so that little is padding."""
    order, pool = draws.shuffled(entries), POOL * BATCH
    pools = [order[start : start + pool] for start in range(0, len(order), pool)]
    alike = [entry for some in pools for entry in sorted(some, key=lambda entry: len(entry.text))]
    return draws.shuffled(_batches(alike))


def _batches(entries: Sequence[Entry]) -> Iterator[Sequence[Entry]]:
    for start in range(0, len(entries), BATCH):
        yield entries[start : start + BATCH]


def _inputs(
    tokenizer: Tokenizer, batch: Sequence[Entry], max_length: int
) -> dict[str, torch.Tensor]:
    """Return token ids and attention mask (batch × longest), truncated to ``max_length``."""
    import torch

    end = SPECIAL.index("[SEP]")
    rows = [tokenizer.encode(entry.text).ids for entry in batch]
    rows = [ids if len(ids) <= max_length else [*ids[: max_length - 1], end] for ids in rows]
    width = max(map(len, rows))
    padded = [ids + [0] * (width - len(ids)) for ids in rows]
    mask = [[1] * len(ids) + [0] * (width - len(ids)) for ids in rows]
    return {"input_ids": torch.tensor(padded), "attention_mask": torch.tensor(mask)}


def main(arguments: Sequence[str]) -> int:
    """Run from the command line; return the exit status."""
    try:
        if len(arguments) != 1:
            raise WrongUse("one folder is expected", fix="Use python -m gpucost_tui.demo.train OUT")
        build(Path(arguments[0]))
    except GpucostError as error:
        print(error, file=sys.stderr)
        return error.exit_status
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
