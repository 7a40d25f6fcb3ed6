"""Documents on workers: counted there once, by the words of all of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..io.bag import Bag, Counted, Occurrences, as_documents
from . import _input
from ._pieces import Piece, Pieces

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
