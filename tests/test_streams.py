"""Streams: what they cost, what they keep, and what they say when they cannot be learnt from."""

from __future__ import annotations

import gc
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

import discem
from discem import GaussianNB, MixtureClassifier, MultinomialNB, TextClassifier, TopicClassifier
from discem.training import WINDOW

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
    "words, hinge": (MultinomialNB, {"loss": "hinge", "average": True}, as_counts),
    "words, nll": (MultinomialNB, {"loss": "nll"}, as_counts),
    "text": (TextClassifier, {}, as_text),
    "text, hinge": (TextClassifier, {"loss": "hinge"}, as_text),
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
    assert again.stream_ == model.stream_ and again.history_ == model.history_
    assert again.fit(X, y).stream_ == {}
