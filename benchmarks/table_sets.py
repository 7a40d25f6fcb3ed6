"""Tables of mixed columns: CSV files, those bundled with scikit-learn, and generated ones.

Numbers are columns of floats or integers, categories are of pandas' `category` or `str`. Most of
the generated ones (`made-*`) begin with a mixture per class, and each has one trouble that tables
have; two are large (`large-*`). Another `draw` is another table of the same kind: what was tried on
one can be judged on the next.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn import datasets

MOST, SAMPLE = 6000, 4000  # of more rows than the first, as many as the second
ID_COLUMNS = {"breast-cancer-wisconsin": ["id"]}
BUNDLED = {
    "wine": datasets.load_wine,
    "breast_cancer": datasets.load_breast_cancer,
    "digits": datasets.load_digits,
    "iris": datasets.load_iris,
}


class Table(NamedTuple):
    """Rows and their classes."""

    X: pd.DataFrame
    y: np.ndarray


# --- files ----------------------------------------------------------------------------------------


def files(folder: str | Path | None = None) -> dict[str, Path]:
    """The CSV files of `<folder>/tabular` (default: of DISCEM_DATA) by name; none if there is none.

    Of a set with a test part, as `adult-train.csv.gz` and `adult-test.csv.gz`, the training part.
    """
    home = Path(folder or os.environ.get("DISCEM_DATA", ".")) / "tabular"
    names = {
        path: path.name.removesuffix(".gz").removesuffix(".csv") for path in home.glob("*.csv*")
    }
    return {
        name.removesuffix("-train"): path
        for path, name in sorted(names.items())
        if not name.endswith("-test")
    }


def read(name: str, path: Path) -> Table:
    """A file with a header, the class in the column `class`, and ? for what is missing."""
    frame = pd.read_csv(path, na_values=["?"], keep_default_na=False)
    y = frame.pop("class").astype(str).to_numpy(dtype=np.str_)
    return Table(frame.drop(columns=ID_COLUMNS.get(name, [])), y)


def bundled(name: str) -> Table:
    X, y = BUNDLED[name](return_X_y=True, as_frame=True)
    return Table(X, y.to_numpy())


# --- generated ------------------------------------------------------------------------------------

ROWS, LARGE = 1500, 30_000


def mixture(
    rng: np.random.Generator,
    rows: int = ROWS,
    classes: int = 3,
    numbers: int = 5,
    categories: int = 4,
    integers: int = 2,
    apart: float = 1.0,
    priors: np.ndarray | None = None,
) -> Table:
    """Two components a class: normal numbers, categories of 2 to 6 levels, Poisson integers."""
    y = rng.choice(classes, size=rows, p=priors)
    part = 2 * y + rng.integers(2, size=rows)
    columns: dict[str, object] = {}
    for j in range(numbers):
        means, scales = apart * rng.normal(size=2 * classes), rng.uniform(0.5, 1.5, 2 * classes)
        unit, zero = 10 ** rng.uniform(-2, 3), rng.normal()
        columns[f"number {j}"] = unit * (zero + rng.normal(means[part], scales[part]))
    for j in range(categories):
        levels = int(rng.integers(2, 7))
        chances = rng.dirichlet(np.full(levels, 2.0 / apart), size=2 * classes)
        columns[f"category {j}"] = letters(draws(rng, chances[part]), category=bool(j % 2))
    for j in range(integers):
        rates = 4 * np.exp(0.4 * apart * rng.normal(size=2 * classes))
        columns[f"integer {j}"] = rng.poisson(rates[part])
    return Table(pd.DataFrame(columns), y)


def draws(rng: np.random.Generator, chances: np.ndarray) -> np.ndarray:
    """A level for each row of `chances`."""
    levels = (rng.uniform(size=(len(chances), 1)) > chances.cumsum(axis=1)).sum(axis=1)
    return np.minimum(levels, chances.shape[1] - 1)


def letters(codes: np.ndarray, category: bool = False) -> pd.Series:
    """Levels by name, of pandas' `str` or `category`."""
    names = pd.Series([f"level {code}" for code in codes], dtype="str")
    return names.astype("category") if category else names


def mixed(rng: np.random.Generator) -> Table:
    return mixture(rng)


def xor(rng: np.random.Generator) -> Table:
    """The class is whether two categories agree, nine times in ten."""
    X, _ = mixture(rng, classes=2)
    one, other = rng.integers(2, size=(2, len(X)))
    y = (one ^ other) ^ (rng.uniform(size=len(X)) < 0.1)
    return Table(X.assign(one=letters(one), other=letters(other, category=True)), y.astype(int))


def curved(rng: np.random.Generator) -> Table:
    """The class depends on a radius and a product of numbers."""
    X, _ = mixture(rng, classes=2, numbers=2)
    z = rng.normal(size=(len(X), 4))
    logit = 2 * (np.hypot(z[:, 0], z[:, 1]) - 1.2) + 1.5 * z[:, 2] * z[:, 3]
    y = (rng.uniform(size=len(X)) < 1 / (1 + np.exp(-2 * logit))).astype(int)
    return Table(X.assign(**{f"z{j}": z[:, j] for j in range(4)}), y)


def linear(rng: np.random.Generator) -> Table:
    """Correlated numbers and categories, the class by a logistic regression on them."""
    n, p = ROWS, 8
    Z = rng.normal(size=(n, p)) @ (np.eye(p) + 0.5 * rng.normal(size=(p, p)))
    codes = np.digitize(Z[:, :3] + rng.normal(size=(n, 3)), [-1.0, 0.0, 1.0])
    logits = Z @ rng.normal(size=(p, 3)) * 0.6
    for j in range(3):
        logits += rng.normal(size=(4, 3))[codes[:, j]]
    y = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    X = pd.DataFrame(Z, columns=[f"number {j}" for j in range(p)])
    return Table(X.assign(**{f"band {j}": letters(codes[:, j], j == 0) for j in range(3)}), y)


def skewed(rng: np.random.Generator) -> Table:
    """Positive numbers over orders of magnitude, some with tails heavier than log-normal."""
    X, y = mixture(rng, numbers=1, categories=2, integers=0)
    for j in range(5):
        centre, spread = rng.normal(size=3), rng.uniform(0.7, 1.5)
        tail = rng.standard_t(3, size=len(y)) if j % 2 else rng.normal(size=len(y))
        X[f"amount {j}"] = 10 ** rng.uniform(-1, 4) * np.exp(centre[y] + spread * tail)
    return Table(X, y)


def zeros(rng: np.random.Generator) -> Table:
    """Amounts that are mostly nothing: how often, and how much otherwise, depend on the class."""
    X, y = mixture(rng, classes=2, numbers=2, categories=2, apart=0.6)
    for j in range(5):
        some = rng.uniform(size=len(y)) < rng.uniform(0.03, 0.6, size=2)[y]
        amount = np.exp(rng.normal(6 + rng.normal(size=2)[y], 1.0))
        X[f"amount {j}"] = np.where(some, amount.round(2), 0.0)
    return Table(X, y)


def counts(rng: np.random.Generator) -> Table:
    """Integers: Poisson, and negative binomial with many small and some large."""
    X, y = mixture(rng, classes=4, numbers=1, categories=1, integers=6)
    for j in range(4):
        rates = np.exp(rng.normal(1, 0.8, size=4))[y] * rng.gamma(0.8, 1 / 0.8, size=len(y))
        X[f"count {j}"] = rng.poisson(rates)
    return Table(X, y)


def levels(rng: np.random.Generator) -> Table:
    """A category of 300 levels, some frequent, each with class frequencies of its own."""
    popular = rng.dirichlet(np.full(300, 0.5))
    code = rng.choice(300, size=ROWS, p=popular)
    y = draws(rng, rng.dirichlet([0.5, 0.5, 0.5], size=300)[code])
    X, _ = mixture(rng)
    for j in range(2):
        X[f"signal {j}"] = rng.normal(rng.normal(size=3)[y])
    return Table(X.assign(place=letters(code)), y)


def identified(rng: np.random.Generator) -> Table:
    """A running number and a code, unique to each row, beside columns that say something."""
    X, y = mixture(rng, classes=2, apart=0.7)
    X.insert(0, "id", 100_000 + rng.permutation(10 * len(y))[: len(y)])
    return Table(X.assign(code=letters(rng.permutation(len(y)))), y)


def flags(rng: np.random.Generator) -> Table:
    """Flags that nearly always go with one class, in columns of 0 and 1, and of yes and no."""
    X, y = mixture(rng, classes=3, apart=0.6)
    for j in range(6):
        sure = (y == j % 3) ^ (rng.uniform(size=len(y)) < 0.01)
        up = sure if j < 2 else sure & (rng.uniform(size=len(y)) < 0.3)
        X[f"flag {j}"] = (
            up.astype(int) if j % 2 else pd.Series(np.where(up, "yes", "no"), dtype="str")
        )
    return Table(X, y)


def ten(rng: np.random.Generator) -> Table:
    """Ten classes of unlike sizes."""
    return mixture(rng, classes=10, numbers=8, apart=1.5, priors=rng.dirichlet(np.full(10, 5.0)))


def rare(rng: np.random.Generator) -> Table:
    """A class of 3 %."""
    return mixture(rng, rows=2000, classes=2, priors=np.array([0.97, 0.03]))


def holes(rng: np.random.Generator) -> Table:
    """40 % of the cells missing at random."""
    X, y = mixture(rng, numbers=8, categories=6)
    return Table(X.mask(rng.uniform(size=X.shape) < 0.4), y)


def absent(rng: np.random.Generator) -> Table:
    """40 % of the cells missing, by class, and rather high numbers and late levels."""
    X, y = mixture(rng, numbers=8, categories=6)
    chance = np.empty(X.shape)
    for j, name in enumerate(X):
        column = X[name]
        if not pd.api.types.is_numeric_dtype(column):
            column = column.astype("category").cat.codes
        chance[:, j] = column.rank(pct=True) ** 2 * rng.uniform(0.4, 2.0, size=3)[y]
    chance *= 0.4 / chance.mean()
    return Table(X.mask(rng.uniform(size=X.shape) < chance), y)


def wrong(rng: np.random.Generator) -> Table:
    """20 % of the labels are drawn anew."""
    X, y = mixture(rng, apart=1.5)
    return Table(X, np.where(rng.uniform(size=len(y)) < 0.2, rng.integers(3, size=len(y)), y))


def few(rng: np.random.Generator) -> Table:
    """80 rows."""
    return mixture(rng, rows=80, classes=2, apart=1.2)


def twins(rng: np.random.Generator) -> Table:
    """Every column three times, once to the letter and once with a little noise."""
    X, y = mixture(rng, apart=0.7)
    again = {f"{name}, again": X[name] for name in X}
    for name in X.select_dtypes("number"):
        again[f"{name}, about"] = X[name] + 0.1 * X[name].std() * rng.normal(size=len(y))
    for name in X.select_dtypes(exclude="number"):
        other = X[name].sample(frac=1, random_state=rng).set_axis(X.index)
        again[f"{name}, about"] = X[name].where(rng.uniform(size=len(y)) > 0.05, other)
    return Table(pd.concat([X, pd.DataFrame(again)], axis=1), y)


def chaff(rng: np.random.Generator) -> Table:
    """50 columns that say nothing."""
    X, y = mixture(rng, rows=1000, classes=2)
    other, _ = mixture(rng, rows=1000, numbers=25, categories=15, integers=10)
    return Table(pd.concat([X, other.add_prefix("chaff ")], axis=1), y)


MADE: dict[str, Callable[[np.random.Generator], Table]] = {
    f"made-{make.__name__}": make
    for make in (
        mixed, xor, curved, linear, skewed, zeros, counts, levels, identified, flags, ten, rare,
        holes, absent, wrong, few, twins, chaff,
    )
}  # fmt: skip


def clusters(rng: np.random.Generator) -> Table:
    """Four classes, each of four clusters of correlated numbers."""
    X, y = datasets.make_classification(
        LARGE,
        20,
        n_informative=8,
        n_redundant=4,
        n_classes=4,
        n_clusters_per_class=4,
        random_state=int(rng.integers(2**31)),
    )
    return Table(pd.DataFrame(X).add_prefix("number "), y)


def friedman(rng: np.random.Generator) -> Table:
    """Friedman's function of ten uniform numbers, cut in three."""
    X, target = datasets.make_friedman1(LARGE, 10, noise=1.0, random_state=int(rng.integers(2**31)))
    cuts = np.quantile(target, [1 / 3, 2 / 3])
    return Table(pd.DataFrame(X).add_prefix("number "), np.digitize(target, cuts))


MADE |= {f"large-{make.__name__}": make for make in (clusters, friedman)}


def made(name: str, draw: int = 0) -> Table:
    return MADE[name](np.random.default_rng([zlib.crc32(name.encode()), draw]))


# --- all ------------------------------------------------------------------------------------------


def names_of(folder: str | Path | None = None) -> list[str]:
    """What there is to load."""
    return [*files(folder), *BUNDLED, *MADE]


def load_sets(
    folder: str | Path | None = None, names: list[str] | None = None, draw: int = 0
) -> dict[str, Table]:
    """The tables named like one of the patterns `names` (default: all), large files as a sample."""
    found, tables = files(folder), {}
    for name in names_of(folder):
        if names is not None and not any(fnmatch(name, pattern) for pattern in names):
            continue
        if name in found:
            table = read(name, found[name])
        else:
            table = made(name, draw) if name in MADE else bundled(name)
        tables[name] = table if name in MADE else sample(table)
    return tables


def sample(table: Table) -> Table:
    if len(table.y) <= MOST:
        return table
    chosen = np.sort(np.random.default_rng(0).choice(len(table.y), SAMPLE, replace=False))
    return Table(table.X.iloc[chosen].reset_index(drop=True), table.y[chosen])
