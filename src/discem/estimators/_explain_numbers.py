"""Why a row gets its number: what each column moved the mean by, and what is worth knowing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

_ROWS = 4096  # that an explanation may look at
_MOST, _FEWEST = 32, 2  # orders in which cells are told
DRAWS = 64  # of a missing cell


class NumberExplanation(NamedTuple):
    """Why a row gets its prediction: exact parts of the mean, and what the missing cells cost.

    ``base + contributions.sum(axis=0)`` is what the model predicts. `base` is the mean of a row of
    which nothing is known. A contribution is the Shapley value of a column: by how much its cell
    moves the mean, averaged over orders in which the cells become known; what is not known as yet
    is summed out. Of several answers, contributions have a column for each.
    """

    columns: list[Any]
    contributions: np.ndarray  # (columns,) or (columns, targets)
    base: Any
    std: Any  # of the answer, as it is
    if_known: dict[Any, Any]  # of a missing cell: what `std` would be on average, if it was known

    @property
    def prediction(self) -> Any:
        return self.base + self.contributions.sum(axis=0)

    def largest(self) -> list[tuple[Any, Any]]:
        """Columns and their contributions, those that moved the mean most first."""
        sizes = np.abs(self.contributions).reshape(len(self.columns), -1).max(axis=1)
        order = np.argsort(-sizes, kind="stable").tolist()
        return [(self.columns[j], self.contributions[j]) for j in order]


def shapley(
    mean_of: Callable[[np.ndarray], np.ndarray], n_columns: int
) -> tuple[np.ndarray, np.ndarray]:
    """The base, and the value of each column, by ``mean_of(hidden)``, (rows, columns) of one row.

    Orders come in pairs, one the reverse of the other; they are the same each time.
    """
    rng = np.random.RandomState(0)
    pairs = int(np.clip(_ROWS // (2 * (n_columns + 1)), _FEWEST // 2, _MOST // 2))
    one_way = [rng.permutation(n_columns) for _ in range(pairs)]
    orders = np.array([order[::way] for order in one_way for way in (1, -1)])
    rank = np.argsort(orders, axis=1)  # when each column becomes known
    hidden = rank[:, None, :] >= np.arange(n_columns + 1)[None, :, None]
    means = mean_of(hidden.reshape(-1, n_columns))
    means = means.reshape(len(orders), n_columns + 1, *means.shape[1:])
    gains = np.diff(means, axis=1)
    by_column = np.stack([own[when] for own, when in zip(gains, rank, strict=True)])
    return means[0, 0], by_column.mean(axis=0)
