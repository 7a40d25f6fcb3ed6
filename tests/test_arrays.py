"""The families in numbers, for any array namespace: the theory page, executed.

No engine uses this half as yet. The law that matters: one step of a batch in arrays is one step of
that batch in the sequential engine.
"""

import copy

import numpy as np
import pytest
import tiny
from discem.families.arrays import namespace_of
from scipy.special import log_softmax

from discem import Interior, NormalBetaPrime, PaperNormalGamma, models
from discem.exceptions import InputError
from discem.families import FAMILIES, family_of, settle

strict = pytest.importorskip("array_api_strict", reason="the strict array namespace is absent")
every_family = pytest.mark.parametrize("family", FAMILIES)
namespaces = pytest.mark.parametrize("xp", [np, strict], ids=["numpy", "strict"])
PRIORS = {
    "gaussian": [None, NormalBetaPrime(), PaperNormalGamma()],
    "words": [None],
    "exponential": [None],
    "categorical": [None],
    "bernoulli": [None],
    "poisson": [None],
    "lognormal": [None, NormalBetaPrime()],
}
CASES = [(family, prior) for family in FAMILIES for prior in PRIORS[family]]


def prior_in_arrays(block, xp):
    """The resolved prior of a state, its centre in arrays of a namespace."""
    if hasattr(block, "alpha"):
        from discem import Dirichlet

        return Dirichlet(xp.asarray(block.alpha))
    return type(block.prior)(
        *(xp.asarray(part) if isinstance(part, np.ndarray) else part for part in block.prior)
    )


def array_step(family, xp, x, count, mu, prior, r, decay, pull, share):
    """Mu <- mu + sum_k r_k s(k, x) - decay mu + pull (alpha - nu mu), in arrays."""
    s, exposure = family.statistics(x), family.exposure(x)
    d_count = xp.matmul(xp.permute_dims(r, (1, 0)), exposure) - decay * count
    flat = xp.reshape(s, (s.shape[0], -1))
    d_sum = xp.reshape(xp.matmul(xp.permute_dims(r, (1, 0)), flat), mu.shape)
    d_sum = d_sum - decay * count[..., None] * mu
    to_count, to_sum = family.pull(prior, pull, count, mu)
    return family.inside(share, count, mu, d_count + to_count, d_sum + to_sum)


@pytest.mark.parametrize("rho", [0.01, 0.3, 3.0])
@pytest.mark.parametrize(("name", "prior"), CASES)
@namespaces
def test_an_array_step_is_a_step_of_the_sequential_engine(name, prior, xp, rho):
    """Missing cells, weights of both signs, and steps that have to be shortened included."""
    family = FAMILIES[name]
    X, y = tiny.data(name, n=16)
    if family.accepts.missing:
        X[3, 1] = X[5, 0] = np.nan
    model = tiny.begin(name, X, y, prior=prior)
    rng = np.random.default_rng(1)
    r = rho * rng.normal(size=(16, 3)) / 16
    # words lose to decay before their row moves them: one bound each, where steps are large
    decay, pull = (0.0 if name == "words" and rho > 0.1 else float(r.sum())), rho / 16
    counts = models.class_counts(model)
    count, mu = (xp.asarray(each) for each in family.arrays(model.features, counts))
    x = xp.asarray(family.in_units(model.features, X)[0])
    got_count, got_mu = array_step(
        family, xp, x, count, mu, prior_in_arrays(model.features, xp), xp.asarray(r),
        decay, pull, 0.5,
    )  # fmt: skip
    if name == "words" and rho > 1:
        # a bound that binds: in arrays on the whole change of a word, in the sequential engine,
        # where the prior acts on all words at once and first, on what its rows change
        kept = np.asarray(got_count[..., None] * got_mu) / np.asarray(count[..., None] * mu)
        assert kept.min() == pytest.approx(0.5)
        return
    after = copy.deepcopy(model)
    rows = family.view(X)
    room = models.make_room(after, rows, 16)
    for i in range(16):
        models.gather_row(after, rows, i, i, r[i], room)
    settle(after, decay, pull, pull, Interior(0.5, 0.0), room)
    expected_count, expected_mu = family.arrays(after.features, counts)
    np.testing.assert_allclose(np.asarray(got_mu), expected_mu, rtol=1e-9, atol=1e-12)
    # the sequential engine keeps the mass of a feature, and shares it by p(y)
    np.testing.assert_allclose(
        np.asarray(got_count).sum(axis=0), expected_count.sum(axis=0), rtol=1e-9
    )


@every_family
@namespaces
def test_scores_in_arrays(family, xp):
    """S(X) @ theta - exposure @ A(theta) + ln h(x) are the scores of the compiled engine."""
    of = FAMILIES[family]
    X, y = tiny.data(family)
    model = tiny.begin(family, X, y)
    p, means, _ = tiny.parameters(model)
    units, jacobian = of.in_units(model.features, X)
    x, theta = xp.asarray(units), of.natural(xp.asarray(means))
    linear = xp.matmul(
        xp.reshape(of.statistics(x), (len(X), -1)),
        xp.permute_dims(xp.reshape(theta, (3, -1)), (1, 0)),
    )
    normalizers = xp.matmul(of.exposure(x), xp.permute_dims(of.log_normalizer(theta), (1, 0)))
    scores = np.asarray(linear - normalizers + of.log_base(x)[:, None])
    expected = tiny.scores(model, X)
    np.testing.assert_allclose(
        scores + log_softmax(np.log(p)) + jacobian[:, None], expected, rtol=1e-10
    )
    np.testing.assert_allclose(np.asarray(of.mean(theta)), means, rtol=1e-10)


@pytest.mark.parametrize(("name", "prior"), CASES)
def test_the_pull_of_the_prior_is_the_gradient_of_its_penalty(name, prior):
    """-d penalty / d theta, for a small step; the paper's prior also adds to the count."""
    if isinstance(prior, PaperNormalGamma):
        pytest.skip("its equations are the paper's, in raw sums")
    family = FAMILIES[name]
    X, y = tiny.data(name)
    model = tiny.begin(name, X, y, prior=prior)
    model, _ = tiny.run(model, X, y, tiny.LOSS, 0.05, 12)  # away from the mode
    count, mu = family.arrays(model.features, models.class_counts(model))
    pull, h = 1e-6, 1e-6
    _, d_sum = family.pull(prior_in_arrays(model.features, np), pull, count, mu)
    theta = family.natural(mu)
    slope = np.zeros_like(theta)
    for place in np.ndindex(theta.shape):
        ends = []
        for sign in (1, -1):
            moved = theta.copy()
            moved[place] += sign * h
            ends.append(family.penalty(at(model.features, family.mean(moved))))
        slope[place] = (ends[0] - ends[1]) / (2 * h)
    if name == "words":  # the total moves too: in shares, which theta is normalised to
        d_sum = d_sum - mu * d_sum.sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(d_sum / pull, -slope, rtol=1e-4, atol=1e-5)


def at(block, mu):
    """The block at other means."""
    if hasattr(block, "factors"):
        m = mu[..., 0]
        return block._replace(factors=np.stack([m, mu[..., 1] - m**2]))
    if hasattr(block, "means"):
        return block._replace(means=mu[..., 0].T)
    if hasattr(block, "rates"):
        return block._replace(rates=mu[..., 0].T)
    if hasattr(block, "base"):
        lazy = np.zeros_like(block.lazy)
        lazy[0] = 1.0
        return block._replace(base=mu.reshape(len(mu), -1).T, lazy=lazy)
    return block._replace(
        counts=mu[:, 0].T.copy(),
        total=mu[:, 0].sum(axis=1),
        lazy=np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0]),
    )


def test_a_stranger_to_the_standard_is_named():
    with pytest.raises(InputError, match="list is no standard array"):
        namespace_of([1.0])
    assert family_of(tiny.begin("words", *tiny.data("words")).features) is FAMILIES["words"]
