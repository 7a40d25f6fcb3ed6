"""Label shift: laws of `adapt`."""

import numpy as np
import pytest
from scipy.optimize import minimize
from test_table import FIXED, GIVEN, made

import discem
from discem import GaussianNB, MixtureClassifier, MultinomialNB, TableClassifier, TextClassifier
from discem.estimators._shift import Scaling, find_shift
from discem.exceptions import InputError

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
BEFORE = np.array([0.5, 0.3, 0.2])


def posteriors(now, n=2000, seed=0):
    """Exact ln p(y | x) by the frequencies BEFORE, of rows whose classes have others."""
    rng = np.random.default_rng(seed)
    y = rng.choice(3, size=n, p=now)
    x = rng.normal(y, 1.0)
    joint = np.log(BEFORE) - 0.5 * (x[:, None] - np.arange(3)) ** 2
    return joint - np.logaddexp.reduce(joint, axis=1, keepdims=True), y


def test_frequencies_maximise_the_likelihood():
    log_p, _ = posteriors([0.1, 0.1, 0.8])
    found = find_shift(log_p, np.arange(3), BEFORE)

    def loss(free):
        now = np.exp(free - np.logaddexp.reduce(free))
        likelihood = np.log((np.exp(log_p) * now / BEFORE).sum(axis=1)).sum()
        return -likelihood - 3.0 * (BEFORE * np.log(now)).sum()

    best = minimize(loss, np.zeros(3)).x
    np.testing.assert_allclose(found.now, np.exp(best - np.logaddexp.reduce(best)), atol=1e-4)
    assert found.p_value < 1e-6
    np.testing.assert_allclose(found.drift, np.abs(found.now - BEFORE).sum() / 2)


def test_standard_errors_are_those_of_draws():
    found = [find_shift(posteriors(BEFORE, 500, s)[0], np.arange(3), BEFORE) for s in range(200)]
    spread = np.std([each.now for each in found], axis=0)
    np.testing.assert_allclose(np.mean([each.error for each in found], axis=0), spread, rtol=0.2)
    unlikely = np.mean([each.p_value < 0.1 for each in found])
    assert 0.04 < unlikely < 0.18


def test_probabilities_that_are_too_certain_are_scaled():
    log_p, y = posteriors(BEFORE)
    sure = 3.0 * log_p + [0.5, 0.0, -1.0]
    sure -= np.logaddexp.reduce(sure, axis=1, keepdims=True)
    scaling = Scaling.learn(sure, y, np.bincount(y) / len(y))
    assert abs(scaling.temperature - 1 / 3) < 0.05
    np.testing.assert_allclose(np.exp(scaling(sure)), np.exp(log_p), atol=0.05)
    assert Scaling.learn(0.2 * log_p, y, BEFORE).temperature == 1.0


def test_a_table_whose_stream_brings_a_class_is_saved_and_adapts(tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = np.where(X[:, 0] > 0, "p", "n")
    model = TableClassifier(**FIXED).fit(X, y)
    before = model._fitted.scaling.bias
    model.partial_fit(X[:3], ["new"] * 3)  # which sorts between the others
    assert np.array_equal(model._fitted.scaling.bias, [before[0], 0.0, before[1]])
    model.save(tmp_path / "model")
    assert discem.load(tmp_path / "model").adapt(X).shift_.classes.tolist() == ["n", "new", "p"]


def numbers(n, shares, seed):
    rng = np.random.default_rng(seed)
    y = rng.choice(3, size=n, p=shares)
    return rng.normal(size=(n, 2)) + 1.5 * np.eye(3)[y][:, :2], np.array(["a", "b", "c"])[y]


def words(n, shares, seed):
    rng = np.random.default_rng(seed)
    y = rng.choice(3, size=n, p=shares)
    return 1 + rng.multinomial(12, 0.2 + 0.4 * np.eye(3)[y]), np.array(["a", "b", "c"])[y]


def texts(n, shares, seed):
    counts, y = words(n, shares, seed)
    return [" ".join(["left"] * a + ["right"] * b + ["up"] * c) for a, b, c in counts], y


def table(n, shares, seed):
    X, y = made(4 * n, seed)
    rng, own = np.random.default_rng(seed), np.searchsorted(np.unique(y), y)
    rows = np.concatenate([rng.permutation(np.flatnonzero(own == k))[: int(n * s)]
                           for k, s in enumerate(shares)])  # fmt: skip
    return X.iloc[rows], y[rows]


MODELS = [
    (GaussianNB(random_state=0), numbers),
    (MixtureClassifier(2, random_state=0), numbers),
    (MultinomialNB(random_state=0), words),
    (TextClassifier(random_state=0), texts),
    (TableClassifier(**FIXED | {"families": GIVEN, "density": False}), table),
]


@pytest.mark.parametrize(("model", "data"), MODELS, ids=lambda each: type(each).__name__)
def test_every_classifier_adapts(model, data, tmp_path):
    model.fit(*data(1200, [0.4, 0.4, 0.2], 0))
    X, y = data(1200, [0.1, 0.2, 0.7], 1)
    before, p = model.class_frequency_, model.predict_proba(X)
    adapted = model.adapt(X)
    true = np.array([np.mean(y == label) for label in model.classes_])
    assert np.abs(adapted.shift_.now - true).max() < 0.08
    np.testing.assert_allclose(adapted.class_frequency_, adapted.shift_.now)
    assert 0.3 < adapted.shift_.drift < 0.6
    codes = np.searchsorted(model.classes_, y)
    after = adapted.predict_proba(X)
    rows = np.arange(len(y))
    assert -np.log(after[rows, codes]).mean() < -0.9 * np.log(p[rows, codes]).mean()
    # the model itself has learnt nothing
    np.testing.assert_array_equal(model.predict_proba(X), p)
    np.testing.assert_array_equal(model.class_frequency_, before)
    with pytest.raises(AttributeError, match="adapt"):
        _ = model.shift_
    # adapting again is the same, and so is a file
    again = adapted.adapt(X)
    np.testing.assert_allclose(again.shift_.now, adapted.shift_.now, atol=1e-9)
    adapted.save(tmp_path / "model.skops")
    read = discem.load(tmp_path / "model.skops")
    np.testing.assert_array_equal(read.predict_proba(X), after)
    assert read.shift_.p_value == adapted.shift_.p_value < 1e-3
    adapted.set_class_prior(None)
    assert not hasattr(adapted, "shift_")


def test_rows_that_are_known_make_over_confident_models_fit():
    def correlated(n, shares, seed):
        X, y = numbers(n, shares, seed)
        return np.hstack([X, X, X, X]), y

    X, y = correlated(3000, [0.6, 0.3, 0.1], 0)
    model = GaussianNB(loss="nll").fit(X, y)
    fresh, labels = correlated(3000, [0.2, 0.3, 0.5], 1)
    true = np.array([np.mean(labels == label) for label in model.classes_])
    off = np.abs(model.adapt(fresh).shift_.now - true).max()
    assert np.abs(model.adapt(fresh, known=(X, y)).shift_.now - true).max() < min(0.05, off)


def test_what_cannot_be_adapted_to():
    X, y = numbers(100, [0.4, 0.4, 0.2], 0)
    model = GaussianNB().fit(X, y)
    with pytest.raises(InputError, match="label"):
        model.adapt(X, known=(X, np.where(y == "a", None, y)))
    with pytest.raises(ValueError, match="0 sample"):
        model.adapt(X[:0])
