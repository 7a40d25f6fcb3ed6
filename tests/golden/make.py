"""Make a golden file: a small model of one kind, and what it says of a few rows.

A golden file is made once and read by every later version; `tests/test_files.py` does. Never make
one again because a test fails: that test says that files of users cannot be read any more. A new
kind of model gets a new file, and all are made anew where the format gets a new number:

    python tests/golden/make.py NAME...
"""

import json
import sys
from pathlib import Path

import numpy as np

import discem
from discem import (
    Blend,
    Dirichlet,
    GaussianClassifier,
    GaussianNB,
    Hinge,
    Interior,
    MixtureClassifier,
    MultinomialNB,
    NaiveBayes,
    NormalGamma,
    TableClassifier,
    TextClassifier,
    TopicClassifier,
    inverse,
    power,
)

HERE = Path(__file__).parent
LABELS = np.array(["ash", "birch", "cedar"])


def table(n=40):
    rng = np.random.default_rng(0)
    y = np.arange(n) % 3
    X = rng.normal(size=(n, 3)) + y[:, None]
    X[::7, 1] = np.nan
    return X, LABELS[y]


def counts(n=40):
    rng = np.random.default_rng(1)
    y = np.arange(n) % 3
    return rng.poisson(1.0 + 2.0 * (y[:, None] == np.arange(6) % 3)).astype(float), LABELS[y]


def texts(n=30):
    words = {"ash": "grey bark keys", "birch": "white bark paper", "cedar": "needles resin chest"}
    rng = np.random.default_rng(2)
    y = LABELS[np.arange(n) % 3]
    extra = ["tall tree", "old tree", "a leaf and roots"]
    return [f"{words[label]} {extra[rng.integers(3)]}" for label in y], y


def records(n=60):
    """Rows with a column of each family, and cells that are missing."""
    rng = np.random.default_rng(3)
    rows, y = [], np.arange(n) % 3
    for i, k in enumerate(y):
        row = {
            "height": float(rng.normal(10 + 5 * k, 2)),
            "price": float(np.exp(rng.normal(k, 0.5))),
            "rain": float(rng.gamma(2.0) * (rng.random() < 0.4 + 0.2 * k)),
            "rings": int(rng.poisson(4 + 6 * k)),
            "native": bool(rng.random() < 0.2 + 0.3 * k),
            "soil": ["clay", "loam", "sand"][(k + (rng.random() < 0.3)) % 3],
        }
        del row[list(row)[i % 6]]
        rows.append(row)
    return rows, LABELS[y]


FAMILIES = {"price": "lognormal", "rain": "hurdle", "rings": "poisson"}
few = {"max_iter": 3, "random_state": 0}
MODELS = {  # name: an estimator, and its rows
    "gaussian": (GaussianNB(**few), table),
    "gaussian-options": (
        GaussianNB(
            loss=Blend(0.2), prior=NormalGamma(1.0, 10.0, mean=0.5), projection=Interior(0.3),
            step=power(0.1, 50.0), class_weight={"ash": 1.0, "birch": 2.0, "cedar": 1.0}, **few,
        ),
        table,
    ),
    "gaussian-paper": (
        GaussianNB(prior="paper", init="prior", step=inverse(0.1), projection="check", **few),
        table,
    ),
    "gaussian-full": (GaussianClassifier(covariance="full", hide=0.5, **few), table),
    "gaussian-tied": (GaussianClassifier(2, covariance="tied", loss="hinge", **few), table),
    "multinomial": (MultinomialNB(**few), counts),
    "multinomial-average": (
        MultinomialNB(loss=Hinge(2.0), prior=Dirichlet(0.5), average=True, **few), counts
    ),
    "mixture-gaussian": (MixtureClassifier({"ash": 2, "birch": 1, "cedar": 2}, **few), table),
    "mixture-words": (MixtureClassifier(families="words", **few), counts),
    "naive-bayes": (NaiveBayes(families=FAMILIES, forget=100, **few), records),
    "table": (
        TableClassifier(
            families=FAMILIES, n_components=2, loss="blend", hide=0.5, missing="informative",
            prior_strength=2.0, **few,
        ),
        records,
    ),
    "topics-cvb0": (TopicClassifier(**few), counts),
    "topics-gibbs": (TopicClassifier(inference="gibbs", text=True, **few), texts),
    "text": (TextClassifier(ngram_range=(1, 1), random_state=0), texts),
    "text-hashed": (
        TextClassifier(ngram_range=(1, 1), random_state=0, n_features=32, loss="ncll"), texts
    ),
}  # fmt: skip


def make(name: str) -> None:
    model, rows = MODELS[name]
    X, y = rows()
    model.fit(X, y)
    if name == "text-hashed":
        model.partial_fit(X[:3], y[:3])
    model.set_class_prior([0.2, 0.3, 0.5])
    path = HERE / f"{name}.skops"
    if path.exists():
        raise SystemExit(f"{path} is there already, and golden: it must stay as it is")
    model.save(path)
    said = {
        "version": discem.__version__,
        "joint": model.predict_joint_log_proba(X[:5]).tolist(),
        "proba": model.predict_proba(X[:5]).tolist(),
        "history": len(model.history_),
    }
    path.with_suffix(".json").write_text(json.dumps(said, indent=1) + "\n")


if __name__ == "__main__":
    for each in sys.argv[1:] or MODELS:
        make(each)
