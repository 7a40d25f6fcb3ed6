"""Words and vectors of documents: alone, and in one joint, for few labels and for many.

Each draw takes some labelled documents of the training part of a set; accuracy, log-loss and
expected calibration error are those of the official test part, means over draws. The methods that
get vectors alone are scikit-learn's. Vectors are made once, which is timed apart: by an encoder
that ships its weights, or read from a file with them (`vectors/minilm-NAME.npz`: vectors A and B of
the training and test documents on the lines i and j).

    python benchmarks/vectors.py --data DIR --json vectors.json --picture docs/text-vectors
    python benchmarks/vectors.py --quick           docstrings; hashed pieces of words and SVD
"""

from __future__ import annotations

import argparse
import time
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from harness import log_loss, versions, write_json
from laboratory import key, load_text, panels
from sklearn.decomposition import TruncatedSVD
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from discem import TextClassifier
from discem.datasets import docstrings
from discem.io.encoders import encode

NAMES = ("amazon14", "imdb", "20ng")
SIZES = (50, 100, 200, 500, 1000, 2000, 5000)
METHODS = ("words", "vectors, LR", "vectors, LDA", "vectors, LinearSVC", "words and vectors")


class Documents(NamedTuple):
    """Documents of a set, their labels, and their vectors."""

    texts: list[str]
    labels: np.ndarray
    vectors: np.ndarray
    seconds: float  # of encoding

    def take(self, rows: np.ndarray) -> Documents:
        """Some of them."""
        texts = [self.texts[row] for row in rows]
        return Documents(texts, self.labels[rows], self.vectors[rows], self.seconds)


def read(name: str, data: Path | None, encoder: str) -> tuple[Documents, Documents]:
    """The training and the test part of a set."""
    parts = [load_text(name, data, part) for part in ("train", "test")]
    pairs = [(texts, np.array(labels, dtype=object)) for texts, labels in parts]
    if encoder == "minilm-file":
        with np.load(Path(data or "") / "vectors" / f"minilm-{name}.npz") as stored:
            rows, vectors = (stored["i"], stored["j"]), (stored["A"], stored["B"])
        return tuple(
            Documents([texts[row] for row in own], labels[own], each.astype(np.float64), 0.0)
            for (texts, labels), own, each in zip(pairs, rows, vectors, strict=True)
        )
    return tuple(encoded(texts, labels, encoder) for texts, labels in pairs)


def encoded(texts: list[str], labels: np.ndarray, encoder: Any) -> Documents:
    """Documents with the vectors that an encoder makes, and the seconds that it takes."""
    begun = time.process_time()
    vectors = encode(encoder, texts)
    return Documents(texts, labels, vectors, time.process_time() - begun)


def small() -> tuple[Documents, Documents]:
    """Docstrings, with vectors by scikit-learn alone."""
    texts, labels = docstrings(max_per_library=200)
    hashing = HashingVectorizer(analyzer="char_wb", ngram_range=(3, 5), n_features=2**14)
    pipeline = make_pipeline(hashing, TruncatedSVD(64, random_state=0)).fit(texts)
    whole = encoded(texts, np.array(labels, dtype=object), pipeline)
    rows = np.arange(len(texts))
    train, test = train_test_split(rows, stratify=labels, random_state=0)
    return whole.take(train), whole.take(test)


def probabilities(method: str, train: Documents, test: Documents, seed: int) -> Any:
    """Classes, and their probabilities in the test part, or labels where there are none."""
    if not method.startswith("vectors"):
        pairs = (zip(each.texts, each.vectors, strict=True) for each in (train, test))
        table = dict(chain.from_iterable(pairs))

        def look_up(texts: list[str]) -> np.ndarray:
            nothing = np.zeros(train.vectors.shape[1])  # of the probes
            return np.stack([table.get(text, nothing) for text in texts])

        model = TextClassifier(look_up if "and" in method else None, random_state=seed)
        model.fit(train.texts, train.labels)
        return model.classes_, model.predict_proba(test.texts)
    peer: Any = {
        "vectors, LR": LogisticRegression(C=4.0 * train.vectors.var(axis=0).sum() ** -1),
        "vectors, LDA": LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"),
        "vectors, LinearSVC": LinearSVC(),
    }[method]
    peer.fit(train.vectors, train.labels)
    if not hasattr(peer, "predict_proba"):
        return peer.classes_, peer.predict(test.vectors)
    return peer.classes_, peer.predict_proba(test.vectors)


def figures(method: str, train: Documents, test: Documents, seed: int) -> dict[str, float]:
    """What a method achieves, and its seconds of this process."""
    begun = time.process_time()
    classes, found = probabilities(method, train, test, seed)
    seconds = time.process_time() - begun
    if found.ndim == 1:
        return {"accuracy": float(np.mean(found == test.labels)), "seconds": seconds}
    right = classes[found.argmax(axis=1)] == test.labels
    return {
        "accuracy": float(right.mean()),
        "log_loss": float(log_loss(test.labels, found, classes)),
        "calibration_error": calibration_error(found.max(axis=1), right),
        "seconds": seconds,
    }


def calibration_error(confidence: np.ndarray, right: np.ndarray) -> float:
    """The expected one, by ten groups of equally many documents."""
    groups = np.array_split(np.argsort(confidence), 10)
    gaps = [abs(confidence[g].mean() - right[g].mean()) * len(g) for g in groups]
    return float(np.sum(gaps) / len(right))


def draw(train: Documents, size: int, seed: int) -> Documents:
    """Some labelled documents, at random."""
    return train.take(np.random.default_rng(seed).permutation(len(train.texts))[:size])


def plot(results: list[dict[str, Any]]) -> Any:
    """Accuracy against labels, a panel for each set."""
    from discem.report.plots import COLOURS, style

    sets = list(dict.fromkeys(each["set"] for each in results))
    with style():
        figure, axes = panels(len(sets), height=3.2)
        for panel, name in zip(axes[0], sets, strict=True):
            for place, method in enumerate(reversed(METHODS)):
                own = [r for r in results if r["set"] == name and r["method"] == method]
                sizes = sorted({r["labels"] for r in own})
                means = [np.mean([r["accuracy"] for r in own if r["labels"] == n]) for n in sizes]
                width = 2.6 if place == 0 else 1.5
                panel.plot(sizes, means, "o-", color=COLOURS[place], linewidth=width, label=method)
            panel.set(title=name, xlabel="labels", ylabel="accuracy", xscale="log")
        key(figure, axes[0, 0], columns=3)
    return figure


def main() -> None:
    """Measure, print, write and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder of the data sets; also DISCEM_DATA")
    parser.add_argument("--sets", nargs="+", default=NAMES)
    parser.add_argument("--encoder", default="wordllama", help="or minilm-file: stored vectors")
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--picture", type=Path, help="without the ending")
    options = parser.parse_args()
    if options.quick:
        options.sets, options.sizes, options.draws = ["docstrings"], [50, 200], 1
    results: list[dict[str, Any]] = []
    for name in options.sets:
        train, test = small() if options.quick else read(name, options.data, options.encoder)
        sizes = f"{len(train.texts)} and {len(test.texts)} documents"
        seconds = train.seconds + test.seconds
        d = test.vectors.shape[1]
        print(f"\n{name}: {sizes}, {d} numbers each, encoded in {seconds:.1f} s")
        for size in [n for n in options.sizes if n <= len(train.texts)]:
            for method in METHODS:
                own = []
                for seed in range(options.draws):
                    found = figures(method, draw(train, size, seed), test, seed)
                    own.append(found)
                    told = {"set": name, "labels": size, "method": method, "draw": seed}
                    results.append(told | found)
                told = "  ".join(
                    f"{figure} {np.mean([each[figure] for each in own]):.3f}" for figure in own[0]
                )
                spread = np.std([each["accuracy"] for each in own])
                print(f"{size:6} {method:20} {told}  (accuracy +- {spread:.3f})", flush=True)
            if options.json:
                content = {"versions": versions("wordllama"), "results": results}
                write_json(options.json, content)
    if options.picture:
        plot(results).savefig(f"{options.picture}.png", dpi=150)


if __name__ == "__main__":
    main()
