"""Laws of models: components are summed out, classes and features may join, parts add up."""

import copy

import numpy as np
import pytest
import tiny
from scipy.special import logsumexp, softmax

from discem import Check, Dirichlet, Interior, constant
from discem.exceptions import InputError, ModelFileError
from discem.families import FAMILIES, family_of, multiply
from discem.losses import LOSSES, NCLL, value_and_weights
from discem.models import perturbed

every_family = pytest.mark.parametrize("family", FAMILIES)
every_loss = pytest.mark.parametrize("loss", LOSSES)
FIRST = np.array([0, 2, 3, 6])  # classes of 2, 1 and 3 components
CLASS = np.repeat(np.arange(3), np.diff(FIRST))


def mixture(family, average=False, n=60):
    """Rows of six components, the classes they belong to, and a mixture."""
    X, part = tiny.data(family, n=n, K=6)
    model = tiny.begin(family, X, part, K=6, first=FIRST, average=average)
    return X, CLASS[part], model


# --- components -----------------------------------------------------------------------------------


@every_family
def test_components_are_summed_out(family):
    """Ln p(y, x) = ln sum_c p(y, c, x), by brute force; the posterior of each class sums to one."""
    X, _, model = mixture(family)
    joint = tiny.log_density(model, tiny.holed(family, X))
    got, posterior = model.scores(model.read(model.family.view(tiny.holed(family, X))))
    for k in range(3):
        own = slice(FIRST[k], FIRST[k + 1])
        np.testing.assert_allclose(got[:, k], logsumexp(joint[:, own], axis=1), rtol=1e-10)
        np.testing.assert_allclose(posterior[:, own], softmax(joint[:, own], axis=1), rtol=1e-8)
        np.testing.assert_allclose(posterior[:, own].sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(model.class_counts.sum(), model.classes.counts.sum())


@every_family
@every_loss
def test_weights_are_shared_by_the_posterior(family, loss):
    """A step of a mixture is one of naive Bayes over components, each with its share of a row."""
    X, y, model = mixture(family)
    row, rho = X[3:4], 0.01
    a, posterior = model.scores(model.read(model.family.view(row)))
    _, w = value_and_weights(loss, a[0], y[3])
    W = rho * w[CLASS] * posterior[0]
    after, _, short = tiny.step(model, row, y[3:4], loss, rho)
    assert short == 0
    p = model.classes.counts
    np.testing.assert_allclose(after.classes.counts, p + W - W.sum() * p, rtol=1e-9)
    (means,), (counts,) = tiny.parameters(model)[1:]
    s, seen = tiny.statistics_of(model, row)[0], tiny.seen_of(model.features, row)[0]
    sums = counts * means * (1 - W.sum()) + s * W
    count = counts * (1 - W.sum() * (family != "words")) + seen[:, None] * W
    np.testing.assert_allclose(tiny.means_of(after.features), sums / count, rtol=1e-8, atol=1e-12)


@every_family
def test_components_that_are_alike_are_one(family):
    """A class whose components are the same scores as if it had one of their total share."""
    X, y = tiny.data(family)
    one = tiny.begin(family, X, y)
    order = np.array([0, 0, 1, 2, 2, 2])
    blocks = tuple(family_of(block).with_components(block, order, 1.0) for block in one.blocks)
    share = np.array([0.3, 0.7, 1.0, 0.2, 0.3, 0.5])
    classes = one.classes._replace(counts=one.classes.counts[order] * share)
    split = one._replace(blocks=blocks, classes=classes, first=FIRST)
    np.testing.assert_allclose(tiny.scores(split, X), tiny.scores(one, X), rtol=1e-9)


@every_family
@pytest.mark.parametrize("projection", [Interior(), Interior(caution=2.0), Check()], ids=str)
@pytest.mark.parametrize("batch", [1, 8])
def test_mixtures_learn(family, projection, batch):
    """The loss falls, whatever keeps the steps inside; and all stays finite."""
    X, y, model = mixture(family, average=True)
    start = perturbed(model, np.arange(6), np.random.default_rng(0))
    before = tiny.run(start, X, y, "ncll", 0.0)[1][3]
    trained = tiny.learner(start, NCLL(), constant(0.02), 60, batch, projection)
    for _ in range(3):
        tiny.learn(trained, X, y)
    assert np.isfinite(tiny.flat(trained.state)).all()
    trained.model.check(3, sizes_of(trained.model, 3))
    assert tiny.run(trained.model, X, y, "ncll", 0.0)[1][3] < before


def sizes_of(model, d):
    """The number of features, as a family counts them."""
    first = model.features.fixed.get("first")
    return d if first is None else tuple(np.diff(first).tolist())


@every_family
def test_wrong_numbers_of_components_are_refused(family):
    _, _, model = mixture(family)
    model.check(3, sizes_of(model, 3))
    for first in (FIRST[:-1], FIRST + 1, np.array([0, 2, 2, 6]), np.array([0, 2, 3, 7])):
        with pytest.raises(ModelFileError):
            model._replace(first=first).check(3, sizes_of(model, 3))


# --- classes that come later ----------------------------------------------------------------------


@every_family
@pytest.mark.parametrize("average", [True, False])
def test_a_new_class_leaves_the_others_as_they_are(family, average):
    """`with_classes` arranges the classes; a new one is at the prior's centre, with its mass."""
    X, y = tiny.data(family, n=30)
    start = tiny.begin(family, X, y, average=average)
    trained = tiny.learn(tiny.learner(start, NCLL(), constant(0.05), 30), X, y)
    before = copy.deepcopy(trained.state)
    after = before.with_classes(np.array([1, -1, 0, 2]), 0.01)
    views = [tiny.plain, lambda state: state.averaged()]
    for view in views[: 1 + average]:
        old, new = view(before), view(after)
        np.testing.assert_allclose(new.classes.counts[[2, 0, 3]], old.classes.counts, rtol=1e-12)
        assert new.classes.counts[1] == 0.01
        means = tiny.means_of(new.features)
        np.testing.assert_allclose(means[:, [2, 0, 3]], tiny.means_of(old.features), rtol=1e-9)
        if family != "words":
            centre = before.family.centre(before.features)
            for name, value in new.features.values.items():
                np.testing.assert_allclose(value[..., 1], centre[name])
    assert np.isfinite(tiny.scores(after, X)).all()
    after.check(4, sizes_of(after, 3))
    more = tiny.learn(tiny.learner(after, NCLL(), constant(0.05), 30), X, np.where(y, y + 1, 0))
    assert np.isfinite(tiny.scores(more.model, X)).all()


def test_a_new_class_of_words_has_those_of_the_prior():
    X, y = tiny.data("words", n=30)
    start = tiny.begin("words", X, y, prior=Dirichlet([1.0, 2.0, 5.0]))
    cells = tiny.means_of(start.with_classes(np.array([0, 1, 2, -1]), 0.5).features)[:, 3]
    np.testing.assert_allclose(cells / cells.sum(), [0.125, 0.25, 0.625], rtol=0.2)


@every_family
def test_a_new_class_of_a_mixture_is_a_mixture(family):
    """Of as many components as the largest class, which differ and share its mass."""
    X, _, model = mixture(family, average=True)
    wide = model.with_classes(np.array([2, -1, 0, 1]), 0.3)
    np.testing.assert_array_equal(wide.first, [0, 3, 6, 8, 9])
    assert wide.class_counts[1] == pytest.approx(0.3)
    np.testing.assert_allclose(
        tiny.scores(wide, X)[:, [2, 3, 0]] - tiny.scores(model, X), np.log(1 / 1.3), rtol=1e-6
    )
    new = tiny.means_of(wide.features)[:, 3:6]
    assert np.ptp(new, axis=1).max() > 0
    wide.check(4, sizes_of(wide, 3))


# --- features that come later ---------------------------------------------------------------------


@pytest.mark.parametrize("average", [True, False])
def test_new_levels_are_as_rare_as_the_rarest(average):
    """Shares of a column still sum to one, and what columns do not grow stays as it is."""
    X, y = tiny.data("categorical", n=60)
    start = tiny.begin("categorical", X, y, average=average)
    trained = tiny.learn(tiny.learner(start, NCLL(), constant(0.05), 60), X, y)
    wide = trained.state.with_features((5, 3, 3))
    wide.check(3, (5, 3, 3))
    for old, new in ((trained.state, wide), (trained.model, wide.averaged())):
        p, q = old.features.values["share"], new.features.values["share"]
        np.testing.assert_allclose(q[:5].sum(axis=0), 1.0, rtol=1e-9)
        np.testing.assert_array_equal(q[5:], p[3:])
        np.testing.assert_allclose(q[:3] / q[:3].sum(axis=0), p[:3], rtol=1e-9)
    assert (wide.features.values["share"][3:5] <= 0.1).all()
    np.testing.assert_allclose(wide.features.prior.centre[:5].sum(), 1.0)


def test_families_that_take_no_new_features_say_so():
    for family in ("gaussian", "poisson", "exponential"):
        X, y = tiny.data(family)
        with pytest.raises(InputError, match=f"{family}.*does not take new features"):
            tiny.begin(family, X, y).with_features(4)
    X, y = tiny.data("categorical")
    with pytest.raises(InputError, match="does not take new columns"):
        tiny.begin("categorical", X, y).with_features((3, 3))


def test_in_a_product_only_those_grow_that_can():
    family = multiply(FAMILIES["gaussian"], FAMILIES["words"])
    y = np.arange(24) % 3
    X = family.example(y, (2, 3), np.random.default_rng(0))
    model = tiny.begin(family, X, y)
    before = tiny.scores(model, X)
    wide = model.with_features((2, 5))
    wide.check(3, (2, 5))
    odds = before - before[:, :1]
    again = tiny.scores(wide, (X[0], np.hstack([X[1], np.zeros((24, 2))])))
    lengths = X[1].sum(axis=1)[:, None]
    total = [m.blocks[1].values["total"] for m in (model, wide)]
    expected = odds - lengths * (np.log(total[1] / total[0]) - np.log(total[1] / total[0])[0])
    np.testing.assert_allclose(again - again[:, :1], expected, rtol=1e-7, atol=1e-9)
