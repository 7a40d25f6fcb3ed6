"""Explanations of many rows: exact, in the library of the rows, and as a picture for notebooks."""

from html.parser import HTMLParser

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.special import log_softmax
from test_table import FIXED, GIVEN, made

import discem
from discem import GaussianNB, MixtureClassifier, NaiveBayes, TableClassifier, TextClassifier
from discem.estimators._average import REST
from discem.estimators._explain import Explanation, Explanations
from discem.exceptions import InputError

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
MODELS = {
    "table": TableClassifier(**FIXED | {"families": GIVEN, "density": False}),
    "informative": TableClassifier(
        **FIXED | {"families": GIVEN, "density": False, "missing": "informative"}
    ),
    "average": TableClassifier(
        n_components=1, loss="ncll", hide=0.4, missing="ignore", prior_strength=1.0, average=2,
        covariance="diag", whole_numbers="levels", families=GIVEN, max_iter=3, density=False,
        random_state=0,
    ),
    "mixture": MixtureClassifier(2, families=GIVEN, max_iter=3, random_state=0),
    "full": MixtureClassifier(2, families=GIVEN, covariance="full", max_iter=3, random_state=0),
    "naive": NaiveBayes(families=GIVEN, max_iter=3, random_state=0),
}  # fmt: skip


@pytest.fixture(scope="module", params=MODELS)
def model(request):
    return MODELS[request.param].fit(*made(150))


def test_parts_of_many_rows_are_exact_and_those_of_each(model):
    X, _ = made(30, seed=3)
    why = model.explain(X)
    assert isinstance(why, Explanations)
    assert len(why) == len(X)
    expected = model.predict_log_proba(X)
    np.testing.assert_allclose(log_softmax(why.scores, axis=1), expected, atol=1e-9)
    for i in (0, 7, 29):
        alone = model.explain(X[i : i + 1])
        assert isinstance(alone, Explanation)
        assert alone.columns == why[i].columns
        np.testing.assert_allclose(alone.contributions, why[i].contributions, atol=1e-9)
        np.testing.assert_allclose(alone.intercept, why[i].intercept, atol=1e-9)
    assert [len(part) for part in (why[:2], why[5:])] == [2, 25]


@pytest.mark.parametrize("kind", ["pandas", "polars", "dicts", "array"])
def test_frames_add_up_to_the_log_odds(kind):
    X, y = made(60, holes=0.0)
    X = X[["size", "price"]] if kind == "array" else X
    X.index = [f"row {i}" for i in range(len(X))]
    table = {
        "pandas": lambda: X,
        "polars": lambda: pl.from_pandas(X.reset_index(drop=True)),
        "dicts": lambda: X.astype(object).to_dict("records"),
        "array": X.to_numpy,
    }[kind]()
    families = GIVEN if kind != "array" else "auto"
    model = NaiveBayes(families=families, max_iter=3, random_state=0).fit(table, y)
    why = model.explain(table)
    frame = why.to_frame()
    if kind == "array":
        np.testing.assert_allclose(frame[:, 0], frame[:, 1:].sum(axis=1), atol=1e-9)
        assert frame.shape == (60, 4)
        return
    assert type(frame) is type(table)
    found = pd.DataFrame(frame) if kind == "dicts" else frame
    found = found.to_pandas() if kind == "polars" else found
    if kind == "pandas":
        assert frame.index.equals(X.index)
    assert list(found) == ["label", "against", "log_odds", "start", *X]
    parts = found[["start", *X]].sum(axis=1)
    np.testing.assert_allclose(found["log_odds"], parts, atol=1e-9)
    assert found["label"].tolist() == model.predict(table).tolist()
    p = model.predict_proba(table)
    best = np.sort(p, axis=1)
    np.testing.assert_allclose(found["log_odds"], np.log(best[:, -1] / best[:, -2]), atol=1e-9)
    fixed = model.explain(table).to_frame("ash", "cedar")
    odds = pd.DataFrame(fixed)["log_odds"] if kind == "dicts" else fixed["log_odds"]
    np.testing.assert_allclose(np.asarray(odds), np.log(p[:, 0] / p[:, 2]), atol=1e-9)


def test_importances_are_those_of_rows_of_the_training(tmp_path):
    X, y = made(200)
    model = TableClassifier(**FIXED | {"families": GIVEN, "density": False}).fit(X, y)
    frame = model.explain(X).to_frame()[list(X)].abs()
    found = {name: (mean, spread) for name, mean, spread in model.importances_}
    for name in X:  # there are fewer than 300 rows: these are all of them
        np.testing.assert_allclose(found[name], (frame[name].mean(), frame[name].std(ddof=0)))
    means = [mean for mean, _ in found.values()]
    assert means == sorted(means, reverse=True)
    model.save(tmp_path / "model.skops")
    assert discem.load(tmp_path / "model.skops").importances_ == model.importances_
    names = [each.column for each in MODELS["average"].fit(X, y).importances_]
    assert set(names) == set(X)
    assert REST not in names
    with pytest.raises(AttributeError, match="fit"):
        _ = TableClassifier(**FIXED).partial_fit(X, y).importances_


class Tags(HTMLParser):
    """What is open must be closed, and texts are escaped."""

    def __init__(self):
        super().__init__()
        self.open, self.texts, self.styles = [], [], []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.styles.append(dict(attrs).get("style", ""))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def test_notebooks_show_bars():
    X, y = made(100)
    X = X.rename(columns={"town": "<script>town"})
    y = np.where(y == "ash", "<b>ash", y)
    why = NaiveBayes(families=GIVEN, max_iter=3, random_state=0).fit(X, y).explain(X[:1])
    html = why._repr_html_()
    tags = Tags()
    tags.feed(html)
    assert not tags.open
    assert "<script>" not in html
    assert "<script>town" in tags.texts
    parts = dict(why.against())
    bars = [style for style in tags.styles if style.startswith("height")]
    assert len(bars) == len([part for part in parts.values() if abs(part) > 1e-9]) + 1
    for name, part in parts.items():
        assert str(name) in tags.texts
        assert f"{part:+.3f}" in tags.texts
    words = TextClassifier(random_state=0).fit(["good film", "bad film"] * 20, ["+", "-"] * 20)
    assert "good" in words.explain("good film")._repr_html_()


def test_many_words_are_added_up():
    why = Explanation(np.array(["a", "b"]), list(range(30)), np.ones((30, 2)) * [1, 0], np.zeros(2))
    assert "(18 others)" in why._repr_html_()


def test_a_single_class_has_nothing_against_it():
    why = GaussianNB(loss="nll").fit(np.eye(3), ["a"] * 3).explain(np.eye(3))
    with pytest.raises(InputError, match="single class"):
        why.to_frame()


def test_an_explanation_can_be_read_where_there_is_no_notebook():
    X, y = [[0.0, 5.0], [0.1, 5.1], [1.0, 5.0], [1.1, 5.1]], ["low", "low", "high", "high"]
    why = discem.GaussianNB(random_state=0).fit(X, y).explain([[1.0, 5.0]])
    title, *lines = repr(why).splitlines()
    assert title.startswith("high, probability 0.") and title.endswith("log-odds against low")
    parts = [float(line.split()[0]) for line in lines]
    assert parts[-1] == pytest.approx(sum(parts[:-1]), abs=0.01)
    assert parts[-1] == pytest.approx(why.scores[0] - why.scores[1], abs=0.01)
