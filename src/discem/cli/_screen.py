"""Show progress and tables in the terminal."""

from __future__ import annotations

import json
import re
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from rich import progress as bars
from rich.console import Console
from rich.table import Table

from ..exceptions import SortedStreamWarning

_SECONDS_BETWEEN_LINES = 5.0
_SURROGATES = re.compile("[\ud800-\udfff]")


def screen(file: Any = None) -> Console:
    """Return a console that prints text unchanged: labels may look like markup."""
    return Console(file=file, markup=False, emoji=False, highlight=False)


def one_line(text: str) -> str:
    """Return the text on one line, without control characters."""
    return "".join(c if c.isprintable() else " " for c in text)


def escaped(text: str) -> str:
    """Return the same for messages, with names distinguishable."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def counted(n: int, noun: str) -> str:
    """Format a count with its noun: 1 class, 2 classes."""
    plural = noun + ("es" if noun.endswith("s") else "s")
    return f"{n:,} {noun if n == 1 else plural}"


def duration(seconds: float) -> str:
    """Format seconds: 8 s, 12 min, 3.5 h."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def to_json(record: dict[str, Any]) -> str:
    """Format a JSON line; labels may have characters that UTF-8 cannot encode."""
    text = json.dumps(record, ensure_ascii=False)
    return _SURROGATES.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def show_parts(
    title: str, part: str, figure: str, rows: list[tuple[str, str]], total: str = ""
) -> None:
    """Print what each part adds, and their sum."""
    table = Table(part)
    table.add_column(figure, justify="right")
    for name, value in rows:
        table.add_row(one_line(name), value)
    if total:
        table.add_section()
        table.add_row("sum", total)
    console = screen()
    console.print(one_line(title), soft_wrap=True)
    console.print(table)


def plain_cell(cell: Any) -> Any:
    """Return a cell as JSON can hold it; a date becomes a text, for example."""
    return cell if isinstance(cell, str | int | float | None) else str(cell)


def note(text: str) -> None:
    """Print a line on stderr; an error in printing does not end the work."""
    with suppress(OSError):
        print(f"discem: {escaped(text)}", file=sys.stderr, flush=True)


class Warnings:
    """Show each warning of the library once, in the words of the command line."""

    def __init__(self, noun: str = "document"):
        self.noun, self.known = noun, set[str]()

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Show the warnings when the block has ended without an error."""
        with warnings.catch_warnings(record=True) as caught:
            yield
        for each in caught:
            message = str(each.message).replace("max_iter=", "--epochs ").split(", or set tol=")[0]
            if issubclass(each.category, SortedStreamWarning):
                message = (
                    "the labels of this stream come in long runs, and with every run the model "
                    f"forgets what came before: shuffle the {self.noun}s, or fit with --loss nll, "
                    "to which their order does not matter"
                )
            self.once(message)

    def once(self, text: str) -> None:
        if text not in self.known:
            self.known.add(text)
            note(text)


class Meter:
    """Show progress on stderr: a bar on a terminal, else a line from time to time."""

    def __init__(self, lines: bool = False, bar: bool = True):
        console = Console(stderr=True)
        moving = bar and console.is_terminal
        self.lines = lines and not moving
        self.last = time.monotonic()
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
        noun: str = "document",
    ) -> None:
        """Show the step, the share of all work done (if known), speed and accuracy."""
        text = step
        if rate is not None:
            text += f"  {rate:,.0f} {noun}s/s"
        if loss is not None:
            text += f"  loss {loss:.4f}"
        if accuracy is not None:
            text += f"  accuracy {accuracy:.4f}"
        total = None if share is None else 1.0
        self.bar.update(self.task, description=text, completed=share or 0.0, total=total)
        now = time.monotonic()
        if self.lines and now - self.last >= _SECONDS_BETWEEN_LINES:
            self.last = now
            note(text)


class Pace:
    """Count documents or rows for a meter."""

    def __init__(
        self, meter: Meter, step: str, noun: str = "document", expected: float | None = None
    ):
        self.meter, self.step, self.noun, self.expected = meter, step, noun, expected
        self.count, self.begun = 0, time.monotonic()

    def passed(self, count: int, **figures: float | None) -> None:
        self.count += count
        rate = self.count / max(time.monotonic() - self.begun, 1e-9)
        text, share = f"{self.step} {self.count:,}", None
        if self.expected and self.count <= self.expected:
            share = self.count / self.expected
            left = (self.expected - self.count) / rate
            text += f" of about {self.expected:,.0f}, {duration(left)} left"
        self.meter.tell(text, share, rate=rate, noun=self.noun, **figures)
