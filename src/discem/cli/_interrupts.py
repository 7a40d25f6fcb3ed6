"""Ctrl-C and SIGTERM, which must not cut what has to stay whole."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Stopped(KeyboardInterrupt):
    """The user, or the system, wants the work to end; says what was kept."""

    def __init__(self, signum: int, kept: str = ""):
        super().__init__("interrupted" + (f"; {kept}" if kept else ""))
        self.signum = signum
        self.exit_code = 128 + signum  # as shells have it: 130 for Ctrl-C, 143 for SIGTERM


class Interrupts:
    """Raises `Stopped` at once, or at the end of a block that is held together.

    A second signal ends even such a block, and `cut` then says that it is in pieces.
    """

    def __init__(self) -> None:
        self.cut = False
        self._holding = False
        self._pending = 0
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Interrupts:
        for signum in (signal.SIGINT, signal.SIGTERM):
            self._before[signum] = signal.signal(signum, self._receive)
        return self

    def __exit__(self, *_: object) -> None:
        for signum, handler in self._before.items():
            signal.signal(signum, handler)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Let the block end before a signal does anything."""
        self._holding = True
        try:
            yield
        finally:
            self._holding = False
        if self._pending:
            signum, self._pending = self._pending, 0
            raise Stopped(signum)

    def _receive(self, signum: int, _: object) -> None:
        if self._holding and not self._pending:
            self._pending = signum
            return
        self.cut = self._holding
        raise Stopped(signum)
