"""``discem fit``: train a model on files, in memory or as a stream."""

from __future__ import annotations

from contextlib import ExitStack
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from ..exceptions import OptionError
from ._interrupts import Interrupts
from ._models import is_table, load_model, refuse, resumed_columns
from ._options import (
    Data,
    FamilyOf,
    Format,
    IdColumn,
    Ignore,
    LabelColumn,
    MaxSize,
    Target,
    Task,
    TextColumn,
    of_streams,
    of_tables,
    of_text,
    of_workers,
    option,
)
from ._reader import Source, is_standard_output, reader_of
from ._start import leaving_at_once
from ._training import Job, train, train_on_stream

_BATCH_SIZE = 1000
_SAVE_EVERY = 100_000
_PARAMETERS = {
    "--loss": "loss",
    "--epochs": "max_iter",
    "--seed": "random_state",
    "--class-weight": "class_weight",
    "--weighting": "weighting",
    "--ngrams": "ngram_range",
    "--min-df": "min_df",
    "--hash": "n_features",
    "--encoder": "encoder",
    "--components": "n_components",
    "--hide": "hide",
    "--missing": "missing",
}  # the names of the classifiers on the command line

Loss = Enum(
    "Loss", {"auto": "auto", "ncll": "ncll", "hinge": "hinge", "nll": "nll", "blend": "blend"}
)
Weighting = Enum(
    "Weighting", {"auto": "auto", "tfidf": "tfidf", "presence": "presence", "counts": "counts"}
)
ClassWeight = Enum("ClassWeight", {"balanced": "balanced"})
Missing = Enum("Missing", {"auto": "auto", "ignore": "ignore", "informative": "informative"})


def fit(
    data: Data,
    output: Annotated[Path, option("The model file to write.", "MODEL", "--output", "-o")],
    format: Format = None,
    loss: Annotated[Loss | None, option("The loss to minimise.", default="auto")] = None,
    epochs: Annotated[
        int | None, option("Largest number of passes over the data.", "N", default="auto", min=1)
    ] = None,
    seed: Annotated[
        int | None, option("Seed of all random choices.", "N", default="0", min=0, max=2**32 - 1)
    ] = None,
    class_weight: Annotated[ClassWeight | None, option("Give all classes the same weight.")] = None,
    max_size: MaxSize = 64,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    weighting: Annotated[
        Weighting | None, of_text("How to weight the words of a document.", default="auto")
    ] = None,
    ngrams: Annotated[
        str | None,
        of_text(
            "Count sequences of up to N words, or of M to N; auto tries words, and pairs.",
            "N, M-N or auto",
            default="auto",
        ),
    ] = None,
    min_df: Annotated[
        str | None,
        of_text(
            "Ignore words that occur in fewer documents: a count, or a share such as 0.01.",
            "N",
            default="1",
        ),
    ] = None,
    hash: Annotated[
        int | None,
        of_text("Hash words into N columns, to limit the memory.", "N", min=1, max=2**31 - 1),
    ] = None,
    encoder: Annotated[
        str | None,
        option(
            "Add vectors of the texts, by an encoder that is installed: wordllama, model2vec, "
            "minilm or mpnet.",
            "NAME",
        ),
    ] = None,
    target: Target = None,
    task: Annotated[
        Task | None,
        of_tables(
            "Whether the target holds classes or numbers. With auto, numbers with fractions, and "
            "more than 30 different numbers, mean regression.",
            default="auto",
        ),
    ] = None,
    id_column: IdColumn = None,
    ignore: Ignore = None,
    family: FamilyOf = None,
    components: Annotated[
        int | None,
        of_tables(
            "Number of mixture components in each class.", "N", default="auto", min=1, max=1000
        ),
    ] = None,
    hide: Annotated[
        float | None,
        of_tables(
            "Hide up to this share of the cells of a row in training, so that predictions "
            "work with missing cells.",
            "SHARE",
            default="auto",
            min=0.0,
            max=0.99,
        ),
    ] = None,
    missing: Annotated[
        Missing | None,
        of_tables(
            "Whether a missing cell is itself a sign of the class. In CSV, missing cells are "
            "empty, ?, NA, N/A, NaN, null or None, in upper or lower case.",
            default="auto",
        ),
    ] = None,
    stream: Annotated[
        bool, of_streams("Take one pass in the given order, in little memory.", None, "--stream")
    ] = False,
    batch_size: Annotated[
        int | None,
        of_streams(
            "Documents or rows of a stream to read at a time.", "N", default=str(_BATCH_SIZE), min=1
        ),
    ] = None,
    save_every: Annotated[
        int | None,
        of_streams(
            "Save the model of a stream every N documents or rows.",
            "N",
            default=str(_SAVE_EVERY),
            min=1,
        ),
    ] = None,
    resume: Annotated[
        Path | None,
        of_streams(
            "Continue the stream of this model. Rows of DATA that it has learnt already are "
            "skipped.",
            "MODEL",
        ),
    ] = None,
    workers: Annotated[
        int | None,
        of_workers(
            "Read and train in N processes on this machine. Each file is read by one process.",
            "N",
            min=1,
        ),
    ] = None,
    scheduler: Annotated[
        str | None,
        of_workers(
            "Read and train on the workers of this Dask scheduler. They need the files under "
            "the same names.",
            "ADDRESS",
        ),
    ] = None,
) -> None:
    """Train a model on labelled documents or rows of a table, and write it to a file.

    With --target, DATA is a table; otherwise it holds documents.
    Press Ctrl-C to stop early: the model that has been learnt so far is saved.
    """
    given = {
        "--loss": loss and loss.value,
        "--epochs": epochs,
        "--seed": seed,
        "--class-weight": class_weight and class_weight.value,
        "--encoder": encoder,
    }
    text_flags = {
        "--weighting": weighting and weighting.value,
        "--ngrams": None if ngrams is None else _lengths(ngrams),
        "--min-df": None if min_df is None else _number(min_df),
        "--hash": hash,
    }
    table_flags = {
        "--components": components,
        "--hide": hide,
        "--missing": missing and missing.value,
        "--family": family or None,
        "--ignore": ignore or None,
    }
    text_columns = {"--text-column": text_column, "--label-column": label_column}
    table_columns = {"--target": target, "--id": id_column}
    of_task = {"--task": task and task.value}
    options = {f: v for f, v in (given | text_flags | table_flags).items() if v is not None}
    for_streams = {"--batch-size": batch_size, "--save-every": save_every, "--resume": resume}
    _check(options, stream, [flag for flag, value in for_streams.items() if value is not None])
    _check_workers(workers, scheduler, stream)

    def check_kind(table: bool, hint: str) -> None:
        """Refuse options for the other kind of data."""
        if table:
            why = "is for documents, and this is a table: leave it out"
            refuse(text_flags | text_columns, why)
        else:
            refuse(table_flags | table_columns | of_task, f"is for tables: {hint}")

    if resume is None:
        check_kind(target is not None, "add --target NAME")
    source = Source.of(data, format, max_size)
    if is_standard_output(output):
        raise OptionError("cannot write a model to standard output: name a file")
    source.check(output, replaces=resume)
    columns, why = text_columns | table_columns, ""
    if resume is None:
        if target is not None:
            with leaving_at_once:
                from ._numbers import reason_for_numbers

            why = reason_for_numbers(source, target, task.value if task else "auto")
            if why and (workers is not None or scheduler is not None):
                raise OptionError("--workers and --scheduler train classifiers: leave them out")
        model = _new(options, target, id_column, bool(why))
    else:
        refuse(of_task, "is settled in the model: leave it out")
        model = load_model(resume)
        check_kind(is_table(model), f"{resume} is a model of documents")
        columns = resumed_columns(resume, model, columns)
    hint = "if it is a table, name the column of its labels with --target"
    reader = reader_of(model, source, columns, hint)
    with Interrupts() as interrupts, ExitStack() as stack:
        job = Job(model, output, interrupts, reader)
        if stream:
            message = train_on_stream(job, batch_size or _BATCH_SIZE, save_every or _SAVE_EVERY)
        else:
            client = None
            if workers is not None or scheduler is not None:
                from ..engines.clusters import open_client

                client = stack.enter_context(open_client(workers, scheduler))
            message = train(job, client)
        typer.echo(f"{output}: {message}{f' ({why})' if why else ''}")


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


def _lengths(text: str) -> tuple[int, int] | str:
    if text == "auto":
        return text
    low, dash, high = text.partition("-")
    try:
        lengths = (int(low), int(high)) if dash else (1, int(low))
    except ValueError:
        lengths = (0, 0)
    if not 1 <= lengths[0] <= lengths[1]:
        raise OptionError(
            f"--ngrams {text}: expected a length such as 2, a range such as 1-3, or auto"
        )
    return lengths


def _number(text: str) -> int | float:
    try:
        number = float(text) if "." in text else int(text)
    except ValueError:
        number = -1
    if not (0 <= number <= 1 if isinstance(number, float) else number >= 1):
        raise OptionError(f"--min-df {text}: expected a count, or a share such as 0.01")
    return number


def _new(options: dict[str, Any], target: str | None, id: str | None, numbers: bool = False) -> Any:
    """Return an estimator of tables if there is a target, else one of text."""
    with leaving_at_once:
        from .. import TableClassifier, TableRegressor, TextClassifier
        from ..io.encoders import check_encoder
        from ._tables import Roles, families_of

    check_encoder(options.get("--encoder"))
    known = {_PARAMETERS[f]: value for f, value in options.items() if f in _PARAMETERS}
    known = {"random_state": 0} | known
    if target is None:
        return TextClassifier(**known)
    roles = Roles.of({}, target, id)
    families = families_of(options.get("--family", []), options.get("--ignore", []), roles)
    if not numbers:
        return TableClassifier(families=families or "auto", **known)
    if "encoder" in known:
        raise OptionError("--encoder is for texts, which models of numbers do not read")
    for flag in ("--class-weight", "--loss"):
        if known.get(_PARAMETERS[flag]) in ("balanced", "hinge"):
            raise OptionError(f"{flag} {options[flag]} is for classes, and the target has numbers")
    own = {name: value for name, value in known.items() if (name, value) != ("loss", "auto")}
    return TableRegressor(families=families or "auto", **own)
