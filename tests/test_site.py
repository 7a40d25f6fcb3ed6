"""The documentation site, as ``make docs`` builds it: its links, and what a reader meets."""

import ast
import functools
import json
import os
import re
import subprocess
import sys
import threading
import time
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest

import discem

pytest.importorskip("sphinx", reason="the site needs Sphinx: pip install -e '.[docs]'")
for extension in (
    "myst_parser",
    "numpydoc",
    "pydata_sphinx_theme",
    "sphinx_design",
    "sphinx_gallery",
):
    pytest.importorskip(extension, reason=f"the site needs {extension}: pip install -e '.[docs]'")

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Build it with warnings as errors, once for all workers of xdist."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "site"
    log = folder / "log.txt"
    try:
        folder.mkdir()
    except FileExistsError:
        while not log.exists():
            time.sleep(0.2)
    else:
        said = build(folder)
        (folder / "part.txt").write_text(said, encoding="utf-8")
        (folder / "part.txt").rename(log)
    assert log.read_text(encoding="utf-8") == ""
    return folder / "html"


def build(folder):
    """What Sphinx has to complain of."""
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-c", "docs", "-d"]
    run = subprocess.run(
        [*command, str(folder / "trees"), ".", str(folder / "html")],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(Path(discem.__file__).parents[1])},
        capture_output=True,
        text=True,
    )
    return run.stderr if run.returncode == 0 else run.stderr or "Sphinx failed"


def pages(site):
    return sorted(page for page in site.rglob("*.html") if "_static" not in page.parts)


def test_links_lead_somewhere(site):
    found = {page: page.read_text(encoding="utf-8") for page in pages(site)}
    ids = {page: set(re.findall(r'\bid="([^"]+)"', text)) for page, text in found.items()}
    dead = []
    for page, text in found.items():
        for link in re.findall(r'\b(?:href|src)="([^"]+)"', text):
            if re.match(r"https?:|mailto:|data:|javascript:", link):
                continue
            path, anchor = urldefrag(unquote(link).split("?")[0])
            target = (page.parent / path).resolve() if path else page
            known = anchor in ids.get(target, ()) if anchor and target in ids else True
            if not target.exists() or not known:
                dead.append(f"{page.relative_to(site)} links to {link}")
    assert not dead
    assert len(found) > 50


@pytest.mark.parametrize("name", discem.__all__)
def test_public_names_have_a_page(site, name):
    page = site / "docs" / "api" / "generated" / f"discem.{name}.html"
    assert f'id="discem.{name}"' in page.read_text(encoding="utf-8")


def test_estimators_show_their_options_and_methods(site):
    page = site / "docs" / "api" / "generated" / "discem.TableClassifier.html"
    text = page.read_text(encoding="utf-8")
    assert "**options" not in text
    for name in ("fit", "partial_fit", "explain", "set_class_prior", "save"):
        assert f'id="discem.TableClassifier.{name}"' in text


TUTORIALS = sorted((ROOT / "tutorials").glob("*.py"))


@pytest.mark.parametrize("tutorial", TUTORIALS, ids=lambda p: p.stem)
def test_tutorials_show_what_they_print_and_are_notebooks(site, tutorial):
    """The cells of the notebook, one after the other, are the script; the site ran it."""
    page = (site / "docs" / "tutorials" / f"{tutorial.stem}.html").read_text(encoding="utf-8")
    assert "sphx-glr-script-out" in page and "images/sphx_glr_" in page
    notebook = json.loads((site / "docs" / "tutorials" / f"{tutorial.stem}.ipynb").read_text())
    code = ["".join(c["source"]) for c in notebook["cells"] if c["cell_type"] == "code"]
    assert len(code) > 3
    statements = [ast.dump(node) for node in ast.parse("\n".join(code)).body]
    script = ast.parse(tutorial.read_text(encoding="utf-8")).body[1:]  # after the title
    assert statements == [ast.dump(node) for node in script]


# --- in a browser ---------------------------------------------------------------------------------


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture(scope="module")
def address(site):
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=site))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


@pytest.fixture
def view(browser, address):
    """Opens a tab; afterwards nothing may have gone wrong, or come from elsewhere."""
    troubles, contexts = [], []

    def open_tab(width=1280, scheme="light"):
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, base_url=address
        )
        contexts.append(context)
        tab = context.new_page()
        tab.set_default_timeout(10_000)
        tab.on("console", lambda m: m.type in ("error", "warning") and troubles.append(m.text))
        tab.on("pageerror", lambda error: troubles.append(str(error)))
        tab.on("request", lambda r: r.url.startswith(address) or troubles.append(r.url))
        tab.on("response", lambda r: r.ok or r.status == 304 or troubles.append(r.url))
        return tab

    yield open_tab
    for context in contexts:
        context.close()
    assert not troubles


def test_every_entry_of_the_navigation_resolves(view):
    tab = view()
    tab.goto("/")
    tab.wait_for_url("**/docs/index.html")
    sections = entries(tab, ".navbar-header-items .nav-link")
    assert {"Get started", "Tutorials", "API reference", "Results"} <= set(sections)
    for title, address in sections.items():
        assert tab.goto(address).ok
        assert tab.locator("h1").first.inner_text().startswith(title)
        for inner in entries(tab, ".bd-sidebar-primary .bd-links a").values():
            assert tab.request.get(inner).ok, inner


def entries(tab, selector):
    """Titles and addresses of links."""
    read = "all => all.map(link => [link.textContent.trim(), link.href])"
    links = tab.locator(selector).evaluate_all(read)
    return {title: address for title, address in links if title}


def test_search_finds_a_class(view):
    tab = view()
    tab.goto("/search.html?q=TableClassifier")
    results = tab.locator("#search-results li a")
    results.first.wait_for()
    found = results.evaluate_all("all => all.map(a => a.getAttribute('href'))")
    assert any("discem.TableClassifier.html" in each for each in found)


def test_light_and_dark(view):
    def brightness(scheme):
        tab = view(scheme=scheme)
        tab.goto("/docs/index.html")
        colour = tab.evaluate("getComputedStyle(document.body).backgroundColor")
        return sum(map(int, re.findall(r"\d+", colour)[:3]))

    assert brightness("dark") < 150 < 600 < brightness("light")


def test_no_page_scrolls_sideways_on_a_phone(view, site):
    tab = view(width=390)
    for page in pages(site):
        place = page.relative_to(site).as_posix()
        if place == "index.html" or ("generated" in place and "Table" not in place):
            continue  # a redirection; all of one kind
        tab.goto(f"/{place}")
        assert tab.evaluate("document.documentElement.scrollWidth") == 390, place
