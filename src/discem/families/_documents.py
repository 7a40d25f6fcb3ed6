"""The documents of a batch, and the rows of a table of words that they need.

A step costs what the batch holds, and not what the vocabulary holds: the rows of its words are
taken from the table once, worked on side by side, and put back. Memory for them is used again from
batch to batch, for fresh memory costs more than the work.
"""

from __future__ import annotations

import threading
import weakref
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..io.rows import stored_of

_SMALL = 1 << 13  # numbers of a matrix that is as quickly multiplied as SciPy sets one up
_SPARSE = 200  # a stored word costs so many times more to sort than a word of the vocabulary


class Documents:
    """The documents of a batch, over the words that they have."""

    def __init__(self, values: np.ndarray, place: np.ndarray, indptr: np.ndarray, words: Any):
        self.values = values  # (nnz,) how often each stored word occurs
        self.place = place  # (nnz,) which of `words` it is
        self.indptr = indptr  # (n + 1,) where each document begins
        self.words = words  # (u,) which of the vocabulary these are
        self.within: tuple[Documents, np.ndarray] | None = None  # and which of its words
        self._products: Any = None
        self._heard: tuple[np.ndarray, Documents] | None = None

    @property
    def n_rows(self) -> int:
        """How many documents there are."""
        return len(self.indptr) - 1

    @property
    def counts(self) -> Any:
        """The counts as a matrix, (n, u)."""
        return self._matrices[0]

    @property
    def lengths(self) -> np.ndarray:
        """Words of each document, (n,)."""
        return self._matrices[2]

    @property
    def _matrices(self) -> tuple[Any, Any, np.ndarray]:
        if self._products is None:
            n, u = self.n_rows, len(self.words)
            if 0 < n * u <= _SMALL:
                row = np.repeat(np.arange(0, n * u, u), np.diff(self.indptr))
                counts: Any = np.bincount(row + self.place, self.values, n * u).reshape(n, u)
            else:
                counts = sp.csr_array((self.values, self.place, self.indptr), shape=(n, u))
            self._products = counts, counts.T, counts @ np.ones(u)
        return self._products

    def sums(self, weights: np.ndarray) -> np.ndarray:
        """Sums over the documents of weights, (n, K), times counts: (u, K)."""
        return self._matrices[1] @ weights

    def of_squares(self, table: np.ndarray) -> np.ndarray:
        """The products of squared counts and a table, (u, K): one row for each document."""
        counts = self.counts
        if isinstance(counts, np.ndarray):
            return counts**2 @ table
        counts.data = self.values * self.values  # a matrix of their own would cost a check
        found = counts @ table
        counts.data = self.values
        return found

    def only(self, weights: np.ndarray, least: float) -> tuple[np.ndarray, Documents]:
        """The documents that have a weight above `least`, and which they are.

        After some epochs few have anything to teach.
        """
        if self._heard is None:
            n = self.n_rows
            there = np.flatnonzero(np.abs(weights).max(axis=1) > least)
            if n == 1 or 2 * len(there) > n:
                self._heard = np.arange(n), self
            else:
                self._heard = there, self._some(there)
        return self._heard

    def _some(self, there: np.ndarray) -> Documents:
        stored, ends = stored_of(self.indptr, there)
        own, place = distinct(self.place[stored], len(self.words))
        some = Documents(self.values[stored], place, ends, self.words[own])
        some.within = self, own
        return some


def distinct(indices: np.ndarray, n_words: int) -> tuple[np.ndarray, np.ndarray]:
    """The different words of a batch, in order, and the place of each stored word among them."""
    if len(indices) * _SPARSE < n_words:
        return np.unique(indices, return_inverse=True)
    there = np.zeros(n_words, dtype=bool)
    there[indices] = True
    words = np.flatnonzero(there)
    place = np.empty(n_words, dtype=np.int32)
    place[words] = np.arange(len(words), dtype=np.int32)
    return words, place[indices]


_room = threading.local()


def take_rows(table: np.ndarray, rows: np.ndarray, purpose: str) -> np.ndarray:
    """Some rows of a table, in memory that is the caller's until it is used for that again."""
    out = space((len(rows), table.shape[1]), purpose)
    return np.take(table, rows, axis=0, out=out, mode="clip")  # mode="raise" copies once more


def rows_of(table: np.ndarray, batch: Documents) -> np.ndarray:
    """The rows of the words of a batch; they are taken once, until they are forgotten."""
    held: Any = getattr(_room, "held", None)
    wider = batch.within
    if _is_of(held, table, batch):
        return held[2]
    if wider is not None and _is_of(held, table, wider[0]):
        rows = take_rows(held[2], wider[1], "some rows")
    else:
        rows = take_rows(table, batch.words, "rows")
    _room.held = weakref.ref(table), weakref.ref(batch), rows
    return rows


def _is_of(held: Any, table: np.ndarray, batch: Documents) -> bool:
    return held is not None and held[0]() is table and held[1]() is batch


def forget_rows() -> None:
    """The table has changed."""
    _room.held = None


def put_rows(table: np.ndarray, rows: np.ndarray, new: np.ndarray) -> None:
    """Set some rows of a table. Each row is set as one item: that is twice as fast."""
    whole = np.dtype((np.void, table.itemsize * table.shape[1]))
    table.view(whole)[rows, 0] = new.view(whole)[:, 0]


def space(shape: tuple[int, int], purpose: str) -> np.ndarray:
    """Memory of that shape."""
    held, size = getattr(_room, purpose, None), shape[0] * shape[1]
    if held is None or held.size < size:
        held = np.empty(size + size // 4)
        setattr(_room, purpose, held)
    return held[:size].reshape(shape)
