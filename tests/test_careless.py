"""What a careless user does is refused, with a word of what was wrong; or it is harmless."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest

from discem import (
    Dirichlet,
    GaussianNB,
    MixtureClassifier,
    MultinomialNB,
    TextClassifier,
    TopicClassifier,
)
from discem.calibration import best_temperature
from discem.exceptions import InputError, OptionError

RNG = np.random.default_rng(0)
Y = np.array(["ash", "birch"] * 6)
X = np.abs(RNG.normal(size=(12, 2)) + 3.0 * (Y == "ash")[:, None])
TEXTS = [f"{'good' if label == 'ash' else 'bad'} film {i}" for i, label in enumerate(Y)]
MODELS = [GaussianNB, MultinomialNB, MixtureClassifier, TopicClassifier, TextClassifier]


def data_of(Model):
    return TEXTS if Model is TextClassifier else X


# --- options --------------------------------------------------------------------------------------

WRONG = [
    ("early_stopping", "yes"),
    ("verbose", "x"), ("verbose", -1), ("callback", 3), ("random_state", "x"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), WRONG)
@pytest.mark.parametrize("Model", MODELS)
def test_options_of_the_wrong_kind_are_refused_when_training_starts(Model, name, value):
    if name not in Model().get_params():
        pytest.skip("no such option")
    for start in ("fit", "partial_fit"):
        with pytest.raises(OptionError, match=name):
            getattr(Model(**{name: value}), start)(data_of(Model), Y)


@pytest.mark.parametrize("Model", [*MODELS, type("Mine", (GaussianNB,), {})])
def test_an_option_that_does_not_exist_is_named_with_the_class_that_lacks_it(Model):
    with pytest.raises(OptionError, match=f"{Model.__name__} has no option 'prio'.*'prior'"):
        Model(prio=1)
    with pytest.raises(TypeError, match=r"no option 'zzz'; there are: .*'random_state'"):
        Model(zzz=1)
    with pytest.raises(ValueError, match=rf"'prio' for estimator {Model.__name__}\("):
        Model().set_params(prio=1)


@pytest.mark.parametrize("Model", [MultinomialNB, TopicClassifier, TextClassifier])
def test_two_ways_to_say_how_strong_a_prior_is(Model):
    """One would be silently without effect."""
    with pytest.raises(OptionError, match="strength stands in for alpha"):
        Model(prior=Dirichlet(alpha=1, strength=2)).fit(data_of(Model), Y)
    with pytest.raises(OptionError, match="strength must be > 0"):
        Model(prior=Dirichlet(strength=-1.0)).fit(data_of(Model), Y)


def test_components_of_a_class_that_does_not_exist():
    sizes = {"ash": 2, "birch": 1, "brich": 3}
    with pytest.raises(OptionError, match=r"'brich'.*\['ash', 'birch'\]"):
        MixtureClassifier(sizes).fit(X, Y)
    MixtureClassifier(sizes).partial_fit(X, Y)  # it may still come


# --- tables ---------------------------------------------------------------------------------------


def test_two_columns_of_one_name():
    with pytest.raises(InputError, match="two columns of the name 'a'"):
        GaussianNB().fit(pd.DataFrame(X, columns=["a", "a"]), Y)


DAYS = pd.DataFrame({"a": X[:, 0], "day": pd.date_range("2020-01-01", periods=12)})
DATED = {
    "pandas": (DAYS, "column 'day' of X holds dates"),
    "only dates": (DAYS[["day"]], "column 'day' of X holds dates"),
    "polars": (pl.from_pandas(DAYS), "column 'day' of X holds dates"),
    "numpy": (DAYS[["day"]].to_numpy(), "X holds dates"),
    "spans": (DAYS.assign(day=DAYS["day"] - DAYS["day"][0]), "column 'day' of X holds dates"),
    "objects": ([[datetime.date(2020, 1, 1)]] * 12, r"datetime.date\(2020, 1, 1\) at row 0"),
    "lazy": (pl.from_pandas(DAYS).lazy(), "LazyFrame, whose rows are not there"),
}


@pytest.mark.parametrize(("table", "message"), DATED.values(), ids=DATED.keys())
def test_dates_and_tables_that_are_not_there(table, message):
    with pytest.raises(InputError, match=message):
        GaussianNB().fit(table, Y)


def test_missing_values_of_pandas_in_a_column_of_objects():
    """They are missing values, as they are in columns of numbers."""
    table = pd.DataFrame(X, columns=["a", "b"])
    table.loc[3, "b"] = np.nan
    objects = table.astype(object).where(table.notna(), pd.NA)
    one, other = (GaussianNB(max_iter=2, random_state=0).fit(t, Y) for t in (table, objects))
    np.testing.assert_array_equal(one.predict_proba(table), other.predict_proba(objects))
    assert other.feature_names_in_.tolist() == ["a", "b"]
    with pytest.raises(InputError, match=r"NaN at row 3, column 1 \('b'\)"):
        MultinomialNB().fit(objects, Y)
    objects.loc[5, "b"] = "much"
    with pytest.raises(InputError, match="the text 'much' at row 5, column 1"):
        GaussianNB().fit(objects, Y)


# --- after training -------------------------------------------------------------------------------


@pytest.mark.parametrize("Model", MODELS)
def test_a_class_that_the_model_does_not_know_is_named(Model):
    data = data_of(Model)
    model = Model(max_iter=2, random_state=0).fit(data, Y)
    with pytest.raises(InputError, match=r"'oak' in row 3; there are: \['ash', 'birch'\]"):
        model.calibrate(data, np.where(np.arange(12) == 3, "oak", Y))
    for prior, message in (
        ({"ash": 1.0}, "lacks the class 'birch'"),
        ({"ash": 0.5, "birch": 0.4, "oak": 0.1}, "'oak', which is no class"),
        ([0.5, 0.3, 0.2], r"needs 2 numbers, for the classes \['ash', 'birch'\], and has 3"),
        ([1.5, -0.5], "of 'birch' is -0.5"),
        ([0.5, 0.6], "sums to 1.1"),
        ("ab", "no number"),
    ):
        with pytest.raises(InputError, match=message):
            model.set_class_prior(prior)


@pytest.mark.parametrize("Model", MODELS)
def test_the_frequencies_that_were_told_can_be_read_back(Model):
    """`class_prior_` is p(y) of the joint, which a discriminative loss moves."""
    model = Model(random_state=0).fit(data_of(Model)[:9], Y[:9])
    np.testing.assert_allclose(model.class_frequency_, [5 / 9, 4 / 9])
    for told in ([0.3, 0.7], {"birch": 0.7, "ash": 0.3}, pd.Series({"birch": 0.7, "ash": 0.3})):
        model.set_class_prior(told)
        np.testing.assert_allclose(model.class_frequency_, [0.3, 0.7])
    model.set_class_prior(None)
    np.testing.assert_allclose(model.class_frequency_, [5 / 9, 4 / 9])


@pytest.mark.parametrize("margin", [0.1, 3.0, 100.0])
@pytest.mark.parametrize("codes", [[0], [1], [0, 0], [1, 1], [0, 1]])
def test_a_row_or_two_do_not_make_probabilities_extreme(codes, margin):
    """Nobody knows a temperature of 6e-6 from one row."""
    scores = np.tile([0.0, -margin], (len(codes), 1))
    found = best_temperature(scores, np.array(codes), np.ones(len(codes)))
    assert 1 / 500 < found.value < 100
    wrong = 1 / (1 + np.exp(found.value * margin))
    assert 0.01 < wrong <= 0.5


def test_many_rows_outweigh_the_prior_of_the_temperature():
    rng = np.random.default_rng(0)
    for right in (0.02, 1.0, 30.0):
        scores = np.stack([rng.normal(size=20_000) / right, np.zeros(20_000)], axis=1)
        p = 1 / (1 + np.exp(-right * scores[:, 0]))
        codes = (rng.random(20_000) > p).astype(int)
        found = best_temperature(scores, codes, np.ones(20_000))
        assert found.value == pytest.approx(right, rel=0.1)


# --- documents ------------------------------------------------------------------------------------


def six_topics(n=120):
    rng = np.random.default_rng(0)
    y = np.arange(n) % 6
    said = [" ".join(f"w{j}" for j in rng.choice(200, 8)) for _ in y]
    return [text + f" t{k}" * (k % 3) for text, k in zip(said, y, strict=True)], y


@pytest.mark.parametrize("loss", ["ncll", "hinge", "nll", "auto"])
def test_a_document_that_says_nothing_has_the_frequencies_of_the_classes(loss):
    """Empty, or of unknown words: p(y) of a discriminative model is no frequency."""
    X, y = six_topics()
    model = TextClassifier(loss=loss, random_state=0).fit(X, y)
    p = model.predict_proba(["", "quite unheard of", X[0]])
    np.testing.assert_allclose(p[:2], np.full((2, 6), 1 / 6))
    np.testing.assert_allclose(model.predict_proba([X[0]]), p[2:])
    np.testing.assert_allclose(p[2:].sum(axis=1), 1.0)
    model.set_class_prior([0.1, 0.1, 0.1, 0.1, 0.1, 0.5])
    np.testing.assert_allclose(model.predict_proba([""])[0], [0.1] * 5 + [0.5])
    assert model.predict(["", X[0]]).tolist() == [5, model.predict([X[0]])[0]]
    explained = model.explain("")
    np.testing.assert_allclose(np.exp(explained.scores), [0.1] * 5 + [0.5])
    assert not explained.words


def test_explain_takes_one_document():
    """A list of texts is no list of words."""
    model = TextClassifier(random_state=0).fit(TEXTS, Y)
    for documents in (["a good film"], ["a good film", "a bad one"], ("a good film",)):
        with pytest.raises(InputError, match="one document at a time"):
            model.explain(documents)
    assert model.explain(["good", "film"]).words == model.explain("good film").words
    assert model.explain(["unheard"]).words == model.explain([]).words == []
    hashed = TextClassifier(n_features=64, random_state=0).fit(TEXTS, Y)
    with pytest.raises(InputError, match="one document at a time"):
        hashed.explain(["a good film"])
