"""Data to try the library on: the paper's toy, made tables, docstrings."""

from __future__ import annotations

import ast
import importlib.util
import re
from collections import Counter
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import ndtr
from sklearn.utils import check_random_state

from .exceptions import InputError, OptionError

# --- the paper's toy ------------------------------------------------------------------------------

# (share, mean, standard deviation) of the parts of p(x | y). The paper writes N(0,3) and N(5,0.1);
# only as standard deviations do they give the accuracy that it prints for maximum likelihood.
_TOY: dict[int, tuple[tuple[float, float, float], ...]] = {
    -1: ((1.0, 0.0, 3.0),),
    1: ((0.8, -5.0, 0.1), (0.2, 5.0, 0.1)),
}
_REACH, _MESH = 40.0, 0.005  # beyond 13 standard deviations there is no mass left


def toy(n_samples: int = 30_000, random_state: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """The toy of section 4.1: data that no Gaussian naive Bayes fits, yet one can separate.

    Both classes are equally frequent. Class -1 is N(0, 3), class 1 is 0.8 N(-5, 0.1) +
    0.2 N(5, 0.1), where 3 and 0.1 are standard deviations.

    Parameters
    ----------
    n_samples : int
        Rows to draw.
    random_state : int, RandomState or None
        Seed of the draw.

    Returns
    -------
    X : ndarray of shape (n_samples, 1)
    y : ndarray of shape (n_samples,), of -1 and 1

    Examples
    --------
    >>> X, y = toy(1000, random_state=0)
    >>> X.shape, sorted(set(y.tolist()))
    ((1000, 1), [-1, 1])
    """
    _check_size(n_samples)
    rng = check_random_state(random_state)
    y = np.where(rng.uniform(size=n_samples) < 0.5, -1, 1)
    x = np.empty(n_samples)
    for label, parts in _TOY.items():
        rows = np.flatnonzero(y == label)
        shares, means, deviations = np.array(parts).T
        part = rng.choice(len(parts), size=len(rows), p=shares)
        x[rows] = rng.normal(means[part], deviations[part])
    return x[:, None], y


def toy_accuracy(classifier: Any) -> float:
    """Accuracy of a classifier on the toy's population, by integration: no sampling error.

    The intervals on which `classifier.predict` is constant are found on a mesh of 0.005, their ends
    by bisection, and the true densities are integrated over them.

    Parameters
    ----------
    classifier : object
        Its `predict` maps X of shape (n, 1) to labels -1 and 1.

    Returns
    -------
    float

    Examples
    --------
    >>> from sklearn.naive_bayes import GaussianNB
    >>> round(toy_accuracy(GaussianNB().fit(*toy(random_state=0))), 2)
    0.79
    """

    def predict(x: np.ndarray) -> np.ndarray:
        labels = np.asarray(classifier.predict(x[:, None]))
        strange = ~np.isin(labels, list(_TOY))
        if strange.any():
            raise InputError(f"the classifier predicts {labels[strange][0]!r}: expected -1 or 1")
        return labels

    mesh = np.linspace(-_REACH, _REACH, round(2 * _REACH / _MESH) + 1)
    labels = predict(mesh)
    change = np.flatnonzero(labels[1:] != labels[:-1])
    low, high = mesh[change], mesh[change + 1]
    for _ in range(40 if len(change) else 0):
        middle = (low + high) / 2
        left = predict(middle) == labels[change]
        low, high = np.where(left, middle, low), np.where(left, high, middle)
    ends = np.concatenate(([-np.inf], (low + high) / 2, [np.inf]))
    regions = np.append(labels[change], labels[-1])
    mass = 0.0
    for label, parts in _TOY.items():
        for share, mean, deviation in parts:
            inside = np.diff(ndtr((ends - mean) / deviation))
            mass += 0.5 * share * float(inside[regions == label].sum())
    return mass


# --- a made table ---------------------------------------------------------------------------------

_PLANS = ("monthly", "yearly", "two years")
_STARTED = date(2020, 1, 1)
_KINDS: dict[str, tuple[float, ...]] = {  # of customers: those who stay, and two who leave
    "share": (0.64, 0.18, 0.18),
    "monthly": (0.35, 0.80, 0.35),
    "calls": (3.5, 3.5, 7.0),
    "bill": (3.4, 3.0, 4.0),
    "debts": (0.2, 0.2, 0.6),
    "age": (48.0, 34.0, 55.0),
    "paperless": (0.5, 0.8, 0.3),
    "days": (700.0, 1300.0, 800.0),
    "silent": (0.2, 0.5, 0.5),
}


def customers(
    n_samples: int = 1000, holes: float = 0.1, random_state: Any = None
) -> tuple[list[dict[str, Any]], np.ndarray]:
    """A made table of customers who leave or stay, with columns of every kind and missing cells.

    Those who leave are of two kinds: young ones of a monthly plan, who are not long there, and old
    ones with a high bill, debts and many calls. Who leaves is less likely to answer the survey.

    Parameters
    ----------
    n_samples : int
        Rows to draw.
    holes : float
        Share of the cells that are missing for no reason.
    random_state : int, RandomState or None
        Seed of the draw.

    Returns
    -------
    rows : list of dict
        By the name of the column; what is missing is not there. The first row is complete.
    y : ndarray of shape (n_samples,), of "leaves" and "stays"

    Examples
    --------
    >>> rows, y = customers(1000, random_state=0)
    >>> sorted(rows[0])
    ['age', 'bill', 'calls', 'debt', 'id', 'paperless', 'plan', 'since', 'survey']
    >>> round(float((y == "leaves").mean()), 2)
    0.35
    """
    _check_size(n_samples, holes)
    rng = check_random_state(random_state)
    kind = rng.choice(3, size=n_samples, p=_KINDS["share"])
    of = {name: np.array(values)[kind] for name, values in _KINDS.items()}
    monthly = rng.uniform(size=n_samples) < of["monthly"]
    owes = rng.uniform(size=n_samples) < of["debts"]
    days = np.minimum(rng.normal(of["days"], 350.0), 1800.0)
    satisfaction = np.where(
        kind == 0, rng.binomial(4, 0.65, n_samples), rng.binomial(4, 0.45, n_samples)
    )
    columns: dict[str, list[Any]] = {
        "id": [f"c{place:05d}" for place in range(n_samples)],
        "plan": np.where(monthly, "monthly", rng.choice(_PLANS[1:], n_samples)).tolist(),
        "calls": rng.poisson(of["calls"]).tolist(),
        "bill": rng.lognormal(of["bill"], 0.5).round(2).tolist(),
        "debt": np.where(owes, rng.lognormal(5.0, 0.8, n_samples).round(), 0.0).tolist(),
        "age": rng.normal(of["age"], 10.0).round().clip(18, 95).tolist(),
        "paperless": (rng.uniform(size=n_samples) < of["paperless"]).tolist(),
        "since": [_STARTED + timedelta(days=int(day)) for day in days],
        "survey": (1 + satisfaction).tolist(),
    }
    missing = rng.uniform(size=(n_samples, len(columns))) < holes
    missing[:, -1] |= rng.uniform(size=n_samples) < of["silent"]
    missing[:, 0] = missing[0] = False
    return _rows(columns, missing), np.where(kind == 0, "stays", "leaves")


def flats(
    n_samples: int = 1000, holes: float = 0.1, random_state: Any = None
) -> tuple[list[dict[str, Any]], np.ndarray]:
    """A made table of flats and their rents, with columns of several kinds and missing cells.

    In the old town a square metre costs more, and how much more differs much from flat to flat.
    New buildings are dearer, except in the old town.

    Parameters
    ----------
    n_samples : int
        Rows to draw.
    holes : float
        Share of the cells that are missing.
    random_state : int, RandomState or None
        Seed of the draw.

    Returns
    -------
    rows : list of dict
        By the name of the column; what is missing is not there. The first row is complete.
    rent : ndarray of shape (n_samples,)

    Examples
    --------
    >>> rows, rent = flats(1000, random_state=0)
    >>> sorted(rows[0])
    ['balcony', 'built', 'district', 'rooms', 'size']
    >>> rent.shape
    (1000,)
    """
    _check_size(n_samples, holes)
    rng = check_random_state(random_state)
    place = rng.choice(3, size=n_samples, p=[0.3, 0.3, 0.4])
    old = place == 0
    size = rng.gamma(9.0, 8.0, n_samples).clip(18.0, 220.0).round(1)
    rooms = np.maximum(np.rint(size / 25.0 + rng.normal(0.0, 0.4, n_samples)), 1.0)
    built = np.where(old, rng.randint(1870, 1915, n_samples), rng.randint(1950, 2024, n_samples))
    balcony = rng.uniform(size=n_samples) < 0.5
    metre = np.array([17.0, 11.0, 9.0])[place] + np.where(old, 0.0, 0.05 * (built - 1950))
    noise = np.where(old, 0.25, 0.07) * rng.normal(size=n_samples)
    rent = (size * metre * (1.0 + noise) + 60.0 * balcony + 80.0).clip(150.0).round()
    columns: dict[str, list[Any]] = {
        "size": size.tolist(),
        "rooms": rooms.tolist(),
        "district": np.array(["old town", "riverside", "suburb"])[place].tolist(),
        "built": built.astype(float).tolist(),
        "balcony": balcony.tolist(),
    }
    missing = rng.uniform(size=(n_samples, len(columns))) < holes
    missing[0] = False
    return _rows(columns, missing), rent


def _check_size(n_samples: int, holes: float = 0.0) -> None:
    if n_samples < 1:
        raise OptionError(f"n_samples={n_samples} must be >= 1")
    if not 0 <= holes < 1:
        raise OptionError(f"holes={holes!r} must be a number from 0 to below 1")


def _rows(columns: dict[str, list[Any]], missing: np.ndarray) -> list[dict[str, Any]]:
    """Rows of the cells that are not missing."""
    return [
        {name: cell for name, cell, gone in zip(columns, row, out, strict=True) if not gone}
        for row, out in zip(zip(*columns.values(), strict=True), missing, strict=True)
    ]


# --- text that every installation has -------------------------------------------------------------

_LIBRARIES = ("numpy", "scipy", "sklearn", "numba", "matplotlib", "pandas")
_NAMES = re.compile(
    r"(?<![a-z0-9])(numpy|np|scipy|sp|scikit[-_ ]learn|scikits?|sklearn|numba|nb|llvmlite|llvm"
    r"|matplotlib|mpl|pyplot|plt|pandas|pd)(?![a-z0-9])",
    re.IGNORECASE,
)
_NO_API = {"tests", "test", "testing", "conftest.py", "externals", "extern", "_vendored", "vendor"}


def docstrings(
    min_words: int = 20, max_per_library: int = 400, random_state: Any = 0
) -> tuple[list[str], list[str]]:
    """Docstrings of the installed scientific libraries, to be told apart by library.

    Source files are parsed, not imported. Only public classes, methods and functions count (also
    those that live in a private module, as nearly all of SciPy's do), and no tests. The names of
    the libraries are taken out of all texts. A text that occurs twice in a library is kept once,
    one that occurs in two libraries is dropped. The result depends on the versions installed.

    Parameters
    ----------
    min_words : int
        Shorter texts are skipped.
    max_per_library : int
        Files are read in a random order until there are as many texts.
    random_state : int, RandomState or None
        Seed of that order.

    Returns
    -------
    texts, labels : list of str
        A text of one line each, and the library it is from.

    Examples
    --------
    >>> texts, labels = docstrings(max_per_library=5)
    >>> labels[:6]
    ['numpy', 'numpy', 'numpy', 'numpy', 'numpy', 'scipy']
    """
    rng = check_random_state(random_state)
    found: dict[str, list[str]] = {}
    for library in _LIBRARIES:
        spec = importlib.util.find_spec(library)
        if spec is None or spec.origin is None:
            continue
        texts: dict[str, None] = {}  # in order, each once
        for text in _texts(Path(spec.origin).parent, rng):
            if len(text.split()) >= min_words:
                texts[text] = None
            if len(texts) >= max_per_library:
                break
        found[library] = list(texts)
    shared = Counter(text for texts in found.values() for text in texts)
    pairs = [(t, library) for library, texts in found.items() for t in texts if shared[t] == 1]
    return [text for text, _ in pairs], [library for _, library in pairs]


def _texts(root: Path, rng: np.random.RandomState) -> Iterator[str]:
    """The public docstrings under `root`, without names of libraries, file by file at random."""
    paths = sorted(path for path in root.rglob("*.py") if _is_api(path.relative_to(root)))
    for place in rng.permutation(len(paths)):
        try:
            open_nodes: list[Any] = [ast.parse(paths[place].read_bytes())]
        except (OSError, SyntaxError, ValueError):  # a template, or written for another Python
            continue
        while open_nodes:
            for node in open_nodes.pop().body:
                if not isinstance(node, ast.ClassDef | ast.FunctionDef) or node.name[0] == "_":
                    continue
                if isinstance(node, ast.ClassDef):
                    open_nodes.append(node)
                if text := ast.get_docstring(node):
                    yield " ".join(_NAMES.sub(" ", text).split())


def _is_api(path: Path) -> bool:
    return not any(part in _NO_API or part.startswith("test_") for part in path.parts)
