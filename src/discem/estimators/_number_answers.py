"""Methods of regressors: means, quantiles, whole distributions, and explanations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp
from sklearn.metrics import r2_score
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._checks import demand
from .._kinds import savable
from ..exceptions import InputError, OptionError
from ..io.frames import check_table
from ..io.making import make_table
from ..io.rows import Rows
from . import _input
from ._average import read_for
from ._impute import draw
from ._pieces import by_partition
from ._planes import Normals
from ._predicted import PredictedNumbers
from ._responses import Response, read_numbers
from ._table_preset import FittedTable, TablePreset
from ._tables import Encoded, hidden_in
from ._threads import reads
from ._types import Labels, RandomState, RegressorMixin, Table, Weights

_USUAL = (0.05, 0.5, 0.95)  # quantiles: the ends of a 90 % interval, and the median
_AT_ONCE = 1 << 21  # numbers to keep in memory at a time


@savable
@dataclass
class FittedNumbers(FittedTable):
    """The fitted state of a `TableRegressor`."""

    responses: list[Response] = field(default_factory=list)  # one per answer
    names: list[Any] = field(default_factory=list)  # the column names of y, if it was a frame
    flat: bool = True  # whether y was a vector

    def check(self) -> None:
        demand(isinstance(self.responses, list) and self.responses, "it has no answers")
        q = len(self.responses)
        for response in self.responses:
            demand(isinstance(response, Response), "it does not know what its answers are")
            response.check()
        columns = [column.name for column in self.model.layout_.columns]
        for model, _ in self.members:
            demand(len(model.learner_.state.answer.mass) == q, "its models have other answers")
            own = [column.name for column in model.layout_.columns]
            demand(own == columns, "its models are of different columns")
        demand(isinstance(self.flat, bool) and (q == 1 or not self.flat), "y had no shape")
        named = isinstance(self.names, list) and len(self.names) in (0, q)
        plain = named and all(isinstance(name, str | int) for name in self.names)
        demand(plain, "its answers have no names")


class NumberAnswers(RegressorMixin, TablePreset):
    """Methods of an average of models whose answers are numbers."""

    device: Any

    # --- prediction -------------------------------------------------------------------------------

    @by_partition(lambda model: model._n_answers)
    @reads
    def predict(self, X: Table, return_std: bool = False) -> Any:
        """Return the mean of y given the observed cells of each row.

        Parameters
        ----------
        X : table
        return_std : bool, default=False
            Also return the standard deviation.

        Returns
        -------
        array of shape (n_samples,), or (n_samples, n_targets), or two of these
        """
        means = self._asked(X, lambda found: found.mean)
        return (means, self._asked(X, lambda found: found.std)) if return_std else means

    @by_partition(lambda model: model._n_usual)
    @reads
    def predict_quantiles(self, X: Table, quantiles: Any = _USUAL) -> np.ndarray:
        """Return quantiles of y: numbers that y is below with the given probabilities.

        Parameters
        ----------
        X : table
        quantiles : sequence of float, default=(0.05, 0.5, 0.95)

        Returns
        -------
        array or frame of shape (n_samples, n_quantiles)
            If X is a frame, a frame of the same library. For several answers, an array with the
            answers on its third axis. The first and the last default quantile bound a 90 %
            interval.
        """
        asked = np.atleast_1d(np.array(quantiles, dtype=object)).tolist()
        if not asked:
            raise OptionError("quantiles is empty: give numbers between 0 and 1")
        found = self._asked(X, lambda own: np.stack([own.quantile(q) for q in asked], axis=1))
        backend = check_table(X).backend
        if found.ndim == 3 or backend in ("array", "dicts"):
            return found
        frame = make_table(backend, [f"{q:g}" for q in asked], list(found.T))
        if backend == "pandas":
            frame.index = X.index
        return frame

    @reads
    def predict_dist(self, X: Table) -> PredictedNumbers:
        """Return the whole distribution of y in each row, see `PredictedNumbers`."""
        return self._averaged(self._views(X))

    @reads
    def explain(self, row: Table) -> NumberExplanation:
        """Return the effect of each column on the mean, and the cost of missing cells.

        See `NumberExplanation`. The cost of missing cells needs the density, which draws them.

        Parameters
        ----------
        row : a table of one row, or a dict
        """
        row = [row] if isinstance(row, dict) else row
        views, members = self._views(row), self._fitted.members
        if views[0].n_rows != 1:
            raise InputError(f"explain takes one row at a time, and this has {views[0].n_rows}")

        def predicted(rows: list[Rows], hidden: np.ndarray) -> PredictedNumbers:
            times = len(hidden) // rows[0].n_rows
            again = np.tile(np.arange(rows[0].n_rows), times)
            pairs = zip(members, rows, strict=True)
            return self._averaged(
                [hidden_in(r.take(again), m.layout_, hidden) for (m, _), r in pairs]
            )

        columns = self.model_.layout_.columns
        base, parts = shapley(lambda hidden: predicted(views, hidden).mean, len(columns))
        std = self._averaged(views).std[0]
        found = NumberExplanation([column.name for column in columns], parts, base, std, {})
        if self._fitted.density is None:
            return found
        encoded = Encoded.read(self.density_.layout_, row)
        there = encoded.there()[0]
        gone = [j for j, own in enumerate(columns) if own.is_modelled and not there[j]]
        if gone:
            drawn, _ = draw([self.density_], encoded.take(np.zeros(DRAWS, int)), None,
                            np.random.RandomState(0))  # fmt: skip
            rows = self._views(self.density_.layout_.decode(drawn))
            hidden = np.zeros((len(gone), DRAWS, len(columns)), dtype=bool)
            hidden[:, :, gone] = ~np.eye(len(gone), dtype=bool)[:, None, :]
            variances = predicted(rows, hidden.reshape(-1, len(columns))).std ** 2
            known = np.sqrt(variances.reshape(len(gone), DRAWS, *variances.shape[1:]).mean(axis=1))
            found.if_known.update(zip((columns[j].name for j in gone), known, strict=True))
        return found

    @by_partition()
    @reads
    def score_samples(self, X: Table) -> np.ndarray:
        """Return ``ln p(x)`` of each row: low for rows unlike the training data.

        The density is `density_`, or the predicting models if there is no `density_`.
        """
        check_is_fitted(self)
        if self._fitted.density is not None:
            return self.density_.score_samples(X)
        pairs = zip(self._fitted.members, self._views(X), strict=True)
        found = [model.log_density(view, self.device) for (model, _), view in pairs]
        shares = np.array([weight for _, weight in self._fitted.members])
        return logsumexp(np.stack(found), axis=0, b=shares[:, None])

    def score(self, X: Table, y: Labels, sample_weight: Weights = None) -> float:
        """Return R², the share of the variance of y explained; rows without y do not count."""
        found = np.asarray(self.predict(X))
        given = read_numbers(y, len(found))
        there = ~np.isnan(given.values).any(axis=1)
        weights = _input.check_weights(sample_weight, found)[there]
        return float(r2_score(given.values[there], found[there], sample_weight=weights))

    @property
    def _n_answers(self) -> int | None:
        """Return the number of answer columns; None for a vector."""
        check_is_fitted(self)
        return None if self._fitted.flat else len(self._fitted.responses)

    @property
    def _n_usual(self) -> int:
        """Return the number of columns of the default quantiles."""
        if self._n_answers is not None:
            raise InputError("quantiles of several answers: compute() the rows first")
        return len(_USUAL)

    def _views(self, X: Any) -> list[Rows]:
        """Return the rows of a table, as each member reads them."""
        check_is_fitted(self)
        members = self._fitted.members
        pairs = zip(members, read_for(members, X), strict=True)
        return [Encoded.read(model.layout_, own).view() for (model, _), own in pairs]

    def _asked(self, X: Any, ask: Callable[[PredictedNumbers], np.ndarray]) -> np.ndarray:
        """Evaluate `ask` on the distributions of rows, some rows at a time."""
        views = self._views(X)
        size = sum(int(model.learner_.model.first[-1]) for model, _ in self._fitted.members)
        n, step = views[0].n_rows, max(_AT_ONCE // size, 16)
        cuts = [slice(first, first + step) for first in range(0, n, step)]
        return np.concatenate([ask(self._averaged([v.take(cut) for v in views])) for cut in cuts])

    def _averaged(self, views: list[Rows]) -> PredictedNumbers:
        """Return the average of the predictions of all members."""
        parts = []
        for (model, weight), own in zip(self._fitted.members, views, strict=True):
            shares, means, variances = model.answers(own, self.device)
            parts.append(Normals(weight * shares, means, variances))
        shares, means, variances = zip(*parts, strict=True)
        axes = ((shares, 1), (means, 2), (variances, 2))
        return self._predicted(Normals(*(np.concatenate(part, axis=a) for part, a in axes)))

    # --- what is known of it ----------------------------------------------------------------------

    @property
    def target_(self) -> Any:
        kinds = [response.kind for response in self._fitted.responses]
        return kinds[0] if self._fitted.flat else kinds

    @property
    def members_(self) -> list[dict[str, Any]]:
        check_is_fitted(self)
        return [
            {"weight": weight, "loss": model.learner_.rule.loss}
            | {"n_components": int(model.learner_.model.first[-1])}
            for model, weight in self._fitted.members
        ]

    # --- the density ------------------------------------------------------------------------------

    def _joint(self):
        check_is_fitted(self)
        return self.density_

    @reads
    def impute(  # type: ignore[override]
        self, X: Table, how: str = "mean", n_draws: int = 1, random_state: RandomState = None
    ) -> Any:
        """Fill in the missing cells of a table, see `TableClassifier.impute`; y is not used."""
        return super().impute(X, None, how, n_draws, random_state)

    @reads
    def sample(  # type: ignore[override]
        self,
        n_samples: int = 1,
        random_state: RandomState = None,
        *,
        given: Mapping[Any, Any] | None = None,
    ) -> tuple[Any, np.ndarray]:
        """Draw rows, as a table like the training table, and their answers.

        Parameters
        ----------
        n_samples : int, default=1
        random_state : int, RandomState or None, default=None
        given : dict from column to cell, optional
            Draw the other cells, and the answer, given these.

        Returns
        -------
        X : table of n_samples rows
        y : array of shape (n_samples,) or (n_samples, n_targets)
        """
        rng = check_random_state(random_state)
        X, _ = super().sample(n_samples, rng, given=given)
        return X, self.predict_dist(X).sample(1, rng)

    @reads
    def distribution(self, column: Any, given: Mapping[Any, Any] | None = None) -> Any:  # type: ignore[override]
        """Return the distribution of a column of X given other cells of its row.

        See `TableClassifier.distribution`; y is not used.
        """
        return super().distribution(column, given)

    def _predicted(self, normals: Normals) -> PredictedNumbers:
        return PredictedNumbers(normals, self._fitted.responses, self._fitted.flat)


# --- explanations ---------------------------------------------------------------------------------


_ROWS = 4096  # rows that an explanation may evaluate
_MOST, _FEWEST = 32, 2  # orders in which cells become known
DRAWS = 64  # draws of a missing cell


class NumberExplanation(NamedTuple):
    """Explain a prediction: exact parts of the mean, and the cost of missing cells.

    ``base + contributions.sum(axis=0)`` is the prediction. `base` is the mean for a row without any
    cell. A contribution is the Shapley value of a column: how much its cell moves the mean,
    averaged over orders in which the cells become known; cells not yet known are summed out. With
    several answers, contributions have a column for each.
    """

    columns: list[Any]
    contributions: np.ndarray  # (columns,) or (columns, targets)
    base: Any
    std: Any  # the standard deviation of the answer
    if_known: dict[Any, Any]  # by missing cell: the mean of `std` if the cell was known

    @property
    def prediction(self) -> Any:
        return self.base + self.contributions.sum(axis=0)

    def largest(self) -> list[tuple[Any, Any]]:
        """Return columns and their contributions, largest effect first."""
        sizes = np.abs(self.contributions).reshape(len(self.columns), -1).max(axis=1)
        order = np.argsort(-sizes, kind="stable").tolist()
        return [(self.columns[j], self.contributions[j]) for j in order]


def shapley(
    mean_of: Callable[[np.ndarray], np.ndarray], n_columns: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the base and the value of each column; ``mean_of(hidden)`` takes (rows, columns).

    Orders come in pairs, one the reverse of the other, and are the same on each call.
    """
    rng = np.random.RandomState(0)
    pairs = int(np.clip(_ROWS // (2 * (n_columns + 1)), _FEWEST // 2, _MOST // 2))
    one_way = [rng.permutation(n_columns) for _ in range(pairs)]
    orders = np.array([order[::way] for order in one_way for way in (1, -1)])
    rank = np.argsort(orders, axis=1)  # the position at which each column becomes known
    hidden = rank[:, None, :] >= np.arange(n_columns + 1)[None, :, None]
    means = mean_of(hidden.reshape(-1, n_columns))
    means = means.reshape(len(orders), n_columns + 1, *means.shape[1:])
    gains = np.diff(means, axis=1)
    by_column = np.stack([own[when] for own, when in zip(gains, rank, strict=True)])
    return means[0, 0], by_column.mean(axis=0)
