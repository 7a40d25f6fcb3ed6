"""Laws of the families: densities, what is drawn, what is collected, the start."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
import tiny
from scipy.integrate import quad

from discem import Dirichlet, NormalGamma
from discem.families import FAMILIES, Family, _levels, _units
from discem.targets import label_sets, labels, soft_labels

every_family = pytest.mark.parametrize("family", FAMILIES)


# --- scores ---------------------------------------------------------------------------------------


@every_family
def test_scores_are_log_densities(family):
    """Ln p(y) + sum over the cells that are there of ln p(x_d | y), by SciPy."""
    X, y = tiny.data(family)
    model = tiny.begin(family, X, y)
    X = tiny.holed(family, X)
    np.testing.assert_allclose(tiny.scores(model, X), tiny.log_density(model, X), rtol=1e-11)


@pytest.mark.parametrize("family", ["gaussian", "lognormal", "exponential"])
def test_densities_integrate_to_one(family):
    X, y = tiny.data(family, d=1)
    model = tiny.begin(family, X, y)
    p = model.classes.shares
    low, high = (X.min() - 50, X.max() + 50) if family == "gaussian" else (1e-9, 300.0)
    for k in range(3):

        def density(x, k=k):
            return np.exp(tiny.scores(model, np.array([[x]]))[0, k])

        total, _ = quad(density, low, high, points=np.sort(X.ravel()), limit=500)
        assert total == pytest.approx(p[k], rel=1e-4)


@pytest.mark.parametrize("family", ["poisson", "categorical", "bernoulli", "words"])
def test_probabilities_sum_to_one(family):
    """Over all counts, over all levels, over all documents of one word."""
    X, y = tiny.data(family, d=3 if family == "words" else 1)
    model = tiny.begin(family, X, y)
    every = {"poisson": np.arange(200.0)[:, None], "words": np.eye(3)}
    rows = every.get(family, np.arange(X.max() + 1.0)[:, None])
    total = np.exp(tiny.scores(model, rows)).sum(axis=0)
    np.testing.assert_allclose(total, model.classes.shares, rtol=1e-9)


@every_family
def test_a_missing_cell_adds_nothing(family):
    """An empty row scores ln p(y), any other the sum of its cells, where they are independent."""
    X, y = tiny.data(family)
    model, empty = tiny.begin(family, X, y), np.nan if FAMILIES[family].accepts.missing else 0.0
    log_p = np.log(model.classes.shares)
    np.testing.assert_allclose(tiny.scores(model, X * 0 + empty)[0], log_p, rtol=1e-12)
    if family in tiny.CORRELATED:
        return
    total = log_p
    for d in range(3):
        alone = np.full_like(X, empty)
        alone[:, d] = X[:, d]
        total = total + tiny.scores(model, alone) - log_p
    np.testing.assert_allclose(total, tiny.scores(model, X), rtol=1e-9)


LINEAR = [f for f in FAMILIES if type(FAMILIES[f]).features_of is not Family.features_of]


@pytest.mark.parametrize("family", LINEAR)
def test_slopes_are_those_of_the_scores(family):
    """Ln p(x | k) = offset_k + slopes_k s(x), up to what all classes share."""
    of = FAMILIES[family]
    X, y = tiny.data(family)
    model = tiny.begin(family, X, y)
    offset, slopes = of.slopes(model.features)
    a = offset + of.features_of(X) @ np.concatenate(list(slopes.values()), axis=1).T
    odds, expected = a - a[:, :1], tiny.scores(model, X) - np.log(model.classes.shares)
    np.testing.assert_allclose(odds, expected - expected[:, :1], rtol=1e-8, atol=1e-9)


@every_family
def test_drawn_rows_are_as_expected(family):
    """The mean of what is drawn is E[x | k]."""
    X, y = tiny.data(family, n=60)
    of, model = FAMILIES[family], tiny.begin(family, X, y)
    codes = np.arange(9000) % 3
    drawn = of.sample(model.features, codes, np.random.default_rng(0))
    name, expected = next(iter(of.expectations(model.features).items()))
    for k in range(3):
        own = drawn[codes == k]
        if name == "level":
            first = model.features.fixed["first"]
            own = np.hstack([own[:, [d]] == np.arange(b - a) for d, (a, b) in
                             enumerate(itertools.pairwise(first))])  # fmt: skip
        own = np.log(own) if name == "ln x" else own
        error = 5.0 * own.std(axis=0) / np.sqrt(len(own)) + 1e-9
        assert (np.abs(own.mean(axis=0) - expected[k]) < error).all()


@pytest.mark.parametrize("scale", [1.0, 1e-2])
@pytest.mark.parametrize("alpha", [1.0, 1e-12, 1e4])
def test_word_scores_do_not_depend_on_the_lazy_scale(scale, alpha):
    """Nor on counts being whole, large or many."""
    X, y = tiny.data("words", n=9, d=6)
    model = tiny.begin("words", X, y, prior=Dirichlet(alpha))
    block = model.features
    held = block._replace(
        values=block.values | {"count": block.values["count"] / scale},
        lazy=block.lazy | {"scale": scale},
    )
    rng = np.random.default_rng(0)
    rows = np.vstack([rng.gamma(1.0, size=(4, 6)), np.zeros((1, 6)), rng.random((2, 6)) * 1e8])
    got = tiny.scores(model._replace(blocks=(held,)), rows)
    np.testing.assert_allclose(got, tiny.log_density(model, rows), rtol=1e-11)


def test_sparse_is_dense():
    """The storage of a matrix does not matter: dense, CSC, unsorted CSR, explicit zeros."""
    X, y = tiny.data("words", n=6, d=5)
    model = tiny.begin("words", X, y)
    unsorted = sp.csr_array(X)
    for i in range(6):
        part = slice(unsorted.indptr[i], unsorted.indptr[i + 1])
        unsorted.indices[part] = unsorted.indices[part][::-1].copy()
        unsorted.data[part] = unsorted.data[part][::-1].copy()
    full = sp.csr_array((X.ravel(), np.tile(np.arange(5), 6), np.arange(0, 31, 5)), shape=X.shape)
    for other in (sp.csc_array(X), sp.csr_matrix(X, dtype=np.int32), unsorted, full):
        np.testing.assert_allclose(tiny.scores(model, other), tiny.scores(model, X), rtol=1e-14)


def test_products_of_indicators_are_those_of_whole_matrices():
    """Missing cells, and codes that no level has, are zeros."""
    rng, first = np.random.default_rng(0), np.array([0, 3, 5, 9])
    codes = rng.integers(-1, [4, 2, 6], size=(20, 3)).astype(np.int32)
    hot = np.zeros((20, 9))
    for d, (low, high) in enumerate(itertools.pairwise(first)):
        for level in range(high - low):
            hot[:, low + level] = codes[:, d] == level
    found = _levels.indicators(codes, first, hot)
    np.testing.assert_array_equal(found.dense(), hot)
    table, numbers = rng.normal(size=(9, 2)), np.asfortranarray(rng.normal(size=(20, 2)))
    np.testing.assert_allclose(found.times(table), hot @ table, rtol=1e-14)
    np.testing.assert_allclose(found.sums(numbers), hot.T @ numbers, rtol=1e-13)
    none = _levels.indicators(codes[:, :0], np.zeros(1, dtype=np.int64), hot)
    assert none.times(table[:0]).tolist() == np.zeros((20, 2)).tolist()
    assert none.sums(numbers).shape == (0, 2)


# --- statistics of the data, and the start --------------------------------------------------------

WEIGHTED = {
    "labels": labels([0, 1, 2, 0, 1, 2, -1, 0, 1, 2, 0, 1]),
    "sets": label_sets(np.random.default_rng(3).random((12, 3)) < [0.5, 0.5, 1.0]),
    "soft": soft_labels(np.random.default_rng(4).dirichlet(np.ones(3), 12)),
}
weighted = pytest.mark.parametrize("targets", WEIGHTED.values(), ids=WEIGHTED)


def responsibilities(targets):
    """Each row's share in each class, the even posterior over its label set."""
    if targets.plain:
        return (targets.codes[:, None] == np.arange(3)).astype(float)
    return targets.share / targets.share.sum(axis=1, keepdims=True)


@weighted
@pytest.mark.parametrize("at_once", [1, 1 << 20])
def test_collected_rows_are_weighted_moments(targets, at_once, monkeypatch):
    """Moments of every class, over the cells that are there; some columns at a time, or all."""
    monkeypatch.setattr(_units, "_AT_ONCE", at_once)
    X, _ = tiny.data("gaussian")
    X[3, 0] = X[4, 1] = np.nan
    X += 1e6  # moments must not lose their digits to a large mean
    weights = np.linspace(0.5, 2.0, 12)
    counted = tiny.count("gaussian", X, targets, weights)
    r = responsibilities(targets) * weights[:, None]
    np.testing.assert_allclose(counted.classes, r.sum(axis=0), rtol=1e-12)
    for d in range(3):
        seen = ~np.isnan(X[:, d])
        for k in range(3):
            m = np.average(X[seen, d], weights=r[seen, k])
            v = np.average((X[seen, d] - m) ** 2, weights=r[seen, k])
            kurtosis = np.average((X[seen, d] - m) ** 4, weights=r[seen, k]) / v**2
            expected = [m, v, r[seen, k].sum(), kurtosis]
            np.testing.assert_allclose(counted.features[:, d, k], expected, rtol=1e-8)


@weighted
@pytest.mark.parametrize("family", ["words", "categorical", "poisson", "exponential"])
def test_collected_counts_are_weighted_sums(family, targets):
    X, _ = tiny.data(family)
    weights = np.linspace(0.5, 2.0, 12)
    counted = tiny.count(family, X, targets, weights).features
    r = responsibilities(targets) * weights[:, None]
    if family == "categorical":
        counted, X = counted.counts, np.hstack([X[:, [d]] == np.arange(3) for d in range(3)])
    elif family != "words":
        np.testing.assert_allclose(counted[0], np.tile(r.sum(axis=0), (3, 1)), rtol=1e-12)
        counted = counted[1]
    np.testing.assert_allclose(counted, X.T @ r, rtol=1e-12)


@every_family
def test_tallies_of_parts_are_those_of_all(family):
    X, y = tiny.data(family, n=60)
    of = FAMILIES[family]
    parts = [np.arange(60) < 20, np.arange(60) >= 20]
    tallies = [tiny.count(family, X[part], y[part]).features for part in parts]
    whole, merged = tiny.count(family, X, y).features, of.merged(tallies)
    if family in tiny.CORRELATED:
        for one, other in zip(whole, merged, strict=True):
            np.testing.assert_allclose(other, one, rtol=1e-9)
        return
    if isinstance(whole, tuple):
        whole, merged = whole.counts, merged.counts
    size = 3 if family in ("gaussian", "lognormal") else len(whole)  # but for kurtoses
    np.testing.assert_allclose(merged[:size], whole[:size], rtol=1e-9)


@every_family
def test_the_generative_start_is_the_mode_of_the_posterior(family):
    """It minimises NLL + penalty: what is a little off, towards other classes, is above."""
    X, y = tiny.data(family, n=30)
    prior = NormalGamma(0.7, 3.0) if family == "gaussian" else None
    model = tiny.begin(family, X, y, prior=prior)

    def objective(model):
        return -tiny.scores(model, X)[np.arange(30), y].sum() + model.penalty()

    best, values = objective(model), model.features.values
    for name in values:
        if family == "words" and name != "count":
            continue
        for shift in (1, 2):
            for h in (0.01, -0.01):
                off = values[name] + h * (np.roll(values[name], shift, axis=-1) - values[name])
                block = model.features._replace(values=values | {name: off})
                if family == "words":  # whose totals follow from the cells
                    total = off.sum(axis=0) + block.lazy["gamma"] * block.lazy["alpha_total"]
                    block = block._replace(values=block.values | {"total": total})
                assert objective(model._replace(blocks=(block,))) > best
    for k in range(3):
        counts = model.classes.counts * (1 + 0.01 * (np.arange(3) == k))
        other = model._replace(classes=model.classes._replace(counts=counts))
        assert objective(other) > best


@every_family
def test_components_that_were_alike_differ_when_perturbed(family):
    """And the model is still a model."""
    X, y = tiny.data(family, n=30)
    model = tiny.begin(family, X, y, init="prior")
    of = FAMILIES[family]
    block = of.perturbed(model.features, np.array([0, 2]), np.random.default_rng(0))
    before, after = tiny.means_of(model.features), tiny.means_of(block)
    np.testing.assert_array_equal(after[:, 1], before[:, 1])
    assert (np.abs(after[:, 0] - after[:, 2]) > 1e-3 * np.abs(before[:, 0])).any()
    width = tuple(np.diff(block.fixed["first"]).tolist()) if "first" in block.fixed else 3
    of.check(block, 3, width, False)
