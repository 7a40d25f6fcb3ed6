"""Whether cost grows as stored words times classes, and memory as data plus state.

Synthetic documents by Zipf's law: half of the words of a document come from one list for all, half
from that of its class. Each size is a fresh process on one core. Two series:

1. documents: up to a million, of 20 classes;
2. classes: up to a thousand, over 50 000 documents.

Seconds are those of an epoch (median of the later ones) of MultinomialNB; `ns` is the time for one
stored word and class: constant if cost is linear. Memory is the peak of the whole fit, data
included, and its ratio to the arrays that nothing can do without: the matrix, the labels and one
number per word and class. The target is 1.3.

    python benchmarks/scale.py
    python benchmarks/scale.py --loss hinge --json scale.json
    python benchmarks/scale.py --quick
"""

from __future__ import annotations

import argparse
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import scipy.sparse as sp
from harness import FailedError, clock, in_process, peak_memory, reset_peak, versions, write_json

import discem

VOCABULARY, LENGTH, EPOCHS = 50_000, 80, 3
SERIES = {  # (documents, classes)
    "documents": [(62_500, 20), (125_000, 20), (250_000, 20), (500_000, 20), (1_000_000, 20)],
    "classes": [(50_000, 10), (50_000, 30), (50_000, 100), (50_000, 300), (50_000, 1000)],
}
QUICK = {"documents": [(500, 5), (2000, 5)], "classes": [(500, 20)]}
CHUNK = 5000  # documents that are drawn at a time


def zipf(
    documents: int,
    classes: int,
    vocabulary: int,
    seed: int = 0,
    shift: np.ndarray | None = None,
    length: int = LENGTH,
) -> tuple[Any, np.ndarray]:
    """A CSR matrix of counts (float64, int32 indices), filled in place, and labels.

    `shift` is where in the vocabulary the list of each class begins; by default it is drawn.
    """
    rng = np.random.default_rng(seed)
    y = rng.integers(classes, size=documents)
    law = np.cumsum(1.0 / np.arange(1, vocabulary + 1))
    law /= law[-1]
    shift = rng.integers(vocabulary, size=classes) if shift is None else shift
    lengths = rng.poisson(length, size=documents)
    room = int(
        lengths.sum()
    )  # more than is stored, as words repeat; what is not used costs nothing
    values, indices = np.empty(room), np.empty(room, dtype=np.int32)
    indptr = np.zeros(documents + 1, dtype=np.int32 if room < 2**31 else np.int64)
    filled = 0
    for first in range(0, documents, CHUNK):
        some = slice(first, min(first + CHUNK, documents))
        document = np.repeat(np.arange(some.stop - first), lengths[some])
        word = np.searchsorted(law, rng.uniform(size=len(document)))
        own = np.repeat(shift[y[some]], lengths[some]) * rng.integers(2, size=len(document))
        cells, count = np.unique(
            document * vocabulary + (word + own) % vocabulary, return_counts=True
        )
        stored = slice(filled, filled + len(cells))
        values[stored], indices[stored] = count, cells % vocabulary
        sizes = np.bincount(cells // vocabulary, minlength=some.stop - first)
        indptr[first + 1 : some.stop + 1] = filled + np.cumsum(sizes)
        filled = stored.stop
    data = (values[:filled], indices[:filled], indptr)
    return sp.csr_matrix(data, shape=(documents, vocabulary), copy=False), y


def measure(documents: int, classes: int, vocabulary: int, loss: str) -> dict[str, Any]:
    """Seconds and bytes of one size."""
    empty = reset_peak()
    (X, y), drawing = clock(zipf, documents, classes, vocabulary)
    model = discem.MultinomialNB(loss=loss, max_iter=EPOCHS, tol=None, random_state=0)
    reset_peak()  # what drawing needed beyond the data does not count
    model, fitting = clock(model.fit, X, y)
    peak = peak_memory() - empty
    data = sum(array.nbytes for array in (X.data, X.indices, X.indptr, y))
    state = vocabulary * classes * 8
    epoch = median(record["seconds"] for record in model.history_[1:])
    return {
        "documents": documents,
        "classes": classes,
        "stored_words": int(X.nnz),
        "epoch": epoch,
        "fit": fitting,
        "drawing": drawing,
        "ns": 1e9 * epoch / (X.nnz * classes),
        "accuracy": model.history_[-1]["accuracy"],
        "data": data / 1e6,
        "state": state / 1e6,
        "peak": peak / 1e6,
        "memory_ratio": peak / (data + state),
    }


HEAD = (
    f"{'documents':>10}{'classes':>9}{'words, M':>10}{'epoch, s':>10}{'ns':>7}{'fit, s':>9}"
    f"{'data, MB':>10}{'state, MB':>11}{'peak, MB':>10}{'ratio':>7}"
)


def row(result: dict[str, Any]) -> str:
    """One line of the table."""
    return (
        f"{result['documents']:>10}{result['classes']:>9}{result['stored_words'] / 1e6:10.2f}"
        f"{result['epoch']:10.3f}{result['ns']:7.2f}{result['fit']:9.2f}"
        f"{result['data']:10.0f}{result['state']:11.0f}{result['peak']:10.0f}"
        f"{result['memory_ratio']:7.2f}"
    )


def growth(results: list[dict[str, Any]]) -> float:
    """The power of words times classes that seconds grow with."""
    work = [result["stored_words"] * result["classes"] for result in results]
    seconds = [result["epoch"] for result in results]
    return float(np.polyfit(np.log(work), np.log(seconds), 1)[0])


def main() -> None:
    """Measure, print, and write JSON on request."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--loss", default="ncll", help="ncll (default), hinge or nll")
    parser.add_argument("--limit", type=float, default=600, help="seconds of a size (default 600)")
    parser.add_argument("--quick", action="store_true", help="small sizes: a trial")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write every number to this file")
    options = parser.parse_args()
    series, vocabulary = (QUICK, 2000) if options.quick else (SERIES, VOCABULARY)
    found = versions()
    print(", ".join(f"{name} {value}" for name, value in found.items()))
    content: dict[str, Any] = {"versions": found, "loss": options.loss, "vocabulary": vocabulary}
    for name, sizes in series.items():
        print(f"\nMore {name}: {options.loss}, vocabulary {vocabulary}\n{HEAD}")
        results = []
        for size in sizes:
            try:
                found_here = in_process(
                    measure, *size, vocabulary, options.loss, limit=options.limit
                )
            except FailedError as reason:
                print(f"{size[0]:>10}{size[1]:>9}  {reason}")
                continue
            results.append(found_here)
            print(row(found_here), flush=True)
        content[name] = {"sizes": results}
        if len(results) > 1:
            content[name]["growth"] = growth(results)
            print(f"seconds grow as (stored words x classes)^{growth(results):.2f}")
    if options.json:
        write_json(options.json, content)


if __name__ == "__main__":
    main()
