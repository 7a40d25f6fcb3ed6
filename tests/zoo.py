"""The zoo: small unpleasant data sets, by name, and the parts that random ones are made of.

Defaults that are tried on well-known sets only break on the next one. Every member draws training
rows and fresh rows from one process, so that what was learnt can be held against the truth.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

Rng = np.random.Generator


class Sample(NamedTuple):
    """Rows to train on, and fresh rows of the same process."""

    X: Any  # an array, a sparse matrix, or a list of texts
    y: np.ndarray
    weight: np.ndarray | None
    X_fresh: Any
    y_fresh: np.ndarray


TABLES: dict[str, Callable[[Rng], Sample]] = {}
COUNTS: dict[str, Callable[[Rng], Sample]] = {}


def table(member: Callable[[Rng], Sample]) -> Callable[[Rng], Sample]:
    """A member in numbers."""
    TABLES[member.__name__] = member
    return member


def counts(member: Callable[[Rng], Sample]) -> Callable[[Rng], Sample]:
    """A member in counts of words."""
    COUNTS[member.__name__] = member
    return member


def cut(X: Any, y: np.ndarray, n: int, weight: np.ndarray | None = None) -> Sample:
    """The first n rows are to train on, the others are fresh."""
    return Sample(X[:n], y[:n], weight, X[n:], y[n:])


def labels(rng: Rng, n: int, K: int, fresh: int = 400, shares: Any = None) -> np.ndarray:
    """Classes of n rows, every class among them as long as there is room, and of fresh ones."""
    y = rng.choice(K, size=n + fresh, p=shares)
    y[: min(K, n)] = np.arange(min(K, n))
    y[:n] = rng.permutation(y[:n])
    return y


# --- columns --------------------------------------------------------------------------------------
# Each kind makes columns for classes y, of parameters that it draws itself.


def bells(y: np.ndarray, rng: Rng, d: int = 1, gap: float = 1.0) -> np.ndarray:
    """Normal columns; class means are `gap` deviations from each other, more or less."""
    K = y.max() + 1
    mean, scale = rng.normal(0, gap, (K, d)), rng.uniform(0.5, 1.5, (K, d))
    return mean[y] + scale[y] * rng.normal(size=(len(y), d))


def heavy_tails(y: np.ndarray, rng: Rng, d: int = 1) -> np.ndarray:
    return rng.normal(0, 2, (y.max() + 1, d))[y] + rng.standard_cauchy((len(y), d))


def rounded(y: np.ndarray, rng: Rng, d: int = 1) -> np.ndarray:
    return np.round(bells(y, rng, d))


def flags(y: np.ndarray, rng: Rng, d: int = 1, flips: float = 0.005) -> np.ndarray:
    """Columns that are nearly a function of the class."""
    return ((rng.random((y.max() + 1, d)) < 0.3)[y] ^ (rng.random((len(y), d)) < flips)).astype(
        float
    )


def yes_or_no(y: np.ndarray, rng: Rng, d: int = 1) -> np.ndarray:
    return (rng.random((len(y), d)) < rng.beta(0.5, 0.5, (y.max() + 1, d))[y]).astype(float)


def one_hot(y: np.ndarray, rng: Rng, d: int = 1) -> np.ndarray:
    """Columns of d categories of two to five levels each."""
    columns = []
    for levels in rng.integers(2, 6, d):
        edges = rng.dirichlet(np.full(levels, 0.4), y.max() + 1).cumsum(axis=1)
        level = (rng.random((len(y), 1)) > edges[y]).sum(axis=1)
        columns.append(np.eye(levels)[np.minimum(level, levels - 1)])
    return np.hstack(columns)


def tallies(y: np.ndarray, rng: Rng, d: int = 1) -> np.ndarray:
    return rng.poisson(rng.gamma(0.7, 3.0, (y.max() + 1, d))[y]).astype(float)


def fixed_by_class(y: np.ndarray, rng: Rng, d: int = 1) -> np.ndarray:
    """Columns constant within a class; two classes may share a value."""
    return np.round(rng.normal(0, 2, (y.max() + 1, d)))[y]


def fixed_in_one_class(y: np.ndarray, rng: Rng, d: int = 1) -> np.ndarray:
    """Columns that vary, but not in one class."""
    X = bells(y, rng, d)
    X[y == rng.integers(y.max() + 1)] = 0.5
    return X


def leaks(y: np.ndarray, rng: Rng, d: int = 1) -> np.ndarray:
    """Columns that tell one class for certain."""
    return (y[:, None] == rng.integers(y.max() + 1, size=d)).astype(float)


def constants(y: np.ndarray, rng: Rng, d: int = 1) -> np.ndarray:
    return np.tile(rng.normal(0, 3, d), (len(y), 1))


def noise(y: np.ndarray, rng: Rng, d: int = 1) -> np.ndarray:
    return rng.normal(size=(len(y), d))


KINDS: dict[str, Callable[..., np.ndarray]] = {
    kind.__name__: kind
    for kind in (
        *(bells, heavy_tails, rounded, flags, yes_or_no, one_hot, tallies),
        *(fixed_by_class, fixed_in_one_class, leaks, constants, noise),
    )
}


# --- what is done to rows -------------------------------------------------------------------------


def mislabelled(y: np.ndarray, share: float, rng: Rng) -> np.ndarray:
    """A share of the labels is drawn anew, wrong."""
    K = y.max() + 1
    return np.where(rng.random(len(y)) < share, (y + rng.integers(1, max(K, 2), len(y))) % K, y)


def with_holes(X: np.ndarray, share: float, rng: Rng) -> np.ndarray:
    return np.where(rng.random(X.shape) < share, np.nan, X)


def weights_of_all_sizes(n: int, rng: Rng) -> np.ndarray:
    """From 0 to a million, a tenth of them 0."""
    return np.where(rng.random(n) < 0.1, 0.0, 10 ** rng.uniform(0, 6, n))


def uneven_weights(n: int, rng: Rng) -> np.ndarray:
    """From 0 to 10, so that no few rows are all there is."""
    return np.where(rng.random(n) < 0.1, 0.0, 10 ** rng.uniform(-1, 1, n))


# --- tables ---------------------------------------------------------------------------------------


@table
def nearly_deterministic_flags(rng):
    y = labels(rng, 300, 10)
    return cut(flags(y, rng, 30), y, 300)


@table
def label_as_a_column(rng):
    y = labels(rng, 200, 4)
    return cut(np.column_stack([bells(y, rng, 4), y]), y, 200)


@table
def label_as_flags(rng):
    y = labels(rng, 200, 5)
    return cut(np.hstack([bells(y, rng, 4), np.eye(5)[y]]), y, 200)


@table
def one_hot_of_categories(rng):
    """As soybean: 35 categories, 19 classes."""
    y = labels(rng, 300, 19)
    return cut(one_hot(y, rng, 35), y, 300)


@table
def columns_that_separate(rng):
    y = labels(rng, 200, 3)
    return cut(10.0 * y[:, None] + rng.random((len(y), 3)), y, 200)


@table
def constant_within_classes(rng):
    y = labels(rng, 200, 4)
    return cut(np.hstack([fixed_by_class(y, rng, 3), bells(y, rng, 3)]), y, 200)


@table
def constant_within_one_class(rng):
    y = labels(rng, 200, 3)
    return cut(fixed_in_one_class(y, rng, 5), y, 200)


@table
def constant_columns(rng):
    y = labels(rng, 200, 3)
    return cut(np.hstack([constants(y, rng, 3), bells(y, rng, 3)]), y, 200)


@table
def duplicated_columns(rng):
    y = labels(rng, 200, 3)
    return cut(np.tile(bells(y, rng, 3), 8), y, 200)


@table
def cauchy(rng):
    y = labels(rng, 200, 3)
    return cut(heavy_tails(y, rng, 6), y, 200)


@table
def ties(rng):
    y = labels(rng, 200, 3)
    return cut(rounded(y, rng, 6), y, 200)


@table
def counts_as_numbers(rng):
    y = labels(rng, 200, 4)
    return cut(tallies(y, rng, 10), y, 200)


@table
def tiny_classes(rng):
    y = np.concatenate([np.repeat(np.arange(30), 3), rng.integers(30, size=600)])
    return cut(bells(y, rng, 6), y, 90)


@table
def a_rare_class(rng):
    y = rng.integers(2, size=3000)
    y[[*range(0, 2000, 400), *range(2000, 3000, 200)]] = 2
    return cut(bells(y, rng, 4), y, 2000)


@table
def huge_imbalance(rng):
    y = labels(rng, 1000, 3, fresh=1000, shares=[0.99, 0.007, 0.003])
    return cut(bells(y, rng, 5), y, 1000)


@table
def a_hundred_classes(rng):
    y = labels(rng, 300, 100, fresh=300)
    return cut(bells(y, rng, 5, gap=3.0), y, 300)


@table
def more_columns_than_rows(rng):
    y = labels(rng, 30, 3)
    return cut(bells(y, rng, 100, gap=0.5), y, 30)


@table
def one_column(rng):
    y = labels(rng, 200, 3)
    return cut(bells(y, rng), y, 200)


@table
def two_rows(rng):
    y = labels(rng, 2, 2)
    return cut(bells(y, rng, 3, gap=3.0), y, 2)


@table
def mostly_missing(rng):
    y = labels(rng, 300, 3)
    return cut(with_holes(bells(y, rng, 10), 0.9, rng), y, 300)


@table
def a_column_wholly_missing(rng):
    y = labels(rng, 200, 3)
    return cut(np.hstack([np.full((len(y), 1), np.nan), bells(y, rng, 4)]), y, 200)


@table
def a_column_missing_in_a_class(rng):
    y = labels(rng, 200, 3)
    X = bells(y, rng, 4)
    X[y == 1, 0] = np.nan
    return cut(X, y, 200)


@table
def flags_of_missingness(rng):
    """Cells are missing by class, and each column has a second that says so."""
    y = labels(rng, 300, 3)
    holes = rng.random((len(y), 6)) < np.array([0.02, 0.3, 0.9])[y, None]
    return cut(np.hstack([np.where(holes, np.nan, bells(y, rng, 6)), holes]), y, 300)


@table
def wrong_labels(rng):
    y = labels(rng, 300, 3)
    return cut(bells(y, rng, 5, gap=2.0), mislabelled(y, 0.4, rng), 300)


@table
def labels_of_noise(rng):
    y = labels(rng, 200, 3)
    return cut(noise(y, rng, 5), y, 200)


@table
def outliers(rng):
    y = labels(rng, 300, 3)
    X = bells(y, rng, 5)
    return cut(np.where(rng.random(X.shape) < 0.005, 1e6 * X, X), y, 300)


@table
def huge_offsets(rng):
    y = labels(rng, 200, 3)
    return cut(bells(y, rng, 4) * [1, 1e3, 1e-3, 1e9] + [1e9, 1e9, 1e3, 1e9], y, 200)


@table
def rows_of_any_weight(rng):
    """Many rows of few columns: by their weights they are seven times fewer."""
    y = labels(rng, 1500, 2)
    return cut(bells(y, rng, 2), y, 1500, weights_of_all_sizes(1500, rng))


@table
def a_class_of_great_weight(rng):
    """Fresh rows are as the weights say: hardly any are of another class."""
    y = labels(rng, 200, 3)
    y[200:] = 1
    return cut(bells(y, rng, 5), y, 200, np.where(y[:200] == 1, 1e6, 1.0))


@table
def numbers_and_one_hot(rng):
    y = labels(rng, 300, 4)
    return cut(np.hstack([bells(y, rng, 4), one_hot(y, rng, 6)]), y, 300)


@table
def a_bit_of_everything(rng):
    y = labels(rng, 300, 4)
    X = np.hstack([kind(y, rng, 2) for kind in KINDS.values()])
    return cut(with_holes(X, 0.1, rng), mislabelled(y, 0.1, rng), 300)


# --- counts of words ------------------------------------------------------------------------------


def documents(
    y: np.ndarray,
    rng: Rng,
    lengths: Any = 20,
    words: int = 120,
    contrast: float = 1.0,
    burst: float = 40.0,
) -> sp.csr_matrix:
    """Counts of words in documents of classes y; the words of classes differ by `contrast`.

    A word that has occurred is likely to occur again, as in any text, the more so the smaller
    `burst` is: the multinomial of naive Bayes is the limit of large ones.
    """
    common = np.log(rng.dirichlet(np.full(words, 0.3)) + 1e-6)
    p = np.exp(common + contrast * rng.normal(size=(y.max() + 1, words)))
    p = np.maximum(p / p.sum(axis=1, keepdims=True), 1e-6)
    own = p[y] if np.isinf(burst) else rng.standard_gamma(burst * p[y]) + 1e-9
    own /= own.sum(axis=1, keepdims=True)
    return sp.csr_matrix(rng.multinomial(np.broadcast_to(lengths, y.shape), own).astype(float))


@counts
def documents_as_naive_bayes_has_them(rng):
    y = labels(rng, 200, 3)
    return cut(documents(y, rng, burst=np.inf), y, 200)


@counts
def documents_of_one_word(rng):
    y = labels(rng, 200, 3)
    return cut(documents(y, rng, lengths=1), y, 200)


@counts
def a_document_of_a_million_words(rng):
    y = labels(rng, 200, 3)
    return cut(documents(y, rng, np.where(np.arange(len(y)) == 7, 10**6, 20)), y, 200)


@counts
def a_word_500_times_in_each_document(rng):
    y = labels(rng, 200, 3)
    return cut(sp.hstack([documents(y, rng), np.full((len(y), 1), 500.0)], format="csr"), y, 200)


@counts
def empty_documents(rng):
    y = labels(rng, 200, 3)
    return cut(documents(y, rng, np.where(rng.random(len(y)) < 0.3, 0, 15)), y, 200)


@counts
def a_rare_class_of_documents(rng):
    y = labels(rng, 1500, 3, fresh=1000, shares=[0.6, 0.395, 0.005])
    return cut(documents(y, rng, words=60), y, 1500)


@counts
def twenty_documents(rng):
    y = labels(rng, 20, 2)
    return cut(documents(y, rng), y, 20)


@counts
def sixty_documents(rng):
    y = labels(rng, 60, 6)
    return cut(documents(y, rng, lengths=50, words=300), y, 60)


@counts
def weighted_words(rng):
    """Real numbers, as those of tf-idf, of length 1."""
    y = labels(rng, 200, 4)
    X = documents(y, rng)
    frequency = np.asarray(X.sign().sum(axis=0)).ravel()
    X = X @ sp.diags(1 + np.log(len(y) / (1 + frequency)))
    norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    return cut((sp.diags(1 / norms) @ X).tocsr(), y, 200)


@counts
def fifty_classes(rng):
    y = labels(rng, 300, 50)
    return cut(documents(y, rng, lengths=30), y, 300)


@counts
def repeated_documents(rng):
    y = labels(rng, 40, 3)
    sample = cut(documents(y, rng), y, 40)
    again = np.tile(np.arange(40), 6)
    return sample._replace(X=sample.X[again], y=sample.y[again])


@counts
def the_same_documents_in_all_classes(rng):
    y = labels(rng, 200, 3)
    return cut(documents(np.arange(len(y)) % 5, rng)[rng.integers(5, size=len(y))], y, 200)


@counts
def documents_of_any_weight(rng):
    y = labels(rng, 1500, 2)
    return cut(documents(y, rng, words=40), y, 1500, weights_of_all_sizes(1500, rng))


@counts
def long_and_short_documents(rng):
    y = labels(rng, 200, 3)
    return cut(documents(y, rng, np.round(10 ** rng.uniform(0, 3.7, len(y))).astype(int)), y, 200)


@counts
def mislabelled_documents(rng):
    y = labels(rng, 200, 3)
    return cut(documents(y, rng), mislabelled(y, 0.4, rng), 200)


@counts
def words_that_separate(rng):
    y = labels(rng, 200, 4)
    return cut(sp.hstack([documents(y, rng), sp.csr_matrix(np.eye(4)[y])], format="csr"), y, 200)


@counts
def flags_as_words(rng):
    y = labels(rng, 300, 10)
    return cut(sp.csr_matrix(flags(y, rng, 60)), y, 300)


@counts
def two_words(rng):
    y = labels(rng, 200, 2)
    return cut(documents(y, rng, words=2), y, 200)


def as_texts(sample: Sample) -> Sample:
    """The same documents as texts, words being numbers."""

    def texts(X):
        names = np.array([f"word{j}" for j in range(X.shape[1])])
        each = (X[i].tocoo() for i in range(X.shape[0]))
        return [" ".join(np.repeat(names[row.col], row.data.astype(int))) for row in each]

    return sample._replace(X=texts(sample.X), X_fresh=texts(sample.X_fresh))


# --- random ones ----------------------------------------------------------------------------------


class Spoiling(NamedTuple):
    """What is wrong with the rows of a random set."""

    uneven: float = 0.0  # 0: classes of a size; 1: some have hardly any rows
    wrong: float = 0.0  # share of wrong labels
    missing: float = 0.0  # share of missing cells; of empty documents
    weighted: bool = False
    shifted: bool = False  # columns of huge offsets; documents of very different lengths
    repeated: bool = False  # all columns twice; all documents twice


def random_labels(rng: Rng, n: int, K: int, uneven: float, fresh: int) -> np.ndarray:
    shares = rng.dirichlet(np.full(K, 10.0 ** (1 - 2 * uneven)))
    return labels(rng, n, K, fresh, shares)


def random_table(
    rng: Rng, n: int, K: int, kinds: Sequence[str], spoilt: Spoiling, fresh: int = 400
) -> Sample:
    """A table with a column, or a category, of each of the kinds."""
    y = random_labels(rng, n, K, spoilt.uneven, fresh)
    X = np.hstack([KINDS[kind](y, rng) for kind in kinds])
    if spoilt.shifted:
        X = X * 10 ** rng.uniform(-6, 6, X.shape[1]) + 10 ** rng.uniform(-6, 6, X.shape[1])
    if spoilt.repeated:
        X = np.hstack([X, X])
    if spoilt.missing:
        X = with_holes(X, spoilt.missing, rng)
    y = mislabelled(y, spoilt.wrong, rng)
    return known(cut(X, y, n, uneven_weights(n, rng) if spoilt.weighted else None))


def random_counts(
    rng: Rng, n: int, K: int, words: int, contrast: float, spoilt: Spoiling, fresh: int = 400
) -> Sample:
    """Documents of about 20 words."""
    y = random_labels(rng, n, K, spoilt.uneven, fresh)
    spread = 1.0 if spoilt.shifted else 0.2
    lengths = np.ceil(20 * 10 ** rng.normal(0, spread, len(y))).clip(max=10_000).astype(int)
    lengths[rng.random(len(y)) < spoilt.missing] = 0
    X = documents(y, rng, lengths, words, contrast)
    y = mislabelled(y, spoilt.wrong, rng)
    sample = cut(X, y, n, uneven_weights(n, rng) if spoilt.weighted else None)
    if spoilt.repeated:
        twice = np.tile(np.arange(n), 2)
        weight = None if sample.weight is None else sample.weight[twice]
        sample = sample._replace(X=sample.X[twice], y=sample.y[twice], weight=weight)
    return known(sample)


def known(sample: Sample) -> Sample:
    """Without fresh rows of classes that training has not seen."""
    seen = sample.y if sample.weight is None else sample.y[sample.weight > 0]
    own = np.isin(sample.y_fresh, seen)
    return sample._replace(X_fresh=sample.X_fresh[own], y_fresh=sample.y_fresh[own])
