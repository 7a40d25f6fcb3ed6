"""Progress on the terminal: how far, how good, how long still."""

from __future__ import annotations

import sys
import time

from .figures import LOSS, WEIGHT


class Lines:
    """Lines on the terminal when `verbose`; there is one that moves, if it is a terminal."""

    def __init__(self, verbose: int):
        self.on = bool(verbose)
        self.moving = self.on and sys.stderr.isatty()
        self.done = 0
        self.begun = self.shown = time.monotonic()

    def _left(self, share: float) -> float:
        """Seconds, by those that this share of the work took."""
        spent = time.monotonic() - self.begun
        return spent * (1 - share) / max(share, 1e-9)

    def _show(self, text: str, end: str) -> None:
        clear = "\r\x1b[K" if self.moving else ""
        print(clear + text, end=end, file=sys.stderr)
        sys.stderr.flush()


class Progress(Lines):
    """One line per epoch; on a terminal also a line that moves within the epoch."""

    def __init__(self, verbose: int, epochs: int, rows: int):
        super().__init__(verbose)
        self.epochs, self.n_rows = epochs, max(rows, 1)

    def rows(self, done: int, figures) -> None:
        now = time.monotonic()
        if not self.moving or now - self.shown < 0.2:
            return
        self.shown = now
        share = (self.done + done / self.n_rows) / self.epochs
        loss = figures[LOSS] / max(figures[WEIGHT], 1e-300)
        text = f"epoch {self.done + 1}/{self.epochs}  loss {loss:.5f}"
        self._show(f"{text}  at most {self._left(share):.0f} s left", "")

    def epoch(self, record: dict[str, float]) -> None:
        self.done += 1
        if not self.on:
            return
        held = record.get("validation_loss")
        self._show(
            f"epoch {self.done}/{self.epochs}  loss {record['loss']:.5f}"
            f"  accuracy {record['accuracy']:.4f}"
            + (f"  held out {held:.5f}" if held is not None else "")
            + f"  at most {self._left(self.done / self.epochs):.0f} s left",
            "\n",
        )

    def close(self) -> None:
        if self.on and self.done < self.epochs:
            self._show(f"converged after {self.done} epochs", "\n")


class Choosing(Lines):
    """One line per candidate of a choice; `told` is the line as it stands."""

    def __init__(self, verbose: int, of: int):
        super().__init__(verbose)
        self.of, self.number, self.told = of, 0, ""
        self.best: float | None = None

    def begin(self) -> None:
        """A candidate is tried."""
        self.number += 1
        self._tell()
        if self.moving:
            self._show(self.told, "")

    def end(self, best: float) -> None:
        """It was tried; the log-loss of the best one is told."""
        self.done, self.best = self.number, best
        self._tell()
        if self.on:
            self._show(self.told, "\n")

    def _tell(self) -> None:
        self.told = f"choice: {self.number} of {max(self.of, self.number)}"
        if self.best is not None:
            left = self._left(min(self.done / self.of, 1.0))
            self.told += f", best log-loss {self.best:.4f}, about {left:.0f} s left"
