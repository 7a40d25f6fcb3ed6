"""Classification and regression with joint distributions p(y, x), trained to predict.

Start with `TableClassifier`, `TableRegressor` or `TextClassifier`. They take missing cells, explain
each prediction exactly, and learn from streams. `docs/getting-started.md` helps you to choose.
"""

__version__ = "0.3.0.dev0"

TYPE_CHECKING = False  # that of typing takes longer to import than all that is needed here
if TYPE_CHECKING:
    from typing import Any

    from .engines import Dask, Device
    from .estimators import (
        GaussianClassifier,
        GaussianNB,
        MixtureClassifier,
        MultinomialNB,
        NaiveBayes,
        TableClassifier,
        TableImputer,
        TableRegressor,
        TextClassifier,
        TopicClassifier,
        load,
    )
    from .losses import NCLL, NLL, Blend, Hinge
    from .priors import (
        Dirichlet,
        Gamma,
        Levels,
        NormalBetaPrime,
        NormalGamma,
        NormalWishart,
        PaperNormalGamma,
    )
    from .projections import Check, Interior
    from .schedules import by_row, constant, inverse, power

__all__ = [
    "NCLL",
    "NLL",
    "Blend",
    "Check",
    "Dask",
    "Device",
    "Dirichlet",
    "Gamma",
    "GaussianClassifier",
    "GaussianNB",
    "Hinge",
    "Interior",
    "Levels",
    "MixtureClassifier",
    "MultinomialNB",
    "NaiveBayes",
    "NormalBetaPrime",
    "NormalGamma",
    "NormalWishart",
    "PaperNormalGamma",
    "TableClassifier",
    "TableImputer",
    "TableRegressor",
    "TextClassifier",
    "TopicClassifier",
    "by_row",
    "constant",
    "inverse",
    "load",
    "power",
]

_WHERE = {
    **dict.fromkeys(["NCLL", "NLL", "Blend", "Hinge"], ".losses"),
    **dict.fromkeys(["Dirichlet", "Gamma", "Levels", "NormalBetaPrime"], ".priors"),
    **dict.fromkeys(["NormalGamma", "NormalWishart", "PaperNormalGamma"], ".priors"),
    **dict.fromkeys(["Check", "Interior"], ".projections"),
    **dict.fromkeys(["by_row", "constant", "inverse", "power"], ".schedules"),
    **dict.fromkeys(["Dask", "Device"], ".engines"),
}  # all others are estimators
_MODULES = ["estimators", "families", "losses", "models", "priors", "projections", "schedules"]


def __getattr__(name: str) -> "Any":
    """Import what is asked for: the command line answers, and can be interrupted, before that."""
    from importlib import import_module

    if name in __all__:
        return getattr(import_module(_WHERE.get(name, ".estimators"), __name__), name)
    if name in _MODULES:
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
