"""What a pass costs, in seconds of one core, and a formula that says it beforehand.

A pass is an epoch of `MultinomialNB` over n documents of m stored words, or a stream of n rows of m
numbers through `GaussianNB`, with K classes:

    seconds = steps s + n m (a + b K) + V K c

Three in ten labels of the documents are wrong, so that no document is told apart and then skipped.
An epoch over a vocabulary of V words ends with a look at the average of the model, all of it; a
stream does not, and V is 0. The constants are found by least squares of relative errors on the
sizes marked "fit", and held against the others, which they have not seen. Seconds are those of the
processor, so that other work on the machine matters little; those of several jobs are shared by so
many cores.

    python benchmarks/cost.py
    python benchmarks/cost.py --repeat 5 --json cost.json
    python benchmarks/cost.py --quick
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from harness import versions, write_json
from scale import zipf
from scipy.optimize import nnls
from threadpoolctl import threadpool_limits

import discem

VOCABULARY, BATCH, EPOCHS = 50_000, 20_000, 4
WRONG = 0.3  # share of the documents that get a label at random
# (n, m, K, jobs): the first ones find the constants
WORDS = [
    (8000, 20, 2, 1),
    (8000, 80, 5, 1),
    (16_000, 20, 50, 1),
    (16_000, 80, 20, 1),
    (8000, 80, 100, 1),
    (8000, 40, 10, 1),
    (32_000, 80, 10, 1),
    (32_000, 40, 20, 1),
    (16_000, 80, 50, 1),
    (32_000, 80, 20, 2),
]
NUMBERS = [
    (100_000, 5, 2, 1),
    (100_000, 50, 2, 1),
    (100_000, 20, 20, 1),
    (200_000, 20, 2, 1),
    (200_000, 50, 7, 1),
    (100_000, 10, 10, 1),
    (50_000, 100, 5, 1),
]
FITTED = {"words": 5, "numbers": 3}  # of these sizes


def words(n: int, m: int, K: int, jobs: int) -> tuple[float, float]:
    """CPU seconds of an epoch, and its steps."""
    X, y = zipf(n, K, VOCABULARY, length=m)
    rng = np.random.default_rng(1)
    y = np.where(rng.random(n) < WRONG, rng.integers(K, size=n), y)

    def cost(epochs: int) -> tuple[float, Any]:
        options = {"max_iter": epochs, "tol": None, "random_state": 0, "n_jobs": jobs}
        model = discem.MultinomialNB(loss="ncll", prior=discem.Dirichlet(), **options)
        begun = time.process_time()
        model.fit(X, y)
        return time.process_time() - begun, model

    short, _ = cost(1)
    whole, model = cost(1 + EPOCHS)
    return (whole - short) / EPOCHS, n / model.learner_.rule.batch


def numbers(n: int, m: int, K: int, _: int) -> tuple[float, float]:
    """CPU seconds of a stream of rows, and its steps."""
    rng = np.random.default_rng(0)
    y = rng.integers(K, size=n + BATCH)
    X = rng.normal(size=(len(y), m)) + 0.3 * rng.normal(size=(K, m))[y]
    model = discem.GaussianNB(random_state=0).partial_fit(X[:BATCH], y[:BATCH])
    begun, steps = time.process_time(), 0.0
    for first in range(BATCH, len(y), BATCH):
        some = slice(first, first + BATCH)
        steps += len(y[some]) / model.learner_.rule.grown(model.learner_.t).batch
        model.partial_fit(X[some], y[some])
    return time.process_time() - begun, steps


def table(
    work: Any, sizes: list[tuple[int, int, int, int]], repeat: int
) -> tuple[list[dict[str, Any]], dict[str, float]]:
    """One row for each size, measured and by the formula; and the constants, in seconds."""
    runs = [[work(*size) for _ in range(repeat)] for size in sizes]
    seconds = np.array([median(cost for cost, _ in run) for run in runs])
    vocabulary = VOCABULARY if work is words else 0
    features = np.array(
        [
            (run[0][1], n * m, n * m * K, vocabulary * K)
            for run, (n, m, K, _) in zip(runs, sizes, strict=True)
        ]
    )
    fitted = FITTED[work.__name__]
    own = slice(0, fitted)
    scale = seconds[own, None]
    constants, _ = nnls(features[own] / scale, np.ones(len(scale)))
    rows = []
    for place, (size, cost, by) in enumerate(
        zip(sizes, seconds, features @ constants, strict=True)
    ):
        row = dict(zip(("n", "m", "K", "jobs"), size, strict=True))
        rows.append(
            row | {"fit": place < fitted, "seconds": cost, "formula": by, "ratio": by / cost}
        )
    return rows, dict(zip(("s", "a", "b", "c"), constants.tolist(), strict=True))


def show(title: str, rows: list[dict[str, Any]], constants: dict[str, float]) -> None:
    told = {"s": (1e6, "us a step"), "a": (1e9, "ns"), "b": (1e9, "ns a class")}
    told["c"] = (1e9, "ns a number of the model")
    found = ", ".join(f"{n} {told[n][0] * v:.3g} {told[n][1]}" for n, v in constants.items())
    print(f"\n{title}: {found}")
    print(f"{'n':>9}{'m':>6}{'K':>6}{'jobs':>6}{'CPU s':>10}{'formula':>10}{'ratio':>8}")
    for row in rows:
        line = f"{row['n']:9}{row['m']:6}{row['K']:6}{row['jobs']:6}{row['seconds']:10.3f}"
        print(line + f"{row['formula']:10.3f}{row['ratio']:8.2f}{'  fit' if row['fit'] else ''}")


def main() -> None:
    """Measure, print, and write JSON on request."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="see whether it runs")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write every number to this file")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    repeat, part = (1, 20) if options.quick else (options.repeat, 1)
    results = {}
    work = {
        "Words, an epoch": (words, WORDS),
        "Numbers, a stream": (numbers, NUMBERS),
    }
    for title, (measure, sizes) in work.items():
        rows, constants = table(
            measure, [(n // part, m, K, jobs) for n, m, K, jobs in sizes], repeat
        )
        show(title, rows, constants)
        results[title] = {"rows": rows, "constants": constants}
    if options.json:
        write_json(options.json, {"versions": versions(), "results": results})


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
