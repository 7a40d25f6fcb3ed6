"""What to ask next: how many cells it takes until a model is sure, by the order of questions.

A model is trained on two thirds of a table. Of rows that it has not seen no cell is known at first.
One is asked for after the other, until p(y | x) of a class is above .95 or nothing is left to ask.
`next_cell` is the order of the model, row by row; `fixed` that of the mutual information of each
column with the class, the same for all rows; `random` one of its own for each row. A cell that the
table lacks is asked for in vain, which counts. The model is told that a missing cell means nothing,
since here it has not been asked for yet. Printed are the mean number of cells asked for, the
share of rows in which the model became sure, and its accuracy when it stopped.

    python benchmarks/questions.py --data DIR
    python benchmarks/questions.py --sets wine --rows 20
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from harness import versions
from table_sets import BUNDLED, bundled, files, read
from threadpoolctl import threadpool_limits

import discem

SURE, MOST = 0.95, 3000  # p(y | x); rows to train on
Order = Callable[[dict[str, Any], set[str]], str | None]  # from a row, and what was asked in vain


def in_turn(names: list[str]) -> Order:
    """Ask for columns in a fixed order."""

    def order(row: dict[str, Any], vain: set[str]) -> str | None:
        return next((name for name in names if name not in row and name not in vain), None)

    return order


def orders(
    model: Any, names: list[str], rng: np.random.Generator
) -> dict[str, Callable[[], Order]]:
    """For each way to ask, what makes the order for a new row."""
    gains = model.expected_gains({})
    by_information = sorted(gains, key=gains.__getitem__, reverse=True)

    def by_model(row: dict[str, Any], vain: set[str]) -> str | None:
        return model.next_cell(row, costs=dict.fromkeys(vain, np.inf))

    return {
        "next_cell": lambda: by_model,
        "fixed": lambda: in_turn(by_information),
        "random": lambda: in_turn([str(name) for name in rng.permutation(names)]),
    }


def ask(model: Any, row: pd.Series, order: Order) -> tuple[int, float, Any]:
    """How many cells were asked for, how sure the model is then, and of which class."""
    known: dict[str, Any] = {}
    vain: set[str] = set()
    while True:
        p = model.predict_proba([known])[0]
        name = order(known, vain) if p.max() <= SURE else None
        if name is None:
            return len(known) + len(vain), p.max(), model.classes_[p.argmax()]
        if pd.isna(row[name]):
            vain.add(name)
        else:
            known[name] = row[name]


def judge(name: str, X: pd.DataFrame, y: np.ndarray, n_rows: int, seed: int) -> Iterator[str]:
    rng = np.random.default_rng(seed)
    mixed = rng.permutation(len(X))
    cut = 2 * len(X) // 3
    own, rest = mixed[:cut][:MOST], mixed[cut:][:n_rows]
    model = discem.TableClassifier(missing="ignore", random_state=seed).fit(X.iloc[own], y[own])
    names = [n for n, family in model.families_.items() if not family.startswith("ignored")]
    mean = {}
    for order, begin in orders(model, names, rng).items():
        found = [ask(model, X.iloc[row], begin()) for row in rest]
        asked, sure = np.array([n for n, _, _ in found]), np.array([p for _, p, _ in found])
        right = np.array([label for *_, label in found]) == y[rest]
        mean[order] = asked.mean()
        figures = f"{mean[order]:8.2f}{(sure > SURE).mean():8.2f}{right.mean():10.3f}"
        yield f"{name:<12}{seed:>5}{len(names):>9}  {order:<10}{figures}"
    ratio = mean["next_cell"] / mean["random"]
    yield f"{name:<12}{seed:>5}{len(names):>9}  next_cell / random {ratio:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, default=os.environ.get("DISCEM_DATA", "."))
    parser.add_argument("--sets", nargs="+", default=["mushroom", "annealing"])
    parser.add_argument("--rows", type=int, default=150, help="to ask about (default 150)")
    parser.add_argument("--seeds", type=int, default=2, help="cuttings (default 2)")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print(", ".join(f"{name} {value}" for name, value in versions().items()))
    heads = f"{'asked':>8}{'sure':>8}{'accuracy':>10}"
    print(f"{'table':<12}{'seed':>5}{'columns':>9}  {'order':<10}{heads}")
    with threadpool_limits(1):
        for name in options.sets:
            table = bundled(name) if name in BUNDLED else read(name, files(options.data)[name])
            for seed in range(options.seeds):
                for line in judge(name, *table, options.rows, seed):
                    print(line, flush=True)


if __name__ == "__main__":
    main()
