"""What is promised in writing: public names are documented, links lead somewhere, examples run."""

import ast
import doctest
import importlib.util
import inspect
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator

import discem
from discem.datasets import customers
from discem.estimators._docs import documented
from discem.families import Family

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    page
    for folder in (".", "docs", "benchmarks", "experiments")
    for page in ROOT.glob(f"{folder}/*.md")
)
EXAMPLES = sorted(ROOT.glob("examples/*.py"))
if importlib.util.find_spec("sphinx_gallery") is None:  # else tests/test_site.py runs them
    EXAMPLES += sorted(ROOT.glob("tutorials/*.py"))
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
    for name in estimator().get_params(deep=False):
        assert re.search(rf"^{name} : ", parameters, re.MULTILINE), name


def test_documentation_does_not_need_the_signature_of_a_class():
    """Python 3.11.2, that of Debian 12, takes it from an inherited __new__."""

    class Mine(discem.GaussianNB):
        """A class of one's own.

        {common}
        """

        def __new__(cls, *args, **options):
            return super().__new__(cls, *args, **options)

    assert f"max_iter : int, default={Mine().max_iter}" in documented(Mine).__doc__


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: e.__name__)
def test_estimators_document_their_methods(estimator):
    for name, method in inspect.getmembers(estimator, callable):
        if not name.startswith("_"):
            assert inspect.getdoc(method), name


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: e.__name__)
def test_documented_defaults_are_the_defaults(estimator):
    parameters = _section(inspect.getdoc(estimator), "Parameters")
    for name, default in estimator().get_params(deep=False).items():
        line = re.search(rf"^{name} : .*default=(.*)$", parameters, re.MULTILINE)
        if line:
            assert line[1] == repr(default).replace("'", '"').replace("0.001", "1e-3")


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


def test_the_gallery_has_every_picture():
    gallery = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
    pictures = [*ROOT.glob("docs/*.png"), *ROOT.glob("experiments/results/*.png")]
    assert len(pictures) > 10
    shown = {Path(path).name for path in re.findall(r"!\[.*?\]\((.*?)\)", gallery)}
    assert {each.name for each in pictures} == shown


def test_the_front_page_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= 900


def test_the_code_of_the_first_page_of_the_site_runs():
    text = (ROOT / "docs" / "index.rst").read_text(encoding="utf-8")
    code = textwrap.dedent(re.search(r"code-block:: python\n(.*?)(?=\n\S)", text, re.DOTALL)[1])
    rows, y = customers(200, random_state=0)
    known = {"X": rows[:90], "y": y[:90], "X_new": rows[90:], "X_more": rows[90:], "y_more": y[90:]}
    exec(code, known)
    assert known["model"].score(rows, y) > 0.6


def test_the_citation_names_this_version():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {discem.__version__}\n" in citation


FAMILY_PAGE = (ROOT / "docs" / "add-a-family.md").read_text()


def test_the_page_of_families_shows_the_family_of_the_tests():
    """All of `exponential.py`, piece by piece and to the letter, and no method beside."""
    examples = doctest.DocTestParser().get_examples(FAMILY_PAGE)
    shown = _pieces("".join(example.source for example in examples))
    real = _pieces((ROOT / "tests" / "exponential.py").read_text())
    assert len(real) > 30
    for place, source in real.items():
        assert shown.get(place) == source, f"{place} differs between page and file"
    owners = {owner for owner, _ in real if owner}
    assert {place for place in shown if place[0] in owners} <= real.keys()


def _pieces(source):
    """What a file defines: by class, where methods are one by one, and by name or else by text."""
    lines, pieces = source.splitlines(), {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.Expr):
            continue  # the docstring of the file, or an example
        has_methods = isinstance(node, ast.ClassDef) and any(
            isinstance(part, ast.FunctionDef) for part in node.body
        )
        for part in node.body if has_methods else [node]:
            first = min([part.lineno, *(d.lineno for d in getattr(part, "decorator_list", []))])
            text = "\n".join(lines[first - 1 : part.end_lineno])
            owner = node.name if has_methods else None
            pieces[owner, getattr(part, "name", text)] = text
    return pieces


def test_the_page_of_families_names_every_method_of_the_record():
    """And says which have no default."""
    table = {}
    for names, default in re.findall(r"^\| (`.*?`) \| .*? \| (.*?) \|$", FAMILY_PAGE, re.MULTILINE):
        table |= dict.fromkeys(re.findall(r"`(\w+)`", names), default)
    public = {name for name in vars(Family) | Family.__annotations__ if not name.startswith("_")}
    assert public <= table.keys()
    for name in public:
        member = vars(Family).get(name)
        lacking = inspect.isfunction(member) and "NotImplementedError" in inspect.getsource(member)
        assert (table[name] == "required") == (lacking or member is None), name


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda p: p.stem)
def test_examples_run(example, tmp_path):
    source = str(Path(discem.__file__).parents[1])
    surroundings = os.environ | {"PYTHONPATH": source, "MPLBACKEND": "agg"}
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
