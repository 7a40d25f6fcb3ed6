"""Hostile numbers: whatever the data are, no public method says NaN or infinity."""

import numpy as np
import pytest
import tiny

from discem import (
    Check,
    GaussianNB,
    Interior,
    MixtureClassifier,
    MultinomialNB,
    NaiveBayes,
    constant,
)
from discem.exceptions import DiscemError
from discem.families import FAMILIES, multiply
from discem.losses import LOSSES

every_family = pytest.mark.parametrize("family", FAMILIES)
N = 24
Y = np.arange(N) % 3
HUGE, FAINT = 1e149, 1e-300  # larger numbers are refused by estimators


def grid(rng):
    return rng.normal(size=(N, 4)) + Y[:, None]


def outlier(x, value):
    x = x.copy()
    x[3, 1] = value
    return x


TABLES = {
    "huge": lambda x: x * HUGE,
    "faint": lambda x: x * FAINT,
    "denormal": lambda x: x * 1e-310,
    "mixed": lambda x: x * np.array([HUGE, FAINT, 1.0, 1e-150]),
    "far": lambda x: x + 1e149,
    "one far out": lambda x: outlier(x, HUGE),
    "one far down": lambda x: outlier(x, -HUGE),
    "constant": lambda x: np.ones_like(x),
    "zero": np.zeros_like,
    "nearly constant": lambda x: 1e8 + 1e-8 * x,
    "one column constant": lambda x: x * np.array([1.0, 0.0, 1.0, 1.0]),
    "one column": lambda x: x[:, :1],
    "a flag": lambda x: (np.arange(N)[:, None] == 5) * 1.0,
    "separable": lambda x: np.repeat(Y[:, None] * 1.0, 4, axis=1),
}
HOLES = {
    "all missing": lambda x: np.full_like(x, np.nan),
    "a column missing": lambda x: np.where(np.arange(4) == 1, np.nan, x),
    "a class missing": lambda x: np.where(Y[:, None] == 1, np.nan, x),
    "rows missing": lambda x: np.where(np.arange(N)[:, None] % 2, np.nan, x),
}


def of_family(family, x):
    """The numbers as cells of a family."""
    accepts = FAMILIES[family].accepts
    x = x if accepts.missing else np.nan_to_num(x)
    if family in ("categorical", "bernoulli", "levels"):
        return np.where(np.isnan(x), np.nan, (x > np.nan_to_num(x).mean(axis=0)) * 1.0)
    if family == "poisson":
        return np.floor(np.abs(x))
    return x if accepts.negative else np.abs(x)


def cases(kind):
    return pytest.mark.parametrize("case", kind.values(), ids=kind)


def finite(model):
    """All numbers of a state; columns that never vary have no scale."""
    blocks = [b._replace(fixed={}) for b in model.blocks]
    return np.isfinite(tiny.flat(model._replace(blocks=tuple(blocks)))).all()


@tiny.in_turn(
    "family, case, projection",
    list(FAMILIES),
    TABLES | HOLES,
    {"interior": Interior(), "cautious": Interior(caution=2.0), "check": Check()},
)
def test_a_model_survives(family, case, projection):
    """States, averages, scores and penalties are finite after long steps, in rows and batches."""
    X = of_family(family, case(grid(np.random.default_rng(0))))
    start = tiny.begin(family, X, Y, average=True)
    for loss, batch, rho in (("ncll", 1, 0.3), ("nll", 5, 0.3), ("hinge", 24, 5.0)):
        trained = tiny.learner(start, LOSSES[loss], constant(rho), N, batch, projection)
        for _ in range(2):
            tiny.learn(trained, X, Y)
        for model in (trained.state, trained.model):
            assert finite(model) and np.isfinite(model.penalty())
            assert np.isfinite(tiny.scores(model, X)).all()


@every_family
@cases(TABLES | HOLES)
def test_an_ordinary_model_scores_hostile_rows(family, case):
    """And takes a step with them."""
    X, y = tiny.data(family, n=N, d=4)
    model = tiny.begin(family, X, y)
    if case(X).shape != X.shape:
        pytest.skip("of another width")
    rows = of_family(family, case(grid(np.random.default_rng(0))))
    assert np.isfinite(tiny.scores(model, rows)).all()
    after, judged, _ = tiny.step(model, rows, Y, "ncll", 0.01, N, Interior())
    assert np.isfinite(judged.losses).all() and finite(after)
    assert np.isfinite(tiny.scores(after, X)).all()


@pytest.mark.parametrize("rows", [1, 2])
@every_family
def test_one_row_is_enough(family, rows):
    X = FAMILIES[family].example(np.arange(3), 2, np.random.default_rng(0))[:rows]
    start = tiny.begin(family, X, np.arange(rows), K=2, average=True)
    trained = tiny.learn(tiny.learner(start, "ncll", constant(0.3), 1), X, np.arange(rows))
    assert finite(trained.state) and np.isfinite(tiny.scores(trained.model, X)).all()


# --- estimators -----------------------------------------------------------------------------------


def numbers_of(model, X):
    """All that can be asked of a fitted model, in numbers."""
    yield from (model.predict_proba(X), model.predict_log_proba(X))
    yield from (model.predict_joint_log_proba(X), model.score_samples(X), model.class_prior_)
    for record in model.history_:
        yield [value for value in record.values() if not isinstance(value, str)]
    for name in ("mu_", "theta_"):
        if hasattr(model, name):
            yield from getattr(model, name).values()


@cases(TABLES | HOLES)
@pytest.mark.parametrize("batch", [1, 8])
@pytest.mark.parametrize("model", [GaussianNB, MixtureClassifier], ids=lambda kind: kind.__name__)
def test_estimators_say_only_numbers(model, case, batch):
    X = case(grid(np.random.default_rng(0)))
    model = model(random_state=0, max_iter=3, tol=None, batch_size=batch).fit(X, Y)
    for number in numbers_of(model, X):
        assert np.isfinite(number).all()
    assert np.isfinite(model.sample(5, random_state=0)[0]).all()
    model.partial_fit(X, Y)
    for number in numbers_of(model, X):
        assert np.isfinite(number).all()


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("scale", [1e-300, 1e-9, 1.0, 1e9, 1e140])
@pytest.mark.parametrize("batch", [1, 8])
def test_counts_of_any_size(loss, scale, batch):
    """Also documents that are empty, words that never occur, and one that is far too long."""
    rng = np.random.default_rng(0)
    X = rng.poisson(1.0, size=(N, 6)) * scale
    X[3], X[:, 2] = 0.0, 0.0
    X[5, 0] = min(1e9 * scale, 1e149)
    model = MultinomialNB(loss=loss, random_state=0, max_iter=3, batch_size=batch, tol=None)
    model.fit(X, Y).partial_fit(X[:9], Y[:9])
    for number in numbers_of(model, X):
        assert np.isfinite(number).all()


@pytest.mark.parametrize("model", [GaussianNB, MultinomialNB, NaiveBayes])
@pytest.mark.parametrize("weight", [0.0, 1e-300, 1e-9, 1e9, 1e140])
def test_weights_of_any_size(model, weight):
    """They count beside each other, and classes may weigh next to nothing."""
    X, y = tiny.data("words", n=N)
    weights = np.where(y == 1, weight, 1.0)
    model = model(random_state=0, max_iter=3)
    try:
        model.fit(X, y, sample_weight=weights)
    except DiscemError:
        assert weight == 0.0
        return
    for number in numbers_of(model, X):
        assert np.isfinite(number).all()


def test_products_of_hostile_parts():
    """One part may be constant, missing or far out; the other still tells the classes apart."""
    rng = np.random.default_rng(0)
    family, good = multiply(FAMILIES["gaussian"], FAMILIES["poisson"]), rng.poisson(1 + 5.0 * Y)
    for case in (TABLES["huge"], TABLES["constant"], HOLES["all missing"], lambda x: x[:, :0]):
        X = case(grid(rng)), good[:, None].astype(float)
        start = tiny.begin(family, X, Y, average=True)
        trained = tiny.learner(start, "ncll", constant(0.05), N, batch=4)
        for _ in range(5):
            tiny.learn(trained, X, Y)
        a = tiny.scores(trained.model, X)
        assert np.isfinite(a).all() and (a.argmax(axis=1) == Y).mean() > 0.5
