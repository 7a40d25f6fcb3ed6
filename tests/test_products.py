"""Products of families: any two can share a row, under every loss, in every model."""

import itertools

import numpy as np
import pytest
import tiny
from scipy.special import logsumexp
from tiny import flat

from discem import Check, Interior, MixtureClassifier, constant, models
from discem.engines import Sequential
from discem.engines.sequential import sweep
from discem.families import FAMILIES, family_of, multiply
from discem.families.product import Pair, Product
from discem.figures import LOSS
from discem.losses import LOSSES, NCLL, value_and_weights
from discem.models.mixture import Mixture
from discem.targets import labels

PAIRS = list(itertools.combinations_with_replacement(FAMILIES, 2))
COMPILED = [("gaussian", "words"), ("categorical", "poisson"), ("gaussian", "exponential")]
every_pair = pytest.mark.parametrize("names", PAIRS, ids=" * ".join)
every_loss = pytest.mark.parametrize("loss", LOSSES)


def problem(names, n=24, K=3, average=False, seed=0):
    """Rows that have a part of each family, their classes, and a model of both."""
    family = multiply(*(FAMILIES[name] for name in names))
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % K)
    X = family.example(y, (2, 3), rng)
    for part, name in zip(X, names, strict=True):
        if FAMILIES[name].accepts.missing:
            part[::5, 1] = np.nan
    return family, X, y, tiny.begin(family, X, y, K=K, average=average)


def rows_of(X, rows):
    return Pair(*(part[rows] for part in X))


def brute_force(model, X):
    """Ln p(y) + ln p(first | y) + ln p(second | y), from the families in numbers: (n, K)."""
    counts = models.class_counts(model)
    return np.log(counts / counts.sum()) + alone(model.features, X, counts)


def alone(block, x, counts):
    """Ln p(x | y) of a factor, which may be a product."""
    if isinstance(block, Product):
        return sum(alone(*each, counts) for each in zip(block, x, strict=True))
    family = family_of(block)
    _, means = family.arrays(block, counts)
    units, jacobian = family.in_units(block, x)
    joint = tiny.log_joint(family, np.zeros(len(counts)), family.natural(means), units)
    return joint + np.log(len(counts)) + jacobian[:, None]


def plain_scores(model, X):
    """Without compiling for every pair."""
    return tiny.scores(model, X, engine=tiny.Plain())


@every_pair
def test_scores_add(names):
    family, X, _, model = problem(names)
    assert family_of(model.features).name == family.name == " * ".join(names)
    np.testing.assert_allclose(plain_scores(model, X), brute_force(model, X), rtol=1e-10)


@every_pair
@every_loss
def test_a_step_is_the_update_of_the_method_in_both_factors(names, loss):
    """One row: r_k s(k, x) - decay mu in each factor, r from the scores of both (n = inf)."""
    _, X, y, model = problem(names)
    rho, i = 0.01, 3
    row = rows_of(X, [i])
    _, w = value_and_weights(loss, brute_force(model, row)[0], y[i])
    after, figures = tiny.run(model, row, y[[i]], LOSSES[loss], rho, np.inf, sweep=sweep.plain)
    assert figures[6] == 0, "the step was shortened"
    counts = models.class_counts(model)
    np.testing.assert_allclose(
        models.class_counts(after), counts * (1 - rho * w.sum()) + rho * w, rtol=1e-12
    )
    for old, new, x in zip(model.features, after.features, row, strict=True):
        family = family_of(old)
        count, mu = family.arrays(old, counts)
        count_after, mu_after = family.arrays(new, models.class_counts(after))
        units, _ = family.in_units(old, x)
        r = (rho * w)[:, None, None]
        sums = (count[..., None] * mu) * (1 - r.sum()) + r * family.statistics(units)
        expected = count * (1 - r.sum()) + r[..., 0] * family.exposure(units)
        seen = family.exposure(units)[0] > 0  # a missing cell moves no moment
        means = np.where(seen[:, None], sums / expected[..., None], mu)
        np.testing.assert_allclose(mu_after, means, rtol=1e-9, atol=1e-13)
        np.testing.assert_allclose(count_after.sum(axis=0), expected.sum(axis=0), rtol=1e-9)


@every_pair
def test_training_lowers_every_loss(names):
    """From equal classes, by rows and by batches, with an average; some pairs compiled."""
    family, X, y, _ = problem(names, n=30)
    start = tiny.begin(family, X, y, init="prior", average=True)
    engine = tiny.Plain() if names not in COMPILED else Sequential()
    for loss in LOSSES.values():
        first = tiny.run(start, X, y, loss, 0.0, 30, sweep=sweep.plain)[1][LOSS]
        for batch in (1, 5):
            trained = tiny.learner(start, loss, constant(0.2), 30, batch=batch, engine=engine)
            for _ in range(5):
                tiny.learn(trained, X, y)
            last = tiny.run(trained.model, X, y, loss, 0.0, 30, sweep=sweep.plain)[1][LOSS]
            assert last < first - 0.5


@pytest.mark.parametrize(
    ("names", "projection"),
    [*((names, Interior(0.5, 0.05)) for names in COMPILED), (("gaussian", "words"), Check())],
    ids=str,
)
@pytest.mark.parametrize("batch", [1, 5])
def test_compiled_is_plain(names, projection, batch):
    _, X, y, start = problem(names, average=True)
    ends = [
        tiny.run(start, X, y, NCLL(), 0.1, 24, projection, batch, sweep=function)
        for function in (sweep, sweep.plain)
    ]
    for one, other in zip(*ends, strict=True):
        np.testing.assert_allclose(flat(one), flat(other), rtol=1e-8, atol=1e-10)


def test_the_order_of_factors_does_not_matter():
    _, X, y, one = problem(("gaussian", "words"))
    family = multiply(FAMILIES["words"], FAMILIES["gaussian"])
    other = tiny.begin(family, Pair(X[1], X[0]), y)
    ends = []
    for model, rows in ((one, X), (other, Pair(X[1], X[0]))):
        after, _ = tiny.run(model, rows, y, NCLL(), 0.05, 24, sweep=sweep.plain)
        ends.append(plain_scores(after, rows))
    np.testing.assert_allclose(*ends, rtol=1e-9)


def test_three_families_share_a_row():
    """A factor may itself be a product."""
    family = multiply(*(FAMILIES[name] for name in ("gaussian", "words", "exponential")))
    rng = np.random.default_rng(0)
    y = np.arange(30) % 3
    X = family.example(y, (2, (3, 2)), rng)
    model = models.start(
        models.collect(family, family.view(X), labels(y), np.ones(30), (2, (3, 2)), 3),
        family.resolve_prior("data", True, (2, (3, 2)))[0],
        models.ClassPrior(),
        "generative",
    )
    assert family_of(model.features).name == "gaussian * words * exponential"
    np.testing.assert_allclose(plain_scores(model, X), brute_force(model, X), rtol=1e-10)
    after, figures = tiny.run(model, X, y, NCLL(), 0.02, 30, sweep=sweep.plain)
    assert tiny.run(after, X, y, NCLL(), 0.0, 30, sweep=sweep.plain)[1][LOSS] < figures[LOSS]
    np.testing.assert_allclose(plain_scores(after, X), brute_force(after, X), rtol=1e-10)


@every_pair
def test_a_product_is_mixed(names):
    """Components are summed out exactly."""
    _, X, part, parts = problem(names, n=30, K=6)
    first = np.array([0, 2, 3, 6])
    state = Mixture(parts, first)
    joint = brute_force(parts, X)
    expected = [logsumexp(joint[:, first[k] : first[k + 1]], axis=1) for k in range(3)]
    np.testing.assert_allclose(plain_scores(state, X), np.stack(expected, axis=1), rtol=1e-9)
    y = np.searchsorted(first, part, side="right") - 1
    after, _ = tiny.run(state, X, y, NCLL(), 0.02, 30, sweep=sweep.plain)
    assert np.isfinite(plain_scores(after, X)).all()


@every_pair
def test_a_product_is_streamed(names):
    """New classes join; means of states and averages are those of both factors."""
    family, X, y, model = problem(names, average=True)
    after, _ = tiny.run(model, X, y, NCLL(), 0.02, 24, sweep=sweep.plain)
    wider = models.with_classes(after, np.array([2, -1, 0, 1]), 0.1)
    old, new = plain_scores(after, X), plain_scores(wider, X)
    known = new[:, [2, 3, 0]] - old
    np.testing.assert_allclose(known, known[0, 0], rtol=1e-7, atol=1e-9)
    mean = models.mean_of([model, after], [1, 3])
    for block, parts in zip(
        mean.features, zip(model.features, after.features, strict=True), strict=True
    ):
        classes = [state.classes.shares for state in (model, after)]
        plain = [family_of(part).with_average(part, None, 0.0) for part in parts]
        alone = family_of(block).mean_of(plain, np.array([0.25, 0.75]), classes)
        np.testing.assert_allclose(
            flat(family_of(block).with_average(block, None, 0.0)), flat(alone), rtol=1e-12
        )
    drawn = family.sample(
        models.averaged(after).features, np.array([0, 1, 2]), np.random.default_rng(0)
    )
    assert [len(part) for part in drawn] == [3, 3]
    assert models.penalty(mean) == pytest.approx(
        models.penalty(mean._replace(features=mean.features.first))
        + family_of(mean.features.second).penalty(mean.features.second)
    )


def test_levels_that_are_new_leave_the_other_parts_of_a_table_alone():
    """A column of categories grows in a stream, beside numbers and counts that cannot."""
    rng = np.random.default_rng(0)
    rows = [
        {"size": float(rng.normal(i % 2)), "calls": int(rng.poisson(5)), "kind": "ab"[i % 2]}
        for i in range(200)
    ]
    y = np.arange(200) % 2
    model = MixtureClassifier(random_state=0).partial_fit(rows, y)
    assert model.families_["calls"].startswith("poisson")
    before = model.predict_proba(rows)
    model.partial_fit([row | {"kind": "c"} for row in rows[:4]], y[:4])
    assert model.layout_.columns[2].levels == ["a", "b", "c"]
    np.testing.assert_allclose(model.predict_proba(rows), before, atol=0.2)
