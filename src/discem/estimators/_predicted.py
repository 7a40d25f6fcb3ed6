"""Predicted numbers: a whole distribution for each row, based on a mixture of normals."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import logsumexp, ndtr, ndtri
from sklearn.utils import check_random_state

from .._checks import NUMBER
from ..exceptions import InputError, OptionError
from ._options import check_whole
from ._planes import Normals
from ._responses import Response, read_numbers

_STEPS = 60  # iterations for a quantile
_CLOSE = 1e-10  # tolerance, in deviations
_CERTAIN = 1e-12  # tolerance of a probability


class PredictedNumbers:
    """The predicted distributions of the answers of some rows.

    For one answer, results have the shape (n_samples,); for several, (n_samples, n_targets). Only
    `log_prob` and `sample` use the joint distribution of several answers; other methods treat each
    answer alone.

    Parameters
    ----------
    normals : Normals
        On the scale of the models.
    responses : list of Response
        The scale of each answer.
    flat : bool
        Whether there is only one answer.

    Examples
    --------
    >>> import numpy as np
    >>> from discem import TableRegressor
    >>> X = np.linspace(0.0, 1.0, 60)[:, None]
    >>> model = TableRegressor(random_state=0).fit(X, 2.0 * X.ravel())
    >>> found = model.predict_dist(X[:2])
    >>> found.mean.shape, bool(found.cdf(found.quantile(0.9)).round(6)[0] == 0.9)
    ((2,), True)
    """

    def __init__(self, normals: Normals, responses: list[Response], flat: bool):
        self._normals, self._responses, self._flat = normals, responses, flat

    def __len__(self) -> int:
        return len(self._normals.shares)

    def __getitem__(self, rows: Any) -> PredictedNumbers:
        shares, means, variances = self._normals
        rows = np.atleast_1d(np.arange(len(self))[rows])
        some = Normals(shares[rows], means[:, rows], variances[:, rows])
        return PredictedNumbers(some, self._responses, self._flat)

    def __repr__(self) -> str:
        return f"PredictedNumbers(of {len(self)} rows)"

    @property
    def mean(self) -> np.ndarray:
        """The mean of each answer."""
        return self._shaped([first for first, _ in self._moments()])

    @property
    def std(self) -> np.ndarray:
        """The standard deviation of each answer."""
        roots = [np.sqrt(np.maximum(second - first**2, 0.0)) for first, second in self._moments()]
        return self._shaped(roots)

    def quantile(self, q: float) -> np.ndarray:
        """Return the q-quantile of each answer."""
        if not (isinstance(q, NUMBER) and 0.0 < q < 1.0):
            raise OptionError(f"quantile {q!r} must be a number between 0 and 1")
        found = []
        for response, mean, variance in self._by_answer():
            z = _quantile(self._normals.shares, mean, variance, float(q))
            y = response.given(z)
            found.append(np.rint(y) if response.kind == "count" else y)
        return self._shaped(found)

    def cdf(self, y: Any) -> np.ndarray:
        """Return the probability that an answer is <= y; y is one number, or one per row."""
        found = []
        columns = zip(self._answers(y).T, self._by_answer(), strict=True)
        for own, (response, mean, variance) in columns:
            if response.kind == "count":
                own = np.floor(own) + 0.5
            with np.errstate(invalid="ignore"):
                z = response.seen(own)
            p = (self._normals.shares * ndtr((z[:, None] - mean) / np.sqrt(variance))).sum(axis=1)
            found.append(np.where(np.isnan(z) & ~np.isnan(own), 0.0, p))
        return self._shaped(found)

    def log_prob(self, y: Any) -> np.ndarray:
        """Return ``ln p(y | x)`` of each row, (n_samples,): a density, or a probability for counts.

        Several answers have one joint density. NaN is summed out.
        """
        total, own = np.zeros(self._normals.shares.shape), self._answers(y)
        for k, (response, mean, variance) in enumerate(self._by_answer()):
            log = response.log_prob(own[:, k : k + 1], mean, variance)
            total = total + np.where(np.isnan(own[:, k : k + 1]), 0.0, log)
        return logsumexp(total, axis=1, b=self._normals.shares)

    def sample(self, n_samples: int = 1, random_state: Any = None) -> np.ndarray:
        """Draw answers of each row; with several draws, the first axis is the draw."""
        check_whole("n_samples", n_samples)
        rng = check_random_state(random_state)
        shares, n = self._normals.shares, len(self)
        below, places = np.cumsum(shares, axis=1), np.arange(n)
        drawn = []
        for _ in range(n_samples):
            u = rng.random_sample((n, 1)) * below[:, -1:]
            code = np.minimum((below <= u).sum(axis=1), shares.shape[1] - 1)
            answers = []
            for response, mean, variance in self._by_answer():
                spread = np.sqrt(variance[places, code]) * rng.normal(size=n)
                y = response.given(mean[places, code] + spread)
                answers.append(np.rint(y) if response.kind == "count" else y)
            drawn.append(self._shaped(answers))
        return np.stack(drawn) if n_samples > 1 else drawn[0]

    def _by_answer(self) -> Any:
        return zip(self._responses, self._normals.means, self._normals.variances, strict=True)

    def _moments(self) -> Any:
        for response, mean, variance in self._by_answer():
            first, second = response.moments(mean, variance)
            yield (
                (self._normals.shares * first).sum(axis=1),
                (self._normals.shares * second).sum(axis=1),
            )

    def _answers(self, y: Any) -> np.ndarray:
        n, q = len(self), len(self._responses)
        if np.ndim(y) == 0:
            return np.full((n, q), float(y))
        values = read_numbers(y, n, needed=False).values
        if values.shape[1] != q:
            raise InputError(f"y has {values.shape[1]} columns, and the model has {q} answers")
        return values

    def _shaped(self, columns: list[np.ndarray]) -> np.ndarray:
        return columns[0] if self._flat else np.stack(columns, axis=1)


def _quantile(shares: np.ndarray, mean: np.ndarray, variance: np.ndarray, q: float) -> np.ndarray:
    """Return the q-quantile of a mixture of normals, by Newton steps between bounds."""
    root = np.sqrt(variance)
    ends = np.where(shares > 0.0, mean + ndtri(q) * root, np.nan)  # of components: it is between
    low, high = np.nanmin(ends, axis=1), np.nanmax(ends, axis=1)
    z = (shares * np.nan_to_num(ends)).sum(axis=1)
    rows = np.arange(len(z))  # rows that have not converged
    for _ in range(_STEPS):
        own, at, s = shares[rows], mean[rows], root[rows]
        far = (z[rows, None] - at) / s
        off = (own * ndtr(far)).sum(axis=1) - q
        slope = (own * np.exp(-0.5 * far**2) / s).sum(axis=1) / np.sqrt(2.0 * np.pi)
        high[rows] = np.where(off > 0.0, np.minimum(high[rows], z[rows]), high[rows])
        low[rows] = np.where(off > 0.0, low[rows], np.maximum(low[rows], z[rows]))
        step = z[rows] - off / np.maximum(slope, 1e-300)
        inside = (step > low[rows]) & (step < high[rows])
        step = np.where(inside, step, 0.5 * (low[rows] + high[rows]))
        there = np.abs(off) <= _CERTAIN
        moved = np.where(there, 0.0, step - z[rows])
        z[rows] += moved
        rows = rows[np.abs(moved) > _CLOSE * np.min(s, axis=1)]
        if not len(rows):
            break
    return z
