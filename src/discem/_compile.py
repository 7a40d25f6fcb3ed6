"""Plain functions that also run compiled. The only file that imports numba.

Everything below is ordinary Python until the first kernel is called, so importing the package
costs nothing and `kernel.plain` is always there as the oracle of the compiled code.

* `helper` marks a function that compiled code may call, `vectorised` one made of simple loops.
* `generic` makes a function whose implementation is chosen by the type of its first argument
  (a NamedTuple): by a table look-up in Python, at compile time in compiled code.
* `kernel` marks an entry point, compiled on its first call and cached on disk.

Numba keys its cache by the source of the kernel alone and would miss a change in a file the kernel
calls into, so the cache directory is named after a hash of every file that takes part.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
from collections.abc import Callable, Iterator, KeysView
from pathlib import Path
from typing import Any, Protocol

# Kernels allocate nothing (what they need is passed in), so references need not be counted.
_OPTIONS = {"nogil": True, "error_model": "numpy", "_nrt": False}

# Nothing but compiled code calls these: what would take their arguments from Python is left out.
_INNER = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}

# (function, chooser of its implementation, options of its own)
_callees: list[tuple[Callable, Callable, dict[str, Any]]] = []
_sources: dict[str, bytes] = {}  # the files that take part, as they were when registered
_announced = 0  # how many of `_callees` numba knows already


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
        _sources[source] = path.read_bytes() if path.exists() else source.encode()


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
    _callees.append((dispatch, lambda first, *rest: table.get(first.instance_class), {}))
    return dispatch  # type: ignore[return-value]


def kernel(function: Callable) -> Kernel:
    """Compile `function` on its first call, with everything it calls."""
    _take_part(function)
    compiled: Callable | None = None
    known = 0, 0

    @functools.wraps(function)
    def call(*args):
        nonlocal compiled, known
        if compiled is None or known != (len(_sources), len(_callees)):
            # what was registered since, such as a family of one's own, belongs to the cache's key
            compiled, known = _compile(function), (len(_sources), len(_callees))
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
    with _cache_directory(numba.config) as usable:
        return numba.njit(**_OPTIONS, cache=usable)(function)


@contextlib.contextmanager
def _cache_directory(config: Any) -> Iterator[bool]:
    """Point numba at a directory of our own while a kernel is declared, if one can be written."""
    base = config.CACHE_DIR or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    digest = hashlib.sha256()
    for source in sorted(_sources):
        digest.update(_sources[source])
    folder = Path(base) / "discem" / digest.hexdigest()[:16]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        usable = False
    else:
        usable = os.access(folder, os.W_OK)
    before = config.CACHE_DIR
    if usable:
        config.CACHE_DIR = str(folder)
    try:
        yield usable
    finally:
        config.CACHE_DIR = before
