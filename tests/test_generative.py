"""Under NLL the method is the generative estimate: closed forms, and running means."""

import numpy as np
import pytest
import tiny

from discem import Check, Interior, NormalGamma, inverse
from discem.families import FAMILIES, gaussian
from discem.losses import NLL

every_family = pytest.mark.parametrize("family", FAMILIES)
FAINT = {"gaussian": {"nu_mean": 1e-9, "nu_variance": 1e-9}, "words": {"alpha": 1e-9}}
FAINT["lognormal"] = FAINT["gaussian"]
FAINT["normal"] = {"nu_mean": 1e-9, "nu_covariance": 1e-9}
FAINT["tied"] = {"nu_mean": 1e-9, "covariance": 4.0 * np.eye(3) + 1.0}


def faint(family):
    """Next to no prior."""
    prior = FAMILIES[family].resolve_prior("data", True, 3)[0]
    return prior._replace(**FAINT.get(family, {"nu": 1e-9}))


def test_one_full_batch_of_nll_is_the_map_gaussian():
    """From the prior, rho = n / (n + nu): (nu mu0 + sum s) / (n + nu), the closed-form MAP."""
    X, y = tiny.data("gaussian", n=30)
    n, K, alpha = 30, 3, 2.0
    prior = NormalGamma(alpha, alpha, mean=0.5, variance=4.0)
    state = tiny.begin("gaussian", X, y, prior, alpha, init="prior")  # at mass K
    state.classes.counts[:] /= K
    state.features.mass[:] /= K
    state = state._replace(classes=state.classes._replace(nu=alpha * K))
    rho = n / (n + alpha * K)
    after, _, _ = tiny.step(state, X, y, NLL(), rho, n, Interior(0.9999, 0.0))
    m, v = gaussian.moments(after.features)
    for k in range(K):
        own = X[y == k]
        assert after.classes.shares[k] == pytest.approx((len(own) + alpha) / (n + alpha * K))
        first = (own.sum(axis=0) + alpha * 0.5) / (len(own) + alpha)
        second = ((own**2).sum(axis=0) + alpha * (4.0 + 0.25)) / (len(own) + alpha)
        np.testing.assert_allclose(m[k], first, rtol=1e-10)
        np.testing.assert_allclose(v[k] + m[k] ** 2, second, rtol=1e-10)
    closed = tiny.begin("gaussian", X, y, prior, alpha)
    np.testing.assert_allclose([m, v], gaussian.moments(closed.features), rtol=1e-10)


def test_one_full_batch_of_nll_is_the_map_words():
    """From anywhere, rho = 1: the statistics of the data plus the prior (here nu = 0)."""
    X, y = tiny.data("words", n=30)
    after, _, _ = tiny.step(tiny.begin("words", X, y, init="prior"), X, y, NLL(), 1.0, 30, Check())
    cells = tiny.means_of(after.features).T
    expected = np.stack([X[y == k].sum(axis=0) + 1.0 for k in range(3)])
    np.testing.assert_allclose(
        cells / cells.sum(axis=1, keepdims=True), expected / expected.sum(axis=1, keepdims=True)
    )


@every_family
def test_the_generative_start_is_stationary_under_nll(family):
    """The full-batch NLL step vanishes, to first order in rho, at the closed-form estimate."""
    X, y = tiny.data(family, n=30)
    start, rho = tiny.begin(family, X, y), 1e-6
    after, _, _ = tiny.step(start, X, y, NLL(), rho, 30)
    sizes = [(s.classes.shares, tiny.means_of(s.features)) for s in (after, start)]
    if family == "words":
        sizes = [(p, cells / cells.sum(axis=0)) for p, cells in sizes]
    for new, old in zip(*sizes, strict=True):
        np.testing.assert_allclose((new - old) / rho, 0.0, atol=1e-4)


@every_family
@pytest.mark.parametrize("batch", [1, 10])
def test_nll_with_steps_of_1_over_t_is_the_running_mean(family, batch):
    """From the estimate of some rows, steps of 1 / (rows so far) lead to that of all rows."""
    X, y = tiny.data(family, n=90)
    first = np.argsort(np.arange(90) % 3 + (np.arange(90) >= 40) * 9, kind="stable")[:40]
    rest = np.setdiff1d(np.arange(90), first)
    some = tiny.begin(family, X[first], y[first], faint(family), alpha=1e-9)
    rho = batch / (40 + batch * np.arange(1.0, 50 / batch + 1))
    after, figures = tiny.run(some, X[rest], y[rest], NLL(), rho, np.inf, batch=batch)
    assert figures[6] == 0
    whole = tiny.begin(family, X, y, faint(family), alpha=1e-9)
    ends = tiny.scores(after, X), tiny.scores(whole, X)
    if "first" in after.features.fixed:  # levels that a class has never shown have no logarithm
        ends = np.exp(ends)
    np.testing.assert_allclose(*ends, rtol=1e-5, atol=1e-9)


@every_family
def test_the_average_of_states_under_nll_ends_there_too(family):
    """Also where decay has folded its scale many times."""
    X, y = tiny.data(family, n=300)
    start = tiny.begin(family, X, y, init="prior", average=True)
    trained = tiny.learner(start, NLL(), inverse(0.05), 300, batch=6)
    for _ in range(24 if family == "normal" else 8):  # which begins far from there
        tiny.learn(trained, X, y)
    target = tiny.scores(tiny.begin(family, X, y), X)
    odds = [a - a[:, :1] for a in (tiny.scores(trained.model, X), target)]
    assert np.median(np.abs(odds[0] - odds[1])[:, 1:]) < 0.05
