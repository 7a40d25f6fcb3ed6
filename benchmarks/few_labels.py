"""Few labels: what unlabelled documents add, beside self-training of the usual classifiers.

Each draw takes some labelled documents of the training part of a set, and all others as unlabelled
(for a set with a file `unlabeled.txt.gz`, those). Accuracy is that of the official test part, mean
and standard deviation over draws; `without` is the same model and the same labels alone.

    python benchmarks/few_labels.py --data DIR --json few_labels.json
    python benchmarks/few_labels.py --quick              docstrings of the installed libraries
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from harness import versions, write_json
from laboratory import DataNotFoundError, load_text
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.semi_supervised import SelfTrainingClassifier

from discem import MultinomialNB, TextClassifier
from discem.datasets import docstrings

NAMES = ("amazon14", "imdb", "20ng", "webkb", "r8")


def discem_text(seed: int) -> Any:
    return TextClassifier(random_state=seed)


def discem_counts(seed: int) -> Any:
    return make_pipeline(CountVectorizer(), MultinomialNB(random_state=seed))


class SelfTraining:
    """Logistic regression on tf-idf that labels what it is sure of, and trains again."""

    def fit(self, texts, y):
        known = np.array([label is not None for label in y])
        names, codes = np.unique(y[known].astype(str), return_inverse=True)
        self.words = TfidfVectorizer(sublinear_tf=True).fit(
            [text for text, here in zip(texts, known, strict=True) if here]
        )
        self.names, targets = names, np.full(len(y), -1)
        targets[known] = codes
        model = LogisticRegression(C=10.0, max_iter=300)
        if not known.all():
            model = SelfTrainingClassifier(model, threshold=0.9)
        self.model = model.fit(self.words.transform(texts), targets)
        return self

    def score(self, texts, y):
        return float(np.mean(self.names[self.model.predict(self.words.transform(texts))] == y))


METHODS = {
    "TextClassifier": discem_text,
    "counts, MultinomialNB": discem_counts,
    "tf-idf, self-training LR": lambda seed: SelfTraining(),
}


def load(name: str, data: str | None) -> tuple[Any, ...]:
    """Training documents and labels, unlabelled documents (None: the rest), test part."""
    if name == "docstrings":
        train, test, y, truth = train_test_split(*docstrings(), test_size=0.3, random_state=0)
        return train, np.array(y), None, test, np.array(truth)
    train, y = load_text(name, data)
    test, truth = load_text(name, data, "test")
    try:
        more = load_text(name, data, "unlabeled")[0]
    except DataNotFoundError:
        more = None
    return train, np.array(y), more, test, np.array(truth)


def compare(name: str, data: str | None, labels: int, draws: int) -> list[dict[str, Any]]:
    train, y, more, test, truth = load(name, data)
    runs: dict[str, list[dict[str, float]]] = {method: [] for method in METHODS}
    for draw in range(draws):
        order = np.random.RandomState(draw).permutation(len(y))
        texts = [train[i] for i in order[:labels]]
        others = [train[i] for i in order[labels:]] if more is None else more
        own = y[order[:labels]].astype(object)
        for method, make in METHODS.items():
            begun = time.perf_counter()
            without = make(draw).fit(texts, own).score(test, truth)
            between = time.perf_counter()
            targets = np.concatenate([own, np.full(len(others), None)])
            accuracy = make(draw).fit(texts + others, targets).score(test, truth)
            seconds = {"without_seconds": between - begun, "seconds": time.perf_counter() - between}
            runs[method].append({"without": without, "accuracy": accuracy} | seconds)
    return [{"data": name, "method": method, "runs": found} for method, found in runs.items()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", help="folder of the data sets (default: DISCEM_DATA)")
    parser.add_argument("--sets", nargs="+", default=NAMES, metavar="SET")
    parser.add_argument("--labels", type=int, default=200, help="labelled documents (default 200)")
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="docstrings, 60 labels, one draw")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write every number to this file")
    options = parser.parse_args()
    names, labels, draws = options.sets, options.labels, options.draws
    if options.quick:
        names, labels, draws = ["docstrings"], 60, 1
    print(f"{labels} labels, {draws} draws; accuracy in %, ± standard deviation over draws")
    print(f"{'data':<12} {'method':<26} {'without':>12} {'with':>12} {'gain':>12} {'with, s':>9}")
    results = []
    for name in names:
        try:
            found = compare(name, options.data, labels, draws)
        except DataNotFoundError as error:
            print(f"{name:<12} not run: {error}")
            continue
        for result in found:
            results.append(result)
            a, b = (np.array([r[key] for r in result["runs"]]) for key in ("without", "accuracy"))
            figures = [f"{100 * v.mean():5.1f} ± {100 * v.std():3.1f}" for v in (a, b, b - a)]
            seconds = np.mean([run["seconds"] for run in result["runs"]])
            print(
                f"{name:<12} {result['method']:<26}",
                *(f"{text:>12}" for text in figures),
                f"{seconds:9.1f}",
                flush=True,
            )
    if options.json:
        content = {"versions": versions(), "labels": labels, "results": results}
        write_json(options.json, content)


if __name__ == "__main__":
    main()
