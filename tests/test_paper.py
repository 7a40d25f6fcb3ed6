"""The paper's algorithms against plain re-derivations of their equations, a row at a time."""

import itertools
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import gammaln, logsumexp, softmax
from sklearn import naive_bayes

from discem.exceptions import InputError, OptionError
from discem.paper import gaussian, inside, multinomial, printed, sampler, topics

LOSSES = ("nll", "ncll", "hinge")
SHARE, DAMPING = 0.5, 0.03


def weights(loss, a, y):
    """Table 1."""
    e = np.eye(len(a))
    if loss == "nll":
        return e[y]
    if loss == "ncll":
        return e[y] - softmax(a)
    wrong = np.where(np.arange(len(a)) == y, -np.inf, a).argmax()
    return (e[y] - e[wrong]) * (a[y] - a[wrong] < 1)


def orders(n, epochs, seed):
    rng = np.random.RandomState(seed)
    return np.concatenate([rng.permutation(n) for _ in range(epochs)])


def assert_counts(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


# --- Gaussian -------------------------------------------------------------------------------------


class Toy:
    """Section 4.1 in raw sums: one (N, S, V) for each class and feature."""

    def __init__(self, K, d, n, loss, check, prior):
        self.C, self.M = np.ones(K), np.full(d, float(K))
        self.loss, self.n, self.check = loss, n, check
        self.paper = prior is None
        self.nu_m, self.nu_v, centre = prior or (1.0, 1.0, np.ones(d))
        self.m, self.v, self.v0 = np.zeros((K, d)), np.tile(centre, (K, 1)), centre
        self.average, self.total = [np.zeros(K), np.zeros((K, d)), np.zeros((K, d))], 0.0

    def step(self, t, x, y, rho):
        C, m, v = self.C, self.m, self.v
        seen, x = ~np.isnan(x), np.nan_to_num(x)
        N = np.outer(C / C.sum(), self.M)
        S, V = N * m, N * (v + m**2)
        square = (x - m) ** 2 / v
        a = np.log(C / C.sum()) - 0.5 * ((square + np.log(2 * np.pi * v)) * seen).sum(axis=1)
        w = rho * weights(self.loss, a, y)
        if not self.check and self.loss != "nll":
            leverage = ((0.5 + 0.5 * square**2) / N * seen).sum(axis=1)
            w = w / (1 + DAMPING * (abs(w) * leverage).sum())
        decay, pull = w.sum(), rho / self.n
        r = np.outer(w, seen)
        step = np.stack([r, r * x, r * x**2]) - decay * np.stack([N, S, V])
        if self.paper:
            step += pull * np.stack([np.ones_like(N), -S, 1 - V])
        else:
            to_m, to_v = np.minimum(pull * self.nu_m, N / 2), np.minimum(pull * self.nu_v, N / 2)
            dS = -to_m * m  # the centre of the means is 0
            step += np.stack([0 * N, dS, to_v * (self.v0 - v) + to_m * m**2 + 2 * m * dS])
        new = np.stack([N, S, V]) + step
        if self.check:
            new[0] = np.maximum(new[0], pull)
            new[2] = np.maximum(new[2], new[1] ** 2 / new[0] + pull)
        else:
            for k, j in np.ndindex(N.shape):
                new[:, k, j] = longest(np.array([N, S, V])[:, k, j], step[:, k, j])
        N2, S2, V2 = new
        low = pull if self.check else (1 - SHARE) * self.M
        lost = (N2 - N - step[0]).sum(axis=0)
        more = w.sum() * seen - decay * self.M + pull * self.paper * len(C)
        self.M = np.maximum(self.M + lost + more, low)
        low = pull if self.check else (1 - SHARE) * C
        nu = 0.0 if self.paper else 1.0
        self.C = np.maximum(C + w - decay * C + pull * (1 - nu * C), low)
        self.m, self.v = S2 / N2, V2 / N2 - (S2 / N2) ** 2
        self.total += t**2
        for mean, part in zip(self.average, (self.C, self.m, self.v), strict=True):
            mean += t**2 / self.total * (part - mean)


def longest(mu, step):
    """The longest part of a step, by bisection, that takes half of N and of v at most."""

    def kept(f):
        N, S, V = mu[:, None] + step[:, None] * f
        least = (1 - SHARE) * np.array([mu[0], mu[2] / mu[0] - (mu[1] / mu[0]) ** 2])
        return (least[0] <= N) & (least[1] <= V / N - (S / N) ** 2)

    low, high = 0.0, 1.0
    for _ in range(6):  # the first of a hundred parts that is outside, and so on within it
        parts = np.linspace(low, high, 101)
        outside = ~kept(parts)
        if not outside.any():
            return mu + high * step
        first = max(outside.argmax(), 1)
        low, high = parts[first - 1], parts[first]
    return mu + low * step


@pytest.fixture(params=["complete", "missing"])
def numbers(request):
    rng = np.random.default_rng(1)
    y = rng.integers(0, 3, 25)
    X = rng.normal(size=(25, 2)) * [1.0, 2.0] + y[:, None] * [1.0, -1.0]
    if request.param == "missing":
        X[rng.random(X.shape) < 0.3] = np.nan
    return X, y


@pytest.mark.parametrize("prior", ["paper", (2.0, 30.0)])
@pytest.mark.parametrize("projection", ["check", "interior"])
@pytest.mark.parametrize("loss", LOSSES)
def test_gaussian_follows_table_1_in_raw_sums(numbers, loss, projection, prior):
    X, y = numbers
    options = {"loss": loss, "prior": prior, "projection": projection, "lam": 0.3, "epochs": 2}
    model = gaussian.train(X, y, seed=5, average=True, **options)
    U = (X - model.shift) / model.scale
    own = None
    if prior != "paper":
        np.testing.assert_allclose(np.nanmean(U, axis=0), 0.0, atol=1e-12)
        np.testing.assert_allclose(np.nanstd(U, axis=0), 1.0)
        groups = [U[y == k] for k in range(3)]
        cells = sum((~np.isnan(g)).sum(axis=0) for g in groups)
        centre = sum(np.nansum((g - np.nanmean(g, axis=0)) ** 2, axis=0) for g in groups) / cells
        own = (*prior, centre)
    toy = Toy(3, 2, 25, loss, projection == "check", own)
    for t, i in enumerate(orders(25, 2, seed=5), start=1):
        toy.step(t, U[i], y[i], 1 / (1 + 0.3 * t))
    for part in ("C", "M", "m", "v"):
        assert_counts(getattr(model.state, part), getattr(toy, part))
    C, m, v = toy.average
    assert_counts(model.class_prior_, C / C.sum())
    assert_counts(model.mean_, model.shift + model.scale * m)
    assert_counts(model.var_, model.scale**2 * v)
    last = gaussian.train(X, y, seed=5, average=False, **options)
    assert_counts(last.mean_, model.shift + model.scale * toy.m)


@pytest.mark.parametrize("step", [(-0.9, 0.3, 0.1), (-0.3, 1.5, -0.4), (2.0, -3.0, -0.9)])
def test_interior_fraction_is_the_first_crossing(step):
    f = inside.interior_fraction(SHARE, *step)
    mu = np.array([1.0, 0.0, 1.0])
    np.testing.assert_allclose(mu + f * np.array(step), longest(mu, np.array(step)), atol=1e-9)
    assert inside.interior_fraction(SHARE, 0.1, 0.1, 0.1) == 1.0


def test_gaussian_scores_are_the_joint(numbers):
    X, y = numbers
    model = gaussian.train(X, y, prior="data", epochs=1, seed=0)
    z = (X[:, None] - model.mean_) ** 2 / model.var_ + np.log(2 * np.pi * model.var_)
    expected = np.log(model.class_prior_) - 0.5 * np.nansum(z, axis=2)
    np.testing.assert_allclose(model.scores(X), expected)
    log_proba = model.predict_log_proba(X)
    np.testing.assert_allclose(logsumexp(log_proba, axis=1), 0.0, atol=1e-12)
    assert (model.predict(X) == log_proba.argmax(axis=1)).all()


def test_closed_form_of_a_weak_prior_is_plain_naive_bayes():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), np.repeat(["a", "b"], 30)
    model = gaussian.train(X, y, prior=(1e-9, 1e-9), start="data", epochs=0)
    plain = naive_bayes.GaussianNB(var_smoothing=0).fit(X, y)
    np.testing.assert_allclose(model.predict_log_proba(X), plain.predict_log_proba(X), rtol=1e-6)


def test_a_constant_feature_says_nothing():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 2)), np.arange(30) % 2
    constant = np.column_stack([X, np.full(30, 7.0)])
    one, other = (gaussian.train(rows, y, prior="data", seed=0) for rows in (X, constant))
    np.testing.assert_allclose(other.scores(constant), one.scores(X))
    assert other.history_[-1]["nll"] == pytest.approx(one.history_[-1]["nll"])


# --- words ----------------------------------------------------------------------------------------


@pytest.fixture
def documents():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 30)
    X = rng.poisson(0.5 + 1.5 * (np.arange(8) % 3 == y[:, None])).astype(float)
    X[3] = 0.0  # a document without words
    X[5, 2] = 2.5  # a weight, not a count
    return X, y


def table_1(X, y, loss, alpha, lam, order, check, K=3):
    """The counts of words and of classes after all steps, and their averages."""
    n, W = X.shape
    cells, own, classes, granted = np.full((W, K), alpha), np.full((W, K), alpha), np.ones(K), 0.0
    averages = [np.zeros((W, K)), np.zeros(K)]
    for t, i in enumerate(order, start=1):
        rho, d = 1 / (1 + lam * t), X[i]
        total = cells.sum(axis=0)
        a = np.log(classes / classes.sum()) + d @ np.log(cells) - d.sum() * np.log(total)
        w = rho * weights(loss, a, y[i])
        if not check and loss != "nll":
            full = cells + np.outer(d, abs(w))
            square = (d[:, None] ** 2 / full).sum(axis=0)
            leverage = np.maximum(square - d.sum() ** 2 / (total + d.sum() * abs(w)), 0)
            w = w / (1 + DAMPING * (abs(w) * leverage).sum())
        decay, gift = w.sum(), alpha * rho / n
        keep = max(1 - decay, 1e-12 if check else 1 - SHARE)
        own, cells = own * keep, cells * keep + gift
        change = np.outer(d, w)
        change = np.maximum(change, -own if check else -SHARE * cells)
        own, cells = own + change, cells + change
        granted += gift
        low = granted if check else (1 - SHARE) * classes
        classes = np.maximum(classes + w - decay * classes + gift, low)
        for mean, part in zip(averages, (cells, classes), strict=True):
            mean += t**2 / (np.arange(1, t + 1) ** 2).sum() * (part - mean)
    return cells, classes, averages


@pytest.mark.parametrize("lam", [1e-2, 1.0])
@pytest.mark.parametrize("projection", ["check", "interior"])
@pytest.mark.parametrize("loss", LOSSES)
def test_multinomial_follows_table_1(documents, loss, projection, lam):
    X, y = documents
    options = {"loss": loss, "prior": "P2", "lam": lam, "epochs": 2, "projection": projection}
    order = orders(30, 2, seed=7)
    cells, classes, averages = table_1(X, y, loss, np.log(8), lam, order, projection == "check")
    model = multinomial.train(X, y, seed=7, **options)
    for found, expected in zip(model.counts(), (cells, classes), strict=True):
        assert_counts(found, expected)
    joint = np.log(classes / classes.sum()) + X @ np.log(cells / cells.sum(axis=0))
    np.testing.assert_allclose(model.scores(sp.csr_matrix(X)), joint)
    model = multinomial.train(X, y, seed=7, average=True, **options)
    for found, expected in zip(model.counts(), averages, strict=True):
        assert_counts(found, expected)


def by_the_letter(X, y, loss, alpha, lam, order, anew, K=3):
    """Algorithms 2 and 4 of the supplement, with the slips put right."""
    n, W = X.shape
    N, M, C = np.full((K, W), alpha), np.full(K, alpha * W), np.ones(K)
    gamma = 0.0

    def scores(d):
        return np.log(C + gamma) + np.log(N + gamma) @ d - d.sum() * np.log(M + gamma * W)

    for t, i in enumerate(order, start=1):
        d, rho = X[i], 1 / (1 + lam * t)
        gamma += alpha * rho / n
        a, moving = scores(d), np.ones(K, dtype=bool)
        if loss == "hinge":
            wrong = np.where(np.arange(K) == y[i], -np.inf, a).argmax()
            if a[y[i]] - a[wrong] > 1:
                continue
            moving = np.isin(np.arange(K), [y[i], wrong])
        w = (np.eye(K)[y[i]] - softmax(a)) * moving
        for j in np.flatnonzero(d):
            old = N[:, j].copy()
            N[:, j] = np.maximum(old + rho * d[j] * w, 0)
            M += N[:, j] - old
            if anew:
                w = (np.eye(K)[y[i]] - softmax(scores(d))) * moving
        C = np.maximum(C + rho * w, 0)
    return (N + gamma).T, C + gamma


@pytest.mark.parametrize("reading", ["word", "document"])
@pytest.mark.parametrize("loss", ["ncll", "hinge"])
def test_pseudo_code_to_the_letter(documents, loss, reading):
    X, y = documents
    order = orders(30, 2, seed=1)
    model = printed.train(X, y, loss=loss, reading=reading, lam=0.1, epochs=2, seed=1)
    expected = by_the_letter(X, y, loss, 1.0, 0.1, order, reading == "word")
    for found, counts in zip(model.counts(), expected, strict=True):
        assert_counts(found, counts)
    assert_counts(model.state.M, model.state.N.sum(axis=0))


# --- topics ---------------------------------------------------------------------------------------

P = np.random.default_rng(3).dirichlet(np.ones(6), size=(2, 3)).transpose(2, 0, 1)  # words, T, K
DOCUMENT = np.array([0, 2, 5]), np.array([1.0, 2.0, 1.0])


def enumerated(p, words, x, alpha):
    """p(d | y) and the expected tokens, exactly: a sum over the topics of all words."""
    _, T, K = p.shape
    evidence, expected = np.zeros(K), np.zeros((len(words), T, K))
    for z in itertools.product(range(T), repeat=len(words)):
        n = np.bincount(z, minlength=T)
        prior = np.exp(
            gammaln(T * alpha)
            - gammaln(T * alpha + n.sum())
            + (gammaln(alpha + n) - gammaln(alpha)).sum()
        )
        joint = prior * np.prod([p[w, t] ** c for w, t, c in zip(words, z, x, strict=True)], axis=0)
        evidence += joint
        for j, t in enumerate(z):
            expected[j, t] += joint * x[j]
    return evidence, expected / evidence


def sampled(seed, sweeps=10, p=P, words=DOCUMENT[0]):
    return sampler.gibbs(p, np.array([0, 3]), words, DOCUMENT[1], 0.5, sweeps, seed)


def test_gibbs_estimates_are_those_of_enumeration():
    evidence, expected = enumerated(P, *DOCUMENT, 0.5)
    draws = np.array([np.exp(sampled(seed)[0][0]) for seed in range(4000)])
    error = draws.std(axis=0) / len(draws) ** 0.5
    assert (abs(draws.mean(axis=0) - evidence) < 4 * error).all()  # unbiased
    assert (draws.std(axis=0) < 0.5 * evidence).all()  # and of use
    _, tokens = sampled(0, sweeps=20_000)
    np.testing.assert_allclose(tokens, expected, atol=0.03)
    np.testing.assert_allclose(tokens.sum(axis=1), np.tile(DOCUMENT[1][:, None], 3))


def test_gibbs_depends_on_the_document_alone():
    rng = np.random.default_rng(0)
    X = sp.random_array((5, 6), density=0.5, rng=rng, format="csr")
    X.data = rng.integers(1, 4, X.nnz).astype(float)
    scores, tokens = sampler.gibbs(P, X.indptr, X.indices, X.data, 0.5, 10, 1)
    for i in range(5):
        own = X[[i]]
        words, places = np.unique(own.indices, return_inverse=True)
        alone = sampler.gibbs(P[words], own.indptr, places, own.data, 0.5, 10, 1, words=words)
        np.testing.assert_array_equal(alone[0][0], scores[i])
        np.testing.assert_array_equal(alone[1], tokens[X.indptr[i] : X.indptr[i + 1]])
    other, _ = sampler.gibbs(P, X.indptr, X.indices, X.data, 0.5, 10, 2)
    assert (other != scores).any()


def test_one_topic_is_exact():
    p = P[:, :1]
    scores, tokens = sampled(0, p=p)
    np.testing.assert_allclose(scores[0], DOCUMENT[1] @ np.log(p[DOCUMENT[0], 0]))
    np.testing.assert_allclose(tokens[:, 0], np.tile(DOCUMENT[1][:, None], 3))


@pytest.mark.parametrize("loss", LOSSES)
def test_topics_follow_table_1_with_the_sampled_statistics(documents, loss):
    X, y = documents
    n, W, T, K, eta, lam = 30, 8, 2, 3, 0.05, 0.5
    rng = np.random.RandomState(4)
    seed = rng.randint(2**31 - 1)
    own, cells = np.full((W, T, K), eta), np.full((W, T, K), eta)
    classes, granted = np.ones(K), 0.0
    for t, i in enumerate(rng.permutation(n), start=1):
        rho, words = 1 / (1 + lam * t), np.flatnonzero(X[i])
        p, ends = cells / cells.sum(axis=0), np.array([0, len(words)])
        a, s = sampler.gibbs(p, ends, words, X[i, words], 0.5, 10, seed)
        w = rho * weights(loss, a[0] + np.log(classes / classes.sum()), y[i])
        decay, gift = w.sum(), eta * rho / n
        own, cells = own * (1 - decay), cells * (1 - decay) + gift
        change = np.zeros_like(own)
        change[words] = np.maximum(w * s, -own[words])
        own, cells = own + change, cells + change
        granted += gift
        classes = np.maximum(classes + w - decay * classes + gift, granted)
    model = topics.train(X, y, loss=loss, lam=lam, epochs=1, seed=4)
    assert_counts(model.topics_, (cells / cells.sum(axis=0)).transpose(2, 1, 0))
    assert_counts(np.exp(model.class_log_prior_), classes / classes.sum())


# --- what all share -------------------------------------------------------------------------------


def trained(module, documents, **options):
    X, y = documents
    return module.train(X, np.array(["x", "y", "z"])[y], lam=0.1, **options)


MODULES = [gaussian, multinomial, printed, topics]


@pytest.mark.parametrize("module", MODULES)
@pytest.mark.parametrize("loss", ["ncll", "hinge"])
def test_records_are_means_over_the_rows(module, documents, loss):
    X, y = documents
    rows = X if module is gaussian else sp.csr_matrix(X)
    seen = []
    model = trained(
        module, documents, loss=loss, epochs=2, seed=0,
        callback=lambda model, record: seen.append(record["epoch"]),
    )  # fmt: skip
    assert seen == [1, 2]
    names = ["loss", "nll", "ncll", "hinge", "accuracy"]
    names += ["perplexity"] * (module is not gaussian)
    fields = ["epoch", *names, "step", "shortened", "seconds"]
    assert list(model.history_[0]) == fields
    assert model.history_[-1]["step"] == 1 / (1 + 0.1 * 60)
    found = model.measure(rows, np.array(["x", "y", "z"])[y])
    assert list(found) == names
    joint, own = model.scores(rows), np.arange(30)
    others = np.where(np.arange(3) == y[:, None], -np.inf, joint).max(axis=1)
    expected = {
        "nll": -joint[own, y].mean(),
        "ncll": -model.predict_log_proba(rows)[own, y].mean(),
        "hinge": np.maximum(0, 1 - joint[own, y] + others).mean(),
        "accuracy": model.score(rows, np.array(["x", "y", "z"])[y]),
    }
    expected["loss"] = expected[loss]
    if module is not gaussian:
        expected["perplexity"] = np.exp(-logsumexp(joint, axis=1).sum() / X.sum())
    assert found == pytest.approx(expected)


@pytest.mark.parametrize("module", MODULES)
def test_the_seed_decides(module, documents):
    X = documents[0]
    one, same, other = (trained(module, documents, epochs=2, seed=s).scores(X) for s in (0, 0, 1))
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()
    generator = trained(module, documents, epochs=2, seed=np.random.default_rng(0))
    assert generator.history_


@pytest.mark.parametrize("module", MODULES)
def test_no_epochs_leave_the_start_and_a_callback_may_stop(module, documents):
    start = trained(module, documents, epochs=0)
    assert start.history_ == []
    still = trained(module, documents, epochs=9, callback=lambda *_: True)
    assert len(still.history_) == 1


def test_steps_may_be_a_function(documents):
    X, y = documents
    one = multinomial.train(X, y, lam=0.1, epochs=2, seed=0)
    other = multinomial.train(X, y, lam=lambda t: 1 / (1 + 0.1 * t), epochs=2, seed=0)
    np.testing.assert_array_equal(one.scores(X), other.scores(X))


@pytest.mark.parametrize(
    "module, options, message",
    [
        (gaussian, {"loss": "blend"}, "loss='blend' is unknown"),
        (gaussian, {"prior": "laplace"}, "prior='laplace' is unknown"),
        (gaussian, {"start": "generative"}, "start='generative' is unknown"),
        (multinomial, {"prior": "P3"}, "prior='P3' is unknown"),
        (multinomial, {"projection": "none"}, "projection='none' is unknown"),
        (printed, {"reading": "line"}, "reading='line' is unknown"),
        (printed, {"loss": "nll"}, "pseudo-code"),
        (topics, {"n_topics": 0}, "n_topics=0"),
    ],
)
def test_options_are_checked(module, options, message, documents):
    with pytest.raises(OptionError, match=message):
        module.train(*documents, **options)


def test_rows_and_labels_must_match(documents):
    X, y = documents
    with pytest.raises(InputError, match="X has 30 rows but y has 29"):
        multinomial.train(X, y[:-1])


def test_the_package_is_imported_only_when_asked_for():
    code = "import sys, discem; assert 'discem.paper' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_numba_the_first_call_says_what_to_install():
    code = (
        "import sys; sys.modules['numba'] = None\n"
        "from discem.paper import multinomial\n"
        "try:\n    multinomial.train([[1, 0], [0, 1]], [0, 1])\n"
        "except ImportError as error:\n    print(error)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'discem[paper]'" in found.stdout
