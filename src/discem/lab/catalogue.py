"""The list of experiments, and where their scripts are."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

from ..exceptions import OptionError
from .workers import NotPossibleError

OF_PAPER = ("toy", "mnb-hinge", "mnb-ncll", "accuracy", "sgd", "lda", "lda-losses", "data")
BEYOND = ("steps", "tables", "missing", "text")
ORDER = OF_PAPER + BEYOND  # of the page


def scripts() -> Path:
    """The folder of the experiments: of the installed package, or of the checkout it is run from.

    Raises
    ------
    NotPossibleError
        If there is neither.
    """
    package = Path(__file__).parents[1]
    for folder in (package / "experiments", package.parents[1] / "experiments"):
        if (folder / "toy.py").exists():
            return folder
    raise NotPossibleError("the experiments are not installed: use a clone of the repository")


def available() -> list[str]:
    """Names of the experiments, in the order of the page."""
    folder = scripts()
    return [name for name in ORDER if (folder / _file(name)).exists()]


def load(name: str) -> Any:
    """The module of an experiment."""
    if name not in available():
        raise OptionError(f"no experiment {name!r}; there is: {', '.join(available())}")
    folder = str(scripts())
    if folder not in sys.path:
        sys.path.insert(0, folder)  # as for a script: it may use its neighbours
    return importlib.import_module(Path(_file(name)).stem)


def _file(name: str) -> str:
    return name.replace("-", "_") + ".py"
