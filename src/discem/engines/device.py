"""A device of PyTorch, such as a GPU: the same update, where its arrays are.

The state goes there at the beginning of a pass and comes back at its end, as the same model object
with other arrays. So whatever is not a pass, such as averages, snapshots and files, knows nothing
of devices. Rows go there once, and stay, where they fit; else some at a time, while the device is
at work on those before.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np

from .._arrays import here, mapped
from ..exceptions import MissingExtraError, OptionError
from ..figures import FIGURES
from ..targets import KnownLabels, Targets
from ._rule import Data, Done, Rule
from .sequential import Sequential, chunks_of

_PRECISIONS = ("float64", "float32")
_SHARE = 0.5  # of the free memory of the device, that rows may take
_PART = 256  # .. and of which one is an array to work on
_SMALL = 1 << 24  # bytes of such an array where memory is that of the host
_STEPS, _MOST = 512, 1 << 14  # of an epoch of large data, and the rows of one
_LARGEST = 1 << 16  # rows of a step of a stream
_LONGER = 500  # times as many rows between two looks at Ctrl-C


class Device(Sequential):
    """A device of PyTorch to train and predict on.

    Parameters
    ----------
    device : str or torch.device, default="cuda"
        As PyTorch names it.
    dtype : {"float64", "float32"}, default="float64"
        How precise its arrays are. Models come back in double precision either way.

    Examples
    --------
    >>> from discem import Device, GaussianNB
    >>> model = GaussianNB(device=Device("cuda", dtype="float32"))
    """

    in_place = False

    def __init__(self, device: Any = "cuda", dtype: str = "float64"):
        self.device = device
        self.dtype = dtype
        self._held: tuple[Any, Any] = None, None  # data, and their copy on the device

    def __repr__(self) -> str:
        exact = "" if self.dtype == _PRECISIONS[0] else f", dtype={self.dtype!r}"
        return f"Device({str(self.device)!r}{exact})"

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"device": str(self.device), "_held": (None, None)}

    # --- the update there -------------------------------------------------------------------------

    def learn(
        self, state, rule: Rule, t: int, data: Data, order, figures, chunk: int = 0
    ) -> Iterator[Done]:
        """Take one pass over the rows in `order`, in chunks; see `Sequential`."""
        state, own = self.placed(state), self._there(np.zeros(len(FIGURES)))
        data, chunk = self.moved(data), _LONGER * chunk
        for done in super().learn(state, rule, t, data, order, own, chunk):
            figures += self.fetched(own)
            own.zero_()
            yield done._replace(state=self.fetched(done.state))

    def score(self, model, rows, order=None) -> np.ndarray:
        """The scores ``ln p(y=k, x)`` of all rows, or of those in `order`, as (n, K)."""
        there = self.placed(model)
        parts = [
            self.fetched(there.scores(there.read(some))[0])
            for some in self.feed(rows, rows, there, order)
        ]
        return np.concatenate(parts) if parts else np.empty((0, model.n_classes))

    def measure(self, model, loss, data: Data, order, figures) -> np.ndarray:
        """Add to the figures what a pass would see, and return the loss of each row."""
        held, there = self._held
        own = self._there(np.zeros(len(FIGURES)))
        data = there if data is held else data
        losses = super().measure(self.placed(model), loss, data, order, own)
        figures += self.fetched(own)
        return self.fetched(losses)

    # --- where arrays are -------------------------------------------------------------------------

    def placed(self, state: Any) -> Any:
        """A state as arrays of the device; whole numbers, which say what is where, stay here."""
        whole = state.settled()
        return mapped(lambda own: self._there(own.copy()) if own.dtype.kind == "f" else own, whole)

    def fetched(self, found: Any) -> Any:
        """What was found there as arrays of NumPy, in double precision."""
        return mapped(_here, found, self._torch.Tensor)

    @contextmanager
    def holding(self, data: Any) -> Iterator[None]:
        """Keep these data on the device, if they fit, for as long as they are passed over."""
        self._held = data, self.moved(data)
        try:
            yield
        finally:
            self._held = None, None

    def moved(self, data: Any) -> Any:
        """Data on the device, if they fit there; else as they are."""
        held, there = self._held
        if data is held:
            return there
        sizes: list[int] = []
        mapped(lambda array: sizes.append(array.nbytes), data)
        free = self._free_bytes()
        return self._moved(data) if free is None or sum(sizes) <= _SHARE * free else data

    def feed(
        self, given: Any, rows: Any, model: Any, order: Any = None, batch: int = 1, most: int = 0
    ) -> Iterator[Any]:
        """Rows, or data with these rows, some at a time, on the device."""
        chunks = chunks_of(rows, order, self.rows_at_once(rows, model), batch, most)
        if self._is_there(rows):
            yield from (given.take(self._there(some)) for some in chunks)
            return
        with ThreadPoolExecutor(1) as pool:
            coming = None
            for some in chunks:
                last, coming = coming, pool.submit(self._sent, given, some)
                if last is not None:
                    yield self._received(last.result())
            if coming is not None:
                yield self._received(coming.result())

    def rows_at_once(self, rows: Any, model: Any) -> int:
        """How many rows to work on at a time: as many as there is memory for."""
        free = self._free_bytes()
        cells = max(rows.n_cells / max(rows.n_rows, 1), model.work_per_cell, 1.0)
        return int(max((_SMALL if free is None else free // _PART) / (8.0 * cells), 1))

    def batch(self, size: int, n_rows: int) -> int:
        """Rows per step, where a core would take so many; more, if there are many steps."""
        return max(size, min(n_rows // _STEPS, _MOST))

    def largest(self, rows: Any, model: Any) -> int:
        """Rows of the largest step of a stream, when many have been seen."""
        visits = model.work_per_cell  # a step looks at all numbers of the model for each row
        few = super().largest(rows, model)
        return int(np.clip(self.rows_at_once(rows, model) / visits, few, _LARGEST))

    def _free_bytes(self) -> int | None:
        """Bytes that are free on the device; None where its memory is that of the host."""
        torch, place = self._torch, self._place
        if place.type != "cuda":
            return None
        held = torch.cuda.memory_reserved(place) - torch.cuda.memory_allocated(place)
        return torch.cuda.mem_get_info(place)[0] + held

    def _moved(self, given: Any) -> Any:
        """Rows, or data, on the device, and whether all labels are there, which is seen once."""
        if isinstance(given, Data) and isinstance(given.targets, Targets) and given.targets.certain:
            given = given._replace(targets=KnownLabels(given.targets.codes))
        return mapped(self._there, given)

    def _there(self, array: np.ndarray) -> Any:
        torch = self._torch
        # counts of words are in single precision already where that is enough
        wide = array.dtype.kind == "f" and array.dtype != np.float32
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*not writable")
            own = torch.from_numpy(np.ascontiguousarray(array).reshape(array.shape))
        return own.to(self._place, getattr(torch, self.dtype) if wide else own.dtype)

    def _is_there(self, rows: Any) -> bool:
        found: list[Any] = []
        mapped(found.append, rows, self._torch.Tensor)
        return bool(found)

    def _sent(self, given: Any, some: np.ndarray) -> Any:
        """Some rows on the device, by a thread and a stream of their own."""
        cuda = self._torch.cuda
        stream = cuda.Stream(self._place) if self._place.type == "cuda" else None
        with cuda.stream(stream):
            there = self._moved(given.take(some))
        if stream is not None:
            stream.synchronize()
        return there

    def _received(self, there: Any) -> Any:
        """What another stream has brought, whose memory is now of use to this one."""
        if self._place.type == "cuda":
            now = self._torch.cuda.current_stream(self._place)
            mapped(lambda own: own.record_stream(now), there, self._torch.Tensor)
        return there

    @property
    def _place(self) -> Any:
        return self._torch.device(self.device)

    @property
    def _torch(self) -> Any:
        return _library()


def _here(array: Any) -> Any:
    """An array in double precision, in one piece; what is a single number is one here, too."""
    own = here(array)
    if own.dtype == np.float32:
        own = own.astype(np.float64)
    return np.ascontiguousarray(own) if own.ndim else own.item()


@cache
def _library() -> Any:
    import array_api_compat.torch  # noqa: F401  # by which families call it
    import torch

    return torch


@cache
def _problem(device: str, dtype: str) -> str:
    """What is wrong with a device, if anything."""
    torch = _library()
    try:
        torch.zeros(1, device=device, dtype=getattr(torch, dtype)).sum().item()
    except (RuntimeError, AssertionError, TypeError, NotImplementedError) as error:
        return str(error).splitlines()[0]
    return ""


def resolve_device(device: Any) -> Device | None:
    """The device that an option names; None is NumPy, on the host."""
    if device is None or (isinstance(device, str) and device == "cpu"):
        return None
    given = device if isinstance(device, Device) else Device(device)
    if given.dtype not in _PRECISIONS:
        raise OptionError(f"Device: dtype={given.dtype!r} must be one of {list(_PRECISIONS)}")
    auto = isinstance(given.device, str) and given.device == "auto"
    try:
        torch = _library()
    except ImportError as error:
        if auto:
            return None
        raise MissingExtraError(
            f"device={device!r} needs PyTorch: pip install 'discem[gpu]'"
        ) from error
    if auto:
        if not torch.cuda.is_available():
            return None
        given = Device("cuda", given.dtype)
    try:
        name = str(torch.device(given.device))
    except (RuntimeError, TypeError) as error:
        raise OptionError(
            f"device={device!r} is unknown: use 'cpu', 'auto', 'cuda' or a device of PyTorch"
        ) from error
    problem = _problem(name, given.dtype)
    if problem:
        raise OptionError(f"device={device!r} cannot be used here: {problem}")
    return given
