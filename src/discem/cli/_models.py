"""Load models from files, and check that they fit the command."""

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
    """Load a model of documents or of tables."""
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
    """Load a classifier for any kind of input."""
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
    """Load a model of tables."""
    model = load_model(path)
    if not is_table(model):
        raise OptionError(f"{path} is a model of documents; this command is for models of tables")
    return model


def is_table(model: Any) -> bool:
    """Return whether a model takes tables or arrays; other models take documents."""
    from .. import TextClassifier

    return not (isinstance(model, TextClassifier) or getattr(model, "text", False))


def has_columns(model: Any) -> bool:
    """Return whether a model has the columns of a table, fitted or not."""
    return not model.__sklearn_is_fitted__() or hasattr(getattr(model, "model_", model), "layout_")


def is_regressor(model: Any) -> bool:
    """Return whether the answers of a model are numbers."""
    from .. import TableRegressor

    return isinstance(model, TableRegressor)


def refuse(options: dict[str, Any], why: str) -> None:
    """Refuse the given options."""
    for flag, value in options.items():
        if value is not None:
            raise OptionError(f"{flag} {why}")


def check_options(
    path: Any, model: Any, of_text: dict[str, Any], of_tables: dict[str, Any]
) -> None:
    """Refuse options for models of the other kind."""
    if is_table(model):
        refuse(of_text, f"is for documents, and {path} is a model of tables")
    else:
        refuse(of_tables, f"is for tables, and {path} is a model of documents")


def resumed_columns(path: Path, model: Any, given: dict[str, str | None]) -> dict[str, str | None]:
    """Return the columns of a continued stream by flag: from the model, or those given.

    Columns that the model knows cannot be changed: another target would be another task.
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
    """Return the classes as in files; a loaded model may have numbers."""
    from ..io.labels import plain_labels

    return [*map(str, plain_labels(model.classes_))]


def find_class(model: Any, name: str) -> Any:
    """Return the class with that name."""
    names = class_names(model)
    if name not in names:
        raise InputError(f"the model has no class {name!r}; it knows {', '.join(names)}")
    return model.classes_[names.index(name)]
