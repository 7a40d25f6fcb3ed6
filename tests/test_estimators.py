"""The estimators as scikit-learn's tools and as users meet them."""

import os
import pickle
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import tiny
from scipy.special import logsumexp
from scipy.stats import norm
from sklearn import naive_bayes
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

from discem import (
    Blend,
    Dirichlet,
    GaussianNB,
    Hinge,
    MultinomialNB,
    NormalGamma,
    constant,
    inverse,
    power,
)
from discem.engines import Data
from discem.estimators._joint import LEAST
from discem.exceptions import InputError
from discem.targets import labels

MODELS = [GaussianNB, MultinomialNB]
every_model = pytest.mark.parametrize("Model", MODELS)
NAMES = np.array(["ash", "birch", "cedar"])


def data(Model, n=150, seed=0):
    """Iris, or documents of three classes; labels are text."""
    rng = np.random.default_rng(seed)
    if Model is GaussianNB:
        X, y = load_iris(return_X_y=True)
        rows = rng.permutation(150)[:n]
        return X[rows], NAMES[y[rows]]
    y = rng.integers(3, size=n)
    p = rng.dirichlet(np.full(12, 0.7), size=3)
    X = np.stack([rng.multinomial(1 + rng.poisson(14), p[k]) for k in y])
    return X.astype(float), NAMES[y]


def digits():
    X, y = load_digits(return_X_y=True)
    rows = np.random.default_rng(0).permutation(len(y))
    return X[rows], y[rows]


def fitted(Model, n=150, **options):
    X, y = data(Model, n)
    return Model(**({"random_state": 0, "max_iter": 5, "tol": None} | options)).fit(X, y), X, y


def same(one, other, X, rtol=0.0):
    np.testing.assert_allclose(
        one.predict_joint_log_proba(X), other.predict_joint_log_proba(X), rtol=rtol, atol=rtol
    )


# --- scikit-learn's own checks --------------------------------------------------------------------

ORDER = "training depends on the order of rows, as in SGDClassifier: see test_weight_is_repetition"


def expected_failures(model):
    failures = {"check_sample_weight_equivalence_on_dense_data": ORDER}
    if isinstance(model, MultinomialNB):
        failures["check_sample_weight_equivalence_on_sparse_data"] = ORDER
        failures["check_class_weight_classifiers"] = (
            "feeds negative numbers to an estimator of counts: see test_class_weight_wins"
        )
    return failures


@parametrize_with_checks(
    [GaussianNB(), MultinomialNB(max_iter=5)],  # this one tries candidates, each of many epochs
    expected_failed_checks=expected_failures,
)
def test_scikit_learn(estimator, check):
    check(estimator)


@every_model
@pytest.mark.parametrize("loss", ["ncll", "nll"])
def test_weight_is_repetition(Model, loss):
    X, y = data(Model)
    w = np.random.default_rng(1).integers(0, 3, size=len(y))
    options = {"loss": loss, "tol": None, "max_iter": 120, "random_state": 0}
    if Model is MultinomialNB:
        options["prior"] = Dirichlet(2.0)  # that of the data is for rows of the usual weight
    weighted = Model(**options).fit(X, y, sample_weight=w)
    repeated = Model(**options).fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    unweighted = Model(**options).fit(X, y)
    p, q, r = (model.predict_proba(X) for model in (weighted, repeated, unweighted))
    assert np.abs(p - q).mean() < 0.3 * np.abs(p - r).mean()
    assert np.abs(p - q).mean() < 0.005


@every_model
def test_rows_of_weight_zero_are_not_there(Model):
    X, y = data(Model)
    w = np.tile([1.0, 2.0, 0.0], 50)
    options = {"max_iter": 3, "random_state": 0}
    same(
        Model(**options).fit(X, y, sample_weight=w),
        Model(**options).fit(X[w > 0], y[w > 0], sample_weight=w[w > 0]),
        X,
    )


@every_model
def test_class_weight_is_sample_weight(Model):
    X, y = data(Model, n=70)
    options = {"random_state": 0, "max_iter": 3}
    by_class = {"ash": 3.0, "birch": 1.0, "cedar": 0.5}
    balanced = {name: len(y) / (3 * np.sum(y == name)) for name in NAMES}
    for class_weight, weights in ((by_class, by_class), ("balanced", balanced)):
        one = Model(class_weight=class_weight, **options).fit(X, y)
        other = Model(**options).fit(X, y, sample_weight=[weights[label] for label in y])
        same(one, other, X, 1e-12)


@pytest.mark.parametrize("loss", ["ncll", "hinge", "nll"])
def test_class_weight_wins(loss):
    """As scikit-learn checks, but on counts: the heavy class takes nearly all rows."""
    rng = np.random.default_rng(0)
    X, y = rng.poisson(3, size=(100, 5)), np.tile([0, 1], 50)
    model = MultinomialNB(loss=loss, class_weight={0: 1000, 1: 0.0001}, random_state=0).fit(X, y)
    assert np.mean(model.predict(X) == 0) > 0.87


# --- tools ----------------------------------------------------------------------------------------


@every_model
def test_clone_and_pickle(Model):
    prior = NormalGamma(nu_mean=1.0) if Model is GaussianNB else Dirichlet(0.5)
    model, X, _ = fitted(Model, prior=prior, step=power(0.1, 10), loss=Hinge(2.0))
    assert clone(model).get_params() == model.get_params()
    assert not hasattr(clone(model), "classes_")
    again = pickle.loads(pickle.dumps(model))
    same(model, again, X)
    assert again.history_ == model.history_


@every_model
def test_grid_search_in_a_pipeline(Model):
    X, y = data(Model)
    step = Model.__name__.lower()
    prior = NormalGamma(nu_variance=5.0) if Model is GaussianNB else Dirichlet(strength=1.0)
    grid = {
        f"{step}__loss": ["ncll", Blend(0.2)],
        f"{step}__prior": ["data", prior],
        f"{step}__step": [power(0.05, 100.0)],
    }
    pipeline = make_pipeline(FunctionTransformer(), Model(max_iter=5, random_state=0))
    search = GridSearchCV(pipeline, grid, cv=2, error_score="raise").fit(X, y)
    assert search.best_score_ > 0.9
    assert search.predict(X).dtype == y.dtype
    assert cross_val_score(pipeline, X, y, cv=3, scoring="neg_log_loss").min() > -0.5


@every_model
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_frames(Model, frame):
    X, y = data(Model)
    names = [f"f{j}" for j in range(X.shape[1])]
    table = frame(dict(zip(names, X.T, strict=True)))
    model = Model(random_state=0, max_iter=3).fit(table, y)
    assert model.feature_names_in_.tolist() == names
    plain = Model(random_state=0, max_iter=3).fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(table), plain.predict_proba(X))
    for wrong in (names[::-1], ["g", *names[1:]]):
        with pytest.raises(ValueError, match="feature names"):
            model.predict(frame(dict(zip(wrong, X.T, strict=True))))


def test_missing_cells_of_frames():
    X, y = data(GaussianNB)
    X[::5, 1] = np.nan
    model = GaussianNB(random_state=0, max_iter=3).fit(X, y)
    cells = {f"f{j}": [None if np.isnan(v) else v for v in X[:, j]] for j in range(4)}
    for table in (pl.DataFrame(cells), pd.DataFrame(cells), pd.DataFrame(cells).astype("Float64")):
        other = GaussianNB(random_state=0, max_iter=3).fit(table, y)
        np.testing.assert_array_equal(model.predict_proba(X), other.predict_proba(table))


def test_sparse_is_dense():
    X, y = data(MultinomialNB)
    dense = MultinomialNB(random_state=0, max_iter=3).fit(X, y)
    for kind in (sp.csr_matrix, sp.csc_array, sp.coo_matrix):
        same(dense, MultinomialNB(random_state=0, max_iter=3).fit(kind(X), y), kind(X))


# --- training, watched ----------------------------------------------------------------------------

FIGURES = {"loss", "nll", "ncll", "hinge", "accuracy"}


@every_model
def test_history(Model, capsys):
    model, *_ = fitted(Model, verbose=2)
    figures = FIGURES | ({"perplexity"} if Model is MultinomialNB else set())
    keys = {"epoch", "step", "shortened", "seconds", "objective"} | figures
    assert model.n_iter_ == len(model.history_) == 5
    assert all(set(record) - {"went_back"} == keys for record in model.history_)
    assert [record["epoch"] for record in model.history_] == [1, 2, 3, 4, 5]
    last = model.history_[-1]
    out, err = capsys.readouterr()
    assert not out
    *epochs, end = err.splitlines()
    assert [line.split()[1] for line in epochs] == ["1/5", "2/5", "3/5", "4/5", "5/5"]
    assert f"epoch 5/5  loss {last['loss']:.5f}" in epochs[-1]
    assert end.startswith("5 epochs in ") and "all epochs were used" in end


@every_model
def test_progress_says_why_training_ended(Model, capsys):
    fitted(Model, verbose=1, callback=lambda model, record: record["epoch"] == 2)
    assert re.match(r"2 epochs in \d+\.\d s, stopped  loss ", capsys.readouterr().err)
    model, *_ = fitted(GaussianNB, verbose=1, max_iter=500, tol=1e-2)
    assert model.n_iter_ < 500
    assert re.match(rf"{model.n_iter_} epochs? in .* s, converged  loss ", capsys.readouterr().err)


@every_model
def test_figures_are_those_of_the_answers(Model):
    model, X, y = fitted(Model)
    codes = np.searchsorted(model.classes_, y)
    data = Data(model._rows(X), labels(codes), np.ones(len(y)))
    now = model.learner_.measure(data, np.arange(len(y)), "now_")
    assert now["now_loss"] == pytest.approx(log_loss(y, model.predict_proba(X)))
    assert now["now_accuracy"] == pytest.approx(model.score(X, y))
    joint = model.predict_joint_log_proba(X)
    assert now["now_nll"] == pytest.approx(-joint[np.arange(len(y)), codes].mean())
    if Model is MultinomialNB:
        bits = -model.score_samples(X).sum() / X.sum()
        assert now["now_perplexity"] == pytest.approx(np.exp(bits))


@every_model
def test_stops_when_the_loss_stands_still(Model):
    assert fitted(Model, max_iter=500, tol=0.05)[0].n_iter_ < 100
    still = fitted(Model, max_iter=50, tol=1e-6, step=constant(0.0), average=False)[0]
    assert still.n_iter_ == 11  # the first epoch and ten that were no better


@every_model
def test_callback_stops(Model):
    seen = []
    model, *_ = fitted(Model, callback=lambda model, record: seen.append(record) or len(seen) == 3)
    assert model.n_iter_ == 3
    assert seen == model.history_


@every_model
def test_early_stopping_keeps_the_best(Model):
    models = []
    model, *_ = fitted(
        Model,
        early_stopping=0.3,
        max_iter=200,
        tol=1e-3,
        step=constant(0.5),
        average=False,
        callback=lambda model, record: models.append(pickle.dumps(model.learner_.model)),
    )
    losses = [record["validation_loss"] for record in model.history_]
    best = int(np.argmin(losses))
    assert best < len(losses) - 1 < 199
    assert pickle.dumps(model.learner_.model) == models[best]
    assert {f"validation_{name}" for name in FIGURES} <= set(model.history_[0])


@pytest.mark.parametrize("loss", ["ncll", "hinge"])
@pytest.mark.parametrize("most", [1, 5])
def test_parts_of_large_data_leave_time_for_all_rows(loss, most):
    """However few the steps are, they are no more than allowed, and end no worse than the start."""
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=9000)
    X = rng.normal(size=(9000, 3)) + np.eye(3)[y]
    seen = []
    with pytest.warns(ConvergenceWarning):
        model = GaussianNB(
            loss=loss, max_iter=most, random_state=0, callback=lambda model, record: seen.append(1)
        ).fit(X, y)
    assert model.n_iter_ == len(seen) == most
    start = GaussianNB(loss=loss, max_iter=1, tol=None, step=constant(0.0), average=False)
    start.set_params(batch_size=len(y)).fit(X, y)
    rows = Data(model._rows(X), labels(y), np.ones(len(y)))
    now, then = (each.learner_.objective(rows, np.arange(9000)).value for each in (model, start))
    assert now < then or (now == then and (most == 1 or loss == "hinge"))


@every_model
def test_interrupted_by_a_callback(Model):
    X, y = data(Model)

    def interrupt(model, record):
        if record["epoch"] == 3:
            raise KeyboardInterrupt

    model = Model(callback=interrupt, random_state=0, tol=None)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert model.n_iter_ == len(model.history_) == 3
    same(model, Model(max_iter=3, random_state=0, tol=None).fit(X, y), X)


INTERRUPTED = """
import time, numpy as np
from discem import GaussianNB
rng = np.random.default_rng(0)
X, y = rng.normal(size=(100_000, 50)), rng.integers(10, size=100_000)
model = GaussianNB(max_iter=10_000, tol=None, callback=lambda m, r: print("epoch", flush=True))
try:
    model.fit(X, y)
except KeyboardInterrupt:
    print("left", flush=True)
    ok = np.isfinite(model.predict_proba(X[:5])).all()
    print(model.n_iter_ == len(model.history_) >= 1, ok)
"""


@pytest.mark.skipif(os.name == "nt", reason="sends a POSIX signal")
def test_interrupted_by_a_signal():
    child = subprocess.Popen([sys.executable, "-c", INTERRUPTED], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout.readline() == "epoch\n"
        time.sleep(0.1)
        child.send_signal(signal.SIGINT)
        begun = time.monotonic()
        assert "left\n" in iter(child.stdout.readline, "")
        assert time.monotonic() - begun < 2.5
        assert child.stdout.read() == "True True\n"
        assert child.wait() == 0
    finally:
        child.kill()
        child.wait()


# --- streams --------------------------------------------------------------------------------------


@pytest.mark.parametrize("average", [True, False])
@pytest.mark.parametrize("projection", ["interior", "check"])
@pytest.mark.parametrize("Model, prior", [(GaussianNB, "paper"), (MultinomialNB, "laplace")])
def test_pieces_are_one_pass(Model, prior, projection, average):
    X, y = data(Model)
    options = {
        "prior": prior, "init": "prior", "step": inverse(0.1), "average": average,
        "projection": projection,
    }  # fmt: skip
    model, whole = (tiny.spread_over(Model(**options), 150) for _ in range(2))
    for piece in np.array_split(np.arange(150), 7):
        model.partial_fit(X[piece], y[piece], classes=NAMES)
    same(model, whole.partial_fit(X, y), X, 1e-9)
    np.testing.assert_array_equal(model.class_count_, whole.class_count_)
    assert model.n_iter_ == len(model.history_) == 7


def test_pieces_are_one_pass_in_any_units():
    """A prior with its own centre does not depend on the units, which the first piece gave."""
    X, y = data(GaussianNB)
    options = {"prior": NormalGamma(mean=1.0, variance=2.0), "init": "prior", "step": inverse(0.1)}
    model, whole = (tiny.spread_over(GaussianNB(**options), 150) for _ in range(2))
    for piece in np.array_split(np.arange(150), 7):
        model.partial_fit(X[piece], y[piece], classes=NAMES)
    same(model, whole.partial_fit(X, y), X, 1e-9)


@every_model
@pytest.mark.parametrize("loss", ["ncll", "hinge", "nll"])
def test_classes_come_as_they_like(Model, loss):
    X, y = data(Model)
    model = Model(loss=loss)
    model.partial_fit(X[y == "birch"], y[y == "birch"])  # a single class is counted
    assert model.classes_.tolist() == ["birch"]
    assert set(model.predict(X)) == {"birch"}
    model.partial_fit(X[y != "ash"], y[y != "ash"])
    assert model.classes_.tolist() == ["birch", "cedar"]
    model.partial_fit(X[y == "ash"], y[y == "ash"])  # which sorts before those known
    assert model.classes_.tolist() == NAMES.tolist()
    for _ in range(5):
        model.partial_fit(X, y)
    model.partial_fit(X, [None] * len(y))
    assert model.score(X, y) > 0.9
    times = {"ash": 6, "birch": 7, "cedar": 6}
    counts = [times[name] * np.sum(y == name) for name in NAMES]
    np.testing.assert_allclose(model.class_count_, counts)


@every_model
def test_fit_then_stream(Model):
    model, X, _ = fitted(Model, n=100)
    before = model.predict_proba(X)
    model.partial_fit(X[:10], ["oak"] * 10)
    assert model.classes_.tolist() == [*NAMES, "oak"]
    assert model.n_iter_ == 6
    assert not np.allclose(model.predict_proba(X)[:, :3], before)
    with pytest.raises(InputError, match="not of one kind"):
        model.partial_fit(X[:10], [7] * 10)


# --- labels that say less -------------------------------------------------------------------------


@every_model
@pytest.mark.parametrize("loss", ["ncll", "hinge", "nll"])
def test_sets_and_shares_of_one_are_labels(Model, loss):
    X, y = data(Model)
    sure = y[:, None] == NAMES
    options = {"loss": loss, "random_state": 0, "max_iter": 3, "tol": None}
    model = Model(**options).fit(X, y)
    for targets in (sure, sure.astype(float)):
        other = Model(**options).fit(X, targets)
        assert other.classes_.tolist() == [0, 1, 2]
        same(model, other, X, 1e-10)


@every_model
@pytest.mark.parametrize("loss", ["ncll", "hinge", "nll"])
def test_vague_labels_teach(Model, loss):
    X, y = data(Model)
    sure = y[:, None] == NAMES
    rng = np.random.default_rng(0)
    truth = sure.argmax(axis=1)
    sets = sure | (rng.uniform(size=sure.shape) < 0.3)
    shares = 0.8 * sure + 0.2 / 3
    for targets in (sets, shares):
        model = Model(loss=loss, random_state=0, max_iter=20).fit(X, targets)
        assert model.score(X, truth) > 0.85
        np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0, rtol=1e-12)


@every_model
@pytest.mark.parametrize("none", [None, np.nan, pd.NA], ids=str)
def test_unlabelled_rows_are_learnt_from(Model, none):
    X, y = data(Model)
    known = np.arange(150) % 5 == 0
    some = np.array([label if k else none for label, k in zip(y, known, strict=True)], dtype=object)
    options = {"loss": "nll", "init": "prior", "random_state": 0, "max_iter": 30}
    model = Model(**options).fit(X, some)
    assert model.classes_.tolist() == NAMES.tolist()
    assert model.class_count_.sum() == 30
    assert model.score(X, y) > 0.85
    alone = Model(**options).fit(X[known], y[known])
    assert not np.allclose(alone.predict_proba(X), model.predict_proba(X), atol=0.01)
    numbers = np.where(known, np.searchsorted(NAMES, y), np.nan)
    same(model, Model(**options).fit(X, numbers), X)


# --- the model ------------------------------------------------------------------------------------


@every_model
@pytest.mark.parametrize("loss", ["ncll", "hinge", "nll"])
def test_probabilities_agree(Model, loss):
    model, X, _ = fitted(Model, loss=loss)
    joint = model.predict_joint_log_proba(X)
    np.testing.assert_allclose(model.score_samples(X), logsumexp(joint, axis=1))
    posterior = joint - model.score_samples(X)[:, None]
    found = model.predict_log_proba(X)
    np.testing.assert_allclose(found, np.maximum(posterior, LEAST), atol=1e-9)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_array_equal(model.predict(X), NAMES[joint.argmax(axis=1)])
    linear = model.to_linear().decision_function(X)
    np.testing.assert_allclose(linear - linear[:, :1], joint - joint[:, :1], rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("loss", ["nll", "ncll"])
def test_density_is_scipys(loss):
    model, X, _ = fitted(GaussianNB, loss=loss)
    logs = norm.logpdf(X[:, None], model.mean_, np.sqrt(model.var_)).sum(axis=2)
    np.testing.assert_allclose(
        model.score_samples(X), logsumexp(logs + np.log(model.class_prior_), axis=1), rtol=1e-10
    )


def test_both_parametrisations():
    model, *_ = fitted(GaussianNB)
    mu, theta = model.mu_, model.theta_
    m = mu["x"] / mu["class"][:, None]
    v = mu["x^2"] / mu["class"][:, None] - m**2
    np.testing.assert_allclose(theta["x"], m / v, rtol=1e-8)
    np.testing.assert_allclose(theta["x^2"], -0.5 / v, rtol=1e-8)
    normalizer = 0.5 * (m**2 / v + np.log(2 * np.pi * v)).sum(axis=1)
    np.testing.assert_allclose(np.exp(theta["class"] + normalizer), mu["class"])

    model, X, _ = fitted(MultinomialNB)
    mu, theta = model.mu_, model.theta_
    share = mu["word"] / mu["word"].sum(axis=1, keepdims=True)
    np.testing.assert_allclose(theta["word"], np.log(share), rtol=1e-10)
    scale = mu["class"][:, None] * X.sum(axis=1).mean()
    np.testing.assert_allclose(share * scale, mu["word"], rtol=1e-10)
    np.testing.assert_allclose(np.exp(theta["class"]), mu["class"])


@every_model
def test_samples_are_of_the_model(Model):
    model, *_ = fitted(Model, loss="nll")
    X, y = model.sample(20_000, random_state=0)
    assert X.shape == (20_000, model.n_features_in_)
    mu = model.mu_
    for k, label in enumerate(model.classes_):
        own = X[y == label]
        assert np.mean(y == label) == pytest.approx(mu["class"][k], abs=0.015)
        first = mu["x" if Model is GaussianNB else "word"][k] / mu["class"][k]
        error = own.std(axis=0) / np.sqrt(len(own))
        assert (np.abs(own.mean(axis=0) - first) < 5 * error + 1e-9).all()
        if Model is GaussianNB:
            np.testing.assert_allclose(own.var(axis=0), model.var_[k], rtol=0.1)
    np.testing.assert_array_equal(*(model.sample(5, random_state=1)[0] for _ in range(2)))


@every_model
def test_set_class_prior(Model):
    model, X, _ = fitted(Model)
    before, joint = model.predict_log_proba(X), model.predict_joint_log_proba(X)
    seen = model.class_count_ / model.class_count_.sum()
    model.set_class_prior(seen)  # what it was trained on
    np.testing.assert_allclose(model.predict_log_proba(X), before, atol=1e-12)
    np.testing.assert_allclose(model.predict_joint_log_proba(X), joint, atol=1e-12)
    new = np.array([0.7, 0.2, 0.1])
    for given in (new, dict(zip(NAMES.tolist(), new, strict=True))):
        model.set_class_prior(given)
        expected = before + np.log(new / seen)
        expected -= logsumexp(expected, axis=1, keepdims=True)
        known = (before > LEAST) & (expected > LEAST)
        np.testing.assert_allclose(model.predict_log_proba(X)[known], expected[known], atol=1e-9)
    shares = model.class_prior_
    assert shares.sum() == pytest.approx(1)
    likelihood = model.predict_joint_log_proba(X) - np.log(shares)
    model.set_class_prior(None)
    np.testing.assert_allclose(likelihood, joint - np.log(model.class_prior_), atol=1e-9)
    np.testing.assert_allclose(model.predict_log_proba(X), before, atol=1e-12)
    for bad, message in (
        ([0.5, 0.5], "needs 3 numbers"),
        ([0.5, 0.5, 0.5], "sum to 1"),
        ([1.0, 0.0, 0.0], "positive"),
        ({"ash": 0.5, "birch": 0.5}, "lacks the class 'cedar'"),
    ):
        with pytest.raises(InputError, match=message):
            model.set_class_prior(bad)


@pytest.mark.parametrize("Model, loss", [(MultinomialNB, "nll"), (GaussianNB, "nll")])
def test_calibration(Model, loss):
    X, y = digits()
    model = Model(loss=loss, max_iter=5, tol=None, random_state=0).fit(X[:900], y[:900])
    before, predicted = log_loss(y[1350:], model.predict_proba(X[1350:])), model.predict(X[1350:])
    model.calibrate(X[900:1350], y[900:1350])
    assert log_loss(y[1350:], model.predict_proba(X[1350:])) < 0.9 * before
    np.testing.assert_array_equal(model.predict(X[1350:]), predicted)
    seen = model.class_count_ / model.class_count_.sum()
    new = np.linspace(0.05, 0.15, 10)
    odds = model.predict_log_proba(X[:5]) + np.log(new / seen)
    model.set_class_prior(new)  # means the same where probabilities are calibrated
    known, odds = odds > LEAST + 1.0, odds - logsumexp(odds, axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_log_proba(X[:5])[known], odds[known], atol=1e-9)


def test_hinge_has_its_probabilities_nearly_right():
    """With features in units of their own the margin of 1 is about a nat: little to calibrate."""
    X, y = digits()
    model = GaussianNB(loss="hinge", random_state=0).fit(X[:900], y[:900])
    before = log_loss(y[1350:], model.predict_proba(X[1350:]))
    model.calibrate(X[900:1350], y[900:1350])
    assert log_loss(y[1350:], model.predict_proba(X[1350:])) < 1.1 * before


@every_model
def test_early_stopping_calibrates_hinge(Model):
    X, y = digits()
    options = {"loss": Hinge(20.0), "early_stopping": True, "max_iter": 5, "random_state": 0}
    model = Model(**options).fit(X[:900], y[:900])
    calibrated = log_loss(y[900:], model.predict_proba(X[900:]))
    model.temperature_ = 1.0
    assert calibrated < log_loss(y[900:], model.predict_proba(X[900:]))


def test_calibration_on_rows_all_right_stays_modest():
    X, y = np.array([[0.0], [0.1], [1.0], [1.1]]), np.array([0, 0, 1, 1])
    model = GaussianNB(loss="hinge", random_state=0).fit(X, y).calibrate(X, y)
    assert model.predict_proba(X).max() < 0.99


def test_nll_is_multinomial_naive_bayes():
    X, y = digits()
    ours = MultinomialNB(loss="nll", random_state=0).fit(X, y)
    theirs = naive_bayes.MultinomialNB(alpha=1.0).fit(X, y)
    assert np.mean(ours.predict(X) == theirs.predict(X)) > 0.998
    np.testing.assert_allclose(ours.feature_log_prob_, theirs.feature_log_prob_, atol=0.05)


# --- missing cells --------------------------------------------------------------------------------


def test_prediction_sums_missing_cells_out():
    model, X, _ = fitted(GaussianNB)
    X[:, 2] = np.nan
    rest = [0, 1, 3]
    logs = norm.logpdf(X[:, None, rest], model.mean_[:, rest], np.sqrt(model.var_[:, rest]))
    np.testing.assert_allclose(
        model.predict_joint_log_proba(X), logs.sum(axis=2) + np.log(model.class_prior_), rtol=1e-10
    )
    X[:] = np.nan
    np.testing.assert_allclose(model.predict_proba(X), np.tile(model.class_prior_, (150, 1)))


@pytest.mark.parametrize("loss", ["ncll", "hinge", "nll"])
def test_a_column_of_missing_cells_is_no_column(loss):
    X, y = data(GaussianNB)
    gone = X.copy()
    gone[:, 2] = np.nan
    options = {"loss": loss, "random_state": 0, "max_iter": 5}
    one, other = GaussianNB(**options).fit(gone, y), GaussianNB(**options).fit(X[:, [0, 1, 3]], y)
    np.testing.assert_allclose(
        one.predict_joint_log_proba(gone), other.predict_joint_log_proba(X[:, [0, 1, 3]]), rtol=1e-9
    )


def test_an_empty_row_gives_only_its_class():
    X, y = data(GaussianNB)
    empty = np.full((30, 4), np.nan)
    more, labels = np.vstack([X, empty]), np.append(y, ["ash"] * 30)
    start = {"max_iter": 1, "step": constant(0.0)}
    one, other = GaussianNB(**start).fit(X, y), GaussianNB(**start).fit(more, labels)
    np.testing.assert_allclose(one.mean_, other.mean_, rtol=1e-12)
    np.testing.assert_allclose(one.var_, other.var_, rtol=1e-12)
    assert other.class_prior_[0] == pytest.approx((np.sum(y == "ash") + 31) / 183)
    for loss in ("ncll", "hinge", "nll"):
        model = GaussianNB(loss=loss, average=False, step=constant(0.1))
        tiny.spread_over(model, 1e15).partial_fit(X, y)
        mean, variance, prior = model.mean_, model.var_, model.class_prior_
        model.partial_fit(empty, ["ash"] * 30)
        np.testing.assert_allclose(model.mean_, mean, rtol=1e-9)
        np.testing.assert_allclose(model.var_, variance, rtol=1e-9)
        assert model.class_prior_[0] > prior[0]
