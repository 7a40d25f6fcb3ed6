"""Choose which rows are held out: a share of each class, or as the option `cv` says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ..exceptions import OptionError
from ._options import is_count

MOST = 50_000  # rows used for choosing; more would hardly change the choice
ENOUGH = 200  # held-out rows; with fewer, other rows are held out in turn

_FOLDS = 5

Pair = tuple[np.ndarray, np.ndarray]  # rows to train on, and rows held out


class Split(NamedTuple):
    """Rows to train on, with their weights, and held-out rows."""

    weights: np.ndarray  # (n,) zero for rows not to train on
    held: np.ndarray  # rows held out
    codes: np.ndarray  # the class codes of the held-out rows
    held_weights: np.ndarray

    @property
    def train(self) -> np.ndarray:
        """Return the rows to train on."""
        return np.flatnonzero(self.weights > 0)

    def judged_by(self, some: np.ndarray) -> Split:
        """The same, judged by some of the rows that are held out."""
        held, weights = self.held[some], self.held_weights[some]
        return self._replace(held=held, codes=self.codes[some], held_weights=weights)

    def among(self, rows: np.ndarray) -> Split:
        """Return the split restricted to the given rows, which are in order."""
        held = np.searchsorted(rows, self.held)
        return self._replace(weights=self.weights[rows], held=held)


def by_class(rows: np.ndarray, codes: np.ndarray, rng) -> np.ndarray:
    """Return the rows class by class, in a random order within each class."""
    order = rng.permutation(rows)
    return order[np.argsort(codes[order], kind="stable")]


def hold_out(codes: np.ndarray, weights: np.ndarray, fraction: float, rng) -> np.ndarray:
    """Hold out a random share of each class (codes >= 0), among rows with a weight.

    The number of held-out rows is rounded down: a single row of a class is only trained on.
    """
    order = by_class(np.flatnonzero((weights > 0) & (codes >= 0)), codes, rng)
    sizes = np.bincount(codes[order])
    rank = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return order[rank < np.floor(fraction * sizes)[codes[order]]]


def splits(
    codes: np.ndarray,
    weights: np.ndarray,
    rng,
    *,
    cv: Any = None,
    folds: int | None = None,
    most: int = MOST,
    enough: int = ENOUGH,
) -> list[Split]:
    """Split labelled rows with a weight, at most `most` of them.

    Without `cv`, hold out a fifth of each class (each fifth in turn if that is fewer than `enough`
    rows), or each of `folds` folds. The only row of a class is never held out, so every held-out
    row has a class with training rows. The list is empty if nothing can be held out.
    """
    some = rng.permutation(np.flatnonzero((weights > 0) & (codes >= 0)))[:most]
    pairs = (
        _folds(by_class(some, codes, rng), codes, cv or folds, enough)
        if cv is None or is_count(cv)
        else _as_told(np.sort(some), codes, cv, _FOLDS)
    )
    found = []
    for train, held in pairs:
        held = held[np.isin(codes[held], codes[train])]
        if len(held) and len(np.unique(codes[train])) > 1:
            kept = np.zeros(len(codes))
            kept[train] = weights[train]
            found.append(Split(kept, held, codes[held], weights[held]))
    if cv is not None and not found:
        raise OptionError("cv holds out no row whose class is trained on beside another")
    return found


def check_cv(cv: Any, sampled: bool = False) -> None:
    """Validate the option `cv`; for a sample of the rows only a number is valid."""
    chosen = not isinstance(cv, str | bytes | dict) and (hasattr(cv, "split") or np.iterable(cv))
    if not (cv is None or (is_count(cv) and cv > 1) or chosen):
        raise OptionError(
            f"cv={cv!r} must be None, a number of folds, a splitter of scikit-learn, pairs of rows "
            "to train on and rows to hold out, or a group for each row"
        )
    if chosen and sampled:
        raise OptionError("cv: options are chosen on a sample of these rows; give a number")


def _folds(order: np.ndarray, codes: np.ndarray, cv: int | None, enough: int) -> Iterator[Pair]:
    """Yield all `cv` folds, or as many as are needed to hold out enough rows."""
    folds = cv or _FOLDS
    fold = np.arange(len(order)) % folds
    fold[np.bincount(codes[order])[codes[order]] == 1] = -1
    wanted = cv or min(-(-enough * folds // max(len(order), 1)), folds)
    for each in range(wanted):
        yield order[fold != each], order[fold == each]


def _as_told(rows: np.ndarray, codes: np.ndarray, cv: Any, folds: int) -> Iterator[Pair]:
    """Yield the pairs of a splitter, of given pairs, or of groups."""
    try:
        if hasattr(cv, "split"):
            for train, held in cv.split(np.zeros((len(rows), 1)), codes[rows]):
                yield rows[train], rows[held]
            return
        cv = list(cv)
        if cv and not isinstance(cv[0], list | tuple | np.ndarray):
            yield from _by_group(rows, _groups(cv, len(codes)), folds)
            return
        for train, held in (map(_numbers, pair) for pair in cv):
            yield rows[np.isin(rows, train)], rows[np.isin(rows, held)]
    except (TypeError, ValueError) as error:
        raise OptionError(f"cv: {error}") from error


def _numbers(rows: Any) -> np.ndarray:
    rows = np.asarray(rows)
    if rows.ndim != 1 or (rows.dtype.kind not in "iu" and len(rows)) or np.any(rows < 0):
        raise ValueError("rows of a pair are their numbers, from 0 on")
    return rows


def _groups(cv: list[Any], n: int) -> np.ndarray:
    if len(cv) != n:
        raise ValueError(f"{len(cv)} groups, one for each row, but there are {n} rows")
    return np.unique(np.asarray(cv), return_inverse=True)[1]


def _by_group(rows: np.ndarray, groups: np.ndarray, folds: int) -> Iterator[Pair]:
    """Yield folds of similar size that hold out each group as a whole."""
    from sklearn.model_selection import GroupKFold

    own = groups[rows]
    folds = min(folds, len(np.unique(own)))
    if folds < 2:
        raise ValueError("all labelled rows are of one group; there must be two at least")
    for train, held in GroupKFold(folds).split(own, groups=own):
        yield rows[train], rows[held]
