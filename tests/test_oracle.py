"""The array update at a batch size of 1 is the paper's algorithm: two programs, the same numbers.

`discem.paper` walks row by row in compiled loops and shares no code with the core.
"""

import numpy as np
import pytest
from sklearn.datasets import load_wine

from discem import GaussianNB, Interior, MultinomialNB, inverse
from discem.datasets import toy

pytest.importorskip("numba", reason="the paper's room needs numba")
from discem.paper import gaussian, multinomial

LOSSES = ("nll", "ncll", "hinge")
PROJECTIONS = ("check", "interior")


def projection_of(name, loss):
    """Steps of NLL are not damped: they are averages, which cannot overshoot."""
    return name if name == "check" else Interior(0.5, 0.0 if loss == "nll" else 0.03)


def agree(model, other, X):
    ours, theirs = model.predict_joint_log_proba(X), other.scores(X)
    assert np.abs(ours - theirs).max() <= 1e-10 * (1.0 + np.abs(theirs).max())


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("projection", PROJECTIONS)
@pytest.mark.parametrize("loss", LOSSES)
def test_gaussian_rows_of_the_toy(loss, projection, average):
    X, y = toy(400, random_state=0)
    model = GaussianNB(
        loss=loss, prior="paper", init="prior", step=inverse(0.1), average=average,
        projection=projection_of(projection, loss), max_iter=1, tol=None, random_state=0,
    ).fit(X, y)  # fmt: skip
    other = gaussian.train(
        X, y, loss=loss, lam=0.1, epochs=1, seed=0, projection=projection, average=average
    )
    assert model.learner_.rule.batch == 1
    agree(model, other, X)


@pytest.mark.parametrize("holes", [0.0, 0.3])
@pytest.mark.parametrize("loss", ["ncll", "hinge"])
def test_gaussian_rows_in_units_of_their_own_and_with_missing_cells(loss, holes):
    X, y = load_wine(return_X_y=True)
    X[np.random.default_rng(0).random(X.shape) < holes] = np.nan
    model = GaussianNB(
        loss=loss, init="prior", step=inverse(0.1), average=False, projection=Interior(0.5, 0.03),
        max_iter=1, tol=None, random_state=0,
    ).fit(X, y)  # fmt: skip
    other = gaussian.train(
        X, y, loss=loss, prior="data", lam=0.1, epochs=1, seed=0, projection="interior"
    )
    agree(model, other, X)


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("prior", ["P1", "P2"])
@pytest.mark.parametrize("projection", PROJECTIONS)
@pytest.mark.parametrize("loss", LOSSES)
def test_multinomial_documents(loss, projection, prior, average):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 300)
    X = rng.poisson(0.2 + 0.6 * rng.random((4, 50))[y]).astype(float)
    names = {"P1": "laplace", "P2": "log"}
    model = MultinomialNB(
        loss=loss, prior=names[prior], init="prior", step=inverse(1e-3), average=average,
        projection=projection_of(projection, loss), max_iter=1, tol=None, random_state=0,
    ).fit(X, y)  # fmt: skip
    other = multinomial.train(
        X, y, loss=loss, prior=prior, lam=1e-3, epochs=1, seed=0,
        projection=projection, average=average,
    )  # fmt: skip
    agree(model, other, X)
