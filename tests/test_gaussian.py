"""Correlated numbers: `GaussianClassifier`, and mixtures of full and tied covariances."""

import numpy as np
import pytest
from checks import data_checks
from scipy.stats import multivariate_normal
from sklearn.datasets import load_breast_cancer, load_wine, make_classification
from sklearn.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from sklearn.metrics import log_loss

import discem
from discem import GaussianClassifier, MixtureClassifier, NormalWishart
from discem.exceptions import OptionError
from discem.families._given import conditionals
from discem.io.rows import dense_rows

ORDER = "k-means and hidden cells depend on the order of rows"
KINDS = ["full", "tied", "diag"]
every_kind = pytest.mark.parametrize("covariance", KINDS)


@data_checks(
    [GaussianClassifier(), GaussianClassifier(covariance="tied")],
    lambda model: {"check_sample_weight_equivalence_on_dense_data": ORDER},
)
def test_scikit_learn(estimator, check):
    check(estimator)


def wine():
    X, y = load_wine(return_X_y=True)
    return X[::2], y[::2], X[1::2], y[1::2]


def test_next_to_no_prior_is_discriminant_analysis():
    """Under NLL, classes have their own moments, or the covariance within all: QDA and LDA."""
    X, y, Z, _ = wine()
    covariances = [np.cov(X[y == k].T, bias=True) for k in range(3)]
    within = sum((y == k).mean() * covariances[k] for k in range(3))
    cases = {
        "full": (NormalWishart(1e-9, 1e-9), covariances, QuadraticDiscriminantAnalysis()),
        "tied": (
            NormalWishart(1e-9, covariance=within),
            [within] * 3,
            LinearDiscriminantAnalysis(),
        ),
    }
    for covariance, (prior, expected, peer) in cases.items():
        options = {"loss": "nll", "max_iter": 1, "tol": None, "covariance": covariance}
        model = GaussianClassifier(prior=prior, **options).fit(X, y)
        joint = [
            np.log(model.class_prior_[k])
            + multivariate_normal(X[y == k].mean(axis=0), expected[k]).logpdf(Z)
            for k in range(3)
        ]
        np.testing.assert_allclose(
            model.predict_joint_log_proba(Z), np.stack(joint, axis=1), rtol=1e-6
        )
        assert (model.predict(Z) == peer.fit(X, y).predict(Z)).mean() > 0.97


@every_kind
def test_it_is_good_at_wine_with_and_without_holes(covariance, tmp_path):
    X, y, Z, z = wine()
    model = GaussianClassifier(covariance=covariance, hide=0.6, max_iter=60, random_state=0)
    model.fit(X, y)
    assert model.score(Z, z) > 0.95 and model.covariance_ == covariance
    assert model.means_.shape == (3, 13) and model.covariances_.shape[1:] == (13, 13)
    assert np.isfinite(model.sample(5, random_state=0)[0]).all()
    gone = np.where(np.random.default_rng(0).random(Z.shape) < 0.4, np.nan, Z)
    assert model.score(gone, z) > 0.85
    parts = model.explain(gone[0])
    assert parts.contributions.shape == (13, 3)
    np.testing.assert_allclose(
        np.exp(parts.scores) / np.exp(parts.scores).sum(), model.predict_proba(gone[:1])[0]
    )
    model.save(tmp_path / "model.skops")
    again = discem.load(tmp_path / "model.skops")
    np.testing.assert_array_equal(again.predict_proba(gone), model.predict_proba(gone))
    for one in (model, again):
        one.partial_fit(gone, np.where(z == 2, 7, z))
    np.testing.assert_array_equal(again.predict_proba(gone), model.predict_proba(gone))


def test_training_ends_no_worse_than_its_start():
    """Of few rows, too; and on fresh rows it is better than the start where rows are many."""
    X, y = load_breast_cancer(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order], y[order]
    for rows in (12, 60, 300):
        model = GaussianClassifier(covariance="full", random_state=0).fit(X[:rows], y[:rows])
        objective = [record["objective"] for record in model.history_]
        assert (np.diff(objective) <= 1e-9).all()
    start = GaussianClassifier(covariance="full", loss="nll").fit(X[:300], y[:300])
    losses = [log_loss(y[300:], each.predict_proba(X[300:])) for each in (model, start)]
    assert losses[0] < losses[1]


def test_auto_is_tied_where_rows_are_few():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 4
    X = rng.normal(size=(60, 40)) + y[:, None]
    assert GaussianClassifier(max_iter=3, tol=None).fit(X, y).covariance_ == "tied"
    assert GaussianClassifier(max_iter=3, tol=None).fit(X[:, :4], y).covariance_ == "full"


HARD = {
    "duplicated": lambda X: np.hstack([X, X, X[:, :1] * 3 + 1]),
    "constant": lambda X: np.hstack([X, np.ones((len(X), 2))]),
    "one far out": lambda X: X + 1e12 * (np.arange(X.size).reshape(X.shape) == 7),
    "nearly singular": lambda X: np.hstack([X, X[:, :1] + 1e-9 * X[:, 1:2]]),
    "never seen in a class": lambda X: np.where(
        (np.arange(len(X)) % 3 == 1)[:, None] & (np.arange(X.shape[1]) == 2), np.nan, X
    ),
    "never seen": lambda X: np.where(np.arange(X.shape[1]) == 2, np.nan, X),
    "fewer rows than columns": lambda X: np.hstack([X] + [np.roll(X, j, axis=0) for j in range(8)]),
}


@every_kind
@pytest.mark.parametrize("case", HARD.values(), ids=HARD)
def test_hard_columns(case, covariance):
    """All that it says is finite, of rows with and without holes, and mostly right."""
    rng = np.random.default_rng(0)
    y = np.arange(45) % 3
    y[0] = 3  # a class of one row
    X = case(rng.normal(size=(45, 5)) + 3.0 * (y[:, None] == np.arange(5)))
    model = GaussianClassifier(covariance=covariance, max_iter=40, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.6
    far = np.where(rng.random(X.shape) < 0.3, 1e12, X)
    for rows in (X, far, np.where(rng.random(X.shape) < 0.5, np.nan, X)):
        assert np.isfinite(model.predict_log_proba(rows)).all()
        assert np.isfinite(model.score_samples(rows)).all()
    assert np.isfinite(model.sample(9, random_state=0)[0]).all()


@pytest.mark.parametrize("covariance", ["full", "tied"])
def test_conditionals_are_those_of_the_joint(covariance):
    """Mean and covariance of what is missing, given what is there, by the textbook's formula."""
    X, y, Z, _ = wine()
    model = GaussianClassifier(covariance=covariance, max_iter=5, tol=None).fit(X[:, :4], y)
    rows = np.where(np.random.default_rng(0).random((6, 4)) < 0.5, np.nan, Z[:6, :4])
    mean, spread, group = conditionals(model.learner_.model.features, dense_rows(rows))
    for i, row in enumerate(rows):
        o = ~np.isnan(row)
        for k in range(3):
            m, S = model.means_[k], model.covariances_[k % len(model.covariances_)]
            gain = S[np.ix_(~o, o)] @ np.linalg.inv(S[np.ix_(o, o)])
            expected = np.where(o, row, 0.0)
            expected[~o] = m[~o] + gain @ (row[o] - m[o])
            np.testing.assert_allclose(mean[i, k], expected, rtol=1e-8)
            own = spread[group[i], k % spread.shape[1]]
            left = S[np.ix_(~o, ~o)] - gain @ S[np.ix_(o, ~o)]
            np.testing.assert_allclose(own[np.ix_(~o, ~o)], left, rtol=1e-7, atol=1e-12)
            assert not own[o].any()


def test_mixtures_of_correlated_columns_find_clusters():
    """Where classes are unions of correlated clusters, they are far ahead of diagonal ones."""
    X, y = make_classification(
        3000, 8, n_informative=6, n_redundant=2, n_clusters_per_class=3, random_state=0
    )
    scores = {}
    for covariance in KINDS:
        options = {"covariance": covariance, "max_iter": 30, "tol": None, "random_state": 0}
        model = MixtureClassifier(3, **options).fit(X[:2000], y[:2000])
        scores[covariance] = model.score(X[2000:], y[2000:])
    assert scores["full"] > scores["diag"] + 0.02


def test_tables_have_correlated_numbers():
    """Beside categories and counts: two numbers have the same sign in one class only."""
    rng = np.random.default_rng(0)
    y = np.arange(300) % 2
    noise = rng.normal(size=300)
    rows = [
        {"a": s, "b": (1 - 2 * k) * s + 0.2 * e, "sort": "xy"[int(e > 0)], "n": abs(e)}
        for s, k, e in zip(rng.normal(size=300), y, noise, strict=True)
    ]
    found = {}
    for covariance in KINDS:
        options = {"covariance": covariance, "hide": 0.3, "max_iter": 40, "random_state": 0}
        model = MixtureClassifier(1, **options).fit(rows[:200], y[:200])
        found[covariance] = model.score(rows[200:], y[200:])
        assert len(model.sample(4, random_state=0)[0]) == 4
        assert model.partial_fit(rows[200:], y[200:]).covariance_ == covariance
    assert found["full"] > 0.8 > 0.7 > max(found["tied"], found["diag"])


def test_senseless_options_are_refused():
    X, y, _, _ = wine()
    for options in (
        {"covariance": "spherical"},
        {"prior": NormalWishart(-1.0)},
        {"prior": NormalWishart(covariance=-np.eye(13))},
        {"prior": NormalWishart(strength=0.0)},
    ):
        with pytest.raises(OptionError, match=r"covariance|nu_mean"):
            GaussianClassifier(**options).fit(X, y)
    with pytest.raises(OptionError, match="is for numbers"):
        MixtureClassifier(families="words", covariance="full").fit(np.abs(X), y)
