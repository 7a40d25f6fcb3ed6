"""Tiny problems and models of every family, for the laws: all from the families' own records."""

import copy
from dataclasses import fields, is_dataclass

import numpy as np
import pytest
from scipy import stats

from discem import Interior, models
from discem.engines import Data, Rule, Sequential
from discem.families import FAMILIES, family_of, gaussian, normal, words
from discem.figures import FIGURES
from discem.losses import NCLL, resolve_loss
from discem.models import ClassPrior
from discem.targets import labels
from discem.training import Learner
from discem.update import update

LOSS = NCLL()
PLAIN = Interior(0.5, damping=0.0)  # interior steps as method and paper define them
DENSE = [name for name in FAMILIES if name not in ("words", "levels")]
CORRELATED = ["normal", "tied"]  # families whose columns say something of each other


def in_turn(names, first, second, third):
    """Each pair of the first two, beside one of the third, which takes turns.

    So any two of the values meet, and not any three: for crossings that fail by two or not at all.
    The third is a dict, by whose keys its values are called.
    """
    known, cases = list(third), []
    for i, (a, one) in enumerate(_named(first)):
        for j, (b, two) in enumerate(_named(second)):
            c = known[(i + j) % len(known)]
            cases.append(pytest.param(one, two, third[c], id=f"{a}-{b}-{c}"))
    return pytest.mark.parametrize(names, cases)


def _named(values):
    return values.items() if isinstance(values, dict) else [(str(each), each) for each in values]


def record(family):
    """The record of a family, by name or as it is."""
    return FAMILIES[family] if isinstance(family, str) else family


def data(family, n=12, d=3, K=3, seed=0):
    """Rows of K classes, every class present."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % K)
    return record(family).example(y, d, rng), y


def holed(family, X):
    """The rows, with some missing cells where the family takes them."""
    if record(family).accepts.missing:
        X = X.copy()
        X[1, 2] = X[4] = np.nan
    return X


def view(family, X):
    return record(family).view(X)


def width(X):
    """The number of features, as a family counts them."""
    return tuple(part.shape[1] for part in X) if isinstance(X, tuple) else X.shape[1]


def take(X, rows):
    """Some of the rows."""
    return tuple(part[rows] for part in X) if isinstance(X, tuple) else X[rows]


def as_targets(y):
    return y if hasattr(y, "codes") else labels(y)


def count(family, X, y, weights=None, K=3):
    """The statistics of the data."""
    rows = view(family, X)
    weights = np.ones(rows.n_rows) if weights is None else weights
    return models.collect(record(family), rows, as_targets(y), weights, width(X), K)


def begin(
    family, X, y, prior=None, alpha=1.0, init="generative", average=False, K=3, first=None
):  # fmt: skip
    """A model at its start, at mass 1 unless init="prior"."""
    of = record(family)
    if prior is None:
        prior, _ = of.resolve_prior("data", True, width(X))
    classes = ClassPrior(alpha, of.keeps_mass(prior), of.lifts_to_prior)
    return models.start(count(of, X, y, K=K), prior, classes, init, average, first=first)


class Replay:
    """Steps of given sizes, one after the other."""

    def __init__(self, rho):
        self.rho = np.atleast_1d(np.asarray(rho, dtype=float))

    def __call__(self, t):
        return self.rho[(np.asarray(t, dtype=int) - 1) % len(self.rho)]


def step(model, X, y, loss="ncll", rho=0.1, n=np.inf, projection=PLAIN, weights=None):
    """One update with all rows from a copy of the model: the new model, and what was judged."""
    model, rows = copy.deepcopy(model), model.family.view(X)
    rule = Rule(resolve_loss(loss), projection, None, float(n), rows.n_rows)
    weights = np.ones(rows.n_rows) if weights is None else weights
    return update(model, model.read(rows), as_targets(y), weights, rule, float(rho))


def run(state, X, y, loss="ncll", rho=0.1, n=12, projection=PLAIN, batch=1, weights=None):
    """One pass in order from a copy of `state`; return the new state and the figures."""
    rows = state.family.view(X)
    weights = np.ones(rows.n_rows) if weights is None else weights
    rule = Rule(resolve_loss(loss), projection, Replay(rho), float(n), batch)
    figures, data = np.zeros(len(FIGURES)), Data(rows, as_targets(y), weights)
    order, state = np.arange(rows.n_rows), copy.deepcopy(state)
    for done in Sequential().learn(state, rule, 0, data, order, figures):
        state = done.state
    return state, figures


def learner(state, loss, schedule, n, batch=1, projection=PLAIN, engine=None):
    rule = Rule(resolve_loss(loss), projection, schedule, float(n), batch)
    return Learner(copy.deepcopy(state), rule, engine)


def learn(trained, X, y, order=None, chunk=0):
    """Take one pass; return the learner."""
    rows = trained.state.family.view(X)
    order = np.arange(rows.n_rows) if order is None else order
    trained._chunk = lambda rows: chunk
    trained.learn(Data(rows, as_targets(y), np.ones(rows.n_rows)), order)
    return trained


def scores(model, X, engine=None):
    return (engine or Sequential()).score(model, model.family.view(X))


def joint(model, X):
    """Ln p(y, c, x) of rows and components."""
    return model.joint(model.read(model.family.view(X)))


# --- what a model holds ---------------------------------------------------------------------------


def plain(state):
    """The state as it stands, without its average."""
    blocks = [block._replace(past={}) for block in state.blocks]
    return state._replace(classes=state.classes._replace(past=None), blocks=tuple(blocks))


def settled(block):
    """The block, without scalars that act on all of its levels."""
    return FAMILIES["levels"].settled(block) if block.family == "levels" else block


def counts_of(block, shares):
    """The count N behind each of the statistics of a block."""
    if block.family == "words":
        return np.ones((1, len(shares)))
    family, N = family_of(block), block.mass[:, None] * shares
    if block.family in CORRELATED:
        return N
    if "column" in block.fixed:
        return family.by_factor(block, N)
    return np.tile(N, (len(family.moments(block)), 1))


def seen_of(block, X):
    """By which weights a row moves the counts behind its statistics, (n, D): of words, by none."""
    there = ~np.isnan(X)
    if block.family in CORRELATED:
        return np.ones((len(X), 1))
    if "column" in block.fixed:
        return there[:, block.fixed["column"]]
    if block.family == "words":
        return 0 * there[:, :1]
    return np.tile(there, (1, len(means_of(block)) // there.shape[1]))


def statistics_of(model, X):
    """The expected statistics of rows in each component, (n, D, K), of a model of one block."""
    if model.features.family in CORRELATED:
        return _expected(model.features, X)
    return np.repeat(_statistics_of(model, X)[:, :, None], len(model.classes.counts), axis=2)


def _expected(block, X):
    """E[x | what is seen] and E[x x' | what is seen], in units, row by row."""
    m, S, K = block.values["mean"], normal.covariances(block), block.values["mean"].shape[1]
    X = (X - block.fixed["shift"]) / block.fixed["scale"]
    found = []
    for x in X:
        o, parts = ~np.isnan(x), []
        for k in range(K):
            own = S[:, :, k % S.shape[2]]
            gain = own[:, o] @ np.linalg.inv(own[np.ix_(o, o)])
            mean = m[:, k] + gain @ (x[o] - m[o, k])
            square = own - gain @ own[o] + np.outer(mean, mean)
            parts.append(
                np.concatenate([mean, square.ravel()][: 1 + ("covariance" in block.values)])
            )
        found.append(np.stack(parts, axis=1))
    return np.array(found)


def _statistics_of(model, X):
    (batch,) = model.read(model.family.view(X))
    if model.features.family == "levels":
        full = np.zeros((len(X), len(model.features.fixed["column"])))
        full[:, batch.levels] = batch.hot.toarray()
        return full
    if model.features.family in ("categorical", "bernoulli"):
        return batch.values.dense()
    if model.features.family != "words":
        return batch.values
    full = np.zeros((len(X), len(model.features.fixed["alpha"])))
    full[:, batch.words] = batch.product(np.eye(len(batch.words)))
    return full


def means_of(block):
    """The mean parameters of a block, (D, K): of words, the expected counts."""
    if block.family == "words":
        return words.expected_counts(block)
    block = settled(block)
    return np.concatenate(list(family_of(block).moments(block).values()))


def parameters(state):
    """p(y), and of each block its mean parameters and the counts behind them."""
    p = state.classes.shares
    return p, [means_of(b) for b in state.blocks], [counts_of(b, p) for b in state.blocks]


def held(state):
    """Class counts, masses and mean parameters: all that a state holds, in rows."""
    blocks = [part for b in state.blocks for part in (b.mass, means_of(b).ravel())]
    return np.concatenate([state.classes.counts, *blocks])


def flat(state):
    """All numbers of a state in a row."""
    if isinstance(state, np.ndarray):
        return state.ravel()
    if isinstance(state, dict):
        state = tuple(state.values())
    if is_dataclass(state):
        state = tuple(getattr(state, field.name) for field in fields(state))
    if isinstance(state, tuple):
        return np.concatenate([flat(part) for part in state]) if state else np.zeros(0)
    return np.array([state], dtype=float) if isinstance(state, int | float) else np.zeros(0)


def untimed(records):
    """Records as a file has them: without the seconds that they took."""
    return [{name: each[name] for name in each if name != "seconds"} for each in records]


# --- ln p(x | component) of cells, by SciPy: written from the definition of each family -----------
# (of correlated ones, of rows)


def _gaussian(block, x):
    m, v = gaussian.moments(block)
    return stats.norm.logpdf(x[:, None, :], m, np.sqrt(v))


def _lognormal(block, x):
    m, v = gaussian.moments(block)
    return stats.lognorm.logpdf(x[:, None, :], np.sqrt(v), scale=np.exp(m))


def _levels(block, x):
    first, p = block.fixed["first"], block.values["share"]
    codes = np.where(np.isnan(x), 0, x).astype(int)
    return np.where(np.isnan(x)[:, None], np.nan, np.log(p[codes + first[:-1]]).swapaxes(1, 2))


def _words(block, x):
    cells = words.expected_counts(block)
    return x[:, None, :] * np.log(cells / cells.sum(axis=0)).T


def _normal(block, x):
    means, covariances = normal.moments(block)
    a = np.zeros((len(x), len(means), 1))
    for i, row in enumerate(x):
        o = ~np.isnan(row)
        for k, mean in enumerate(means):
            spread = covariances[k % len(covariances)][np.ix_(o, o)]
            if o.any():
                a[i, k] = stats.multivariate_normal(mean[o], spread).logpdf(row[o])
    return a


CELLS = {
    "normal": _normal,
    "tied": _normal,
    "gaussian": _gaussian,
    "lognormal": _lognormal,
    "poisson": lambda b, x: stats.poisson.logpmf(x[:, None, :], b.values["rate"].T),
    "exponential": lambda b, x: stats.expon.logpdf(x[:, None, :], scale=b.values["mean"].T),
    "categorical": _levels,
    "bernoulli": _levels,
    "words": _words,
}


def log_density(model, X):
    """Ln p(c) + sum of ln p(x_d | c) over the cells that are there: (n, M)."""
    parts = X if isinstance(X, tuple) else (X,)
    a = np.log(model.classes.counts / model.classes.counts.sum())[None]
    for block, part in zip(model.blocks, parts, strict=True):
        block = settled(block)
        a = a + np.nansum(CELLS[block.family](block, part), axis=2)
    return a


def log_odds(model):
    """Scores of a few ordinary rows."""
    of, block = model.family, model.features
    correlated = block.family in CORRELATED
    d = len(block.values["mean"] if correlated else block.mass) or len(means_of(block))
    return scores(model, of.example(np.arange(4) % 2, d, np.random.default_rng(0)))


def spread_over(model, n):
    """An estimator whose prior is spread over n rows, however many it has seen."""
    model._spread = lambda weight: float(n)
    return model
