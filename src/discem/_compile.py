"""Plain functions that also run compiled. The only file that imports numba.

Everything below is ordinary Python until the first kernel is called, so importing the package
costs nothing and `kernel.plain` is always there as the oracle of the compiled code.

* `helper` marks a function that compiled code may call, `vectorised` one made of simple loops.
* `generic` makes a function whose implementation is chosen by the type of its first argument
  (a NamedTuple): by a table look-up in Python, at compile time in compiled code.
* `kernel` marks an entry point, compiled on its first call and cached on disk.

Numba keys its cache by the source of the kernel alone and would miss a change in a file the kernel
calls into, so the cache has a folder named after a hash of every file that takes part. What is in a
cache is run: a file is read only if nobody else can have written it, and only as it was written;
any other is compiled anew, and replaced. Where there is no room for a cache, there is none.
"""

from __future__ import annotations

import functools
import gc
import hashlib
import os
import pickle
import platform
import stat
import threading
from collections.abc import Callable, Iterator, KeysView
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

# Kernels allocate nothing (what they need is passed in), so references need not be counted.
_OPTIONS = {"nogil": True, "error_model": "numpy", "_nrt": False}

# Nothing but compiled code calls these: what would take their arguments from Python is left out.
_INNER = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}

# (function, chooser of its implementation, options of its own)
_callees: list[tuple[Callable, Callable, dict[str, Any]]] = []
# The files that take part, as they were when registered, this one for how it compiles them; None
# is code that is in no file.
_sources: dict[str, bytes | None] = {__file__: Path(__file__).read_bytes()}
_announced = 0  # how many of `_callees` numba knows already
_declaring = threading.RLock()  # kernels, one at a time


class Generic(Protocol):
    """A function with one implementation per type of its first argument."""

    kinds: KeysView[type]

    def __call__(self, *args: Any) -> Any: ...

    def register(self, kind: type) -> Callable[[Callable], Callable]: ...


class Kernel(Protocol):
    """A function compiled on its first call; `plain` is the same function as Python runs it."""

    plain: Callable

    def __call__(self, *args: Any) -> Any: ...


def _take_part(function: Callable) -> None:
    source = function.__code__.co_filename
    if source not in _sources:
        path = Path(source)
        _sources[source] = path.read_bytes() if path.exists() else None


def helper(function: Callable) -> Callable:
    """Let compiled code call `function`."""
    return _announce(function, {})


def vectorised(function: Callable) -> Callable:
    """A helper whose sums and products may be taken in any order, as vector instructions do."""
    return _announce(function, {"fastmath": {"reassoc", "contract", "nsz"}})


def _announce(function: Callable, options: dict[str, Any]) -> Callable:
    _take_part(function)
    _callees.append((function, lambda *types: function, options))
    return function


def generic(stub: Callable) -> Generic:
    """Dispatch on the type of the first argument; the stub gives the name and the docstring."""
    table: dict[type, Callable] = {}

    @functools.wraps(stub)
    def dispatch(first, *rest):
        return table[type(first)](first, *rest)

    def register(kind: type) -> Callable[[Callable], Callable]:
        def decorate(function: Callable) -> Callable:
            _take_part(function)
            table[kind] = function
            return function

        return decorate

    dispatch.register = register  # type: ignore[attr-defined]
    dispatch.kinds = table.keys()  # type: ignore[attr-defined]
    # a call would copy all arrays of a model and a room: it takes longer than what is done there
    inline = {"forceinline": True}
    _callees.append((dispatch, lambda first, *rest: table.get(first.instance_class), inline))
    return dispatch  # type: ignore[return-value]


def kernel(function: Callable) -> Kernel:
    """Compile `function` on its first call, with everything it calls."""
    _take_part(function)
    compiled, known = function, (0, 0)

    @functools.wraps(function)
    def call(*args):
        nonlocal compiled, known
        if known != (len(_sources), len(_callees)):
            with _declaring:  # other threads may be here, too
                # what was registered since, such as a family of one's own, belongs to the key
                now = len(_sources), len(_callees)
                if known != now:
                    compiled, known = _compile(function), now
        return compiled(*args)

    call.plain = function  # type: ignore[attr-defined]
    return call  # type: ignore[return-value]


def _compile(function: Callable) -> Callable:
    if os.environ.get("NUMBA_DISABLE_JIT", "0") == "1":
        return function
    import numba
    from numba.extending import overload

    global _announced
    for callee, choose, options in _callees[_announced:]:
        overload(callee, jit_options=_OPTIONS | _INNER | options, strict=False)(choose)
    _announced = len(_callees)
    compiled = numba.njit(**_OPTIONS)(function)
    compile_types = compiled.compile

    def compile_at_once(signature):
        with _optimised_once(), _uncollected():
            return compile_types(signature)

    compiled.compile = compile_at_once
    folder = _cache_folder(numba.config.CACHE_DIR)
    if folder is not None and function.__closure__ is None:  # what it closes over has no name
        compiled._cache = Cache(folder, function)
    return compiled


@contextmanager
def _optimised_once() -> Iterator[None]:
    """Let LLVM optimise all that a kernel calls with the kernel, and nothing by itself.

    Numba links what a function calls into it, then optimises and makes machine code of all that, at
    every level of calls; but only what Python calls is ever run by itself. These methods of Numba
    are its own. Where it has no such methods, all is as it was, and compiling takes twice as long.
    """
    from numba.core import codegen
    from numba.core.compiler_lock import global_compiler_lock

    library, engine = codegen.CPUCodeLibrary, codegen.JITCPUCodegen

    def optimise(self):
        if _is_entry(self):
            theirs["_optimize_final_module"](self)

    def finish(self):
        if _is_entry(self):
            theirs["_finalize_final_module"](self)
            return
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    def set_environment(self, name, environment):
        if self._engine.is_symbol_defined(name):  # that of others has no address
            theirs["set_env"](self, name, environment)

    ours = {
        "_optimize_final_module": (library, optimise),
        "_finalize_final_module": (library, finish),
        "set_env": (engine, set_environment),
    }
    needed = (*ours, "_finalize_dynamic_globals", "_verify_declare_only_symbols")
    if not all(hasattr(library, name) or hasattr(engine, name) for name in needed):
        yield
        return
    with global_compiler_lock:  # nobody else compiles anything, or exchanges methods, meanwhile
        theirs = {name: getattr(kind, name) for name, (kind, _) in ours.items()}
        for name, (kind, method) in ours.items():
            setattr(kind, name, method)
        try:
            yield
        finally:
            for name, (kind, _) in ours.items():
                setattr(kind, name, theirs[name])


def _is_entry(library: Any) -> bool:
    """Whether a library of Numba has a function that Python calls."""
    module = library._shared_module or library._final_module  # from the cache, or just made
    return any(function.name.startswith("_ZN7cpython") for function in module.functions)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Leave garbage where it is: there is little of it, among millions of objects to look at."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


# --- the cache on disk ----------------------------------------------------------------------------


class Cache:
    """Compiled forms of a kernel on disk, one file for each; numba asks for them by signature.

    Whatever goes wrong with a file, the kernel is compiled instead.
    """

    def __init__(self, folder: Path, function: Callable):
        self.cache_path = str(folder)
        self.folder, self.function = folder, function

    def load_overload(self, signature: Any, context: Any) -> Any:
        """What was compiled for these types, or None."""
        from numba.core.compiler import CompileResult

        context.refresh()
        key = self._key(signature, context.codegen())
        with suppress(Exception):
            found, parts = pickle.loads(_read_sealed(self._path(key)))
            if found == key:
                return CompileResult._rebuild(context, *parts)
        return None

    def save_overload(self, signature: Any, result: Any) -> None:
        """Keep what was compiled; a full disk is no reason not to go on."""
        from numba.core.serialize import dumps

        key = self._key(signature, result.codegen)
        with suppress(Exception):
            if not result.library.has_dynamic_globals:  # addresses of this process
                _write_sealed(self._path(key), dumps((key, result._reduce())))

    def _key(self, signature: Any, codegen: Any) -> tuple:
        """All that compiled code depends on."""
        import numba

        code, function = self.function.__code__, self.function
        source = self.folder.name, function.__module__, function.__qualname__, code.co_firstlineno
        target = platform.python_version(), numba.__version__, codegen.magic_tuple()
        return signature, source, target

    def _path(self, key: tuple) -> Path:
        return self.folder / f"{self.function.__name__}-{_digest(repr(key).encode()).hex()[:32]}"


def _cache_folder(base: str) -> Path | None:
    """A folder for what is compiled of these sources, which nobody else can write; None if none."""
    try:
        base = base or os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
        sources = [_sources[name] for name in sorted(_sources)]
        if None in sources:
            return None  # nobody can tell whether it is the same next time
        digest = _digest(b"".join(sources)).hex()[:16]  # type: ignore[arg-type]
        folder = Path(base).absolute() / "discem" / digest
        missing = [each for each in (folder, *folder.parents) if not each.exists()]
        for each in reversed(missing):
            with suppress(FileExistsError):  # another process was faster
                each.mkdir(mode=0o700)
        return folder if _is_private(folder.parent) and _is_private(folder) else None
    except (OSError, RuntimeError):  # nothing can be made there, or there is no home
        return None


def _is_private(folder: Path) -> bool:
    """Whether only we can write there; a folder of ours that is open to others is closed first."""
    status = folder.stat()
    if _is_open(status) and status.st_uid == os.geteuid():
        folder.chmod(0o700)
        status = folder.stat()
    return stat.S_ISDIR(status.st_mode) and not _is_open(status)


def _is_open(status: os.stat_result) -> bool:
    """Whether anybody but us (and root, who can do anything) may have written this."""
    if os.name != "posix":
        return False  # a profile's folders are its owner's
    return status.st_uid not in (0, os.geteuid()) or bool(status.st_mode & 0o022)


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()


def _read_sealed(path: Path) -> bytes:
    """The content of a file of ours, if it is as it was written."""
    with open(path, "rb") as file:
        if _is_open(os.fstat(file.fileno())):
            raise PermissionError(f"{path} may have been written by others")
        seal, content = file.read(32), file.read()
    if seal != _digest(content):
        raise ValueError(f"{path} is damaged")
    return content


def _write_sealed(path: Path, content: bytes) -> None:
    """Write a file that `_read_sealed` reads; until it is whole, it is not read."""
    path.unlink(missing_ok=True)
    with open(path, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.write(_digest(content) + content)
