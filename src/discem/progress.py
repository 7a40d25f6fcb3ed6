"""Progress on the terminal: how far, how good, how long still. Others may listen: `discem` logs it.

Python's logger "discem" hears each line at the level INFO, whatever `verbose` is. Where it is set
to INFO, lines go there, and nothing is printed but the line that moves.
"""

from __future__ import annotations

import logging
import sys
import time

from .figures import LOSS, WEIGHT

logger = logging.getLogger("discem")
_OFTEN, _SELDOM = 0.2, 5.0  # seconds between two looks: of the line that moves, and of lines
_BAR = 20  # characters
_WORTH = 1.0  # seconds left that are told


class Lines:
    """Lines on the terminal when `verbose`; there is one that moves, if it is a terminal."""

    def __init__(self, verbose: int):
        self.verbose = int(verbose)
        self.on = self.verbose > 0 or logger.isEnabledFor(logging.INFO)
        self.moving = self.verbose > 0 and sys.stderr.isatty()
        self.done = 0
        self.begun = self.shown = time.monotonic()

    def _left(self, share: float) -> str:
        """How long still, by what this share of the work took; nothing where it is no time."""
        spent = time.monotonic() - self.begun
        left = spent * (1 - share) / max(share, 1e-9)
        return f"  at most {left:.0f} s left" if left >= _WORTH else ""

    def _is_due(self, every: float) -> bool:
        now = time.monotonic()
        if now - self.shown < every:
            return False
        self.shown = now
        return True

    def _move(self, text: str) -> None:
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)

    def say(self, text: str) -> None:
        """A line that stays."""
        if self.moving:
            self._move("")
        if logger.isEnabledFor(logging.INFO):
            logger.info(text)
        elif self.verbose:
            print(text, file=sys.stderr, flush=True)


class Progress(Lines):
    """One bar while a model is trained, and a line when it is; with `verbose` 2 a line an epoch."""

    def __init__(self, verbose: int, epochs: int, rows: int):
        super().__init__(verbose)
        self.epochs, self.n_rows = epochs, max(rows, 1)
        self.last = ""

    def rows(self, done: int, figures) -> None:
        """So many rows of an epoch are learnt."""
        if self.moving and self._is_due(_OFTEN):
            share = (self.done + done / self.n_rows) / self.epochs
            loss = figures[LOSS] / max(figures[WEIGHT], 1e-300)
            self._bar(share, f"epoch {self.done + 1}/{self.epochs}  loss {loss:.5f}")

    def epoch(self, record: dict[str, float]) -> None:
        """An epoch has ended."""
        self.done += 1
        if not self.on:
            return
        held = record.get("validation_loss")
        self.last = f"loss {record['loss']:.5f}"
        if "accuracy" in record:  # answers may be numbers
            self.last += f"  accuracy {record['accuracy']:.4f}"
        self.last += "" if held is None else f"  held out {held:.5f}"
        text = f"epoch {self.done}/{self.epochs}  {self.last}"
        share = self.done / self.epochs
        if self.verbose > 1:
            self.say(text + self._left(share))
        elif self.moving and self._is_due(_OFTEN):
            self._bar(share, text)
        elif not self.moving and self._is_due(_SELDOM):
            self.say(text + self._left(share))

    def _bar(self, share: float, text: str) -> None:
        full = round(_BAR * share)
        self._move(f"[{'#' * full}{'.' * (_BAR - full)}] {text}{self._left(share)}")

    def close(self, converged: bool) -> None:
        """Training has ended."""
        if not self.on or not self.done:
            return
        seconds = time.monotonic() - self.begun
        end = "stopped" if self.done < self.epochs else "all epochs were used"
        end = "converged" if converged else end
        plural = "epoch" if self.done == 1 else "epochs"
        self.say(f"{self.done} {plural} in {seconds:.1f} s, {end}  {self.last}")


class Choosing(Lines):
    """One line that moves while candidates are tried, and a line when one is chosen.

    With `verbose` 2 there is a line for each candidate; `line` is the line as it stands.
    """

    def __init__(self, verbose: int, of: int):
        super().__init__(verbose)
        self.of, self.number, self.line = of, 0, ""
        self.best: float | None = None

    def begin(self) -> None:
        """A candidate is tried."""
        self.number += 1
        self._tell()
        if self.moving:
            self._move(self.line)

    def end(self, best: float) -> None:
        """It was tried; the log-loss of the best one is told."""
        self.done, self.best = self.number, best
        self._tell()
        if self.verbose > 1:
            self.say(self.line)
        elif self.moving:
            self._move(self.line)
        elif self.on and self._is_due(_SELDOM):
            self.say(self.line)

    def close(self) -> None:
        """All were tried."""
        seconds = time.monotonic() - self.begun
        if self.on:
            tried = f"{self.done} candidates" if self.done > 1 else "1 candidate"
            self.say(f"choice: {tried} in {seconds:.1f} s, best log-loss {self.best:.4f}")

    def _tell(self) -> None:
        self.line = f"choice: {self.number} of {max(self.of, self.number)}"
        if self.best is not None:
            left = self._left(min(self.done / self.of, 1.0)).replace("at most", "about").strip()
            self.line += f", best log-loss {self.best:.4f}" + (f", {left}" if left else "")


class Steps(Lines):
    """Work on so many things, one after the other: a line when it is done, and one that moves."""

    def __init__(self, verbose: int, name: str, of: int):
        super().__init__(verbose)
        self.name, self.of = name, max(of, 1)

    def passed(self, done: int) -> None:
        """So many are done."""
        if done >= self.of:
            seconds = time.monotonic() - self.begun
            if self.on and seconds >= _WORTH:
                self.say(f"{self.name}: {done} in {seconds:.1f} s")
        elif self.moving and self._is_due(_OFTEN):
            self._move(f"{self.name}: {done}/{self.of}{self._left(done / self.of)}")
