"""The scikit-learn surface: thin named presets over models, losses and engines.

Each is imported when it is asked for, so that those who need one do not wait for all.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._files import load
    from .imputer import TableImputer
    from .mixture import MixtureClassifier
    from .naive_bayes import GaussianNB, MultinomialNB
    from .presets import GaussianClassifier, NaiveBayes
    from .regressor import TableRegressor
    from .table import TableClassifier
    from .text import TextClassifier
    from .topics import TopicClassifier

__all__ = [
    "GaussianClassifier",
    "GaussianNB",
    "MixtureClassifier",
    "MultinomialNB",
    "NaiveBayes",
    "TableClassifier",
    "TableImputer",
    "TableRegressor",
    "TextClassifier",
    "TopicClassifier",
    "load",
]

_WHERE = {
    "GaussianClassifier": ".presets",
    "GaussianNB": ".naive_bayes",
    "MixtureClassifier": ".mixture",
    "MultinomialNB": ".naive_bayes",
    "NaiveBayes": ".presets",
    "TableClassifier": ".table",
    "TableImputer": ".imputer",
    "TableRegressor": ".regressor",
    "TextClassifier": ".text",
    "TopicClassifier": ".topics",
    "load": "._files",
}


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_WHERE[name], __name__), name)
