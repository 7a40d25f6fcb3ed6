"""Model files: what a model is made of, by name, in a container that cannot run code.

A model becomes a tree of plain data: numbers, texts, lists, places of arrays, and for everything
else the name of its kind and of its fields, see `discem._kinds`. skops keeps the tree, as JSON, and
the arrays, one ``.npy`` each, in a zip. Reading it, only kinds that are registered are built, from
their own fields; a field that the file lacks has its default.
"""

from __future__ import annotations

import dataclasses
import json
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from .._kinds import KINDS
from ..exceptions import MissingExtraError, ModelFileError
from ..io.files import write_atomically
from . import mixture, naive_bayes, text, topics  # noqa: F401  kinds that a file may name
from ._base import GenerativeClassifier
from .text import TextClassifier

_STAMP = "discem.json"  # a member of the file, that says who wrote it
_FORMAT = 2  # 1 named modules and the places of fields; it was that of 0.1
_KIND, _FIELDS, _ARRAY = "kind", "fields", "array"


def save(model: Any, path) -> None:
    """Write a model; the file appears whole or not at all."""
    path = Path(path)
    arrays: list[np.ndarray] = []
    try:
        tree = _described(model, arrays)
    except TypeError as error:
        raise ModelFileError(
            f"{path}: not written, for it could not be read again: the model holds {error}. "
            "A step or a loss of your own is code, which does not belong into a file"
        ) from error
    data = BytesIO(_skops().dumps({"model": json.dumps(tree), "arrays": arrays}))
    with zipfile.ZipFile(data, "a") as members:
        members.writestr(_STAMP, json.dumps({"format": _FORMAT, "version": _version()}))
    with write_atomically(path, "wb") as file:
        file.write(data.getvalue())


def load(path) -> Any:
    """Read a model written by `save`.

    Only kinds of this library, and those registered with it, are built: a file that holds anything
    else is refused.

    Examples
    --------
    >>> import numpy as np, tempfile, pathlib, discem
    >>> X, y = np.array([[0.0], [0.1], [1.0], [1.1]]), ["a", "a", "b", "b"]
    >>> model = discem.GaussianNB(random_state=0).fit(X, y)
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.skops"
    >>> model.save(path)
    >>> discem.load(path).predict([[0.05]]).tolist()
    ['a']
    """
    io = _skops()
    path = Path(path)
    data = path.read_bytes()
    try:
        _check_stamp(path, json.loads(zipfile.ZipFile(BytesIO(data)).read(_STAMP)))
        foreign = io.get_untrusted_types(data=data)
        if foreign:
            raise ModelFileError(f"{path}: refused, it holds a type that is not ours: {foreign[0]}")
        content = io.loads(data, trusted=[])
        model = _built(json.loads(content["model"]), content["arrays"])
    except ModelFileError:
        raise
    except _UnknownKindError as error:
        raise ModelFileError(f"{path}: refused, it holds what is not ours: {error}") from error
    except Exception as error:  # whatever a damaged file makes of the reader
        raise ModelFileError(f"{path} is no model file of discem, or it is damaged") from error
    if not isinstance(model, GenerativeClassifier | TextClassifier):
        raise ModelFileError(f"{path} is a skops file, but no model of discem")
    return model


def _check_stamp(path: Path, stamp: dict[str, Any]) -> None:
    if stamp["format"] > _FORMAT:
        raise ModelFileError(
            f"{path} was written by discem {stamp['version']}, which is newer than this "
            f"version, {_version()}: update to read it"
        )
    if stamp["format"] < _FORMAT:
        raise ModelFileError(
            f"{path} was written by discem {stamp['version']}, whose files this version, "
            f"{_version()}, cannot read: fit the model again, or read it with that version"
        )


# --- a model as a tree of plain data --------------------------------------------------------------


class _UnknownKindError(Exception):
    """A kind that is not registered."""


def _described(value: Any, arrays: list[np.ndarray]) -> Any:
    """A tree that says what the value is made of; TypeError names what cannot stand in a file."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray) and value.dtype != object:
        arrays.append(value)
        return {_ARRAY: len(arrays) - 1}
    if isinstance(value, list):
        return [_described(each, arrays) for each in value]
    kind, fields = _taken_apart(value)
    tree = {name: _described(each, arrays) for name, each in fields.items()}
    return {_KIND: kind, _FIELDS: tree}


def _built(tree: Any, arrays: list[np.ndarray]) -> Any:
    """What a tree describes."""
    if isinstance(tree, list):
        return [_built(each, arrays) for each in tree]
    if not isinstance(tree, dict):
        return tree
    if _ARRAY in tree:
        return arrays[tree[_ARRAY]]
    fields = {name: _built(each, arrays) for name, each in tree[_FIELDS].items()}
    return _put_together(tree[_KIND], fields)


def _taken_apart(value: Any) -> tuple[str, dict[str, Any]]:
    """The name of a kind and its fields."""
    kind = type(value)
    if KINDS.get(kind.__name__) is kind:
        return kind.__name__, _fields_of(value)
    if kind is tuple:
        return "tuple", {"items": list(value)}
    if isinstance(value, dict):
        return "dict", {"keys": list(value), "values": list(value.values())}
    if isinstance(value, np.ndarray):
        return "objects", {"items": value.ravel().tolist(), "shape": list(value.shape)}
    if isinstance(value, np.random.RandomState):
        return "RandomState", {"state": list(value.get_state())}
    raise TypeError(f"{kind.__module__}.{kind.__qualname__}")


def _fields_of(value: Any) -> dict[str, Any]:
    if isinstance(value, BaseEstimator):
        params = value.get_params(deep=False)
        fitted = {name: each for name, each in vars(value).items() if name not in params}
        return {"params": params | {"callback": None}, "fitted": fitted}  # no code in files
    if hasattr(value, "to_fields"):
        return value.to_fields()
    if isinstance(value, tuple):
        return value._asdict()  # type: ignore[attr-defined]
    return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}


def _put_together(kind: str, fields: dict[str, Any]) -> Any:
    if kind == "tuple":
        return tuple(fields["items"])
    if kind == "dict":
        return dict(zip(fields["keys"], fields["values"], strict=True))
    if kind == "objects":
        array = np.empty(len(fields["items"]), dtype=object)
        array[:] = fields["items"]
        return array.reshape(fields["shape"])
    if kind == "RandomState":
        random = np.random.RandomState()
        random.set_state(tuple(fields["state"]))
        return random
    if kind not in KINDS:
        raise _UnknownKindError(kind)
    if not issubclass(KINDS[kind], BaseEstimator):
        return getattr(KINDS[kind], "from_fields", KINDS[kind])(**fields)
    estimator = KINDS[kind](**fields["params"])
    for name, value in fields["fitted"].items():
        setattr(estimator, name, value)
    return estimator


def _skops():
    try:
        import skops.io
    except ImportError as error:
        raise MissingExtraError("model files need skops: pip install 'discem[files]'") from error
    return skops.io


def _version() -> str:
    from .. import __version__

    return __version__
