"""How long a default fit of numbers takes beside logistic regression, and how good it then is.

Generated tables have class means of spread .35, class-dependent variances and columns that are
mixed by I + .3 N; Adult is read from `--data DIR` (or DISCEM_DATA), `tabular/adult-train.csv.gz`,
and made into numbers by one column a level. Logistic regression has its columns scaled. Methods
take turns within each repeat; log-loss and accuracy are of rows that were not trained on (of Adult
and digits, a fifth).

    python benchmarks/tabular_speed.py
    python benchmarks/tabular_speed.py --large --data DIR --repeat 5 --json tabular-speed.json
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from harness import log_loss, seconds_of, versions, write_json
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

import discem

Table = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]  # X, X_test, y, y_test


def generated(n: int, d: int, K: int) -> Table:
    """Rows of overlapping classes, and as many again up to 20 000 to test on."""
    rng = np.random.default_rng(0)
    means, deviations = 0.35 * rng.normal(size=(K, d)), np.exp(0.3 * rng.normal(size=(K, d)))
    mixing = np.eye(d) + 0.3 * rng.normal(size=(d, d))
    y = rng.integers(K, size=n + min(n, 20_000))
    X = (means[y] + deviations[y] * rng.normal(size=(len(y), d))) @ mixing
    return X[:n], X[n:], y[:n], y[n:]


def digits() -> Table:
    X, y = load_digits(return_X_y=True)
    return tuple(train_test_split(X, y, test_size=0.2, stratify=y, random_state=0))


def adult(folder: str | None) -> Table:
    import pandas as pd

    path = Path(folder or os.environ.get("DISCEM_DATA", ".")) / "tabular" / "adult-train.csv.gz"
    table = pd.read_csv(path)
    y = table.pop("class").to_numpy()
    X = pd.get_dummies(table, dtype=float).to_numpy()
    return tuple(train_test_split(X, y, test_size=0.2, stratify=y, random_state=0))


def compare(X, X_test, y, y_test, repeat: int) -> dict[str, dict[str, Any]]:
    """Seconds, log-loss and accuracy of both methods."""
    methods = {
        "LogisticRegression, scaled": lambda: make_pipeline(
            StandardScaler(), LogisticRegression(max_iter=1000)
        ),
        "discem GaussianNB": lambda: discem.GaussianNB(random_state=0),
    }
    found: dict[str, dict[str, Any]] = {name: {"seconds": []} for name in methods}
    for _ in range(repeat):
        for name, make in methods.items():
            model = make()
            found[name]["seconds"].append(seconds_of(model.fit, X, y))
            found[name]["model"] = model
    for figures in found.values():
        model = figures.pop("model")
        figures["log_loss"] = log_loss(y_test, model.predict_proba(X_test), model.classes_)
        figures["accuracy"] = float(model.score(X_test, y_test))
        figures["epochs"] = int(getattr(model, "n_iter_", 0)) or None
    return found


def main() -> None:
    """Measure, print, and write JSON on request."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", metavar="DIR", help="folder of data sets (default: DISCEM_DATA)")
    parser.add_argument("--large", action="store_true", help="also 200 000 rows, 50 columns")
    parser.add_argument("--repeat", type=int, default=3, help="repeats of each (default 3)")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write every number to this file")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    tables: dict[str, Callable[[], Table]] = {
        "digits": digits,
        "20 000 x 30, 2 classes": lambda: generated(20_000, 30, 2),
        "Adult, one column a level": lambda: adult(options.data),
    }
    if options.large:
        tables["200 000 x 50, 7 classes"] = lambda: generated(200_000, 50, 7)
    print(", ".join(f"{name} {value}" for name, value in versions().items()))
    results = {}
    for name, load in tables.items():
        try:
            table = load()
        except (FileNotFoundError, ImportError) as reason:
            print(f"{name} skipped: {reason}", file=sys.stderr)
            continue
        results[name] = compare(*table, options.repeat)
        base = median(next(iter(results[name].values()))["seconds"])
        print(f"\n{name}\n{'':<30}{'median, ms':>12}{'ratio':>8}{'log-loss':>10}{'accuracy':>10}")
        for method, figures in results[name].items():
            seconds = median(figures["seconds"])
            line = f"{method:<30}{1e3 * seconds:12.1f}{seconds / base:8.2f}"
            line += f"{figures['log_loss']:10.4f}{figures['accuracy']:10.4f}"
            print(line + (f"  ({figures['epochs']} epochs)" if figures["epochs"] else ""))
    if options.json:
        write_json(options.json, {"versions": versions(), "tables": results})


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
