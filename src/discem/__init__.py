"""discem: generative classifiers trained discriminatively, online."""

__version__ = "0.2.0.dev0"

from .estimators import (
    GaussianNB,
    MixtureClassifier,
    MultinomialNB,
    TextClassifier,
    TopicClassifier,
    load,
)
from .losses import NCLL, NLL, Blend, Hinge
from .priors import Dirichlet, NormalBetaPrime, NormalGamma, PaperNormalGamma
from .projections import Check, Interior
from .schedules import constant, inverse, power

__all__ = [
    "NCLL",
    "NLL",
    "Blend",
    "Check",
    "Dirichlet",
    "GaussianNB",
    "Hinge",
    "Interior",
    "MixtureClassifier",
    "MultinomialNB",
    "NormalBetaPrime",
    "NormalGamma",
    "PaperNormalGamma",
    "TextClassifier",
    "TopicClassifier",
    "constant",
    "inverse",
    "load",
    "power",
]
