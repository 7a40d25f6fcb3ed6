"""``discem reproduce``: the experiments of the clone that discem runs from.

What they share is `lab`, a package beside their scripts. An installed discem does not have it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from ..exceptions import DiscemError
from ._interrupts import Interrupts, Stopped
from ._options import OUTPUT, Output
from ._screen import Meter
from ._start import leaving_at_once


class NoExperimentsError(DiscemError):
    """Raised if experiments are requested without a clone of the repository."""


def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...",
            help="Experiments to run, or all. Without any, the experiments are listed.",
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
    output: Output = OUTPUT,
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
    """Repeat experiments of the paper, and show them on one page. It needs a clone of discem.

    What is finished is not repeated: after an interruption the same command does the rest.
    """
    _find_experiments()
    with leaving_at_once:
        from joblib import cpu_count
        from lab import catalogue, page, study

    if not names:
        _list_experiments()
        return
    chosen = list(catalogue.ORDER) if "all" in names else list(dict.fromkeys(names))
    for name in chosen:
        catalogue.load(name)  # check all names before the first one runs
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


def _find_experiments() -> None:
    """Make `lab` importable; a script beside it has it on the path already."""
    folder = Path(__file__).parents[3] / "experiments"
    places = (Path(sys.argv[0]).resolve().parent, folder)
    found = [place for place in places if (place / "lab" / "study.py").exists()]
    if not found:
        raise NoExperimentsError(
            "there are no experiments in an installed package: get a clone of the repository, "
            "run `pip install -e .` in it, and try again"
        )
    sys.path.insert(0, str(found[0]))


def _list_experiments() -> None:
    from lab import catalogue

    table = Table("name", "experiment", "of the paper")
    for name in catalogue.ORDER:
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
    """Return the experiments with missing parts, by reason."""
    reasons: dict[str, list[str]] = {}
    for content in contents:
        for why in dict.fromkeys(each["why"] for each in content["missing"]):
            reasons.setdefault(why, []).append(content["experiment"])
    return reasons
