"""What documents mean beside their words: a block of the numbers that an encoder makes of them.

The joint is ``ln p(y) + ln p(words | y) + weight ln p(vector | y) + bias ln f(y)``, f being how
frequent classes were. The two blocks are trained apart, so what both say would count twice: the
weights, which documents held out decide, see to that. Vectors are normal with one covariance in
all classes, which is known, so their block is linear in the vector, as a logistic regression is.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Self, cast

import numpy as np
from scipy.special import log_softmax

from .._checks import check_array, check_number, demand
from .._kinds import savable
from ..exceptions import OptionError
from ..families import family_of
from ..io.bag import as_documents
from ..io.encoders import PROBES, are_alike, described, encode
from ..io.labels import missing_labels
from ..priors import NormalWishart
from ..progress import Steps
from ._pieces import Pieces
from .presets import GaussianClassifier

MEANING = "(meaning)"  # in explanations: what the vector adds
_WEIGHT = 0.2  # of vectors beside words, where no documents are held out
_ROWS = 32  # of a step in a stream: of more, steps are too large
_NEVER = np.log(1e-11)  # of the logarithm of a frequency: there was no row of the class
_STRENGTH = 0.25  # pseudo-observations of the prior of a mean, for each number of a vector


@savable
@dataclass
class Meaning:
    """The block of vectors of a `TextClassifier`, and its encoder."""

    model: GaussianClassifier
    encoder: str  # its name
    version: str
    probes: np.ndarray  # its vectors of a few texts
    weight: float = _WEIGHT
    bias: float = 0.0

    _known = cast(Any, None)  # an encoder that was checked; neither files nor copies have it

    @classmethod
    def new(cls, encoder: Any, vectors: np.ndarray, **options: Any) -> Self:
        """Return a block for training on documents with these vectors."""
        d, spread = vectors.shape[1], vectors.var(axis=0).mean()
        spread = spread or (vectors**2).mean() or 1.0  # of a single document there is none
        prior = NormalWishart(nu_mean=_STRENGTH * d, covariance=float(spread))
        model = GaussianClassifier(covariance="tied", loss="ncll", prior=prior, **options)
        found = cls(model, *described(encoder), encode(encoder, list(PROBES)))
        found._known = encoder
        return found

    def said(self, vectors: np.ndarray) -> np.ndarray:
        """Return ``weight ln p(vector | y)``, (n, n_classes), up to what all classes share."""
        return self.weight * vector_scores(self.model, vectors)

    def check_batch(self, vectors: np.ndarray, *given: Any) -> Any:
        """Check the next documents of a stream without learning."""
        self.model.batch_size = _ROWS
        return self.model.check_batch(vectors, *given)

    def linear(self) -> tuple[np.ndarray, np.ndarray]:
        """Return `said` as a linear function: coefficients, (n_classes, d), and offsets."""
        (block,) = self.model.learner_.model.blocks
        offset, slopes = family_of(block).slopes(block)
        offset = offset + np.log(self.model._shares() / self.model._frequencies())
        return self.weight * slopes["x"], self.weight * offset

    @property
    def start(self) -> np.ndarray:
        """Return ``bias ln f(y)``, (n_classes,)."""
        return self.bias * np.log(self.model._frequencies())

    def check_encoder(self, encoder: Any) -> None:
        """Raise an error for an encoder other than that of the training."""
        if encoder is not None and encoder is self._known:
            return
        wanted = f"{self.encoder} {self.version}".strip()
        if encoder is None:
            raise OptionError(
                f"the model was trained with vectors of {wanted}, and files hold no encoder: "
                "give it as discem.load(path, encoder=...), or by set_params(encoder=...)"
            )
        if not are_alike(encode(encoder, list(PROBES)), self.probes):
            found = " ".join(described(encoder)).strip()
            raise OptionError(
                f"encoder: this {found} makes other vectors than the encoder of the training, "
                f"{wanted}: give the one that the model was fitted with"
            )
        self._known = encoder

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_known"}

    def check(self, classes: np.ndarray) -> None:
        """Validate the block, which may come from any file."""
        demand(type(self.model) is GaussianClassifier, "it has no model of its vectors")
        self.model._check_fitted()
        alike = np.array_equal(self.model.classes_, classes)
        demand(alike, "its words and its vectors have not the same classes")
        check_array("probes", self.probes, (len(PROBES), self.model.n_features_in_))
        check_number("weight", self.weight, least=0.0)
        check_number("bias", self.bias)
        named = isinstance(self.encoder, str) and isinstance(self.version, str)
        demand(named, "its encoder has no name")


def by_bayes(scores: np.ndarray, log_f: np.ndarray) -> np.ndarray:
    """``ln p(x | y)`` of scores ``ln p(y, x)``, by Bayes' rule, up to what classes share.

    `log_f` is how frequent classes were in training. Of a class that was not there, x says nothing.
    """
    return np.where(never_seen(log_f), 0.0, log_softmax(scores, axis=1) - log_f)


def never_seen(log_f: np.ndarray) -> np.ndarray:
    """Return which classes had no row in training."""
    return log_f < _NEVER


def vector_scores(model: GaussianClassifier, vectors: np.ndarray) -> np.ndarray:
    """``ln p(vector | y)`` by Bayes' rule, as the model was trained, up to what classes share."""
    found = model._scores(vectors) - np.log(model._frequencies())
    return found - found.mean(axis=1, keepdims=True)


def fit_vectors(model: GaussianClassifier, vectors: np.ndarray, y: Any, weights: np.ndarray) -> Any:
    """Fit the model to the labelled documents."""
    sets = getattr(y, "ndim", 2) == 2
    own = slice(None) if sets else np.flatnonzero(~missing_labels(y))
    return model.fit(vectors[own], y[own] if not sets else y, weights[own])


def vectors_of_pieces(encoder: Any, pieces: Pieces) -> Pieces:
    """The vectors of documents on workers, which make them; unlabelled ones weigh nothing."""
    return pieces.map(partial(_vectors, encoder), here=False).without_unlabelled()


def _vectors(encoder: Any, documents: Any) -> np.ndarray:
    return encode(encoder, as_documents(documents))


def vectors_of(encoder: Any, documents: list[Any], verbose: int) -> np.ndarray:
    """Return the vectors of documents, with progress."""
    steps = Steps(verbose, "encoding", len(documents))
    return encode(encoder, documents, steps.passed)
