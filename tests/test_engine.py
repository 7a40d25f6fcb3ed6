"""Laws of the sequential engine."""

import copy

import numpy as np
import pytest
import tiny

from discem import Check, Interior, NormalGamma, constant, inverse, models
from discem.engines.sequential import score, sweep
from discem.families import FAMILIES, gaussian
from discem.losses import LOSSES, NCLL, NLL

every_family = pytest.mark.parametrize("family", FAMILIES)
every_loss = pytest.mark.parametrize("loss", LOSSES)


def flat(state):
    """All numbers of a state in a row."""
    parts = [part.ravel() for block in state for part in block if isinstance(part, np.ndarray)]
    return np.concatenate(parts)


def scored(family, state, X):
    return score(state, tiny.VIEW[family](X), len(X))


# --- compiled = plain -----------------------------------------------------------------------------


@every_family
@every_loss
@pytest.mark.parametrize("projection", [Interior(0.5, 1.0), Check()], ids=str)
def test_compiled_is_plain(family, loss, projection):
    """The compiled sweep is the same function as its source, on a short horizon."""
    X, y = tiny.data(family, n=20)
    y[3] = -1
    if family == "gaussian":
        X[5, 0] = np.nan
    start = tiny.begin(family, X, y, average=True)
    weights = np.linspace(0.5, 1.5, 20)
    for batch in (1, 6):
        results = []
        for function in (sweep, sweep.plain):
            state, figures = tiny.run(
                start, X, y, LOSSES[loss], 0.2, 20, projection, batch, weights, function
            )
            results.append(np.concatenate([flat(state), figures]))
        np.testing.assert_allclose(*results, rtol=1e-9, atol=1e-11)
        assert not np.allclose(results[0][: flat(start).size], flat(start)), "nothing moved"


# --- NLL is the generative estimate ---------------------------------------------------------------


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
    after, _ = tiny.run(state, X, y, NLL(), rho, n, Interior(0.9999, 0.0), batch=n)
    p, means, _ = tiny.parameters(after)
    for k in range(K):
        own = X[y == k]
        assert p[k] == pytest.approx((len(own) + alpha) / (n + alpha * K))
        first = (own.sum(axis=0) + alpha * 0.5) / (len(own) + alpha)
        second = ((own**2).sum(axis=0) + alpha * (4.0 + 0.25)) / (len(own) + alpha)
        np.testing.assert_allclose(means[k], np.stack([first, second], axis=1), rtol=1e-10)
    closed = tiny.begin("gaussian", X, y, prior, alpha)
    np.testing.assert_allclose(means, tiny.parameters(closed)[1], rtol=1e-10)


def test_one_full_batch_of_nll_is_the_map_words():
    """From anywhere, rho = 1: the statistics of the data plus the prior (here nu = 0)."""
    X, y = tiny.data("words", n=30)
    state = tiny.begin("words", X, y, init="prior")
    after, _ = tiny.run(state, X, y, NLL(), 1.0, 30, Check(), batch=30)
    expected = np.stack([X[y == k].sum(axis=0) + 1.0 for k in range(3)])
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(tiny.parameters(after)[1], expected, rtol=1e-9)


@every_family
def test_the_generative_start_is_stationary_under_nll(family):
    """The full-batch NLL step vanishes, to first order in rho, at the closed-form estimate."""
    X, y = tiny.data(family, n=30)
    start, rho = tiny.begin(family, X, y), 1e-6
    after, _ = tiny.run(start, X, y, NLL(), rho, 30, batch=30)
    for new, old in zip(tiny.parameters(after)[:2], tiny.parameters(start)[:2], strict=True):
        np.testing.assert_allclose((new - old) / rho, 0.0, atol=1e-4)


@every_family
def test_sequential_nll_converges_to_the_generative_estimate(family):
    """With rho = 1 / (1 + t) from the prior, passes over the data end at the closed form."""
    X, y = tiny.data(family, n=300)
    trained = tiny.learner(tiny.begin(family, X, y, init="prior"), NLL(), inverse(1.0), 300)
    target, gaps = tiny.parameters(tiny.begin(family, X, y)), []
    for _ in range(30):
        tiny.learn(trained, X, y)
        now = tiny.parameters(trained.state)
        gaps.append(max(np.abs(now[j] / target[j] - 1).max() for j in (0, 1)))
    assert gaps[-1] < 2e-3
    assert gaps[-1] < 0.2 * gaps[0]


# --- symmetry -------------------------------------------------------------------------------------


@every_family
@every_loss
def test_permuting_classes_permutes_the_result(family, loss):
    """Scores of class k come from the rows of class k, whatever its number."""
    X, y = tiny.data(family, n=30)
    place = np.array([2, 0, 1])  # class k is now called place[k]
    ends = []
    for codes in (y, place[y]):
        state, _ = tiny.run(tiny.begin(family, X, codes), X, codes, LOSSES[loss], 0.1, 30)
        ends.append(scored(family, state, X))
    np.testing.assert_allclose(ends[1][:, place], ends[0], rtol=1e-9)


@every_family
@every_loss
def test_permuting_features_changes_nothing(family, loss):
    """Scores do not depend on the order of the columns."""
    X, y = tiny.data(family, n=30)
    ends = []
    for view in (X, X[:, [2, 0, 1]]):
        state, _ = tiny.run(tiny.begin(family, view, y), view, y, LOSSES[loss], 0.1, 30)
        ends.append(scored(family, state, view))
    np.testing.assert_allclose(ends[1], ends[0], rtol=1e-9)


@every_loss
def test_units_do_not_matter(loss):
    """Shifting and scaling columns shifts ln p(y, x) by the Jacobian alone (Gaussian)."""
    X, y = tiny.data("gaussian", n=30)
    scale, ends = np.array([1e-3, 10.0, 1e5]), []
    for view in (X, 7.0 + X * scale):
        state, _ = tiny.run(tiny.begin("gaussian", view, y), view, y, LOSSES[loss], 0.1, 30)
        ends.append(scored("gaussian", state, view))
    np.testing.assert_allclose(ends[1] + np.log(scale).sum(), ends[0], rtol=1e-6)


# --- missing cells --------------------------------------------------------------------------------


@every_loss
def test_a_missing_cell_moves_no_moment(loss):
    """Without a prior (n = inf) the factors of a missing cell stay; the others move."""
    X, y = tiny.data("gaussian")
    start = tiny.begin("gaussian", X, y)
    row, code = X[:1].copy(), [int(scored("gaussian", start, X)[0].argmin())]
    row[0, 1] = np.nan
    after, _ = tiny.run(start, row, code, LOSSES[loss], 0.05, np.inf)
    old, new = start.features.factors, after.features.factors
    np.testing.assert_allclose(new[1], old[1], rtol=1e-12)
    assert not np.isclose(
        new[[0, 2]][:, gaussian.MEAN, code], old[[0, 2]][:, gaussian.MEAN, code]
    ).any()


@every_loss
def test_a_missing_cell_leaves_its_factors_to_the_prior(loss):
    """With a prior they move as they would for a row that weighs nothing beside it."""
    X, y = tiny.data("gaussian")
    start = tiny.begin("gaussian", X, y)
    row = X[:1].copy()
    row[0, 1] = np.nan
    after, _ = tiny.run(start, row, y[:1], LOSSES[loss], 1e-3, 5.0)
    idle, _ = tiny.run(start, row, y[:1], LOSSES[loss], 1e-3, 5e-9, weights=np.full(1, 1e-9))
    new, expected = after.features.factors[1], idle.features.factors[1]
    np.testing.assert_allclose(new, expected, rtol=1e-5)
    assert not np.allclose(expected, start.features.factors[1], rtol=1e-8)


def test_an_empty_row_scores_its_class_shares():
    """A row with nothing in it has ln p(y, x) = ln p(y)."""
    for family, nothing in (("gaussian", np.nan), ("words", 0.0)):
        X, y = tiny.data(family)
        state = tiny.begin(family, X, y)
        got = scored(family, state, np.full((1, 3), nothing))[0]
        np.testing.assert_allclose(got, np.log(tiny.parameters(state)[0]), rtol=1e-12)


# --- passes ---------------------------------------------------------------------------------------


@every_family
@pytest.mark.parametrize("batch", [1, 5])
@pytest.mark.parametrize("loss", [NLL(), NCLL()], ids=["nll", "ncll"])
def test_pieces_are_the_whole(family, batch, loss):
    """A pass in pieces, by calls or by chunks, is the same pass: state, average, steps."""
    X, y = tiny.data(family, n=60)
    start = tiny.begin(family, X, y, average=True)

    def fresh():
        return tiny.learner(start, loss, inverse(0.1), 60, average=True, batch=batch)

    whole = tiny.learn(fresh(), X, y)
    halves = tiny.learn(fresh(), X, y, order=np.arange(30))
    tiny.learn(halves, X, y, order=np.arange(30, 60))
    for pieces in (halves, tiny.learn(fresh(), X, y, chunk=7), tiny.learn(fresh(), X, y, chunk=1)):
        assert pieces.t == whole.t == 60 // batch
        np.testing.assert_array_equal(flat(pieces.state), flat(whole.state))
        np.testing.assert_array_equal(flat(pieces.model), flat(whole.model))


@every_family
def test_a_weight_of_two_is_two_rows_in_a_batch(family):
    """Rows of a batch see the same model, so weights and repetitions are one thing."""
    X, y = tiny.data(family, n=6)
    start = tiny.begin(family, X, y)
    weights = np.array([2.0, 1.0, 1.0, 1.0, 2.0, 1.0])
    twice = np.repeat(np.arange(6), weights.astype(int))
    weighted, _ = tiny.run(start, X, y, NCLL(), 0.06, 10, batch=6, weights=weights)
    repeated, _ = tiny.run(start, X[twice], y[twice], NCLL(), 0.08, 10, batch=8)
    np.testing.assert_allclose(scored(family, weighted, X), scored(family, repeated, X), rtol=1e-9)


@every_family
@every_loss
def test_figures_are_those_of_the_scores_before_each_step(family, loss):
    """With rho = 0 a pass measures the model: mean losses and accuracy from its scores."""
    X, y = tiny.data(family, n=20)
    state = tiny.begin(family, X, y)
    a = scored(family, state, X)
    _, figures = tiny.run(state, X, y, LOSSES[loss], 0.0, 20)
    own, rows = a[np.arange(20), y], np.arange(20)
    rivals = np.where(rows[:, None] * 0 + np.arange(3) == y[:, None], -np.inf, a).max(axis=1)
    log_p = np.log(np.exp(a - a.max(axis=1, keepdims=True)).sum(axis=1)) + a.max(axis=1)
    expected = {
        "nll": -own.sum(),
        "ncll": (log_p - own).sum(),
        "hinge": np.maximum(0, 1 - own + rivals).sum(),
    }
    expected["blend"] = expected["ncll"] + LOSSES["blend"].kappa * expected["nll"]
    np.testing.assert_allclose(figures[2:5], [expected[k] for k in ("nll", "ncll", "hinge")])
    assert figures[1] == pytest.approx(expected[loss])
    assert figures[5] == (a.argmax(axis=1) == y).sum()
    assert figures[0] == figures[7] == 20


@every_family
def test_unlabelled_rows_are_learnt_but_not_measured(family):
    """A row without a label moves the model by NLL whatever the loss, and enters no figure."""
    X, y = tiny.data(family)
    start = tiny.begin(family, X, y)
    ends = [tiny.run(start, X[:1], [-1], LOSSES[loss], 0.05, 12) for loss in LOSSES]
    for state, figures in ends:
        np.testing.assert_array_equal(flat(state), flat(ends[0][0]))
        assert figures[0] == figures[5] == 0
    assert not np.allclose(flat(ends[0][0]), flat(start))


@every_family
def test_no_step_moves_nothing(family):
    """A step of size 0 leaves the model as it is, also its average."""
    X, y = tiny.data(family)
    start = tiny.begin(family, X, y, average=True)
    trained = tiny.learn(tiny.learner(start, NCLL(), constant(0.0), 12, average=True), X, y)
    for model in (trained.state, trained.model):
        np.testing.assert_allclose(scored(family, model, X), scored(family, start, X), rtol=1e-12)


@every_family
def test_a_new_class_leaves_the_others_as_they_are(family):
    """`with_classes` arranges the classes and adds new ones; p(x | k) of the old stay."""
    X, y = tiny.data(family, n=30)
    trained = tiny.learner(
        tiny.begin(family, X, y, average=True), NCLL(), constant(0.05), 30, average=True
    )
    tiny.learn(trained, X, y)
    before = copy.deepcopy(trained.model)
    trained.replace(models.with_classes(trained.state, np.array([1, -1, 0, 2]), 0.01))
    _, means, _ = tiny.parameters(trained.model)
    np.testing.assert_allclose(means[[2, 0, 3]], tiny.parameters(before)[1], rtol=1e-9)
    assert np.isfinite(scored(family, trained.model, X)).all()
