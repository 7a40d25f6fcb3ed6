"""The scikit-learn surface: thin named presets over models, losses and engines."""

from .naive_bayes import GaussianNB, MultinomialNB

__all__ = ["GaussianNB", "MultinomialNB"]
