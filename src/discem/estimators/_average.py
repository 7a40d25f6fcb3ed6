"""Averages: several models of the same rows, whose class probabilities are averaged."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import log_softmax, logsumexp, xlogy

from .._checks import check_number, demand
from .._kinds import savable
from ..io.frames import check_table
from ._choice import LEAST, Result, weigh
from ._explain import Explanations
from ._tables import Encoded

_UNSEEN = 2.0  # rows that count in favour of averaging different candidates
_AT_ONCE = 50_000  # rows that are scored before the next ones are looked at
REST = "(average of models)"  # in explanations: what no column of any model adds


@savable
class Member(NamedTuple):
    """A model, and its weight in the average."""

    model: Any
    weight: float


def best_of(results: Sequence[Result], most: int) -> list[tuple[Result, float]]:
    """Return the candidates with the smallest log-loss, and their weights in an average."""
    best = sorted(results, key=lambda result: result.mark.log_loss)[:most]
    return list(zip(best, weigh([each.mark for each in best]).tolist(), strict=True))


def picked(results: Sequence[Result], most: int) -> list[tuple[Result, float]]:
    """The candidates of an average of `most` models, and the share of each, the largest first.

    One model after the other is picked: that with which the mean does best on rows held out. A
    candidate may be picked again. Where rows are few, others are preferred: the mean is as good as
    `_UNSEEN` rows better for each nat of the entropy of the shares.
    """
    results = sorted(results, key=lambda result: result.mark.log_loss)
    marks = [result.mark for result in results]
    weights = marks[0].weights
    log_p = np.stack([np.maximum(-each.losses / weights, LEAST) for each in marks])
    p, counts = np.exp(log_p - log_p.max(axis=0)), np.zeros(len(marks))

    def value(counts: np.ndarray) -> float:
        shares = counts / counts.sum()
        log_mean = np.log(np.tensordot(shares, p, axes=1)).mean(axis=0)
        return weights @ log_mean - _UNSEEN * xlogy(shares, shares).sum()

    for _ in range(most):
        counts[np.argmax([value(counts + more) for more in np.eye(len(marks))])] += 1
    order = [j for j in np.argsort(-counts, kind="stable") if counts[j]]
    return [(results[j], float(counts[j] / most)) for j in order]


def dealt(best: Sequence[tuple[Result, float]], most: int) -> list[tuple[Result, Any]]:
    """Candidates by their shares, each with the model of another part.

    So no row was seen by all models before the last steps.
    """
    turns = [result for result, share in best for _ in range(round(share * most))]
    return [(result, result.models[part]) for part, result in enumerate(turns)]


def read_for(members: Sequence[Member], X: Any) -> list[Any]:
    """Read the rows of a table for each member; shared parts are read once."""
    if len(members) == 1:
        return [X]
    table = check_table(X)
    read: list[Any] = []
    for j, (model, _) in enumerate(members):
        alike = (i for i in range(j) if members[i].model.layout_ is model.layout_)
        first = next(alike, None)
        with warnings.catch_warnings():
            if j:  # what is amiss was said when the first was read
                warnings.simplefilter("ignore", UserWarning)
            read.append(Encoded.read(model.layout_, table) if first is None else read[first])
    return read


class Answering(NamedTuple):
    """Members that answer for some rows, as each of them reads these."""

    members: Sequence[Member]
    rows: Sequence[Any]
    places: Any = slice(None)  # of the rows


def answering(members: Sequence[Member], complete: Any, rows: Sequence[Any]) -> list[Answering]:
    """Who answers for which rows: where a model knows `complete` ones best, it does for these.

    The rows are as each member reads them, and as that model does.
    """
    if complete is None:
        return [Answering(members, rows)]
    lacks_none = rows[-1].complete()
    others, own = np.flatnonzero(~lacks_none), np.flatnonzero(lacks_none)
    sides = [
        Answering(members, [each.take(others) for each in rows[:-1]], others),
        Answering([Member(complete, 1.0)], [rows[-1].take(own)], own),
    ]
    return [side for side in sides if len(side.places)] or sides[:1]


def log_proba(sides: Sequence[Answering]) -> np.ndarray:
    """``ln p(y | x)`` of all rows, (n, n_classes)."""
    found = [_log_mean(side.members, side.rows) for side in sides]
    if len(found) == 1:
        return found[0]
    return np.concatenate(found)[np.argsort(np.concatenate([side.places for side in sides]))]


def _log_mean(members: Sequence[Member], rows: Sequence[Any]) -> np.ndarray:
    """``ln p(y | x)`` of an average."""
    if len(members) == 1:
        return members[0].model.predict_log_proba(rows[0])
    shares = np.array([weight for _, weight in members])[:, None, None]
    found = []
    for first in range(0, rows[0].shape[0], _AT_ONCE):
        some = [own.take(slice(first, first + _AT_ONCE)) for own in rows]
        pairs = zip(members, some, strict=True)
        answers = np.stack([model.predict_log_proba(own) for (model, _), own in pairs])
        found.append(logsumexp(answers, axis=0, b=shares))
    return np.concatenate(found)


def explained(sides: Sequence[Answering]) -> Explanations:
    """What each column adds to the score of each class of all rows, exactly."""
    found = [_explained_mean(side.members, side.rows) for side in sides]
    if len(found) == 1:
        return found[0]
    columns = max((own.columns for own in found), key=len)  # with the rest of an average, if any
    n, K = sum(map(len, found)), len(found[0].classes)
    parts, intercepts = np.zeros((n, len(columns), K)), np.zeros((n, K))
    for side, own in zip(sides, found, strict=True):
        parts[side.places, : len(own.columns)] = own.contributions
        intercepts[side.places] = own.intercepts
    return Explanations(found[0].classes, columns, parts, intercepts)


def _explained_mean(members: Sequence[Member], rows: Sequence[Any]) -> Explanations:
    """What each column adds in the mean of the members; the rest is named, so that all is exact."""
    found = [model._explained(own) for (model, _), own in zip(members, rows, strict=True)]
    first, shares = found[0], [weight for _, weight in members]
    if len(members) == 1:
        return first
    parts = {name: np.zeros(first.intercepts.shape) for name in first.columns}
    for own, share in zip(found, shares, strict=True):
        for j, name in enumerate(own.columns):
            parts[name] = parts[name] + share * own.contributions[:, j]
    intercept = sum(share * own.intercepts for own, share in zip(found, shares, strict=True))
    whole = logsumexp(
        np.stack([log_softmax(own.scores, axis=1) for own in found]),
        axis=0,
        b=np.array(shares)[:, None, None],
    )
    rest = whole - intercept - sum(parts.values())
    common = rest.mean(axis=1, keepdims=True)
    parts[REST] = rest - common
    return Explanations(
        first.classes, [*parts], np.stack([*parts.values()], axis=1), intercept + common
    )


def check_members(members: Any, kind: type) -> None:
    """Validate an average, which may come from any file."""
    demand(isinstance(members, list) and members, "it has no models")
    for member in members:
        demand(isinstance(member, Member), "a model has no weight")
        demand(type(member.model) is kind, "it has no model of its rows")
        demand(hasattr(member.model, "layout_"), "it does not know its columns")
        check_number("weight of a model", member.weight, above=0.0, most=1.0, kind=float)
        member.model._check_fitted()
    demand(abs(sum(weight for _, weight in members) - 1.0) < 1e-9, "weights do not add up to 1")
