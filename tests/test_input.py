"""What users feed in: errors that name the culprit, and data at the edge of what is possible."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import tiny

from discem import Blend, Dirichlet, GaussianNB, Hinge, Interior, MultinomialNB, NormalGamma
from discem.exceptions import InputError

MODELS = [GaussianNB, MultinomialNB]
every_model = pytest.mark.parametrize("Model", MODELS)
X = np.random.default_rng(0).poisson(3.0, size=(12, 3)).astype(float)
y = np.tile([0, 1, 2], 4)
both = [*MODELS]


def put(value, row=4, column=1):
    changed = X.copy()
    changed[row, column] = value
    return changed


# --- errors ---------------------------------------------------------------------------------------

BAD_X = {
    "fewer labels": (both, X, y[:-1], "X has 12 rows but y has 11"),
    "infinity": (both, put(np.inf), y, "infinity at row 4, column 1"),
    "minus infinity": ([GaussianNB], put(-np.inf), y, "infinity at row 4, column 1"),
    "too large": (both, put(1e151), y, r"beyond 1e\+150 at row 4, column 1"),
    "too low": ([GaussianNB], put(-1e151), y, r"beyond 1e\+150 at row 4, column 1"),
    "negative": ([MultinomialNB], put(-1.0), y, "Negative values .* row 4, column 1"),
    "sparse negative": (
        [MultinomialNB], sp.csr_array(put(-1.0)), y, "Negative values .* row 4, column 1",
    ),
    "NaN": ([MultinomialNB], put(np.nan), y, "NaN at row 4, column 1"),
    "text": (both, [["1", "2"], ["3", "oops"]], [0, 1], "'oops' at row 1, column 1"),
    "named text": (
        both, pd.DataFrame({"a": [1, 2], "price": [3, "cheap"]}), [0, 1],
        r"'cheap' at row 1, column 1 \('price'\)",
    ),
    "sparse": ([GaussianNB], sp.csr_array(X), y, "[Ss]parse"),
    "one row of numbers": (both, X[0], y, "2D array"),
    "no rows": (both, X[:0], y[:0], "0 sample"),
}  # fmt: skip

BAD_Y = {
    "one class": (np.zeros(12), "one class only, 0.0"),
    "none": (None, "y to be passed"),
    "unlabelled": ([None] * 12, "no label at all"),
    "NaN": (np.full(12, np.nan), "no label at all"),
    "infinity": (np.where(y == 1, np.inf, 0.0), "infinity at row 1"),
    "continuous": (np.linspace(0, 1, 12), "continuous"),
    "mixed": (np.array([1, "a"] * 6, dtype=object), "mixes text, as 'a', with other labels, as 1"),
    "an empty set": (np.arange(12)[:, None] != [5, 5], "label set of row 5 is empty"),
    "shares": (np.where(np.arange(12)[:, None] == 7, 0.6, [0.5, 0.5]), "soft label of row 7"),
    "a negative share": (np.tile([1.5, -0.5], (12, 1)), "soft label of row 0"),
    "NaN shares": (np.tile([1.0, np.nan], (12, 1)), "soft label of row 0"),
    "text shares": (np.tile(["a", "b"], (12, 1)), "several columns"),
}

BAD_WEIGHTS = {
    "negative": (np.where(np.arange(12) == 3, -1.0, 1.0), "sample_weight of row 3 is negative"),
    "zero": (np.zeros(12), "zero"),
    "NaN": (np.where(np.arange(12) == 3, np.nan, 1.0), "sample_weight contains NaN"),
    "infinite": (np.where(np.arange(12) == 3, np.inf, 1.0), "sample_weight contains infinity"),
    "huge": (np.where(np.arange(12) == 3, 1e151, 1.0), "sample_weight of row 3 is beyond"),
    "short": (np.ones(11), "sample_weight"),
}

BAD_OPTIONS = [
    ({"loss": "ncl"}, "loss='ncl'"),
    ({"loss": 3}, "loss=3"),
    ({"loss": Hinge(-1.0)}, "margin"),
    ({"loss": Blend(np.nan)}, "kappa"),
    ({"prior": "flat"}, "prior='flat'"),
    ({"prior": 3.0}, "prior=3.0"),
    ({"init": "random"}, "init='random'"),
    ({"projection": "clip"}, "projection='clip'"),
    ({"projection": Interior(1.5)}, "share"),
    ({"step": 0.1}, "step=0.1"),
    ({"step": "fast"}, "step='fast'"),
    ({"step": lambda t: -1.0 / t}, "step: .* negative or non-finite"),
    ({"average": "yes"}, "average='yes'"),
    ({"batch_size": 0}, "batch_size=0"),
    ({"batch_size": 1.5}, "batch_size=1.5"),
    ({"max_iter": 0}, "max_iter=0"),
    ({"tol": "small"}, "tol='small'"),
    ({"tol": np.nan}, "tol=nan"),
    ({"early_stopping": 1.0}, "early_stopping=1.0"),
    ({"early_stopping": "half"}, "early_stopping='half'"),
    ({"early_stopping": 0.01}, "early_stopping: too few rows"),
    ({"class_weight": "even"}, "class_weight"),
    ({"class_weight": {0: -1.0}}, "class_weight={0: -1.0}"),
    ({"class_weight": {0: 0, 1: 0, 2: 0}}, "class_weight={0: 0, 1: 0, 2: 0}"),
]


def cases(table):
    return [
        pytest.param(Model, *rest, id=f"{Model.__name__}-{name}")
        for name, (models, *rest) in table.items()
        for Model in models
    ]


@pytest.mark.parametrize("Model, X, y, message", cases(BAD_X))
def test_bad_X(Model, X, y, message):
    for method in ("fit", "partial_fit"):
        with pytest.raises((ValueError, TypeError), match=message):
            getattr(Model(), method)(X, y)


@every_model
@pytest.mark.parametrize("kind", BAD_Y)
def test_bad_y(Model, kind):
    labels, message = BAD_Y[kind]
    with pytest.raises(ValueError, match=message):
        Model().fit(X, labels)


@every_model
@pytest.mark.parametrize("kind", BAD_WEIGHTS)
def test_bad_weights(Model, kind):
    weights, message = BAD_WEIGHTS[kind]
    with pytest.raises(ValueError, match=message):
        Model().fit(X, y, sample_weight=weights)


@every_model
@pytest.mark.parametrize(
    "options, message", BAD_OPTIONS, ids=lambda case: str(case).split(" at 0x")[0][:40]
)
def test_bad_options(Model, options, message):
    for method in ("fit", "partial_fit"):
        if method == "partial_fit" and "early_stopping" in options:
            continue
        with pytest.raises((ValueError, TypeError), match=message):
            getattr(Model(**options), method)(X, y)


def test_bad_priors():
    for prior, message in (
        (NormalGamma(nu_variance=0.0), "nu_variance > 0"),
        (NormalGamma(nu_mean=-1.0), "nu_mean must be >= 0"),
        (NormalGamma(variance=0.0), "variance must be > 0"),
        (NormalGamma(mean=[0.0, 1.0]), "mean needs one number, or one for each of 3 columns"),
        (Dirichlet(1.0), "prior=Dirichlet"),
    ):
        with pytest.raises(ValueError, match=message):
            GaussianNB(prior=prior).fit(X, y)
    for prior, message in (
        (Dirichlet(0.0), "alpha must be > 0"),
        (Dirichlet([1.0, 2.0]), "alpha needs one number, or one for each of 3 words"),
        (Dirichlet(strength=-1.0), "strength|alpha"),
        (NormalGamma(), "prior=NormalGamma"),
    ):
        with pytest.raises(ValueError, match=message):
            MultinomialNB(prior=prior).fit(X, y)


@every_model
def test_a_single_class_is_fine_for_nll(Model):
    model = Model(loss="nll", max_iter=2).fit(X, ["only"] * 12)
    assert set(model.predict(X)) == {"only"}
    np.testing.assert_array_equal(model.predict_proba(X), np.ones((12, 1)))


@every_model
def test_bad_calls_of_a_fitted_model(Model):
    model = Model(max_iter=2, random_state=0).fit(X, y)
    for method in ("predict", "predict_proba", "score_samples", "predict_joint_log_proba"):
        with pytest.raises(ValueError, match=r"X has 2 features, but .* expecting 3"):
            getattr(model, method)(X[:, :2])
    with pytest.raises(ValueError, match="classes that the model knows"):
        model.calibrate(X, y + 1)
    with pytest.raises(ValueError, match="X has 2 features"):
        model.partial_fit(X[:, :2], y)
    assert model.score(X, y + 10) == 0.0  # classes never seen are errors, not exceptions
    assert model.score(X, np.where(y == 0, 7, y)) < 1.0


@every_model
def test_a_failed_fit_is_no_fit(Model):
    model = Model(prior="flat")
    with pytest.raises(ValueError, match="prior='flat'"):
        model.fit(X, y)
    with pytest.raises(AttributeError, match="not fitted yet"):
        model.predict(X)
    assert model.set_params(prior="data", max_iter=1).fit(X, y).n_iter_ == 1


# --- data at the edge -----------------------------------------------------------------------------

rng = np.random.default_rng(1)
G, y2 = rng.normal(size=(24, 4)), np.tile([0, 1, 2], 8)
C = rng.poisson(2.0, size=(24, 4)).astype(float)


def with_columns(X, *columns):
    return np.column_stack([X, *columns])


CONSTANT, MISSING, NOTHING = np.full(24, 7.0), np.full(24, np.nan), np.zeros(24)
HOLES = np.where(rng.uniform(size=G.shape) < 0.5, np.nan, G)

EDGES = {
    GaussianNB: {
        "constant column": (with_columns(G, CONSTANT), y2),
        "all constant": (np.ones((24, 2)), y2),
        "constant in a class": (with_columns(G, np.where(y2 == 1, 3.0, G[:, 0])), y2),
        "one row a class": (G[:3], [0, 1, 2]),
        "two rows": (G[:2], [0, 1]),
        "two equal rows": (G[[0, 0]], [0, 1]),
        "tiny": (G * 1e-100, y2),
        "huge": (G * 1e100, y2),
        "largest": (G / np.abs(G).max() * 1e150, y2),
        "both scales": (G * [1e100, 1e-100, 1.0, 1e-100], y2),
        "outlier": (np.where(np.arange(24)[:, None] == 5, 1e100, G), y2),
        "missing column": (with_columns(G, MISSING), y2),
        "all missing": (np.full((24, 2), np.nan), y2),
        "holes": (HOLES, y2),
        "a class without cells": (np.where((y2 == 2)[:, None], np.nan, G), y2),
        "repeated rows": (np.repeat(G[:3], 8, axis=0), np.repeat([0, 1, 2], 8)),
        "far away": (G * 1e-6 + 1e6, y2),
        "many classes": (rng.normal(size=(300, 2)), np.arange(300)),
        "all at once": (with_columns(HOLES * [1, 1, 1e100, 1e-100], CONSTANT, MISSING), y2),
    },
    MultinomialNB: {
        "zero column": (with_columns(C, NOTHING), y2),
        "all zero": (np.zeros((24, 3)), y2),
        "empty documents": (np.where(np.arange(24)[:, None] % 4 == 0, 0.0, C), y2),
        "a class of empty documents": (np.where((y2 == 2)[:, None], 0.0, C), y2),
        "one row a class": (C[:3], [0, 1, 2]),
        "two rows": (C[:2], [0, 1]),
        "two equal rows": (C[[0, 0]], [0, 1]),
        "tiny": (C * 1e-100, y2),
        "huge": (C * 1e100, y2),
        "both scales": (C * [1e100, 1e-100, 1.0, 0.0], y2),
        "outlier": (np.where(np.arange(24)[:, None] == 5, 1e100, C), y2),
        "repeated rows": (np.repeat(C[:3], 8, axis=0), np.repeat([0, 1, 2], 8)),
        "many classes": (rng.poisson(1.0, size=(300, 3)).astype(float), np.arange(300)),
        "one word": (C[:, :1], y2),
        "no cells": (sp.csr_array((24, 4)), y2),
    },
}  # fmt: skip


def draw(model):
    if getattr(model, "mean_length_", 0.0) < 1e9:
        return [model.sample(20, random_state=0)[0]]
    with pytest.raises(InputError, match="words are too long to draw"):
        model.sample(20)
    return []


def assert_finite(model, X):
    """Every number that a model gives out."""
    given = [
        model.predict_proba(X),
        model.predict_log_proba(X),
        model.predict_joint_log_proba(X),
        model.score_samples(X),
        *draw(model),
        *model.mu_.values(),
        *model.theta_.values(),
        *model.to_linear()[:2],
        [value for record in model.history_ for value in record.values()],
    ]
    assert all(np.isfinite(numbers).all() for numbers in given)
    np.testing.assert_allclose(given[0].sum(axis=1), 1.0, rtol=1e-9)
    assert set(model.predict(X)) <= set(model.classes_)


CASES = {f"{Model.__name__}-{edge}": (Model, edge) for Model in MODELS for edge in EDGES[Model]}
BEGINNINGS = {
    "interior": {"projection": "interior"},
    "check, flat": {"projection": "check", "init": "prior"},
    "interior, averaged": {"projection": "interior", "average": True},
    "check": {"projection": "check"},
    "interior, flat": {"projection": "interior", "init": "prior"},
    "check, averaged": {"projection": "check", "average": True},
}


@tiny.in_turn("case, loss, options", CASES, ["ncll", "hinge", "nll"], BEGINNINGS)
def test_edges(case, loss, options):
    Model, edge = case
    data, labels = EDGES[Model][edge]
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        model = Model(loss=loss, max_iter=3, random_state=0, **options)
        assert_finite(model.fit(data, labels), data)
        assert_finite(model.partial_fit(data, labels), data)
        if sp.issparse(data) or len(set(labels)) > 3:
            return
        stream = Model(loss=loss, **options)
        for k in range(0, len(data), 5):
            stream.partial_fit(data[k : k + 5], labels[k : k + 5])
        assert_finite(stream, data)


@every_model
@pytest.mark.parametrize("scale", [1e-150, 1e-6, 1e6, 1e149])
def test_weights_of_any_size(Model, scale):
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        weights = scale * np.linspace(0.5, 1.5, 12)
        assert_finite(Model(random_state=0, max_iter=3).fit(X, y, sample_weight=weights), X)
        assert_finite(Model().partial_fit(X, y, sample_weight=weights), X)


def test_wild_rows_are_scored():
    """What is nothing like the training data gets a low density, not an overflow."""
    model = GaussianNB(random_state=0, max_iter=3).fit(G, y2)
    wild = np.array([[1e150] * 4, [-1e150, 0.0, 1e-150, np.nan], [1e80] * 4])
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        assert np.isfinite(model.predict_log_proba(wild)).all()
        assert (model.score_samples(wild) < model.score_samples(G).min()).all()


def test_errors_are_of_the_library():
    with pytest.raises(InputError):
        GaussianNB().fit(put(np.inf), y)
