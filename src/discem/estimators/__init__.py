"""The scikit-learn surface: thin named presets over models, losses and engines."""

from ._files import load
from .mixture import MixtureClassifier
from .naive_bayes import GaussianNB, MultinomialNB
from .text import TextClassifier
from .topics import TopicClassifier

__all__ = [
    "GaussianNB",
    "MixtureClassifier",
    "MultinomialNB",
    "TextClassifier",
    "TopicClassifier",
    "load",
]
