"""Models: how families make p(y, z, x)."""

from ._protocol import n_classes, remember, scores, update
from .naive_bayes import (
    NaiveBayes,
    Tally,
    averaged,
    collect,
    penalty,
    start,
    with_classes,
    with_features,
)

__all__ = [
    "NaiveBayes",
    "Tally",
    "averaged",
    "collect",
    "n_classes",
    "penalty",
    "remember",
    "scores",
    "start",
    "update",
    "with_classes",
    "with_features",
]
