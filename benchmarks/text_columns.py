"""Text columns of tables: the other columns alone, the text alone, and both in one joint.

Each row is a document of the training part of a text set, with made-up columns beside it: a number
and a category that tell something of the class, and the length of the document, which it tells
itself. A share of the texts is removed. Rows to train on and to test on are drawn from that part.

    python benchmarks/text_columns.py --data DIR --json text_columns.json
    python benchmarks/text_columns.py --quick                     docstrings, one draw
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from harness import log_loss, versions, write_json
from laboratory import load_text
from sklearn.compose import make_column_transformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from discem import TableClassifier, TextClassifier
from discem.datasets import docstrings

NAMES = ("amazon14", "imdb", "r8")
SIZES = (200, 500, 2000)
TELLS = {"weak": 0.15, "middling": 0.6, "strong": 1.5}  # standard deviations between two classes
METHODS = ("table", "text", "both", "LR on tf-idf and columns")
MISSING, TESTED = 0.2, 2000  # share of texts, and rows


def made_up(texts: list[str], labels: np.ndarray, tells: float, seed: int) -> pd.DataFrame:
    """A table with a column of texts."""
    rng = np.random.default_rng(seed)
    codes = np.unique(labels, return_inverse=True)[1]
    likely = rng.random(len(codes)) < tells / (1.0 + tells)
    gone = rng.random(len(codes)) < MISSING
    return pd.DataFrame(
        {
            "number": (tells * codes + rng.normal(size=len(codes))).round(3),
            "kind": np.where(likely, codes, rng.integers(0, codes.max() + 1, len(codes))),
            "length": [len(text.split()) for text in texts],
            "text": [None if no else text for text, no in zip(texts, gone, strict=True)],
        }
    ).astype({"kind": str})


def fitted(method: str, X: pd.DataFrame, y: np.ndarray, seed: int) -> Any:
    """A model, and what it is asked of rows."""
    if method == "LR on tf-idf and columns":
        columns = make_column_transformer(
            (StandardScaler(), ["number", "length"]),
            (OneHotEncoder(handle_unknown="ignore"), ["kind"]),
            (TfidfVectorizer(sublinear_tf=True), "text"),
        )
        model: Any = make_pipeline(columns, LogisticRegression(max_iter=1000))
        model.fit(X.fillna({"text": ""}), y)
        return model.classes_, lambda rows: model.predict_proba(rows.fillna({"text": ""}))
    if method == "text":
        there = X["text"].notna()
        words = TextClassifier(random_state=seed).fit(X["text"][there].tolist(), y[there])
        return words.classes_, lambda rows: words.predict_proba(rows["text"].fillna("").tolist())
    families = {"text": "text" if method == "both" else "ignored"}
    table = TableClassifier(families=families, density=False, random_state=seed).fit(X, y)
    return table.classes_, table.predict_proba


def figures(method: str, train: tuple, test: tuple, seed: int) -> dict[str, float]:
    """What a method achieves, and its seconds of this process."""
    begun = time.process_time()
    classes, ask = fitted(method, *train, seed)
    found = ask(test[0])
    right = classes[found.argmax(axis=1)] == test[1]
    return {
        "accuracy": float(right.mean()),
        "log_loss": float(log_loss(test[1], found, classes)),
        "seconds": time.process_time() - begun,
    }


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder of the data sets; also DISCEM_DATA")
    parser.add_argument("--sets", nargs="+", default=NAMES)
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.quick:
        options.sets, options.sizes, options.draws = ["docstrings"], [200], 1
    results: list[dict[str, Any]] = []
    for name in options.sets:
        if options.quick:
            texts, labels, *_ = docstrings(max_per_library=200)
        else:
            texts, labels = load_text(name, options.data, "train")
        labels = np.array(labels, dtype=object)
        for size in options.sizes:
            for tells in TELLS:
                print(f"\n{name}, {size} rows, {tells} columns: accuracy / log-loss, seconds")
                for method in METHODS:
                    own = []
                    for seed in range(options.draws):
                        rows = np.random.default_rng(seed).permutation(len(texts))
                        rows = rows[: size + TESTED]
                        y = labels[rows]
                        X = made_up([texts[row] for row in rows], y, TELLS[tells], seed)
                        train, test = (X[:size], y[:size]), (X[size:], y[size:])
                        own.append(figures(method, train, test, seed))
                        results.append(
                            {"set": name, "rows": size, "columns": tells, "method": method}
                            | {"draw": seed}
                            | own[-1]
                        )
                    accuracy, loss, seconds = (
                        np.mean([each[key] for each in own])
                        for key in ("accuracy", "log_loss", "seconds")
                    )
                    print(f"  {method:<25} {accuracy:.3f} / {loss:.3f}  {seconds:6.1f}", flush=True)
    if options.json:
        write_json(options.json, {"results": results, "versions": versions()})


if __name__ == "__main__":
    main()
