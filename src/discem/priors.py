"""Conjugate priors: a centre and a strength. They regularise discriminative training.

Values left as None are taken from the data when training starts.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ._kinds import savable


@savable
class Default(NamedTuple):
    """The default prior of every family, with its strength multiplied by a factor."""

    strength: float = 1.0


@savable
class NormalGamma(NamedTuple):
    """Prior of a Gaussian factor, in pseudo-observations.

    It adds ``nu_mean (m - mean)^2 / 2v + nu_variance (ln v + variance / v) / 2`` to the loss of
    each factor: `nu_mean` observations pull the mean of every class to `mean`, `nu_variance` pull
    its variance to `variance`. By default the centre comes from the data: the overall mean and the
    pooled within-class variance. Training then does not depend on the units of a column. As
    `nu_variance` grows the model becomes one with shared variances, i.e. logistic regression.
    """

    nu_mean: float = 2.0
    nu_variance: float = 30.0
    mean: Any = None
    variance: Any = None


@savable
class NormalBetaPrime(NamedTuple):
    """Prior of a Gaussian factor whose scale may be far from that of the others.

    It adds ``nu_mean (m - mean)^2 / (v + variance)`` and
    ``nu_variance ln((v + variance)^2 / (4 v variance))`` to the loss of each factor. Near its
    centre it behaves like `NormalGamma`. Far from it, the cost is small: a variance a hundred times
    smaller than `variance` costs a few nats per unit of `nu_variance` instead of a hundred, and the
    mean may be anywhere. Mixtures need this prior, as a component may be a spike.
    """

    nu_mean: float = 2.0
    nu_variance: float = 60.0
    mean: Any = None
    variance: Any = None


@savable
class PaperNormalGamma(NamedTuple):
    """The prior of the paper's toy example (section 4.1), in the raw units of the data.

    ``(alpha - nu mu)`` with alpha = (1, 0, 1) and nu = (0, 1, 1) for the count N, the sum S and the
    sum of squares V.
    """

    alpha_count: float = 1.0
    alpha_square: float = 1.0
    nu: float = 1.0


@savable
class Dirichlet(NamedTuple):
    """Prior of the words of a class: `alpha` pseudo-counts of every word.

    `alpha` is a number, one number per word, or None. None means `strength` times ``|x|^2`` of a
    typical document, in which each word has its typical count. If the pseudo-counts outweigh the
    words of a document, the document can change its own scores by ``|x|^2 / alpha`` nats, about
    ``1 / strength``, regardless of lengths, units, and the number of documents and words. A
    constant C has the same effect in a linear model of rows of length 1.
    """

    alpha: Any = None
    strength: float = 0.05


@savable
class Levels(NamedTuple):
    """Prior of the levels of a category, in pseudo-observations of each class.

    It adds ``-nu sum_l centre_l ln p_l`` to the loss of each factor: `nu` observations with the
    distribution `centre`, by default that of the column over all classes. If `nu` is None, it is
    `strength` times 2 per level, at most 20; the components of a class share it.
    """

    nu: Any = None
    centre: Any = None
    strength: float = 1.0


@savable
class Gamma(NamedTuple):
    """Prior of the rate of a Poisson factor: `nu` observations whose mean is `rate`.

    It adds ``nu (m - rate ln m)`` to the loss of each factor; if `rate` is None, it is the mean of
    the column.
    """

    nu: float = 2.0
    rate: Any = None


@savable
class Planes(NamedTuple):
    """Prior of an answer that is linear in other columns, in pseudo-observations per component.

    It adds ``nu_plane E[(w x - plane x)^2] / 2v`` and ``nu_variance (ln v + variance / v) / 2`` to
    the loss of each plane w and variance v: `nu_plane` observations pull w to the plane of all
    rows, `nu_variance` observations pull v to the usual variance of components.
    """

    nu_plane: float = 1.0
    nu_variance: float = 2.0
    plane: Any = None  # (P, q)
    variance: Any = None  # (q,)
    gram: Any = None  # (P, P) E[x x'] of all rows


@savable
class NormalWishart(NamedTuple):
    """Prior of correlated numbers, in pseudo-observations of each component.

    It adds ``nu_mean (m - mean)' S^-1 (m - mean) / 2`` and
    ``nu_covariance (ln |S| + tr(covariance S^-1)) / 2`` to the loss of each mean m and covariance
    S. By default the centre comes from the data: the overall mean, and the pooled within-class
    covariance, shrunk by a fifth towards its diagonal. A number for `covariance` means that
    variance for each column and no correlation. By default `nu_covariance` is `strength` times the
    number of columns plus 2, at least 30; the components of a class share it.
    """

    nu_mean: float = 2.0
    nu_covariance: Any = None
    mean: Any = None
    covariance: Any = None
    strength: float = 1.0
