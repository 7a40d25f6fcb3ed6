"""Which rows are held out to choose by: a share of each class, or what the option `cv` says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ..exceptions import OptionError
from ._options import is_count

MOST = 50_000  # rows that take part in choosing: more would hardly change the choice
ENOUGH = 200  # rows held out; where there are fewer, others are held out in turn

_FOLDS = 5

Pair = tuple[np.ndarray, np.ndarray]  # rows to train on, and rows held out


class Split(NamedTuple):
    """Rows to train on, by weight, and rows to judge by."""

    weights: np.ndarray  # (n,) zero for rows not to train on
    held: np.ndarray  # rows held out
    codes: np.ndarray  # place of the class of each of them
    held_weights: np.ndarray

    @property
    def train(self) -> np.ndarray:
        """The rows to train on."""
        return np.flatnonzero(self.weights > 0)

    def among(self, rows: np.ndarray) -> Split:
        """The same where only these rows are left; they are in order."""
        held = np.searchsorted(rows, self.held)
        return self._replace(weights=self.weights[rows], held=held)


def by_class(rows: np.ndarray, codes: np.ndarray, rng) -> np.ndarray:
    """The rows, one class after the other, in a random order within each."""
    order = rng.permutation(rows)
    return order[np.argsort(codes[order], kind="stable")]


def hold_out(codes: np.ndarray, weights: np.ndarray, fraction: float, rng) -> np.ndarray:
    """Rows to judge by: a share of each class (codes >= 0), of rows with a weight, at random.

    A class keeps what is not a whole number of rows: one of a single row is only trained on.
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
    """Hold out labelled rows of a weight, `most` of them taking part.

    Without `cv` it is a fifth of each class, again and again where less than `enough` rows are held
    out, or each of so many `folds`. The only row of a class is never held out. What is held out has
    a class that is trained on. None where there is nothing to hold out.
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
    """See that the option can say what to hold out; of a sample of the rows only a number can."""
    chosen = not isinstance(cv, str | bytes | dict) and (hasattr(cv, "split") or np.iterable(cv))
    if not (cv is None or (is_count(cv) and cv > 1) or chosen):
        raise OptionError(
            f"cv={cv!r} must be None, a number of folds, a splitter of scikit-learn, pairs of rows "
            "to train on and rows to hold out, or a group for each row"
        )
    if chosen and sampled:
        raise OptionError("cv: options are chosen on a sample of these rows; give a number")


def _folds(order: np.ndarray, codes: np.ndarray, cv: int | None, enough: int) -> Iterator[Pair]:
    """All of `cv` folds, or as many as it takes to judge by enough rows."""
    folds = cv or _FOLDS
    fold = np.arange(len(order)) % folds
    fold[np.bincount(codes[order])[codes[order]] == 1] = -1
    wanted = cv or min(-(-enough * folds // max(len(order), 1)), folds)
    for each in range(wanted):
        yield order[fold != each], order[fold == each]


def _as_told(rows: np.ndarray, codes: np.ndarray, cv: Any, folds: int) -> Iterator[Pair]:
    """What a splitter makes of the rows, or pairs, or groups."""
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
    """Rows of a group are held out together, with those of other groups in folds of like size."""
    from sklearn.model_selection import GroupKFold

    own = groups[rows]
    folds = min(folds, len(np.unique(own)))
    if folds < 2:
        raise ValueError("all labelled rows are of one group; there must be two at least")
    for train, held in GroupKFold(folds).split(own, groups=own):
        yield rows[train], rows[held]
