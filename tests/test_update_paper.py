"""The update to the letter: the paper's equations and the interior step, in plain Python.

Each path is many steps long, and each is derived again here from expected statistics (N, S, V).
"""

import numpy as np
import pytest
import tiny
from scipy.special import logsumexp
from scipy.stats import norm

from discem import Check, Dirichlet, Interior, NormalGamma, PaperNormalGamma
from discem.families import gaussian, words

INTERIOR = Interior(0.5, 0.03)


def weights_of(loss, joint, k):
    """Minus the derivative of the loss by the scores: clamped minus free."""
    own = np.eye(len(joint))[k]
    if loss == "nll":
        return own
    if loss == "ncll":
        return own - np.exp(joint - logsumexp(joint))
    wrong = np.where(own > 0, -np.inf, joint).argmax()
    return (own - np.eye(len(joint))[wrong]) * (joint[k] - joint[wrong] < 1)


# --- the paper's check-step -----------------------------------------------------------------------


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
    n = 50.0
    N, S, V = np.ones(2), np.zeros(2), np.ones(2)
    state = tiny.begin(
        "gaussian", x[:, None], (y > 0) * 1, prior=PaperNormalGamma(), init="prior", K=2
    )
    checked = 0
    for t in range(1, 201):
        rho, xt, yt = 1 / (1 + lam * t), x[t - 1], int(y[t - 1] > 0)
        mean, sigma = S / N, np.sqrt(V / N - (S / N) ** 2)
        w = weights_of(loss, np.log(N / N.sum()) + norm.logpdf(xt, mean, sigma), yt)
        N = N + rho * w + rho / n
        S = (1 - rho / n) * S + rho * xt * w
        V = (1 - rho / n) * V + rho * xt**2 * w + rho / n
        checked += (rho / n > N).sum() + (S**2 / np.maximum(N, rho / n) + rho / n > V).sum()
        N = np.maximum(N, rho / n)
        V = np.maximum(V, S**2 / N + rho / n)
        state, _, _ = tiny.step(state, np.array([[xt]]), [yt], loss, rho, n, Check())
        m, v = gaussian.moments(state.features)
        got, expected = [state.classes.shares, m[:, 0], v[:, 0]], [N / N.sum(), S / N, V / N]
        expected[2] = expected[2] - expected[1] ** 2
        np.testing.assert_allclose(got, expected, rtol=1e-6, err_msg=f"step {t}")
    assert checked > 0 or lam == 1.0


@pytest.mark.parametrize("loss", ["ncll", "hinge"])
@pytest.mark.parametrize("alpha", [1.0, np.log(6)])
def test_the_check_step_of_the_pseudo_code(loss, alpha):
    """The supplement's MNB pseudo-code, as Table 1 defines it, over 200 documents."""
    X, y = tiny.data("words", n=200, d=6)
    n, lam, W, K = 40.0, 0.001, 6, 3
    N, C, M, gamma = np.full((K, W), alpha), np.ones(K), np.full(K, alpha * W), 0.0
    lifted = 0
    for t, (d, k) in enumerate(zip(X, y, strict=True), 1):
        rho = 1 / (1 + lam * t)
        joint = np.log(C + gamma) + np.log(N + gamma) @ d - d.sum() * np.log(M + gamma * W)
        w = weights_of(loss, joint, k)
        gamma = gamma + alpha * rho / n
        raw = N + rho * np.outer(w, d)
        lifted += (raw < 0).sum()
        M = M + (np.maximum(raw, 0) - N).sum(axis=1)
        N = np.maximum(raw, 0)
        C = np.maximum(C + rho * w, 0)
    assert lifted > 20
    state = tiny.begin("words", X, y, prior=Dirichlet(alpha), alpha=alpha, init="prior")
    after, _ = tiny.run(state, X, y, loss, 1 / (1 + lam * np.arange(1, 201)), n, Check())
    np.testing.assert_allclose(words.expected_counts(after.features).T, N + gamma, rtol=1e-7)
    np.testing.assert_allclose(after.features.values["total"], M + gamma * W, rtol=1e-7)
    np.testing.assert_allclose(after.classes.counts, C + gamma, rtol=1e-7)


# --- the interior step ----------------------------------------------------------------------------


def longest(inside):
    """The largest part f of a step such that all of [0, f] is inside a convex set."""
    if inside(1.0):
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if inside(middle) else (low, middle)
    return low


def at_least(value, change, share):
    return value + max(change, -share * value)


@pytest.mark.parametrize("loss", ["nll", "ncll", "hinge"])
@pytest.mark.parametrize("rho", [0.02, 0.5])
def test_the_interior_step_of_gaussians(loss, rho):
    """Rows one by one, some cells missing: damped, decayed, pulled, and shortened by factor."""
    X, y = tiny.data("gaussian", n=40)
    prior, n, share, shortened = NormalGamma(0.7, 3.0), 40.0, 0.5, 0
    state = tiny.begin("gaussian", X, y, prior=prior)
    X[::5, 1] = np.nan
    m, v = (array.T.copy() for array in gaussian.moments(state.features))  # (d, K)
    C, alpha, mass = state.classes.counts.copy(), state.classes.alpha, state.features.mass.copy()
    nu, scale, shift = state.classes.nu, *(state.features.fixed[k] for k in ("scale", "shift"))
    m0 = shift + scale * state.features.prior.mean
    v0 = scale**2 * state.features.prior.variance
    for x, k in zip(X, y, strict=True):
        p, seen = C / C.sum(), np.flatnonzero(~np.isnan(x))
        joint = np.log(p) + norm.logpdf(x[:, None], m, np.sqrt(v))[seen].sum(axis=0)
        W = rho * weights_of(loss, joint, k)
        z = (x[:, None] - m) ** 2 / v
        own = ((0.5 + 0.5 * z**2) / (mass[:, None] * p))[seen].sum(axis=0)
        W = W / (1.0 + 0.03 * (np.abs(W) * own).sum())
        decay, pull = W.sum(), rho / n
        for d in range(3):
            gained = 0.0
            for c in range(3):
                N, w, off = mass[d] * p[c], W[c] if d in seen else 0.0, m0[d] - m[d, c]
                to_mean, to_v = min(pull * 0.7, N / 2), min(pull * 3.0, N / 2)
                xd = x[d] if d in seen else 0.0
                dN = w - decay * N
                dS = w * xd - decay * N * m[d, c] + to_mean * off
                dV = w * xd**2 - decay * N * (v[d, c] + m[d, c] ** 2)
                dV += to_v * (v0[d] - v[d, c]) + to_mean * (off**2 + 2 * m[d, c] * off)

                def landed(f, N=N, d=d, c=c, dN=dN, dS=dS, dV=dV):
                    new = N + f * dN
                    mean = (N * m[d, c] + f * dS) / new
                    return new, mean, (N * (v[d, c] + m[d, c] ** 2) + f * dV) / new - mean**2

                def inside(f, N=N, v=v[d, c], landed=landed):
                    new, _, variance = landed(f)
                    return new >= (1 - share) * N and variance >= (1 - share) * v

                f = longest(inside)
                shortened += f < 1
                new, m[d, c], v[d, c] = landed(f)
                gained += w + (new - N - dN if f < 1 else 0.0)
            mass[d] = at_least(mass[d], gained - decay * mass[d], share)
        change = W - decay * C + pull * (alpha - nu * C)
        C = np.array([at_least(*each, share) for each in zip(C, change, strict=True)])
        state, _, _ = tiny.step(state, x[None], [k], loss, rho, n, INTERIOR)
        got_m, got_v = gaussian.moments(state.features)
        np.testing.assert_allclose(got_m.T, m, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(got_v.T, v, rtol=1e-7)
        np.testing.assert_allclose(state.classes.counts, C, rtol=1e-9)
        np.testing.assert_allclose(state.features.mass, mass, rtol=1e-9)
    assert shortened > 0 or rho < 0.1


@pytest.mark.parametrize("loss", ["nll", "ncll", "hinge"])
@pytest.mark.parametrize("rho", [0.05, 0.7])
def test_the_interior_step_of_words(loss, rho):
    """Documents one by one: decay and prior act on all words first, then each word is bounded."""
    X, y = tiny.data("words", n=60, d=5)
    state, n, share, shortened = tiny.begin("words", X, y), 60.0, 0.5, 0
    cells, C = words.expected_counts(state.features), state.classes.counts.copy()
    alpha, own_alpha, nu = 1.0, state.classes.alpha, state.classes.nu
    X[::7] = 0.0
    for x, k in zip(X, y, strict=True):
        total = cells.sum(axis=0)
        joint = np.log(C / C.sum()) + x @ np.log(cells / total)
        W, pull = rho * weights_of(loss, joint, k), rho / n
        reach = np.zeros(3)
        for c in range(3):
            after = cells[:, c] + abs(W[c]) * x
            square = (x**2 / after).sum() - x.sum() ** 2 / (total[c] + abs(W[c]) * x.sum())
            reach[c] = max(square, 0.0)
        W = W / (1.0 + 0.03 * (np.abs(W) * reach).sum())
        decay = W.sum()
        cells = cells * (1.0 - min(decay, share)) + pull * alpha
        for c in range(3):
            shortened += (W[c] * x < -share * cells[:, c]).any()
            cells[:, c] += np.maximum(W[c] * x, -share * cells[:, c])
        change = W - decay * C + pull * (own_alpha - nu * C)
        C = np.array([at_least(*each, share) for each in zip(C, change, strict=True)])
        state, _, _ = tiny.step(state, x[None], [k], loss, rho, n, INTERIOR)
        np.testing.assert_allclose(words.expected_counts(state.features), cells, rtol=1e-9)
        np.testing.assert_allclose(state.features.values["total"], cells.sum(axis=0), rtol=1e-9)
        np.testing.assert_allclose(state.classes.counts, C, rtol=1e-9)
    assert shortened > 0 or loss == "nll" or rho < 0.1
