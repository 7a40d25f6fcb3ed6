"""What an estimator has learnt is replaced as a whole, or stays as it is."""

import copy
import pickle
import re
from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
import tiny

import discem
from discem import (
    Dirichlet,
    GaussianClassifier,
    GaussianNB,
    MixtureClassifier,
    MultinomialNB,
    NormalGamma,
    NormalWishart,
    TextClassifier,
    TopicClassifier,
)

NAMES = np.array(["ash", "birch", "cedar"])


def counts(n=60, W=12, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    return rng.poisson(0.5 + 2.0 * (y[:, None] == np.arange(W) % 3)).astype(float), NAMES[y]


def table(n=60):
    X, y = counts(n, W=4)
    return X + np.random.default_rng(1).normal(size=X.shape), y


def texts(n=60):
    X, y = counts(n)
    words = np.array([f"word{chr(97 + j)}" for j in range(12)])
    return [" ".join(np.repeat(words, row.astype(int))) or "none" for row in X], y


ESTIMATORS = {
    "gaussian": (GaussianNB(max_iter=3, random_state=0), table),
    "correlated": (GaussianClassifier(max_iter=3, random_state=0), table),
    "multinomial": (MultinomialNB(max_iter=3, random_state=0), counts),
    "mixture": (MixtureClassifier(max_iter=3, random_state=0), table),
    "topics": (TopicClassifier(max_iter=3, random_state=0), counts),
    "topics of text": (TopicClassifier(max_iter=3, random_state=0, text=True), texts),
    "text": (TextClassifier(random_state=0), texts),
}
every_estimator = pytest.mark.parametrize("name", ESTIMATORS)


@cache
def trained(name):
    model, rows = ESTIMATORS[name]
    X, y = rows()
    return copy.deepcopy(model).fit(X, y), X, y


def fitted(name):
    """A model of its own, and the rows that it was fitted to."""
    model, X, y = trained(name)
    return copy.deepcopy(model), X, y


def picture(model, X):
    """All that can be seen of a model, and all that it holds."""
    plain = {n: v for n, v in vars(model).items() if n not in model.get_params()}
    return (
        model.predict_joint_log_proba(X).tobytes(),
        len(model.history_),
        model.classes_.tolist(),
        pickle.dumps({n: v for n, v in plain.items() if n not in ("_bag", "_fitted", "learner_")}),
    )


OTHER = {  # rows of another width, or other words, whose labels are refused
    "correlated": lambda: np.random.default_rng(0).normal(size=(30, 7)),
    "gaussian": lambda: np.random.default_rng(0).normal(size=(30, 7)),
    "multinomial": lambda: np.random.default_rng(0).poisson(1.0, size=(30, 7)),
    "mixture": lambda: np.random.default_rng(0).normal(size=(30, 7)),
    "topics": lambda: np.random.default_rng(0).poisson(1.0, size=(30, 7)),
    "topics of text": lambda: ["zebra okapi giraffe", "lion"] * 15,
    "text": lambda: ["zebra okapi giraffe", "lion"] * 15,
}
BAD_LABELS = {
    "too few": np.arange(29) % 2,
    "one class": np.zeros(30, dtype=int),
    "none at all": np.full(30, None),
    "mixed": np.array(["a", 1] * 15, dtype=object),
    "no distribution": np.full((30, 2), 0.7),
}


@every_estimator
@pytest.mark.parametrize("labels", BAD_LABELS.values(), ids=BAD_LABELS)
def test_a_refit_that_is_refused_changes_nothing(name, labels):
    """Neither the columns, nor the vocabulary, nor the model."""
    model, X, y = fitted(name)
    before = picture(model, X)
    with pytest.raises(ValueError):
        model.fit(OTHER[name](), labels)
    assert picture(model, X) == before
    model.partial_fit(X, y)  # and it goes on


BAD_OPTIONS = {
    "correlated": {"prior": NormalWishart(covariance=-np.eye(4))},
    "gaussian": {"prior": NormalGamma(variance=[1.0, 2.0])},
    "multinomial": {"prior": Dirichlet([1.0, 2.0])},
    "mixture": {"n_components": {"ash": 2}},
    "topics": {"prior": Dirichlet([1.0, 2.0])},
    "topics of text": {"prior": Dirichlet(-1.0)},
    "text": {"prior": Dirichlet(-1.0)},
}


@every_estimator
def test_an_option_that_turns_out_wrong_changes_nothing(name):
    """Also one that only the data show to be wrong."""
    model, X, y = fitted(name)
    before = picture(model, X)
    model.set_params(**BAD_OPTIONS[name])
    with pytest.raises(ValueError, match=r"prior|n_components"):
        model.fit(X[:50], y[:50])
    assert picture(model, X) == before


@pytest.mark.parametrize("name", ["topics of text", "text"])
def test_a_batch_that_is_refused_teaches_no_words(name):
    X, y = texts()
    model = copy.deepcopy(ESTIMATORS[name][0]).partial_fit(X, y)
    before = picture(model, X)
    words = model._bag if name != "text" else model.bag_
    known, n_documents = dict(words.vocabulary), words.n_documents
    for labels in (["ash"], [1, 2], np.array([[0.5, 0.5]] * 2)):
        with pytest.raises(ValueError):
            model.partial_fit(["zebra okapi", "wordz"], labels)
    assert words.vocabulary == known and words.n_documents == n_documents
    assert picture(model, X) == before
    model.partial_fit(["zebra okapi", "wordz"], ["ash", "oak"])
    assert "zebra" in words.vocabulary and "oak" in model.classes_


def test_the_words_of_a_fit_on_text_do_not_outlive_one_on_counts():
    model, *_ = fitted("topics of text")
    assert model.top_words("ash", 0, 1)[0].startswith("word")
    X, y = counts()
    model.set_params(text=False).fit(X, y)
    assert isinstance(model.top_words("ash", 0, 1)[0], int)


def test_an_average_goes_on_after_unlabelled_documents():
    """They replace the state; what is predicted with is then the average from there on."""
    X, y = counts(n=120)
    labels = y.astype(object)
    labels[40:] = None
    model = MultinomialNB(average=True, max_iter=5, random_state=0, unlabelled_weight=1.0)
    model.fit(X, labels)
    assert model.unlabelled_["rows"] == 80
    assert model.learner_.state.averages
    before = model.predict_joint_log_proba(X)
    model.partial_fit(X[:40], y[:40])
    state, average = model.learner_.state, model.learner_.model
    assert not average.averages
    np.testing.assert_allclose(
        model.class_prior_, average.classes.shares
    )  # both halves of the model are averaged
    after = model.predict_joint_log_proba(X)
    last = model.learner_.engine.score(tiny.plain(state), sparse(X))
    assert np.abs(after - before).max() > 1e-6
    assert np.abs(after - last).max() > 1e-6
    # it is the average: between where the stream began and where it is
    again = MultinomialNB(average=False, max_iter=5, random_state=0, unlabelled_weight=1.0)
    again.fit(X, labels).partial_fit(X[:40], y[:40])
    assert not again.learner_.state.averages


def sparse(X):
    from discem.io.rows import sparse_rows

    return sparse_rows(sp.csr_array(X))


@every_estimator
def test_a_copy_is_a_twin(name):
    """Pickles and deep copies predict and learn alike, and leave the original alone."""
    model, X, y = fitted(name)
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert twin.predict_joint_log_proba(X).tobytes() == picture(model, X)[0]
        before = picture(model, X)
        twin.partial_fit(X, y)
        assert picture(model, X) == before


def test_nothing_swaps_the_insides_of_an_object():
    """No module replaces a __dict__, nor reads what another keeps for itself."""
    from pathlib import Path

    for file in Path(discem.__file__).parent.rglob("*.py"):
        text = file.read_text()
        assert not re.search(r"__dict__\s*=[^=]", text), file
        assert not re.search(r"\b(?!self\b|cls\b)\w+\._learner\b", text), file
