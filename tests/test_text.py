"""Text in, labels out: documents of every kind, what is chosen, streams, and what can go wrong."""

import copy
import gc
import os
import pickle
import random
import warnings
import weakref

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import tiny
from lab.datasets import DataNotFoundError, load_text
from scipy.special import softmax
from sklearn import naive_bayes
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import LinearSVC
from sklearn.utils import estimator_checks

import discem
from discem import Blend, Dirichlet, Hinge, MultinomialNB, TextClassifier
from discem.estimators._words import known_to
from discem.exceptions import ConflictingLabelsWarning, InputError, OptionError

OWN = {
    "corn": ["harvest", "crop", "bushel", "farm", "wheat"],
    "gold": ["mine", "ounce", "metal", "ore", "bullion"],
    "ships": ["port", "cargo", "vessel", "harbour", "tanker"],
}
SHARED = ["the", "market", "price", "report", "today", "year", "said", "new"]
NAMES = list(OWN)
ALONE = {"ngram_range": (1, 1)}  # words
FIXED = ALONE | {"loss": "ncll", "weighting": "tfidf", "temperature": 1.0, "max_iter": 3}
FIXED |= {"random_state": 0}
QUICK = {"max_iter": 5, "random_state": 0}  # all is chosen, in a third of the time
LOSSES = ["ncll", "hinge", "nll", "blend"]
every_loss = pytest.mark.parametrize("loss", LOSSES)


def corpus(n, seed=0, stray=0.15):
    """Texts with two words of their class each, of another class now and then; and labels."""
    rng = random.Random(seed)
    texts, labels = [], rng.choices(NAMES, k=n)
    for label in labels:
        topic = rng.choice(NAMES) if rng.random() < stray else label
        texts.append(" ".join(rng.choices(OWN[topic], k=2) + rng.choices(SHARED, k=5)))
    return texts, np.array(labels)


def split(texts):
    return [text.split() for text in texts]


def fixed(X=None, y=None, **options):
    """A model for which nothing is left to choose."""
    if X is None:
        X, y = corpus(150)
    return TextClassifier(**FIXED | options).fit(X, y)


def same(one, other, X, rtol=0.0):
    np.testing.assert_allclose(one.predict_log_proba(X), other.predict_log_proba(X), rtol, rtol)


# --- documents of every kind ----------------------------------------------------------------------

KINDS = {
    "tuple": tuple,
    "generator": lambda X: (text for text in X),
    "text array": np.array,
    "object array": lambda X: np.array(X, dtype=object),
    "column of an array": lambda X: np.array(X, dtype=object)[:, None],
    "pandas": pd.Series,
    "pandas, index": lambda X: pd.Series(X, index=np.arange(len(X))[::-1]),
    "pandas, string": lambda X: pd.Series(X, dtype="string"),
    "pandas, category": lambda X: pd.Series(X, dtype="category"),
    "pandas, column": lambda X: pd.DataFrame({"text": X}),
    "polars": pl.Series,
    "polars, column": lambda X: pl.DataFrame({"text": X}),
    "words": split,
    "words in arrays": lambda X: [np.array(words) for words in split(X)],
    "words, pandas": lambda X: pd.Series(split(X)),
    "words, polars": lambda X: pl.Series(split(X)),
    "some of both": lambda X: [text if i % 2 else text.split() for i, text in enumerate(X)],
}


@pytest.mark.parametrize("kind", KINDS)
def test_documents_of_every_kind(kind):
    X, y = corpus(100)
    plain, other = fixed(X, y), fixed(KINDS[kind](X), pd.Series(y))
    assert other.vocabulary_ == plain.vocabulary_
    same(plain, other, X)
    np.testing.assert_array_equal(plain.predict_proba(KINDS[kind](X)), plain.predict_proba(X))
    streams = [TextClassifier().partial_fit(docs, y) for docs in (X, KINDS[kind](X))]
    same(*streams, X)


WAYS = {
    "pairs": {"ngram_range": (1, 2)},
    "only pairs": {"ngram_range": (2, 2)},
    "stop words": {"stop_words": ["the", "market", "farm"]},
    "english": {"stop_words": "english"},
    "min_df": {"min_df": 12},
    "max_df": {"max_df": 0.4},
    "max_features": {"max_features": 9},
    "pattern": {"token_pattern": r"\b[a-m]\w+\b"},
    "case": {"lowercase": False},
    "letters": {"analyzer": "char", "ngram_range": (1, 3)},
    "letters in words": {"analyzer": "char_wb", "ngram_range": (2, 4)},
    "own": {"analyzer": str.split},
}


@pytest.mark.parametrize("way", WAYS)
def test_words_are_those_of_scikit_learn(way):
    X, y = corpus(100)
    X = [text.title() if i % 3 else text for i, text in enumerate(X)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = fixed(X, y, **WAYS[way])
        assert np.isfinite(model.predict_proba([*X, ""])).all()
    pattern = {"token_pattern": model.bag_.options["token_pattern"]}
    pattern = pattern if model.analyzer == "word" else {}
    theirs = CountVectorizer(**pattern | WAYS[way]).fit(X)
    assert list(model.vocabulary_) == theirs.get_feature_names_out().tolist()


@pytest.mark.parametrize("options", [{"ngram_range": (1, 2)}, {"stop_words": ["the"]}], ids=str)
@pytest.mark.parametrize("n_features", [None, 4096])
def test_lists_of_words_have_pairs_and_stop_words_too(options, n_features):
    X, y = corpus(60)
    one, other = (fixed(docs, y, n_features=n_features, **options) for docs in (X, split(X)))
    assert one.vocabulary_ == other.vocabulary_
    same(one, other, X)
    same(one, other, split(X))


def test_words_of_a_list_are_taken_as_they_are():
    model = fixed([["New York", "I"], ["the", "I"], ["a,b", ""], ["the", ""]], [0, 0, 1, 1])
    assert set(model.vocabulary_) == {"New York", "I", "the", "a,b", ""}


@pytest.mark.parametrize("loss", ["ncll", "hinge"])
def test_hashing_into_many_columns_is_a_vocabulary(loss):
    """Without collisions only the pseudo-counts of columns that stay empty differ."""
    X, y = corpus(300)
    test, truth = corpus(300, seed=1)
    hashed, known = (fixed(X, y, loss=loss, n_features=n) for n in (2**12, None))
    assert np.mean(hashed.predict(test) == known.predict(test)) > 0.97
    tight = fixed(X, y, loss=loss, n_features=8)
    assert 0.4 < tight.score(test, truth) < known.score(test, truth)
    assert not hashed.vocabulary_
    for ask in (lambda: hashed.top_words("corn"), hashed.sample):
        with pytest.raises(OptionError, match="n_features"):
            ask()


@every_loss
@pytest.mark.parametrize("weighting", ["tfidf", "presence", "counts"])
@pytest.mark.parametrize("length", [5.0, 10, None])
def test_every_way_to_train_learns(loss, weighting, length):
    X, y = corpus(300, stray=0.0)
    test, truth = corpus(200, seed=1, stray=0.0)
    model = fixed(X, y, loss=loss, weighting=weighting, length=length, max_iter=8)
    assert model.score(test, truth) > 0.9
    np.testing.assert_allclose(model.predict_proba(test).sum(axis=1), 1.0, rtol=1e-12)


def test_rows_are_what_they_are_said_to_be():
    """tf-idf is scikit-learn's, every document has its length, and the model is MultinomialNB."""
    X, y = corpus(100)
    X = [*X, ""]
    y = [*y, "corn"]
    model = fixed(X, y)
    theirs = TfidfVectorizer(sublinear_tf=True).fit_transform(X)
    rows = model.to_linear().statistics(X)
    np.testing.assert_allclose(rows.toarray(), 5.0 * theirs.toarray(), rtol=1e-12)
    np.testing.assert_array_equal(
        model.predict_joint_log_proba(X), model.model_.predict_joint_log_proba(rows)
    )
    assert isinstance(model.model_, MultinomialNB)
    ones = fixed(X, y, weighting="presence", length=None).to_linear().statistics(X)
    counts = fixed(X, y, weighting="counts", length=None).to_linear().statistics(X)
    np.testing.assert_array_equal(counts.toarray(), CountVectorizer().fit_transform(X).toarray())
    np.testing.assert_array_equal(ones.toarray(), counts.toarray() > 0)


# --- what is chosen -------------------------------------------------------------------------------


def stages(seen):
    return lambda model, record: seen.append(record["stage"])


def test_chosen_is_what_was_tried_and_trained():
    X, y = corpus(300)
    seen = []
    model = TextClassifier(random_state=0, callback=stages(seen)).fit(X, y)
    chosen = model.chosen_
    assert chosen["held_out"] == 4 * 60  # one part after the other, until they are 200
    tried = [(trial["loss"], trial["weighting"]) for trial in model.choice_]
    assert tried[:3] == [("hinge", "tfidf"), ("ncll", "tfidf"), ("nll", "tfidf")]
    assert tried[3][1] == "presence"
    best = model.choice_[tried.index((chosen["loss"], chosen["weighting"]))]
    assert chosen["temperature"] == best["temperature"] == model.temperature_
    assert chosen["epochs"] == best["epochs"] + 1 == model.n_iter_ == len(model.history_)
    choice = len(seen) - model.n_iter_
    assert seen == ["choice"] * choice + ["fit"] * model.n_iter_
    assert choice >= 4 * sum(trial["epochs"] for trial in model.choice_)
    assert model.model_.loss == chosen["loss"]
    assert model.n_documents_ == 300


def test_choosing_by_hand_what_was_chosen_is_the_same():
    X, y = corpus(300)
    test, _ = corpus(300, seed=1)
    auto = TextClassifier(random_state=0).fit(X, y)
    names = {"loss": "loss", "weighting": "weighting", "epochs": "max_iter"}
    options = {option: auto.chosen_[name] for name, option in names.items()}
    options["temperature"] = auto.temperature_
    by_hand, again = (TextClassifier(random_state=s, **options).fit(X, y) for s in (0, 1))
    p, q, r = (model.predict_proba(test) for model in (auto, by_hand, again))
    assert np.abs(p - q).mean() < 2 * np.abs(q - r).mean()  # as near as another seed
    assert np.abs(p - q).mean() < 0.05


def test_nothing_is_held_out_where_nothing_is_left_to_choose():
    seen = []
    model = fixed(callback=stages(seen))
    assert seen == ["fit"] * 3
    expected = {"loss": "ncll", "weighting": "tfidf", "temperature": 1.0, "epochs": 3}
    assert model.chosen_ == expected
    assert model.n_iter_ == 3


@pytest.mark.parametrize(
    ("option", "value", "tried"),
    [
        ("loss", "nll", {("nll", "tfidf"), ("nll", "presence")}),
        ("loss", Blend(0.2), {(Blend(0.2), "tfidf"), (Blend(0.2), "presence")}),
        ("weighting", "counts", {(loss, "counts") for loss in ("hinge", "ncll", "nll")}),
        ("weighting", "presence", {(loss, "presence") for loss in ("hinge", "ncll", "nll")}),
        ("temperature", 0.5, None),
        ("max_iter", 2, None),
    ],
    ids=lambda value: str(sorted(value, key=str) if isinstance(value, set) else value),
)
def test_what_is_set_is_not_chosen(option, value, tried):
    X, y = corpus(150)
    model = TextClassifier(**QUICK | {option: value}).fit(X, y)
    trials = model.choice_
    if tried is not None:
        assert {(trial["loss"], trial["weighting"]) for trial in trials} == tried
        assert model.chosen_[option] == value
    elif option == "temperature":
        assert model.temperature_ == model.chosen_[option] == value
    else:
        assert model.n_iter_ == model.chosen_["epochs"] == value
        assert max(trial["epochs"] for trial in trials) <= value


def negated(n, seed=0):
    """Texts in which no word tells the classes apart, and every pair of moods does."""
    rng = random.Random(seed)
    found = [(rng.choice(["not", "very"]), rng.choice(["good", "bad"])) for _ in range(n)]
    texts = [
        " ".join([*rng.choices(SHARED, k=3), *pair, *rng.choices(SHARED, k=3)]) for pair in found
    ]
    return texts, np.array(["+" if (a == "very") == (b == "good") else "-" for a, b in found])


@pytest.mark.parametrize("options", [{}, {"n_features": 4096}], ids=str)
def test_pairs_of_words_are_taken_where_they_pay(options, tmp_path):
    X, y = negated(400)
    test, truth = negated(200, seed=1)
    words = TextClassifier(ngram_range=(1, 1), **QUICK, **options).fit(X, y)
    pairs = TextClassifier(**QUICK, **options).fit([*X, "odd ones"], [*y, "-"])
    assert words.score(test, truth) < 0.65
    assert pairs.score(test, truth) > 0.95
    assert pairs.chosen_["ngram_range"] == (1, 2)
    tried = [trial["ngram_range"] for trial in pairs.choice_]
    assert tried == [(1, 1)] * 4 + [(1, 2)] * 2
    counts = CountVectorizer(ngram_range=(1, 2), min_df=2).fit(X)
    assert options or pairs.vocabulary_ == counts.vocabulary_
    pairs.save(tmp_path / "pairs")
    again = discem.load(tmp_path / "pairs")
    assert again.chosen_ == pairs.chosen_
    same(pairs, again, test)
    assert again.partial_fit(["very not good"], ["-"]).score(test, truth) > 0.9


def test_words_alone_are_kept_where_pairs_do_not_pay_or_cannot_be_tried(monkeypatch):
    X, y = corpus(300)
    model = TextClassifier(**QUICK).fit(X, y)
    assert model.chosen_["ngram_range"] == (1, 1)
    assert len(model.choice_) == 6
    X, y = negated(200)
    shares = pd.DataFrame({name: (y == name).astype(float) for name in "+-"})
    unjudged = TextClassifier(**QUICK).fit(X, shares)
    stream = TextClassifier().partial_fit(X, y)
    monkeypatch.setattr("discem.estimators._word_trials._MOST_COUNTED", 1000)
    large = TextClassifier(**QUICK).fit(X, y)
    assert len(large.choice_) == 4
    for model in (unjudged, stream, large):
        assert model.chosen_["ngram_range"] == (1, 1)
        assert not any(" " in word for word in model.vocabulary_)


@pytest.mark.parametrize(("line", "pairs"), [("choice: 5 of 6", False), ("", True)])
def test_interrupted_while_pairs_are_tried_or_trained(line, pairs):
    X, y = negated(400)

    def interrupt(model, record):
        assert np.isfinite(model.predict_proba(X[:2])).all()
        if record.get("choice", "").startswith(line) and (line or record["stage"] == "fit"):
            raise KeyboardInterrupt

    model = TextClassifier(callback=interrupt, **QUICK)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert model.chosen_["ngram_range"] == ((1, 2) if pairs else (1, 1))
    assert any(" " in word for word in model.vocabulary_) == pairs
    assert np.isfinite(model.predict_log_proba(X)).all()


def test_of_characters_there_are_longer_pieces():
    model = TextClassifier(analyzer="char_wb", random_state=0).fit(*corpus(60))
    assert {len(piece) for piece in model.vocabulary_} == {2, 3, 4, 5}
    assert "ngram_range" not in model.chosen_
    one = TextClassifier(analyzer=str.split, random_state=0).fit(*corpus(60))
    assert not any(" " in word for word in one.vocabulary_)


def misspelt(n, seed=0):
    """Texts of two words of their class, with a letter that is wrong in each."""
    rng = random.Random(seed)
    texts, labels = [], rng.choices(NAMES, k=n)
    for label in labels:
        words = rng.choices(OWN[label], k=2) + rng.choices(SHARED, k=3)
        places = [rng.randrange(len(word)) for word in words]
        letters = rng.choices("abcdefghijklmnopqrstuvwxyz", k=5)
        wrong = [w[:i] + c + w[i + 1 :] for w, i, c in zip(words, places, letters, strict=True)]
        texts.append(" ".join(wrong))
    return texts, np.array(labels)


def test_pieces_of_words_are_taken_where_words_are_misspelt(tmp_path):
    X, y = misspelt(200)
    test, truth = misspelt(200, seed=1)
    words = TextClassifier(**QUICK).fit(X, y)
    model = TextClassifier(analyzer="auto", **QUICK).fit(X, y)
    assert model.chosen_["analyzer"] == "pieces"
    assert model.score(test, truth) > words.score(test, truth) + 0.1
    assert [tried["analyzer"] for tried in model.choice_] == 6 * ["word"] + 2 * ["pieces"]
    assert {word[0] for word in model.vocabulary_} > {"~"}
    model.save(tmp_path / "pieces")
    same(model, discem.load(tmp_path / "pieces"), test)
    assert np.array_equal(model.predict_proba(split(test)), model.predict_proba(test))
    assert any(name.startswith("~") for name in model.explain(test[0]).words)
    hashed = TextClassifier(analyzer="pieces", n_features=4096, **QUICK).fit(X, y)
    assert hashed.score(test, truth) > words.score(test, truth)


def test_pieces_are_not_taken_where_words_say_all(monkeypatch):
    X, y = corpus(200)
    model = TextClassifier(analyzer="auto", **QUICK).fit(X, y)
    assert model.chosen_["analyzer"] == "word"
    monkeypatch.setattr("discem.estimators._word_trials._MOST_COUNTED", 10_000)
    large = TextClassifier(analyzer="auto", **QUICK).fit(X, y)
    assert {tried["analyzer"] for tried in large.choice_} == {"word"}
    stream = TextClassifier(analyzer="auto").partial_fit(X, y)
    assert stream.chosen_["analyzer"] == "word"


def test_texts_that_share_no_word_have_no_pairs():
    model = TextClassifier(random_state=0).fit(["one two", "three four", "five six"], list("aab"))
    assert model.chosen_["ngram_range"] == (1, 1)


def test_the_same_seed_gives_the_same_model():
    X, y = corpus(150)
    seeds = (QUICK | {"random_state": seed} for seed in (0, 0, 1))
    one, again, other = (TextClassifier(**options).fit(X, y) for options in seeds)
    same(one, again, X)
    assert one.chosen_ == again.chosen_
    assert tiny.untimed(one.choice_) == tiny.untimed(again.choice_)
    assert not np.array_equal(one.predict_proba(X), other.predict_proba(X))
    same(one.fit(X, y), again, X)  # a second fit starts anew


def test_the_better_weighting_and_loss_win():
    """The class shows in how often a word occurs: presence is blind, and is not chosen."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=300)
    X = [
        "red " * (1 + 4 * label) + "blue " * (5 - 4 * label) + f"w{i}" for i, label in enumerate(y)
    ]
    model = TextClassifier(**QUICK).fit(X, y)
    assert model.chosen_["weighting"] == "tfidf"
    assert model.score(X, y) > 0.99


@pytest.mark.parametrize("loss", ["nll", "hinge"])
def test_temperature_betters_probabilities_and_changes_no_prediction(loss):
    X, y = corpus(400, stray=0.3)
    test, truth = corpus(400, seed=1, stray=0.3)
    X, test = ([f"{text} " * 5 for text in texts] for texts in (X, test))  # five times as sure
    model = TextClassifier(loss=loss, weighting="counts", length=None, **QUICK).fit(X, y)
    plain = copy.deepcopy(model)
    plain.model_.temperature_ = 1.0
    gained, lost = (log_loss(truth, m.predict_proba(test)) for m in (model, plain))
    assert gained < (0.7 if loss == "nll" else 1.0) * lost
    np.testing.assert_array_equal(model.predict(test), plain.predict(test))
    plain.calibrate(test, truth)
    assert log_loss(truth, plain.predict_proba(test)) <= gained + 1e-4  # it is searched for
    np.testing.assert_array_equal(model.predict(test), plain.predict(test))


# --- weights --------------------------------------------------------------------------------------


@every_loss
def test_a_class_of_more_weight_is_predicted_more(loss):
    X, y = corpus(300, stray=0.6)
    weights = np.where(y == "corn", 5.0, 1.0)
    options = {"loss": loss, "length": 1.0}  # so short that the frequencies of classes matter
    plain = fixed(X, y, **options)
    heavy = TextClassifier(**FIXED | options).fit(X, y, weights)
    assert np.sum(heavy.predict(X) == "corn") > 1.2 * np.sum(plain.predict(X) == "corn")
    same(heavy, fixed(X, y, class_weight={"corn": 5.0}, **options), X, 1e-9)
    np.testing.assert_allclose(heavy.class_count_[0], 5.0 * np.sum(y == "corn"))


@pytest.mark.parametrize("loss", ["ncll", "hinge", "nll"])
@pytest.mark.parametrize("auto", [True, False], ids=["auto", "fixed"])
def test_documents_of_weight_zero_teach_nothing(loss, auto):
    X, y = corpus(150)
    wrong = np.roll(NAMES, 1)[np.searchsorted(NAMES, y)]
    options = (QUICK if auto else FIXED) | {"loss": loss}
    weights = np.repeat([1.0, 0.0], 150)
    model = TextClassifier(**options).fit([*X, *X], np.append(y, wrong), weights)
    alone = TextClassifier(**options).fit(X, y)
    assert np.mean(model.predict(X) == alone.predict(X)) > 0.97
    np.testing.assert_allclose(model.class_count_, alone.class_count_)
    if auto:
        assert model.chosen_["held_out"] == alone.chosen_["held_out"]


def test_balanced_classes():
    X, y = corpus(400, stray=0.5)
    kept = np.flatnonzero((y != "gold") | (np.arange(400) % 8 == 0))
    X, y = [X[i] for i in kept], y[kept]
    plain, balanced = (fixed(X, y, class_weight=w) for w in (None, "balanced"))
    assert np.sum(balanced.predict(X) == "gold") > np.sum(plain.predict(X) == "gold")
    np.testing.assert_allclose(balanced.class_count_, len(y) / 3)


# --- labels ---------------------------------------------------------------------------------------


def test_more_classes_than_documents_of_each():
    K = 500
    X = [f"a{k} b{k} common{k % 7}" for k in range(K)] * 2
    y = np.tile(np.arange(K), 2)
    model = TextClassifier(random_state=0, max_iter=2).fit(X, y)
    assert model.score([f"a{k}" for k in range(K)], np.arange(K)) > 0.99
    assert model.chosen_["held_out"] == 200
    np.testing.assert_allclose(model.predict_proba(X[:5]).sum(axis=1), 1.0, rtol=1e-9)


def test_classes_of_a_single_document_are_trained_on():
    X, y = corpus(100)
    X, y = [*X, "quark lepton", "sonnet stanza"], [*y, "physics", "verse"]
    model = TextClassifier(**QUICK).fit(X, y)
    assert model.chosen_["held_out"] == 100  # all but these, in turn
    assert model.predict(["a quark, a lepton", "stanza", "harvest crop"]).tolist() == [
        "physics", "verse", "corn",
    ]  # fmt: skip


@pytest.mark.parametrize("none", [None, np.nan, pd.NA], ids=str)
def test_unlabelled_documents_of_every_kind(none):
    X, y = corpus(200)
    some = y.astype(object)
    some[np.arange(200) % 4 != 0] = none
    model = TextClassifier(**QUICK).fit(X, some)
    assert model.classes_.tolist() == NAMES
    assert model.class_count_.sum() == 50
    assert model.chosen_["held_out"] == 50
    known = [text for text, label in zip(X, some, strict=True) if isinstance(label, str)]
    assert set(model.vocabulary_) == {word for text in known for word in text.split()}
    assert model.chosen_["unlabelled"]["rows"] == 150


@pytest.mark.parametrize("loss", ["auto", "ncll", "hinge", "nll"])
def test_unlabelled_documents_do_no_harm(loss):
    X, y = corpus(400)
    test, truth = corpus(300, seed=1)
    known = np.arange(400) % 4 == 0
    some = np.where(known, y, None)
    alone = TextClassifier(loss=loss, **QUICK).fit([X[i] for i in np.flatnonzero(known)], y[known])
    with_them = TextClassifier(loss=loss, **QUICK).fit(X, some)
    assert with_them.score(test, truth) > alone.score(test, truth) - 0.05


def reviews(n, seed):
    """Few words of a mood among many of a subject, which has nothing to do with it."""
    rng = np.random.RandomState(seed)
    moods, subjects = rng.randint(2, size=n), rng.randint(6, size=n)
    texts = [
        " ".join(
            [f"mood{mood}x{rng.randint(40)}" for _ in range(3)]
            + [f"subject{subject}x{rng.randint(30)}" for _ in range(12)]
        )
        for mood, subject in zip(moods, subjects, strict=True)
    ]
    return texts, np.where(moods == 1, "+", "-")


def test_unlabelled_documents_teach_words_across_subjects():
    X, y = reviews(3000, seed=0)
    test, truth = reviews(1000, seed=1)
    some = y.astype(object)
    some[60:] = None
    alone = TextClassifier(**QUICK).fit(X[:60], y[:60]).score(test, truth)
    model = TextClassifier(**QUICK).fit(X, some)
    assert model.chosen_["unlabelled"]["by_topic"]
    assert model.score(test, truth) > alone + 0.05
    assert model.predict_proba(test).min() > 0
    model.partial_fit(X[60:100], y[60:100])  # goes on from there
    assert model.score(test, truth) > alone


@pytest.mark.parametrize("loss", ["ncll", "hinge"])
def test_unlabelled_rows_of_counts_are_heard(loss):
    X, y = reviews(3000, seed=0)
    test, truth = reviews(1000, seed=1)
    some = y.astype(object)
    some[60:] = None
    words = CountVectorizer().fit(X)
    counts, test_counts = words.transform(X), words.transform(test)
    model = MultinomialNB(loss=loss, random_state=0)
    alone = model.fit(counts[:60], y[:60]).score(test_counts, truth)
    assert not hasattr(model, "unlabelled_")
    heard = MultinomialNB(loss=loss, random_state=0).fit(counts, some)
    assert heard.score(test_counts, truth) > alone + 0.03
    assert heard.unlabelled_["weight"] > 0
    again = MultinomialNB(loss=loss, random_state=0).fit(counts.toarray(), some)
    np.testing.assert_allclose(again.feature_log_prob_, heard.feature_log_prob_)


def test_an_unlabelled_weight_of_zero_is_not_to_hear_them():
    X, y = reviews(400, seed=0)
    some = y.astype(object)
    some[60:] = None
    alone = TextClassifier(**QUICK).fit(X[:60], y[:60])
    deaf = TextClassifier(**QUICK, unlabelled_weight=0).fit(X, some)
    same(alone, deaf, X, 1e-12)
    assert "unlabelled" not in deaf.chosen_
    loud = TextClassifier(**QUICK, unlabelled_weight=3.0).fit(X, some)
    assert loud.chosen_["unlabelled"]["weight"] == 3.0


@every_loss
def test_sets_and_shares_of_one_class_are_labels(loss):
    X, y = corpus(100)
    sure = y[:, None] == NAMES
    plain = fixed(X, y, loss=loss)
    for targets in (sure, sure.astype(float)):
        other = fixed(X, targets, loss=loss)
        assert other.classes_.tolist() == [0, 1, 2]
        same(plain, other, X, 1e-10)


@pytest.mark.parametrize("loss", ["auto", "hinge", "nll"])
def test_vague_labels_teach(loss):
    X, y = corpus(300)
    sure, rng = y[:, None] == NAMES, np.random.default_rng(0)
    for targets in (sure | (rng.random(sure.shape) < 0.2), 0.7 * sure + 0.1):
        model = TextClassifier(loss=loss, **QUICK).fit(X, targets)
        assert model.score(X, sure.argmax(axis=1)) > 0.8
        assert "held_out" not in model.chosen_


@pytest.mark.parametrize("names", [[2, 0, 7], [True, False, True], ["é", "ü", "\ud800"]], ids=str)
def test_labels_of_every_kind(names):
    X, y = corpus(100)
    labels = np.array(names)[np.searchsorted(NAMES, y)]
    model = fixed(X, labels)
    assert model.classes_.tolist() == sorted(set(names))
    assert model.predict(X).dtype == labels.dtype
    assert model.score(X, labels) > 0.85


# --- scikit-learn's tools -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "check",
    [  # the others of check_estimator feed tables of numbers
        estimator_checks.check_estimator_cloneable,
        estimator_checks.check_parameters_default_constructible,
        estimator_checks.check_get_params_invariance,
        estimator_checks.check_set_params,
        estimator_checks.check_no_attributes_set_in_init,
        estimator_checks.check_estimator_repr,
    ],
    ids=lambda check: check.__name__,
)
def test_scikit_learn(check):
    check("TextClassifier", TextClassifier())


def test_clone_and_pickle():
    X, y = corpus(100)
    model = TextClassifier(prior=Dirichlet(0.5), loss=Hinge(2.0), **QUICK).fit(X, y)
    model.set_class_prior([0.2, 0.3, 0.5])
    assert is_classifier(model)
    assert clone(model).get_params() == model.get_params()
    for again in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        same(model, again, X)
        assert again.chosen_ == model.chosen_
        assert again.vocabulary_ == model.vocabulary_
        assert again.history_ == model.history_
    with pytest.raises(NotFittedError):
        clone(model).predict(X)


def test_training_leaves_the_parameters_alone():
    X, y = corpus(60)
    model = TextClassifier(**QUICK)
    before = dict(model.get_params())
    model.fit(X, y).partial_fit(X, y)
    assert model.get_params() == before


@pytest.mark.parametrize("kind", ["texts", "words"])
def test_grid_search_in_a_pipeline(kind):
    X, y = corpus(150)
    X = X if kind == "texts" else split(X)
    grid = {
        "textclassifier__length": np.arange(2, 6, 3),
        "textclassifier__ngram_range": [(1, 1), (1, 2)],
        "textclassifier__loss": ["ncll", Hinge(2.0)],
    }
    options = {name: FIXED[name] for name in ("weighting", "temperature", "max_iter")}
    pipeline = make_pipeline(FunctionTransformer(), TextClassifier(random_state=0, **options))
    search = GridSearchCV(pipeline, grid, cv=2, error_score="raise").fit(X, y)
    assert search.best_score_ > 0.85
    assert search.predict(X[:5]).dtype == y.dtype


def test_cross_validation():
    X, y = corpus(150)
    model = TextClassifier(**QUICK)
    probabilities = cross_val_predict(model, X, y, cv=3, method="predict_proba")
    assert log_loss(y, probabilities) < 0.8  # of 1.1 for no knowledge
    assert cross_val_score(model, X, y, cv=3, scoring="neg_log_loss").min() > -0.8


# --- explanations ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def told():
    """A model with everything that moves probabilities: a temperature, other class priors."""
    X, y = corpus(300)
    model = TextClassifier(**QUICK).fit(X, y).set_class_prior([0.2, 0.3, 0.5])
    return model.calibrate(*corpus(200, seed=2))


STRANGE = {
    "text": "The port! A new port and a mine",
    "words": ["port", "port", "mine", "the"],
    "unknown": "zebra port",
    "unknown only": "zebra okapi",
    "empty": "",
    "no words": [],
}


@pytest.mark.parametrize("document", STRANGE.values(), ids=STRANGE)
@pytest.mark.parametrize(
    "options", [{}, {"loss": "hinge"}, {"n_features": 16}, {"ngram_range": (1, 2)}], ids=str
)
def test_explanations_are_exact(document, options, told):
    X, y = corpus(200)
    plain = fixed(X, y, **options)
    for model in (plain, told, copy.deepcopy(plain).set_class_prior([0.1, 0.2, 0.7])):
        why = model.explain(document)
        np.testing.assert_allclose(
            softmax(why.scores), model.predict_proba([document])[0], rtol=0, atol=1e-10
        )
        np.testing.assert_allclose(why.intercept + why.contributions.sum(axis=0), why.scores)
        np.testing.assert_allclose(why.contributions.sum(axis=1), 0.0, atol=1e-10)
        assert len(why.words) == len(set(why.words)) == len(why.contributions)
        assert why.classes.tolist() == NAMES


def test_explanation_against(told):
    why = told.explain("zebra port harvest the port harvest port")
    assert set(why.words) == {"port", "harvest", "the"}
    parts = dict(why.against("ships", "corn"))
    assert next(iter(parts)) == "port"
    assert list(parts)[-1] == "harvest"
    odds = np.diff(told.predict_log_proba(["zebra port harvest the port harvest port"])[0, [0, 2]])
    assert sum(parts.values()) + why.intercept[2] - why.intercept[0] == pytest.approx(odds[0])
    assert why.against("corn", "ships") == [
        (w, -v) for w, v in reversed(why.against("ships", "corn"))
    ]
    first, second = why.classes[np.argsort(-why.scores)[:2]]
    assert why.against() == why.against(first, second) == why.against(first)
    with pytest.raises(InputError, match="no class 'tin'"):
        why.against("tin")


def test_words_that_share_a_column_are_explained_together():
    model = fixed(n_features=2)
    why = model.explain("port mine harvest the market")
    assert sorted(word for name in why.words for word in name.split(" | ")) == sorted(
        ["port", "mine", "harvest", "the", "market"]
    )
    assert len(why.words) <= 2


@pytest.mark.parametrize("loss", ["auto", *LOSSES])
def test_top_words_find_what_was_planted(loss):
    X, y = corpus(400)
    model = TextClassifier(loss=loss, **QUICK).fit(X, y)
    for name in NAMES:
        top = model.top_words(name, 5)
        assert {word for word, _ in top} == set(OWN[name])
        scores = [score for _, score in top]
        assert scores == sorted(scores, reverse=True)
    assert len(model.top_words("corn", 1000)) == len(model.vocabulary_)
    with pytest.raises(InputError, match="no class 'tin'"):
        model.top_words("tin")


def test_samples_are_documents_of_their_class():
    model = fixed(*corpus(300, stray=0.0), loss="nll")
    X, y = model.sample(300, random_state=0)
    assert len(X) == len(y) == 300
    assert {word for words in X for word in words} <= set(model.vocabulary_)
    assert model.score(X, y) > 0.9
    assert model.sample(300, random_state=0)[0] == X


def test_linear_form(told):
    X, _ = corpus(50, seed=3)
    X = [*X, "zebra", ""]
    for docs in (X, split(X)):
        gap = told.to_linear().decision_function(docs) - told.predict_joint_log_proba(docs)
        np.testing.assert_allclose(gap - gap[:, :1], 0.0, atol=1e-8)


def test_joint_and_posterior(told):
    X, _ = corpus(50, seed=3)
    joint = told.predict_joint_log_proba(X)
    np.testing.assert_allclose(told.score_samples(X), np.logaddexp.reduce(joint, axis=1))
    likelihood = joint - np.log(told.class_prior_)
    before = told.temperature_ * (likelihood + np.log(told.model_._shares()))
    expected = softmax(before + told.model_._prior_shift, axis=1)
    np.testing.assert_allclose(told.predict_proba(X), expected, atol=1e-10)


# --- streams --------------------------------------------------------------------------------------


def batches(X, y, size=10):
    for first in range(0, len(X), size):
        yield X[first : first + size], y[first : first + size]


def streamed(X, y, size=10, **options):
    model = TextClassifier(**options)
    for docs, labels in batches(X, y, size):
        model.partial_fit(docs, labels)
    return model


@every_loss
@pytest.mark.parametrize("n_features", [None, 512])
def test_words_and_classes_come_as_they_like(loss, n_features):
    X, y = corpus(300, stray=0.0)
    order = np.argsort(np.where(y == "ships", 300, np.arange(300)), kind="stable")
    late = [X[i] for i in order] + X
    model = streamed(late, np.append(y[order], y), loss=loss, n_features=n_features)
    assert model.progressive_accuracy_ > 0.6
    assert model.classes_.tolist() == NAMES
    assert model.n_documents_ == 600
    assert model.score(*corpus(200, seed=1, stray=0.0)) > 0.9
    np.testing.assert_allclose(model.class_count_, [2 * np.sum(y == name) for name in NAMES])
    if n_features is None:
        assert set(model.vocabulary_) == {word for text in X for word in text.split()}
        assert list(model.vocabulary_.values()) == list(range(len(model.vocabulary_)))


@pytest.mark.parametrize("loss", ["ncll", "hinge"])
def test_a_new_class_does_not_own_the_words_that_come_after_it(loss):
    X, y = corpus(200, stray=0.0)
    old = np.flatnonzero(y != "ships")
    model = TextClassifier(loss=loss)
    model.partial_fit([X[i] for i in old], y[old])
    model.partial_fit(["port cargo"], ["ships"])
    model.partial_fit(["zebra okapi"], ["corn"])
    for document in ("zebra", "okapi zebra harvest", "okapi crop farm"):
        assert model.predict([document])[0] == "corn"


GOING = [{}, {"n_features": 64}, {"loss": "hinge"}, {"loss": "nll"}, {"weighting": "counts"}]


@pytest.mark.parametrize("options", GOING, ids=str)
@pytest.mark.parametrize("begin", ["stream", "fit"])
def test_save_load_and_go_on(options, begin, tmp_path):
    """As if the process had never ended, bit for bit, through new words and a new class."""
    X, y = corpus(120)
    start = streamed if begin == "stream" else fixed
    model = start(X[:60], y[:60], **options)
    model.save(tmp_path / "model")
    again = discem.load(tmp_path / "model")
    assert again.get_params() == model.get_params()
    assert again.chosen_ == model.chosen_
    same(model, again, X)
    more = [f"{text} fresh{i % 7}" for i, text in enumerate(X[60:])]
    labels = np.where(np.arange(60) % 5 == 0, "tin", y[60:])
    for one in (model, again):
        for docs, names in batches(more, labels, 7):
            one.partial_fit(docs, names)
    same(model, again, X + more)
    assert model.vocabulary_ == again.vocabulary_
    assert model.progressive_accuracy_ == again.progressive_accuracy_
    assert model.progressive_loss_ == again.progressive_loss_
    assert model.n_documents_ == again.n_documents_ == 120


@pytest.mark.parametrize("loss", ["ncll", "nll"])
def test_progressive_figures_are_test_then_train(loss):
    """By hand: predict, then learn. Words, classes and weights are such that both see one model."""
    X, y = corpus(150)
    model = TextClassifier(loss=loss, weighting="presence", length=None).partial_fit(X[:50], y[:50])
    right = [50 * model.progressive_accuracy_]
    surprise = [50 * model.progressive_loss_]
    for text, label in zip(X[50:], y[50:], strict=True):
        right.append(model.predict([text])[0] == label)
        surprise.append(-model.predict_log_proba([text])[0, NAMES.index(label)])
        model.partial_fit([text], [label])
    assert model.progressive_accuracy_ == pytest.approx(sum(right) / 150, abs=1e-12)
    assert model.progressive_loss_ == pytest.approx(sum(surprise) / 150, rel=1e-9)
    assert 0.7 < model.progressive_accuracy_ < 0.98


@pytest.mark.parametrize("loss", ["ncll", "hinge"])
def test_progressive_accuracy_is_nearly_test_then_train_for_new_words_too(loss):
    X, y = corpus(300)
    X = [f"{text} rare{i}" for i, text in enumerate(X)]
    model, right = TextClassifier(loss=loss).partial_fit(X[:1], y[:1]), 1
    for text, label in zip(X[1:], y[1:], strict=True):
        right += model.predict([text])[0] == label
        model.partial_fit([text], [label])
    assert model.progressive_accuracy_ == pytest.approx(right / 300, abs=0.04)


def test_there_are_no_progressive_figures_without_a_stream():
    model = fixed()
    with pytest.raises(AttributeError, match="partial_fit"):
        _ = model.progressive_accuracy_
    model.partial_fit(["harvest crop", "ounce ore"], ["corn", "gold"])
    assert model.progressive_accuracy_ == 1.0


def test_a_stream_begins_with_a_word():
    for n_features in (None, 64):
        model = TextClassifier(n_features=n_features)
        with pytest.raises(InputError, match="hold no words"):
            model.partial_fit(["", "..."], ["corn", "gold"])
        with pytest.raises(NotFittedError):
            model.predict(["harvest"])
        X, y = corpus(100)
        same(model.partial_fit(X, y), TextClassifier(n_features=n_features).partial_fit(X, y), X)


@pytest.mark.parametrize("n_features", [None, 64])
def test_batches_that_say_little(n_features):
    X, y = corpus(150)
    model = streamed(X, y, n_features=n_features)
    known, accuracy = model.score(X, y), model.progressive_accuracy_
    model.partial_fit(["", "..."], ["corn", "gold"])
    assert model.n_documents_ == 152
    after = model.progressive_accuracy_
    assert after != accuracy
    model.partial_fit(X[:20], [None] * 20)  # not counted: there is nothing to be right about
    assert model.progressive_accuracy_ == after
    model.partial_fit(["zebra"], [None])
    assert np.isfinite(model.predict_proba([*X, "zebra", ""])).all()
    assert model.score(X, y) > known - 0.05
    assert ("zebra" in model.vocabulary_) == (n_features is None)


@pytest.mark.parametrize("loss", ["ncll", "hinge", "nll"])
def test_pieces_are_one_pass(loss, monkeypatch):
    """Where the first piece holds all words, and its sums and theirs are the same."""
    X, y = corpus(120)
    monkeypatch.setattr(MultinomialNB, "_spread", lambda *_: 120.0)  # however many rows there were
    options = {"weighting": "presence", "prior": Dirichlet(1.0), "loss": loss}
    first = [" ".join([*SHARED, *OWN[name]]) for name in NAMES]
    whole, pieces = (TextClassifier(**options).partial_fit(first, NAMES) for _ in range(2))
    whole.partial_fit(X, y)
    for docs, labels in batches(X, y, 7):
        pieces.partial_fit(docs, labels)
    same(whole, pieces, X, 1e-9 if loss != "nll" else 1e-6)


@pytest.mark.parametrize("loss", ["ncll", "hinge", "nll"])
def test_fit_then_stream(loss):
    X, y = corpus(200, stray=0.0)
    model = TextClassifier(loss=loss, **QUICK).fit(X, y)
    temperature = model.temperature_
    for docs, labels in batches(X * 3, [*y] * 3, 20):
        zoo = ["zebra the market", "okapi said zebra", "zebra okapi today"]
        model.partial_fit([*docs, *zoo], [*labels, *["zoo"] * 3])
    assert model.classes_.tolist() == [*NAMES, "zoo"]
    assert model.predict(["zebra", "okapi zebra year"]).tolist() == ["zoo", "zoo"]
    assert model.score(*corpus(200, seed=1, stray=0.0)) > 0.95
    assert model.temperature_ == temperature
    assert model.n_documents_ == 200 + 600 + 90


def test_the_temperature_given_is_that_of_a_stream_too():
    X, y = corpus(100)
    sharp, plain = (TextClassifier(temperature=t).partial_fit(X, y) for t in (2.0, "auto"))
    assert (sharp.temperature_, plain.temperature_) == (2.0, 1.0)
    expected = softmax(2.0 * plain.predict_joint_log_proba(X), axis=1)
    np.testing.assert_allclose(sharp.predict_proba(X), expected, atol=1e-10)


def test_streams_refuse_what_needs_the_whole_corpus():
    X, y = corpus(60)
    for name, value in (("min_df", 2), ("max_df", 0.5), ("max_features", 10)):
        with pytest.raises(OptionError, match=f"{name}={value}"):
            TextClassifier(**{name: value}).partial_fit(X, y)
        model = fixed(X, y, **{name: value})
        before = model.predict_proba(X)
        with pytest.raises(OptionError, match=f"{name}={value}"):
            model.partial_fit(X, y)
        np.testing.assert_array_equal(model.predict_proba(X), before)


class Text(str):
    """A text whose end can be seen."""


def test_documents_are_not_kept():
    X, y = corpus(90)
    alive = weakref.WeakSet()

    def documents(texts):
        for text in texts:
            alive.add(document := Text(text))
            yield document

    model = TextClassifier(**QUICK)
    for docs, labels in batches(X, y, 30):
        model.partial_fit(documents(docs), labels)
        gc.collect()
        assert not alive
    model.fit(documents(X), y).predict(documents(X))
    gc.collect()
    assert not alive


# --- failures and interruptions -------------------------------------------------------------------

BAD = {
    "kind of label": (["zebra crop", "okapi"], [1, 2]),
    "document": (["zebra crop", None], ["corn", "zoo"]),
    "lengths": (["zebra crop", "okapi"], ["zoo"]),
    "shares": (["zebra crop", "okapi"], [[0.5, 0.5], [0.0, 1.0]]),
    "no documents": ([], []),
    "text": ("zebra", ["z", "e", "b", "r", "a"]),
}


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("loss", ["ncll", "hinge"])
def test_a_batch_that_fails_changes_nothing(bad, loss):
    X, y = corpus(120)
    model, twin = (streamed(X[:80], y[:80], loss=loss) for _ in range(2))
    with pytest.raises(ValueError):
        model.partial_fit(*BAD[bad])
    same(model, twin, [*X, "zebra", ""])
    assert model.n_documents_ == twin.n_documents_
    assert model.vocabulary_ == twin.vocabulary_
    assert model.classes_.tolist() == twin.classes_.tolist()
    for one in (model, twin):
        one.partial_fit(X[80:], y[80:])
    same(model, twin, X)


@pytest.mark.parametrize("bad", BAD)
def test_a_first_batch_that_fails_is_forgotten(bad):
    X, y = corpus(50)
    model = TextClassifier()
    with pytest.raises(ValueError):
        model.partial_fit(BAD[bad][0], [None] * len(BAD[bad][1]))
    same(model.partial_fit(X, y), TextClassifier().partial_fit(X, y), X)


@pytest.mark.parametrize(
    ("X", "y"),
    [
        (["zebra", None] * 20, ["a", "b"] * 20),
        (["zebra", "okapi"] * 20, ["a", "a"] * 20),
        (["", "..."] * 20, ["a", "b"] * 20),
        (["zebra", "okapi"] * 20, [[0.5, 0.6]] * 40),
    ],
    ids=["document", "one class", "no words", "shares"],
)
def test_a_fit_that_fails_keeps_the_earlier_model(X, y):
    docs, labels = corpus(60)
    model = TextClassifier(**QUICK).fit(docs, labels)
    twin = copy.deepcopy(model)
    with pytest.raises(ValueError):
        model.fit(X, y)
    same(model, twin, docs)
    assert model.chosen_ == twin.chosen_
    assert model.vocabulary_ == twin.vocabulary_


def test_an_error_of_the_callback_keeps_the_earlier_model():
    docs, labels = corpus(60)
    model = TextClassifier(**QUICK).fit(docs, labels)
    twin = copy.deepcopy(model)

    def fail(model, record):
        raise RuntimeError("full")

    with pytest.raises(RuntimeError, match="full"):
        model.set_params(callback=fail).fit(["zebra", "okapi"] * 20, ["a", "b"] * 20)
    same(model, twin, docs)


@pytest.mark.parametrize("stage", ["choice", "fit"])
@pytest.mark.parametrize("nth", [1, 2, 4])
@pytest.mark.parametrize("options", [{}, {"temperature": 0.25}, {"loss": "hinge"}], ids=str)
def test_interrupted_by_a_callback(stage, nth, options):
    X, y = corpus(300)
    seen = []

    def interrupt(model, record):
        assert np.isfinite(model.predict_proba(X[:2])).all()  # a callback may look at the model
        seen.append(record["stage"])
        if seen.count(stage) == nth:
            raise KeyboardInterrupt

    model = TextClassifier(callback=interrupt, max_iter=4, random_state=0, **options)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert model.score(X, y) > 0.8
    assert np.isfinite(model.predict_log_proba([*X, "", "zebra"])).all()
    assert model.temperature_ == model.chosen_["temperature"]
    assert model.temperature_ != 1.0
    assert model.model_.loss == model.chosen_["loss"]
    before = model.predict_proba(X)
    again = pickle.loads(pickle.dumps(model.set_params(callback=None)))
    np.testing.assert_array_equal(again.predict_proba(X), before)
    assert model.partial_fit(X, y).score(X, y) > 0.8


@pytest.mark.parametrize("when", ["splits", "sparse_rows"])
def test_interrupted_before_anything_is_trained(when, monkeypatch):
    X, y = corpus(60)
    model = TextClassifier(**QUICK).fit(X, y)
    twin = copy.deepcopy(model)

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(f"discem.estimators._word_trials.{when}", interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(["zebra", "okapi"] * 20, ["a", "b"] * 20)
    if when == "splits":  # the first model is still there, whole
        same(model, twin, X)
    else:
        assert model.predict(["zebra", "okapi"]).tolist() == ["a", "b"]


@pytest.mark.parametrize("when", ["extended", "Bag.weigh"])  # words are known, documents counted
def test_interrupted_while_a_batch_is_counted(when, monkeypatch):
    X, y = corpus(60)
    model, twin = (streamed(X, y) for _ in range(2))

    def interrupt(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(f"discem.io.bag.{when}", interrupt)
        with pytest.raises(KeyboardInterrupt):
            model.partial_fit([f"aardvark zebra okapi {X[0]}"], ["zoo"])
    same(model, twin, [*X, "zebra"])
    for one in (model, twin):
        one.partial_fit(["aardvark zebra okapi"], ["zoo"])
    same(model, twin, [*X, "zebra"])


def test_the_callback_stops_training():
    X, y = corpus(150)
    model = TextClassifier(callback=lambda model, record: True, random_state=0).fit(X, y)
    assert model.n_iter_ == model.chosen_["epochs"] == 1
    assert all(trial["epochs"] == 1 for trial in model.choice_)


def test_documents_that_were_labelled_twice_are_named():
    X, y = ["a long report of the harbour today", *corpus(40)[0]], ["ships", *corpus(40)[1]]
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConflictingLabelsWarning)
        fixed([*X, X[0].upper()], [*y, "ships"])
        fixed([*X, "harvest", "harvest"], [*y, "corn", "gold"])  # which is no document to speak of
    message = r"2 documents have .* document 0 \('ships'\) and document 42 \('corn'\)"
    with pytest.warns(ConflictingLabelsWarning, match=message):
        fixed([*X, "unlabelled", "the LONG report: today, of a harbour!"[:-1]], [*y, None, "corn"])


# --- errors say what is wrong ---------------------------------------------------------------------

X3 = ["harvest crop", "ounce ore", "port cargo"]
WRONG_DOCUMENTS = {
    "text": ("harvest crop", "is one text"),
    "bytes": (b"harvest", "is one text"),
    "none": ([*X3[:2], None], "document 2 is None"),
    "nan": ([X3[0], np.nan, X3[2]], "document 1 is nan"),
    "NA": (pd.Series([*X3[:2], pd.NA], dtype="string"), "document 2 is <NA>"),
    "null": (pl.Series([*X3[:2], None]), "document 2 is None"),
    "number": ([X3[0], 7, X3[2]], "document 1 is 7"),
    "numbers": (np.eye(3), "MultinomialNB"),
    "sparse": (sp.eye(3, format="csr"), "MultinomialNB"),
    "two columns": (pd.DataFrame({"a": X3, "b": X3}), "2 columns"),
    "two columns, polars": (pl.DataFrame({"a": X3, "b": X3}), "2 columns"),
    "bytes within": ([*X3[:2], b"port"], "document 2 is b'port'"),
    "number within": ([*X3[:2], ["port", 7]], "document 2 holds 7"),
    "nothing": (None, "NoneType"),
    "one number": (7, "int"),
}


@pytest.mark.parametrize("kind", WRONG_DOCUMENTS)
def test_wrong_documents_are_named(kind):
    X, message = WRONG_DOCUMENTS[kind]
    y = ["a", "b", "c"]
    model = fixed(X3, y)
    for work in (model.predict, lambda X: model.fit(X, y), lambda X: model.partial_fit(X, y)):
        with pytest.raises(InputError, match=message) as caught:
            work(X)
        assert len(str(caught.value)) < 200
    assert model.predict(X3).tolist() == y


@pytest.mark.parametrize("analyzer", ["char", "char_wb"])
def test_lists_of_words_have_no_letters(analyzer):
    with pytest.raises(InputError, match="analyzer='word'"):
        fixed(split(X3), [0, 1, 2], analyzer=analyzer)
    with pytest.raises(InputError, match="analyzer='word'"):
        fixed(X3, [0, 1, 2], analyzer=analyzer).predict(split(X3))


def test_an_error_within_an_analyzer_is_its_own():
    with pytest.raises(AttributeError, match="splat"):
        fixed(X3, [0, 1, 2], analyzer=lambda text: text.splat())


@pytest.mark.parametrize("n_features", [None, 64])
def test_no_documents(n_features):
    model = fixed(n_features=n_features)
    for work in (model.predict, lambda X: model.fit(X, []), lambda X: model.partial_fit(X, [])):
        with pytest.raises(InputError, match="no documents"):
            work([])


@pytest.mark.parametrize("n_features", [None, 64])
def test_documents_without_words(n_features):
    with pytest.raises(InputError, match="no words"):
        fixed(["", "..."] * 5, [0, 1] * 5, n_features=n_features)


WRONG_LABELS = {
    "none": (None, None, "y is None"),
    "one class": (["a"] * 3, None, "one class only, 'a'"),
    "unlabelled": ([None] * 3, None, "no label"),
    "too few": (["a", "b"], None, "3 rows but y has 2"),
    "mixed": (np.array(["a", 1, "b"], dtype=object), None, "mixes"),
    "no share": ([[0.5, 0.5], [0.3, 0.3], [0, 1]], None, "row 1"),
    "empty set": (np.array([[True, False], [True, True], [False, False]]), None, "row 2"),
    "weight nan": (["a", "b", "c"], [1, np.nan, 1], "sample_weight"),
    "weight < 0": (["a", "b", "c"], [1, 1, -1], "sample_weight of row 2"),
    "weights": (["a", "b", "c"], [1, 1], "sample_weight"),
    "no weight": (["a", "b", "c"], [0, 0, 0], "(?i)sample.weight"),
}


@pytest.mark.parametrize(
    ("kind", "work"),
    [("one class", "fit")]  # a stream may begin with one
    + [
        (kind, work)
        for kind in WRONG_LABELS
        for work in ("fit", "partial_fit")
        if kind != "one class"
    ],
)
def test_wrong_labels_and_weights_are_named(kind, work):
    y, weights, message = WRONG_LABELS[kind]
    with pytest.raises(ValueError, match=message):
        getattr(TextClassifier(), work)(X3, y, sample_weight=weights)


WRONG_OPTIONS = [
    ("loss", "logistic"), ("loss", 3), ("loss", Hinge(-1.0)),
    ("weighting", "bm25"), ("weighting", None),
    ("length", 0), ("length", -1.0), ("length", "5"), ("length", np.nan), ("length", True),
    ("temperature", 0.0), ("temperature", None), ("temperature", "hot"), ("temperature", np.inf),
    ("prior", "laplace"), ("prior", 1.0), ("prior", Dirichlet(-1.0)),
    ("max_iter", 0), ("max_iter", 2.0), ("max_iter", "many"), ("max_iter", True),
    ("n_features", 0), ("n_features", 1e6), ("n_features", "auto"),
    ("analyzer", "syllable"), ("ngram_range", (2, 1)), ("ngram_range", 2),
    ("strip_accents", "all"), ("stop_words", "klingon"),
    ("token_pattern", "("), ("token_pattern", "(a)(b)"),
    ("min_df", -1), ("min_df", 4), ("max_df", -0.5), ("max_features", 0),
    ("class_weight", {"a": -1.0}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), WRONG_OPTIONS, ids=str)
def test_wrong_options_are_named(name, value):
    named = {"min_df": "min_df", "token_pattern": r"token.pattern"}.get(name, name)
    with pytest.raises(OptionError, match=named):
        TextClassifier(**{name: value}).fit(X3, ["a", "b", "c"])


@pytest.mark.parametrize("number", [np.int64, np.float32, np.float64, int])
def test_numbers_of_numpy_are_numbers(number):
    options = {"length": number(4), "temperature": number(2), "random_state": 0}
    assert fixed(**options).temperature_ == 2.0


@pytest.mark.parametrize("n_features", [8, 64])
def test_hashing_refuses_what_needs_a_vocabulary(n_features):
    with pytest.raises(OptionError, match="min_df=2"):
        TextClassifier(n_features=n_features, min_df=2).fit(X3, [0, 1, 2])


def test_nothing_works_before_fit(tmp_path):
    model = TextClassifier()
    works = (
        lambda: model.predict(X3), lambda: model.predict_proba(X3), lambda: model.explain("a"),
        lambda: model.top_words("a"), model.sample, model.to_linear,
        lambda: model.set_class_prior([0.5, 0.5]), lambda: model.calibrate(X3, [0, 1, 2]),
        lambda: model.score_samples(X3), lambda: model.save(tmp_path / "model"),
    )  # fmt: skip
    for work in works:
        with pytest.raises(NotFittedError):
            work()
    assert not hasattr(model, "classes_")


def test_calibration_needs_labels_that_weigh():
    model = fixed(X3 * 5, ["a", "b", "c"] * 5)
    for y, weights in ((["a", None, None], [0, 1, 1]), (["a", "b", "zebra"], None)):
        with pytest.raises(InputError):
            model.calibrate(X3, y, weights)
    assert model.temperature_ == 1.0


# --- files, and documents at the limit ------------------------------------------------------------

EXTREMES = {
    "long": "harvest " * 125_000,
    "one word": "h" * 1_000_000,
    "many words": " ".join(f"w{i}" for i in range(100_000)),
    "surrogates": "\ud800ab \udfffcd \ud83d\ude00 ab\udfff",
    "NUL": "ab\0cd \0\0 harvest\0",
    "letters": "naïve 日本語 الكتاب é \U0001f600\U0001f600 İstanbul ǆ",
    "space": " \t\r\n\x0b\u2028\u00a0",
    "newlines": ["two\nlines", "a\ttab", " ", "", "\0", "|"],
}


def test_halves_of_letters_as_words(tmp_path):
    """No text that is valid holds them; no hash takes them, a vocabulary does."""
    X, y = [["\ud83d", "\ude00"], ["\ude00\ud83d"], ["plain"]], ["a", "b", "c"]
    model = fixed(X, y)
    model.save(tmp_path / "model")
    assert discem.load(tmp_path / "model").vocabulary_ == model.vocabulary_
    with pytest.raises(ValueError, match="surrogates"):
        fixed(X, y, n_features=64)


@pytest.mark.parametrize("kind", EXTREMES)
@pytest.mark.parametrize("n_features", [None, 256])
def test_extreme_documents(kind, n_features, tmp_path):
    X, y = corpus(30)
    document = EXTREMES[kind]
    X, y = [document, *X], ["odd", *y]
    model = fixed(X, y, n_features=n_features)
    model.partial_fit(X[:5], y[:5])
    model.save(tmp_path / "model")
    again = discem.load(tmp_path / "model")
    assert again.vocabulary_ == model.vocabulary_
    same(model, again, X)
    assert np.isfinite(model.predict_proba(X)).all()
    why = again.explain(document)
    np.testing.assert_allclose(softmax(why.scores), model.predict_proba([document])[0], atol=1e-9)
    if kind not in ("long", "space"):
        assert model.predict([document])[0] == "odd"


@pytest.mark.parametrize(
    "options",
    [
        {"ngram_range": (1, 2), "stop_words": ["the"]},
        {"prior": Dirichlet(0.5), "loss": Blend(0.2), "class_weight": {"corn": 2.0}},
    ],
    ids=str,
)
def test_options_survive_a_file(options, tmp_path):
    X, y = corpus(100)
    model = TextClassifier(**QUICK, **options).fit(X, y).set_class_prior([0.2, 0.3, 0.5])
    model.save(tmp_path / "model")
    again = discem.load(tmp_path / "model")
    assert again.get_params() == model.get_params()
    assert again.chosen_ == model.chosen_
    assert again.history_ == tiny.untimed(model.history_)
    same(model, again, X)
    assert again.top_words("corn") == model.top_words("corn")
    same(again.fit(X, y), clone(model).fit(X, y), X)


def test_a_callback_may_save_the_model(tmp_path):
    """What is saved on the way is the model of that moment, probabilities and all."""
    X, y = corpus(100)
    saved = []

    def keep(model, record):
        model.save(tmp_path / "model")
        saved.append((discem.load(tmp_path / "model"), model.predict_proba(X), record["stage"]))

    model = TextClassifier(callback=keep, **QUICK).fit(X, y)
    assert {stage for _, _, stage in saved} == {"choice", "fit"}
    for one, probabilities, _ in saved:
        np.testing.assert_allclose(one.predict_proba(X), probabilities, rtol=1e-4)  # in training
    same(saved[-1][0], model, X)
    assert model.callback is keep


# --- data sets of the literature ------------------------------------------------------------------


@pytest.fixture(scope="module", params=["r8", "webkb"])
def official(request):
    if "DISCEM_DATA" not in os.environ:
        pytest.skip("DISCEM_DATA is not set: no text data")
    try:
        (X, y), (test, truth) = (load_text(request.param, subset=s) for s in ("train", "test"))
    except DataNotFoundError as error:
        pytest.skip(str(error))
    vectorizer = TfidfVectorizer(sublinear_tf=True)
    return X, y, test, truth, vectorizer.fit_transform(X), vectorizer.transform(test)


@every_loss
def test_streams_lose_little(official, loss):
    X, y, test, truth, rows, test_rows = official
    order = np.random.default_rng(0).permutation(len(X))
    model = streamed([X[i] for i in order], [y[i] for i in order], 100, loss=loss)
    theirs = naive_bayes.MultinomialNB(alpha=0.1).fit(rows, y).score(test_rows, truth)
    assert model.score(test, truth) > theirs - 0.02


def test_as_accurate_as_a_support_vector_machine(official):
    X, y, test, truth, rows, test_rows = official
    theirs = LinearSVC().fit(rows, y).score(test_rows, truth)
    assert TextClassifier(random_state=0).fit(X, y).score(test, truth) > theirs - 0.005


def test_probabilities_as_good_as_those_of_logistic_regression(official):
    X, y, test, truth, rows, test_rows = official
    theirs = LogisticRegression(C=30, tol=1e-2).fit(rows, y).predict_proba(test_rows)
    ours = TextClassifier(loss="ncll", random_state=0).fit(X, y).predict_proba(test)
    assert log_loss(truth, ours) < 1.15 * log_loss(truth, theirs)


@pytest.mark.slow
def test_unlabelled_reviews_help():
    """With 200 labels, all unlabelled reviews: benchmarks/few_labels.py has five draws."""
    if "DISCEM_DATA" not in os.environ:
        pytest.skip("DISCEM_DATA is not set: no text data")
    try:
        (texts, labels), (more, _), (test, truth) = (
            load_text("amazon14", subset=subset) for subset in ("train", "unlabeled", "test")
        )
    except DataNotFoundError as error:
        pytest.skip(str(error))
    gains = []
    for draw in range(2):
        order = np.random.RandomState(draw).permutation(len(labels))[:200]
        own, y = [texts[i] for i in order], [labels[i] for i in order]
        alone = TextClassifier(random_state=draw).fit(own, y)
        model = TextClassifier(random_state=draw).fit(own + more, y + [None] * len(more))
        gains.append(model.score(test, truth) - alone.score(test, truth))
    assert np.mean(gains) > 0.01


# --- documents held out ---------------------------------------------------------------------------


@pytest.mark.parametrize("n_features", [None, 64])
def test_documents_held_out_are_counted_as_later_ones(n_features):
    X, _ = corpus(40)
    X = [f"{text} own{i}" for i, text in enumerate(X)]
    rows, held = np.arange(30), np.arange(30, 40)
    model = TextClassifier(n_features=n_features)
    bag, alone = model._new_bag(), model._new_bag()
    counts, expected = bag.learn(X), alone.learn(X[:30])
    known, found = known_to(bag, counts, rows)
    for own, part in ((rows, expected), (held, alone.count(X[30:]))):
        there = known.weigh(found, "tfidf", 5.0)[own]
        wanted = alone.weigh(part, "tfidf", 5.0)
        np.testing.assert_allclose((there @ there.T).toarray(), (wanted @ wanted.T).toarray())
    assert known.n_documents == 30 and bag.n_documents == 40
    assert bag.document_count.sum() > known.document_count.sum()


def test_words_of_single_documents_leave_probabilities_as_they_are():
    rng = random.Random(0)
    X, y = corpus(60, seed=11, stray=0.4)
    X = [" ".join([text, *(f"w{rng.randrange(10**6)}" for _ in range(10))]) for text in X]
    Z, z = corpus(400, seed=1, stray=0.4)
    plain = TextClassifier(random_state=0).fit(corpus(60, seed=11, stray=0.4)[0], y)
    model = TextClassifier(random_state=0).fit(X, y)
    found, wanted = (log_loss(z, each.predict_proba(Z), labels=NAMES) for each in (model, plain))
    assert found < 1.1 * wanted
