"""Recall of nearest neighbours: what a search over the vectors would still find."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

#: More vectors than this are refused before the seal: every pair is compared, so twice as many take
#: four times as long (5,000 of length 384: about 4 s on one core), after every pass.
MOST_VECTORS = 50_000

#: Cosines closer than this are one distance: repeated texts, whose vectors differ in the last
#: bits, are neighbours of equal rank.
TIE = 1e-6
_CELLS = 8_000_000  # cosines held at a time: 64 MB

Matrix = NDArray[np.float64]


def recall_at_k(reference: Matrix, found: Matrix, k: int) -> Matrix:
    """Return for each entry the share of its ``k`` nearest neighbours that are still there.

    Neighbours are those of the highest cosine, without the entry itself, by comparison of every
    pair. A neighbour in ``found`` counts where its cosine in ``reference`` is at least that of
    the k-th neighbour there, less :data:`TIE`: among equally near entries any will do, so that
    the figure does not hang on their order. Equal cosines in ``found`` go by position.

    Args:
        reference: Vectors, shape (entries, size), none of length zero.
        found: Vectors of the same entries in the same order; may have another size.
        k: Neighbours; with fewer other entries all of them.

    Returns:
        Recalls, shape (entries,), each from 0 to 1; of a single entry 1.

    Raises:
        ValueError: Another number of entries in ``found``, or ``k`` is below 1.
    """
    entries = len(reference)
    if len(found) != entries or k < 1:
        raise ValueError("as many vectors on both sides and k from 1 up are expected")
    k = min(k, entries - 1)
    if k < 1:
        return np.ones(entries)
    one, other = _unit(reference), _unit(found)
    recalls = np.empty(entries)
    rows = max(1, _CELLS // entries)
    for start in range(0, entries, rows):
        piece = slice(start, min(start + rows, entries))
        near = _cosines(one, piece)
        bound = np.partition(near, entries - k, axis=1)[:, entries - k] - TIE
        chosen = _nearest(_cosines(other, piece), k)
        recalls[piece] = (chosen & (near >= bound[:, None])).sum(axis=1) / k
    return recalls


def _unit(vectors: Matrix) -> Matrix:
    each = np.asarray(vectors, dtype=np.float64)
    unit: Matrix = each / np.linalg.norm(each, axis=1, keepdims=True)
    return unit


def _cosines(unit: Matrix, piece: slice) -> Matrix:
    """Return the cosines of some entries to all, their own below every other."""
    # Rounded: the last bits of a product depend on the library and on the number of threads.
    near: Matrix = np.round(unit[piece] @ unit.T, 9)
    near[np.arange(piece.stop - piece.start), np.arange(piece.start, piece.stop)] = -2.0
    return near


def _nearest(near: Matrix, k: int) -> NDArray[np.bool_]:
    """Mark the ``k`` highest of each row; of equal ones those that stand first."""
    size = near.shape[1]
    last = np.partition(near, size - k, axis=1)[:, size - k, None]
    above, level = near > last, near == last
    wanted = k - above.sum(axis=1, keepdims=True)
    chosen: NDArray[np.bool_] = above | (level & (np.cumsum(level, axis=1) <= wanted))
    return chosen
