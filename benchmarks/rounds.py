"""What rounds on the workers of dask cost: measured, put into a model, and extrapolated.

The seconds of a round of W workers, one part each, whose state has S bytes, are

    rows of the round x words a row x classes x tau / W  +  a + d W + S (b + c log2 W)

`tau` is what one word costs for one class, `a` what a round costs in any case, `d` what a part adds
(a task, and its share of those that average), `b` what a byte of the state costs there and back,
and `c` what each doubling of the workers adds to that: states are sent on, and averaged, in a tree.
How many rounds an epoch has is what `Threads.rounds` says: many short ones at first, one later.

The constants are found on this machine, where bytes do not leave it; tables for more workers add
two moves of every byte for each doubling over a network of 10 Gbit/s.
"""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from math import log2
from types import SimpleNamespace
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
from scale import LENGTH, zipf

import discem
from discem.engines import Rule, Session, Shards, Threads, threads
from discem.engines.dask import DEAR
from discem.engines.threads import _size
from discem.io.partitions import Lazy
from discem.losses import NCLL
from discem.projections import Interior

CLASSES, VOCABULARY = 20, 50_000
TASKS = 4 / 3  # of a part: its steps, and its share of the tree of averages
NUMBERS = 2  # of a state, for each word and class: it, and the average of such
PARTS = 4  # partitions of each worker
NETWORK = 1.25e9  # bytes a second, of 10 Gbit/s
MANY = [1, 10, 100, 1000]  # workers
LARGE = [  # documents, classes, words
    (1_000_000, 20, 50_000),
    (1_000_000_000, 20, 50_000),
    (1_000_000_000, 100, 1_000_000),
]


@contextmanager
def cluster(workers: int) -> Iterator[Any]:
    """A client of so many workers of one thread."""
    import distributed

    options = {"threads_per_worker": 1, "dashboard_address": None, "silence_logs": logging.ERROR}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "(?s).*Port", UserWarning)  # of a dashboard
        made = distributed.LocalCluster(n_workers=workers, **options)
    with made, distributed.Client(made) as client:
        yield client


def documents(n: int, classes: int, vocabulary: int, parts: int) -> tuple[Lazy, Lazy]:
    """Synthetic documents and their labels, drawn by workers, a part at a time."""
    import dask

    shift = np.random.default_rng(0).integers(vocabulary, size=classes)
    sizes = np.diff(n * np.arange(parts + 1) // parts)
    draw, pick = dask.delayed(zipf, pure=False), dask.delayed(_pick, pure=False)
    drawn = [draw(int(size), classes, vocabulary, seed, shift) for seed, size in enumerate(sizes)]
    return Lazy([pick(each, 0) for each in drawn]), Lazy([pick(each, 1) for each in drawn])


def _pick(pair: tuple[Any, Any], place: int) -> Any:
    return pair[place]


@contextmanager
def clocked() -> Iterator[list[tuple[float, int]]]:
    """Seconds of the rounds of all fits inside, and the bytes of their states."""
    rounds, before = [], Shards.round

    def timed(self: Shards, state: Any, *args: Any) -> Any:
        begun = time.perf_counter()
        end = before(self, state, *args)
        rounds.append((time.perf_counter() - begun, 8 * _size(state)))
        return end

    with mock.patch.object(Shards, "round", timed):
        yield rounds


def fit(client: Any, X: Any, y: Any, epochs: int, parts: int | None = None) -> Any:
    engine = discem.Dask(client, parts)
    model = discem.MultinomialNB(
        engine=engine, prior=discem.Dirichlet(), max_iter=epochs, tol=None, random_state=0
    )
    return model.fit(X, y)


# --- measured -------------------------------------------------------------------------------------


def measure_fit(client: Any, n: int, epochs: int, workers: int) -> dict[str, Any]:
    """Seconds of the epochs of documents that stay on workers."""
    fit(client, *documents(2000, CLASSES, 500, workers), epochs=1)  # workers import discem
    X, y = documents(n, CLASSES, VOCABULARY, PARTS * workers)
    begun = time.perf_counter()
    with clocked() as rounds:
        model = fit(client, X, y, epochs)
    seconds = [record["seconds"] for record in model.history_]
    return {
        "workers": workers,
        "parts": model.history_[-1].get("parts", 1),
        "documents": n,
        "epochs": seconds,
        "epoch": min(seconds[1:]),
        "rounds": len(rounds),
        "in_rounds": sum(each for each, _ in rounds),
        "all": time.perf_counter() - begun,
        "accuracy": model.history_[-1]["accuracy"],
    }


def measure_overhead(client: Any, workers: int, sizes: list[int], repeat: int) -> list[Any]:
    """Seconds of rounds that have next to nothing to do, by the bytes of the state.

    Rows are few, and there is a part for each worker, so a round is what it costs to have one.
    """
    found = []
    for words in sizes:
        apart = mock.patch.object(Threads, "parts", lambda self, *_: self.n_jobs)
        with clocked() as rounds, apart:
            X, y = documents(400, CLASSES, words, workers)
            fit(client, X, y, repeat + 1)
        seconds = min(each for each, _ in rounds[1:])
        found.append({"workers": workers, "bytes": rounds[0][1], "seconds": seconds})
    return found


def measure_task(client: Any, n: int = 200, repeat: int = 3) -> float:
    """Seconds of a task that does nothing, among many."""
    session, seconds = Session(client, discem.Dask(client)), []
    for _ in range(repeat):
        begun = time.perf_counter()
        session.gather([session.submit(int) for _ in range(n)])
        seconds.append((time.perf_counter() - begun) / n)
    return min(seconds)


# --- the model ------------------------------------------------------------------------------------


class Cost(NamedTuple):
    """The constants of a round, see the head of this file."""

    tau: float
    a: float
    d: float
    b: float
    c: float

    def round(self, workers: int, state: float, network: float = 0.0) -> float:
        """What a round costs beside the steps of its rows; `network` is seconds a byte."""
        hops = log2(workers)
        bytes_moved = self.b + 2 * network + (self.c + 2 * network) * hops
        return self.a + self.d * workers + state * bytes_moved

    def steps(self, rows: float, classes: int, words: float, workers: int) -> float:
        """The steps of so many rows."""
        return rows * words * classes * self.tau / workers


def find(
    fits: list[dict[str, Any]], overhead: list[dict[str, Any]], task: float, words: float
) -> Cost:
    """The constants that explain what was measured."""
    slopes, d = {}, TASKS * task
    for workers in sorted({each["workers"] for each in overhead}):
        own = [e for e in overhead if e["workers"] == workers]
        line = np.polyfit([e["bytes"] for e in own], [e["seconds"] for e in own], 1)
        slopes[workers] = max(float(line[0]), 0.0)
    first, last = min(slopes), max(slopes)
    least = min(overhead, key=lambda e: (e["workers"], e["bytes"]))
    a = max(least["seconds"] - d * first, 0.0)
    c = max(slopes[last] - slopes[first], 0.0) / log2(last / first) if last > first else 0.0
    cost = Cost(0.0, a, d, slopes[first], c)
    alone = min(fits, key=lambda each: each["workers"])
    state, workers = 8.0 * NUMBERS * CLASSES * VOCABULARY, alone["workers"]
    steps = max(alone["epoch"] - cost.round(workers, state), 0.0)
    return cost._replace(tau=steps * workers / (alone["documents"] * words * CLASSES))


@cache
def _any_state() -> Any:
    model = discem.MultinomialNB(loss="nll", prior=discem.Dirichlet())
    return model.fit(np.eye(2), [0, 1]).learner_.state


def rounds_of(n: int, classes: int, vocabulary: int, words: float, parts: int, epoch: int) -> int:
    """How many rounds an epoch has, by the rule of the engine."""
    if parts == 1:
        return 1
    state = _any_state()
    rule, data = Rule(NCLL(), Interior(), lambda t: t, float(n), 1), SimpleNamespace(rows=None)
    size, visits = NUMBERS * classes * vocabulary, words * classes
    with (
        mock.patch.object(threads, "_size", lambda _: size),
        mock.patch.object(threads, "_visits_per_row", lambda *_: visits),
    ):
        begins = Threads(parts).rounds(state, rule, (epoch - 1) * n, data, n, parts, 0, DEAR)
    return len(begins) - 1


def predicted(cost: Cost, n: int, classes: int, vocabulary: int, words: float, workers: int,
              epoch: int, network: float = 0.0) -> tuple[float, int]:  # fmt: skip
    """Seconds of an epoch, and its rounds."""
    rounds = rounds_of(n, classes, vocabulary, words, workers, epoch)
    state = 8.0 * NUMBERS * classes * vocabulary
    steps = cost.steps(n, classes, words, workers)
    return steps + rounds * cost.round(workers, state, network), rounds


# --- printed --------------------------------------------------------------------------------------


def main(workers: list[int], n: int, epochs: int, sizes: list[int], repeat: int) -> dict[str, Any]:
    """Measure, print, and return all numbers."""
    sample = zipf(2000, CLASSES, VOCABULARY)[0]
    words = sample.nnz / sample.shape[0]
    fits, overhead, tasks = [], [], list[float]()
    print(f"\n{n:,} documents of about {LENGTH} words ({words:.0f} stored), {CLASSES} classes")
    print("workers  parts  first epoch s  later epoch s  times one  rounds  fit s")
    for count in workers:
        with cluster(count) as client:
            fits.append(measure_fit(client, n, epochs, count))
            overhead += measure_overhead(client, count, sizes, repeat)
            tasks.append(measure_task(client))
        one, now = fits[0], fits[-1]
        now["gain"], now["gain_all"] = one["epoch"] / now["epoch"], one["all"] / now["all"]
        print(
            f"{count:7} {now['parts']:6} {now['epochs'][0]:14.2f} {now['epoch']:14.2f} "
            f"{now['gain']:10.2f} {now['rounds']:7} {now['all']:6.1f}",
            flush=True,
        )
    print("\na round that has nothing to do\nworkers  state MB        s")
    for each in overhead:
        print(f"{each['workers']:7} {each['bytes'] / 1e6:9.2f} {each['seconds']:8.4f}")
    cost = find(fits, overhead, min(tasks), words)
    print(
        f"\ntau {1e9 * cost.tau:.2f} ns a word and class; a round {cost.a:.3f} s, "
        f"{1e3 * cost.d:.1f} ms a part, {1e9 * cost.b:.1f} s a GB of state, "
        f"{1e9 * cost.c:.1f} s more for each doubling of the workers"
    )
    checked, table = check(cost, fits, words), extrapolate(cost, words)
    return {
        "fits": fits,
        "overhead": overhead,
        "task": min(tasks),
        "words": words,
        "cost": cost._asdict(),
        "checked": checked,
        "extrapolated": table,
    }


def check(cost: Cost, fits: list[dict[str, Any]], words: float) -> list[dict[str, Any]]:
    """Hold the model against the epochs that were measured."""
    print("\nworkers  epoch  rounds  predicted s  measured s")
    found = []
    for each in fits:
        for epoch, seconds in enumerate(each["epochs"], 1):
            given = (each["documents"], CLASSES, VOCABULARY, words, each["parts"])
            guess, rounds = predicted(cost, *given, epoch)
            found.append(
                {"workers": each["workers"], "epoch": epoch, "rounds": rounds}
                | {"predicted": guess, "measured": seconds}
            )
            print(f"{each['workers']:7} {epoch:6} {rounds:7} {guess:12.2f} {seconds:11.2f}")
    return found


def extrapolate(cost: Cost, words: float) -> list[dict[str, Any]]:
    """Tables for more workers and documents than there are here."""
    print("\nextrapolated, over 10 Gbit/s: seconds of the first epoch, of the sixth, and of one")
    print("worker's time in it that is steps")
    print("   documents  classes     words  workers  rounds    first s    sixth s   steps")
    found = []
    for n, classes, vocabulary in LARGE:
        for workers in MANY:
            given = (cost, n, classes, vocabulary, words, workers)
            first, rounds = predicted(*given, 1, 1 / NETWORK)
            later, _ = predicted(*given, 6, 1 / NETWORK)
            share = cost.steps(n, classes, words, workers) / later
            found.append(
                {"documents": n, "classes": classes, "words": vocabulary, "workers": workers}
                | {"rounds": rounds, "first": first, "later": later, "share": share}
            )
            print(
                f"{n:12,} {classes:8} {vocabulary:9,} {workers:8} {rounds:7} {first:10.1f} "
                f"{later:10.1f} {share:7.0%}"
            )
    return found
