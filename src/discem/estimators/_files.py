"""Model files: the parts of a model, by name, in a container that cannot run code.

A model becomes a tree of plain data: numbers, texts, lists and references to arrays. Other objects
are stored as the name of their kind and their fields, see `discem._kinds`. The tree, as JSON, and
the arrays go into a `discem.io.container`. A reader only builds registered kinds, from their own
fields; a field missing in the file gets its default. Since a file may hold anything, the parts are
then validated together (`_check_fitted` of the estimator, which validates its parts).
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from .._checks import check_array, check_count, check_number, demand
from .._kinds import KINDS, name_of
from ..exceptions import DiscemError, ModelFileError, OptionError
from ..io.container import Container, open_to_read, write_container
from ..io.files import write_atomically
from ..io.labels import plain_labels, read_labels
from ..io.vectors import plain_name
from . import imputer, naive_bayes, presets, regressor, table, text, topics  # noqa: F401  kinds
from ._base import GenerativeClassifier
from ._options import is_count
from ._preset import Preset
from ._types import BaseEstimator

_FORMAT = 3  # 1 was that of 0.1; 2, before 0.2, had records of compiled code
_GONE = {"family", "n_iter_no_change", "rescore", "shuffle", "total_samples", "unlabelled_weight"}
_GONE |= {"validation_fraction", "warm_start"}  # options of earlier versions
_KIND, _FIELDS, _ARRAY = "kind", "fields", "array"
_RANDOM_KEYS = 624  # of the Mersenne twister
_DEEPEST = 100  # levels of a tree; a model has a dozen
_LABELS = (bytes, date, timedelta, np.datetime64, np.timedelta64, Decimal, Fraction)  # not of JSON


def save(model: Any, path) -> None:
    """Write a model; the file appears whole or not at all, and depends on the model alone."""
    path = Path(path)
    arrays: list[np.ndarray] = []
    why = f"{path}: not written, for it could not be read again"
    try:
        model._check_fitted()
        tree = _described(model, arrays)
    except DiscemError as error:
        raise ModelFileError(f"{why}: {error}") from error
    except TypeError as error:
        raise ModelFileError(
            f"{why}: the model holds {error}. "
            "A step or a loss of your own is code, which does not belong into a file"
        ) from error
    stamp = {"format": _FORMAT, "version": _version()}
    with write_atomically(path, "wb") as file:
        write_container(file, json.dumps(tree, ensure_ascii=False), arrays, stamp)


def load(path, encoder: Any = None) -> Any:
    """Read a model written by `save`.

    Only kinds of this library, and those registered with it, are built. A file with anything else,
    or with parts that do not fit each other, is an error. Memory use is proportional to the length
    of the file.

    Parameters
    ----------
    path : path
        A regular file.
    encoder : optional
        The encoder of texts, if a `TextClassifier` or a `TableClassifier` was trained with one:
        files hold its name and version, not the encoder. A model in which vectors were of no use
        does not need it, and never calls it. An encoder that makes other vectors is an error.

    Returns
    -------
    estimator

    Raises
    ------
    ModelFileError
        If the file is not a model that this version can read; the message is one line.
    OSError
        If the file cannot be read.

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
    path = Path(path)
    with open_to_read(path) as file:
        try:
            model = _read(Container(file))
            model._check_fitted()
        except DiscemError as error:
            raise ModelFileError(f"{path}: refused, {_one_line(error)}") from error
        except Exception as error:  # whatever a damaged file makes of the reader
            raise ModelFileError(
                f"{path} is not a model file of discem, or it is damaged"
            ) from error
    if encoder is not None:
        _give_encoder(model, encoder)
    return model


def _give_encoder(model: Any, encoder: Any) -> None:
    if not hasattr(model, "encoder"):
        raise OptionError(f"encoder: {type(model).__name__} reads no texts")
    for meaning in model._meanings():  # none if vectors were of no use: then nothing is encoded
        meaning.check_encoder(encoder)
    model.set_params(encoder=encoder)


def _read(container: Container) -> Any:
    _check_stamp(container.stamp())
    tree, arrays = container.content()
    model = _built(json.loads(tree), arrays)
    known = isinstance(model, GenerativeClassifier | Preset | imputer.TableImputer)
    demand(known, "it is a skops file, but no model of discem")
    return model


def _one_line(error: Exception) -> str:
    """Return the message of an error in one line, cleaned, as a hostile file may be part of it."""
    line = "".join(c if c.isprintable() else "?" for c in " ".join(str(error).split()))
    return line if len(line) < 300 else line[:300] + " ..."


def _check_stamp(stamp: dict[str, Any]) -> None:
    wrote = f"it was written by discem {stamp['version']}"
    demand(
        stamp["format"] <= _FORMAT,
        f"{wrote}, which is newer than this version, {_version()}: update to read it",
    )
    demand(
        stamp["format"] == _FORMAT,
        f"{wrote}, whose files this version, {_version()}, cannot read: fit the model again, "
        "or read it with that version",
    )


# --- a model as a tree of plain data --------------------------------------------------------------


def _described(value: Any, arrays: list[np.ndarray]) -> Any:
    """Return a tree that describes the value; TypeError names values that files cannot hold."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.floating):
        return float(value)
    if isinstance(value, np.integer | np.bool_) and not isinstance(value, np.timedelta64):
        return value.item()
    if isinstance(value, np.ndarray) and value.dtype != object:
        arrays.append(value)
        return {_ARRAY: len(arrays) - 1}
    if isinstance(value, list):
        return [_described(each, arrays) for each in value]
    kind, fields = _taken_apart(value)
    tree = {name: _described(each, arrays) for name, each in fields.items()}
    return {_KIND: kind, _FIELDS: tree}


def _built(tree: Any, arrays: list[Any], depth: int = _DEEPEST) -> Any:
    """Build what a tree describes; each array is used once, and removed from the list."""
    demand(depth > 0, "it is nested too deeply")
    if isinstance(tree, list):
        return [_built(each, arrays, depth - 1) for each in tree]
    if not isinstance(tree, dict):
        return tree
    if _ARRAY in tree:
        array, arrays[tree[_ARRAY]] = arrays[tree[_ARRAY]], None
        demand(array is not None, "two of its parts share an array")
        return array
    fields = {name: _built(each, arrays, depth - 1) for name, each in tree[_FIELDS].items()}
    return _put_together(tree[_KIND], fields)


def _taken_apart(value: Any) -> tuple[str, dict[str, Any]]:
    kind = type(value)
    name = name_of(kind)
    if name is not None:
        return name, _fields_of(value)
    if kind is tuple:
        return "tuple", {"items": list(value)}
    if isinstance(value, _LABELS):  # by which an option is said of each class, say
        return "label", {"vector": read_labels([value], "the model")}
    if isinstance(value, dict):
        return "dict", {"keys": list(value), "values": list(value.values())}
    if isinstance(value, np.ndarray):
        return "objects", {"items": value.ravel().tolist(), "shape": list(value.shape)}
    if isinstance(value, np.random.RandomState):
        return "RandomState", {"state": list(value.get_state())}
    raise TypeError(f"{kind.__module__}.{kind.__qualname__}")


def _fields_of(value: Any) -> dict[str, Any]:
    if isinstance(value, BaseEstimator):
        # neither code nor the place where a model was trained goes to files
        params = value.get_params(deep=False)
        params |= dict.fromkeys({"callback", "device", "engine"} & params.keys())
        if not isinstance(params.get("encoder"), str):  # which is somebody's model
            params.pop("encoder", None)
        if not is_count(params.get("cv")):  # nor the rows that it was judged by
            params.pop("cv", None)
        if isinstance(params.get("families"), Mapping):  # by columns, whose names stand in files
            params["families"] = {plain_name(n): each for n, each in params["families"].items()}
        named = value._attributes  # type: ignore[attr-defined]
        fitted = {name: vars(value)[name] for name in named if name in vars(value)}
        return {"params": params, "fitted": fitted}
    if hasattr(value, "to_fields"):
        return value.to_fields()
    if isinstance(value, tuple):
        return value._asdict()  # type: ignore[attr-defined]
    return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}


def _put_together(kind: str, fields: dict[str, Any]) -> Any:
    if kind == "tuple":
        return tuple(fields["items"])
    if kind == "label":
        return plain_labels(fields["vector"])[0]
    if kind == "dict":
        return dict(zip(fields["keys"], fields["values"], strict=True))
    if kind == "objects":
        array = np.empty(len(fields["items"]), dtype=object)
        array[:] = fields["items"]
        return array.reshape(fields["shape"])
    if kind == "RandomState":
        return _random(*fields["state"])
    demand(kind in KINDS, f"it holds what is not ours: {kind}")
    if not issubclass(KINDS[kind], BaseEstimator):
        return getattr(KINDS[kind], "from_fields", KINDS[kind])(**fields)
    params = fields["params"]
    for old, new in getattr(KINDS[kind], "_renamed", ()):
        if old in params and new not in params:
            params[new] = params.pop(old)
    made: Any = KINDS[kind]
    gone = _GONE - set(made._get_param_names())
    estimator = made(**{name: params[name] for name in params.keys() - gone})
    demand(params.get("callback") is None, "it holds a callback")
    demand(params.get("device") is None, "it wants a device")
    for name, value in fields["fitted"].items():
        demand(name in estimator._attributes, f"a {kind} has no attribute {name!r}")
        setattr(estimator, name, value)
    return estimator


def _random(name: str, keys: np.ndarray, place: int, has_gauss: int, gauss: float) -> Any:
    """Build a random state; NumPy itself does not check the position in its keys."""
    random = np.random.RandomState()
    check_array("random_state", keys, (_RANDOM_KEYS,), dtype=np.uint32)
    check_count("random_state", place, most=len(keys))
    check_count("random_state", has_gauss, most=1)
    check_number("random_state", gauss)
    random.set_state((name, keys, place, has_gauss, gauss))
    return random


def _version() -> str:
    from .. import __version__

    return __version__
