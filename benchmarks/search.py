"""Random tables: whether a default fit is behind what the same model does under NLL.

Counting (`loss="nll"`) is safe: it cannot diverge, and few rows are enough for it. So whatever the
table, training to classify should not end far behind it. The tables are put together at random from
what makes this hard: many classes of few rows, flags that are nearly exact, columns that say
nothing, correlated numbers, heavy tails, outliers of 1e12, missing cells, wrong labels. A model is
behind if its log-loss on fresh rows is larger by more than two standard errors and .02 nats.

    python benchmarks/search.py                     # 100 tables
    python benchmarks/search.py --tables 5          # whether it runs
    python benchmarks/search.py --case 17           # the 18th table, in full
    python benchmarks/search.py --seed 1 --jobs 2   # others
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from harness import clock, in_process, versions, write_json
from threadpoolctl import threadpool_limits

import discem

MODELS: dict[str, type] = {
    name: getattr(discem, name)
    for name in ("TableClassifier", "NaiveBayes", "MixtureClassifier", "GaussianNB")
}
FRESH = 400  # rows to judge by
NATS = 0.02  # that a model may lose, beside the noise
MOST = 30.0  # log-loss of any model: classes are never that certain


class Case(NamedTuple):
    """A table to train on, fresh rows of the same process, and what it is made of."""

    X: pd.DataFrame
    y: np.ndarray
    X_fresh: pd.DataFrame
    y_fresh: np.ndarray
    about: dict[str, Any]


# --- tables ---------------------------------------------------------------------------------------


def normal(y: np.ndarray, K: int, rng: Any) -> np.ndarray:
    return rng.normal(rng.normal(0, 1.5, K)[y], rng.uniform(0.5, 1.5, K)[y])


def flag(y: np.ndarray, K: int, rng: Any) -> np.ndarray:
    """Nearly exact: one in two hundred is wrong."""
    return (rng.integers(2, size=K)[y] ^ (rng.random(len(y)) < 0.005)).astype(float)


def loose_flag(y: np.ndarray, K: int, rng: Any) -> np.ndarray:
    return (rng.random(len(y)) < rng.random(K)[y]).astype(float)


def count(y: np.ndarray, K: int, rng: Any) -> np.ndarray:
    return rng.poisson(np.exp(rng.normal(1.0, 1.0, K))[y]).astype(float)


def amount(y: np.ndarray, K: int, rng: Any) -> np.ndarray:
    """Log-normal, and nothing in every third row."""
    found = np.exp(rng.normal(rng.normal(3.0, 1.0, K)[y], 1.0))
    return np.where(rng.random(len(y)) < 0.3, 0.0, found)


def heavy(y: np.ndarray, K: int, rng: Any) -> np.ndarray:
    """Cauchy."""
    return rng.normal(0, 2, K)[y] + rng.standard_cauchy(len(y))


def outlying(y: np.ndarray, K: int, rng: Any) -> np.ndarray:
    """Normal, but for one row in fifty that is 1e12 away."""
    return normal(y, K, rng) + 1e12 * (rng.random(len(y)) < 0.02)


def nothing(y: np.ndarray, K: int, rng: Any) -> np.ndarray:
    return rng.normal(size=len(y))


def category(y: np.ndarray, K: int, rng: Any) -> np.ndarray:
    levels = int(rng.integers(2, 9))
    chances = rng.dirichlet(np.full(levels, 0.7), size=K).cumsum(axis=1)
    codes = (rng.random((len(y), 1)) > chances[y]).sum(axis=1).clip(max=levels - 1)
    return np.array([f"level {code}" for code in range(levels)], dtype=object)[codes]


KINDS: dict[str, Callable[[np.ndarray, int, Any], np.ndarray]] = {
    make.__name__: make
    for make in (normal, flag, loose_flag, count, amount, heavy, outlying, nothing, category)
}


def draw(number: int, seed: int) -> Case:
    """A table by its number."""
    rng = np.random.default_rng([seed, number])
    K = int(rng.integers(2, 5) if rng.random() < 0.6 else rng.integers(5, 31))
    each = int(rng.choice([3, 5, 10, 30, 100]))
    n = min(each * K, 1500)
    some = rng.choice(list(KINDS), size=rng.integers(1, 4), replace=False)
    kinds = rng.choice(some, size=rng.integers(1, 13))
    y = rng.permutation(np.concatenate([np.arange(n) % K, rng.integers(K, size=FRESH)]))
    columns = {f"{kind} {j}": KINDS[kind](y, K, rng) for j, kind in enumerate(kinds)}
    if (kinds == "normal").sum() > 1 and rng.random() < 0.5:  # they share a cause
        cause = rng.normal(size=len(y))
        for name in columns:
            if name.startswith("normal"):
                columns[name] = columns[name] + 2.0 * cause
    X = pd.DataFrame(columns)
    missing, wrong = rng.choice([0.0, 0.0, 0.1, 0.4]), rng.choice([0.0, 0.0, 0.1])
    X = X.mask(rng.random(X.shape) < missing)
    said = np.where(rng.random(len(y)) < wrong, rng.integers(K, size=len(y)), y)
    about = {"classes": K, "rows": n, "kinds": [str(kind) for kind in kinds]}
    about |= {"missing": float(missing), "wrong": float(wrong)}
    known = np.isin(said[n:], said[:n])
    return Case(X[:n], said[:n], X[n:][known], said[n:][known], about)


# --- models ---------------------------------------------------------------------------------------


def figures(make: type, case: Case) -> dict[str, Any] | None:
    """How a model does beside itself under NLL; None where it cannot read the table."""
    X, fresh = case.X, case.X_fresh
    if make is discem.GaussianNB:
        X, fresh = (each.select_dtypes("number") for each in (X, fresh))
        if not X.shape[1]:
            return None
    losses = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for loss in ("default", "nll"):
            options = {} if loss == "default" else {"loss": loss}
            try:
                model, seconds = clock(make(random_state=0, **options).fit, X, case.y)
                log_p = model.predict_log_proba(fresh)
            except discem.exceptions.DiscemError as error:
                return {"error": str(error)}
            place = np.searchsorted(model.classes_, case.y_fresh)
            losses[loss] = -log_p[np.arange(len(place)), place]
    lost = losses["default"] - losses["nll"]
    noise = 2.0 * float(lost.std() / np.sqrt(len(lost)))
    behind = float(lost.mean())
    found = {name: float(each.mean()) for name, each in losses.items()}
    return found | {
        "behind": behind if not behind <= NATS + noise else 0.0,
        "too large": not found["default"] < MOST,
        "seconds": seconds,
    }


def judge(numbers: list[int], seed: int, models: list[str]) -> list[dict[str, Any]]:
    """What each model does on tables, one after the other."""
    results = []
    with threadpool_limits(1):
        for number in numbers:
            case = draw(number, seed)
            for name in models:
                found = figures(MODELS[name], case)
                if found is not None:
                    results.append({"case": number, "model": name} | case.about | found)
            print(f"case {number} is done", file=sys.stderr, flush=True)
    return results


def judge_side_by_side(
    numbers: list[int], seed: int, models: list[str], jobs: int
) -> list[dict[str, Any]]:
    """The same, in several processes."""
    if jobs == 1:
        return judge(numbers, seed, models)
    with ThreadPoolExecutor(jobs) as threads:
        shares = [
            threads.submit(in_process, judge, numbers[first::jobs], seed, models)
            for first in range(jobs)
        ]
        return [result for share in shares for result in share.result()]


# --- results --------------------------------------------------------------------------------------


def summary(result: dict[str, Any]) -> str:
    """One case in a line."""
    text = f"{result['case']:>5} {result['model']:<18}"
    if "error" in result:
        return text + result["error"]
    text += f"log-loss {result['default']:.3f}, under nll {result['nll']:.3f}; "
    kinds = ", ".join(dict.fromkeys(result["kinds"]))
    text += f"{result['classes']} classes, {result['rows']} rows, {len(result['kinds'])} columns "
    return text + f"({kinds}), missing {result['missing']:g}, wrong {result['wrong']:g}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tables", type=int, default=100, help="random tables (default 100)")
    parser.add_argument("--seed", type=int, default=0, help="of all tables (default 0)")
    parser.add_argument("--case", type=int, metavar="NUMBER", help="one table alone")
    parser.add_argument("--models", nargs="+", choices=[*MODELS], default=[*MODELS])
    parser.add_argument("--jobs", type=int, default=1, help="processes (default 1)")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write every number to this file")
    options = parser.parse_args()
    numbers = [*range(options.tables)] if options.case is None else [options.case]
    found = versions("pandas")
    print(", ".join(f"{name} {value}" for name, value in found.items()))
    results = judge_side_by_side(numbers, options.seed, options.models, options.jobs)
    for name in options.models:
        own = [result for result in results if result["model"] == name]
        good = [result for result in own if "error" not in result]
        behind = sorted((r for r in good if r["behind"]), key=lambda r: -r["behind"])
        largest = max((result["default"] for result in good), default=0.0)
        print(
            f"\n{name}: {len(behind)} of {len(good)} behind NLL, largest log-loss {largest:.2f}, "
            f"{np.mean([r['seconds'] for r in good] or [0.0]):.2f} s a fit"
        )
        shown = own if options.case is not None else behind
        shown = shown + [r for r in own if r.get("too large") and r not in shown]
        for result in shown + [r for r in own if "error" in r and r not in shown]:
            print(summary(result))
    if options.json:
        write_json(options.json, {"versions": found, "seed": options.seed, "results": results})


if __name__ == "__main__":
    main()
