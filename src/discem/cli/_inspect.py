"""``discem inspect``: write a page about a model and its predictions for data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from warnings import catch_warnings, filterwarnings

from ..exceptions import OptionError
from ..io.documents import LabelsNeeded
from ._models import class_names, load_any_classifier, refuse
from ._options import Format, IdColumn, LabelColumn, MaxSize, ModelFile, Target, TextColumn, option
from ._output import opened
from ._reader import Batch, Reader, Source, reader_for
from ._screen import Meter, note

if TYPE_CHECKING:
    import numpy as np

    from ..report.inspection import Checked

_AT_ONCE = 1000


def inspect(
    model: ModelFile,
    data: Annotated[
        list[str] | None,
        option(
            "Also show how the model does on this file. Repeat the option for more files.", "FILE"
        ),
    ] = None,
    output: Annotated[
        Path, option("The page to write, or - for standard output.", "FILE", "--output", "-o")
    ] = Path("-"),
    format: Format = None,
    max_size: MaxSize = 64,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    target: Target = None,
    id_column: IdColumn = None,
) -> None:
    """Write a page about a model: what each class believes, how training went, and its settings.

    With --data, the page also shows accuracy, calibration and confusions on these rows, and which
    of the rows are the strangest and the least certain.
    """
    text_flags = {"--text-column": text_column, "--label-column": label_column}
    table_flags = {"--target": target, "--id": id_column}
    source = Source.of(data or [], format, max_size)
    if data:
        source.check(output, reads=[model])
    else:
        refuse({"--format": format} | text_flags | table_flags, "goes with --data")
        Source([], None, max_size).check_output(output, reads=[model])
    classifier = load_any_classifier(model)
    from ..report.inspection import model_page

    with catch_warnings():
        filterwarnings("ignore", "X does not have valid feature names")  # they are looked up here
        checked = None
        if data:
            reader = reader_for(model, classifier, source, text_flags, table_flags)
            checked = _check(reader, target)
        page = model_page(classifier, model.name, checked)
    with opened(output) as file:
        file.write(page)
    if str(output) != "-":
        note(f"wrote {output}, {len(page.encode()) / 1e6:.1f} MB")


def _check(reader: Reader, target: str | None) -> Checked:
    from ..report.inspection import Checked

    checked = Checked(class_names(reader.model), reader.noun)
    known = reader.noun == "document" or bool(target or reader.roles().get("target"))
    labels: LabelsNeeded = "optional" if reader.noun == "document" or not known else "required"
    with Meter() as meter:
        for batch, log_proba in reader.answered(_AT_ONCE, meter, labels):
            checked.add(batch.labels, log_proba, _density(reader.model, batch), _describe(batch))
    return checked


def _density(model: Any, batch: Batch) -> np.ndarray | None:
    """Return ln p(x) of each row, if the model has it."""
    try:
        with batch.translated():
            return model.score_samples(batch.X)
    except (AttributeError, OptionError):
        return None


def _describe(batch: Batch) -> Any:
    def described(i: int) -> tuple[str, Any, dict[str, Any] | None]:
        return str(batch.names[i]), batch.one(i), batch.cells(i)

    return described
