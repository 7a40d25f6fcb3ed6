"""Words and vectors of documents in one joint: encoders, weights, explanations, files, streams."""

import logging
import pickle
import sys
import types

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.base import clone
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

import discem
from discem import TextClassifier
from discem.calibration import best_mix, useful_mix
from discem.estimators._meaning import MEANING, vector_scores
from discem.exceptions import InputError, MissingExtraError, ModelFileError, OptionError
from discem.io import encoders

SUBJECTS = {"sea": ["port", "cargo", "vessel"], "land": ["wheat", "crop", "farm"]}
QUICK = {"max_iter": 5, "random_state": 0}
FEW = {"loss": "ncll", "weighting": "tfidf", "max_iter": 3, "random_state": 0}


class Moods:
    """An encoder of two numbers and noise; it knows moods, by marks that are no words."""

    def __init__(self, noise=0.3, size=6):
        self.noise, self.size, self.calls = noise, size, []

    def encode(self, texts):
        self.calls.append(len(texts))
        found = []
        for text in texts:
            rng = np.random.default_rng(sum(map(ord, text)))
            mood = text.count("+") - text.count("-")
            found.append(np.r_[mood, -mood, rng.normal(size=self.size - 2)])
        return np.array(found) * np.r_[1.0, 1.0, np.full(self.size - 2, self.noise)]


def corpus(n, seed=0, marked=0.8):
    """Texts of four classes: what they are about is in their words, the mood in their marks."""
    rng, texts, labels = np.random.default_rng(seed), [], []
    for i in range(n):
        subject, mood = ["sea", "land"][rng.integers(2)], "+-"[rng.integers(2)]
        shown = mood if rng.random() < marked else "+-"[rng.integers(2)]
        words = rng.choice(SUBJECTS[subject] + ["the", "today", "report"], 5)
        texts.append(f"{' '.join(words)} {shown} {i % 7}")
        labels.append(subject + mood)
    return texts, np.array(labels)


@pytest.fixture(scope="module")
def told():
    X, y = corpus(160)
    return TextClassifier(Moods(), **QUICK).fit(X, y)


def test_the_joint_knows_what_both_know(told):
    X, y = corpus(400, seed=1)
    words = TextClassifier(**QUICK).fit(*corpus(160))
    assert words.score(X, y) < 0.6 < 0.8 < told.score(X, y)
    assert log_loss(y, told.predict_proba(X)) < log_loss(y, words.predict_proba(X)) - 0.3
    assert told.chosen_["vectors"]["log_loss"] < told.chosen_["vectors"]["words_alone"]
    assert told.chosen_["vectors"]["held_out"] == 160  # few documents: all are held out in turn


def test_vectors_that_say_nothing_leave_words_alone():
    X, y = corpus(160)
    noise = np.random.default_rng(0)
    model = TextClassifier(lambda texts: noise.normal(size=(len(texts), 4)), **QUICK)
    model.fit(X, y)
    weight = model.chosen_["vectors"]["weight"]
    if model._fitted.meaning is None:
        alone = TextClassifier(**QUICK).fit(X, y)
        assert weight == 0.0
        assert np.array_equal(model.predict_proba(X), alone.predict_proba(X))
    constant = TextClassifier(lambda texts: np.ones((len(texts), 4)), **QUICK).fit(X, y)
    assert constant._fitted.meaning is None
    alone = TextClassifier(**QUICK).fit(X, y)
    assert np.array_equal(constant.predict_proba(X), alone.predict_proba(X))


def test_words_that_say_nothing_leave_vectors_alone():
    rng = np.random.default_rng(0)
    y = rng.choice(["+", "-"], 300, p=[0.9, 0.1])
    X = [f"w{rng.integers(60)} w{rng.integers(60)} {mark}" for mark in y]
    model = TextClassifier(Moods(noise=1.0), **QUICK).fit(X, y)
    alone = model._fitted.meaning.model
    vectors = Moods(noise=1.0).encode(X)
    assert model.score(X, y) >= alone.score(vectors, y) - 0.01


ENCODERS = {
    "callable": lambda X: lambda texts: Moods().encode(texts),
    "encode": lambda X: Moods(),
    "transform": lambda X: make_pipeline(
        HashingVectorizer(analyzer="char", n_features=64), TruncatedSVD(5, random_state=0)
    ).fit(X),
    "sparse": lambda X: HashingVectorizer(analyzer="char", n_features=16),
}


@pytest.mark.parametrize("kind", ENCODERS)
def test_encoders_of_every_kind(kind):
    X, y = corpus(80)
    model = TextClassifier(ENCODERS[kind](X), **FEW).fit(X, y)
    assert np.isfinite(model.predict_proba(X)).all()
    assert model.predict([text.split() for text in X[:5]]).shape == (5,)


def test_documents_are_encoded_once_in_a_fit():
    X, y = corpus(120)
    encoder = Moods()
    TextClassifier(encoder, **QUICK).fit(X, y)
    assert sum(encoder.calls) == len(X) + len(encoders.PROBES)


def test_progress_tells_of_encoding(monkeypatch, capsys):
    monkeypatch.setattr("discem.progress._WORTH", 0.0)
    X, y = corpus(40)
    TextClassifier(Moods(), verbose=1, **FEW).fit(X, y)
    assert "encoding: 40 in 0.0 s" in capsys.readouterr().err


def test_explanations_are_exact(told):
    X, _ = corpus(5, seed=2)
    for document in (*X, "+", "", "port port + wheat"):
        why = told.explain(document)
        proba = told.predict_proba([document])[0]
        np.testing.assert_allclose(softmax(why.scores), proba, rtol=1e-9)
        assert why.words.count(MEANING) == 1 and why.words[-1] == MEANING
        np.testing.assert_allclose(why.contributions.sum(axis=1), 0.0, atol=1e-9)


def test_the_joint_is_one(told):
    """Probabilities are the softmax of the tempered joint; the joint is linear."""
    X, _ = corpus(30, seed=3)
    joint = told.predict_joint_log_proba(X)
    np.testing.assert_allclose(softmax(told.temperature_ * joint, axis=1), told.predict_proba(X))
    linear = told.to_linear().decision_function(X)
    np.testing.assert_allclose(
        linear - linear.mean(axis=1)[:, None], joint - joint.mean(axis=1)[:, None], atol=1e-9
    )
    before = told.predict(X)
    other = pickle.loads(pickle.dumps(told)).calibrate(*corpus(50, seed=4))
    assert other.temperature_ != told.temperature_
    assert np.array_equal(other.predict(X), before)


def test_another_prior(told):
    X, _ = corpus(60, seed=5)
    other = pickle.loads(pickle.dumps(told))
    other.set_class_prior([0.97, 0.01, 0.01, 0.01])
    ratio = other.predict_log_proba(X) - told.predict_log_proba(X)
    expected = np.log([0.97, 0.01, 0.01, 0.01]) - np.log(told.class_frequency_)
    ratio, expected = ratio - ratio[:, :1], expected - expected[0]
    np.testing.assert_allclose(ratio, np.broadcast_to(expected, ratio.shape), atol=1e-8)
    assert told.adapt(X).shift_.now.shape == (4,)


def test_unlabelled_documents_do_no_harm():
    gains = []
    for seed in range(3):
        X, y = corpus(260, seed)
        some = y.astype(object)
        some[60:] = None
        unseen, truth = corpus(300, seed=9 + seed)
        losses = []
        for texts, labels in ((X[:60], y[:60]), (X, some)):
            model = TextClassifier(Moods(), loss="ncll", **QUICK).fit(texts, labels)
            losses.append(log_loss(truth, model.predict_proba(unseen)))
        gains.append(losses[0] - losses[1])
        joint = model.predict_joint_log_proba(unseen)
        proba = softmax(model.temperature_ * joint, axis=1)
        np.testing.assert_allclose(proba, model.predict_proba(unseen))
    assert np.mean(gains) > 0.0
    assert model.chosen_["unlabelled"]["rows"] == 200


def test_sets_of_labels_and_weights():
    X, y = corpus(60)
    sets = [{label} for label in y]
    model = TextClassifier(Moods(), **QUICK).fit(X, sets)
    assert model.score(X, y) > 0.5
    weights = np.where(np.arange(60) < 40, 1.0, 0.0)
    part = TextClassifier(Moods(), **FEW).fit(X, y, weights)
    assert part.classes_.tolist() == sorted(set(y))


# --- files ----------------------------------------------------------------------------------------


def test_files_have_the_name_of_an_encoder_and_ask_for_it(told, tmp_path):
    X, y = corpus(40, seed=6)
    path = tmp_path / "model"
    told.save(path)
    assert b"calls" not in path.read_bytes()
    lost = discem.load(path)
    assert lost.encoder is None
    with pytest.raises(OptionError, match=r"trained with vectors of test_vectors\.Moods"):
        lost.predict(X)
    with pytest.raises(OptionError, match="other vectors than the encoder of the training"):
        discem.load(path, encoder=Moods(noise=2.0))
    with pytest.raises(OptionError, match="makes other vectors"):
        lost.set_params(encoder=Moods(size=9)).predict(X)
    for again in (discem.load(path, encoder=Moods()), lost.set_params(encoder=Moods())):
        assert np.array_equal(again.predict_proba(X), told.predict_proba(X))
        again.partial_fit(X, y)
        again.save(tmp_path / "again")
    words = discem.TextClassifier(**FEW).fit(X, y)  # has no use for an encoder
    words.save(path)
    again = discem.load(path, encoder=Moods())
    assert np.array_equal(again.predict_proba(X), words.predict_proba(X))
    discem.GaussianNB().fit([[0.0], [1.0]], [0, 1]).save(path)
    with pytest.raises(OptionError, match="GaussianNB reads no texts"):
        discem.load(path, encoder=Moods())


def test_a_file_with_another_block_is_refused(told, tmp_path):
    other = pickle.loads(pickle.dumps(told))
    other._fitted.meaning.weight = -1.0
    with pytest.raises(ModelFileError, match="weight"):
        other.save(tmp_path / "model")
    other._fitted.meaning.weight, other._fitted.meaning.probes = 1.0, np.zeros((1, 1))
    with pytest.raises(ModelFileError, match="probes"):
        other.save(tmp_path / "model")


# --- streams --------------------------------------------------------------------------------------


def test_streams(tmp_path):
    X, y = corpus(400)
    unseen, truth = corpus(200, seed=7)
    both, words = TextClassifier(Moods()), TextClassifier()
    for i in range(0, 400, 40):
        both.partial_fit(X[i : i + 40], y[i : i + 40])
        words.partial_fit(X[i : i + 40], y[i : i + 40])
    assert both.score(unseen, truth) > words.score(unseen, truth) + 0.05
    assert both.progressive_accuracy_ > words.progressive_accuracy_
    both.partial_fit(["gold + ore"], ["mine+"])
    assert "mine+" in both.classes_ and both.predict_proba(X).shape == (400, 5)
    both.partial_fit(["gold"], [None])
    both.save(tmp_path / "model")
    again = discem.load(tmp_path / "model", encoder=both.encoder)
    for one in (both, again):
        one.partial_fit(X[:40], y[:40])
    assert np.array_equal(both.predict_proba(X), again.predict_proba(X))


def test_a_stream_after_a_fit(told):
    model = pickle.loads(pickle.dumps(told))
    X, y = corpus(80, seed=8)
    before = model._fitted.meaning.model.learner_.model.blocks[0].values["mean"].copy()
    model.partial_fit(X, y)
    after = model._fitted.meaning.model.learner_.model.blocks[0].values["mean"]
    assert not np.array_equal(before, after)
    assert 0 < model.progressive_accuracy_ <= 1


# --- what can go wrong ----------------------------------------------------------------------------

WRONG = {
    "shape": (lambda texts: np.zeros(len(texts)), "array of shape"),
    "rows": (lambda texts: np.zeros((2, 3)), "array of shape"),
    "wide": (lambda texts: np.zeros((len(texts), 5000)), "vectors of 5000 numbers are too wide"),
    "sparse": (HashingVectorizer(), "vectors of 1048576 numbers are too wide"),
    "texts": (lambda texts: texts, "not numbers"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_encoders_that_make_no_vectors_are_named(kind):
    encoder, message = WRONG[kind]
    with pytest.raises(InputError, match=message):
        TextClassifier(encoder, **FEW).fit(*corpus(20))


@pytest.mark.parametrize("encoder", ["nothing", 3])
def test_what_is_no_encoder_is_named(encoder):
    with pytest.raises(OptionError, match="encoder="):
        TextClassifier(encoder, **FEW).fit(*corpus(20))


def test_a_text_without_a_vector():
    def encoder(texts):
        vectors = Moods().encode(texts)
        vectors[[text == "" for text in texts]] = np.nan
        return vectors

    X, y = corpus(60)
    model = TextClassifier(encoder, **FEW).fit([*X, ""], [*y, "sea+"])
    assert np.isfinite(model.predict_proba(["", "port +"])).all()


def test_a_pipeline_stays_fitted_when_it_is_frozen():
    X, y = corpus(60)
    pipeline = make_pipeline(HashingVectorizer(n_features=32), TruncatedSVD(4)).fit(X)
    with pytest.raises(OptionError, match="FrozenEstimator"):
        clone(TextClassifier(pipeline, **FEW)).fit(X, y)
    frozen = TextClassifier(FrozenEstimator(pipeline), **FEW)
    assert cross_val_score(frozen, X, y, cv=2).shape == (2,)


def test_encoders_by_name(monkeypatch):
    encoders._load.cache_clear()
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingExtraError, match="pip install sentence-transformers"):
        TextClassifier("minilm", **FEW).fit(*corpus(20))

    class SentenceTransformer(Moods):
        def __init__(self, name, local_files_only):
            assert local_files_only
            logging.getLogger().setLevel(logging.DEBUG)
            if "mpnet" in name:
                raise OSError("not here")
            super().__init__()

        def encode(self, texts, show_progress_bar):
            return super().encode(texts)

    level = logging.getLogger().level
    fake = types.SimpleNamespace(SentenceTransformer=SentenceTransformer)
    monkeypatch.setitem(sys.modules, "sentence_transformers", fake)
    X, y = corpus(60)
    model = TextClassifier("minilm", **FEW).fit(X, y)
    assert model._fitted.meaning.encoder == "minilm"
    assert logging.getLogger().level == level
    with pytest.raises(OptionError, match="downloads nothing"):
        TextClassifier("mpnet", **FEW).fit(X, y)
    encoders._load.cache_clear()


def test_an_encoder_that_ships_its_weights(tmp_path):
    pytest.importorskip("wordllama")
    X, y = corpus(40)
    model = TextClassifier("wordllama", **FEW).fit(X, y)
    model.save(tmp_path / "model")
    again = discem.load(tmp_path / "model")  # a name is enough
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))


# --- the weights ----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("n_blocks", [1, 2, 3])
def test_the_best_mix_is_a_minimum(seed, n_blocks):
    rng = np.random.default_rng(seed)
    codes, K = rng.integers(0, 3, 100), 3
    noise = rng.normal(size=(n_blocks, 100, K)) * np.arange(1.0, n_blocks + 1)[:, None, None]
    blocks = 2.0 * np.eye(K)[codes] + noise
    shift, weights = np.log([0.5, 0.3, 0.2]), rng.uniform(0.5, 2.0, 100)
    best = best_mix(blocks, shift, codes, weights)

    def loss(t, c, *others):
        own = t * np.array([1.0, *others])
        scores = np.tensordot(own, blocks, 1) + t * c * shift
        log_p = np.log(softmax(scores, axis=1))[np.arange(100), codes]
        gaps = [np.median(-np.sort(x - x.max(axis=1)[:, None])[:, -2]) for x in blocks]
        penalty = 0.5 * (np.log(own) @ np.log(own) + (t * c / 0.3) ** 2)
        doubt = 6.0 * np.logaddexp(0, own @ gaps)
        return (doubt - weights @ log_p / weights.mean() + penalty) / 100

    found = best.temperature, best.bias, *best.weights
    assert loss(*found) == pytest.approx(best.log_loss)
    for j in range(len(found)):
        for step in (-0.05, 0.05):
            other = list(found)
            other[j] += step * max(abs(other[j]), 0.2)
            assert loss(*other) > best.log_loss


def test_blocks_that_say_nothing_are_left_out():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, 300)
    first, other = 2.0 * np.eye(2)[codes] + rng.normal(size=(2, 300, 2))
    nothing, weights = rng.normal(size=(300, 2)), np.ones(300)
    mix, alone = useful_mix([first, nothing, other], 0.0, codes, weights)
    assert mix.weights[0] == 0.0 < mix.weights[1]
    assert mix == useful_mix([first, other], 0.0, codes, weights)[0]._replace(weights=mix.weights)
    assert alone.weights == () and mix.log_loss < alone.log_loss
    assert useful_mix([first, nothing], 0.0, codes, weights)[0] == alone._replace(weights=(0.0,))


def test_vector_scores_leave_the_frequencies_out(told):
    model = told._fitted.meaning.model
    vectors = Moods().encode(corpus(10)[0])
    by_bayes = model.predict_log_proba(vectors) - np.log(model.class_frequency_)
    found = vector_scores(model, vectors)
    np.testing.assert_allclose(found, by_bayes - by_bayes.mean(axis=1)[:, None], atol=1e-6)


def test_a_useful_block_is_kept_though_rows_are_few():
    """More numbers to fit are no reason to leave it out: both blocks are equally good here."""
    kept = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        codes = rng.integers(0, 2, 50)
        blocks = 0.7 * np.eye(2)[codes] + rng.normal(size=(2, 50, 2))
        kept += useful_mix(blocks, np.log([0.5, 0.5]), codes, np.ones(50))[0].weights[0] > 0
    assert kept >= 16
