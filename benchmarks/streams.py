"""Streams: what a call of `partial_fit` with one row costs, and what the order of rows does.

Documents are made up, of 60 words out of a vocabulary of 50 000. The first table has the time of a
call early and late in a stream, and the most memory that a call took on top of the model. The
second has the accuracy after a stream of 3000 rows of five classes whose labels come in runs.

    python benchmarks/streams.py --json streams.json
    python benchmarks/streams.py --calls 20000           a long stream
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from harness import versions, write_json

from discem import (
    GaussianNB,
    MixtureClassifier,
    MultinomialNB,
    TableClassifier,
    TextClassifier,
    TopicClassifier,
)

WORDS, LENGTH, CLASSES, KNOWN = 50_000, 60, 5, 2000
RUNS = (1, 3, 10, 30, 100, 3000)


def documents(rng: np.random.Generator) -> tuple[sp.csr_matrix, list[str], np.ndarray]:
    """Counts, the same as text, and labels."""
    columns = np.stack([rng.choice(WORDS, LENGTH, replace=False) for _ in range(KNOWN)])
    indptr = np.arange(0, columns.size + 1, LENGTH)
    counts = sp.csr_matrix((np.ones(columns.size), columns.ravel(), indptr), (KNOWN, WORDS))
    texts = [" ".join(f"w{j}" for j in row) for row in columns]
    return counts, texts, rng.integers(CLASSES, size=KNOWN)


def cost(model: Any, X: Any, y: np.ndarray, calls: int) -> dict[str, float]:
    """Microseconds of a call in the first and the last quarter, and kB that calls needed."""
    model.partial_fit(X, y)
    seconds = np.empty(calls)
    for call in range(calls):
        i = call % KNOWN
        begun = time.perf_counter()
        model.partial_fit(X[i : i + 1], y[i : i + 1])
        seconds[call] = time.perf_counter() - begun
    tracemalloc.start()
    for i in range(50):
        model.partial_fit(X[i : i + 1], y[i : i + 1])
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    early, late = seconds[: calls // 4], seconds[-calls // 4 :]
    return {"early": 1e6 * np.median(early), "late": 1e6 * np.median(late), "kB": most / 1e3}


def in_runs(y: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """An order of rows in which labels come in runs of this size."""
    runs = []
    for k in np.unique(y):
        own = rng.permutation(np.flatnonzero(y == k))
        runs += [own[first : first + size] for first in range(0, len(own), size)]
    return np.concatenate([runs[j] for j in rng.permutation(len(runs))])


def accuracy(model: Any, X: np.ndarray, y: np.ndarray, size: int) -> float:
    """On the second half of the rows, after a stream of the first half in runs."""
    half = len(y) // 2
    order = in_runs(y[:half], size, np.random.default_rng(0))
    for part in np.array_split(order, 60):
        model.partial_fit(X[part], y[part])
    return float(model.score(X[half:], y[half:]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--json")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    counts, texts, y = documents(rng)
    numbers = rng.normal(size=(KNOWN, 20)) + y[:, None]
    cases: dict[str, tuple[Any, Any]] = {
        "MultinomialNB": (MultinomialNB(), counts),
        "MultinomialNB, averaged": (MultinomialNB(average=True), counts),
        "TextClassifier": (TextClassifier(), texts),
        "TextClassifier, hinge": (TextClassifier(loss="hinge"), texts),
        "TextClassifier, hashed": (TextClassifier(n_features=2**18), texts),
        "TopicClassifier": (TopicClassifier(random_state=0), counts),
        "MixtureClassifier": (MixtureClassifier(random_state=0), counts),
        "GaussianNB": (GaussianNB(), numbers),
        "TableClassifier": (TableClassifier(random_state=0), pd.DataFrame(numbers)),
    }
    print(f"{'one row at a time':26s}{'early, us':>10s}{'late, us':>10s}{'kB':>8s}")
    costs = {}
    for name, (model, X) in cases.items():
        figures = costs[name] = cost(model, X, y, args.calls)
        print(f"{name:26s}" + "{early:10.0f}{late:10.0f}{kB:8.0f}".format(**figures), flush=True)
    y = rng.integers(CLASSES, size=6000)
    numbers = rng.normal(1.2 * rng.normal(size=(CLASSES, 8))[y])
    rates = 0.12 * rng.dirichlet(np.full(600, 0.15), CLASSES) + 0.88 * rng.dirichlet(np.ones(600))
    bags = np.stack([rng.multinomial(40, p) for p in rates[y]]).astype(float)
    models: dict[str, tuple[Callable[[], Any], np.ndarray]] = {
        "GaussianNB": (GaussianNB, numbers),
        "GaussianNB, nll": (lambda: GaussianNB(loss="nll"), numbers),
        "MultinomialNB": (MultinomialNB, bags),
        "MultinomialNB, nll": (lambda: MultinomialNB(loss="nll"), bags),
    }
    print(f"\n{'accuracy by length of runs':26s}" + "".join(f"{size:8d}" for size in RUNS))
    orders = {}
    for name, (make, X) in models.items():
        orders[name] = {size: accuracy(make(), X, y, size) for size in RUNS}
        print(f"{name:26s}" + "".join(f"{a:8.3f}" for a in orders[name].values()), flush=True)
    if args.json:
        write_json(args.json, {"versions": versions(), "costs": costs, "orders": orders})


if __name__ == "__main__":
    main()
