"""Models: how families make p(y, z, x)."""

from ._protocol import add_row, n_classes, remember, scores, update
from .naive_bayes import NaiveBayes, averaged, empty, penalty, start, with_classes

__all__ = [
    "NaiveBayes",
    "add_row",
    "averaged",
    "empty",
    "n_classes",
    "penalty",
    "remember",
    "scores",
    "start",
    "update",
    "with_classes",
]
