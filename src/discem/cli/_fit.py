"""``discem fit``: a model from files, in memory or as a stream."""

from __future__ import annotations

from contextlib import ExitStack
from enum import Enum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..exceptions import OptionError
from ._fit_text import fit_text, fit_text_on
from ._interrupts import Interrupts
from ._models import is_table, load_model, resumed_columns
from ._options import (
    DOCUMENTS,
    STREAMS,
    TABLES,
    WORKERS,
    Data,
    FamilyOf,
    Format,
    IdColumn,
    Ignore,
    LabelColumn,
    MaxSize,
    Target,
    TextColumn,
)
from ._sources import Source, is_standard_output
from ._start import leaving_at_once
from ._training import Job, Sizes

if TYPE_CHECKING:
    from ._tables import Roles

_BATCH_SIZE = 1000
_SAVE_EVERY = 100_000
_COMMON = {
    "--loss": "loss",
    "--epochs": "max_iter",
    "--seed": "random_state",
    "--class-weight": "class_weight",
}  # parameters of both classifiers, by what they are called here
_OF_TEXT = {
    "--weighting": "weighting",
    "--ngrams": "ngram_range",
    "--min-df": "min_df",
    "--hash": "n_features",
}
_OF_TABLES = {
    "--components": "n_components",
    "--hide": "hide",
    "--missing": "missing",
}

Loss = Enum(
    "Loss", {"auto": "auto", "ncll": "ncll", "hinge": "hinge", "nll": "nll", "blend": "blend"}
)
Weighting = Enum(
    "Weighting",
    {"auto": "auto", "tfidf": "tfidf", "presence": "presence", "counts": "counts"},
)
ClassWeight = Enum("ClassWeight", {"balanced": "balanced"})
Missing = Enum("Missing", {"auto": "auto", "ignore": "ignore", "informative": "informative"})


def fit(
    data: Data,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="MODEL", help="The model file to write."),
    ],
    format: Format = None,
    loss: Annotated[
        Loss | None, typer.Option(help="What training minimises.", show_default="auto")
    ] = None,
    epochs: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="Passes over the data, at most.", show_default="auto"
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=2**32 - 1,
            metavar="N",
            help="Seed of everything random.",
            show_default="0",
        ),
    ] = None,
    class_weight: Annotated[
        ClassWeight | None,
        typer.Option(help="Give all classes the same weight.", show_default=False),
    ] = None,
    max_size: MaxSize = 64,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    weighting: Annotated[
        Weighting | None,
        typer.Option(
            help="What a word counts in a document.", show_default="auto", rich_help_panel=DOCUMENTS
        ),
    ] = None,
    ngrams: Annotated[
        str | None,
        typer.Option(
            metavar="N or M-N",
            help="Count sequences of up to N words, or of M to N.",
            show_default="1",
            rich_help_panel=DOCUMENTS,
        ),
    ] = None,
    min_df: Annotated[
        str | None,
        typer.Option(
            "--min-df",
            metavar="N",
            help="Ignore words that are in fewer documents: a count, or a share such as 0.01.",
            show_default="1",
            rich_help_panel=DOCUMENTS,
        ),
    ] = None,
    hash: Annotated[
        int | None,
        typer.Option(
            "--hash",
            min=1,
            max=2**31 - 1,
            metavar="N",
            help="Hash words into N columns, which bounds the memory.",
            show_default=False,
            rich_help_panel=DOCUMENTS,
        ),
    ] = None,
    target: Target = None,
    id_column: IdColumn = None,
    ignore: Ignore = None,
    family: FamilyOf = None,
    components: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=1000,
            metavar="N",
            help="Components of each class.",
            show_default="auto",
            rich_help_panel=TABLES,
        ),
    ] = None,
    hide: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            max=0.99,
            metavar="SHARE",
            help="Hide up to this share of a row's cells in training, so that predictions can do "
            "without them.",
            show_default="auto",
            rich_help_panel=TABLES,
        ),
    ] = None,
    missing: Annotated[
        Missing | None,
        typer.Option(
            help="Whether it tells something of the class that a cell is missing; in CSV these are "
            "empty, ?, NA, N/A, NaN, null or None, in any letters.",
            show_default="auto",
            rich_help_panel=TABLES,
        ),
    ] = None,
    stream: Annotated[
        bool,
        typer.Option(
            "--stream",
            help="Take one pass in the order given, in little memory.",
            rich_help_panel=STREAMS,
        ),
    ] = False,
    batch_size: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Documents, or rows, of a stream to take at a time.",
            rich_help_panel=STREAMS,
            show_default=str(_BATCH_SIZE),
        ),
    ] = None,
    save_every: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Save the model of a stream every N documents or rows.",
            rich_help_panel=STREAMS,
            show_default=str(_SAVE_EVERY),
        ),
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(
            metavar="MODEL",
            help="Continue the stream of this model; DATA is what it has not seen.",
            rich_help_panel=STREAMS,
            show_default=False,
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Read and train in N processes of this machine; a file is read by one of them.",
            rich_help_panel=WORKERS,
            show_default=False,
        ),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Read and train on the workers of this scheduler of dask, where the files have "
            "the same names.",
            rich_help_panel=WORKERS,
            show_default=False,
        ),
    ] = None,
) -> None:
    """Train a classifier on labelled documents, or rows of a table, and write it to a file.

    With --target, DATA is a table. Ctrl-C saves what has been learnt so far.
    """
    common = {
        "--loss": loss and loss.value,
        "--epochs": epochs,
        "--seed": seed,
        "--class-weight": class_weight and class_weight.value,
    }
    of_text = {
        "--weighting": weighting and weighting.value,
        "--ngrams": None if ngrams is None else _lengths(ngrams),
        "--min-df": None if min_df is None else _number(min_df),
        "--hash": hash,
    }
    of_tables = {
        "--components": components,
        "--hide": hide,
        "--missing": missing and missing.value,
        "--family": family or None,
        "--ignore": ignore or None,
    }
    given = {f: v for f, v in (common | of_text | of_tables).items() if v is not None}
    for_streams = {"--batch-size": batch_size, "--save-every": save_every, "--resume": resume}
    _check(given, stream, [flag for flag, value in for_streams.items() if value is not None])
    _check_workers(workers, scheduler, stream)
    columns = {
        "--text-column": text_column,
        "--label-column": label_column,
        "--target": target,
        "--id": id_column,
    }
    flags = [*given, *(flag for flag, name in columns.items() if name is not None)]
    if resume is None:
        _check_kind(flags, target is not None, "add --target NAME")
    source = Source.of(data, format, max_size)
    if is_standard_output(output):
        raise OptionError("cannot write a model to standard output: name a file")
    source.check(output, replaces=resume)
    with leaving_at_once:
        from .. import TextClassifier  # noqa: F401  the rest takes a second or two to load
        from ._tables import Roles

    if resume is None:
        table, roles = target is not None, Roles.of(None, target, id_column)
        model = _new(table, given, roles)
    else:
        model = load_model(resume)
        table = is_table(model)
        _check_kind(flags, table, f"{resume} is a model of documents")
        known = resumed_columns(resume, model, columns)
        roles = Roles.of(None, known["--target"], known["--id"])
        text_column, label_column = known["--text-column"], known["--label-column"]
    sizes = Sizes(batch_size or _BATCH_SIZE, save_every or _SAVE_EVERY) if stream else None
    with Interrupts() as interrupts, ExitStack() as stack:
        client = None
        if workers is not None or scheduler is not None:
            from ..engines.clusters import open_client

            client = stack.enter_context(open_client(workers, scheduler))
        if table:
            from ._fit_table import fit_table, fit_table_on

            job = Job(model, output, interrupts, noun="row", roles=roles.names())
            if client is None:
                told = fit_table(job, source, roles, sizes)
            else:
                told = fit_table_on(job, client, source, roles)
        else:
            hint = "if it is a table, name the column of its labels with --target"
            names = (text_column, label_column, hint)
            job = Job(model, output, interrupts, roles=source.columns(*names[:2]))
            if client is None:
                told = fit_text(job, source.documents(*names), sizes)
            else:
                read = partial(source.documents_on, client, *names)
                told = fit_text_on(job, client, read)
        typer.echo(f"{output}: {told}")


def _check(given: dict[str, Any], stream: bool, for_streams: list[str]) -> None:
    if for_streams and not stream:
        raise OptionError(f"{for_streams[0]} is for streams: add --stream")
    if stream and "--epochs" in given:
        raise OptionError("--stream takes one pass: leave out --epochs")
    if "--resume" in for_streams and given:
        raise OptionError(f"--resume takes the options of the model: leave out {', '.join(given)}")
    if "--min-df" in given and (stream or "--hash" in given):
        other = "--stream" if stream else "--hash"
        raise OptionError(f"--min-df needs words that are known beforehand: leave out {other}")


def _check_workers(workers: int | None, scheduler: str | None, stream: bool) -> None:
    flag = "--workers" if workers is not None else "--scheduler" if scheduler else None
    if flag and stream:
        raise OptionError(f"--stream is learnt in its order, by one process: leave out {flag}")
    if workers is not None and scheduler:
        raise OptionError("--scheduler has workers of its own: leave out --workers")


def _lengths(text: str) -> tuple[int, int]:
    low, dash, high = text.partition("-")
    try:
        lengths = (int(low), int(high)) if dash else (1, int(low))
    except ValueError:
        lengths = (0, 0)
    if not 1 <= lengths[0] <= lengths[1]:
        raise OptionError(f"--ngrams {text}: expected a length such as 2, or a range such as 1-3")
    return lengths


def _number(text: str) -> int | float:
    try:
        number = float(text) if "." in text else int(text)
    except ValueError:
        number = -1
    if not (0 <= number <= 1 if isinstance(number, float) else number >= 1):
        raise OptionError(f"--min-df {text}: expected a count, or a share such as 0.01")
    return number


def _check_kind(flags: list[str], table: bool, hint: str) -> None:
    """Refuse options that are for data of the other kind."""
    for flag in flags:
        if table and flag in (*_OF_TEXT, "--text-column", "--label-column"):
            raise OptionError(f"{flag} is for documents, and this is a table: leave it out")
        if not table and flag in (*_OF_TABLES, "--family", "--ignore", "--target", "--id"):
            raise OptionError(f"{flag} is for tables: {hint}")


def _new(table: bool, given: dict[str, Any], roles: Roles) -> Any:
    from .. import TableClassifier, TextClassifier
    from ._tables import families_of

    names = _COMMON | (_OF_TABLES if table else _OF_TEXT)
    options = {names[flag]: value for flag, value in given.items() if flag in names}
    options = {"random_state": 0} | options
    if not table:
        return TextClassifier(**options)
    families = families_of(given.get("--family", []), given.get("--ignore", []), roles)
    return TableClassifier(families=families or "auto", **options)
