"""The documentation site: ``make docs``.

The source of the site is the whole repository, so a link from one Markdown page to another is the
same on the site, in an editor and where the repository is browsed. Only the tutorials run code.
"""

import os
import shutil
from pathlib import Path

from docutils import nodes
from sklearn.base import BaseEstimator
from sphinx import addnodes
from sphinx.util import inspect
from sphinx_gallery.sorting import ExplicitOrder

import discem

project = "discem"
author = "The discem developers"
copyright = author
version = release = discem.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
include_patterns = [
    "docs/**",
    "README.md",
    "benchmarks/README.md",
    "experiments/README.md",
    "CONTRIBUTING.md",
    "CODE_OF_CONDUCT.md",
    "SECURITY.md",
    "CHANGELOG.md",
]
exclude_patterns = [".*", "docs/_*", "output", "src", "tests", "examples", "tutorials"]
root_doc = "docs/index"
templates_path = [str(Path(__file__).with_name("_templates"))]

myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]

autosummary_generate = True
toc_object_entries_show_parents = "hide"
autodoc_typehints = "none"  # the sections of a docstring say more
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

# Scripts become pages and notebooks. It is this field's convention, needs no Jupyter, and the
# scripts are plain Python, which the tests run and a linter reads.
sphinx_gallery_conf = {
    "examples_dirs": "tutorials",
    "gallery_dirs": "docs/tutorials",
    "filename_pattern": r"\.py$",
    "within_subsection_order": ExplicitOrder(
        ["churn.py", "text.py", "stream.py", "few_labels.py", "five_lines.py"]
    ),
    "capture_repr": ("_repr_html_",),
    "show_signature": False,
    "show_memory": False,
    "min_reported_time": 1e9,
    "reset_modules": ("matplotlib",),
    "matplotlib_animations": False,
    "remove_config_comments": True,
    "abort_on_example_error": True,
    "write_computation_times": False,
}
os.environ["OMP_NUM_THREADS"] = "1"

html_theme = "pydata_sphinx_theme"
html_title = f"discem {release}"
html_sidebars = {page: [] for page in ("docs/index", "docs/getting-started", "docs/gallery")}
html_favicon = "_static/discem.svg"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_additional_pages = {"index": "start.html"}  # the pages are in a folder of their own
html_context = {"default_mode": "auto"}
html_copy_source = False
html_show_sphinx = False
html_theme_options = {
    "logo": {
        "text": "discem",
        "image_light": "_static/discem.svg",
        "image_dark": "_static/discem.svg",
        "alt_text": "",
    },
    "header_links_before_dropdown": 7,
    "navbar_align": "left",
    "navigation_with_keys": False,
    "show_prev_next": True,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "github-dark",
}


def skip_foreign(app, what, name, member, skip, options):
    """Leave out what a class has from scikit-learn, from tuples or from nobody."""
    function = getattr(member, "fget", member)
    module = getattr(function, "__module__", None) or ""
    return skip or not module.startswith("discem")


def sign(app, what, name, member, options, signature, returned):
    """Show the options of an estimator, whose ``__new__`` takes any."""
    if what != "class" or not issubclass(member, BaseEstimator):
        return None
    found = inspect.signature(member.__init__, bound_method=True)
    return inspect.stringify_signature(found, show_annotation=False), returned


def drop_blank_ends(app, doctree):
    """Examples in Markdown end with a blank line, which `doctest` needs and a reader does not."""
    for block in doctree.findall(nodes.literal_block):
        text = block.astext().rstrip()
        if len(block) == 1:
            block.rawsource, block[0] = text, nodes.Text(text)


def copy_linked_files(app, doctree, page):
    """Let links to files that are no pages, such as scripts, lead to a copy beside the pages."""
    for link in list(doctree.findall(addnodes.download_reference)):
        folder, uri = Path(page).parent, link["reftarget"]
        if uri.startswith("/"):  # as the tutorials have it, from the root
            uri = os.path.relpath(uri[1:], folder)
        target = Path(app.srcdir, folder, uri).resolve()
        copy = Path(app.outdir) / target.relative_to(app.srcdir)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(target, copy)
        link.replace_self(nodes.reference("", "", *link.children, refuri=uri, internal=True))


def setup(app):
    """Sphinx calls this."""
    app.connect("autodoc-skip-member", skip_foreign)
    app.connect("autodoc-process-signature", sign)
    app.connect("doctree-read", drop_blank_ends)
    app.connect("doctree-resolved", copy_linked_files)
