"""What several commands ask for: documents, a model, a folder for results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..io.documents import FORMATS

DOCUMENTS, TABLES, STREAMS = "Documents", "Tables", "Streams"  # panels of the help
WORKERS = "Workers"

Data = Annotated[
    list[str],
    typer.Argument(
        metavar="DATA",
        help="Files of documents or rows, or patterns of their names, or - for standard input.",
        show_default=False,
    ),
]
Format = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help=f"What the files are, if their names do not tell: {', '.join(FORMATS)}.",
        show_default=False,
    ),
]
TextColumn = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Column or field of the text (not for txt).",
        show_default="text",
        rich_help_panel=DOCUMENTS,
    ),
]
LabelColumn = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Column or field of the label (not for txt).",
        show_default="label",
        rich_help_panel=DOCUMENTS,
    ),
]
Target = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="DATA is a table, and this the column of its labels.",
        show_default=False,
        rich_help_panel=TABLES,
    ),
]
IdColumn = Annotated[
    str | None,
    typer.Option(
        "--id",
        metavar="NAME",
        help="Column that names the rows: no part of the model, the first one of predictions.",
        show_default=False,
        rich_help_panel=TABLES,
    ),
]
Ignore = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="Leave out this column; for more of them, give it again.",
        show_default=False,
        rich_help_panel=TABLES,
    ),
]
FamilyOf = Annotated[
    list[str] | None,
    typer.Option(
        "--family",
        metavar="NAME=FAMILY",
        help="What a column is, if not what it looks like: categorical, bernoulli, gaussian, "
        "lognormal, hurdle or poisson; for more of them, give it again.",
        show_default=False,
        rich_help_panel=TABLES,
    ),
]
ModelFile = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A file written by discem fit.", show_default=False)
]
MaxSize = Annotated[
    int,
    typer.Option(
        min=1,
        max=2**20,
        metavar="MB",
        help="Refuse longer lines, and packed files that unpack to more and to 100 times their "
        "size.",
    ),
]
BatchSize = Annotated[
    int, typer.Option(min=1, metavar="N", help="Documents or rows to take at a time.")
]
OUTPUT = Path("output")
Output = Annotated[Path, typer.Option(help="Folder for the results.", metavar="DIR")]
AsJson = Annotated[bool, typer.Option("--json", help="JSON lines instead of a table.")]
