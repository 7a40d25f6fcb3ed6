"""The data sets: the toy's law, exact accuracies, docstrings without leaks."""

import re

import numpy as np
import pytest
from scipy.stats import norm

from discem.datasets import customers, docstrings, flats, toy, toy_accuracy
from discem.exceptions import InputError, OptionError
from discem.io.column_kinds import column_names
from discem.io.tables import Layout


class Rule:
    """A classifier made of a function of x that is True for class 1."""

    def __init__(self, positive):
        self.positive = positive

    def predict(self, X):
        return np.where(self.positive(X[:, 0]), 1, -1)


# --- toy ------------------------------------------------------------------------------------------


def test_toy_has_the_moments_of_the_paper():
    X, y = toy(200_000, random_state=0)
    x = X[:, 0]
    near = y == 1
    left = near & (x < 0)
    assert X.shape == (200_000, 1) and set(y.tolist()) == {-1, 1}
    assert np.mean(near) == pytest.approx(0.5, abs=0.005)
    assert np.mean(left) / np.mean(near) == pytest.approx(0.8, abs=0.005)
    assert x[~near].mean() == pytest.approx(0, abs=0.05)
    assert x[~near].std() == pytest.approx(3, rel=0.01)
    assert x[left].mean() == pytest.approx(-5, abs=0.002)
    assert x[left].std() == pytest.approx(0.1, rel=0.02)
    assert x[near & ~left].mean() == pytest.approx(5, abs=0.004)


def test_toy_repeats_by_seed():
    (X, y), (X_same, y_same), (X_other, _) = (toy(50, random_state=s) for s in (3, 3, 4))
    assert np.array_equal(X, X_same) and np.array_equal(y, y_same)
    assert not np.array_equal(X, X_other)


def test_toy_refuses_no_rows():
    with pytest.raises(OptionError, match="n_samples=0"):
        toy(0)


def needles(x):
    return 0.8 * norm.pdf(x, -5, 0.1) + 0.2 * norm.pdf(x, 5, 0.1)


@pytest.mark.parametrize(
    ("positive", "accuracy"),
    [
        (lambda x: x > np.inf, 0.5),
        (lambda x: x > -np.inf, 0.5),
        (lambda x: x < -2.5, 0.5 * 0.8 + 0.5 * norm.sf(-2.5 / 3)),
        (lambda x: np.abs(x) > 4.2, 0.5 + 0.5 * (norm.cdf(1.4) - norm.cdf(-1.4))),
        # maximum likelihood in the limit: moments of the two classes, equal priors
        (lambda x: norm.pdf(x, -3, np.sqrt(16.01)) > norm.pdf(x, 0, 3), 0.7905),
        (lambda x: needles(x) > norm.pdf(x, 0, 3), 0.9794),  # Bayes
    ],
)
def test_toy_accuracy_of_known_rules(positive, accuracy):
    digits = 1e-9 if accuracy not in (0.7905, 0.9794) else 5e-5
    assert toy_accuracy(Rule(positive)) == pytest.approx(accuracy, abs=digits)


def test_toy_accuracy_is_what_a_large_sample_shows():
    rule = Rule(lambda x: np.sin(2 * x) > 0.3)  # many regions
    X, y = toy(400_000, random_state=1)
    assert toy_accuracy(rule) == pytest.approx(np.mean(rule.predict(X) == y), abs=0.003)


def test_toy_accuracy_names_a_foreign_label():
    class Foreign:
        def predict(self, X):
            return np.zeros(len(X))

    with pytest.raises(InputError, match=r"predicts .*0\.0.*expected -1 or 1"):
        toy_accuracy(Foreign())


# --- customers ------------------------------------------------------------------------------------


def test_customers_have_every_family_but_texts_and_holes():
    rows, y = customers(1000, random_state=0)
    names = list(rows[0])
    assert names[0] == "id" and len(names) == 9 and all(set(row) <= set(names) for row in rows)
    lacking = {name: np.mean([name not in row for row in rows]) for name in names}
    assert lacking.pop("id") == 0 and lacking.pop("survey") > 0.3
    assert all(0.05 < share < 0.15 for share in lacking.values())
    families = {why.split(":")[0] for why in Layout.learn(rows).families_.values()}
    assert families == set(column_names()) - {"text"}
    assert set(y.tolist()) == {"leaves", "stays"}
    assert customers(1000, random_state=0)[0] == rows


def test_flats_have_holes_and_a_spread_that_depends_on_the_district():
    rows, rent = flats(3000, random_state=0)
    assert flats(3000, random_state=0)[0] == rows
    assert 0.08 < 1.0 - sum(map(len, rows)) / (5 * len(rows)) < 0.12
    by_metre = [
        np.std([r / row["size"] for row, r in zip(rows, rent, strict=True)
                if row.get("district") == place and "size" in row])
        for place in ("old town", "suburb")
    ]  # fmt: skip
    assert by_metre[0] > 1.5 * by_metre[1]
    with pytest.raises(OptionError):
        flats(0)


@pytest.mark.parametrize("options", [{"n_samples": 0}, {"holes": 1.0}, {"holes": -0.1}])
def test_customers_refuse_what_cannot_be(options):
    with pytest.raises(OptionError):
        customers(**options)


# --- docstrings -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def corpus():
    return docstrings(max_per_library=60)


def test_docstrings_hold_several_libraries(corpus):
    texts, labels = corpus
    assert len(texts) == len(labels)
    assert {"numpy", "scipy", "sklearn", "numba"} <= set(labels)
    assert max(labels.count(name) for name in set(labels)) <= 60
    assert min(len(text.split()) for text in texts) >= 20


def test_docstrings_repeat_by_seed(corpus):
    assert docstrings(max_per_library=60) == corpus
    assert docstrings(max_per_library=60, random_state=1) != corpus


def test_docstrings_have_no_duplicates(corpus):
    texts, _ = corpus
    assert len(set(texts)) == len(texts)


def test_docstrings_do_not_name_their_library(corpus):
    words = {word for text in corpus[0] for word in re.findall(r"[a-z0-9]+", text.lower())}
    names = {
        "numpy",
        "np",
        "scipy",
        "sklearn",
        "scikit",
        "numba",
        "matplotlib",
        "plt",
        "pandas",
        "pd",
    }
    assert not words & names
    assert "array" in words  # and yet they are texts
