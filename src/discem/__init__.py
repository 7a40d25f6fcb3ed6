"""discem: generative classifiers trained discriminatively, online."""

__version__ = "0.1.0"

from .estimators import GaussianNB, MultinomialNB

__all__ = ["GaussianNB", "MultinomialNB"]
