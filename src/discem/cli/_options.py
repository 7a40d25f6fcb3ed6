"""Options that several commands share: documents, a model, a folder for results."""

from __future__ import annotations

from enum import Enum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from ..io.documents import FORMATS


def option(
    help: str, metavar: str | None = None, *flags: str, default: bool | str = False, **more: Any
) -> Any:
    """Declare an option; its flag is the name of the parameter by default."""
    return typer.Option(*flags, help=help, metavar=metavar, show_default=default, **more)


of_text = partial(option, rich_help_panel="Documents")
of_tables = partial(option, rich_help_panel="Tables")
of_streams = partial(option, rich_help_panel="Streams")
of_workers = partial(option, rich_help_panel="Workers")

Data = Annotated[
    list[str],
    typer.Argument(
        metavar="DATA",
        help="Files of documents or rows, patterns such as 'part-*.csv', or - for standard input.",
        show_default=False,
    ),
]
ModelFile = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A file written by discem fit.", show_default=False)
]
Format = Annotated[
    str | None,
    option(
        f"Format of the files, if their names do not end with it: {', '.join(FORMATS)}.", "NAME"
    ),
]
TextColumn = Annotated[
    str | None, of_text("Column or field of the text (not for txt).", "NAME", default="text")
]
LabelColumn = Annotated[
    str | None, of_text("Column or field of the label (not for txt).", "NAME", default="label")
]
Target = Annotated[
    str | None, of_tables("Read DATA as a table, and take the labels from this column.", "NAME")
]
IdColumn = Annotated[
    str | None,
    of_tables(
        "Column that names the rows. The model leaves it out, and predictions begin with it.",
        "NAME",
        "--id",
    ),
]
Ignore = Annotated[
    list[str] | None,
    of_tables("Leave out this column. Repeat the option for more columns.", "NAME"),
]
FamilyOf = Annotated[
    list[str] | None,
    of_tables(
        "Treat a column as categorical, bernoulli, gaussian, lognormal, hurdle, poisson, text or "
        "ignored. Repeat the option for more columns.",
        "NAME=FAMILY",
        "--family",
    ),
]
MaxSize = Annotated[
    int,
    option(
        "Refuse lines longer than this, and compressed files that unpack to more than this and to "
        "more than 100 times their size.",
        "MB",
        default=True,
        min=1,
        max=2**20,
    ),
]
BatchSize = Annotated[int, option("Documents or rows to read at a time.", "N", default=True, min=1)]
OutputFile = Annotated[
    Path | None,
    option("A file to write to, or - for standard output.", "FILE", "--output", "-o", default="-"),
]
Seed = Annotated[
    int, option("Seed of all random choices.", "N", default=True, min=0, max=2**32 - 1)
]
Task = Enum(
    "Task", {"auto": "auto", "classification": "classification", "regression": "regression"}
)
OUTPUT = Path("output")
Output = Annotated[Path, typer.Option(help="Folder for the results.", metavar="DIR")]
AsJson = Annotated[bool, option("Write JSON lines instead of a table.", None, "--json")]
