"""``discem demo``: compare classifiers on data of every installation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from .. import __version__
from ._options import OUTPUT, Output
from ._screen import Meter
from ._start import leaving_at_once

if TYPE_CHECKING:
    from ..report.demo import Score


def demo(
    output: Output = OUTPUT,
    seed: Annotated[int, typer.Option(min=0, help="Seed of samples, splits and orders.")] = 0,
    quick: Annotated[bool, typer.Option(hidden=True)] = False,
) -> None:
    """Compare naive Bayes, discem and linear classifiers on data that every installation has."""
    with leaving_at_once:
        from ..report.demo import run_demo
    with Meter() as meter:
        scores, picture = run_demo(output, seed, quick, meter.tell)
    console = Console(highlight=False)
    console.print(_demo_table(scores))
    console.print(
        "Accuracy and log-loss on a held-out 30 % of the rows. For the toy: accuracy on the\n"
        "population, log-loss on a fresh sample. Bold: the best of a data set.\n"
        "Seconds: training, on one thread.\n"
        "* trains on 80 % of the rows and fits its probabilities to the rest.",
        style="dim",
    )
    absent = "no picture of the toy without matplotlib: pip install 'discem\\[plot]'"
    console.print(f"picture of the toy: {picture}" if picture else absent, soft_wrap=True)


def _demo_table(scores: list[Score]) -> Table:
    table = Table("data", "method", title=f"discem {__version__}")
    for name in ("accuracy", "log-loss", "seconds"):
        table.add_column(name, justify="right")
    for data in dict.fromkeys(score.data for score in scores):
        rows = [score for score in scores if score.data == data]
        accurate = max(row.accuracy for row in rows)
        sure = min(row.log_loss for row in rows if row.log_loss is not None)
        for place, row in enumerate(rows):
            table.add_row(
                "" if place else data,
                row.method + ("*" if row.method.endswith("hinge") else ""),
                _bold(f"{row.accuracy:.3f}", row.accuracy == accurate),
                "-" if row.log_loss is None else _bold(f"{row.log_loss:.3f}", row.log_loss == sure),
                f"{row.seconds:.3f}",
                end_section=place == len(rows) - 1,
            )
    return table


def _bold(text: str, best: bool) -> str:
    return f"[bold green]{text}[/]" if best else text
