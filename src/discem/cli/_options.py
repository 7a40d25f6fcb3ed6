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
        help=f"{', '.join(FORMATS)}: if the files' names do not tell.",
        show_default=False,
    ),
]
TextColumn = Annotated[
    str, typer.Option(metavar="NAME", help="Column or field of the text, unless in txt.")
]
LabelColumn = Annotated[
    str, typer.Option(metavar="NAME", help="Column or field of the label, unless in txt.")
]
ModelFile = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A file written by discem fit.", show_default=False)
]
BatchSize = Annotated[int, typer.Option(min=1, metavar="N", help="Documents taken at a time.")]
AsJson = Annotated[bool, typer.Option("--json", help="JSON lines instead of a table.")]
