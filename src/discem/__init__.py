"""discem: generative classifiers trained discriminatively, online."""

__version__ = "0.2.0.dev0"

from typing import TYPE_CHECKING, Any

from . import estimators
from .estimators.naive_bayes import GaussianNB, MultinomialNB
from .losses import NCLL, NLL, Blend, Hinge
from .priors import Dirichlet, NormalBetaPrime, NormalGamma, PaperNormalGamma
from .projections import Check, Interior
from .schedules import constant, inverse, power

if TYPE_CHECKING:
    from .estimators import MixtureClassifier, TextClassifier, TopicClassifier, load

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


def __getattr__(name: str) -> Any:
    if name in __all__:  # the other estimators
        return getattr(estimators, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
