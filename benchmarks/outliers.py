"""Outliers: digits that a model has never seen, and how many fresh rows it flags.

`unseen`: half of the rows of digits, without one digit, are trained on; AUROC of `score_samples`
between that digit and the others of the other half. `flagged`: two thirds of a table are trained
on, and `outliers` is asked for 1 and 5 % of the rest, which are as usual; in a stream they are
learnt in batches of 250. All cuttings together: a share of 1 % of a hundred rows is one row.
`cost`: CPU seconds that a default fit takes longer with a density, in trials of its choice.

    python benchmarks/outliers.py --data DIR
    python benchmarks/outliers.py --what flagged --sets adult --cuts 2
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np
from harness import versions
from sklearn.metrics import roc_auc_score
from table_sets import BUNDLED, Table, bundled, files, read
from threadpoolctl import threadpool_limits

import discem
from discem.exceptions import InputError

RATES = (0.01, 0.05)
FEWEST, MOST, BATCH = 300, 4000, 250  # rows of a table; of more, some; of a batch
ONE: dict[str, Any] = {  # nothing is chosen, for the density would be the same
    "n_components": 1, "loss": "nll", "hide": 0.0, "missing": "ignore", "prior_strength": 1.0,
    "temperature": 1.0, "covariance": "diag", "whole_numbers": "levels", "average": 1,
}  # fmt: skip


def unseen(cuts: int) -> Iterator[str]:
    X, y = bundled("digits")
    yield f"{'digit':<26}{'AUROC':>8}{'spread':>8}"
    means = []
    for digit in np.unique(y):
        found = []
        for seed in range(cuts):
            order = np.random.default_rng(seed).permutation(len(X))
            train, test = np.array_split(order, 2)
            train = train[y[train] != digit]
            model = discem.TableClassifier(**ONE, random_state=seed)
            strange = -model.fit(X.iloc[train], y[train]).score_samples(X.iloc[test])
            found.append(roc_auc_score(y[test] == digit, strange))
        means.append(np.mean(found))
        yield f"{digit:<26}{means[-1]:8.3f}{np.std(found):8.3f}"
    yield f"{'mean':<26}{np.mean(means):8.3f}"


def flagged(tables: dict[str, Table], cuts: int) -> Iterator[str]:
    heads = "".join(f"{f'{way} {r:.0%}':>11}" for way in ("fit", "stream") for r in RATES)
    yield f"{'table':<26}{'rows':>6}{heads}"
    every = []
    for name, (X, y) in tables.items():
        shares = []
        for seed in range(cuts):
            order = np.random.default_rng(seed).permutation(len(X))[:MOST]
            train, test = np.split(order, [2 * len(order) // 3])
            known = X.iloc[train], y[train], X.iloc[test]
            shares.append([share for way in (fitted, streamed) for share in way(*known, seed)])
        every.append(np.mean(shares, axis=0))
        yield f"{name:<26}{len(test):6}" + "".join(f"{100 * s:9.2f} %" for s in every[-1])
    yield f"{'mean':<32}" + "".join(f"{100 * s:9.2f} %" for s in np.nanmean(every, axis=0))


def fitted(X: Any, y: np.ndarray, fresh: Any, seed: int) -> list[float]:
    model = discem.TableClassifier(**ONE, random_state=seed).fit(X, y)
    return [model.outliers(fresh, rate).mean() for rate in RATES]


def streamed(X: Any, y: np.ndarray, fresh: Any, seed: int) -> list[float]:
    """NaN where the first batch misleads: a column that had two values gets a third one."""
    model = discem.TableClassifier(random_state=seed)
    try:
        for first in range(0, len(y), BATCH):
            model.partial_fit(X.iloc[first : first + BATCH], y[first : first + BATCH])
    except InputError:
        return [np.nan for _ in RATES]
    return [model.outliers(fresh, rate).mean() for rate in RATES]


def cost(tables: dict[str, Table]) -> Iterator[str]:
    yield f"{'table':<26}{'rows':>6}{'fit, s':>9}{'density, s':>12}{'trials':>8}{'in trials':>11}"
    ratios = []
    for name, (X, y) in tables.items():
        order = np.random.default_rng(0).permutation(len(X))[:MOST]
        seconds = {}
        for density in (True, False):
            model = discem.TableClassifier(density=density, random_state=0)
            start = time.process_time()
            model.fit(X.iloc[order], y[order])
            seconds[density] = time.process_time() - start
        trial = seconds[False] / len(model.choice_)
        ratios.append((seconds[True] - seconds[False]) / trial)
        figures = f"{seconds[True]:9.2f}{ratios[-1] * trial:12.2f}{len(model.choice_):8}"
        yield f"{name:<26}{len(order):6}{figures}{ratios[-1]:11.2f}"
    yield f"{'mean':<61}{np.mean(ratios):11.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, default=os.environ.get("DISCEM_DATA", "."))
    parser.add_argument("--what", nargs="+", default=["unseen", "flagged", "cost"])
    parser.add_argument("--sets", metavar="PATTERN", default="*", help="names of tables")
    parser.add_argument("--cuts", type=int, default=5, help="cuttings (default 5)")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    found = {name: read(name, path) for name, path in files(options.data).items()}
    found |= {name: bundled(name) for name in BUNDLED}
    tables = {
        name: table
        for name, table in found.items()
        if fnmatch(name, options.sets) and len(table.X) >= FEWEST
    }
    print(", ".join(f"{name} {value}" for name, value in versions().items()))
    with threadpool_limits(1):
        for what in options.what:
            lines = {
                "unseen": lambda: unseen(options.cuts),
                "flagged": lambda: flagged(tables, options.cuts),
                "cost": lambda: cost(tables),
            }[what]()
            for line in lines:
                print(line, flush=True)


if __name__ == "__main__":
    main()
