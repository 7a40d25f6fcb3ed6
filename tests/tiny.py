"""Tiny problems and models of every family, for the laws: all from the families' own records."""

import copy

import numpy as np
from scipy.special import log_softmax

from discem import Interior, models
from discem.engines import Data, Rule, Sequential, sequential
from discem.engines.sequential import ByBatch, ByRow, score_all, sweep
from discem.families import FAMILIES, family_of
from discem.figures import FIGURES
from discem.losses import NCLL, compiled_form
from discem.models import ClassPrior
from discem.schedules import step_sizes
from discem.targets import labels
from discem.training import Learner

LOSS = NCLL()
PLAIN = Interior(0.5, damping=0.0)  # interior steps as method and paper define them
# Families whose compiled code is another's: they run as plain Python here, and compile nothing.
LENT = {"bernoulli": "categorical", "lognormal": "gaussian"}
OWN = [name for name in FAMILIES if name not in LENT]


class Plain(Sequential):
    """The sequential engine without compiled code."""

    def learn(self, state, rule, t, data, order, figures, chunk=0):
        compiled, sequential.sweep = sequential.sweep, sweep.plain
        try:
            yield from super().learn(state, rule, t, data, order, figures, chunk)
        finally:
            sequential.sweep = compiled

    def score(self, model, rows, order=None):
        compiled, sequential.score_all = sequential.score_all, score_all.plain
        try:
            return super().score(model, rows, order)
        finally:
            sequential.score_all = compiled


def engine_of(state):
    """The engine that runs a model in tests."""
    return Plain() if family_of(state.features).name in LENT else Sequential()


def data(family, n=12, d=3, K=3, seed=0):
    """Rows of K classes, every class present."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % K)
    return record(family).example(y, d, rng), y


def record(family):
    """The record of a family, by name or as it is."""
    return FAMILIES[family] if isinstance(family, str) else family


def view(family, X):
    return record(family).view(X)


def width(X):
    """The number of features, as a family counts them."""
    return tuple(part.shape[1] for part in X) if isinstance(X, tuple) else X.shape[1]


def count(family, X, targets, weights=None, K=3):
    """The statistics of the data."""
    rows = view(family, X)
    weights = np.ones(rows.n_rows) if weights is None else weights
    return models.collect(record(family), rows, targets, weights, width(X), K)


def begin(family, X, y, prior=None, alpha=1.0, init="generative", average=False, K=3):
    """A model at its start, at mass 1 unless init="prior"."""
    of = record(family)
    if prior is None:
        prior, _ = of.resolve_prior("data", True, width(X))
    classes = ClassPrior(alpha, of.keeps_mass(prior), of.lifts_to_prior)
    return models.start(count(of, X, labels(y), K=K), prior, classes, init, average)


def run(state, X, y, loss, rho, n, projection=PLAIN, batch=1, weights=None, sweep=None):
    """One pass in order from a copy of `state`; return the new state and the figures."""
    state = copy.deepcopy(state)
    if sweep is None:
        plain = isinstance(engine_of(state), Plain)
        sweep = sequential.sweep.plain if plain else sequential.sweep
    rows, K = family_of(state.features).view(X), models.n_classes(state)
    size = rows.n_rows
    steps = -(-size // batch)
    weights = np.ones(size) if weights is None else weights
    figures, order = np.zeros(len(FIGURES)), np.arange(size)
    sizes = np.array(np.broadcast_to(rho, (steps,)), dtype=float)
    rho = step_sizes(lambda t: sizes, 1, steps)  # of the type that training sees
    share = np.arange(1.0, steps + 1.0) ** 2
    targets = y if hasattr(y, "codes") else labels(y)
    room, stride = models.make_room(state, rows, batch), ByBatch() if batch > 1 else ByRow()
    sweep(
        state, compiled_form(loss), projection, stride, rows, targets, weights, order, rho, share,
        float(n), np.empty((batch + 2, K)), room, figures,
    )  # fmt: skip
    return state, figures


def learner(state, loss, schedule, n, batch=1, projection=PLAIN, engine=None):
    rule = Rule(loss, projection, schedule, float(n), batch)
    return Learner(copy.deepcopy(state), rule, engine or engine_of(state))


def learn(trained, X, y, order=None, chunk=0):
    """Take one pass; return the learner."""
    rows = family_of(trained.state.features).view(X)
    order = np.arange(rows.n_rows) if order is None else order
    trained._chunk = lambda rows: chunk
    trained.learn(Data(rows, labels(y), np.ones(rows.n_rows)), order)
    return trained


def scores(model, X, engine=None):
    return (engine or engine_of(model)).score(model, family_of(model.features).view(X))


def parameters(state):
    """p(y), the mean parameters of p(x | y) in units of the state, and the mass N behind them."""
    counts = models.class_counts(state)
    count, means = family_of(state.features).arrays(state.features, counts)
    return counts / counts.sum(), means, count[..., None]


def log_joint(family, b, theta, x):
    """Scores of rows x, in units, from class logits and natural parameters: (n, K)."""
    of = record(family)
    linear = np.einsum("nfs,kfs->nk", of.statistics(x), theta)
    normalizers = of.exposure(x) @ of.log_normalizer(theta).T
    return log_softmax(b) + linear - normalizers + of.log_base(x)[:, None]


def flat(state):
    """All numbers of a state in a row."""
    if isinstance(state, np.ndarray):
        return state.ravel()
    if isinstance(state, tuple):
        return np.concatenate([flat(part) for part in state]) if state else np.zeros(0)
    return np.array([state], dtype=float) if isinstance(state, int | float) else np.zeros(0)


def untimed(records):
    """Records as a file has them: without the seconds that they took."""
    return [{name: each[name] for name in each if name != "seconds"} for each in records]
