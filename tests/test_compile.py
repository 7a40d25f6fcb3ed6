"""Laws of compilation: one source, two ways to run it."""

import inspect
import json
import os
import subprocess
import sys
from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp

import discem
from discem import _compile
from discem.engines.sequential import score_all, sweep


class Square(NamedTuple):
    side: float


class Circle(NamedTuple):
    radius: float


class Triangle(NamedTuple):
    height: float


@pytest.fixture
def area(monkeypatch):
    """A generic function of our own, of which the package's registries keep no trace."""
    for name in ("_sources", "_callees"):
        monkeypatch.setattr(_compile, name, getattr(_compile, name).copy())
    monkeypatch.setattr(_compile, "_announced", _compile._announced)

    @_compile.generic
    def area(shape, scale):
        """Area of a shape."""

    @area.register(Square)
    def _square(shape, scale):
        return scale * shape.side**2

    @area.register(Circle)
    def _circle(shape, scale):
        return scale * 3.0 * shape.radius**2

    return area


def test_generic_functions_dispatch_on_the_type_of_the_first_argument(area):
    """By a table in plain Python; the name and the docstring are the stub's."""
    assert area(Square(2.0), 10.0) == 40.0
    assert area(Circle(2.0), 10.0) == 120.0
    assert (area.__name__, area.__doc__) == ("area", "Area of a shape.")
    with pytest.raises(KeyError):
        area(3.0, 1.0)


def test_generic_functions_dispatch_in_compiled_code(area):
    """At compile time, to the same implementations; an unknown type is an error."""
    compiled = _compile._compile(lambda shape, scale: area(shape, scale))
    for shape in (Square(2.0), Circle(2.0)):
        assert compiled(shape, 10.0) == area(shape, 10.0)
    from numba.core.errors import TypingError

    with pytest.raises(TypingError):
        compiled(Triangle(2.0), 1.0)


def run_python(code, **environment):
    """Run `code` in a fresh interpreter with the package on its path; return what it printed."""
    source = os.path.dirname(os.path.dirname(discem.__file__))
    result = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": source, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_importing_the_package_does_not_import_numba():
    """Numba is paid for by the first kernel that runs, not by `import discem`."""
    assert run_python("import sys, discem; print('numba' in sys.modules)").strip() == "False"


FIT = """
import json, sys
import numpy as np, discem
rng = np.random.default_rng(0)
y = np.arange(30) % 3
X = rng.normal(size=(30, 2)) + y[:, None]
C = rng.poisson(1.0 + np.eye(3)[y])
result = [
    kind(max_iter=2, random_state=0).fit(D, y).predict_joint_log_proba(D).tolist()
    for kind, D in ((discem.GaussianNB, X), (discem.MultinomialNB, C))
]
"""


def test_without_numba_the_same_source_gives_the_same_model():
    """NUMBA_DISABLE_JIT=1 runs the kernels as plain Python: the same joint, no numba at all."""
    code = FIT + "print(json.dumps([result, 'numba' in sys.modules]))"
    plain, imported = json.loads(run_python(code, NUMBA_DISABLE_JIT="1"))
    assert not imported
    scope: dict = {}
    exec(FIT, scope)
    for got, expected in zip(scope["result"], plain, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-9)


def signatures():
    """How many versions of each kernel are compiled in this process."""
    held = [inspect.getclosurevars(each).nonlocals["compiled"] for each in (sweep, score_all)]
    return [len(each.signatures) for each in held]


COUNTS = np.random.default_rng(0).poisson(2.0, size=(12, 3)).astype(float)
CODES = np.arange(12) % 2


def locked(X):
    """A read-only view, as joblib hands to workers."""
    for part in (X.data, X.indices, X.indptr) if sp.issparse(X) else (X,):
        part.flags.writeable = False
    return X


def wide(X):
    """Sparse with 64-bit indices."""
    X = sp.csr_array(X)
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


VARIANTS = {
    "fortran": (np.asfortranarray(COUNTS), CODES, {}),
    "float32": (COUNTS.astype(np.float32), CODES.astype(np.int32), {}),
    "integers": (COUNTS.astype(int), np.array(["a", "b"])[CODES], {}),
    "other shape": (np.tile(COUNTS, (2, 3))[::2, ::-1], np.arange(12) % 3, {}),
    "options": (COUNTS, CODES, {"average": False, "init": "prior"}),
    "hinge": (COUNTS, CODES, {"loss": "hinge"}),
    "blend": (COUNTS, CODES, {"loss": discem.Blend(0.5)}),
    "nll": (COUNTS, CODES, {"loss": "nll"}),
    "label sets": (COUNTS, np.random.default_rng(1).random((12, 3)) < [0.5, 0.5, 1.0], {}),
    "soft labels": (COUNTS, np.random.default_rng(1).dirichlet(np.ones(3), 12), {}),
    "schedule": (COUNTS, CODES, {"step": discem.inverse(1)}),
    "schedule of one number": (COUNTS, CODES, {"step": lambda t: 0.01}),
    "share": (COUNTS, CODES, {"projection": discem.Interior(0.25)}),
    "weights": (COUNTS, CODES, {"total_samples": 20, "class_weight": "balanced"}),
    "csr matrix": (sp.csr_matrix(COUNTS), CODES, {}),
    "csc": (sp.csc_array(COUNTS), CODES, {}),
    "coo": (sp.coo_array(COUNTS), CODES, {}),
    "64-bit indices": (wide(COUNTS), CODES, {}),
    "read-only": (locked(COUNTS.copy()), locked(CODES.copy()), {}),
    "read-only sparse": (locked(sp.csr_array(COUNTS)), CODES, {}),
}


def fit(X, y, **options):
    discem.MultinomialNB(max_iter=1, **options).fit(X, y).predict(X)
    if not sp.issparse(X):
        discem.GaussianNB(max_iter=1, **options).fit(X, y).predict(X)


@pytest.mark.parametrize(("X", "y", "options"), VARIANTS.values(), ids=VARIANTS.keys())
def test_one_compilation_serves_every_fit_of_a_kind(X, y, options):
    """Size, memory order, number type, storage and options of a fit add no signature."""
    fit(COUNTS, CODES)
    before = signatures()
    fit(X, y, **options)
    assert signatures() == before


LATE = """
import sys
import numpy as np, discem
y = np.arange(30) % 3
X = np.random.default_rng(0).exponential(1.0 + 5.0 * y[:, None], size=(30, 2))
discem.GaussianNB(max_iter=1).fit(X, y)
sys.path.insert(0, {tests!r})
import exponential
model = discem.MixtureClassifier(family="exponential", max_iter=2, random_state=0).fit(X, y)
print(model.score(X, y) > 0.5, discem.GaussianNB(max_iter=1).fit(X, y).score(X, y) > 0.5)
"""


def test_what_is_registered_late_is_compiled_too():
    """A family of one's own may come after the first fit, as it does in a notebook."""
    code = LATE.format(tests=os.path.dirname(os.path.abspath(__file__)))
    assert run_python(code).split() == ["True", "True"]


def test_the_key_of_the_cache_does_not_depend_on_what_was_imported():
    """Estimators are imported when they are asked for, compiled code is not."""
    code = "import discem; from discem import _compile; print(len(_compile._sources))"
    more = code.replace("import discem;", "import discem; from discem import *;")
    assert run_python(code) == run_python(more)


def test_one_compilation_serves_batches_of_every_size():
    """Batches have code of their own, which those who use none need not wait for."""
    fit(COUNTS, CODES, batch_size=4)
    before = signatures()
    for batch_size in (2, 5, 1000):
        fit(COUNTS, CODES, batch_size=batch_size, loss="hinge")
    assert signatures() == before


# --- the cache on disk ----------------------------------------------------------------------------


class Config:
    CACHE_DIR = ""


@pytest.fixture
def sources(tmp_path, monkeypatch):
    """A package of one file, and a cache beside it."""
    file = tmp_path / "callee.py"
    file.write_text("one")
    monkeypatch.setattr(_compile, "_sources", {str(file): b"one"})
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return file


def folder():
    config = Config()
    with _compile._cache_directory(config) as usable:
        chosen = config.CACHE_DIR
    assert config.CACHE_DIR == "", "the setting of the user was not restored"
    return chosen if usable else None


def test_the_cache_is_keyed_by_every_source(sources):
    """A change in any file that takes part opens another cache; changing back finds the first."""
    first = folder()
    assert os.path.isdir(first)
    _compile._sources[str(sources)] = b"two"
    assert folder() != first
    _compile._sources[str(sources)] = b"one"
    assert folder() == first


def test_no_place_for_a_cache_is_no_error(sources, monkeypatch):
    """Where nothing can be written, kernels are compiled without a cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(sources))  # a file, not a directory
    assert folder() is None
