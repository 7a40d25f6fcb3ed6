"""Words and topics at their defaults: on tables nobody tuned for, beside their own NLL model."""

import os
from itertools import cycle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import MultinomialNB as PlainNB

from discem import (
    Blend,
    Dirichlet,
    MultinomialNB,
    TextClassifier,
    TopicClassifier,
    constant,
)
from discem.families import FAMILIES

DISCRIMINATIVE = ("auto", "ncll", "hinge", "blend")
OPTIONS = ("loss", "prior", "step", "max_iter", "tol")  # of `chosen_`


def documents(n, K=4, W=60, length=20, seed=0, sep=0.7, share=None):
    """Counts and labels, the first n to train on and as many fresh ones."""
    rng = np.random.default_rng(seed)
    p = np.exp(sep * rng.normal(size=(K, W)))
    p /= p.sum(axis=1, keepdims=True)
    y = rng.choice(K, size=2 * n, p=share)
    X = np.stack([rng.multinomial(rng.poisson(length) + 1, p[k]) for k in y]).astype(float)
    return X[:n], y[:n], X[n:], y[n:]


def with_a_word_everywhere(X, y, fresh, y_fresh):
    return np.c_[X, np.full(len(X), 500.0)], y, np.c_[fresh, np.full(len(fresh), 500.0)], y_fresh


def with_an_endless_document(X, y, fresh, y_fresh):
    X = X.copy()
    X[7] = np.random.default_rng(1).multinomial(1_000_000, (X[7] + 1) / (X[7] + 1).sum())
    return X, y, fresh, y_fresh


TABLES = {
    "plain": documents(300),
    "a word that occurs 500 times in each": with_a_word_everywhere(*documents(300)),
    "one document of a million words": with_an_endless_document(*documents(300)),
    "a rare class": documents(2000, W=100, share=[0.6, 0.3, 0.09, 0.01], seed=3),
    "few documents of many classes": documents(90, K=30, W=100, length=30, seed=5),
}


def log_loss(model, X, y):
    p = model.predict_log_proba(X)[np.arange(len(y)), np.searchsorted(model.classes_, y)]
    return -np.maximum(p, -35.0).mean()


@pytest.mark.parametrize(("table", "loss"), zip(TABLES, cycle(DISCRIMINATIVE), strict=False))
def test_not_below_plain_naive_bayes(table, loss):
    X, y, fresh, y_fresh = TABLES[table]
    plain, model = (MultinomialNB(loss=each, random_state=0).fit(X, y) for each in ("nll", loss))
    noise = np.sqrt(0.25 / len(y_fresh))
    assert model.score(X, y) > plain.score(X, y) - 0.02
    assert model.score(fresh, y_fresh) > plain.score(fresh, y_fresh) - 0.02 - noise
    if loss != "hinge":
        assert log_loss(model, fresh, y_fresh) < 1.05 * log_loss(plain, fresh, y_fresh) + 0.02


@pytest.mark.parametrize("loss", ["ncll", "hinge"])
@pytest.mark.parametrize("table", list(TABLES)[:3])
def test_nor_far_below_where_nothing_is_tried(table, loss):
    X, y, fresh, y_fresh = TABLES[table]
    plain = MultinomialNB(loss="nll").fit(X, y)
    model = MultinomialNB(loss=loss, tol=None, max_iter=30, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.95
    assert model.score(fresh, y_fresh) > plain.score(fresh, y_fresh) - 0.08


@pytest.mark.parametrize("Model", [MultinomialNB, TopicClassifier])
@pytest.mark.parametrize("loss", ["ncll", "hinge"])
def test_the_unit_of_weights_does_not_matter(Model, loss):
    X, y, fresh, y_fresh = TABLES["plain"]
    alone, heavy = (
        Model(loss=loss, tol=None, max_iter=5, random_state=0).fit(X, y, np.full(len(y), weight))
        for weight in (1.0, 1e6)
    )
    assert abs(alone.score(fresh, y_fresh) - heavy.score(fresh, y_fresh)) < 0.04
    assert heavy.score(X, y) > 0.95


@pytest.mark.parametrize("loss", ["auto", "hinge"])
def test_a_class_of_great_weight_leaves_the_others_be(loss):
    X, y, _, _ = TABLES["plain"]
    weights = np.where(y == 1, 1e6, 1.0)
    plain, model = (
        MultinomialNB(loss=each, random_state=0).fit(X, y, weights) for each in ("nll", loss)
    )
    assert model.score(X, y) > plain.score(X, y) - 0.02


def test_a_rare_class_is_recalled():
    X, y, fresh, y_fresh = TABLES["a rare class"]
    plain = PlainNB().fit(X, y).predict(fresh)[y_fresh == 3] == 3
    for loss in ("auto", "ncll", "hinge"):
        model = MultinomialNB(loss=loss, random_state=0).fit(X, y)
        assert np.mean(model.predict(fresh)[y_fresh == 3] == 3) > plain.mean() - 0.15


@pytest.mark.slow
def test_half_the_step_ends_much_the_same():
    X, y, fresh, _ = TABLES["plain"]
    n, options = len(y), {"loss": "ncll", "tol": None, "max_iter": 40, "random_state": 0}
    whole, half = (MultinomialNB(step=constant(s / n), **options).fit(X, y) for s in (10.0, 5.0))
    assert np.abs(whole.predict_proba(fresh) - half.predict_proba(fresh)).mean() < 0.02


@pytest.mark.parametrize("options", [{"prior": Dirichlet(1.0)}, {}], ids=["given", "tried"])
def test_blend_of_much_nll_tends_to_its_closed_form(options):
    X, y, fresh, _ = TABLES["plain"]
    plain = MultinomialNB(loss="nll", random_state=0).fit(X, y).predict_joint_log_proba(fresh)
    off = []
    for kappa in (0.1, 1000.0):
        model = MultinomialNB(loss=Blend(kappa), random_state=0, **options).fit(X, y)
        off.append(np.abs(model.predict_joint_log_proba(fresh) - plain).mean())
    assert off[1] < 0.5  # of scores of about -80
    assert off[1] < 0.5 * off[0]


# --- the choice -----------------------------------------------------------------------------------


@pytest.mark.parametrize("table", ["plain", "a rare class"])
@pytest.mark.parametrize("loss", ["auto", "ncll"])
def test_the_options_chosen_give_the_same_model(table, loss):
    X, y, fresh, _ = TABLES[table]
    model = MultinomialNB(loss=loss, random_state=0).fit(X, y)
    options = {name: model.chosen_[name] for name in OPTIONS if name in model.chosen_}
    again = MultinomialNB(**options, random_state=0).fit(X, y)
    np.testing.assert_array_equal(
        model.predict_joint_log_proba(fresh), again.predict_joint_log_proba(fresh)
    )
    assert model.get_params()["loss"] == loss
    assert {trial["loss"] for trial in model.choice_} >= {"nll", "ncll"}
    assert model.temperature_ == model.chosen_["temperature"]


@pytest.mark.parametrize(
    "options",
    [{"tol": None}, {"prior": "laplace"}, {"step": constant(0.01)}, {"init": "prior"},
     {"early_stopping": True}],
    ids=str,
)  # fmt: skip
def test_nothing_is_tried_where_options_are_given(options):
    X, y, _, _ = TABLES["plain"]
    model = MultinomialNB(max_iter=2, random_state=0, **options).fit(X, y)
    assert model.chosen_ == {"loss": "ncll"}
    assert model.temperature_ == 1.0
    given = MultinomialNB(loss="ncll", max_iter=2, random_state=0, **options).fit(X, y)
    np.testing.assert_array_equal(
        model.predict_joint_log_proba(X), given.predict_joint_log_proba(X)
    )


def test_callbacks_hear_of_the_fit_alone_and_are_not_copied():
    class Watcher:
        seen = 0

        def __call__(self, model, record):
            self.seen += 1

        def __deepcopy__(self, memo):
            raise TypeError("not to be copied")

    X, y, _, _ = TABLES["plain"]
    watcher = Watcher()
    model = MultinomialNB(loss="ncll", callback=watcher, random_state=0).fit(X, y)
    assert watcher.seen == model.n_iter_ == model.chosen_["max_iter"]


def test_a_stream_goes_on_with_the_loss_chosen():
    X, y, _, _ = TABLES["plain"]
    model = MultinomialNB(random_state=0).fit(X, y)
    assert model.partial_fit(X, y).score(X, y) > 0.95
    assert MultinomialNB(random_state=0).partial_fit(X, y).chosen_ == {"loss": "ncll"}


def test_where_naive_bayes_holds_it_is_chosen_and_where_not_it_is_not():
    X, y, _, _ = TABLES["a rare class"]
    assert MultinomialNB(random_state=0).fit(X, y).chosen_["loss"] == "nll"
    X, y, fresh, y_fresh = documents(600, K=2, W=40, seed=7, sep=0.3)
    tell = [0, 1]  # two words that come in any number of copies: naive Bayes counts each
    X[:, 2:], fresh[:, 2:] = 10 * X[:, tell[:1]] + X[:, 2:], 10 * fresh[:, tell[:1]] + fresh[:, 2:]
    model = MultinomialNB(random_state=0).fit(X, y)
    assert model.score(fresh, y_fresh) > PlainNB().fit(X, y).score(fresh, y_fresh) - 0.02


# --- the parts ------------------------------------------------------------------------------------


def test_the_prior_goes_by_a_typical_document():
    """Neither by how many there are, nor by one word or document that is unlike all others."""
    family = FAMILIES["words"]

    def alpha(X, y, weights=None):
        weights = np.ones(len(y)) if weights is None else weights
        return family.complete_prior(Dirichlet(), family.view(X), [(y, weights)]).alpha

    X, y, _, _ = TABLES["plain"]
    usual = alpha(X, y)
    assert usual == pytest.approx(0.05 * (X > 0).sum(axis=1).mean() * 1.3, rel=0.2)
    assert alpha(np.r_[X, X], np.r_[y, y]) == pytest.approx(usual)
    assert alpha(3.0 * X, y) == pytest.approx(9.0 * usual)
    assert alpha(X, y, np.full(len(y), 7.0)) == pytest.approx(7.0 * usual)
    assert alpha(X, y, np.where(y == 1, 1e6, 1.0)) == pytest.approx(usual)
    for name in ("a word that occurs 500 times in each", "one document of a million words"):
        assert alpha(*TABLES[name][:2]) < 3.0 * usual
    assert alpha(sp.csr_matrix(np.zeros((4, 3))), np.array([0, 1, 0, 1])) > 0


def words_of(X, rng):
    return [" ".join(rng.permutation([f"w{j}" for j in np.repeat(range(len(x)), x)])) for x in
            X.astype(int)]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("n", [20, 60])
def test_few_texts(n):
    off = []
    for seed in range(4):
        X, y, fresh, y_fresh = documents(n, K=2, W=200, length=30, seed=seed)
        X, fresh = (words_of(each, np.random.default_rng(0)) for each in (X, fresh))
        plain, model = (TextClassifier(loss=k, random_state=0).fit(X, y) for k in ("nll", "auto"))
        assert model.score(X, y) > plain.score(X, y) - 0.05
        off.append(model.score(fresh, y_fresh) - plain.score(fresh, y_fresh))
    assert np.mean(off) > -0.05


# --- real texts -----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.skipif("DISCEM_DATA" not in os.environ, reason="needs texts: set DISCEM_DATA")
@pytest.mark.parametrize("name", ["webkb", "r8"])
def test_raw_counts_of_real_texts(name):
    from lab.datasets import load_text
    from sklearn.feature_extraction.text import CountVectorizer

    (texts, y), (fresh, y_fresh) = (load_text(name, subset=part) for part in ("train", "test"))
    counts = CountVectorizer()
    X = counts.fit_transform(texts).astype(float)
    fresh = counts.transform(fresh).astype(float)
    rivals = [PlainNB(), PlainNB(alpha=0.01)]
    if name == "webkb":
        rivals.append(LogisticRegression(max_iter=200))
    best = max(rival.fit(X, y).score(fresh, y_fresh) for rival in rivals)
    assert MultinomialNB(random_state=0).fit(X, y).score(fresh, y_fresh) > best - 0.01
