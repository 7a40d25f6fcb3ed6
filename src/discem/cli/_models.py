"""Models out of files, and what they say of documents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..exceptions import InputError, ModelFileError
from ..io.documents import STDIN, Document, batches
from ..io.files import refuse_special
from ._screen import Meter, Pace
from ._start import leaving_at_once

if TYPE_CHECKING:
    import numpy as np

    from .. import TextClassifier

Scored = Iterator[tuple[list[Document], "np.ndarray"]]


def load_model(path: Path) -> TextClassifier:
    with leaving_at_once:
        from .. import TextClassifier, load

    try:
        refuse_special(path)  # of which some never end
        model = load(path)
    except OSError as error:
        raise ModelFileError(f"{path} cannot be read: {error.strerror}") from error
    if not isinstance(model, TextClassifier):
        raise ModelFileError(f"{path} holds a {type(model).__name__}, which does not take text")
    return model


def opened(names: Iterable[str | Path]) -> list[str | Path | int]:
    """What is read from: the files, and for ``-`` whatever the standard input comes from."""
    return [0 if str(name) == STDIN else name for name in names]


def class_names(model: TextClassifier) -> list[str]:
    """The classes as they stand in files; a model from elsewhere may have numbers."""
    return [str(label) for label in model.classes_.tolist()]


def find_class(model: TextClassifier, name: str) -> Any:
    """The class of that name."""
    names = class_names(model)
    if name not in names:
        raise InputError(f"the model has no class {name!r}; it knows {', '.join(names)}")
    return model.classes_[names.index(name)]


def scored(model: TextClassifier, documents: Iterator[Document], size: int, meter: Meter) -> Scored:
    """Documents and ``ln p(y | x)`` of each, batch by batch."""
    pace = Pace(meter, "documents")
    for batch in batches(documents, size):
        yield batch, model.predict_log_proba([text for _, text in batch])
        pace.passed(len(batch))
