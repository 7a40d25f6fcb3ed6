"""Tables of mixed columns with missing cells: `TableClassifier` beside what people use, by default.

Each table is cut into three stratified folds, twice. A method trains on two of them as they are,
and is tested on the third: as it is, then with 20, 40 and 60 % of its cells removed at random, the
same cells for all methods. Figures are means over folds and seeds, then over tables; a method that
fails on a fold counts as the class frequencies there, and the failure is printed.

What peers achieve is kept in `--cache DIR`, by version and data, and is not computed again. From
Python, a method is any function from a seed to a classifier, and can be entered beside the others:

    import tables
    tables.METHODS["mine"] = lambda seed: MyClassifier(random_state=seed)
    sets = tables.load_sets("data", ["made-*"])
    tables.summarise(tables.judge(["mine", *tables.PEERS], sets), sets)
    records = tables.run("mine", *sets["made-xor"], seed=0)

    python benchmarks/tables.py --data DIR
    python benchmarks/tables.py --sets 'made-*' --methods LR TableClassifier --json tables.json
    python benchmarks/tables.py --sets 'large-*' --folds 1 --seeds 1
    python benchmarks/tables.py --draw 1             # other generated tables of the same kinds
    python benchmarks/tables.py --picture docs/tables-missing       # .png and .svg
    python benchmarks/tables.py --seconds docs/tables-seconds       # means by the time of a fit
    python benchmarks/tables.py --quick
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from fnmatch import fnmatch
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from harness import clock, log_loss, versions, write_json
from scipy.stats import rankdata
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import StratifiedKFold
from table_peers import PEERS
from table_sets import Table, load_sets, made, names_of
from threadpoolctl import threadpool_limits

FOLDS = 3
SHARES = (0.0, 0.2, 0.4, 0.6)  # of the test cells, removed
STREAM = 2718  # of the removed cells: no method draws from the same
SMALL = 1000  # rows of a table for --quick
EDITION = 1  # of the cache: raise it when a peer or the protocol changes
CACHE = Path(__file__).parents[1] / "output" / "tables"
OURS, LOGISTIC = "TableClassifier", "LR"
GROUPS = {
    "real": "tables of files and scikit-learn",
    "made": "generated tables",
    "large": "generated tables of 30 000 rows",
}
PACKAGES = {
    "LightGBM": "lightgbm",
    "XGBoost": "xgboost",
    "CatBoost": "catboost",
    "CatBoost 300, holes": "catboost",
    "EBM": "interpret-core",
}


def _ours(seed: int) -> Any:
    import discem

    if not hasattr(discem, OURS):
        raise ImportError(f"this discem has no {OURS}")
    return discem.TableClassifier(random_state=seed)


METHODS: dict[str, Callable[[int], Any]] = {OURS: _ours, **PEERS}


# --- one method on one table ----------------------------------------------------------------------


def run(
    method: str | Callable[[int], Any],
    X: pd.DataFrame,
    y: np.ndarray,
    seed: int,
    folds: int = FOLDS,
) -> list[dict[str, Any]]:
    """A record of each of the first `folds` folds: accuracy and log-loss by share removed.

    `method` is a name of METHODS or a function from a seed to a classifier, which raises
    ImportError if there is none.
    """
    make = METHODS[method] if isinstance(method, str) else method
    return [run_fold(make, X, y, seed, fold) for fold in range(folds)]


def run_fold(
    make: Callable[[int], Any], X: pd.DataFrame, y: np.ndarray, seed: int, fold: int
) -> dict[str, Any]:
    """What a method does on one fold; if it fails, what class frequencies do, and the reason."""
    train, test = cut(y, seed)[fold]
    rng = np.random.default_rng((STREAM, seed, fold))
    uniform = rng.uniform(size=(len(test), X.shape[1]))
    tests = [X.iloc[test].mask(uniform < share) if share else X.iloc[test] for share in SHARES]
    rows, labels = (X.iloc[train], y[train]), y[test]
    model = make(seed)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return {"seed": seed, "fold": fold, **_figures(model, rows, tests, labels)}
        except Exception as error:
            reason = f"{type(error).__name__}: {error}".split("\n")[0]
        figures = _figures(DummyClassifier(), rows, tests, labels)
    return {"seed": seed, "fold": fold, **figures, "error": reason}


def cut(y: np.ndarray, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of classes with fewer rows than there are folds
        return list(StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(y, y))


def _figures(
    model: Any, rows: tuple[pd.DataFrame, np.ndarray], tests: list[pd.DataFrame], y: np.ndarray
) -> dict[str, Any]:
    fitted, fit_seconds = clock(model.fit, *rows)
    classes = np.asarray(fitted.classes_)
    answers, predict_seconds = clock(lambda: [fitted.predict_proba(X) for X in tests])
    for p in answers:
        if not (np.isfinite(p).all() and np.allclose(p.sum(axis=1), 1, atol=1e-4)):
            raise ValueError("probabilities that are none")
    return {
        "accuracy": [float((classes[p.argmax(axis=1)] == y).mean()) for p in answers],
        "log_loss": [log_loss(y, p, classes) for p in answers],
        "fit_seconds": fit_seconds,
        "predict_seconds": predict_seconds,
    }


# --- all methods on all tables --------------------------------------------------------------------


class Task(NamedTuple):
    """A method on a table with one seed."""

    data: str
    table: Table
    method: str
    seed: int
    folds: int
    kept: Path | None  # where its records are kept, but for the fold


def work(task: Task) -> tuple[list[dict[str, Any]], bool]:
    """The records of a task, and whether any is new and not one that was kept."""
    X, y = task.table
    make, records, new = METHODS[task.method], [], False
    for fold in range(task.folds):
        path = task.kept and task.kept.with_name(f"{task.kept.name}-{fold}.json")
        if path is not None and path.exists():
            records.append(json.loads(path.read_text()))
            continue
        new = True
        _warm(task.method)
        record = {"data": task.data, "method": task.method, **run_fold(make, X, y, task.seed, fold)}
        if path is not None and "error" not in record:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_json(path, record)
        records.append(record)
    return records, new


@cache
def _warm(method: str) -> None:
    """A small fit, so that nothing is imported while the clock runs."""
    X, y = made("made-few")
    run_fold(METHODS[method], X, y, seed=0, fold=0)


def keys(folder: Path, data: str, table: Table) -> Callable[[str, int], Path | None]:
    """Where the records of a method and a seed on this table are kept; only those of peers are."""
    packages = ("numpy", "scipy", "scikit-learn", "pandas")
    key = (EDITION, SHARES, FOLDS, fingerprint(*table), *map(_version, packages))

    def place(method: str, seed: int) -> Path | None:
        if method not in PEERS:
            return None
        own = (*key, _version(PACKAGES[method])) if method in PACKAGES else key
        code = hashlib.sha256(repr(own).encode()).hexdigest()[:12]
        return folder / data / f"{method.replace(', ', '-').replace(' ', '-')}-{code}-{seed}"

    return place


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "absent"


def fingerprint(X: pd.DataFrame, y: np.ndarray) -> str:
    """Of the contents of a table."""
    digest = hashlib.sha256(repr([(name, str(X[name].dtype)) for name in X]).encode())
    digest.update(pd.util.hash_pandas_object(X, index=False).to_numpy().tobytes())
    digest.update(repr(y.tolist()).encode())
    return digest.hexdigest()


def absent(names: list[str]) -> dict[str, str]:
    """The methods among these that cannot be had here, and why."""
    found = {}
    for name in names:
        try:
            METHODS[name](0)
        except ImportError as error:
            found[name] = str(error)
    return found


def judge(
    names: list[str],
    tables: dict[str, Table],
    seeds: int = 2,
    folds: int = FOLDS,
    cache: str | Path | None = CACHE,
    jobs: int = 1,
) -> list[dict[str, Any]]:
    """The records of these methods on these tables; what was entered in METHODS needs one job."""
    tasks = []
    for data, table in tables.items():
        place = keys(Path(cache), data, table) if cache else lambda method, seed: None
        for name in names:
            for seed in range(seeds):
                tasks.append(Task(data, table, name, seed, folds, place(name, seed)))
    records = []
    for task, (answer, new) in zip(tasks, _answers(tasks, jobs), strict=True):
        records += answer
        if not new:
            continue
        seconds = np.mean([record["fit_seconds"] for record in answer])
        text = f"{task.data:<24} {task.method:<16} seed {task.seed}{seconds:9.2f} s a fit"
        print(text, *{record["error"] for record in answer if "error" in record}, flush=True)
    return records


def _answers(tasks: list[Task], jobs: int) -> Iterator[tuple[list[dict[str, Any]], bool]]:
    if jobs == 1:
        yield from map(work, tasks)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context) as pool:
        yield from pool.map(work, tasks)


# --- summary --------------------------------------------------------------------------------------


class Means(NamedTuple):
    """Figures by method, table and share removed."""

    methods: list[str]
    sets: list[str]
    accuracy: np.ndarray
    log_loss: np.ndarray
    seconds: np.ndarray  # to fit, by method and table


def means(records: list[dict[str, Any]], sets: list[str]) -> Means:
    """Over folds and seeds, of these tables."""
    frame = pd.DataFrame(records)
    methods = list(dict.fromkeys(frame["method"]))
    grouped = frame.groupby(["method", "data"])

    def table(name: str) -> np.ndarray:
        mean = grouped[name].agg(lambda values: np.mean([*values], axis=0))
        return np.array([[mean[method, data] for data in sets] for method in methods])

    return Means(methods, sets, table("accuracy"), table("log_loss"), table("fit_seconds"))


def group_of(data: str) -> str:
    kind = data.split("-")[0]
    return kind if kind in GROUPS else "real"


def print_means(found: Means, title: str) -> None:
    """A line for each method: mean accuracy and log-loss by share removed, ranks when complete."""
    print(f"\n{title}, {len(found.sets)}: mean accuracy, % / mean log-loss by test cells removed")
    head = "".join(f"{'complete' if not share else f'{share:.0%}':>16}" for share in SHARES)
    print(f"{'method':<16}{head}{'ranks':>14}{'fit, s':>9}")
    ranks = [rankdata(-found.accuracy[:, :, 0], axis=0), rankdata(found.log_loss[:, :, 0], axis=0)]
    for place, method in enumerate(found.methods):
        accuracy, loss = found.accuracy[place].mean(axis=0), found.log_loss[place].mean(axis=0)
        cells = "".join(f"{100 * a:8.2f} /{b:6.3f}" for a, b in zip(accuracy, loss, strict=True))
        rank = " / ".join(f"{each[place].mean():4.1f}" for each in ranks)
        print(f"{method:<16}{cells}{rank:>14}{found.seconds[place].mean():9.2f}")


def print_sets(found: Means, tables: dict[str, Table]) -> None:
    """Each table, complete: a column for each method."""
    letters = [chr(ord("A") + place) for place in range(len(found.methods))]
    key = "; ".join(f"{letter} {name}" for letter, name in zip(letters, found.methods, strict=True))
    for title, values, scale, form in (
        ("accuracy, %", found.accuracy, 100, "7.1f"),
        ("log-loss", found.log_loss, 1, "7.3f"),
    ):
        print(f"\ncomplete, {title}: {key}")
        print(f"{'data':<24}{'rows':>6}" + "".join(f"{letter:>7}" for letter in letters))
        for place, data in enumerate(found.sets):
            cells = "".join(f"{scale * value:{form}}" for value in values[:, place, 0])
            print(f"{data:<24}{len(tables[data].y):6d}{cells}")


def checks(found: Means, method: str, rows: dict[str, int]) -> list[dict[str, Any]]:
    """A method beside the best peer, and on its worst table beside logistic regression."""
    ours = found.methods.index(method)
    peers = [place for place, name in enumerate(found.methods) if name in PEERS]
    accuracy, loss = found.accuracy.mean(axis=1), found.log_loss.mean(axis=1)
    answers = []
    for column, share in enumerate(SHARES):
        best = max(peers, key=lambda place: accuracy[place, column])
        least = min(peers, key=lambda place: loss[place, column])
        answers.append({
            "removed": share,
            "accuracy_difference": float(accuracy[ours, column] - accuracy[best, column]),
            "accuracy_peer": found.methods[best],
            "log_loss_ratio": float(loss[ours, column] / loss[least, column]),
            "log_loss_peer": found.methods[least],
        })  # fmt: skip
    large = [place for place, data in enumerate(found.sets) if rows[data] >= 300]
    if LOGISTIC in found.methods and large:
        reference = found.methods.index(LOGISTIC)
        gain = (found.accuracy[ours] - found.accuracy[reference])[large, 0]
        ratio = found.log_loss[ours, large, 0] / found.log_loss[reference, large, 0]
        answers[0]["worst"] = {
            "accuracy_difference": float(gain.min()),
            "accuracy_set": found.sets[large[int(gain.argmin())]],
            "log_loss_ratio": float(ratio.max()),
            "log_loss_set": found.sets[large[int(ratio.argmax())]],
        }
    return answers


def print_checks(answers: list[dict[str, Any]], title: str) -> None:
    print(f"\nchecks, {title}")
    for each in answers:
        share = each["removed"]
        where = f"{share:.0%} removed" if share else "complete"
        print(
            f"{where}: mean accuracy minus best peer {100 * each['accuracy_difference']:+.2f} "
            f"points ({each['accuracy_peer']}); log-loss ratio to best peer "
            f"{each['log_loss_ratio']:.3f} ({each['log_loss_peer']})"
        )
    if "worst" in answers[0]:
        worst = answers[0]["worst"]
        print(
            f"worst set against {LOGISTIC} (300 rows or more): accuracy difference "
            f"{100 * worst['accuracy_difference']:+.2f} points ({worst['accuracy_set']}), "
            f"log-loss ratio {worst['log_loss_ratio']:.3f} ({worst['log_loss_set']})"
        )


def summarise(records: list[dict[str, Any]], tables: dict[str, Table]) -> dict[str, Any]:
    """Print all tables and failures; the checks of each method that is no peer, by group."""
    present = list(dict.fromkeys(record["data"] for record in records))
    print_sets(means(records, present), tables)
    rows = {data: len(tables[data].y) for data in present}
    summary: dict[str, Any] = {}
    for group, title in GROUPS.items():
        sets = [data for data in present if group_of(data) == group]
        if not sets:
            continue
        found = means([record for record in records if record["data"] in sets], sets)
        print_means(found, title)
        if set(found.methods) & set(PEERS):
            ours = [method for method in found.methods if method not in PEERS]
            summary[group] = {method: checks(found, method, rows) for method in ours}
    print_failures(records)
    for group, answers in summary.items():
        for method, answer in answers.items():
            print_checks(answer, f"{method}, {GROUPS[group]}")
    return summary


def draw(records: list[dict[str, Any]], path: Path) -> None:
    """A picture of the means by share removed, over all tables."""
    from table_picture import plot_removed

    from discem.report.plots import save_figure

    found = means(records, list(dict.fromkeys(record["data"] for record in records)))
    figures = {
        name: {m: v.mean(axis=0) for m, v in zip(found.methods, values, strict=True)}
        for name, values in (("accuracy", found.accuracy), ("log-loss", found.log_loss))
    }
    title = f"mean over {len(found.sets)} tables"
    save_figure(plot_removed(SHARES, figures, title), path)


def draw_seconds(records: list[dict[str, Any]], path: Path) -> None:
    """A picture of the means over tables and shares removed, against the seconds of a fit."""
    from table_picture import plot_seconds

    from discem.report.plots import save_figure

    found = means(records, list(dict.fromkeys(record["data"] for record in records)))
    seconds = dict(zip(found.methods, found.seconds.mean(axis=1).tolist(), strict=True))
    figures = {
        name: dict(zip(found.methods, values.mean(axis=(1, 2)).tolist(), strict=True))
        for name, values in (("accuracy", found.accuracy), ("log-loss", found.log_loss))
    }
    title = f"mean over {len(found.sets)} tables with 0, 20, 40 and 60 % of the test cells removed"
    save_figure(plot_seconds(seconds, figures, title), path)


def print_failures(records: list[dict[str, Any]]) -> None:
    failed = Counter((r["data"], r["method"], r["error"]) for r in records if "error" in r)
    print(f"\nfailures: {len(failed) or 'none'}")
    for (data, method, reason), folds in failed.items():
        print(f"{data}, {method}, {folds} folds: {reason}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n")[0], epilog="methods: " + "; ".join(METHODS)
    )
    parser.add_argument("--data", metavar="DIR", help="folder of data sets (default: DISCEM_DATA)")
    parser.add_argument("--sets", nargs="+", metavar="PATTERN", help="as 'made-*'; default: all")
    parser.add_argument("--methods", nargs="+", metavar="PATTERN", default=["*"], help="as 'HGB*'")
    parser.add_argument("--seeds", type=int, default=2, help="cuttings into folds (default 2)")
    parser.add_argument("--folds", type=int, default=FOLDS, help=f"of {FOLDS} (default all)")
    parser.add_argument("--draw", type=int, default=0, help="of the generated tables (default 0)")
    parser.add_argument("--jobs", type=int, default=1, help="processes (default 1)")
    parser.add_argument("--cache", type=Path, default=CACHE, help=f"of peers (default {CACHE})")
    parser.add_argument(
        "--quick", action="store_true", help=f"one seed, one fold, up to {SMALL} rows: a trial"
    )
    parser.add_argument("--json", type=Path, metavar="OUT", help="write every number to this file")
    parser.add_argument("--picture", type=Path, metavar="PATH", help="draw the means here")
    parser.add_argument("--seconds", type=Path, metavar="PATH", help="draw them by the time here")
    options = parser.parse_args()
    names = [n for n in METHODS if any(fnmatch(n, pattern) for pattern in options.methods)]
    if not names:
        parser.error(f"no method is named like {options.methods}: there are {list(METHODS)}")
    tables = load_sets(options.data, options.sets, options.draw)
    seeds, folds = options.seeds, min(options.folds, FOLDS)
    if options.quick:
        seeds, folds = 1, 1
        tables = {name: table for name, table in tables.items() if len(table.y) <= SMALL}
    if not tables:
        parser.error(f"no set is named like {options.sets}: there are {names_of(options.data)}")
    found = versions("pandas", *dict.fromkeys(PACKAGES.values()))
    print(", ".join(f"{name} {value}" for name, value in found.items()))
    skipped = absent(names)
    for name, reason in skipped.items():
        print(f"{name} is left out: {reason}")
    names = [name for name in names if name not in skipped]
    if not names:
        parser.error("no method is left")
    records = judge(names, tables, seeds, folds, options.cache, options.jobs)
    summary = summarise(records, tables)
    if options.picture:
        draw(records, options.picture)
    if options.seconds:
        draw_seconds(records, options.seconds)
    if options.json:
        settings = {"folds": folds, "seeds": seeds, "shares": SHARES, "draw": options.draw}
        sizes = {name: [*table.X.shape, len(np.unique(table.y))] for name, table in tables.items()}
        content = {"versions": found, "settings": settings, "sets": sizes, "skipped": skipped}
        write_json(options.json, content | {"summary": summary, "results": records})


if __name__ == "__main__":
    main()
