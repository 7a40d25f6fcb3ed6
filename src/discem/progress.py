"""Progress on the terminal: how far, how good, how long still."""

from __future__ import annotations

import sys
import time

from .figures import LOSS, WEIGHT


class Progress:
    """One line per epoch when `verbose`; on a terminal also a line that moves within the epoch."""

    def __init__(self, verbose: int, epochs: int, rows: int):
        self.on = bool(verbose)
        self.moving = self.on and sys.stderr.isatty()
        self.epochs, self.n_rows = epochs, max(rows, 1)
        self.done = 0
        self.begun = self.shown = time.monotonic()

    def rows(self, done: int, figures) -> None:
        now = time.monotonic()
        if not self.moving or now - self.shown < 0.2:
            return
        self.shown = now
        share = (self.done + done / self.n_rows) / self.epochs
        loss = figures[LOSS] / max(figures[WEIGHT], 1e-300)
        left = self._left(share)
        self._show(f"epoch {self.done + 1}/{self.epochs}  loss {loss:.5f}  {left}", "")

    def epoch(self, record: dict[str, float]) -> None:
        self.done += 1
        if not self.on:
            return
        held = record.get("validation_loss")
        self._show(
            f"epoch {self.done}/{self.epochs}  loss {record['loss']:.5f}"
            f"  accuracy {record['accuracy']:.4f}"
            + (f"  held out {held:.5f}" if held is not None else "")
            + f"  {self._left(self.done / self.epochs)}",
            "\n",
        )

    def close(self) -> None:
        if self.on and self.done < self.epochs:
            self._show(f"converged after {self.done} epochs", "\n")

    def _left(self, share: float) -> str:
        spent = time.monotonic() - self.begun
        return f"at most {spent * (1 - share) / max(share, 1e-9):.0f} s left"

    def _show(self, text: str, end: str) -> None:
        clear = "\r\x1b[K" if self.moving else ""
        print(clear + text, end=end, file=sys.stderr)
        sys.stderr.flush()
