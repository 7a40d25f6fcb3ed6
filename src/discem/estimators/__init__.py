"""The scikit-learn surface: thin named presets over models, losses and engines."""

from ._files import load
from .naive_bayes import GaussianNB, MultinomialNB
from .text import TextClassifier

__all__ = ["GaussianNB", "MultinomialNB", "TextClassifier", "load"]
