"""What threads gain, and what averaging parts costs in accuracy.

1. accuracy: default fits on text in as many parts as are asked for, beside one thread; the
   difference in points and the ratio of log-losses, means over seeds. `parts` is in how many the
   rows of an epoch are learnt, of those that `n_jobs` allows: small ones are learnt together.
2. speed: an epoch on several threads, beside as many one-thread fits at the same time in processes
   of their own. That is what the machine can give; the last column is the share of it that threads
   reach.
3. `--large`: the same for a million synthetic documents.

    python benchmarks/engines.py --data DIR
    python benchmarks/engines.py --speed --jobs 2
    python benchmarks/engines.py --large --jobs 8
"""

from __future__ import annotations

import argparse
import multiprocessing
import warnings
from statistics import mean, median
from typing import Any

import numpy as np
from harness import log_loss, versions, write_json
from scale import zipf
from sklearn.feature_extraction.text import CountVectorizer

import discem
from discem.datasets import DataNotFoundError, load_text
from discem.engines import Threads

SETS = ["20ng", "r52", "r8", "amazon14"]
EPOCHS = 5
EVERYTHING = r"(?u)\b\w\w+\b|\S+"


# --- accuracy -------------------------------------------------------------------------------------


def accuracies(name: str, data: str | None, jobs: list[int], seeds: int) -> list[dict[str, Any]]:
    """One row for each estimator and number of threads."""
    texts, y = load_text(name, data)
    fresh, own = load_text(name, data, "test")
    count = CountVectorizer(token_pattern=EVERYTHING, dtype=np.float64)
    inputs = {
        discem.MultinomialNB: (count.fit_transform(texts), count.transform(fresh)),
        discem.TextClassifier: (texts, fresh),
    }
    rows = []
    for kind, (X, X_fresh) in inputs.items():
        base: dict[str, Any] = {}
        for n_jobs in jobs:
            figures, parts = [], 1
            for seed in range(seeds):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    model = kind(n_jobs=n_jobs, random_state=seed).fit(X, y)
                p = model.predict_proba(X_fresh)
                figures.append((model.score(X_fresh, own), log_loss(own, p, model.classes_)))
                parts = parts_of(model, X, n_jobs)
            row = {
                "set": name,
                "estimator": kind.__name__,
                "n_jobs": n_jobs,
                "parts": parts,
                "accuracy": mean(a for a, _ in figures),
                "log_loss": mean(b for _, b in figures),
            }
            base = base or row
            row["points"] = 100 * (row["accuracy"] - base["accuracy"])
            row["ratio"] = row["log_loss"] / base["log_loss"]
            rows.append(row)
            print(
                f"{name:10} {kind.__name__:15} {n_jobs:6} {parts:6} {row['accuracy']:9.4f} "
                f"{row['points']:+7.2f} {row['log_loss']:9.4f} {row['ratio']:6.3f}",
                flush=True,
            )
    return rows


def parts_of(model: Any, X: Any, n_jobs: int) -> int:
    """In how many parts an epoch was learnt."""
    if isinstance(model, discem.TextClassifier):
        model, X = model.model_, model._rows(X)
    rows = model._rows(X)
    return Threads(n_jobs).parts(model.learner_.state, rows, rows.n_rows)


# --- speed ----------------------------------------------------------------------------------------


def counts(data: str | None) -> tuple[Any, np.ndarray]:
    """The words of 20 Newsgroups."""
    texts, y = load_text("20ng", data)
    X = CountVectorizer(token_pattern=r"\S+", dtype=np.float64).fit_transform(texts)
    return X, np.unique(y, return_inverse=True)[1]


def table(_: str | None) -> tuple[Any, np.ndarray]:
    rng = np.random.default_rng(0)
    y = rng.integers(7, size=200_000)
    return rng.normal(size=(len(y), 50)) + 0.3 * rng.normal(size=(7, 50))[y], y


def million(_: str | None) -> tuple[Any, np.ndarray]:
    return zipf(1_000_000, 20, 50_000)


def tiny(_: str | None) -> tuple[Any, np.ndarray]:
    X, y = table(None)
    return X[:2000], y[:2000]


WORK = {
    "20ng, counts": (counts, discem.MultinomialNB),
    "200 000 x 50 x 7": (table, discem.GaussianNB),
    "a million documents": (million, discem.MultinomialNB),
    "2 000 x 50 x 7": (tiny, discem.GaussianNB),
}


def epoch(name: str, data: str | None, n_jobs: int, barrier: Any = None) -> float:
    """Seconds of an epoch, of several the median; the first, which compiles, is not counted."""
    make, kind = WORK[name]
    X, y = make(data)
    options = {"loss": "ncll", "tol": None, "random_state": 0, "n_jobs": n_jobs}
    if kind is discem.MultinomialNB:
        options["prior"] = discem.Dirichlet()
    kind(**options | {"max_iter": 1}).fit(X, y)
    if barrier is not None:
        barrier.wait()
    history = kind(**options | {"max_iter": EPOCHS}).fit(X, y).history_
    return median(record["seconds"] for record in history[1:])


def side_by_side(name: str, data: str | None, n: int) -> float:
    """The mean epoch of n fits at the same time, each on a thread and in a process of its own."""
    context = multiprocessing.get_context("spawn")
    barrier, queue = context.Barrier(n), context.Queue()
    work = [context.Process(target=_report, args=(queue, name, data, barrier)) for _ in range(n)]
    for each in work:
        each.start()
    seconds = [queue.get(timeout=3600) for _ in work]
    for each in work:
        each.join()
    return mean(seconds)


def _report(queue: Any, name: str, data: str | None, barrier: Any) -> None:
    queue.put(epoch(name, data, 1, barrier))


def speeds(names: list[str], data: str | None, jobs: int, repeat: int) -> list[dict[str, Any]]:
    rows = []
    for name in names:
        alone, beside, threads = [], [], []
        for _ in range(repeat):
            alone.append(side_by_side(name, data, 1))
            beside.append(side_by_side(name, data, jobs))
            threads.append(epoch(name, data, jobs))
        possible, reached = jobs * min(alone) / min(beside), min(alone) / min(threads)
        row = {"work": name, "n_jobs": jobs, "seconds": min(alone), "possible": possible}
        rows.append(row | {"reached": reached, "share": reached / possible})
        print(
            f"{name:22} {jobs:6} {1e3 * min(alone):9.0f} {possible:9.2f} {reached:9.2f} "
            f"{reached / possible:7.0%}",
            flush=True,
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", help="folder of data sets, by default DISCEM_DATA")
    parser.add_argument("--sets", nargs="*", default=SETS)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=2, help="threads to measure the speed of")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--speed", action="store_true", help="no accuracy")
    parser.add_argument("--accuracy", action="store_true", help="no speed")
    parser.add_argument("--large", action="store_true", help="a million documents, and no more")
    parser.add_argument("--quick", action="store_true", help="see whether it runs")
    parser.add_argument("--json", help="where to write all numbers")
    options = parser.parse_args()
    found: dict[str, Any] = {"accuracy": [], "speed": []}
    if not (options.speed or options.large or options.quick):
        print("set        estimator       n_jobs  parts  accuracy  points  log-loss  ratio")
        for name in options.sets:
            try:
                found["accuracy"] += accuracies(name, options.data, [1, 8, 32], options.seeds)
            except DataNotFoundError as reason:
                print(f"{name} skipped: {reason}")
    if not options.accuracy:
        names = ["20ng, counts", "200 000 x 50 x 7"]
        names = ["a million documents"] if options.large else names
        names = ["2 000 x 50 x 7"] if options.quick else names
        print("\nepoch                  n_jobs   alone ms  possible   reached   share")
        for name in names:
            try:
                repeat = 1 if options.large or options.quick else options.repeat
                found["speed"] += speeds([name], options.data, options.jobs, repeat)
            except DataNotFoundError as reason:
                print(f"{name} skipped: {reason}")
    if options.json:
        write_json(options.json, found | {"versions": versions()})


if __name__ == "__main__":
    main()
