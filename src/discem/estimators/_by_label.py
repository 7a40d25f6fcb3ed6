"""What users say of classes by their labels: a weight, a size, a probability, or which one."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..exceptions import InputError, OptionError
from ..io.cells import shown
from ..io.labels import plain_labels, read_labels
from ._input import encode

_SHOWN = 20  # classes in a message


def place_of(classes: np.ndarray, label: Any) -> int:
    """Where a class stands among the classes."""
    (place,) = _places([label], classes, "label")
    if place < 0:
        raise InputError(f"there is no class {shown(label)}; there are: {some_of(classes)}")
    return place


def by_label(given: dict[Any, Any], classes: np.ndarray, what: str) -> tuple[dict[int, Any], list]:
    """What a dict from label to value says, by the places of classes; and labels of no class.

    Errors name the dict `what`.
    """
    places = _places(list(given), classes, what)
    found = dict(zip(places, given.values(), strict=True))
    others = [label for label, place in zip(given, places, strict=True) if place < 0]
    return {place: value for place, value in found.items() if place >= 0}, others


def lacking(found: dict[int, Any], classes: np.ndarray) -> list[Any]:
    """The classes of which nothing was found."""
    return [label for place, label in enumerate(plain_labels(classes)) if place not in found]


def some_of(classes: np.ndarray) -> list[Any]:
    """The first classes, for a message."""
    return plain_labels(classes[:_SHOWN])


def class_weights(given: Any, classes: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The weight of each class, of so many rows.

    As in scikit-learn, a dict need not have all classes: those that it lacks weigh 1, unless it has
    a label that is no class, and so may be a mistake.
    """
    if isinstance(given, str) and given == "balanced":
        return balance(counts)
    if not isinstance(given, dict):
        raise OptionError(f"class_weight={given!r} must be None, 'balanced' or a dict by class")
    found, others = by_label(given, classes, "class_weight")
    if others and (missing := lacking(found, classes)):
        raise OptionError(
            f"class_weight has {shown(others[0])}, which is no class, and lacks {shown(missing[0])}"
        )
    try:
        return np.array([found.get(place, 1.0) for place in range(len(classes))], dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise OptionError(f"class_weight={given!r} holds what is no number") from error


def balance(counts: np.ndarray) -> np.ndarray:
    """Weights with which classes of so many rows count alike."""
    return counts.sum() / (np.count_nonzero(counts) * np.maximum(counts, 1))


def _places(labels: list[Any], classes: np.ndarray, what: str) -> list[int]:
    """The place of each label among the classes; below 0 of one that is none."""
    return encode(read_labels(labels, what), classes).codes.tolist()
