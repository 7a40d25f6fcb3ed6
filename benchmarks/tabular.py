"""Accuracy and log-loss on tables beside the usual classifiers: the figures of docs/figures.md.

Each data set is cut into five stratified folds; each method trains on four and is tested on the
fifth; a split is one such cutting, and the table gives the mean over splits and, after ±, their
standard deviation. All methods see the same folds. Hinge training yields no probabilities of its
own: it trains on four fifths of each training part and fits its temperature to the rest.

    python benchmarks/tabular.py                     # naive Bayes, discem, logistic regression
    python benchmarks/tabular.py --all               # and gradient boosting (minutes)
    python benchmarks/tabular.py --json tabular.json
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from harness import clock, versions, write_json
from sklearn import datasets, naive_bayes
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

import discem

DATA = {
    "wine": datasets.load_wine,
    "breast cancer": datasets.load_breast_cancer,
    "digits": datasets.load_digits,
}


class Calibrated:
    """Hinge training on four fifths of the rows, its temperature fitted to the last."""

    def __init__(self, model: Any, seed: int):
        self.model, self.seed = model, seed

    def fit(self, X: np.ndarray, y: np.ndarray) -> Any:
        X, X_held, y, y_held = train_test_split(
            X, y, test_size=0.2, stratify=y, random_state=self.seed
        )
        return self.model.fit(X, y).calibrate(X_held, y_held)


def methods(boosting: bool) -> dict[str, Callable[[int], Any]]:
    """Fresh classifiers by name, each from a seed; only logistic regression needs scaling."""

    def logistic(seed: int) -> Any:
        return make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))

    found = {
        "scikit-learn GaussianNB": lambda seed: naive_bayes.GaussianNB(),
        "discem GaussianNB, nll": lambda seed: discem.GaussianNB(loss="nll", random_state=seed),
        "discem GaussianNB, ncll": lambda seed: discem.GaussianNB(random_state=seed),
        "discem GaussianNB, hinge": lambda seed: Calibrated(
            discem.GaussianNB(loss="hinge", random_state=seed), seed
        ),
        "discem MixtureClassifier, ncll": lambda seed: discem.MixtureClassifier(random_state=seed),
        "LogisticRegression, scaled": logistic,
    }
    if boosting:
        found["HistGradientBoosting"] = lambda seed: HistGradientBoostingClassifier(
            random_state=seed
        )
    return found


def one_split(make: Callable[[int], Any], X, y, folds: int, seed: int) -> dict[str, float]:
    """Accuracy, log-loss and mean seconds to train, of one cutting into folds."""
    probabilities = np.empty((len(y), len(np.unique(y))))
    seconds = []
    cut = StratifiedKFold(folds, shuffle=True, random_state=seed)
    for train, test in cut.split(X, y):
        model, spent = clock(make(seed).fit, X[train], y[train])
        seconds.append(spent)
        probabilities[test] = model.predict_proba(X[test])
    correct = np.unique(y)[probabilities.argmax(axis=1)] == y
    return {
        "accuracy": float(correct.mean()),
        "log_loss": float(log_loss(y, probabilities)),
        "seconds": float(np.mean(seconds)),
    }


def compare(sets: list[str], splits: int, folds: int, boosting: bool) -> list[dict[str, Any]]:
    """Every method on every data set."""
    results = []
    for data in sets:
        X, y = DATA[data](return_X_y=True)
        for name, make in methods(boosting).items():
            runs = [one_split(make, X, y, folds, seed) for seed in range(splits)]
            results.append({"data": data, "method": name, "splits": runs})
            print(row(results[-1]), flush=True)
    return results


def row(result: dict[str, Any]) -> str:
    """One line of the table."""
    runs = result["splits"]
    text = f"{result['data']:<14} {result['method']:<27}"
    for name in ("accuracy", "log_loss"):
        values = [run[name] for run in runs]
        text += f" {np.mean(values):7.4f} ± {np.std(values):.4f}"
    return text + f" {np.mean([run['seconds'] for run in runs]):9.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sets", nargs="+", choices=list(DATA), default=list(DATA))
    parser.add_argument("--splits", type=int, default=4, help="cuttings into folds (default 4)")
    parser.add_argument("--folds", type=int, default=5, help="folds of each (default 5)")
    parser.add_argument("--all", action="store_true", help="also gradient boosting, which is slow")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write every number to this file")
    options = parser.parse_args()
    found = versions()
    print(f"{options.folds}-fold cross-validation, {options.splits} splits, one thread")
    print(", ".join(f"{name} {value}" for name, value in found.items()))
    print(f"{'data':<14} {'method':<27} {'accuracy':>16} {'log-loss':>16} {'fit, s':>9}")
    with threadpool_limits(1):
        results = compare(options.sets, options.splits, options.folds, options.all)
    if options.json:
        content = {"versions": found, "folds": options.folds, "results": results}
        write_json(options.json, content)


if __name__ == "__main__":
    main()
