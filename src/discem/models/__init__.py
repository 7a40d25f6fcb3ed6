"""Models: how families make p(y, z, x)."""

from ._protocol import (
    averaged,
    class_counts,
    make_room,
    n_classes,
    penalty,
    remember,
    scores,
    update,
    with_classes,
    with_features,
)
from .naive_bayes import NaiveBayes, Tally, collect, start

__all__ = [
    "NaiveBayes",
    "Tally",
    "averaged",
    "class_counts",
    "collect",
    "make_room",
    "n_classes",
    "penalty",
    "remember",
    "scores",
    "start",
    "update",
    "with_classes",
    "with_features",
]
