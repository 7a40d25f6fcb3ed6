"""Tiny problems and models of every family, for the laws."""

import copy

import numpy as np

from discem import Dirichlet, Interior, NormalGamma, models
from discem.engines.sequential import FIGURES, Learner, sweep
from discem.families import FAMILIES, family_of, gaussian, make_room, words
from discem.io.rows import dense_rows, sparse_rows
from discem.losses import Labels
from discem.schedules import step_sizes

PRIOR = {"gaussian": NormalGamma(), "words": Dirichlet(1.0)}
PLAIN = Interior(0.5, damping=0.0)  # interior steps as method and paper define them
VIEW = {"gaussian": dense_rows, "words": sparse_rows}


def _documents(y, d, K, rng):
    return rng.poisson(0.3 + 3.0 * rng.random((K, d))[y]).astype(float)


def _table(y, d, K, rng):
    means, deviations = rng.normal(size=(K, d)), 0.5 + rng.random((K, d))
    return 1.0 + 3.0 * rng.normal(means[y], deviations[y])


DATA = {"gaussian": _table, "words": _documents}


def data(family, n=12, d=3, K=3, seed=0):
    """Rows of K classes, every class present."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % K)
    return DATA[family](y, d, K, rng), y


def labels(y):
    return Labels(np.asarray(y, dtype=np.int64))


def count(family, X, targets, weights=None, K=3):
    """The statistics of the data."""
    weights = np.ones(len(X)) if weights is None else weights
    return models.collect(FAMILIES[family], VIEW[family](X), targets, weights, X.shape[1], K)


def begin(family, X, y, prior=None, alpha=1.0, init="generative", average=False, K=3):
    """A model at its start, at mass 1 unless init="prior"."""
    counted = count(family, X, labels(y), K=K)
    return models.start(counted, prior or PRIOR[family], alpha, init, average)


def run(state, X, y, loss, rho, n, projection=PLAIN, batch=1, weights=None, sweep=sweep):
    """One pass in order from a copy of `state`; return the new state and the figures."""
    state, (rows, K) = copy.deepcopy(state), (VIEW[name_of(state)](X), models.n_classes(state))
    steps = -(-len(X) // batch)
    weights = np.ones(len(X)) if weights is None else weights
    figures, order = np.zeros(len(FIGURES)), np.arange(len(X))
    sizes = np.array(np.broadcast_to(rho, (steps,)), dtype=float)
    rho = step_sizes(lambda t: sizes, 1, steps)  # of the type that training sees
    share = np.arange(1.0, steps + 1.0) ** 2
    w = np.empty((batch + 2, K))
    sweep(
        state, loss, projection, rows, labels(y), weights, order, rho, share, float(n), w,
        make_room(K), figures,
    )  # fmt: skip
    return state, figures


def learner(state, loss, schedule, n, average=False, batch=1, projection=PLAIN):
    return Learner(copy.deepcopy(state), loss, projection, schedule, average, n, batch)


def learn(trained, X, y, order=None, chunk=0):
    """Take one pass; return the learner."""
    rows, weights = VIEW[name_of(trained.state)](X), np.ones(len(X))
    order = np.arange(len(X)) if order is None else order
    figures = np.zeros(len(FIGURES))
    for _ in trained.learn(rows, labels(y), weights, order, figures, chunk):
        pass
    return trained


def name_of(state):
    return next(name for name, family in FAMILIES.items() if family is family_of(state.features))


def _gaussian_means(block):
    m, v = gaussian.moments(block)
    return np.stack([m, v + m * m], axis=-1)


def _word_means(block):
    return np.exp(words.log_probabilities(block))


MEANS = {"gaussian": _gaussian_means, "words": _word_means}
MASS = {
    "gaussian": lambda block, p: (p[:, None] * block.mass)[:, :, None],
    "words": lambda block, p: block.total[:, None],
}


def parameters(state):
    """p(y), the mean parameters of p(x | y) and the mass N behind them, classes first."""
    name, counts = name_of(state), state.classes.counts
    p = counts / counts.sum()
    return p, MEANS[name](state.features), MASS[name](state.features, counts)
