"""What threads and workers gain, and what averaging parts costs in accuracy.

1. accuracy: `MultinomialNB(loss="ncll")` and `TextClassifier()` on text, in as many parts as are
   asked for, beside one thread; the difference in points and the ratio of log-losses, means over
   seeds. `parts` is in how many the rows of an epoch are learnt, of the most that are allowed:
   small ones are learnt together, but for `--real`. With `--dask` the parts are those of workers.
   `--passes 1 2` also trains parts twice as long as was chosen on one thread.
2. speed: an epoch on several threads, beside as many one-thread fits at the same time in processes
   of their own. That is what the machine can give; the last column is the share of it that threads
   reach.
3. `--large`: the same for a million synthetic documents.
4. `--ways`: the same documents in each way there is: one thread, threads, workers, PyTorch, a
   stream; the seconds of a pass and of all, those of the processor, and the accuracy on fresh
   documents. "foretold" is twice what a pass over half of the documents takes of the processor.
5. `--dask`: the same documents on workers of a local cluster of dask, what a round costs, and what
   follows for more workers: see rounds.py.

    python benchmarks/engines.py --data DIR
    python benchmarks/engines.py --accuracy --dask --sets r52 20ng --seeds 1 --data DIR
    python benchmarks/engines.py --accuracy --real --sets r52 20ng --seeds 1 --passes 1 2 --data DIR
    python benchmarks/engines.py --speed --jobs 2 --data DIR
    python benchmarks/engines.py --large --jobs 1 2 4 8 16 --json large.json
    python benchmarks/engines.py --ways --documents 200000 --jobs 2
    python benchmarks/engines.py --dask --workers 1 2 --json dask.json
"""

from __future__ import annotations

import argparse
import multiprocessing
import tempfile
import time
import warnings
from contextlib import ExitStack
from functools import partial
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from statistics import mean, median
from typing import Any

import numpy as np
import rounds
import scipy.sparse as sp
from harness import clock, log_loss, versions, write_json
from laboratory import DataNotFoundError, load_text
from scale import zipf
from sklearn.feature_extraction.text import CountVectorizer

import discem
from discem.engines import Threads

SETS = ["20ng", "r52", "r8", "amazon14"]
ESTIMATORS = ["MultinomialNB", "TextClassifier"]
EPOCHS, BATCH, CLASSES, WRONG = 5, 10_000, 20, 0.2
ARRAYS = ("data", "indices", "indptr", "labels")
EVERYTHING = r"(?u)\b\w\w+\b|\S+"


# --- accuracy -------------------------------------------------------------------------------------


def accuracies(
    name: str,
    data: str | None,
    parts: list[int],
    seeds: int,
    estimators: list[str],
    passes: list[float],
    client: Any = None,
) -> list[dict[str, Any]]:
    """One row for each estimator, number of parts, and times the passes of one thread."""
    texts, y = load_text(name, data)
    fresh, own = load_text(name, data, "test")
    count = CountVectorizer(token_pattern=EVERYTHING, dtype=np.float64)
    # NLL, which it may choose, is the same in any number of parts
    discriminative = partial(discem.MultinomialNB, loss="ncll")
    inputs = {
        "MultinomialNB": (discriminative, count.fit_transform(texts), count.transform(fresh)),
        "TextClassifier": (discem.TextClassifier, texts, fresh),
    }
    rows = []
    for estimator in estimators:
        kind, X, X_fresh = inputs[estimator]
        base: dict[str, Any] = {}
        alone: list[Any] = []  # models of one thread, by seed
        for most, times in [(1, 1), *product(parts, passes)]:
            figures, learnt = [], 1
            for seed in range(seeds):
                options: dict[str, Any] = {"n_jobs": most}
                if client is not None and most > 1:
                    options = {"engine": discem.Dask(client, most)}
                if times != 1:
                    options |= longer(alone[seed], times)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    model = kind(**{"random_state": seed} | options).fit(X, y)
                if most == 1:
                    alone.append(model)
                elif times != 1:
                    model.temperature_ = alone[seed].temperature_
                p = model.predict_proba(X_fresh)
                figures.append((model.score(X_fresh, own), log_loss(own, p, model.classes_)))
                learnt = model.history_[-1].get("parts") or parts_of(model, X, most)
            row = {
                "set": name,
                "estimator": estimator,
                "most": most,
                "parts": learnt,
                "passes": times,
                "accuracy": mean(a for a, _ in figures),
                "log_loss": mean(b for _, b in figures),
            }
            base = base or row
            row["points"] = 100 * (row["accuracy"] - base["accuracy"])
            row["ratio"] = row["log_loss"] / base["log_loss"]
            rows.append(row)
            print(
                f"{name:10} {estimator:15} {most:6} {learnt:6} {times:6g} {row['accuracy']:9.4f} "
                f"{row['points']:+7.2f} {row['log_loss']:9.4f} {row['ratio']:6.3f}",
                flush=True,
            )
    return rows


def longer(model: Any, times: float) -> dict[str, Any]:
    """Options that train as a model was trained, but for so many times its passes."""
    options = {"max_iter": round(times * len(model.history_))}
    if isinstance(model, discem.MultinomialNB):  # nothing is chosen anew
        options |= {name: model.chosen_[name] for name in ("loss", "prior", "step")}
        options |= {"tol": None}
    return options


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


def million(folder: str | None) -> tuple[Any, np.ndarray]:
    """What `keep` has written to a folder, for all processes the same."""
    arrays = [np.load(Path(folder or "", f"{name}.npy")) for name in ARRAYS]
    return sp.csr_matrix(tuple(arrays[:3]), shape=(len(arrays[2]) - 1, 50_000)), arrays[3]


def keep(folder: str, documents: int) -> None:
    X, y = zipf(documents, 20, 50_000)
    for name, array in zip(ARRAYS, (X.data, X.indices, X.indptr, y), strict=True):
        np.save(Path(folder, f"{name}.npy"), array)


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
    """Seconds of an epoch, of several the median; the first, which fills caches, is not counted."""
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


def speeds(name: str, data: str | None, jobs: list[int], repeat: int) -> list[dict[str, Any]]:
    """One row for each number of threads."""
    rows, alone = [], []
    for n_jobs in jobs:
        beside, threads = [], []
        for _ in range(repeat):
            if n_jobs > 1 or not alone:
                alone.append(side_by_side(name, data, 1))
            beside.append(alone[-1] if n_jobs == 1 else side_by_side(name, data, n_jobs))
            threads.append(alone[-1] if n_jobs == 1 else epoch(name, data, n_jobs))
        possible, reached = n_jobs * min(alone) / min(beside), min(alone) / min(threads)
        row = {"work": name, "n_jobs": n_jobs, "seconds": min(threads), "alone": min(alone)}
        row |= {"possible": possible, "reached": reached, "share": reached / possible}
        rows.append(row)
        print(
            f"{name:22} {n_jobs:6} {1e3 * min(alone):9.0f} {1e3 * min(threads):9.0f} "
            f"{possible:9.2f} {reached:9.2f} {reached / possible:7.0%}",
            flush=True,
        )
    return rows


def mislabelled(n: int, classes: int, *args: Any, **options: Any) -> tuple[Any, np.ndarray]:
    """Documents of which some have a wrong label: else they soon have nothing to teach."""
    X, y = zipf(n, classes, *args, **options)
    rng = np.random.default_rng(n)
    wrong = rng.random(n) < WRONG
    y[wrong] = rng.integers(classes, size=wrong.sum())
    return X, y


def ways(n: int, jobs: int, epochs: int) -> list[dict[str, Any]]:
    """One row for each way to train on the same documents."""
    shift = np.random.default_rng(0).integers(50_000, size=CLASSES)
    X, y = mislabelled(n, CLASSES, 50_000, 1, shift)
    fresh, own = mislabelled(max(n // 6, 1000), CLASSES, 50_000, 2, shift)
    print(f"\n{n:,} documents of {X.nnz / n:.0f} stored words, {CLASSES} classes")
    rows = []
    with rounds.cluster(jobs) as client:
        plans: dict[str, dict[str, Any]] = {
            "one thread": {},
            f"n_jobs={jobs}": {"n_jobs": jobs},
            f"{jobs} workers of dask": {"engine": discem.Dask(client)},
            "partial_fit, one pass": {},
            "PyTorch, no GPU": {"device": discem.Device("cpu")},
        }
        if find_spec("torch") is None:
            del plans["PyTorch, no GPU"]
        titles = f"{'a pass s':>11}{'all s':>9}{'CPU of a pass':>15}{'foretold':>10}"
        print(f"{'way':22}{titles}  accuracy  log-loss")
        for name, options in plans.items():
            once = name.startswith("partial_fit")
            half, row = (
                way(client, options, once, epochs, X[:size], y[:size]) for size in (n // 2, n)
            )
            model = row.pop("model")
            row["foretold"] = 2.0 * half["cpu"]
            row["accuracy"] = model.score(fresh, own)
            row["log_loss"] = log_loss(own, model.predict_proba(fresh), model.classes_)
            rows.append({"way": name} | row)
            print(
                f"{name:22} {row['pass']:10.2f} {row['all']:8.2f} {row['cpu']:14.2f} "
                f"{row['foretold']:9.2f} {row['accuracy']:9.4f} {row['log_loss']:9.4f}",
                flush=True,
            )
    return rows


def way(
    client: Any, options: dict[str, Any], once: bool, epochs: int, X: Any, y: np.ndarray
) -> dict[str, Any]:
    """What a pass and all passes of one way to train cost, and the model."""
    options = {"prior": discem.Dirichlet(), "tol": None, "random_state": 0} | options
    make, n = partial(discem.MultinomialNB, **options), len(y)

    def train(epochs: int, n: int) -> tuple[Any, float, float]:
        """The model, seconds, and those of the processor."""
        model, before = make(max_iter=epochs), processor(client)
        _, seconds = clock(stream if once else fit, model, X[:n], y[:n])
        return model, seconds, processor(client) - before

    train(1, 2000)  # workers import discem
    first = 0.0 if once else train(1, n)[2]  # what comes before the second pass
    model, seconds, spent = train(epochs, n)
    passes, later = model.history_, 1 if once else epochs - 1
    return {
        "pass": seconds if once else min(record["seconds"] for record in passes[1:]),
        "all": seconds,
        "cpu": (spent - first) / later,
        "model": model,
    }


def fit(model: Any, X: Any, y: np.ndarray) -> Any:
    """Train as the options of a model say."""
    return model.fit(X, y)


def stream(model: Any, X: Any, y: np.ndarray) -> Any:
    """Learn rows as they come, once."""
    for first in range(0, len(y), BATCH):
        model.partial_fit(X[first : first + BATCH], y[first : first + BATCH], np.arange(CLASSES))
    return model


def processor(client: Any) -> float:
    """Seconds of the processor so far: of this process, and of all workers."""
    return time.process_time() + sum(client.run(time.process_time).values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", help="folder of data sets, by default DISCEM_DATA")
    parser.add_argument("--sets", nargs="*", default=SETS)
    parser.add_argument("--estimators", nargs="*", default=ESTIMATORS)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument(
        "--passes", type=float, nargs="+", default=[1], help="of parts, times those of one thread"
    )
    parser.add_argument(
        "--jobs", type=int, nargs="+", default=[2], help="threads to measure the speed of"
    )
    parser.add_argument(
        "--workers", type=int, nargs="+", default=[1, 2], help="of dask, to measure the speed of"
    )
    parser.add_argument("--documents", type=int, default=1_000_000, help="of --large and --dask")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--speed", action="store_true", help="no accuracy")
    parser.add_argument("--accuracy", action="store_true", help="no speed")
    parser.add_argument("--large", action="store_true", help="synthetic documents, and no more")
    parser.add_argument("--ways", action="store_true", help="each way to train, once")
    parser.add_argument("--dask", action="store_true", help="workers of dask, not threads")
    parser.add_argument("--real", action="store_true", help="as many parts, however few their rows")
    parser.add_argument("--quick", action="store_true", help="see whether it runs")
    parser.add_argument("--json", help="where to write all numbers")
    options = parser.parse_args()
    if options.real:
        Threads.parts = lambda self, state, rows, n_rows: self.n_jobs  # type: ignore[method-assign]
    found: dict[str, Any] = {}
    asked = (options.speed, options.large, options.quick, options.dask, options.ways)
    if options.accuracy or not any(asked):
        found["accuracy"] = compare(options)
    if options.ways:
        n = 4000 if options.quick else options.documents
        found["ways"] = ways(n, max(options.jobs), 2 if options.quick else 4)
    elif options.dask and not options.accuracy:
        sizes = [1000, 20_000] if options.quick else [1000, 50_000, 250_000]
        n = 4000 if options.quick else options.documents
        found["dask"] = rounds.main(options.workers, n, 3 if options.quick else 6, sizes, 5)
    elif not options.accuracy:
        print("\nepoch                  n_jobs   alone ms        ms  possible   reached   share")
        found["speed"] = run(options)
    if options.json:
        machine = versions("dask")
        machine["machine"] = machine["machine"].removesuffix(", one used")
        write_json(options.json, found | {"versions": machine})


def compare(options: Any) -> list[dict[str, Any]]:
    """Accuracies of all sets that are there."""
    print("set        estimator         most  parts passes  accuracy  points  log-loss  ratio")
    rows, own = [], options.estimators
    with ExitStack() as stack:
        client = stack.enter_context(rounds.cluster(2)) if options.dask else None
        for name in options.sets:
            try:
                rows += accuracies(
                    name, options.data, [8, 32], options.seeds, own, options.passes, client
                )
            except DataNotFoundError as reason:
                print(f"{name} skipped: {reason}")
    return rows


def run(options: Any) -> list[dict[str, Any]]:
    """Speeds of all work that is asked for."""
    if options.quick:
        return speeds("2 000 x 50 x 7", None, options.jobs, 1)
    if options.large:
        with tempfile.TemporaryDirectory() as folder:
            keep(folder, options.documents)
            return speeds("a million documents", folder, options.jobs, 1)
    rows = []
    for name in ("20ng, counts", "200 000 x 50 x 7"):
        try:
            rows += speeds(name, options.data, options.jobs, options.repeat)
        except DataNotFoundError as reason:
            print(f"{name} skipped: {reason}")
    return rows


if __name__ == "__main__":
    main()
