"""What several commands ask for: documents and a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..io.documents import FORMATS

Data = Annotated[
    list[str],
    typer.Argument(
        metavar="DATA", help="Files of documents, or - for standard input.", show_default=False
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
    str, typer.Option(metavar="NAME", help="Column or field of the text (not for txt).")
]
LabelColumn = Annotated[
    str, typer.Option(metavar="NAME", help="Column or field of the label (not for txt).")
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
BatchSize = Annotated[int, typer.Option(min=1, metavar="N", help="Documents to take at a time.")]
AsJson = Annotated[bool, typer.Option("--json", help="JSON lines instead of a table.")]
