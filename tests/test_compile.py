"""Laws of compilation: one source, two ways to run it."""

import inspect
import json
import os
import pickle
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
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
model = discem.MixtureClassifier(families="exponential", max_iter=2, random_state=0).fit(X, y)
print(model.score(X, y) > 0.5, discem.GaussianNB(max_iter=1).fit(X, y).score(X, y) > 0.5)
"""


def test_what_is_registered_late_is_compiled_too():
    """A family of one's own may come after the first fit, as it does in a notebook."""
    code = LATE.format(tests=os.path.dirname(os.path.abspath(__file__)))
    assert run_python(code).split() == ["True", "True"]


def test_the_key_of_the_cache_does_not_depend_on_what_was_imported():
    """Estimators are imported when they are asked for, compiled code is not."""
    code = "from discem import {}; from discem import _compile; print(*sorted(_compile._sources))"
    all_of_it = run_python(code.format("*"))
    for name in ("GaussianNB", "TextClassifier", "engines"):
        assert run_python(code.format(name)) == all_of_it


def test_one_compilation_serves_batches_of_every_size():
    """Batches have code of their own, which those who use none need not wait for."""
    fit(COUNTS, CODES, batch_size=4)
    before = signatures()
    for batch_size in (2, 5, 1000):
        fit(COUNTS, CODES, batch_size=batch_size, loss="hinge")
    assert signatures() == before


OTHER_PROCESS = """
import inspect
import numpy as np, discem
from discem.engines.sequential import measure_all, score_all, sweep
X = np.random.default_rng(0).poisson(2.0, size=(12, 3)).astype(float)
discem.MultinomialNB(max_iter=1).fit(X, np.arange(12) % 2).predict(X)
discem.GaussianNB(max_iter=1).fit(X, np.arange(12) % 2).predict(X)
for kernel in (sweep, score_all, measure_all):
    stats = inspect.getclosurevars(kernel).nonlocals["compiled"].stats
    print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
"""


def test_another_process_compiles_nothing():
    """All that a fit needs is found again, by names that do not depend on the process."""
    run_python(OTHER_PROCESS)
    assert run_python(OTHER_PROCESS).split() == ["2", "0", "2", "0", "1", "0"]


# --- the cache on disk ----------------------------------------------------------------------------


def twice(x):
    return 2.0 * x


@pytest.fixture
def base(tmp_path, monkeypatch):
    """A cache of a package of one file."""
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(_compile, "_sources", {"callee.py": b"one"})
    return tmp_path / "cache"


def came_from_the_cache(function=twice):
    """Call a kernel as a new process would; say whether it was compiled before."""
    compiled = _compile._compile(function)
    assert compiled(3.0) == function(3.0)
    return bool(compiled.stats.cache_hits)


def cached(base):
    return sorted(path for path in base.rglob("*") if path.is_file())


def test_what_was_compiled_is_compiled_once(base):
    """It is found again, by this process and by others."""
    assert not came_from_the_cache()
    assert came_from_the_cache()
    assert len(cached(base)) == 1


def test_the_cache_is_keyed_by_every_source(base):
    """A change in any file that takes part opens another cache; changing back finds the first."""
    came_from_the_cache()
    _compile._sources["callee.py"] = b"two"
    assert not came_from_the_cache()
    _compile._sources["callee.py"] = b"one"
    assert came_from_the_cache()
    _compile._sources["<stdin>"] = None  # code that was typed in may be other code next time
    assert not came_from_the_cache()
    assert not came_from_the_cache()


@pytest.mark.parametrize("place", [0, 20, 40, 0.3, 0.6, 0.9, -1])
def test_a_flipped_byte_is_found_and_healed(base, place):
    """Wherever it is: what it would do is anybody's guess."""
    came_from_the_cache()
    (path,) = cached(base)
    content = bytearray(path.read_bytes())
    content[int(place * len(content)) if isinstance(place, float) else place] ^= 0x10
    path.write_bytes(content)
    assert not came_from_the_cache()
    assert came_from_the_cache()
    assert cached(base) == [path]


@pytest.mark.parametrize("size", [0, 10, 32, 1000])
def test_a_truncated_file_is_found_and_healed(base, size):
    """As a kill or a full disk leaves it."""
    came_from_the_cache()
    (path,) = cached(base)
    os.truncate(path, size)
    assert not came_from_the_cache()
    assert came_from_the_cache()


def test_another_kernels_file_is_not_taken_for_ours(base):
    """What is in a file says which code it is."""
    came_from_the_cache()
    (path,) = cached(base)
    _compile._sources["callee.py"] = b"two"
    came_from_the_cache()
    (other,) = set(cached(base)) - {path}
    other.write_bytes(path.read_bytes())
    assert not came_from_the_cache()


def test_a_full_disk_is_no_reason_to_stop(base, monkeypatch):
    """What was compiled is used; there is nothing to be found next time."""

    def full(path, content):
        path.write_bytes(content[:100])
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(_compile, "_write_sealed", full)
        assert not came_from_the_cache()
        assert not came_from_the_cache()
    assert not came_from_the_cache()
    assert came_from_the_cache()


posix = pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")


@posix
def test_only_we_can_write_the_cache(base):
    """Whatever the umask: what is in there is run."""
    before = os.umask(0)
    try:
        came_from_the_cache()
    finally:
        os.umask(before)
    (path,) = cached(base)
    for each in (path, path.parent, path.parent.parent, base):
        assert not each.stat().st_mode & 0o077, each


class Trap:
    """Leaves a trace where it is unpickled."""

    def __init__(self, trace):
        self.trace = trace

    def __reduce__(self):
        return open, (str(self.trace), "w")


@posix
def test_files_that_others_can_write_are_not_read(base, tmp_path):
    """A folder of ours is closed to others; what they may have put there meanwhile stays unread."""
    came_from_the_cache()
    (path,) = cached(base)
    path.parent.chmod(0o777)
    _compile._write_sealed(path, pickle.dumps(Trap(tmp_path / "trace")))
    path.chmod(0o666)
    assert not came_from_the_cache()
    assert not (tmp_path / "trace").exists()
    assert not path.parent.stat().st_mode & 0o077
    assert came_from_the_cache()


@posix
@pytest.mark.parametrize("depth", [0, 1, 2], ids=["file", "folder", "discem"])
def test_the_cache_of_someone_else_is_not_used(base, depth, monkeypatch):
    """Be it the file, its folder, or ours: what is in there would be run."""
    came_from_the_cache()
    (path,) = cached(base)
    owned = [path, *path.parents][depth].stat().st_ino
    monkeypatch.setattr(_compile, "_is_open", lambda status: status.st_ino == owned)
    monkeypatch.setattr(os, "geteuid", lambda: -1)  # nothing is ours to close
    assert not came_from_the_cache()


@posix
@pytest.mark.skipif(os.name == "posix" and os.getuid() == 0, reason="root can write anywhere")
def test_a_cache_that_cannot_be_written_is_read(base):
    """As on the read-only disk of an image that was warmed up."""
    came_from_the_cache()
    (path,) = cached(base)
    path.parent.chmod(0o500)
    try:
        assert came_from_the_cache()
        assert not came_from_the_cache(lambda x: 3.0 * x)
    finally:
        path.parent.chmod(0o700)


def test_no_place_for_a_cache_is_no_error(base, monkeypatch):
    """A file where there should be a folder, or nobody's home."""
    base.write_text("not a folder")
    assert not came_from_the_cache()
    monkeypatch.delenv("XDG_CACHE_HOME")

    def nobody():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(_compile.Path, "home", nobody)
    assert not came_from_the_cache()


def test_threads_that_compile_leave_the_configuration_alone(base, monkeypatch):
    """Numba's is that of everybody."""
    import numba

    before, njit = numba.config.CACHE_DIR, numba.njit

    def slow(*functions, **options):
        time.sleep(0.05)
        return njit(*functions, **options)

    monkeypatch.setattr(numba, "njit", slow)
    kernels = [_compile.kernel(twice) for _ in range(4)]
    seen, start = [], threading.Barrier(8)

    def call(kernel):
        start.wait()
        seen.append((kernel(4.0), numba.config.CACHE_DIR))

    threads = [threading.Thread(target=call, args=(kernels[i % 4],)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [(8.0, before)] * 8
    assert before == numba.config.CACHE_DIR


# --- how Numba is made to optimise a kernel once ----------------------------------------------


def _methods_of_numba():
    from numba.core import codegen

    library, engine = codegen.CPUCodeLibrary, codegen.JITCPUCodegen
    return library._optimize_final_module, library._finalize_final_module, engine.set_env


def test_threads_that_compile_at_once_leave_numba_as_it_was(base):
    """One that took another's methods for Numba's own would put them back for ever."""
    before, numbers = _methods_of_numba(), [1, 2, 3, 4]

    def kernel_of(number):
        namespace = {}
        exec(f"def add_{number}(x):\n    return x + {number}", namespace)
        return _compile._compile(namespace[f"add_{number}"])

    with ThreadPoolExecutor(len(numbers)) as pool:
        found = list(pool.map(lambda number: kernel_of(number)(10.0), numbers))
    assert found == [10.0 + number for number in numbers]
    assert _methods_of_numba() == before


def test_what_a_kernel_calls_can_be_called_from_python_too(base):
    """A function of a user's own, compiled by Numba on its way, has its machine code."""
    from numba import njit

    @njit
    def inner(x):
        return 2.0 * x

    def outer(x):
        return inner(x) + 1.0

    assert _compile._compile(outer)(3.0) == 7.0
    assert inner(3.0) == 6.0
