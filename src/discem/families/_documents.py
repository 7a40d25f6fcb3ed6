"""The documents of a batch, and the rows of a table of words that they need.

The cost of a step depends on the batch, not on the vocabulary: the rows of its words are taken from
the table once, processed together, and put back. The memory for them is reused from batch to batch,
as allocating it would cost more than the computation.
"""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _sparse
from .._arrays import namespace_of

_SPARSE = 200  # cost of sorting a stored word, relative to one pass per word of the vocabulary
_PAYS = 16, 0.12  # documents, and the share of a batch, that it pays to leave out


class Documents:
    """The documents of a batch, over the words that they have."""

    def __init__(self, values: Any, place: Any, indptr: Any, words: Any, n_words: int):
        self.values = values  # (nnz,) how often each stored word occurs
        self.place = place  # (nnz,) the index of each in `words`
        self.indptr = indptr  # (n + 1,) where each document begins
        self.words = words  # (u,) their columns in the vocabulary; a slice: all
        self.n_words = n_words  # u
        self.within: tuple[Any, Any] | None = None  # the larger batch, and which of its words
        self._teaching: tuple[Any, Documents] | None = None
        self._looked_up: tuple[Any, Any] = None, None  # numbers of all words, and of the words here

    @property
    def n_rows(self) -> int:
        """The number of documents."""
        return len(self.indptr) - 1

    @property
    def dtype(self) -> Any:
        """The precision of the counts, and of results."""
        return self.values.dtype

    @functools.cached_property
    def lengths(self) -> Any:
        """The number of words of each document, (n,)."""
        return _sparse.row_sums(self.values, self.indptr)

    def of_words(self, numbers: Any) -> Any:
        """Select the numbers of the words here as a column; one number if all are equal.

        One number is faster to add. The selection is cached.
        """
        if self._looked_up[0] is not numbers:
            own = numbers[self.words]
            alike = isinstance(own, np.ndarray) and own.size and (own == own[0]).all()
            self._looked_up = numbers, float(own[0]) if alike else own[:, None]
        return self._looked_up[1]

    def product(self, table: Any, power: int = 1) -> Any:
        """Return the counts, to some power, times a table of the words, (u, K): (n, K)."""
        shape = self.n_rows, table.shape[1]
        found = self._xp.zeros(shape, dtype=self.dtype, device=self.values.device)
        values = self.values if power == 1 else self.values**power
        _sparse.add_product(found, values, self.place, self.indptr, table)
        return found

    def sums(self, weights: Any, purpose: str, beside: Any = None) -> Any:
        """Return weights, (n, K), times counts, summed over documents: (u, K), plus `beside`.

        The result is in shared memory, valid until the next use for this `purpose`.
        """
        found = space((self.n_words, weights.shape[1]), purpose, self.values)
        found[...] = 0.0 if beside is None else beside
        weights = self._xp.asarray(weights, dtype=self.dtype)
        if isinstance(weights, np.ndarray):
            weights = np.ascontiguousarray(weights)
        _sparse.add_transposed(found, self.values, self.place, self.indptr, weights)
        return found

    @property
    def _xp(self) -> Any:
        return namespace_of(self.values)

    def only(self, weights: Any, least: float) -> tuple[Any, Documents]:
        """Return the documents with a weight above `least`, and their indices.

        After some epochs only few documents have one.
        """
        if self._teaching is None:
            n = self.n_rows
            (there,) = self._xp.nonzero(self._xp.max(self._xp.abs(weights), axis=1) > least)
            if n == 1 or n - len(there) < max(min(n / 2, _PAYS[0]), _PAYS[1] * n):
                return slice(None), self
            self._teaching = there, self._some(there)
        return self._teaching

    def _some(self, there: Any) -> Documents:
        values, place, ends = _sparse.taken(self.values, self.place, self.indptr, there)
        own: Any = slice(None)
        words, u = self.words, self.n_words
        if not isinstance(words, slice):
            own, place = distinct(place, u)
            words, u = words[own], len(own)
        some = Documents(values, place, ends, words, u)
        some.within = weakref.ref(self), own  # the reference lives as long as the step
        some.lengths = self.lengths[there]
        numbers, looked_up = self._looked_up
        if isinstance(looked_up, float):
            some._looked_up = numbers, looked_up
        return some


def documents(rows: Any, n_words: int) -> Documents:
    """Return the documents of a batch of rows.

    On a device they use all words of the vocabulary: a whole table costs little there, and finding
    the words of a large batch takes longer.
    """
    if not isinstance(rows.values, np.ndarray):
        return Documents(rows.values, rows.indices, rows.indptr, slice(None), n_words)
    words, place = distinct(rows.indices, n_words)
    return Documents(rows.values, place, rows.indptr, words, len(words))


def distinct(indices: np.ndarray, n_words: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct words of a batch, in order, and the index of each stored word."""
    if len(indices) * _SPARSE < n_words:
        return np.unique(indices, return_inverse=True)
    wide = indices.astype(np.intp)  # convert once, else each use does
    there = np.zeros(n_words, dtype=bool)
    there[wide] = True
    words = np.flatnonzero(there)
    place = np.empty(n_words, dtype=np.int32)
    place[words] = np.arange(len(words), dtype=np.int32)
    return words, place.take(wide, mode="clip")


_memory = threading.local()


def take_rows(table: Any, rows: Any, purpose: str) -> Any:
    """Return some rows of a table, in shared memory that is valid until its next use."""
    if isinstance(rows, slice):
        return table[rows]
    out = space((len(rows), table.shape[1]), purpose, table)
    return np.take(table, rows, axis=0, out=out, mode="clip")  # mode="raise" makes another copy


def column_sums(table: Any) -> Any:
    """Return the sums of the columns, as a product, which is faster here."""
    if not isinstance(table, np.ndarray):
        return table.sum(dim=0)
    return np.ones(len(table), dtype=table.dtype) @ table


def found_once(table: Any, batch: Documents, find: Callable[[str], Any]) -> Any:
    """Return numbers of the words of a batch; `find` computes them once until the table changes.

    Some documents of a batch reuse the numbers of the batch. `find` gets the memory to use.
    """
    held: dict[str, Any] = getattr(_memory, "held", {})
    if _is_of(held, table, batch):
        return held["found"]
    if batch.within is None:
        found = find("found")
        _memory.held = {"table": weakref.ref(table), "batch": weakref.ref(batch), "found": found}
        return found
    wider, own = batch.within
    if _is_of(held, table, wider()):
        return take_rows(held["found"], own, "some found")
    return find("some found")


def _is_of(held: dict[str, Any], table: Any, batch: Documents | None) -> bool:
    return bool(held) and held["table"]() is table and held["batch"]() is batch


def forget() -> None:
    """Forget the cached numbers, as the table changes."""
    _memory.held = {}


def space(shape: tuple[int, int], purpose: str, like: Any) -> Any:
    """Return memory of that shape, with the device and precision of `like`."""
    if not isinstance(like, np.ndarray):  # devices reuse memory by themselves
        return like.new_empty(shape)
    held, size = getattr(_memory, purpose, None), shape[0] * shape[1]
    if held is None or held.size < size or held.dtype != like.dtype:
        held = np.empty(size + size // 4, dtype=like.dtype)
        setattr(_memory, purpose, held)
    return held[:size].reshape(shape)
