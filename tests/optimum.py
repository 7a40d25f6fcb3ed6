"""The exact optimum of the penalised NCLL of Gaussian naive Bayes, by L-BFGS: what to compare with.

Written from the formula, not from the library: only the prior's resolved centre is taken from it.
"""

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

import discem


def _unpack(vector, K, d):
    b, m, log_v = vector[:K], vector[K : K + K * d], vector[K + K * d :]
    return b, m.reshape(K, d), np.exp(log_v.reshape(K, d)), log_v.reshape(K, d)


def objective(vector, Z, onehot, prior, alpha):
    """Sum of NCLL plus penalty and its gradient; Z is in the units of the prior."""
    d, K = Z.shape[1], onehot.shape[1]
    b, m, v, log_v = _unpack(vector, K, d)
    log_pi = log_softmax(b)
    a = log_pi - 0.5 * ((Z**2) @ (1 / v).T - 2 * Z @ (m / v).T + (m**2 / v + log_v).sum(axis=1))
    log_p = log_softmax(a, axis=1)
    w = onehot - np.exp(log_p)  # (n, K)
    off, ratio = m - prior.mean, prior.variance / v
    value = -(onehot * log_p).sum() - alpha * log_pi.sum()
    value += 0.5 * (prior.nu_mean * off**2 / v + prior.nu_variance * (log_v + ratio)).sum()
    g_b = -(w.sum(axis=0) + alpha) + softmax(b) * (w.sum() + alpha * K)
    g_m = -(w.T @ Z - w.sum(axis=0)[:, None] * m) / v + prior.nu_mean * off / v
    spread = w.T @ Z**2 - 2 * m * (w.T @ Z) + w.sum(axis=0)[:, None] * m**2
    g_v = -0.5 * (spread / v - w.sum(axis=0)[:, None])
    g_v += 0.5 * (prior.nu_variance * (1 - ratio) - prior.nu_mean * off**2 / v)
    return value, np.concatenate([g_b, g_m.ravel(), g_v.ravel()])


def vector_of(model):
    """The parameters of a fitted GaussianNB as a vector of `objective`."""
    state, columns = model.learner_.model, varying(model)
    m, v = (state.features.values[name][columns].T for name in ("mean", "variance"))
    return np.concatenate([np.log(state.classes.counts), m.ravel(), np.log(v.ravel())])


def varying(model):
    """The columns that take part: constant ones have no units."""
    return np.isfinite(model.learner_.model.features.fixed["scale"])


def setting(model, X, y):
    """What `objective` needs beside a vector: rows in the prior's units, labels, the prior."""
    features, columns = model.learner_.model.features, varying(model)
    prior = features.prior
    prior = prior._replace(mean=prior.mean[columns], variance=prior.variance[columns])
    Z = ((X - features.fixed["shift"]) / features.fixed["scale"])[:, columns]
    return Z, (y[:, None] == model.classes_).astype(float), prior, 1.0


def penalised_ncll(model, X, y):
    """Return (F at the model, F at the generative start, F at the optimum)."""
    start = discem.GaussianNB(
        **(model.get_params() | {"max_iter": 1, "step": discem.constant(0.0)})
    )
    args = setting(start.fit(X, y), X, y)
    vector = vector_of(start)
    for _ in range(3):  # restarts clear L-BFGS's memory of the early, curved part
        found = minimize(
            objective, vector, args, "L-BFGS-B", jac=True,
            options={"maxiter": 5000, "maxfun": 10000, "ftol": 1e-13, "gtol": 1e-6, "maxcor": 30},
        )  # fmt: skip
        vector = found.x
    return objective(vector_of(model), *args)[0], objective(vector_of(start), *args)[0], found.fun
