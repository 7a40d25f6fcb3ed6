"""The paper's toy example (section 4.1): Gaussian naive Bayes, trained by Algorithm 1.

The statistics of a number x in its class are (1, x, x^2). Their expectations are (N, S, V), one
triple for each class and feature. The paper's prior has alpha = (1, 0, 1) and nu = (0, 1, 1), and
training starts at N = 1, S = 0, V = 1. The check-step lifts N to rho / n, and V to
S^2 / N + rho / n.

The code holds a triple as N, a mean m = S / N and a variance v = V / N - m^2, and writes a step
about the mean (for the statistics of x - m), because sums of squares lose digits to cancellation.
N is the share of the class times the observations `M` behind the feature.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..exceptions import OptionError
from . import compiled
from .classifier import Callback, Classifier, check_projection
from .inside import interior_fraction, land
from .losses import NLL, SHORTENED, weigh
from .units import closed_form, moments, units


class State(NamedTuple):
    """Expected statistics; features are in the units of the model."""

    C: np.ndarray  # (K,) count of each class
    M: np.ndarray  # (d,) observations behind a feature, all classes together: N = M C / sum C
    m: np.ndarray  # (K, d) S / N
    v: np.ndarray  # (K, d) V / N - m^2


class Prior(NamedTuple):
    """What the classes are pulled to, in pseudo-observations."""

    paper: bool  # alpha = (1, 0, 1), nu = (0, 1, 1)
    nu_class: float  # every class is pulled by 1 - nu_class * C
    nu_mean: float
    nu_variance: float
    mean: np.ndarray  # (d,)
    variance: np.ndarray  # (d,)


class Rule(NamedTuple):
    """What else a step depends on."""

    loss: int
    n: float  # rows that the prior is spread over
    check: bool  # the paper's check-step; False: the interior step
    share: float  # the most that an interior step takes of N and of v
    damping: float  # a step is divided by 1 + damping * (its effect on the scores of its row)


# --- compiled -------------------------------------------------------------------------------------

FAR, WIDE, NARROW = 1e140, 1e150, 1e-290  # bounds that keep all numbers finite


@compiled
def learn(state, average, prior, rule, X, codes, order, rho, entering, figures):
    """Algorithm 1 over the rows in `order`. NaN is a missing cell.

    Step t enters the running average, another `State`, with the share entering[t].
    """
    C, M, m, v = state
    K, d = m.shape
    a, w, effect, lost = np.empty(K), np.empty(K), np.empty(K), np.empty(d)
    for t in range(order.shape[0]):
        # the scores, and the weights that the loss makes of them
        x, mass = X[order[t]], C.sum()
        for k in range(K):
            share, effect[k] = C[k] / mass, 0.0
            a[k] = np.log(share)
            for j in range(d):
                if not np.isnan(x[j]):
                    square = min((x[j] - m[k, j]) ** 2 / v[k, j], FAR)
                    a[k] -= 0.5 * (square + np.log(2.0 * np.pi * v[k, j]))
                    effect[k] += (0.5 + 0.5 * square * square) / (M[j] * share)
        weigh(rule.loss, a, codes[order[t]], w, figures)
        w *= rho[t]
        w /= 1.0 + rule.damping * np.sum(np.abs(w) * effect)
        # mu <- mu + sum_k w_k s(k, x) - (sum_k w_k) mu + rho (alpha - nu mu) / n
        decay, pull, shortened = w.sum(), rho[t] / rule.n, 0
        lost[:] = 0.0
        for k in range(K):
            for j in range(d):
                N = M[j] * C[k] / mass
                dN, dS, dV = pull_of(prior, pull, j, N, m[k, j], v[k, j])
                dN -= decay * N
                dV -= decay * N * v[k, j]
                if not np.isnan(x[j]):
                    u = x[j] - m[k, j]
                    dN, dS, dV = dN + w[k], dS + w[k] * u, dV + w[k] * u * u
                new, m[k, j], v[k, j], short = land_factor(
                    rule, pull, N, m[k, j], v[k, j], dN, dS, dV
                )
                lost[j] += new - (N + dN)
                shortened += short
        for j in range(d):
            change = lost[j] + (0.0 if np.isnan(x[j]) else decay) - decay * M[j]
            change += K * pull if prior.paper else 0.0
            M[j], _ = land(M[j], change, pull if rule.check else (1.0 - rule.share) * M[j])
        for k in range(K):
            change = w[k] - decay * C[k] + pull * (1.0 - prior.nu_class * C[k])
            C[k], short = land(C[k], change, pull if rule.check else (1.0 - rule.share) * C[k])
            shortened += short
        figures[SHORTENED] += shortened > 0
        if entering[t] > 0.0:
            average.C[:] += entering[t] * (C - average.C)
            average.m[:] += entering[t] * (m - average.m)
            average.v[:] += entering[t] * (v - average.v)


@compiled
def pull_of(prior, pull, j, N, m, v):
    """Return pull * (alpha - nu mu) of one factor: changes of N, and of S and V about the mean."""
    if prior.paper:
        dN, dS, dV = 1.0, -N * m, 1.0 - N * (v + m * m)
        return pull * dN, pull * (dS - m * dN), pull * (dV - 2.0 * m * dS + m * m * dN)
    # a prior stronger than all the data may come half-way in one step, not beyond its centre
    to_mean, to_variance = min(pull * prior.nu_mean, N / 2), min(pull * prior.nu_variance, N / 2)
    dS = to_mean * (prior.mean[j] - m)
    return 0.0, dS, to_variance * (prior.variance[j] - v) + dS * (prior.mean[j] - m)


@compiled
def land_factor(rule, floor, N, m, v, dN, dS, dV):
    """Keep a step inside N > 0 and v > 0; return N, m, v, and 1 if the step was changed."""
    new, shortened = N + dN, 0
    if rule.check:
        if new < floor:  # N alone is lifted; S and V stay, which about the mean are then others
            lift = floor - new
            new, dS, dV, shortened = floor, dS - m * lift, dV + m * m * lift, 1
        shift = dS / new
        variance = (N * v + dV) / new - shift * shift
        if not variance >= floor / new:
            variance, shortened = floor / new, 1
    else:
        keep = 1.0 - rule.share
        shift = dS / new
        variance = (N * v + dV) / new - shift * shift
        if not (new >= keep * N and variance >= keep * v):
            f = interior_fraction(rule.share, dN / N, dS / (N * np.sqrt(v)), dV / (N * v))
            if f == 0.0:  # a step beyond all bounds has no direction
                return N, m, v, 1
            new, shortened = N + f * dN, 1
            shift = f * dS / new
            variance = max((N * v + f * dV) / new - shift * shift, keep * v)
    m = min(max(m + shift, -WIDE), WIDE)
    return new, m, min(max(variance, NARROW), WIDE * WIDE), shortened


# --- in Python ------------------------------------------------------------------------------------


class Gaussian(Classifier):
    """A Gaussian naive Bayes as `train` leaves it.

    Attributes
    ----------
    class_prior_ : array of shape (n_classes,)
    mean_, var_ : arrays of shape (n_classes, n_features)
    state, model : State
        Where training stands, and what predicts: its average where one is kept. Both are in units
        of ``(x - shift) / scale``.
    """

    def __init__(self, X, y, loss, prior, start, check, share, damping, average):
        super().__init__(y, loss)
        K, (n, d) = len(self.classes_), X.shape
        if check or self._loss == NLL:  # NLL cannot overshoot
            damping = 0.0
        self._rule = Rule(self._loss, float(n), check, share, damping)
        means, variances, counts = moments(X, self._codes, K)
        if prior == "paper":
            self.shift, self.scale = np.zeros(d), np.ones(d)
            nu, centre = (1.0, 1.0), (np.zeros(d), np.ones(d))
        else:
            self.shift, self.scale, within = units(means, variances, counts)
            nu, centre = (2.0, 30.0) if prior == "data" else prior, (np.zeros(d), within)
        C, M = np.ones(K), np.full(d, float(K))
        m, v = (np.repeat(each[None], K, axis=0) for each in centre)
        if start == "data":  # in the mass of one row
            C = (np.bincount(self._codes, minlength=K) + 1.0) / (n + K)
            M = (counts.sum(axis=0) + 1.0) / (n + 1.0)
            own = (means - self.shift) / self.scale, variances / self.scale**2
            m, v = closed_form(*own, counts, nu, centre)
        nu_class = 0.0 if prior == "paper" else K / float(C.sum())
        self._prior = Prior(prior == "paper", nu_class, float(nu[0]), float(nu[1]), *centre)
        self.state = State(C, M, m, v)
        self.model = State(*(part.copy() for part in self.state)) if average else self.state

    def _rows(self, X):
        return np.ascontiguousarray((X - self.shift) / self.scale)

    def _learn(self, rows, order, rho, figures):
        t = self.t + 1.0 + np.arange(len(order))  # weights grow like t^2
        entering = 6.0 * t / ((t + 1.0) * (2.0 * t + 1.0)) * (self.model is not self.state)
        states, plan = (self.state, self.model), (self._codes, order, rho, entering)
        learn(*states, self._prior, self._rule, rows, *plan, figures)
        base = np.where(np.isnan(rows), 0.0, np.log(self.scale)).sum()  # of the units
        figures[:2] += [base if self._loss == NLL else 0.0, base]

    @property
    def class_prior_(self) -> np.ndarray:
        """The share of each class."""
        return self.model.C / self.model.C.sum()

    @property
    def mean_(self) -> np.ndarray:
        """The mean of each feature in each class; that of a constant one is its value."""
        return self.shift + np.nan_to_num(self.scale) * self.model.m

    @property
    def var_(self) -> np.ndarray:
        """The variance of each feature in each class, 0 for a constant one."""
        return np.nan_to_num(self.scale) ** 2 * self.model.v

    def scores(self, X):
        """The scores ``ln p(y, x)``; missing cells are summed out."""
        X = np.asarray(X, dtype=np.float64)
        scores = np.tile(np.log(self.class_prior_), (len(X), 1))
        for k, (m, v) in enumerate(zip(self.mean_, self.var_, strict=True)):
            v = np.where(v > 0.0, v, np.nan)  # a constant feature says nothing
            scores[:, k] -= 0.5 * np.nansum((X - m) ** 2 / v + np.log(2.0 * np.pi * v), axis=1)
        return scores


def train(
    X: Any,
    y: Any,
    *,
    loss: str = "ncll",
    prior: str | tuple[float, float] = "paper",
    start: str = "prior",
    lam: Any = 1.0,
    epochs: int = 5,
    projection: str = "check",
    share: float = 0.5,
    damping: float = 0.03,
    average: bool = False,
    seed: Any = None,
    callback: Callback | None = None,
) -> Gaussian:
    """Train a Gaussian naive Bayes row by row.

    `discem.paper.classifier` explains the options that are not explained here.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        NaN is a missing cell.
    y : array-like of shape (n_samples,)
    loss : {"nll", "ncll", "hinge"}
    prior : {"paper", "data"} or pair of float
        "paper" has alpha = (1, 0, 1) and nu = (0, 1, 1), in raw units. A pair is the number of
        pseudo-observations that pull each mean to the overall mean, and each variance to the pooled
        variance within classes; "data" is (2, 30).
    start : {"prior", "data"}
        The paper starts at the prior. "data" is the closed form under NLL.

    Examples
    --------
    >>> from discem.datasets import toy
    >>> from discem.paper import gaussian
    >>> X, y = toy(3000, random_state=0)
    >>> model = gaussian.train(X, y, loss="ncll", lam=1.0, epochs=1, seed=0)
    >>> bool(model.score(X, y) > 0.9)
    True
    """
    if not (isinstance(prior, tuple) or prior in ("paper", "data")):
        raise OptionError(f"prior={prior!r} is unknown: use 'paper', 'data' or a pair of numbers")
    if start not in ("prior", "data"):
        raise OptionError(f"start={start!r} is unknown: use 'prior' or 'data'")
    X, check = np.asarray(X, dtype=np.float64), check_projection(projection)
    model = Gaussian(X, y, loss, prior, start, check, share, damping, average)
    model._train(X, lam, epochs, seed, callback)
    return model
