"""What commands show: where the work is, and tables."""

from __future__ import annotations

import json
import re
import sys
import time
from contextlib import suppress
from typing import Any

from rich import progress as bars
from rich.console import Console

_SECONDS_BETWEEN_LINES = 5.0
_SURROGATES = re.compile("[\ud800-\udfff]")


def screen(file: Any = None) -> Console:
    """A console that takes text as it is: labels and words may look like markup."""
    return Console(file=file, markup=False, emoji=False, highlight=False)


def one_line(text: str) -> str:
    """The text on one line, and without what a terminal would obey."""
    return "".join(c if c.isprintable() else " " for c in text)


def escaped(text: str) -> str:
    """The same for messages, in which a name should be told from another."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def counted(n: int, noun: str) -> str:
    """A number and what it is of: 1 class, 2 classes."""
    plural = noun + ("es" if noun.endswith("s") else "s")
    return f"{n:,} {noun if n == 1 else plural}"


def to_json(record: dict[str, Any]) -> str:
    """One JSON line; a label of a model from elsewhere may hold what UTF-8 cannot."""
    text = json.dumps(record, ensure_ascii=False)
    return _SURROGATES.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


class Meter:
    """Where the work is, on stderr: a bar on a terminal, a line now and then elsewhere."""

    def __init__(self, lines: bool = False, bar: bool = True):
        console = Console(stderr=True)
        moving = bar and console.is_terminal
        self.lines = lines and not moving
        self.told = time.monotonic()
        self.bar = bars.Progress(
            bars.BarColumn(bar_width=24),
            bars.TaskProgressColumn(),
            bars.TimeElapsedColumn(),
            bars.TextColumn("{task.description}", markup=False),
            bars.TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not moving,
        )
        self.task = self.bar.add_task("loading", total=None)

    def __enter__(self) -> Meter:
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()

    def tell(
        self,
        step: str,
        share: float | None = None,
        loss: float | None = None,
        *,
        rate: float | None = None,
        accuracy: float | None = None,
    ) -> None:
        """Show the step, the share of all work done (if known), and how fast and good it is."""
        text = step
        if rate is not None:
            text += f"  {rate:,.0f} documents/s"
        if loss is not None:
            text += f"  loss {loss:.4f}"
        if accuracy is not None:
            text += f"  accuracy {accuracy:.4f}"
        total = None if share is None else 1.0
        self.bar.update(self.task, description=text, completed=share or 0.0, total=total)
        now = time.monotonic()
        if self.lines and now - self.told >= _SECONDS_BETWEEN_LINES:
            self.told = now
            with suppress(OSError):  # work does not end for want of a place to tell of it
                print(f"discem: {text}", file=sys.stderr, flush=True)


class Pace:
    """Tells a meter of documents as they are counted."""

    def __init__(self, meter: Meter, step: str):
        self.meter, self.step = meter, step
        self.documents, self.begun = 0, time.monotonic()

    def passed(self, documents: int, **figures: float | None) -> None:
        self.documents += documents
        rate = self.documents / max(time.monotonic() - self.begun, 1e-9)
        self.meter.tell(f"{self.step} {self.documents:,}", rate=rate, **figures)
