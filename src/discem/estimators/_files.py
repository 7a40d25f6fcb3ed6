"""Model files: skops, never bare pickle, so that opening a file cannot run code."""

from __future__ import annotations

import json
import os
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

from ..engines.sequential import Learner
from ..exceptions import MissingExtraError, ModelFileError
from ..families.gaussian import Gaussian
from ..families.words import Words
from ..losses import NCLL, NLL, Blend, Hinge
from ..models.mixture import Mixture
from ..models.naive_bayes import Classes, NaiveBayes
from ..models.topics import Cvb0, Gibbs, Topics
from ..priors import Dirichlet, NormalBetaPrime, NormalGamma, PaperNormalGamma
from ..projections import Check, Interior
from ..schedules import constant, inverse, power
from ._bag import Bag
from ._base import GenerativeClassifier
from .mixture import MixtureClassifier
from .naive_bayes import GaussianNB, MultinomialNB
from .text import TextClassifier
from .topics import TopicClassifier

# What a model of this library is made of beyond numbers, arrays and built-in containers.
_OWN = {
    f"{kind.__module__}.{kind.__qualname__}"
    for kind in (
        *(GaussianNB, MultinomialNB, TextClassifier, Bag),
        *(TopicClassifier, Topics, Cvb0, Gibbs),
        *(MixtureClassifier, Mixture, NormalBetaPrime),
        *(Learner, NaiveBayes, Classes, Gaussian, Words),
        *(NLL, NCLL, Hinge, Blend, NormalGamma, PaperNormalGamma, Dirichlet),
        *(Interior, Check, inverse, power, constant),
    )
}


_STAMP, _FORMAT = "discem.json", 1  # a member of the file, and the number of the layout


def _skops():
    try:
        import skops.io
    except ImportError as error:
        raise MissingExtraError("model files need skops: pip install 'discem[files]'") from error
    return skops.io


def save(model: Any, path) -> None:
    """Write a model; the file appears whole or not at all."""
    path = Path(path)
    parts: list[Any] = [model, model.model_] if isinstance(model, TextClassifier) else [model]
    callbacks = [part.callback for part in parts]
    try:
        for part in parts:
            part.callback = None  # code does not belong into a file
        data = _stamped(_skops().dumps(model))
    finally:
        for part, callback in zip(parts, callbacks, strict=True):
            part.callback = callback
    foreign = _foreign(data)
    if foreign:
        raise ModelFileError(
            f"{path}: not written, for it could not be read again: the model holds {foreign[0]}. "
            "A step or a loss of your own is code, which does not belong into a file"
        )
    temporary = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def load(path) -> Any:
    """Read a model written by `save`.

    Only types of this library are trusted: a file that holds anything else is refused.

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
        stamp = json.loads(zipfile.ZipFile(BytesIO(data)).read(_STAMP))
        if stamp["format"] > _FORMAT:
            raise ModelFileError(
                f"{path} was written by discem {stamp['version']}, which is newer than this "
                f"version, {_version()}: update to read it"
            )
        foreign = _foreign(data)
        if foreign:
            raise ModelFileError(f"{path}: refused, it holds a type that is not ours: {foreign[0]}")
        model = io.loads(data, trusted=io.get_untrusted_types(data=data))
    except ModelFileError:
        raise
    except Exception as error:  # whatever a damaged file makes of the reader
        raise ModelFileError(f"{path} is no model file of discem, or it is damaged") from error
    if not isinstance(model, GenerativeClassifier | TextClassifier):
        raise ModelFileError(f"{path} is a skops file, but no model of discem")
    return model


def _stamped(data: bytes) -> bytes:
    """Add who wrote the file, and how, to what skops wrote."""
    file = BytesIO(data)
    with zipfile.ZipFile(file, "a") as members:
        members.writestr(_STAMP, json.dumps({"format": _FORMAT, "version": _version()}))
    return file.getvalue()


def _version() -> str:
    from .. import __version__

    return __version__


def _foreign(data: bytes) -> list[str]:
    """The types in a file that are neither plain data nor ours."""
    unknown = _skops().get_untrusted_types(data=data)
    return [name for name in unknown if name not in _OWN]
