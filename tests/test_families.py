"""Laws of the families: numbers, scores, statistics, and the move of the method."""

import copy
import functools
import inspect
import itertools

import numpy as np
import pytest
import scipy.sparse as sp
import tiny
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from scipy.special import log_softmax, logsumexp
from scipy.stats import norm
from tiny import log_joint

from discem import Check, Dirichlet, Interior, NormalGamma, PaperNormalGamma, _compile, models
from discem.engines.sequential import sweep
from discem.families import FAMILIES, categorical, gaussian, words
from discem.families._protocol import COMPILED
from discem.losses import LOSSES, NLL, value_and_weights
from discem.models import update
from discem.schedules import constant
from discem.targets import label_sets, labels, soft_labels

every_family = pytest.mark.parametrize("family", FAMILIES)
every_loss = pytest.mark.parametrize("loss", LOSSES)


@pytest.mark.parametrize("name", tiny.LENT)
def test_some_families_have_the_compiled_code_of_another(name):
    """So that there is no need to compile it twice to see that it is right."""
    one, other = FAMILIES[name].state, FAMILIES[tiny.LENT[name]].state
    assert one._fields == other._fields
    for function in COMPILED.values():
        table = inspect.getclosurevars(function).nonlocals["table"]
        assert table[one] is table[other]


# --- the family in numbers ------------------------------------------------------------------------


def mean_parameters(family):
    """Points of the domain: those of the factors of models, in units of the data."""
    found = []
    for seed in range(7):
        X, y = tiny.data(family, seed=seed, d=5)
        found.append(tiny.parameters(tiny.begin(family, X, y))[1])
    return np.concatenate(found)  # (21, factor, statistic)


@every_family
def test_round_trip(family):
    """mu(theta(mu)) = mu."""
    mu, of = mean_parameters(family), FAMILIES[family]
    np.testing.assert_allclose(of.mean(of.natural(mu)), mu, rtol=1e-9)


@every_family
def test_the_mean_is_the_gradient_of_the_log_normalizer(family):
    """The gradient of A(theta) is mu(theta), by central differences."""
    of = FAMILIES[family]
    theta, h = of.natural(mean_parameters(family)), 1e-6
    gradient = np.stack(
        [
            (of.log_normalizer(theta + h * e) - of.log_normalizer(theta - h * e)) / (2 * h)
            for e in np.eye(theta.shape[-1])
        ],
        axis=-1,
    )
    np.testing.assert_allclose(gradient, of.mean(theta), rtol=1e-4, atol=1e-6)


# --- scores ---------------------------------------------------------------------------------------


def test_gaussian_scores_are_normal_densities():
    """Scores are ln p(y) + sum_d ln N(x_d; m, v), over the cells that are there."""
    X, y = tiny.data("gaussian")
    model = tiny.begin("gaussian", X, y)
    X[0, 1], X[1] = np.nan, np.nan
    m, v = gaussian.moments(model.features)
    cells = norm.logpdf(X[:, None, :], m, np.sqrt(v))
    expected = np.log(model.classes.counts) + np.nansum(cells, axis=2)
    np.testing.assert_allclose(tiny.scores(model, X), expected, rtol=1e-12)


def test_gaussian_scores_survive_many_features():
    """Products of thousands of variances neither under- nor overflow."""
    d, sizes = 3000, np.geomspace(1e-3, 1e3, 3000)
    X, y = tiny.data("gaussian", n=6, d=d)
    model = tiny.begin("gaussian", X * sizes, y, prior=NormalGamma(variance=1e-6 * sizes**2))
    m, v = gaussian.moments(model.features)
    expected = np.log(model.classes.counts)
    expected = expected + norm.logpdf((X * sizes)[:, None, :], m, np.sqrt(v)).sum(axis=2)
    got = tiny.scores(model, X * sizes)
    np.testing.assert_allclose(got, expected, rtol=1e-11)


@pytest.mark.parametrize("x", [1e100, -1e200, 1e308])
def test_gaussian_scores_are_finite_for_every_finite_row(x):
    """No distance is too large to score."""
    X, y = tiny.data("gaussian")
    model = tiny.begin("gaussian", X, y)
    assert np.isfinite(tiny.scores(model, np.full((1, 3), x))).all()


DOCUMENTS = {
    "counts": np.arange(24.0).reshape(4, 6) % 5,
    "real": np.random.default_rng(0).gamma(1.0, size=(4, 6)),
    "large": np.array([[5e3, 0, 1, 2, 3, 4], [1e8, 1e8, 0, 0, 0, 0.5], [3] * 6, [0.25] * 6]),
    "empty": np.zeros((4, 6)),
    "many": np.full((4, 6), 3.0).repeat(40, axis=1),
}


@pytest.mark.parametrize("alpha", [1.0, 1e-12, 1e4])
@pytest.mark.parametrize("scale", [1.0, 1e-2])
@pytest.mark.parametrize("documents", DOCUMENTS.values(), ids=DOCUMENTS)
def test_word_scores_are_multinomial(documents, alpha, scale):
    """Scores are ln p(y) + sum_w x_w ln p(w | y), whatever the counts and the lazy scale."""
    K, W = 3, documents.shape[1]
    X, y = tiny.data("words", n=9, d=W)
    model = tiny.begin("words", X, y, prior=Dirichlet(alpha))
    model.features.counts[:] /= scale  # the same expected counts, held at another scale
    model.features.lazy[words.SCALE] = scale
    cells = np.stack([X[y == k].sum(axis=0) for k in range(K)]) + alpha
    log_p = np.log(cells) - np.log(cells.sum(axis=1, keepdims=True))
    expected = np.log(model.classes.counts) + documents @ log_p.T
    got = tiny.scores(model, documents)
    np.testing.assert_allclose(got, expected, rtol=1e-11)
    np.testing.assert_allclose(words.log_probabilities(model.features), log_p, rtol=1e-11)


@pytest.mark.parametrize("steps", [40, 100, 400])
def test_word_scores_survive_decay(steps):
    """However far NLL's decay has gone, scores are those of the expected counts."""
    X, y = tiny.data("words", n=steps)
    state, _ = tiny.run(tiny.begin("words", X, y), X, y, NLL(), 0.5, steps)
    cells = expected_counts(state.features)
    expected = np.log(tiny.parameters(state)[0]) + X @ np.log(cells / cells.sum(axis=0))
    np.testing.assert_allclose(tiny.scores(state, X), expected, rtol=1e-9)


def test_sparse_is_dense():
    """The storage of a matrix does not matter: dense, CSC, unsorted CSR, explicit zeros."""
    X, y = tiny.data("words", n=6, d=5)
    model = tiny.begin("words", X, y)
    expected = tiny.scores(model, X)
    unsorted = sp.csr_array(X)
    for i in range(6):
        part = slice(unsorted.indptr[i], unsorted.indptr[i + 1])
        unsorted.indices[part] = unsorted.indices[part][::-1].copy()
        unsorted.data[part] = unsorted.data[part][::-1].copy()
    full = sp.csr_array((X.ravel(), np.tile(np.arange(5), 6), np.arange(0, 31, 5)), shape=X.shape)
    assert full.nnz == 30
    for other in (sp.csc_array(X), sp.csr_matrix(X, dtype=np.int32), unsorted, full):
        np.testing.assert_allclose(tiny.scores(model, other), expected, rtol=1e-14)


@every_family
def test_scores_are_the_exponential_family(family):
    """a_k = ln p(k) + theta_k s(x) - A(theta_k) + ln h(x), with the family's own numbers."""
    X, y = tiny.data(family)
    if FAMILIES[family].accepts.missing:
        X[1, 2] = X[4] = np.nan
    model = tiny.begin(family, X, y)
    p, means, _ = tiny.parameters(model)
    x, jacobian = FAMILIES[family].in_units(model.features, X)
    expected = log_joint(family, np.log(p), FAMILIES[family].natural(means), x)
    np.testing.assert_allclose(tiny.scores(model, X), expected + jacobian[:, None], rtol=1e-11)


# --- statistics of the data, and the start --------------------------------------------------------

WEIGHTED = {
    "labels": labels([0, 1, 2, 0, 1, 2, -1, 0, 1, 2, 0, 1]),
    "sets": label_sets(np.random.default_rng(3).random((12, 3)) < [0.5, 0.5, 1.0]),
    "soft": soft_labels(np.random.default_rng(4).dirichlet(np.ones(3), 12)),
}


def responsibilities(targets):
    """Each row's share in each class, the even posterior over its label set."""
    if targets.plain:
        return (targets.codes[:, None] == np.arange(3)).astype(float)
    return targets.share / targets.share.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("targets", WEIGHTED.values(), ids=WEIGHTED)
def test_collected_rows_are_weighted_moments(targets):
    """Moments of every class, over the cells that are there."""
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


@pytest.mark.parametrize("targets", WEIGHTED.values(), ids=WEIGHTED)
def test_collected_documents_are_weighted_counts(targets):
    """Word counts of every class."""
    X, _ = tiny.data("words")
    weights = np.linspace(0.5, 2.0, 12)
    counted = tiny.count("words", X, targets, weights)
    expected = X.T @ (responsibilities(targets) * weights[:, None])
    np.testing.assert_allclose(counted.features, expected, rtol=1e-12)


def test_the_generative_start_is_the_mode_of_the_posterior():
    """Gaussian: minimises NLL + penalty of each factor; checked by perturbing it."""
    X, y = tiny.data("gaussian")
    model = tiny.begin("gaussian", X, y, prior=NormalGamma(0.7, 3.0))

    def objective(model):
        return -tiny.scores(model, X)[np.arange(len(X)), y].sum() + models.penalty(model)

    best = objective(model)
    for place in np.ndindex(model.features.factors.shape):
        for factor in (0.99, 1.01):
            other = copy.deepcopy(model)
            other.features.factors[place] *= factor
            assert objective(other) > best
    for k in range(3):
        other = copy.deepcopy(model)
        other.classes.counts[k] *= 1.01
        assert objective(other) > best


# --- the move is the natural gradient -------------------------------------------------------------


def _words_penalty(block, theta):
    log_p = theta - logsumexp(theta, axis=-1, keepdims=True)
    return -(block.alpha * log_p).sum()


def _gaussian_penalty(block, theta):
    prior, mu = block.prior, FAMILIES["gaussian"].mean(theta)
    m, v = mu[..., 0], mu[..., 1] - mu[..., 0] ** 2
    value = (prior.nu_mean * (m - prior.mean) ** 2 / (2 * v)).sum()
    return value + (prior.nu_variance * (np.log(v) + prior.variance / v) / 2).sum()


def _exponential_penalty(block, theta):
    m = -1.0 / theta[..., 0]
    return (block.prior.nu * (np.log(m) + block.prior.mean / m)).sum()


def _levels_penalty(block, theta):
    log_p = theta - logsumexp(theta, axis=-1, keepdims=True)
    centre = block.prior.centre.reshape(theta.shape[1:])
    return -(block.prior.nu[:, None] * centre * log_p).sum()


def _poisson_penalty(block, theta):
    m = np.exp(theta[..., 0])
    return (block.prior.nu * (m - block.prior.rate * np.log(m))).sum()


PENALTY = {  # -ln prior from its definition, in the units of the state
    "words": _words_penalty,
    "gaussian": _gaussian_penalty,
    "exponential": _exponential_penalty,
    "lognormal": _gaussian_penalty,
    "categorical": _levels_penalty,
    "bernoulli": _levels_penalty,
    "poisson": _poisson_penalty,
}


def penalty(family, model, b, theta):
    return -model.classes.alpha * log_softmax(b).sum() + PENALTY[family](model.features, theta)


@every_family
def test_penalty_is_the_log_of_the_prior(family):
    """`models.penalty` differs from the definition by a constant."""
    gaps = []
    for seed in (0, 1):
        X, y = tiny.data(family)
        model = tiny.begin(family, X, y)
        model = tiny.run(model, X, y, LOSSES["ncll"], 0.01 * seed, 12)[0]
        p, means, _ = tiny.parameters(model)
        theta = FAMILIES[family].natural(means)
        gaps.append(models.penalty(model) - penalty(family, model, np.log(p), theta))
    assert gaps[0] == pytest.approx(gaps[1], abs=1e-9)


def derivative(function, at, h=1e-5):
    gradient = np.zeros_like(at)
    for place in np.ndindex(at.shape):
        e = np.zeros_like(at)
        e[place] = h
        gradient[place] = (function(at + e) - function(at - e)) / (2 * h)
    return gradient


@every_family
@every_loss
@pytest.mark.parametrize("y", [1, -1], ids=["labelled", "unlabelled"])
def test_the_move_is_the_natural_gradient(family, loss, y):
    """It goes along -I(mu)^-1 dl/dmu = -dl/dtheta, with l the loss + penalty / n."""
    X, codes = tiny.data(family)
    model, n, rho = tiny.begin(family, X, codes), 7.0, 1e-7
    if loss == "hinge":  # where the loss is not zero
        y = y if y < 0 else int(tiny.scores(model, X)[2].argmin())
    p, means, mass = tiny.parameters(model)
    b, theta = np.log(p), FAMILIES[family].natural(means)
    x, _ = FAMILIES[family].in_units(model.features, X[2:3])

    def objective(b, theta):
        a = log_joint(family, b, theta, x)[0]
        return value_and_weights("nll" if y < 0 else loss, a, y)[0] + (
            penalty(family, model, b, theta) / n
        )

    after, figures = tiny.run(model, X[2:3], [y], LOSSES[loss], rho, n, sweep=sweep.plain)
    assert figures[6] == 0, "the step was shortened"
    p_after, means_after, _ = tiny.parameters(after)
    assert model.classes.counts.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(
        (p_after - p) / rho, -derivative(lambda b: objective(b, theta), b), rtol=1e-4, atol=1e-6
    )
    np.testing.assert_allclose(
        (means_after - means) * mass / rho,
        -derivative(lambda theta: objective(b, theta), theta),
        rtol=1e-4,
        atol=1e-5,
    )


@every_family
@every_loss
def test_the_move_is_the_update_of_the_method(family, loss):
    """New mu = mu + rho [sum_k w_k s(k, x) - (sum_k w_k) mu], exactly, if n = inf."""
    X, y = tiny.data(family)
    model, rho = tiny.begin(family, X, y), 0.01
    for i in range(4):
        _, means, mass = tiny.parameters(model)
        counts = model.classes.counts.copy()
        _, w = value_and_weights(loss, tiny.scores(model, X[i : i + 1])[0], y[i])
        x, _ = FAMILIES[family].in_units(model.features, X[i : i + 1])
        r, s = (rho * w)[:, None, None], FAMILIES[family].statistics(x)
        model, figures = tiny.run(
            model, X[i : i + 1], y[i : i + 1], LOSSES[loss], rho, np.inf, sweep=sweep.plain
        )
        assert figures[6] == 0, "the step was shortened"
        _, means_after, mass_after = tiny.parameters(model)
        expected = means * mass * (1 - r.sum()) + r * s
        np.testing.assert_allclose(means_after * mass_after, expected, rtol=1e-10, atol=1e-14)
        expected = counts * (1 - r.sum()) + r.ravel()
        np.testing.assert_allclose(model.classes.counts, expected, rtol=1e-12)


# --- projections ----------------------------------------------------------------------------------


def one_update(model, rows, i, r, decay, pull, floor, projection, room):
    return update(model, rows, i, 0, r, decay, pull, floor, projection, room)


@pytest.fixture(scope="module")
def compiled_update():
    """`update` compiled: huge numbers overflow there as they do in training, without warnings."""
    return _compile._compile(one_update)


def sizes(low, high):
    return st.floats(low, high).map(lambda e: 10.0**e)


def signed(low, high):
    return st.just(0.0) | st.tuples(sizes(low, high), st.sampled_from([-1.0, 1.0])).map(np.prod)


def pairs(numbers):
    return st.tuples(numbers, numbers).map(np.array)


steps = {
    "r": pairs(signed(-12, 6)),
    "x": pairs(signed(-12, 150)),
    "pull": sizes(-12, 6),
    "counts": pairs(sizes(-12, 6)),
}
decays = st.just(0.0) | sizes(-12, 6)
PRIORS = {"data": NormalGamma(), "paper": PaperNormalGamma(), "words": Dirichlet(1.0)}


@functools.cache
def two_classes(family, prior):
    """A model of two classes and two features."""
    return tiny.begin(family, *tiny.data(family, n=8, d=2, K=2), prior=PRIORS[prior], K=2)


def land(compiled_update, family, prior, projection, fill, counts, x, r, decay, pull):
    """The model before and after one update, whatever its size."""
    before = copy.deepcopy(two_classes(family, prior))
    before.classes.counts[:] = counts
    fill(before.features)
    after = copy.deepcopy(before)
    rows = tiny.view(family, x[None])
    room = models.make_room(after, rows, 1)
    compiled_update(after, rows, 0, r, decay, pull, pull, projection, room)
    return before, after


@pytest.mark.parametrize(
    "projection", [Interior(0.5), Interior(0.1), Interior(caution=2.0), Check()], ids=str
)
@pytest.mark.parametrize("prior", ["data", "paper"])
@settings(max_examples=100, deadline=None)
@given(means=pairs(signed(-6, 6)), variances=pairs(sizes(-12, 12)), decay=decays, **steps)
def test_gaussian_steps_stay_inside(compiled_update, projection, prior, means, variances, **step):
    """N > 0, variance > 0, all finite; an interior step loses at most `share` of each."""

    def fill(block):
        block.factors[gaussian.MEAN], block.factors[gaussian.VARIANCE] = means, variances
        block.mass[:] = step["counts"].sum()

    before, after = land(compiled_update, "gaussian", prior, projection, fill, **step)
    old, new = before.features, after.features
    positive = [new.factors[gaussian.VARIANCE], new.mass, after.classes.counts]
    assert all(np.isfinite(part).all() and (part > 0).all() for part in positive)
    assert np.isfinite(new.factors).all()
    if isinstance(projection, Interior):
        keep = (1 - projection.share) * (1 - 1e-9)
        was = [old.factors[gaussian.VARIANCE], old.mass, before.classes.counts]
        assert all((now >= keep * then).all() for now, then in zip(positive, was, strict=True))


@pytest.mark.parametrize("projection", [Interior(0.5), Interior(0.1), Check()], ids=str)
@settings(max_examples=100, deadline=None)
@given(cells=pairs(pairs(sizes(-9, 9))), decay=decays, **steps)
def test_word_steps_stay_inside(compiled_update, projection, cells, **step):
    """Every cell stays positive and finite; an interior step loses at most `share` of each."""
    step["x"] = np.minimum(np.abs(step["x"]), 1e12)
    r = step["r"]

    def fill(block):
        block.counts[:] = cells
        block.lazy[words.GAMMA] = 1e-9
        block.total[:] = cells.sum(axis=0) + 1e-9 * block.alpha_total

    before, after = land(compiled_update, "words", "words", projection, fill, **step)
    held = [expected_counts(model.features) for model in (before, after)]
    assert np.isfinite(held[1]).all() and (held[1] > 0).all()
    assert (after.classes.counts > 0).all() and np.isfinite(after.classes.counts).all()
    assert (after.features.total > 0).all()
    if isinstance(projection, Interior):
        # decay is taken by all words at once, before the row moves the words it has
        both = step["decay"] > 0 and (r < 0).any()
        keep = (1 - projection.share) ** (2 if both else 1) * (1 - 1e-9)
        assert (held[1] >= keep * held[0]).all()


def expected_counts(block):
    return block.lazy[words.SCALE] * block.counts + block.lazy[words.GAMMA] * block.alpha[:, None]


@settings(max_examples=500)
@given(
    share=st.floats(0.05, 0.95),
    n=signed(-6, 6),
    s=signed(-6, 6),
    v=signed(-6, 6),
)
@example(share=0.5, n=-0.1, s=0.0, v=-5.0)
def test_the_interior_fraction_is_the_largest(share, n, s, v):
    """All of [0, f] keeps 1 - share of count and variance; a little beyond f does not."""

    def slack(f):
        c = 1 + f * n
        variance = (c * (1 + f * v) - f * f * s * s) / (c * c)
        return min(c, variance) - (1 - share)

    f = gaussian.interior_fraction(share, n, s, v)
    assert 0 < f <= 1
    assert min(slack(part * f) for part in np.linspace(0, 1 - 1e-7, 50)) > -1e-6
    if f < 1:
        beyond = slack(f * (1 + 1e-5))
        assume(abs(beyond) > 1e-9)  # a grazing root cannot be told from none
        assert beyond < 0


# --- the paper's equations, literally -------------------------------------------------------------


def toy(n, seed):
    """The paper's toy sample (section 4.1), y in {-1, 1}."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.5, -1, 1)
    narrow = np.where(rng.random(n) < 0.8, -5.0, 5.0) + 0.1 * rng.normal(size=n)
    return np.where(y == -1, 3.0 * rng.normal(size=n), narrow), y


@pytest.mark.parametrize("loss", ["ncll", "hinge"])
@pytest.mark.parametrize("lam", [1.0, 0.1, 0.01])
def test_the_check_step_of_the_toy_example(loss, lam):
    """The equations of section 4.1 in (N, S, V), with their check-step, over 200 steps."""
    x, y = toy(200, seed=3)
    n, classes = 50.0, np.array([-1, 1])
    N, S, V = np.ones(2), np.zeros(2), np.ones(2)
    path, checked = [], 0
    for t in range(1, 201):
        rho, xt, yt = 1 / (1 + lam * t), x[t - 1], y[t - 1]
        mean, sigma = S / N, np.sqrt(V / N - (S / N) ** 2)
        joint = np.log(N / N.sum()) + norm.logpdf(xt, mean, sigma)
        if loss == "ncll":
            w = (classes == yt) - np.exp(joint - logsumexp(joint))
        else:
            w = classes * yt * (joint[classes == yt][0] - joint[classes != yt][0] < 1)
        N = N + rho * w + rho / n
        S = (1 - rho / n) * S + rho * xt * w
        V = (1 - rho / n) * V + rho * xt**2 * w + rho / n
        checked += (rho / n > N).sum() + (S**2 / np.maximum(N, rho / n) + rho / n > V).sum()
        N = np.maximum(N, rho / n)
        V = np.maximum(V, S**2 / N + rho / n)
        path.append([N / N.sum(), S / N, V / N - (S / N) ** 2])
    assert checked > 0 or lam == 1.0

    state = tiny.begin(
        "gaussian", x[:, None], (y > 0) * 1, prior=PaperNormalGamma(), init="prior", K=2
    )
    for t in range(1, 201):
        state, _ = tiny.run(
            state, x[t - 1, None, None], [int(y[t - 1] > 0)], LOSSES[loss],
            1 / (1 + lam * t), n, Check(),
        )  # fmt: skip
        m, v = gaussian.moments(state.features)
        got = [state.classes.counts / state.classes.counts.sum(), m[:, 0], v[:, 0]]
        np.testing.assert_allclose(got, path[t - 1], rtol=1e-6, err_msg=f"step {t}")


@pytest.mark.parametrize("loss", ["ncll", "hinge"])
@pytest.mark.parametrize("alpha", [1.0, np.log(6)])
def test_the_check_step_of_the_pseudo_code(loss, alpha, monkeypatch):
    """The supplement's MNB pseudo-code, as Table 1 defines it, over 200 documents."""
    monkeypatch.setattr(words, "_NEGLIGIBLE", 0.0)
    X, y = tiny.data("words", n=200, d=6)
    n, lam, W, K = 40.0, 0.001, 6, 3
    N, C, M, gamma = np.full((K, W), alpha), np.ones(K), np.full(K, alpha * W), 0.0
    lifted = 0
    for t, (d, k) in enumerate(zip(X, y, strict=True), 1):
        rho = 1 / (1 + lam * t)
        joint = np.log(C + gamma) + np.log(N + gamma) @ d - d.sum() * np.log(M + gamma * W)
        if loss == "ncll":
            w = np.eye(K)[k] - np.exp(joint - logsumexp(joint))
        else:
            wrong = np.where(np.arange(K) == k, -np.inf, joint).argmax()
            w = (np.eye(K)[k] - np.eye(K)[wrong]) * (joint[k] - joint[wrong] < 1)
        gamma = gamma + alpha * rho / n
        raw = N + rho * np.outer(w, d)
        lifted += (raw < 0).sum()
        M = M + (np.maximum(raw, 0) - N).sum(axis=1)
        N = np.maximum(raw, 0)
        C = np.maximum(C + rho * w, 0)
    assert lifted > 20

    state = tiny.begin("words", X, y, prior=Dirichlet(alpha), alpha=alpha, init="prior")
    rho = 1 / (1 + lam * np.arange(1, 201))
    exact, _ = tiny.run(state, X, y, LOSSES[loss], rho, n, Check(), sweep=sweep.plain)
    usual, _ = tiny.run(state, X, y, LOSSES[loss], rho, n, Check())  # skips negligible weights
    for after, rtol in ((exact, 1e-7), (usual, 1e-3)):
        np.testing.assert_allclose(expected_counts(after.features).T, N + gamma, rtol=rtol)
        np.testing.assert_allclose(after.features.total, M + gamma * W, rtol=rtol)
        np.testing.assert_allclose(after.classes.counts, C + gamma, rtol=rtol)


# --- averaging ------------------------------------------------------------------------------------

HELD = {
    "gaussian": lambda model: [model.classes.counts, model.features.factors],
    "words": lambda model: [model.classes.counts, expected_counts(model.features)],
    "exponential": lambda model: [model.classes.counts, model.features.means],
    "lognormal": lambda model: [model.classes.counts, model.features.factors],
    "categorical": lambda model: [model.classes.counts, categorical.shares(model.features)],
    "bernoulli": lambda model: [model.classes.counts, categorical.shares(model.features)],
    "poisson": lambda model: [model.classes.counts, model.features.rates],
}


@every_family
@pytest.mark.parametrize("loss", ["ncll", "nll"])
@pytest.mark.parametrize("rho", [0.01, 0.3])
@pytest.mark.parametrize("batch", [1, 4])
def test_the_lazy_average_is_the_average(family, loss, rho, batch):
    """sum_t t^2 mu_t / sum_t t^2, of the counts (of the moments for Gaussians)."""
    X, y = tiny.data(family, n=120)
    state = tiny.begin(family, X, y, average=True)
    trained = tiny.learner(state, LOSSES[loss], constant(rho), 120, batch=batch)
    totals, weight = [0.0, 0.0], 0.0
    for t, first in enumerate(range(0, 120, batch), 1):
        tiny.learn(trained, X, y, order=np.arange(first, first + batch))
        held = HELD[family](trained.state)
        totals = [total + t**2 * part for total, part in zip(totals, held, strict=True)]
        weight += t**2
    for got, total in zip(HELD[family](trained.model), totals, strict=True):
        np.testing.assert_allclose(got, total / weight, rtol=1e-7)


@pytest.mark.parametrize("rho", [0.01, 0.1])
def test_word_counts_keep_their_digits_under_decay(rho):
    """Long decay: totals stay the sums of the cells, and the average stays near the estimate."""
    X, y = tiny.data("words", n=500)
    state = tiny.begin("words", X, y, average=True)
    trained = tiny.learner(state, NLL(), constant(rho), 500)
    for _ in range(20):
        tiny.learn(trained, X, y)
    block = trained.state.features
    np.testing.assert_allclose(block.total, expected_counts(block).sum(axis=0), rtol=1e-9)
    _, estimate, _ = tiny.parameters(tiny.begin("words", X, y))
    np.testing.assert_allclose(tiny.parameters(trained.model)[1], estimate, rtol=0.1)


# --- words that come later ------------------------------------------------------------------------


def grown(trained, *sizes):
    """A copy of the learner, whose vocabulary grows to each of the sizes."""
    trained = copy.deepcopy(trained)
    for size in sizes:
        trained.restart(models.with_features(trained.state, size))
    return trained


def after_a_stream(loss, average, init, rho, new_class):
    """A learner that knows three words, of which the last has never occurred."""
    X, y = tiny.data("words", n=120)
    X[:, 2] = 0.0
    state = tiny.begin("words", X, y, init=init, average=average, prior=Dirichlet(0.7))
    trained = tiny.learner(state, LOSSES[loss], constant(rho), 120)
    tiny.learn(trained, X, y)
    if loss == "nll" and rho > 0.1:
        assert trained.state.features.lazy[words.SCALE] > 1e-3 > (1 - rho) ** 120, "not folded"
    if new_class:
        order = np.array([0, -1, 1, 2])
        trained.restart(models.with_classes(trained.state, order, 0.1))
        tiny.learn(trained, X, np.where(y > 0, y + 1, y), np.arange(60))
    return trained


@pytest.fixture(params=["nll", "ncll", "hinge"])
def streamed(request, average, init, rho, new_class):
    return after_a_stream(request.param, average, init, rho, new_class)


every_stream = pytest.mark.parametrize(
    ("average", "init", "rho", "new_class"),
    [*itertools.product([True, False], ["generative", "prior"], [0.01, 0.3], [True, False])],
)


@every_stream
def test_a_new_word_is_one_that_never_occurred(streamed):
    """Cell by cell, in the state and in its average; and totals are the sums of the cells."""
    wide = grown(streamed, 5)
    for one, other in ((streamed.state, wide.state), (streamed.model, wide.model)):
        old, new = expected_counts(one.features), expected_counts(other.features)
        np.testing.assert_allclose(new[:3], old, rtol=1e-12)
        np.testing.assert_allclose(new[3:], old[[2, 2]], rtol=1e-9)
        np.testing.assert_allclose(other.features.total, new.sum(axis=0), rtol=1e-9)
        assert other.features.alpha_total == pytest.approx(5 * 0.7)


@every_stream
def test_growing_twice_is_growing_once(streamed):
    """And training goes on alike."""
    K = models.n_classes(streamed.state)
    X, y = tiny.data("words", n=40, d=9, K=K, seed=1)
    once, twice = grown(streamed, 9), grown(streamed, 4, 5, 9)
    for learnt in (once, twice):
        tiny.learn(learnt, X, y)
    for one, other in ((once.state, twice.state), (once.model, twice.model)):
        cells = expected_counts(other.features)
        np.testing.assert_allclose(cells, expected_counts(one.features), rtol=1e-12)
        np.testing.assert_allclose(other.features.total, cells.sum(axis=0), rtol=1e-9)


def test_growing_leaves_the_words_alone():
    """Memory that is kept for growth is not that of another model."""
    trained = after_a_stream("ncll", True, "prior", 0.01, False)
    wide = grown(trained, 4)
    before = expected_counts(wide.state.features).copy()
    wider, apart = copy.deepcopy(wide), grown(wide, 40)
    for n_features in (5, 6, 7, 40):
        wider.restart(models.with_features(wider.state, n_features))
    np.testing.assert_array_equal(expected_counts(wide.state.features), before)
    X, y = tiny.data("words", n=20, d=40)
    for learnt in (wider, apart):
        tiny.learn(learnt, X, y)
    np.testing.assert_allclose(wider.state.features.counts, apart.state.features.counts, rtol=1e-12)
    np.testing.assert_array_equal(expected_counts(wide.state.features), before)
