"""Documents on workers: counted there once, by the words of all of them."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..exceptions import ConflictingLabelsWarning, warn
from ..io.bag import Bag, Counted, Occurrences, as_documents
from ..io.labels import plain_labels
from . import _input
from ._pieces import Piece, Pieces

_TELLING = 6  # different words of documents that are hardly alike by chance

Teaches = Callable[[Any], np.ndarray]  # from labels to the documents whose words are learnt


def count_pieces(pieces: Pieces, bag: Bag, teaches: Teaches) -> Pieces:
    """Count the documents, and let the bag learn the words of those that teach."""
    counted = pieces.map(partial(_count, bag))
    bag.learn_words(counted.survey(partial(_occurrences, teaches=teaches), Occurrences.merge))
    return counted


def _count(bag: Bag, documents: Any) -> Counted:
    return bag.count_freely(as_documents(documents))


def _occurrences(piece: Piece, teaches: Teaches) -> Occurrences:
    y, _ = _input.read_y(piece.y, piece.X.shape[0], needed=False)
    return Occurrences.of(piece.X, teaches(y))


def all_teach(y: np.ndarray) -> np.ndarray:
    """Every document, whatever its label."""
    return np.ones(len(y), dtype=bool)


def labelled_teach(y: np.ndarray) -> np.ndarray:
    """Documents that have a label, or are known to have one of some."""
    return all_teach(y) if y.ndim == 2 else ~_input.missing_labels(y)


def known_to(bag: Bag, counts: sp.csr_matrix, rows: np.ndarray) -> tuple[Bag, sp.csr_matrix]:
    """The bag, had it learnt these rows alone, and the counts of all rows by the words that it has.

    Rows held out are counted as later documents will be: their own words are unknown, and do not
    take from the weight of the others.
    """
    seen = np.bincount(counts[rows].indices, minlength=len(bag)).astype(np.float64)
    own = copy(bag)
    own.document_count, own.n_documents = seen, len(rows)
    if bag.n_columns is None:
        known = seen[counts.indices] > 0
        ends = np.concatenate([[0], np.cumsum(known)])[counts.indptr]
        stored = counts.data[known], counts.indices[known], ends.astype(counts.indptr.dtype)
        counts = sp.csr_matrix(stored, counts.shape)
    return own, counts


class Size(NamedTuple):
    """What is asked of weighted rows to choose a prior and a step."""

    n_rows: int
    n_taught: int  # rows of a weight
    stored: int
    total: float
    square: float

    @classmethod
    def of(cls, rows: sp.csr_matrix, weights: np.ndarray) -> Size:
        """Of rows that are here."""
        data = rows.data
        taught = int(np.count_nonzero(weights))
        return cls(rows.shape[0], taught, rows.nnz, float(data.sum()), float(data @ data))

    @classmethod
    def merge(cls, *parts: Size) -> Size:
        """Of all parts."""
        sums: list[Any] = [sum(each) for each in zip(*parts, strict=True)]
        return cls(*sums)


def size_of(pieces: Pieces, teaches: Teaches) -> Size:
    """That of weighted rows on workers that teach."""
    return pieces.survey(partial(_size, teaches=teaches), Size.merge)


def _size(piece: Piece, teaches: Teaches) -> Size:
    y, _ = _input.read_y(piece.y, piece.X.shape[0], needed=False)
    own = teaches(y)
    weights = np.ones(len(own)) if piece.weights is None else piece.weights
    return Size.of(piece.X[own], weights[own])


def warn_of_conflicts(counts: sp.csr_matrix, y: np.ndarray, places: np.ndarray) -> None:
    """Warn of documents that have the same words, each as often, and different labels.

    `places` say where they are in what the user gave. Documents of a few words are often alike.
    """
    salt = np.random.default_rng(0).integers(2**63, size=counts.shape[1], dtype=np.uint64)
    ends = np.zeros(counts.nnz + 1, dtype=np.uint64)
    np.cumsum(salt[counts.indices] * counts.data.astype(np.uint64), out=ends[1:])
    sums = np.diff(ends[counts.indptr])  # modulo 2^64; the order of words does not matter
    own = np.flatnonzero((np.diff(counts.indptr) >= _TELLING) & labelled_teach(y))
    _, group = np.unique(sums[own], return_inverse=True)
    codes = _input.encode(y[own], _input.find_classes(y)).codes
    order = np.lexsort((codes, group))
    group, codes = group[order], codes[order]
    split = (group[1:] == group[:-1]) & (codes[1:] != codes[:-1])
    if not split.any():
        return
    many = int(np.isin(group, group[1:][split]).sum())
    first = int(np.flatnonzero(split)[0])
    one, two = sorted(int(place) for place in own[order[first : first + 2]])
    labels = plain_labels(y[[one, two]])
    warn(
        f"{many} documents have the same words as others with another label, such as document "
        f"{places[one]} ({labels[0]!r}) and document {places[two]} ({labels[1]!r}): they may be "
        "duplicates that were labelled twice",
        ConflictingLabelsWarning,
    )
