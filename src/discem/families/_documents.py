"""The documents of a batch, and the rows of a table of words that they need.

A step costs what the batch holds, and not what the vocabulary holds: the rows of its words are
taken from the table once, worked on side by side, and put back. Memory for them is used again from
batch to batch, for fresh memory costs more than the work.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
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
        self.within: tuple[Any, np.ndarray] | None = None  # larger batch; which of its words
        self._products: Any = None
        self._heard: tuple[np.ndarray, Documents] | None = None

    @property
    def n_rows(self) -> int:
        """How many documents there are."""
        return len(self.indptr) - 1

    @property
    def dtype(self) -> Any:
        """How precise the counts are, and what is found with them."""
        return self.values.dtype

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
        return self._matrices[1] @ weights.astype(self.dtype, copy=False)

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
                return np.arange(n), self
            self._heard = there, self._some(there)
        return self._heard

    def _some(self, there: np.ndarray) -> Documents:
        stored, ends = stored_of(self.indptr, there)
        own, place = distinct(self.place[stored], len(self.words))
        some = Documents(self.values[stored], place, ends, self.words[own])
        some.within = weakref.ref(self), own  # which lives as long as the step
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
    out = space((len(rows), table.shape[1]), purpose, table.dtype)
    return np.take(table, rows, axis=0, out=out, mode="clip")  # mode="raise" copies once more


def rows_of(table: np.ndarray, batch: Documents) -> np.ndarray:
    """The rows of the words of a batch, taken once until they are forgotten."""
    return found_once("rows", table, batch, lambda room: take_rows(table, batch.words, room))


def found_once(
    what: str, table: np.ndarray, batch: Documents, find: Callable[[str], np.ndarray]
) -> np.ndarray:
    """Something of each word of a batch, which `find` finds once until the table changes.

    That of some documents of the batch is taken from it. `find` is told what memory to use.
    """
    held: dict[str, Any] = getattr(_room, "held", {})
    if _is_of(held, table, batch):
        if what not in held:
            held[what] = find(what)
        return held[what]
    if batch.within is None:
        _room.held = {"table": weakref.ref(table), "batch": weakref.ref(batch)}
        return found_once(what, table, batch, find)
    wider, own = batch.within
    if _is_of(held, table, wider()) and what in held:
        return take_rows(held[what], own, f"some {what}")
    return find(f"some {what}")


def _is_of(held: dict[str, Any], table: np.ndarray, batch: Documents | None) -> bool:
    return bool(held) and held["table"]() is table and held["batch"]() is batch


def forget_rows() -> None:
    """The table has changed."""
    _room.held = {}


def put_rows(table: np.ndarray, rows: np.ndarray, new: np.ndarray) -> None:
    """Set some rows of a table. Each row is set as one item: that is twice as fast."""
    whole = np.dtype((np.void, table.itemsize * table.shape[1]))
    table.view(whole)[rows, 0] = new.view(whole)[:, 0]


def space(shape: tuple[int, int], purpose: str, dtype: Any = np.float64) -> np.ndarray:
    """Memory of that shape."""
    held, size = getattr(_room, purpose, None), shape[0] * shape[1]
    if held is None or held.size < size or held.dtype != dtype:
        held = np.empty(size + size // 4, dtype=dtype)
        setattr(_room, purpose, held)
    return held[:size].reshape(shape)
