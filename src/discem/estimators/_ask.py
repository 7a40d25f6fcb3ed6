"""What to ask next: the missing cell of a row from which the most is to be learnt of its class."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._checks import NUMBER
from ..exceptions import OptionError
from ..families._distributions import OfColumn, OfLevels
from ._answers import Answers
from ._impute import distributions, restored
from ._tables import Encoded
from ._threads import reads
from ._types import Table

_LEVELS = 32  # of a column, the most probable ones
_QUANTILES = 9  # of a column of numbers


class Asks(Answers):
    """Questions for more cells."""

    def _rows_of(self, known: list[dict[str | int, Any]]) -> Any:
        """Rows of some cells, as `predict_log_proba` takes them."""
        return Encoded.read(self._layout().named_by_keys(), known)

    def _share_seen(self, j: int) -> float:
        """The share of rows of the training that had a cell of a column, as far as is known."""
        return 1.0

    @reads
    def next_cell(self, row: Table, costs: Any = None) -> Any:
        """The missing cell that is expected to tell most of the class, by its cost.

        Ask for it, add it to the row, and go on until the model is sure.

        Parameters
        ----------
        row : dict from column to cell
            What is known. It may be empty.
        costs : dict from column to float, optional
            What it costs to ask for a cell, 1 unless it is given. A column of infinite cost is not
            asked for; so is one whose cell nobody knows.

        Returns
        -------
        name of a column
            None where nothing more is to be learnt.
        """
        gains = self.expected_gains(row)
        given = self._named("costs", {} if costs is None else costs)
        for name, cost in given.items():
            if not (isinstance(cost, NUMBER) and cost > 0):
                raise OptionError(f"costs: that of {name!r} is {cost!r}, and must be above 0")
        by_cost = {name: gain / given.get(name, 1.0) for name, gain in gains.items()}
        best = max(by_cost, key=by_cost.__getitem__, default=None)
        return best if best is not None and by_cost[best] > 0.0 else None

    @reads
    def expected_gains(self, row: Table) -> dict[str | int, float]:
        """What it is expected to tell of the class to ask for each missing cell of a row, in nats.

        It is the information between the cell and the class, given the cells that are there, times
        the share of rows of the training that had such a cell.

        Parameters
        ----------
        row : dict from column to cell

        Returns
        -------
        dict from column to float
        """
        known = self._known("row", row)
        encoded = self._row(known)
        columns = encoded.layout.columns
        lacking = [
            j for j, column in enumerate(columns) if column.is_modelled and column.name not in known
        ]
        rows, shares, places = [known], [1.0], [-1]
        answers = distributions([self._joint()], encoded, None, lacking)
        for j, answer in zip(lacking, answers, strict=True):
            values, p = _values(answer)
            p = self._share_seen(j) * p
            for cell, share in zip(restored(columns[j], values, "mode"), p, strict=True):
                rows.append(known | {columns[j].name: cell})
                shares.append(share)
                places.append(j)
        me: Any = self
        log_p = me.predict_log_proba(self._rows_of(rows))
        divergence = (np.exp(log_p) * (log_p - log_p[0])).sum(axis=1)
        gains = np.bincount(np.array(places) + 1, shares * divergence, len(columns) + 1)[1:]
        return {columns[j].name: float(gains[j]) for j in lacking}


def _values(answer: OfColumn) -> tuple[np.ndarray, np.ndarray]:
    """Codes or numbers that stand for a distribution, and how probable each is."""
    if isinstance(answer, OfLevels):
        best = np.argsort(-answer.p[0], kind="stable")[:_LEVELS]
        return best, answer.p[0, best]
    at = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
    return answer.quantile(at), np.full(len(at), 1.0 / len(at))
