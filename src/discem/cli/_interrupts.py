"""Handle Ctrl-C and SIGTERM without cutting blocks that must be complete."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..exceptions import DiscemError


class Stopped(KeyboardInterrupt):
    """Raised if the user or the system ends the work; says what was kept."""

    def __init__(self, signum: int, kept: str = ""):
        super().__init__("interrupted" + (f"; {kept}" if kept else ""))
        self.signum = signum
        self.exit_code = 128 + signum  # as in shells: 130 for Ctrl-C, 143 for SIGTERM


class Interrupts:
    """Raise `Stopped` at once, or at the end of a protected block.

    A second signal ends even a protected block, and `cut` is then true. Whatever error a library
    raises when it is interrupted, `Stopped` leaves the block.
    """

    def __init__(self) -> None:
        self.cut = False
        self.received = 0  # the number of the signal, if any
        self._holding = False
        self._pending = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is not threading.main_thread():  # others do not get them
            return self
        for signum in (signal.SIGINT, signal.SIGTERM):
            self._before[signum] = signal.signal(signum, self._receive)
        return self

    def __exit__(self, kind: Any, error: BaseException | None, _: object) -> None:
        for signum, handler in self._before.items():
            signal.signal(signum, handler)
        if self.received and error and not isinstance(error, Stopped | DiscemError):
            raise Stopped(self.received) from error

    @contextmanager
    def held(self) -> Iterator[None]:
        """Let the block end before a signal takes effect."""
        with self._hold():
            yield
        if self._pending:
            self._pending = False
            raise Stopped(self.received)

    @contextmanager
    def finishing(self) -> Iterator[None]:
        """Let the last block of the work end; a signal during it has no effect."""
        with self._hold():
            yield
        for signum in self._before:
            signal.signal(signum, signal.SIG_IGN)

    @contextmanager
    def _hold(self) -> Iterator[None]:
        self._holding = True
        try:
            yield
        finally:
            self._holding = False

    def _receive(self, signum: int, _: object) -> None:
        self.received = signum
        if self._holding and not self._pending:
            self._pending = True
            return
        self.cut = self._holding
        raise Stopped(signum)
