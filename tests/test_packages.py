"""What is installed with discem: the bounds of pyproject.toml are those that CI installs."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_oldest_versions_are_those_that_are_allowed():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    asked = project["dependencies"] + [
        each
        for name in ("cli", "plot", "frames", "parquet", "dask", "paper")
        for each in extras[name]
    ]
    asked += [each for each in extras["dev"] if each.startswith("pandas")]
    bounds = dict(re.match(r"([\w-]+)(?:\[.*\])?>=(.+)", each).groups() for each in asked)
    lines = (ROOT / ".ci" / "oldest.txt").read_text(encoding="utf-8").splitlines()
    tried = dict(line.split("==") for line in lines if not line.startswith("#"))
    assert {name: version(each) for name, each in bounds.items()} == {
        name: version(each) for name, each in tried.items()
    }


def version(text):
    """Give the numbers of a version, without zeros at its end."""
    numbers = [int(each) for each in text.split(".")]
    while numbers and not numbers[-1]:
        numbers.pop()
    return numbers
