"""What each class believes: the distribution of every column, or the words, given the class."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..exceptions import InputError
from ..families._distributions import OfCounts, OfLevels, OfNumbers
from ..io.cells import as_times
from ..io.rows import dense_rows
from ..io.vectors import plain_name
from ._impute import distribution
from ._tables import Encoded

_PLACES = 160  # of a density
_FEW = 40  # counts that are shown one by one
_DRAWN = 4000  # rows of a model of arrays, to see which numbers it believes in
_TAIL = 0.005  # of each class, on either side, is not shown


class Belief(NamedTuple):
    """The distribution of a column in each class.

    `places` are levels, and `p` their probabilities; or they are numbers or dates, evenly spaced,
    and `p` is the density there. `zero` is then the probability of an exact 0, of columns that
    have many.
    """

    column: Any
    classes: np.ndarray
    places: Any
    p: np.ndarray  # (classes, places)
    is_density: bool
    zero: np.ndarray | None  # (classes,)
    information: float  # nats that the column says of the class, alone


def beliefs(model: Any, columns: Sequence[Any] | None = None) -> list[Belief]:
    """The belief about each column, or about some, the one that says most of the class first."""
    check_is_fitted(model)
    joint = model._joint() if hasattr(model, "_joint") else model
    of_columns = _of_table if hasattr(joint, "layout_") else _of_array
    found = list(of_columns(joint, columns))
    return sorted(found, key=lambda each: -each.information) if columns is None else found


def by_component(model: Any) -> Any:
    """The same mixture, to be looked at: each component is a class of its own."""
    joint = model._joint() if hasattr(model, "_joint") else model
    seen, learner = copy(joint), copy(joint.learner_)
    components = np.arange(int(learner.model.first[-1]))
    learner.restart(learner.model._replace(first=np.append(components, len(components))))
    seen.learner_, seen.classes_ = learner, components
    seen.class_count_ = learner.model.class_counts
    seen._prior_shift = np.zeros(len(components))
    return seen


def _of_table(model: Any, columns: Sequence[Any] | None) -> Iterator[Belief]:
    layout = model.layout_
    names = [column.name for column in layout.columns]
    known = [name for name, column in zip(names, layout.columns, strict=True) if _is_known(column)]
    nothing = Encoded.read(layout.named_by_keys(), [dict.fromkeys(names)])._replace(layout=layout)
    K = len(model.classes_)
    rows, each_class = nothing.take(np.zeros(K, dtype=np.int64)), np.eye(K, dtype=bool)
    for name in _wanted(columns, known):
        j = names.index(name)
        answer = distribution([model], rows, each_class, j)
        column = layout.columns[j]
        if isinstance(answer, OfLevels):
            yield _belief(model, name, column.levels, answer.p)
        elif isinstance(answer, OfCounts) and answer.high - answer.low < _FEW:
            counts = np.arange(answer.low, answer.high + 1.0)
            below = np.stack([np.zeros(K), *(answer.cdf(np.full(K, at)) for at in counts)])
            yield _belief(model, name, counts.astype(int).tolist(), np.diff(below, axis=0).T)
        else:
            zero = answer.zero() if isinstance(answer, OfNumbers) else None
            low, high = answer.quantile(_TAIL).min(), answer.quantile(1.0 - _TAIL).max()
            edges = np.linspace(low, max(high, low + 1e-9 * (1.0 + abs(low))), _PLACES + 1)
            below = np.stack([answer.cdf(np.full(K, at)) for at in edges])
            p = np.diff(below, axis=0).T / np.diff(edges)
            places: Any = (edges[1:] + edges[:-1]) / 2.0
            if column.kind in ("date", "duration"):
                places = as_times(places, column.kind)
            yield _belief(model, name, places, p, zero=zero, width=edges[1] - edges[0])


def _of_array(model: Any, columns: Sequence[Any] | None) -> Iterator[Belief]:
    """Of models of arrays: what a row says of whose cells one is known."""
    drawn = np.asarray(model.sample(_DRAWN, random_state=0)[0], dtype=np.float64)
    d = drawn.shape[1]
    names = getattr(model, "feature_names_in_", np.arange(d)).tolist()
    empty = model.learner_.score(dense_rows(np.full((1, d), np.nan)))
    for name in _wanted(columns, names):
        j = names.index(name)
        values, is_density = np.unique(drawn[:, j]), False
        if len(values) > _FEW:
            low, high = np.quantile(drawn[:, j], [_TAIL, 1.0 - _TAIL])
            values, is_density = np.linspace(low, high, _PLACES), True
        rows = np.full((len(values), d), np.nan)
        rows[:, j] = values
        p = np.exp(model.learner_.score(dense_rows(rows)) - empty).T
        width = values[1] - values[0] if is_density else None
        yield _belief(model, name, values if is_density else values.tolist(), p, width=width)


def _belief(
    model: Any, name: Any, places: Any, p: np.ndarray, *, zero: Any = None, width: Any = None
) -> Belief:
    """What is believed, and the information between the class and the column, in nats."""
    masses = p if width is None else p * width
    if zero is not None:
        masses = np.column_stack([masses, zero])
    masses = np.maximum(masses, 0.0) / np.maximum(masses.sum(axis=1, keepdims=True), 1e-300)
    shares = model.class_frequency_[:, None]
    mean = (shares * masses).sum(axis=0)
    ratio = np.divide(masses, mean, out=np.ones_like(masses), where=masses > 0.0)
    information = float((shares * masses * np.log(ratio)).sum())
    return Belief(name, model.classes_, places, p, width is not None, zero, max(information, 0.0))


def _is_known(column: Any) -> bool:
    """Whether the model has learnt anything of the column."""
    seen = column.levels if column.has_levels else column.span
    return column.of_kind.has_distribution and bool(seen)


def _wanted(columns: Sequence[Any] | None, known: list[Any]) -> list[Any]:
    if columns is None:
        return known
    for name in columns:
        if plain_name(name) not in known:
            raise InputError(f"the model knows no column {name!r}; there are: {known[:20]}")
    return [plain_name(name) for name in columns]
