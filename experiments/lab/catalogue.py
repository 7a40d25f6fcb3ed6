"""The list of experiments, and where their scripts are."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

from discem.exceptions import OptionError

OF_PAPER = ("toy", "mnb-hinge", "mnb-ncll", "accuracy", "sgd", "lda", "lda-losses", "data")
BEYOND = ("steps", "tables", "missing", "text")
ORDER = OF_PAPER + BEYOND  # of the page
SCRIPTS = Path(__file__).parents[1]


def load(name: str) -> Any:
    """The module of an experiment."""
    if name not in ORDER:
        raise OptionError(f"no experiment {name!r}; there is: {', '.join(ORDER)}")
    if str(SCRIPTS) not in sys.path:
        sys.path.insert(0, str(SCRIPTS))  # as for a script: it may use its neighbours
    return importlib.import_module(name.replace("-", "_"))
