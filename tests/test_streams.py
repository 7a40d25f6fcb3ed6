"""Streams: what they cost, what they keep, and what they say when they cannot be learnt from."""

from __future__ import annotations

import gc
import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import tiny

import discem
from discem import (
    GaussianNB,
    MixtureClassifier,
    MultinomialNB,
    TextClassifier,
    TopicClassifier,
)
from discem.engines import Data
from discem.exceptions import SortedStreamWarning
from discem.targets import labels
from discem.training.learner import WINDOW

N_WORDS, LENGTH = 50_000, 20
WORDS = np.array([f"w{j:05d}" for j in range(N_WORDS)])


def documents(n, n_classes=3, seed=0):
    """Documents of any words, half of them from the class's own part of the vocabulary."""
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n)
    part = N_WORDS // n_classes
    own = rng.integers(part, size=(n, LENGTH // 2)) + part * y[:, None]
    columns = np.hstack([own, rng.integers(N_WORDS, size=(n, LENGTH - LENGTH // 2))])
    return columns, y


def as_counts(columns):
    rows = np.repeat(np.arange(len(columns)), columns.shape[1])
    counts = sp.csr_matrix(
        (np.ones(columns.size), (rows, columns.ravel())), (len(columns), N_WORDS)
    )
    counts.sum_duplicates()
    return counts


def as_text(columns):
    return [" ".join(words) for words in WORDS[columns]]


# --- what a row costs -----------------------------------------------------------------------------

ONE_BY_ONE = {
    "words": (MultinomialNB, {}, as_counts),
    "words, averaged": (MultinomialNB, {"average": True}, as_counts),
    "words, nll": (MultinomialNB, {"loss": "nll"}, as_counts),
    "text": (TextClassifier, {}, as_text),
    "text, hashed": (TextClassifier, {"n_features": N_WORDS}, as_text),
    "topics": (TopicClassifier, {"random_state": 0}, as_counts),
    "topics of text": (TopicClassifier, {"text": True, "random_state": 0}, as_text),
    "mixture": (MixtureClassifier, {"average": True, "random_state": 0}, as_counts),
}


@pytest.mark.parametrize("case", ONE_BY_ONE)
def test_a_document_costs_its_own_words(case):
    """No call takes memory for all words, nor keeps any: a column of numbers would be 400 kB."""
    Model, options, form = ONE_BY_ONE[case]
    everything = np.arange(N_WORDS).reshape(-1, 1000)  # so that every word is known
    columns, y = documents(2 * WINDOW + 50)
    model = Model(**options).partial_fit(form(everything), np.arange(len(everything)) % 3)
    rows = form(columns)
    tracemalloc.start()
    try:
        for i in range(WINDOW):  # what is compiled, cached or kept as a window
            model.partial_fit(rows[i : i + 1], y[i : i + 1])
        gc.collect()
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        for i in range(WINDOW, len(y)):
            model.partial_fit(rows[i : i + 1], y[i : i + 1])
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most - before < 200_000


# --- what is kept ---------------------------------------------------------------------------------


@pytest.mark.parametrize("unlabelled", [False, True])
def test_a_stream_keeps_the_last_batches_and_all_in_all(unlabelled, tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=3 * (WINDOW + 20))
    X, weights = rng.normal(size=(len(y), 3)) + 2 * y[:, None], rng.uniform(0.5, 2.0, len(y))
    y = np.where(unlabelled & (np.arange(len(y)) % 3 == 2), np.nan, y)
    model, records, heard = GaussianNB(), [], []
    for first in range(0, len(y), 3):
        part = slice(first, first + 3)
        model.partial_fit(X[part], y[part], sample_weight=weights[part])
        records.append(model.history_[-1])
        heard.append(weights[part][~np.isnan(y[part])].sum())
    assert model.history_ == records[-WINDOW:]
    assert model.n_iter_ == model.stream_["batches"] == len(records)
    assert model.stream_["rows"] == len(y)
    assert model.stream_["seconds"] == pytest.approx(sum(r["seconds"] for r in records))
    for name in ("loss", "nll", "ncll", "hinge", "accuracy"):
        mean = np.average([record[name] for record in records], weights=heard)
        assert model.stream_[name] == pytest.approx(mean)
    model.save(tmp_path / "model")
    again = discem.load(tmp_path / "model")
    assert [again.stream_, *again.history_] == tiny.untimed([model.stream_, *model.history_])
    assert again.fit(X, y).stream_ == {}


# --- classes that join late -----------------------------------------------------------------------


def numbers(n, n_classes, seed):
    rng = np.random.default_rng(seed)
    means = 1.2 * np.random.default_rng(99).normal(size=(n_classes, 8))
    y = rng.integers(n_classes, size=n)
    return rng.normal(means[y]), y


def counts(n, n_classes, seed):
    rng, words = np.random.default_rng(seed), np.random.default_rng(7)
    rates = words.dirichlet(np.full(300, 0.15), n_classes) + words.dirichlet(np.full(300, 1.0))
    y = rng.integers(n_classes, size=n)
    return np.stack([rng.multinomial(30, p / 2) for p in rates[y]]).astype(float), y


def texts(n, n_classes, seed):
    X, y = counts(n, n_classes, seed)
    words = np.array([f"w{j}" for j in range(X.shape[1])])
    return np.array([" ".join(np.repeat(words, row.astype(int))) for row in X], dtype=object), y


def rows_until_known(model, data, after_fit):
    """Rows of a class that joins late until four in five of its rows are recognised."""
    X, y = data(600, 4, 0)
    old, new = y < 3, data(400, 4, 1)
    if after_fit:
        model.fit(X[old], y[old])
    else:
        for part in np.array_split(np.flatnonzero(old), 20):
            model.partial_fit(X[part], y[part])
    X, y = data(1200, 4, 2)
    for first in range(0, len(y), 20):
        part = slice(first, first + 20)
        model.partial_fit(X[part], y[part])
        if np.mean(model.predict(new[0][new[1] == 3]) == 3) > 0.8:
            break
    return np.count_nonzero(y[: first + 20] == 3)


LATE = {
    "numbers": (lambda loss: GaussianNB(loss=loss, random_state=0), numbers),
    # the mass of words grows with every pass: as many of them under either loss
    "counts": (lambda loss: MultinomialNB(loss=loss, average=True, max_iter=5), counts),
    "text": (lambda loss: TextClassifier(loss=loss, weighting="tfidf", random_state=0), texts),
    "mixture": (lambda loss: MixtureClassifier(loss=loss, random_state=0), numbers),
}


@pytest.mark.parametrize("after_fit", [False, True])
@pytest.mark.parametrize("case", LATE)
def test_hinge_learns_a_late_class_as_ncll_does(case, after_fit):
    make, data = LATE[case]
    ncll, hinge = (rows_until_known(make(loss), data, after_fit) for loss in ("ncll", "hinge"))
    assert ncll < 60
    assert hinge < ncll + 30


@pytest.mark.parametrize("steps", [0, 7])
@pytest.mark.parametrize("Model", [GaussianNB, MultinomialNB, MixtureClassifier])
def test_an_average_forgets_all_but_so_many_steps(Model, steps):
    """It goes on as one whose first steps, weighted by t^2, came to what there was."""
    X, y = counts(60, 3, 0)
    model = Model(loss="hinge", average=True, random_state=0, max_iter=5).fit(X, y)
    learner = model.learner_
    weights = np.arange(1, steps + 13, dtype=float) ** 2
    past = learner.state.averaged().class_counts.copy()
    learner.forget(steps)
    seen = [past] * steps
    data = Data(model._rows(X), labels(y), np.ones(len(y)))
    learner.rule = learner.rule._replace(batch=1)
    for i in range(12):
        learner.learn(data, np.array([i]))
        seen.append(learner.state.class_counts.copy())
    expected = np.average(seen, axis=0, weights=weights)
    np.testing.assert_allclose(learner.model.class_counts, expected, rtol=1e-9)


def test_a_stream_after_fit_is_heard():
    """Of averages, too: the passes of `fit` do not outweigh rows that say something else."""
    X, y = numbers(300, 3, 0)
    model = GaussianNB(random_state=0).fit(X, y)
    more, truth = numbers(2000, 3, 1)
    for first in range(0, len(truth), 100):
        part = slice(first, first + 100)
        model.partial_fit(more[part], (truth[part] + 1) % 3)
    assert model.score(X, (y + 1) % 3) > 0.8


# --- the order of rows ----------------------------------------------------------------------------


def warned(model, y, size=10, X=None):
    """Whether a stream of these labels is warned of."""
    X = np.random.default_rng(0).normal(size=(len(y), 2)) if X is None else X
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for first in range(0, len(y), size):
            model.partial_fit(X[first : first + size], y[first : first + size])
    told = [each for each in caught if each.category is SortedStreamWarning]
    assert len(told) < 2
    return bool(told)


def test_a_sorted_stream_is_warned_of():
    y = np.repeat(np.arange(3), 100)
    assert warned(GaussianNB(), y)
    assert warned(GaussianNB(), y, size=len(y))
    assert warned(GaussianNB(), y, size=1)
    assert warned(GaussianNB(), np.repeat(np.arange(3)[::-1], 100))  # classes are put in order
    assert warned(
        GaussianNB(), np.tile(np.repeat(np.arange(3), 30), 5)
    )  # a class a batch, or three
    assert warned(MixtureClassifier(loss="nll", random_state=0), y)
    assert warned(MultinomialNB(), y, X=np.ones((len(y), 2)))
    assert not warned(GaussianNB(loss="nll"), y)  # which does not mind


def test_a_stream_in_no_order_is_not_warned_of():
    rng = np.random.default_rng(0)
    for shares in ([0.5, 0.5], [0.2] * 5, [0.9, 0.1], [0.99, 0.01], [0.98, 0.01, 0.01], [1.0]):
        for size in (1, 7, 100):
            y = rng.choice(len(shares), size=2000, p=shares)
            assert not warned(GaussianNB(), y[: 300 if size == 1 else None], size)
    assert not warned(GaussianNB(), np.repeat([0, 1], 20))  # too short to tell
    assert not warned(GaussianNB(), np.append(np.zeros(500), rng.integers(2, size=500)))  # joins
    none = np.where(rng.random(1000) < 0.9, np.nan, rng.integers(3, size=1000))
    assert not warned(GaussianNB(), none)


def test_a_stream_that_was_warned_of_is_not_again(tmp_path):
    y = np.repeat(np.arange(3), 100)
    model = GaussianNB()
    assert warned(model, y)
    model.save(tmp_path / "model")
    again = discem.load(tmp_path / "model")
    assert not warned(again, y)
    again.fit(np.random.default_rng(0).normal(size=(len(y), 2)), y)
    assert warned(again, y)
