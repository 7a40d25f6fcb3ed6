"""How good the models are: the paper's toy, the exact optimum, logistic regression."""

import numpy as np
import pytest
from optimum import penalised_ncll
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from discem import GaussianNB, inverse
from discem.datasets import toy, toy_accuracy

DATA = {"wine": load_wine, "breast cancer": load_breast_cancer, "digits": load_digits}
every_data = pytest.mark.parametrize("name", DATA)
discriminative = pytest.mark.parametrize("loss", ["ncll", "hinge"])


# --- the toy --------------------------------------------------------------------------------------


def on_toy(seed, n=30_000, **options):
    model = GaussianNB(random_state=seed, **options).fit(*toy(n, random_state=seed))
    numbers = [*model.mu_.values(), *model.theta_.values()]
    numbers += [value for record in model.history_ for value in record.values()]
    assert all(np.isfinite(number).all() for number in numbers)
    return toy_accuracy(model)


@pytest.mark.parametrize(
    "loss, low, high", [("ncll", 0.92, 1), ("hinge", 0.915, 1), ("nll", 0.785, 0.8)]
)
def test_toy_by_default(loss, low, high):
    assert low <= on_toy(0, loss=loss) <= high


@discriminative
@pytest.mark.parametrize("prior", ["data", "paper"])
@pytest.mark.parametrize("lam", [0.1, 1e-5])
def test_interior_steps_of_any_size(loss, prior, lam):
    """From the paper's start, steps that decay a hundred thousand times slower do no harm."""
    options = {"init": "prior", "step": inverse(lam), "max_iter": 5, "tol": None, "n": 10_000}
    options["batch_size"] = 50
    assert on_toy(0, loss=loss, prior=prior, average=True, **options) >= 0.90
    assert on_toy(1, loss=loss, prior=prior, average=False, **options) > 0.5


# --- the optimum ----------------------------------------------------------------------------------


@every_data
def test_default_training_reaches_the_optimum(name):
    X, y = DATA[name](return_X_y=True)
    with threadpool_limits(1):
        value, start, best = penalised_ncll(GaussianNB(random_state=0).fit(X, y), X, y)
    assert start - best > 1.0  # there was something to learn
    assert value - best <= 0.01 * (start - best)
    assert (value - best) / len(y) <= 0.005


def test_rare_flags_and_heavy_tails_do_not_keep_training_waiting():
    """One column a level, some of them rare, beside a skewed one: as any table of a business."""
    rng = np.random.default_rng(0)
    rare = np.exp(rng.uniform(np.log(0.002), np.log(0.3), 40))
    X = np.hstack([rng.random((3000, 40)) < rare, rng.lognormal(size=(3000, 1))])
    odds = X[:, :40] @ rng.normal(scale=2.0, size=40) + np.log(X[:, 40])
    y = (odds + rng.logistic(size=3000) > np.median(odds)).astype(int)
    with threadpool_limits(1):
        model = GaussianNB(random_state=0).fit(X, y)
        value, _, best = penalised_ncll(model, X, y)
    assert (value - best) / len(y) <= 0.005
    assert model.n_iter_ <= 150


def test_as_good_as_logistic_regression():
    """Defaults on both sides, five folds; four times five give 0.9787 against 0.9764."""
    figures = {}
    for name, model in (
        ("ours", GaussianNB(random_state=0)),
        ("theirs", make_pipeline(StandardScaler(), LogisticRegression(max_iter=5000))),
    ):
        each = []
        for load in DATA.values():
            X, y = load(return_X_y=True)
            folds = StratifiedKFold(5, shuffle=True, random_state=0)
            with threadpool_limits(1):
                p = cross_val_predict(model, X, y, cv=folds, method="predict_proba")
            each.append((accuracy_score(y, p.argmax(axis=1)), log_loss(y, p)))
        figures[name] = np.mean(each, axis=0)
    (accuracy, loss), (their_accuracy, their_loss) = figures["ours"], figures["theirs"]
    assert accuracy >= their_accuracy - 0.002
    assert loss <= 1.2 * their_loss


# --- units ----------------------------------------------------------------------------------------


@discriminative
@pytest.mark.parametrize("scale, shift", [(1e-100, 1e3), (1e-3, 1e6), (1e100, 0.0)])
def test_units_do_not_matter(loss, scale, shift):
    X, y = load_wine(return_X_y=True)
    Z = scale * (X + shift * X.std(axis=0) * np.where(np.arange(13) % 2, 1, -1))
    odds, labels = [], []
    for table in (X, Z):
        model = GaussianNB(loss=loss, random_state=0, batch_size=8, max_iter=10).fit(table, y)
        logs = model.predict_log_proba(table)
        odds.append(logs - logs[:, :1])
        labels.append(model.predict(table))
    np.testing.assert_array_equal(*labels)
    assert (np.abs(odds[1] - odds[0]) <= 1e-5 * np.maximum(1, np.abs(odds[0]))).all()
