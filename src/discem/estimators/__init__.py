"""The scikit-learn surface: thin named presets over models, losses and engines."""

from ._files import load
from .naive_bayes import GaussianNB, MultinomialNB

__all__ = ["GaussianNB", "MultinomialNB", "load"]
