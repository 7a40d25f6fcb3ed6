"""Pictures of a model: what is drawn is what the model believes."""

import numpy as np
import pytest
from scipy.integrate import trapezoid
from sklearn.datasets import load_iris

from discem import GaussianNB, MultinomialNB, NaiveBayes, TableClassifier, TextClassifier
from discem.datasets import customers
from discem.estimators._beliefs import beliefs
from discem.estimators._explain import Explanation
from discem.exceptions import InputError
from discem.report.plots import plot_explanation

pytest.importorskip("matplotlib", reason="pictures need discem[plot]").use("agg")


@pytest.fixture(scope="module")
def table():
    X, y = customers(300, random_state=0)
    return NaiveBayes(random_state=0).fit(X, y), X, y


def test_beliefs_are_distributions(table):
    for belief in beliefs(table[0]):
        if not belief.is_density:
            mass = belief.p.sum(axis=1)
        else:
            at = belief.places
            at = at.astype("M8[s]").astype(float) / 86400 if at.dtype.kind == "M" else at
            mass = trapezoid(belief.p, at) + (0.0 if belief.zero is None else belief.zero)
        np.testing.assert_allclose(mass, 1.0, atol=0.06, err_msg=belief.column)


def test_beliefs_of_levels_are_those_asked_for_one_by_one():
    X, y = customers(300, random_state=0)
    model = TableClassifier(n_components=1, loss="nll", random_state=0).fit(X, y)
    (belief,) = beliefs(model, ["plan"])
    for label, p in zip(model.classes_, belief.p, strict=True):
        assert dict(zip(belief.places, p.tolist(), strict=True)) == pytest.approx(
            model.distribution("plan", y=label)
        )


def test_a_density_of_an_array_is_that_of_the_model():
    X, y = load_iris(return_X_y=True)
    model = GaussianNB(loss="nll").fit(X, y)
    (belief,) = beliefs(model, [2])
    top = belief.places[belief.p.argmax(axis=1)]
    np.testing.assert_allclose(top, model.mean_[:, 2], atol=0.05)


def test_columns_that_say_nothing_come_last():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 400)
    X = np.column_stack([rng.normal(size=400), y + rng.normal(size=400)])
    found = beliefs(GaussianNB().fit(X, y))
    assert [belief.column for belief in found] == [1, 0]
    assert found[1].information < 0.02 < found[0].information


def test_pictures_of_every_kind_of_model(table):
    texts = ["good film", "bad film", "a good plot", "a bad plot"] * 5
    critic = TextClassifier(random_state=0).fit(texts, ["+", "-", "+", "-"] * 5)
    bars = critic.plot_classes()[0]
    assert bars.get_yticklabels()[0].get_text() == critic.top_words("+", 1)[0][0] == "good"
    counts = MultinomialNB(random_state=0).fit(np.eye(4)[[0, 1, 2, 3] * 5], [0, 0, 1, 1] * 5)
    assert len(counts.plot_classes()) == 2
    model, X, y = table
    assert [ax.get_title("left") for ax in model.plot_classes(["plan", "age"])] == ["plan", "age"]
    line = model.plot_history().lines[0].get_ydata()
    assert line[-1] == min(line)
    accuracy = model.plot_rejection(X, y).lines[0].get_ydata()
    assert accuracy[-1] == pytest.approx(100 * model.score(X, y))


def test_calibration_shows_overconfidence(table):
    model, X, y = table
    wrong = np.where(np.arange(len(y)) % 3, y, model.classes_[0])
    said, share = model.plot_calibration(X, wrong).lines[-1].get_data()
    assert np.mean(said) > np.mean(share)


def test_what_cannot_be_drawn_is_refused(table):
    model, X, _ = table
    with pytest.raises(InputError, match="knows no column 'plam'"):
        model.plot_classes(["plam"])
    with pytest.raises(InputError, match="has no label at all"):
        model.plot_calibration(X[:3], [None] * 3)


def test_an_explanation_of_a_class_is_against_another_one():
    why = Explanation(np.array(["a", "b"]), ["x"], np.array([[2.0, 0.0]]), np.zeros(2))
    (axes,) = plot_explanation(why, label="b").axes
    assert axes.get_title(loc="left") == "Why b, and not a?"
