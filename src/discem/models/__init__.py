"""Models: how families make p(y, z, x)."""

from ._protocol import (
    averaged,
    averages,
    check,
    class_counts,
    find_leverage,
    gather_row,
    make_room,
    mean_of,
    n_classes,
    penalty,
    update,
    with_average,
    with_classes,
    with_features,
    work_per_cell,
    write_scores,
)
from .classes import Classes, ClassPrior
from .mixture import Mixture
from .naive_bayes import NaiveBayes, Tally, collect, count_classes, start
from .topics import Topics

__all__ = [
    "ClassPrior",
    "Classes",
    "Mixture",
    "NaiveBayes",
    "Tally",
    "Topics",
    "averaged",
    "averages",
    "check",
    "class_counts",
    "collect",
    "count_classes",
    "find_leverage",
    "gather_row",
    "make_room",
    "mean_of",
    "n_classes",
    "penalty",
    "start",
    "update",
    "with_average",
    "with_classes",
    "with_features",
    "work_per_cell",
    "write_scores",
]
