"""``discem demo`` and ``discem reproduce``: what the library and the paper claim, done again."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from typer.core import TyperGroup

from .. import __version__
from ._screen import Meter

if TYPE_CHECKING:
    from ..report.demo import Score


class _Experiments(TyperGroup):
    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] not in self.commands:
            ctx.fail(f"no experiment {args[0]!r}; there is: {', '.join(sorted(self.commands))}")
        return super().resolve_command(ctx, args)


reproduce = typer.Typer(
    cls=_Experiments, help="Redo an experiment of the paper.", no_args_is_help=True
)

LOSSES = {"nll": "NLL", "ncll": "NCLL", "hinge": "hinge"}
Output = Annotated[Path, typer.Option(help="Folder for the results.", metavar="DIR")]


def demo(
    output: Output = Path("output"),
    seed: Annotated[int, typer.Option(min=0, help="Of samples, splits and orders.")] = 0,
    quick: Annotated[bool, typer.Option(hidden=True)] = False,
) -> None:
    """Compare naive Bayes, discem and linear classifiers on data that is already here."""
    with Meter() as meter:
        from ..report.demo import run_demo

        scores, picture = run_demo(output, seed, quick, meter.tell)
    console = Console(highlight=False)
    console.print(_demo_table(scores))
    console.print(
        "Accuracy and log-loss on a held-out 30 % (toy: accuracy of the population, log-loss of a\n"
        "fresh sample); bold: best of a data set. Seconds to train on one thread, compiled.\n"
        "* trains on 80 % of the rows, fits its probabilities to the rest.",
        style="dim",
    )
    absent = "no picture of the toy without matplotlib: pip install 'discem\\[plot]'"
    console.print(f"picture of the toy: {picture}" if picture else absent, soft_wrap=True)


@reproduce.command("toy")
def reproduce_toy(
    output: Output = Path("output"),
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds.")] = 5,
    samples: Annotated[int, typer.Option(min=100, help="Rows of each sample.")] = 30_000,
    quick: Annotated[bool, typer.Option("--quick", help="2 seeds, 3000 rows.")] = False,
) -> None:
    """Figure 1: a Gaussian naive Bayes on data that no Gaussian fits."""
    with Meter() as meter:
        from ..report import toy

        if quick:
            seeds, samples = 2, 3_000
        result = toy.reproduce_toy(output, seeds, samples, meter.tell)
    console = Console(highlight=False)
    console.print(_toy_table(result))
    names = [*result["pictures"], "toy.json"]
    console.print("written:", *(str(output / name) for name in names), sep="\n  ", soft_wrap=True)


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


def _toy_table(result: dict[str, Any]) -> Table:
    seeds, samples = len(result["seeds"]), result["samples"]
    table = Table("training", "loss", title=f"Toy, {samples} rows: accuracy over {seeds} seeds, %")
    for name in ("median", "min", "max", "the paper prints"):
        table.add_column(name, justify="right")
    names = {"paper": "the paper's algorithm", "discem": "discem's defaults"}
    for run in result["runs"]:
        values = run["accuracies"]
        numbers = (median(values), min(values), max(values), run["printed"])
        shown = [f"{100 * number:.1f}" for number in numbers]
        table.add_row(names[run["by"]], LOSSES[run["loss"]], *shown)
    return table
