"""What is promised in writing: public names are documented, links lead somewhere, examples run."""

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator

import discem

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("benchmarks/*.md")])
EXAMPLES = sorted(ROOT.glob("examples/*.py"))
ESTIMATORS = [
    value
    for value in (getattr(discem, name) for name in discem.__all__)
    if inspect.isclass(value) and issubclass(value, BaseEstimator)
]


@pytest.mark.parametrize("name", discem.__all__)
def test_public_names_have_a_docstring(name):
    """One of their own, not what NamedTuple or a base class lends."""
    doc = vars(getattr(discem, name)).get("__doc__") or getattr(discem, name).__doc__ or ""
    assert len(doc.split()) > 3
    assert not re.match(rf"{name}\([\w, ]*\)$", doc)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: e.__name__)
def test_estimators_document_their_parameters(estimator):
    parameters = _section(inspect.getdoc(estimator), "Parameters")
    for name in inspect.signature(estimator).parameters:
        assert re.search(rf"^{name} : ", parameters, re.MULTILINE), name


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: e.__name__)
def test_estimators_document_their_methods(estimator):
    for name, method in inspect.getmembers(estimator, callable):
        if not name.startswith("_"):
            assert inspect.getdoc(method), name


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: e.__name__)
def test_documented_defaults_are_the_defaults(estimator):
    parameters = _section(inspect.getdoc(estimator), "Parameters")
    for name, parameter in inspect.signature(estimator).parameters.items():
        line = re.search(rf"^{name} : .*default=(.*)$", parameters, re.MULTILINE)
        if line:
            assert line[1] == repr(parameter.default).replace("'", '"').replace("0.001", "1e-3")


def _section(doc, title):
    return re.search(rf"{title}\n-+\n(.*?)(?=\n\n\w+\n---|\Z)", doc, re.DOTALL)[1]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if target.startswith(("http:", "https:", "mailto:")):
            continue
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        assert linked.exists(), f"{page.name} links to {target}"
        if anchor:
            assert anchor in _anchors(linked), f"{page.name} links to {target}"


def _anchors(page):
    """The anchors of a page's headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return [re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_examples_in_pages_end_before_the_fence(page):
    """A doctest session needs a blank line before the closing fence, else it expects the fence."""
    for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL):
        assert ">>>" not in block or block.endswith("\n\n"), block


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda p: p.stem)
def test_examples_run(example, tmp_path):
    surroundings = os.environ | {"PYTHONPATH": str(Path(discem.__file__).parents[1])}
    run = subprocess.run(
        [sys.executable, str(example)],
        cwd=tmp_path,
        env=surroundings,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip()
    assert not list(tmp_path.iterdir()), "an example leaves files behind"
