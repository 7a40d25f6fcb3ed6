"""What benchmarks share with the experiments, whose folder is put on the path."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "experiments"))  # last: some names are in both

from lab.datasets import DataNotFoundError, load_text
from lab.plots import key, panels
from lab.study import versions

__all__ = ["DataNotFoundError", "key", "load_text", "panels", "versions"]
