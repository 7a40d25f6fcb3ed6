"""Encoders: external models that make a vector of each text. Nothing is downloaded here."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from importlib import import_module, metadata
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..exceptions import InputError, OptionError, needing

Encode = Callable[[list[str]], Any]

PROBES = ("a good film", "the engine does not start", "prices rose by 3 % last year")
_AT_ONCE = 1024  # texts
_WIDEST = 4096  # numbers in a vector: the covariance costs the cube of it
_METHODS = ("encode", "transform")
_APART = 0.02  # relative distance of vectors of the same texts that counts as equal


class Package(NamedTuple):
    """The package of a named encoder."""

    name: str
    load: Callable[[Any, str], Encode]
    model: str


def _of_wordllama(package: Any, model: str) -> Encode:
    folder = Path(package.__file__).parent  # which has the weights
    found = package.WordLlama.load(model, cache_dir=folder, disable_download=True)
    return partial(found.embed, norm=True)


def _of_sentence_transformers(package: Any, model: str) -> Encode:
    found = package.SentenceTransformer(model, local_files_only=True)
    return partial(found.encode, show_progress_bar=False)


def _of_model2vec(package: Any, model: str) -> Encode:
    hub = import_module("huggingface_hub")
    folder = hub.snapshot_download(model, local_files_only=True)
    return package.StaticModel.from_pretrained(folder).encode


NAMED = {
    "wordllama": Package("wordllama", _of_wordllama, "l2_supercat"),
    "model2vec": Package("model2vec", _of_model2vec, "minishlab/potion-base-8M"),
    "minilm": Package(
        "sentence_transformers", _of_sentence_transformers, "sentence-transformers/all-MiniLM-L6-v2"
    ),
    "mpnet": Package(
        "sentence_transformers",
        _of_sentence_transformers,
        "sentence-transformers/all-mpnet-base-v2",
    ),
}


def check_encoder(encoder: Any) -> None:
    """Validate an encoder without loading anything."""
    if isinstance(encoder, str):
        if encoder not in NAMED:
            raise OptionError(f"encoder={encoder!r} is unknown: use one of {[*NAMED]}, or your own")
    elif not (encoder is None or callable(encoder) or _method_of(encoder)):
        raise OptionError(
            f"encoder={encoder!r} must be a name, a function from a list of texts to an array, or "
            "have a method encode or transform"
        )


def _method_of(encoder: Any) -> Encode | None:
    return next((getattr(encoder, name) for name in _METHODS if hasattr(encoder, name)), None)


@contextmanager
def _same_logging() -> Iterator[None]:
    """Restore the logging of the process, which a package may change on import."""
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    try:
        yield
    finally:
        root.setLevel(level)
        root.handlers[:] = handlers


@lru_cache(8)
@_same_logging()
def _load(name: str) -> Encode:
    package = NAMED[name]
    install = "'discem[vectors]'" if name == "wordllama" else package.name.replace("_", "-")
    with needing(f"encoder={name!r} needs {package.name}", install):
        module = import_module(package.name)
    try:
        return package.load(module, package.model)
    except Exception as error:  # each package raises its own errors
        raise OptionError(
            f"encoder={name!r}: {package.name} cannot load {package.model} from this machine, and "
            "discem downloads nothing; load it with that package once, then try again"
        ) from error


class Remembered:
    """An encoder that caches the vectors of texts, for several models of the same texts."""

    def __init__(self, encoder: Any):
        self.encoder = encoder
        self._known: dict[str, np.ndarray] = {}

    def __call__(self, texts: list[str]) -> np.ndarray:
        new = [*dict.fromkeys(text for text in texts if text not in self._known)]
        if new:
            self._known |= dict(zip(new, encode(self.encoder, [*new]), strict=True))
        return np.stack([self._known[text] for text in texts])


def described(encoder: Any) -> tuple[str, str]:
    """Return the name of an encoder, and the version of its package if known."""
    if isinstance(encoder, Remembered):
        encoder = encoder.encoder
    if isinstance(encoder, str):
        name, package = encoder, NAMED[encoder].name
    else:
        kind = encoder if hasattr(encoder, "__qualname__") else type(encoder)
        name, package = f"{kind.__module__}.{kind.__qualname__}", kind.__module__.split(".")[0]
    try:
        return name, metadata.version(package.replace("_", "-"))
    except metadata.PackageNotFoundError:
        return name, ""


def encode(
    encoder: Any, documents: list[Any], passed: Callable[[int], None] | None = None
) -> np.ndarray:
    """Return the vectors of documents, (n, d); lists of words are joined.

    A vector that is not finite, such as that of an empty text, becomes 0. `passed` is called with
    the number of finished documents.
    """
    function = _load(encoder) if isinstance(encoder, str) else _method_of(encoder) or encoder
    texts = [each if isinstance(each, str) else " ".join(each) for each in documents]
    found: list[np.ndarray] = []
    for begin in range(0, len(texts), _AT_ONCE):
        some = texts[begin : begin + _AT_ONCE]
        found.append(_checked(_called(function, some), len(some)))
        if found[-1].shape[1] != found[0].shape[1]:
            raise InputError(
                f"encoder: vectors of {found[0].shape[1]} numbers, then of {found[-1].shape[1]}"
            )
        if passed is not None:
            passed(begin + len(some))
    vectors = np.concatenate(found)
    vectors[~np.isfinite(vectors).all(axis=1)] = 0.0
    return vectors


def _called(function: Encode, texts: list[str]) -> Any:
    from sklearn.exceptions import NotFittedError

    try:
        with np.errstate(all="ignore"):  # what is not finite becomes 0
            return function(texts)
    except NotFittedError as error:
        raise OptionError(
            "encoder is not fitted. A fitted one that scikit-learn clones, as grid searches do, "
            "stays fitted in a sklearn.frozen.FrozenEstimator"
        ) from error


def _checked(found: Any, n: int) -> np.ndarray:
    if hasattr(found, "toarray"):  # sparse ones may be too wide to be written out
        _check_width(found.shape[1])
        found = found.toarray()
    try:
        vectors = np.array(found, dtype=np.float64)
    except (TypeError, ValueError) as error:
        told = f"{error}"[:80]
        raise InputError(f"encoder: its vectors are not numbers: {told}") from error
    if vectors.ndim != 2 or len(vectors) != n or not vectors.shape[1]:
        raise InputError(
            f"encoder: of {n} texts it made an array of shape {vectors.shape}; one vector of each "
            "text is expected"
        )
    _check_width(vectors.shape[1])
    return vectors


def _check_width(width: int) -> None:
    if width > _WIDEST:
        raise InputError(
            f"encoder: vectors of {width} numbers are too wide, at most {_WIDEST} are taken: "
            "reduce them, as TruncatedSVD(200) of scikit-learn does"
        )


def are_alike(vectors: np.ndarray, others: np.ndarray) -> bool:
    """Return whether two encoders make the same vectors of the same texts, up to rounding."""
    if vectors.shape != others.shape:
        return False
    return bool(np.linalg.norm(vectors - others) <= _APART * np.linalg.norm(others) + 1e-12)
