"""The documents of a batch, and the rows of a table of words that they need.

A step costs what the batch holds, and not what the vocabulary holds: the rows of its words are
taken from the table once, worked on side by side, and put back. Memory for them is used again from
batch to batch, for fresh memory costs more than the work.
"""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _sparse

_SPARSE = 200  # a stored word costs so many times more to sort than a word of the vocabulary


class Documents:
    """The documents of a batch, over the words that they have."""

    def __init__(self, values: np.ndarray, place: np.ndarray, indptr: np.ndarray, words: Any):
        self.values = values  # (nnz,) how often each stored word occurs
        self.place = place  # (nnz,) which of `words` it is
        self.indptr = indptr  # (n + 1,) where each document begins
        self.words = words  # (u,) which of the vocabulary these are
        self.within: tuple[Any, np.ndarray] | None = None  # larger batch; which of its words
        self._heard: tuple[np.ndarray, Documents] | None = None

    @property
    def n_rows(self) -> int:
        """How many documents there are."""
        return len(self.indptr) - 1

    @property
    def dtype(self) -> Any:
        """How precise the counts are, and what is found with them."""
        return self.values.dtype

    @functools.cached_property
    def lengths(self) -> np.ndarray:
        """Words of each document, (n,)."""
        found, words = np.zeros((self.n_rows, 1)), np.ones((len(self.words), 1))
        values = self.values.astype(np.float64, copy=False)
        _sparse.add_product(found, values, self.place, self.indptr, words)
        return found[:, 0]

    def product(self, table: np.ndarray, power: int = 1) -> np.ndarray:
        """The counts, to some power, times a table of the words, (u, K): a row a document."""
        found = np.zeros((self.n_rows, table.shape[1]), dtype=self.dtype)
        values = self.values if power == 1 else self.values**power
        _sparse.add_product(found, values, self.place, self.indptr, table)
        return found

    def sums(
        self, weights: np.ndarray, purpose: str, beside: np.ndarray | None = None
    ) -> np.ndarray:
        """Sums over the documents of weights, (n, K), times counts: (u, K).

        What is `beside` is added. They are in memory that is the caller's until it is used again.
        """
        found = space((len(self.words), weights.shape[1]), purpose, self.dtype)
        found[...] = 0.0 if beside is None else beside
        weights = np.ascontiguousarray(weights, dtype=self.dtype)
        _sparse.add_transposed(found, self.values, self.place, self.indptr, weights)
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
        values, place, ends = _sparse.taken(self.values, self.place, self.indptr, there)
        own, place = distinct(place, len(self.words))
        some = Documents(values, place, ends, self.words[own])
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


def found_once(
    table: np.ndarray, batch: Documents, find: Callable[[str], np.ndarray]
) -> np.ndarray:
    """Numbers of the words of a batch, which `find` finds once until the table changes.

    Those of some documents of the batch are taken from it. `find` is told what memory to use.
    """
    held: dict[str, Any] = getattr(_room, "held", {})
    if _is_of(held, table, batch):
        return held["found"]
    if batch.within is None:
        found = find("found")
        _room.held = {"table": weakref.ref(table), "batch": weakref.ref(batch), "found": found}
        return found
    wider, own = batch.within
    if _is_of(held, table, wider()):
        return take_rows(held["found"], own, "some found")
    return find("some found")


def _is_of(held: dict[str, Any], table: np.ndarray, batch: Documents | None) -> bool:
    return bool(held) and held["table"]() is table and held["batch"]() is batch


def forget() -> None:
    """The table changes: what was found is so no more."""
    _room.held = {}


def space(shape: tuple[int, int], purpose: str, dtype: Any = np.float64) -> np.ndarray:
    """Memory of that shape."""
    held, size = getattr(_room, purpose, None), shape[0] * shape[1]
    if held is None or held.size < size or held.dtype != dtype:
        held = np.empty(size + size // 4, dtype=dtype)
        setattr(_room, purpose, held)
    return held[:size].reshape(shape)
