"""Columns of texts in tables: words, and vectors by an encoder, beside all other columns."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.special import log_softmax, softmax

import discem
from discem import MixtureClassifier, TableClassifier, TableImputer, TableRegressor, TextClassifier
from discem.exceptions import InputError, ModelFileError, OptionError
from discem.io.tables import Layout

GOOD, BAD = (
    ["good", "great", "lovely", "fine", "superb"],
    ["bad", "awful", "poor", "dull", "boring"],
)
PLAIN = ["the", "a", "film", "plot", "cast", "story", "was", "is", "very", "with"]
FIXED = {
    "n_components": 1, "loss": "ncll", "hide": 0.0, "missing": "ignore", "prior_strength": 1.0,
    "temperature": 1.0, "covariance": "diag", "whole_numbers": "levels",
}  # fmt: skip
FEW = FIXED | {"average": 1, "density": False, "max_iter": 4, "random_state": 0}


def texts_of(y, rng, certain=0.8):
    """Sentences, of which a word in three is of a mood."""
    found = []
    for label in y:
        moods = [GOOD if (rng.random() < certain) == (label == "+") else BAD for _ in range(8)]
        words = [rng.choice(PLAIN if rng.random() < 0.7 else mood) for mood in moods]
        found.append(" ".join(words))
    return found


def table(n=120, seed=0):
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.5, "+", "-")
    stars = 3.0 + np.where(y == "+", 0.7, -0.7) + rng.normal(size=n)
    review = texts_of(y, rng)
    for i in range(5, n, 11):
        review[i] = ["", "  ", None][i % 3]
    shop = rng.choice(["a", "b"], n)
    return pd.DataFrame({"stars": stars, "review": review, "shop": shop}), y


class Moods:
    """An encoder that counts the words of each mood."""

    def encode(self, texts):
        words = [text.split() for text in texts]
        return np.array([[sum(w in own for w in ws) for own in (GOOD, BAD)] + [len(ws) % 2]
                         for ws in words], dtype=float)  # fmt: skip


X, Y = table()
UNSEEN, TRUTH = table(400, seed=1)


@pytest.fixture(scope="module")
def model():
    return TableClassifier(**FEW).fit(X, Y)


# --- the joint ------------------------------------------------------------------------------------


def test_texts_are_read_beside_the_other_columns(model):
    assert model.families_["review"] == "text: 8 words each"
    rest = TableClassifier(**FEW).fit(X.drop(columns="review"), Y)
    there = X["review"].fillna("").str.strip() != ""
    words = TextClassifier(random_state=0).fit(X["review"][there].tolist(), Y[there])
    alone = [
        rest.score(UNSEEN.drop(columns="review"), TRUTH),
        words.score(UNSEEN["review"].fillna("").tolist(), TRUTH),
    ]
    assert model.score(UNSEEN, TRUTH) > max(alone) + 0.02
    told = model.chosen_["texts"]
    assert told["log_loss"] < told["table_alone"] and told["weights"]["review"] > 0.0


def test_the_joint_is_that_of_independent_columns(model):
    texts, words = model._fitted.texts, model.texts_["review"]
    there = UNSEEN[UNSEEN["review"].fillna("").str.strip() != ""]
    told = words.predict_log_proba(there["review"].tolist()) - np.log(words.class_frequency_)
    table = model.model_.predict_log_proba(there)
    weight = model.chosen_["texts"]["weights"]["review"]
    scores = table + weight * told + texts.bias * np.log(model.class_frequency_)
    np.testing.assert_allclose(
        model.predict_log_proba(there), log_softmax(texts.temperature * scores, axis=1), atol=1e-9
    )


def test_a_text_that_is_missing_or_empty_says_nothing(model):
    row = {"stars": 3.5, "shop": "a"}
    rows = [row, row | {"review": None}, row | {"review": ""}, row | {"review": " "}]
    found = model.predict_proba([*rows, row | {"review": "good"}])
    assert (found[:4] == found[0]).all() and found[4, 0] > found[0, 0]
    without = model.predict_proba(pd.DataFrame([row, row]).assign(shop="a"))
    np.testing.assert_allclose(without[0], found[0])


def test_explanations_are_exact_and_name_the_words(model):
    rows = UNSEEN[:20]
    found = model.explain(rows)
    np.testing.assert_allclose(softmax(found.scores, axis=1), model.predict_proba(rows))
    assert found.to_frame().shape == (20, 4 + 3)
    for one in (found[3], found[1:][2], model.explain(rows[3:4])):
        words = one.text("review")
        assert set(words.words) <= set(rows["review"].iloc[3].split())
        part = one.contributions[one.columns.index("review")]
        np.testing.assert_allclose(words.scores, part)
    assert model.explain({"stars": 1.0}).text("review").words == []
    with pytest.raises(InputError, match="'shop' is no text column; there are: \\['review'\\]"):
        one.text("shop")
    assert model.importances_[0].column in ("review", "stars")
    rest = TableClassifier(**FEW).fit(X[["stars"]], Y).explain({"stars": 3.0})
    with pytest.raises(InputError, match="no text columns"):
        rest.text("review")


def test_texts_that_tell_nothing_are_left_out():
    rng = np.random.default_rng(3)
    noise = X.assign(review=[" ".join(rng.choice(PLAIN, 8)) for _ in range(len(X))])
    model = TableClassifier(**FEW).fit(noise, Y)
    rest = TableClassifier(**FEW).fit(noise.drop(columns="review"), Y)
    assert model.chosen_["texts"]["weights"] == {"review": 0.0} and model.texts_ == {}
    found = model.predict_proba(noise)
    np.testing.assert_allclose(found, rest.predict_proba(noise.drop(columns="review")))
    model.partial_fit(noise, Y)
    assert model.texts_ == {}


def test_everything_may_be_text():
    rng, y = np.random.default_rng(0), Y
    both = pd.DataFrame({"title": texts_of(y, rng, 0.7), "review": texts_of(y, rng)})
    model = TableClassifier(average=2, max_iter=2, density=False, random_state=0).fit(both, y)
    assert list(model.texts_) == ["title", "review"] and len(model.choice_) == 1
    found, one = model.explain(both[:3]), TableClassifier(**FEW).fit(both[["review"]], y)
    np.testing.assert_allclose(softmax(found.scores, axis=1), model.predict_proba(both[:3]))
    assert model.score(both, y) > 0.9 and one.score(both[["review"]], y) > 0.8
    assert model.sample(2, random_state=0)[0].isna().all(axis=None)


def test_a_class_without_any_text(model):
    odd = X.assign(review=X["review"].where(Y == "+", None))
    with pytest.warns(UserWarning, match="column 'review' has no texts of two classes"):
        assert TableClassifier(**FEW).fit(odd, Y).texts_ == {}
    three = np.where(np.arange(len(Y)) % 4 == 0, "0", Y)
    odd = X.assign(review=X["review"].where(three != "0", None))
    odd["stars"] += 9.0 * (three == "0")
    model = TableClassifier(**FEW).fit(odd, three)
    assert model.texts_["review"].classes_.tolist() == ["+", "-"]
    assert model.score(odd, three) > 0.8
    row = {"stars": 12.0, "review": "good film"}
    why = model.explain(row)
    np.testing.assert_allclose(softmax(why.scores), model.predict_proba([row])[0], atol=1e-9)
    assert model.predict([row]).tolist() == ["0"]


# --- what a classifier of tables does -------------------------------------------------------------


def test_frames_of_all_libraries(model):
    pl, pa = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    dicts = [{k: v for k, v in row.items() if v is not None} for row in X.to_dict("records")]
    wanted = model.predict_proba(X)
    for other in (
        pl.from_pandas(X),
        pa.Table.from_pandas(X),
        dicts,
        X[["shop", "review", "stars"]],
    ):
        np.testing.assert_allclose(model.predict_proba(other), wanted)
    again = TableClassifier(**FEW).fit(pl.from_pandas(X), Y).predict_proba(X)
    np.testing.assert_allclose(again, wanted, rtol=1e-6)
    array = TableClassifier(**FEW).fit(X.to_numpy(dtype=object), Y)
    assert array.families_[1].startswith("text") and array.texts_.keys() == {1}


def test_labels_that_are_missing_sets_or_shares():
    some = np.where(np.arange(len(Y)) < 60, Y, None)
    with pytest.warns(UserWarning, match="60 of 120 rows have no label"):
        model = TableClassifier(**FEW).fit(X, some)
    assert model.score(UNSEEN, TRUTH) > 0.75
    sets = [{label} if i % 4 else {"+", "-"} for i, label in enumerate(Y)]
    shares = pd.DataFrame({"+": np.where(Y == "+", 0.9, 0.1)})
    shares["-"] = 1.0 - shares["+"]
    for y in (sets, shares):
        model = TableClassifier(**FEW).fit(X, y)
        assert "texts" not in model.chosen_ and model.score(UNSEEN, TRUTH) > 0.75
        model.partial_fit(X, y)


def test_weights_of_rows_and_classes():
    twice = TableClassifier(**FEW).fit(X, Y, np.where(np.arange(len(Y)) < 60, 1.0, 0.0))
    first = TableClassifier(**FEW).fit(X[:60], Y[:60])
    assert np.mean(twice.predict(UNSEEN) == first.predict(UNSEEN)) > 0.95
    heavy = TableClassifier(class_weight={"+": 5.0}, **FEW).fit(X, Y)
    assert (heavy.predict(UNSEEN) == "+").mean() > (first.predict(UNSEEN) == "+").mean() + 0.1
    groups = TableClassifier(cv=np.arange(len(Y)) // 4, **FEW).fit(X, Y)
    assert groups.score(UNSEEN, TRUTH) > 0.8


def test_priors_calibration_and_shifts(model, tmp_path):
    model.save(tmp_path / "model")
    other = discem.load(tmp_path / "model")
    before = other.predict_log_proba(UNSEEN)
    odds = np.log(0.9 / 0.1) - np.log(other.class_frequency_[0] / other.class_frequency_[1])
    other.set_class_prior({"+": 0.9, "-": 0.1})
    gained = np.diff(before - other.predict_log_proba(UNSEEN), axis=1)[:, 0]
    np.testing.assert_allclose(gained, odds)
    why = other.explain(UNSEEN[:3])
    np.testing.assert_allclose(softmax(why.scores, axis=1), other.predict_proba(UNSEEN[:3]))
    other.set_class_prior(None)
    rare = np.flatnonzero((TRUTH == "+") | (np.arange(len(TRUTH)) % 5 == 0))
    assert model.adapt(UNSEEN.iloc[rare]).class_frequency_[0] > 0.7
    other._fitted.texts.temperature = 9.0
    classes = other.predict(UNSEEN)
    other.calibrate(UNSEEN, TRUTH)
    assert 0.3 < other.chosen_["texts"]["temperature"] < 3.0
    assert (other.predict(UNSEEN) == classes).all()


def test_a_stream_of_texts():
    model = TableClassifier(**FEW)
    for first in range(0, 120, 40):
        model.partial_fit(X[first : first + 40], Y[first : first + 40])
    assert model.families_["review"].startswith("text") and model.score(UNSEEN, TRUTH) > 0.8
    assert model.texts_["review"].n_documents_ == (X["review"].fillna("").str.strip() != "").sum()
    more = X[:3].assign(review="splendid splendid splendid")
    model.partial_fit(more, ["++"] * 3)
    assert model.predict(more).tolist() == ["++"] * 3
    late = TableClassifier(families={"review": "text"}, **FEW)
    late.partial_fit(X[:40].assign(review="~"), Y[:40])
    assert late.texts_ == {}
    late.partial_fit(X, Y)
    assert late.score(UNSEEN, TRUTH) > 0.75
    late = TableClassifier(families={"review": "text"}, **FEW)
    late.partial_fit(X[:40].assign(review=None), Y[:40])
    assert late.families_["review"] == "ignored: all missing"


def test_a_stream_after_a_fit(tmp_path, model):
    model.save(tmp_path / "model")
    more = discem.load(tmp_path / "model")
    words = len(more.texts_["review"].vocabulary_)
    more.partial_fit(X.assign(review="quite splendid"), Y)
    assert len(more.texts_["review"].vocabulary_) == words + 2
    with pytest.raises(InputError, match="column 'review' held text"):
        more.partial_fit(X.assign(review=1.0), Y)


def test_densities_know_nothing_of_texts():
    model = TableClassifier(**FEW | {"density": True}).fit(X, Y)
    holes = X.assign(stars=X["stars"].where(np.arange(len(X)) % 3 > 0))
    filled = model.impute(holes)
    assert filled["stars"].notna().all()
    pd.testing.assert_series_equal(filled["review"], holes["review"], check_dtype=False)
    drawn, _ = model.sample(3, random_state=0)
    assert list(drawn.columns) == list(X.columns) and drawn["review"].isna().all()
    np.testing.assert_allclose(model.score_samples(X), model.score_samples(X.assign(review="x")))
    assert model.outliers(X).mean() < 0.2 and (model.strangeness(X)[:, 1] == 0).all()
    gains = model.expected_gains({"review": "a good film"})
    assert gains.keys() == {"stars", "shop"}
    assert model.next_cell({"review": "a good film"}) == "stars"
    with pytest.raises(InputError, match="column 'review' is text, without a density"):
        model.distribution("review")
    joint = model.predict_joint_log_proba(X) - model.score_samples(X)[:, None]
    np.testing.assert_allclose(joint, model.predict_log_proba(X))


def test_averages_and_callbacks():
    seen = []

    def look(_, record):
        seen.append(record["stage"])

    options = {"average": 4, "max_iter": 3, "hide": 0.5, "missing": "ignore", "covariance": "diag"}
    model = TableClassifier(callback=look, n_jobs=2, random_state=0, **options).fit(X, Y)
    assert len(model.members_) == 4 and {"choice", "text"} <= set(seen)
    assert model.texts_["review"].callback is None
    found = model.explain(UNSEEN[:5])
    np.testing.assert_allclose(softmax(found.scores, axis=1), model.predict_proba(UNSEEN[:5]))


# --- encoders -------------------------------------------------------------------------------------


def test_vectors_of_text_columns(tmp_path):
    calls = []

    def encoder(texts):
        calls.extend(texts)
        return Moods().encode(texts)

    few, y = X, Y
    model = TableClassifier(encoder=encoder, **FEW).fit(few, y)
    meaning = model.texts_["review"]._fitted.meaning
    assert meaning is not None and "encoder" in meaning.encoder
    known = few["review"].fillna("").str.strip()
    assert all(calls.count(text) == 1 for text in known[known != ""])
    assert model.score(UNSEEN, TRUTH) > 0.82
    why = model.explain(UNSEEN[:1])
    assert why.text("review").words[-1] == "(meaning)"
    np.testing.assert_allclose(softmax(why.scores), model.predict_proba(UNSEEN[:1])[0])
    model.partial_fit(few, y)
    path = tmp_path / "model"
    model.save(path)
    with pytest.raises(OptionError, match="files hold no encoder"):
        discem.load(path).predict(UNSEEN)
    lost = discem.load(path).set_params(encoder=Moods())
    np.testing.assert_allclose(lost.predict_proba(UNSEEN), model.predict_proba(UNSEEN))
    again = discem.load(path, encoder=Moods())
    np.testing.assert_allclose(again.predict_proba(UNSEEN), model.predict_proba(UNSEEN))
    with pytest.raises(OptionError, match="makes other vectors"):
        discem.load(path, encoder=lambda texts: np.ones((len(texts), 3)))
    words = TableClassifier(**FEW).fit(X, Y)  # has no use for an encoder
    words.save(path)
    again = discem.load(path, encoder=Moods())
    np.testing.assert_allclose(again.predict_proba(UNSEEN), words.predict_proba(UNSEEN))
    with pytest.raises(OptionError, match="encoder='x' is unknown"):
        TableClassifier(encoder="x").fit(X, Y)


# --- which columns are texts ----------------------------------------------------------------------


def test_columns_of_sentences_are_found():
    reviews = [f"this is review number {i} of many" for i in range(30)]
    assert not Layout.learn(pd.DataFrame({"x": pd.Categorical(reviews)})).texts
    titles = pd.DataFrame({"x": [f"item {i}" for i in range(60)], "stars": np.arange(60.0) % 7})
    with pytest.warns(UserWarning, match=r"occur once.*families=\{'x': 'text'\}"):
        TableClassifier(**FEW).fit(titles, np.arange(60) % 2)
    given = TableClassifier(families={"x": "text"}, **FEW).fit(titles, np.arange(60) % 2)
    assert given.families_["x"] == "text: given"
    with pytest.raises(InputError, match="column 'x' is given as 'text', but holds numbers"):
        TableClassifier(families={"x": "text"}).fit(titles.assign(x=1.0 * np.arange(60)), Y[:60])


@pytest.mark.parametrize("given", [{}, {"families": {"review": "text"}}])
def test_other_models_of_tables_refuse_texts(given):
    kind, stars = (OptionError if given else InputError), X["stars"].to_numpy()
    told = "column 'review' is text .*does not read: use TableClassifier, or leave the column out"
    for fit in (
        lambda: MixtureClassifier(**given or {"families": {}}).fit(X, Y),
        lambda: MixtureClassifier(**given or {"families": {}}).partial_fit(X, Y),
        lambda: TableRegressor(**given).fit(X, stars),
        lambda: TableRegressor(**given).partial_fit(X, stars),
        lambda: TableImputer(**given).fit(X),
    ):
        with pytest.raises(kind, match=told):
            fit()


# --- files ----------------------------------------------------------------------------------------


def test_files_keep_text_columns(tmp_path, model):
    path = tmp_path / "model.skops"
    model.save(path)
    again = discem.load(path)
    assert (again.predict_proba(UNSEEN) == model.predict_proba(UNSEEN)).all()
    assert again.families_ == model.families_ and again.chosen_ == model.chosen_
    for spoil in (
        lambda texts: setattr(texts, "blocks", []),
        lambda texts: setattr(texts, "temperature", -1.0),
        lambda texts: setattr(texts.blocks[0], "weight", np.nan),
        lambda texts: setattr(texts.blocks[0], "name", "shop"),
        lambda texts: setattr(texts.blocks[0], "model", "words"),
    ):
        bad = discem.load(path)
        spoil(bad._fitted.texts)
        with pytest.raises(ModelFileError):
            bad.save(tmp_path / "bad")
    assert json.dumps(again.chosen_["texts"])
