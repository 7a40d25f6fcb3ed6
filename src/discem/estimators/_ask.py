"""Choose what to ask next: the missing cell of a row that tells most about its class."""

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

_LEVELS = 32  # the most probable levels of a column
_QUANTILES = 9  # of a column of numbers


class Asks(Answers):
    """Methods that choose which missing cell to ask for."""

    def _rows_of(self, known: list[dict[str | int, Any]]) -> Any:
        """Return rows with the known cells, in the form that `predict_log_proba` takes."""
        return Encoded.read(self._layout().named_by_keys(), known)

    def _share_seen(self, j: int) -> float:
        """Return the share of training rows that have a cell in a column, if it is known."""
        return 1.0

    @reads
    def next_cell(self, row: Table, costs: Any = None) -> Any:
        """Return the missing cell that is expected to tell most about the class, per cost.

        Ask for it, add it to the row, and go on until the model is sure.

        Parameters
        ----------
        row : dict from column to cell
            The known cells. It may be empty.
        costs : dict from column to float, optional
            The cost of asking for a cell, by default 1. Columns of infinite cost are never asked
            for: use this if a cell cannot be known.

        Returns
        -------
        name of a column
            None if no further cell helps.
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
        """Return the expected information of each missing cell of a row about the class, in nats.

        It is the mutual information of the cell and the class, given the known cells, times the
        share of training rows that had a cell in this column.

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
    """Return codes or numbers that represent a distribution, and their probabilities."""
    if isinstance(answer, OfLevels):
        best = np.argsort(-answer.p[0], kind="stable")[:_LEVELS]
        return best, answer.p[0, best]
    at = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
    return answer.quantile(at), np.full(len(at), 1.0 / len(at))
