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
from .mixture import Mixture
from .naive_bayes import NaiveBayes, Tally, collect, start, stir
from .topics import Cvb0, Gibbs, Topics

__all__ = [
    "Cvb0",
    "Gibbs",
    "Mixture",
    "NaiveBayes",
    "Tally",
    "Topics",
    "averaged",
    "class_counts",
    "collect",
    "make_room",
    "n_classes",
    "penalty",
    "remember",
    "scores",
    "start",
    "stir",
    "update",
    "with_classes",
    "with_features",
]
