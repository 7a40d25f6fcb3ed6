"""A device of PyTorch: what is learnt there is what is learnt here.

The device is PyTorch's CPU, which every build of it has. Without PyTorch all but the first test are
skipped.
"""

import importlib.util
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
import tiny
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris

import discem
from discem import Device, constant, estimators, inverse
from discem._arrays import mapped
from discem.engines import Sequential, device
from discem.exceptions import MissingExtraError, OptionError
from discem.families import FAMILIES
from discem.losses import LOSSES

absent = [name for name in ("torch", "array_api_compat") if importlib.util.find_spec(name) is None]
needs_torch = pytest.mark.skipif(bool(absent), reason=f"not installed: {', '.join(absent)}")
HERE = Device("cpu")


def table():
    """Measurements with holes, and counts that go with the classes."""
    X, y = load_iris(return_X_y=True)
    X[::7, 1] = np.nan
    rng = np.random.default_rng(0)
    return X, sp.csr_matrix(rng.poisson(0.3 + 2.0 * rng.random((3, 30))[y]).astype(float)), y


def without_torch():
    raise ImportError("No module named 'torch'")


def test_every_estimator_takes_a_device():
    for name in estimators.__all__:
        kind = getattr(estimators, name)
        if hasattr(kind, "fit"):
            assert "device" in kind().get_params(), name


def test_what_is_missing_is_said(monkeypatch):
    monkeypatch.setattr(device, "_library", without_torch)
    X, _, y = table()
    with pytest.raises(MissingExtraError, match=r"device='cuda' needs PyTorch: pip install"):
        discem.GaussianNB(device="cuda").fit(X, y)
    discem.GaussianNB(device="auto").fit(X, y)
    discem.GaussianNB(device="cpu").fit(X, y)


@needs_torch
def test_a_device_that_is_not_there_is_named():
    import torch

    X, _, y = table()
    with pytest.raises(OptionError, match="device='no such' is unknown"):
        discem.GaussianNB(device="no such").fit(X, y)
    if not torch.cuda.is_available():
        with pytest.raises(OptionError, match="device='cuda' cannot be used here"):
            discem.GaussianNB(device="cuda").fit(X, y)
        discem.GaussianNB(device="auto").fit(X, y)
    with pytest.raises(OptionError, match="float16"):
        discem.GaussianNB(device=Device("cpu", "float16")).fit(X, y)
    with pytest.raises(OptionError, match="inference='gibbs' runs on the processor alone"):
        discem.TopicClassifier(device=HERE, inference="gibbs").fit(["a b", "b c"], [0, 1])


@needs_torch
@tiny.in_turn("family, loss, batch", list(FAMILIES), list(LOSSES), {"rows": 1, "batches": 7})
def test_a_pass_on_the_device_is_a_pass_in_numpy(family, loss, batch):
    from torch import Tensor

    X, y = tiny.data(family, n=60)
    X = tiny.holed(family, X)
    start, ends = tiny.begin(family, X, y, average=True), []
    # on a device a block of very many levels is one of categories, which shortens steps otherwise
    schedule = constant(1e-3) if family == "levels" else inverse(0.1)
    for engine in (Sequential(), HERE):
        trained = tiny.learner(start, loss, schedule, 60, batch, engine=engine)
        trained = tiny.learn(trained, X, y, chunk=14)
        strangers = []
        mapped(strangers.append, trained.state, kind=Tensor)
        assert not strangers
        ends.append([tiny.scores(each, X, engine) for each in (trained.state, trained.model)])
    for one, other in zip(*ends, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-7)


ESTIMATORS = {
    "numbers": (discem.GaussianNB(), 0),
    "numbers, in batches": (discem.GaussianNB(batch_size=8, max_iter=3, tol=None), 0),
    "nll": (discem.GaussianNB(loss="nll"), 0),
    "components": (discem.MixtureClassifier(n_components=2), 0),
    "hidden cells": (discem.MixtureClassifier(n_components=2, hide=0.3, max_iter=3, tol=None), 0),
    "correlated": (discem.GaussianClassifier(), 0),
    "words": (discem.MultinomialNB(loss="ncll", max_iter=3, tol=None), 1),
    "words, hinge": (discem.MultinomialNB(loss="hinge", max_iter=2, tol=None), 1),
    "topics": (discem.TopicClassifier(max_iter=3), 1),
    "topics, hinge": (discem.TopicClassifier(n_topics=3, loss="hinge", max_iter=2), 1),
}


@needs_torch
@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_model_of_the_device_is_that_of_numpy(name, tmp_path):
    """And goes to a file, or to another process, as one that was never there."""
    model, which = ESTIMATORS[name]
    (*tables, y), model = table(), model.set_params(random_state=0)
    X = tables[which]
    there = clone(model).set_params(device=HERE).fit(X, y)
    p, expected = there.predict_proba(X), clone(model).fit(X, y).predict_proba(X)
    assert type(p) is np.ndarray
    assert p.dtype == np.float64
    np.testing.assert_allclose(p, expected, atol=1e-3 if which else 1e-6)
    again = pickle.loads(pickle.dumps(there)).set_params(device=None)
    np.testing.assert_allclose(again.predict_proba(X), p, atol=1e-6)
    there.save(tmp_path / "model.skops")
    loaded = discem.load(tmp_path / "model.skops")
    assert loaded.device is None
    np.testing.assert_allclose(loaded.predict_proba(X), p, atol=1e-6)


@needs_torch
def test_streams_and_tables_on_the_device():
    pd = pytest.importorskip("pandas")
    X, counts, y = (part[np.random.default_rng(1).permutation(150)] for part in table())
    frame = pd.DataFrame(X, columns=list("abcd")).assign(e=np.where(y > 0, "p", "q"))
    cases = [(discem.GaussianNB, X), (discem.MultinomialNB, counts), (discem.NaiveBayes, frame)]
    for kind, rows in [*cases, (discem.TopicClassifier, counts)]:
        ends = []
        for where in (None, HERE):
            model = kind(random_state=0, device=where)
            for first in range(0, 150, 50):
                some = slice(first, first + 50)
                part = rows.iloc[some] if kind is discem.NaiveBayes else rows[some]
                model.partial_fit(part, y[some], classes=[0, 1, 2])
            ends.append(model.predict_proba(rows))
        np.testing.assert_allclose(ends[1], ends[0], atol=1e-9)


@needs_torch
@pytest.mark.parametrize("stream", [False, True])
def test_regression_on_the_device(stream, tmp_path):
    X, _, _ = table()
    rows = [{"a": a, "b": b, "c": "xyz"[int(c) % 3]} for a, b, c, _ in X]
    y = np.where(X[:, 3] > 1.0, X[:, 0], -X[:, 2])
    options = {"n_components": 2, "average": 1, "density": False, "random_state": 0}
    options |= {"whole_numbers": "numbers", "missing": "ignore", "max_iter": 12}
    ends = []
    for where in (None, HERE):
        model = discem.TableRegressor(**options, device=where)
        train = model.partial_fit if stream else model.fit
        train(rows, y)
        if stream:
            train(rows[:40], y[:40])
        mean, std = model.predict(rows, return_std=True)
        ends.append(np.stack([mean, std, model.score_samples(rows)]))
    np.testing.assert_allclose(ends[1], ends[0], rtol=1e-6, atol=1e-6)
    model.save(tmp_path / "model.skops")
    loaded = discem.load(tmp_path / "model.skops")
    assert loaded.device is None
    np.testing.assert_allclose(loaded.predict(rows), ends[1][0], atol=1e-6)


@needs_torch
def test_texts_on_the_device():
    texts = ["good film", "bad film", "good plot and good cast", "bad plot and bad cast"] * 10
    options = {"max_iter": 3, "random_state": 0}
    ends = [
        discem.TextClassifier(**options, device=where).fit(texts, ["+", "-"] * 20)
        for where in (None, HERE)
    ]
    one, other = (model.predict_proba(texts) for model in ends)
    np.testing.assert_allclose(other, one, atol=1e-3)


@needs_torch
def test_single_precision_is_as_good():
    (X, y), options = load_digits(return_X_y=True), {"max_iter": 5, "random_state": 0}
    for model in (discem.GaussianNB(**options), discem.MixtureClassifier(**options)):
        right = [
            clone(model).set_params(device=where).fit(X[::2], y[::2]).score(X[1::2], y[1::2])
            for where in (HERE, Device("cpu", "float32"))
        ]
        assert abs(right[1] - right[0]) < 0.01
