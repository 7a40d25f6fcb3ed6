"""``discem demo`` and ``discem reproduce``: what the library and the paper claim, done again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from .. import __version__
from ._interrupts import Interrupts, Stopped
from ._screen import Meter
from ._start import leaving_at_once

if TYPE_CHECKING:
    from ..report.demo import Score


Output = Annotated[Path, typer.Option(help="Folder for the results.", metavar="DIR")]


def demo(
    output: Output = Path("output"),
    seed: Annotated[int, typer.Option(min=0, help="Seed of samples, splits and orders.")] = 0,
    quick: Annotated[bool, typer.Option(hidden=True)] = False,
) -> None:
    """Compare naive Bayes, discem and linear classifiers on data that is already here."""
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


def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...",
            help="Experiments to run, or all; without any they are listed.",
            show_default=False,
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            envvar="DISCEM_DATA",
            exists=True,
            file_okay=False,
            metavar="DIR",
            help="Folder of the data sets, NAME/train.txt.gz and test.txt.gz.",
            show_default="none; experiments that need data are left out",
        ),
    ] = None,
    output: Output = Path("output"),
    seeds: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="How many seeds to run.", show_default="what each needs"
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Little data, few epochs.")] = False,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Processes to run.", show_default="one per core"),
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Repeat parts that are finished.")] = False,
) -> None:
    """Repeat experiments of the paper, and show them on one page.

    What is finished is not repeated: after an interruption the same command does the rest.
    """
    with leaving_at_once:
        from joblib import cpu_count

        from ..lab import catalogue, page, study

    if not names:
        _list_experiments()
        return
    chosen = catalogue.available() if "all" in names else list(dict.fromkeys(names))
    for name in chosen:
        catalogue.load(name)  # all of them are there, before anything is done
    plan = study.Plan(None if data is None else str(data), seeds, quick)
    if fresh:
        study.forget(chosen, plan, output)
    try:
        with Interrupts(), Meter(lines=True) as meter:
            contents = study.run(chosen, plan, output, jobs or cpu_count(), meter.tell)
            path = page.build_page(output)
    except Stopped as stopped:
        done, total = study.count(chosen, plan, output)
        again = "the same command without --fresh" if fresh else "the same command"
        kept = f"{done} of {total} parts are done, {again} does the rest"
        raise Stopped(stopped.signum, kept) from None
    console = Console(highlight=False)
    console.print(_results_table(contents))
    for why, parts in _not_done(contents).items():
        console.print(f"not done: {', '.join(parts)} {why}", markup=False, soft_wrap=True)
    console.print(f"page: {path}", markup=False, soft_wrap=True)


def _list_experiments() -> None:
    from ..lab import catalogue

    table = Table("name", "experiment", "of the paper")
    for name in catalogue.available():
        script = catalogue.load(name)
        table.add_row(name, script.TITLE, script.PAPER)
    Console(highlight=False).print(table)


def _results_table(contents: list[dict[str, Any]]) -> Table:
    table = Table("experiment")
    for name in ("claims that hold", "seconds", "parts done"):
        table.add_column(name, justify="right")
    for content in contents:
        claims, parts = content["claims"], len(content["parts"])
        held = sum(claim["holds"] for claim in claims)
        table.add_row(
            content["experiment"],
            f"{held} of {len(claims)}" if claims else "-",
            f"{content['seconds']:.0f}",
            f"{parts} of {parts + len(content['missing'])}",
        )
    return table


def _not_done(contents: list[dict[str, Any]]) -> dict[str, list[str]]:
    """By the reason, the experiments that have parts which were not done."""
    reasons: dict[str, list[str]] = {}
    for content in contents:
        for why in dict.fromkeys(each["why"] for each in content["missing"]):
            reasons.setdefault(why, []).append(content["experiment"])
    return reasons


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
