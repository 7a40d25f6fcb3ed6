"""Models out of files, and what they say of documents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..exceptions import InputError, ModelFileError, OptionError
from ..io.files import refuse_special
from ._start import leaving_at_once

_FLAGS = {
    "target": "--target",
    "id": "--id",
    "text": "--text-column",
    "label": "--label-column",
}  # of the columns that a model remembers


def load_model(path: Path) -> Any:
    """A model of documents or of tables."""
    with leaving_at_once:
        from .. import TableClassifier, TableRegressor, TextClassifier

    model = _load(path)
    if not isinstance(model, TextClassifier | TableClassifier | TableRegressor):
        kind = type(model).__name__
        raise ModelFileError(f"{path} holds a {kind}, which does not take text or tables")
    if is_table(model) and not model.model_.layout_.named:
        raise ModelFileError(f"{path} was fitted to an array, whose columns have no names")
    return model


def load_any_classifier(path: Path) -> Any:
    """A classifier of whatever it takes."""
    model = _load(path)
    if not hasattr(model, "predict_log_proba"):
        kind = type(model).__name__
        raise ModelFileError(f"{path} holds a {kind}, which is no classifier")
    return model


def _load(path: Path) -> Any:
    with leaving_at_once:
        from .. import load

    try:
        refuse_special(path)  # of which some never end
        return load(path)
    except OSError as error:
        raise ModelFileError(f"{path} cannot be read: {error.strerror}") from error


def load_table_model(path: Path) -> Any:
    """A model of tables."""
    model = load_model(path)
    if not is_table(model):
        raise OptionError(f"{path} is a model of documents; this command is for models of tables")
    return model


def is_table(model: Any) -> bool:
    """Whether a model takes the rows of tables, or of arrays; others take documents."""
    from .. import TextClassifier

    return not (isinstance(model, TextClassifier) or getattr(model, "text", False))


def has_columns(model: Any) -> bool:
    """Whether a model knows the columns of a table, be it fitted already or not."""
    return not model.__sklearn_is_fitted__() or hasattr(getattr(model, "model_", model), "layout_")


def is_regressor(model: Any) -> bool:
    """Whether the answers of a model are numbers."""
    from .. import TableRegressor

    return isinstance(model, TableRegressor)


def refuse(options: dict[str, Any], why: str) -> None:
    """Refuse those of options that were given."""
    for flag, value in options.items():
        if value is not None:
            raise OptionError(f"{flag} {why}")


def check_options(
    path: Any, model: Any, of_text: dict[str, Any], of_tables: dict[str, Any]
) -> None:
    """Refuse options that are for models of the other kind."""
    if is_table(model):
        refuse(of_text, f"is for documents, and {path} is a model of tables")
    else:
        refuse(of_tables, f"is for tables, and {path} is a model of documents")


def resumed_columns(path: Path, model: Any, given: dict[str, str | None]) -> dict[str, str | None]:
    """The columns of a stream that goes on, by their flags: what the model knows, or those given.

    What it knows may only be repeated: another target would be another question.
    """
    features = {str(c.name) for c in model.model_.layout_.columns} if is_table(model) else set()
    known = {_FLAGS[role]: name for role, name in model.roles_.items()}
    for flag, name in given.items():
        if name is None or name == known.get(flag):
            continue
        if flag in known:
            raise OptionError(
                f"{flag} {name}: {path} has learnt with {flag} {known[flag]}; leave it out, or "
                "fit a new model"
            )
        if name in features:
            raise OptionError(
                f"{flag} {name}: {path} has learnt from this column; fit a new model without it"
            )
    return given | known


def class_names(model: Any) -> list[str]:
    """The classes as they stand in files; a model from elsewhere may have numbers."""
    from ..io.labels import plain_labels

    return [*map(str, plain_labels(model.classes_))]


def find_class(model: Any, name: str) -> Any:
    """The class of that name."""
    names = class_names(model)
    if name not in names:
        raise InputError(f"the model has no class {name!r}; it knows {', '.join(names)}")
    return model.classes_[names.index(name)]
