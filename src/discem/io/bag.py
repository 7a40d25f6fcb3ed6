"""Documents as rows of numbers: word counts by scikit-learn, weighted and scaled to one length."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .._checks import check_array, check_count, check_number, demand
from .._kinds import savable
from ..exceptions import DiscemError, InputError, OptionError
from .cells import shown
from .patterns import check_pattern
from .pieces import options_of_pieces
from .rows import extended

COUNTING = (  # options of scikit-learn's CountVectorizer
    *("ngram_range", "analyzer", "token_pattern", "lowercase", "strip_accents", "stop_words"),
    *("min_df", "max_df", "max_features"),
)
WEIGHTINGS = ("tfidf", "presence", "counts")
PIECES = "pieces"  # words, and pieces of them
_ALLOWED: dict[str, tuple] = {  # allowed types in a file; users may also give a function
    "analyzer": ("word", PIECES, "char", "char_wb"),
    "lowercase": (True, False),
    "strip_accents": (None, "ascii", "unicode"),
}
_LONGEST_NGRAM = 100
_MOST_COLUMNS = 2**31 - 1
_WHOLE_CORPUS = {"min_df": 1, "max_df": 1.0, "max_features": None}  # these need all words at once


def as_documents(X) -> list[Any]:
    """Return a list of documents, each a text or a sequence of words; errors name other items."""
    if isinstance(X, str | bytes):
        raise InputError(f"X is one text, {shown(X)}: expected a list of texts, such as [text]")
    if sp.issparse(X) or getattr(getattr(X, "dtype", None), "kind", "O") in "biufc":
        raise InputError("X holds numbers, not documents: for counts of words use MultinomialNB")
    if len(getattr(X, "shape", ())) == 2:  # a column of a table
        if X.shape[1] != 1:
            raise InputError(f"X has {X.shape[1]} columns: give the one that holds the documents")
        X = (X.to_numpy() if hasattr(X, "to_numpy") else X)[:, 0]
    try:
        documents = X.to_list() if hasattr(X, "to_list") else list(X)
    except TypeError as error:
        raise InputError(f"X is a {type(X).__name__}: expected documents") from error
    if not documents:
        raise InputError("X has no documents")
    for row, document in enumerate(documents):
        if not isinstance(document, str):
            _check_words(row, document)
    return documents


def _check_words(row: int, document) -> None:
    sequence = isinstance(document, Sequence | np.ndarray) and not isinstance(document, bytes)
    if not sequence or getattr(document, "ndim", 1) != 1:  # 0 of a masked cell
        raise InputError(f"document {row} is {shown(document)}: expected text or a list of words")
    for word in document:
        if not isinstance(word, str):
            raise InputError(f"document {row} holds {shown(word)}: expected a word")


class Counted(NamedTuple):
    """Documents that were counted before the vocabulary is known."""

    counts: sp.csr_matrix
    words: list[str] | None  # by column; None if words are hashed

    @property
    def shape(self) -> tuple[int, int]:
        return self.counts.shape


class Occurrences(NamedTuple):
    """The number of documents, and the number of documents with each word."""

    n_documents: int
    words: list[str] | None
    documents: np.ndarray
    total: np.ndarray  # how often each word occurs

    @classmethod
    def of(cls, counted: Counted, rows: np.ndarray) -> Occurrences:
        """Count the words of some of the documents."""
        counts = counted.counts[rows]
        width = counts.shape[1]
        documents = np.bincount(counts.indices, minlength=width).astype(np.float64)
        total = np.bincount(counts.indices, counts.data, minlength=width)
        return cls(counts.shape[0], counted.words, documents, total)

    @classmethod
    def merge(cls, *parts: Occurrences) -> Occurrences:
        """Merge the counts of all parts."""
        n = sum(part.n_documents for part in parts)
        if parts[0].words is None:
            documents, total = np.sum([[p.documents, p.total] for p in parts], axis=0)
            return cls(n, None, documents, total)
        words = sorted({word for part in parts for word in part.words or ()})
        place = {word: j for j, word in enumerate(words)}
        documents, total = np.zeros((2, len(words)))
        for part in parts:
            own = [place[word] for word in part.words or ()]
            documents[own] += part.documents
            total[own] += part.total
        return cls(n, words, documents, total)


@savable
class Bag:
    """Convert documents to rows: the vocabulary, and the document frequency of each word.

    Parameters
    ----------
    options : dict
        The options of scikit-learn's CountVectorizer in `COUNTING`.
    n_columns : int or None
        If a number, words are hashed into this many columns, without a vocabulary.
    """

    def __init__(self, options: dict[str, Any], n_columns: int | None):
        self.options = options
        self.n_columns = n_columns
        self.vocabulary: dict[str, int] = {}
        self.document_count = np.zeros(n_columns or 0)
        self.n_documents = 0
        self._vectorizer: Any = None
        self._analyze: Callable[[Any], list[str]] | None = None
        self._recounted = np.zeros(0, dtype=np.int64), np.zeros(0)  # columns, and what was there

    def __len__(self) -> int:
        return self.n_columns or len(self.vocabulary)

    # --- counting ---------------------------------------------------------------------------------

    def learn(self, documents: list[Any], min_df: int | None = None) -> sp.csr_matrix:
        """Count a whole corpus, whose words, if not too rare, become the vocabulary."""
        if self.n_columns:
            self._refuse_pruning("hashed words are not")
            counts = self.count(documents)
            if not counts.nnz:
                raise EmptyVocabulary("the documents hold no words, or stop words only")
        else:
            vectorizer = self._make()
            vectorizer.min_df = min_df or vectorizer.min_df
            counts = _translating(vectorizer.fit_transform, documents)
            self.vocabulary = {
                str(word): j for j, word in enumerate(vectorizer.get_feature_names_out())
            }
        self._count_documents(counts)
        return counts

    def count_freely(self, documents: list[Any]) -> Counted:
        """Count some documents of a corpus before its vocabulary is known."""
        if self.n_columns:
            self._refuse_pruning("hashed words are not")
            return Counted(self.count(documents), None)
        vectorizer = Bag(self.options | _WHOLE_CORPUS, None)._make()
        try:
            counts = _translating(vectorizer.fit_transform, documents)
        except EmptyVocabulary:  # other documents may have words
            return Counted(sp.csr_matrix((len(documents), 0), dtype=np.int64), [])
        return Counted(counts, [str(word) for word in vectorizer.get_feature_names_out()])

    def learn_words(self, found: Occurrences) -> None:
        """Make the vocabulary from a whole corpus that was counted elsewhere."""
        self.n_documents, self.document_count = found.n_documents, found.documents
        if not found.documents.any():
            raise EmptyVocabulary("the documents hold no words, or stop words only")
        if found.words is None:
            return
        kept = np.flatnonzero((found.documents > 0) & self._frequent(found))
        most = self.options["max_features"]
        if most is not None:
            kept = np.sort(kept[np.argsort(-found.total[kept], kind="stable")[:most]])
        if not len(kept):
            raise OptionError("min_df and max_df leave no words")
        self.vocabulary = {found.words[j]: place for place, j in enumerate(kept)}
        self.document_count = found.documents[kept]

    def _frequent(self, found: Occurrences) -> np.ndarray:
        """Return which words satisfy min_df and max_df."""
        least, most = (
            value if isinstance(value, int | np.integer) else value * found.n_documents
            for value in (self.options["min_df"], self.options["max_df"])
        )
        if most < least:
            raise OptionError("max_df corresponds to < documents than min_df")
        return (found.documents >= least) & (found.documents <= most)

    def arrange(self, counted: Counted) -> sp.csr_matrix:
        """Return counts by the columns of the vocabulary; other words are left out."""
        counts, words = counted
        if words is None:
            return counts
        column = np.array([self.vocabulary.get(word, -1) for word in words], dtype=np.int32)
        known = column[counts.indices] >= 0 if len(words) else np.zeros(0, dtype=bool)
        ends = np.concatenate([[0], np.cumsum(known)])[counts.indptr]
        indices = column[counts.indices[known]] if len(words) else np.zeros(0, dtype=np.int32)
        return sp.csr_matrix((counts.data[known], indices, ends), (counts.shape[0], len(self)))

    def grow(self, documents: list[Any]) -> sp.csr_matrix:
        """Count the next documents of a stream; new words join the vocabulary."""
        self._refuse_pruning("those of a stream are not")
        counts = self.count(documents) if self.n_columns else self._count_and_grow(documents)
        if not self.n_documents and not counts.nnz:
            raise EmptyVocabulary("the first documents of a stream hold no words")
        self._count_documents(counts)
        return counts

    @contextmanager
    def undone_on_error(self) -> Iterator[None]:
        """Undo all counts of the block if it raises an error."""
        known, count, n_documents = len(self.vocabulary), self.document_count, self.n_documents
        self._recounted = self._recounted[0][:0], self._recounted[1][:0]
        try:
            yield
        except BaseException:
            self.forget(known)
            columns, before = self._recounted
            count[columns] = before
            self.document_count, self.n_documents = count, n_documents
            raise

    def _refuse_pruning(self, why: str) -> None:
        for name, default in _WHOLE_CORPUS.items():
            if self.options[name] != default:
                raise OptionError(
                    f"{name}={self.options[name]!r} needs words that are known beforehand: {why}"
                )

    def _count_and_grow(self, documents: list[Any]) -> sp.csr_matrix:
        """Count documents in time proportional to their length, whatever the vocabulary."""
        analyze = self._analyze = self._analyze or self._make_analyzer(documents)
        counted = _translating(
            lambda each: [Counter(map(str, analyze(document))) for document in each], documents
        )
        place = self.vocabulary
        for word in sorted({word for words in counted for word in words if word not in place}):
            place[word] = len(place)
        found = [(place[word], n) for words in counted for word, n in sorted(words.items())]
        indices, values = np.array(found, dtype=np.float64).reshape(-1, 2).T
        indptr = np.cumsum([0, *map(len, counted)])
        return sp.csr_matrix((values, indices.astype(np.int32), indptr), (len(counted), len(self)))

    def _make_analyzer(self, documents: list[Any]) -> Callable[[Any], list[str]]:
        """Return the function that splits a document into words; scikit-learn checks options."""
        vectorizer = self._make()
        with suppress(EmptyVocabulary):
            _translating(vectorizer.fit_transform, documents)
        return vectorizer.build_analyzer()

    def forget(self, n_words: int) -> None:
        """Keep only the first words of the vocabulary."""
        while len(self.vocabulary) > n_words:
            self.vocabulary.popitem()

    def count(self, documents: list[Any]) -> sp.csr_matrix:
        """Count documents; words outside the vocabulary are left out."""
        if self._vectorizer is None:
            self._vectorizer = self._make()
        if not self.n_columns:
            if not self.vocabulary:
                return sp.csr_matrix((len(documents), 0))
            self._vectorizer.vocabulary_ = self.vocabulary
        return _translating(self._vectorizer.transform, documents)

    def columns(self, document) -> dict[int, str]:
        """Return the words of a document by column; hashed words that share a column are joined."""
        found = dict.fromkeys(self._make().build_analyzer()(document))
        if not found:
            return {}
        if not self.n_columns:
            return {self.vocabulary[w]: w for w in found if w in self.vocabulary}
        from sklearn.feature_extraction import FeatureHasher

        hasher = FeatureHasher(self.n_columns, input_type="string", alternate_sign=False)
        named: dict[int, list[str]] = defaultdict(list)
        for word, column in zip(found, hasher.transform([w] for w in found).indices, strict=True):
            named[int(column)].append(word)
        return {column: " | ".join(words) for column, words in named.items()}

    def _count_documents(self, counts: sp.csr_matrix) -> None:
        columns, seen = np.unique(counts.indices, return_counts=True)
        old = columns[: np.searchsorted(columns, len(self.document_count))]
        self._recounted = old, self.document_count[old]
        self.document_count = extended(
            self.document_count, len(self) - len(self.document_count), 0.0
        )
        self.document_count[columns] += seen
        self.n_documents += counts.shape[0]

    def _make(self) -> Any:
        """Return a vectoriser of scikit-learn that also accepts lists of words."""
        from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer

        pieces = self.options["analyzer"] == PIECES
        plain = CountVectorizer(**self.options | ({"analyzer": "word"} if pieces else {}))
        try:
            prepare, split = plain.build_preprocessor(), plain.build_tokenizer()
        except (ValueError, re.error) as error:
            names = ("strip_accents", "token_pattern")
            given = ", ".join(f"{name}={self.options[name]!r}" for name in names)
            raise OptionError(f"{given}: {error}") from error
        if plain.analyzer == "word":
            check_pattern(plain.token_pattern)
        options = self.options | {"token_pattern": None, "analyzer": plain.analyzer}
        if plain.analyzer == "word":
            options = options | {
                "preprocessor": lambda text: prepare(text) if isinstance(text, str) else text,
                "tokenizer": lambda text: split(text) if isinstance(text, str) else list(text),
            }
        elif isinstance(plain.analyzer, str):
            options = options | {"preprocessor": lambda text: prepare(_as_text(text))}
        if pieces:
            options = options_of_pieces(options)
        if not self.n_columns:
            return CountVectorizer(**options)
        options = {name: value for name, value in options.items() if name not in _WHOLE_CORPUS}
        return HashingVectorizer(
            **options, n_features=self.n_columns, alternate_sign=False, norm=None
        )

    # --- weighting --------------------------------------------------------------------------------

    def weigh(self, counts: sp.csr_matrix, weighting: str, length: float | None) -> sp.csr_matrix:
        """Return the rows for the model: weighted counts, scaled to the Euclidean norm `length`.

        "tfidf" is ``(1 + ln count) (1 + ln((1 + documents) / (1 + documents with the word)))``.
        """
        if weighting == "presence":
            values = np.ones(counts.nnz)
        elif weighting == "tfidf":
            few = counts.nnz < len(self)
            seen = self.document_count[counts.indices] if few else self.document_count
            rarity = 1.0 + np.log((1.0 + self.n_documents) / (1.0 + seen))
            values = (1.0 + np.log(counts.data)) * (rarity if few else rarity[counts.indices])
        else:
            values = counts.data.astype(np.float64)
        rows = sp.csr_matrix((values, counts.indices, counts.indptr), counts.shape)
        if length is not None:
            from sklearn.utils.sparsefuncs_fast import inplace_csr_row_normalize_l2

            inplace_csr_row_normalize_l2(rows)
            rows.data *= length
        return rows

    # --- files ------------------------------------------------------------------------------------

    def to_fields(self) -> dict[str, Any]:
        """Return what a file stores of a bag; two arrays are faster than a dict."""
        words = list(self.vocabulary)
        text = np.frombuffer("".join(words).encode("utf-8", "surrogatepass"), dtype=np.uint8)
        return {
            "options": self.options,
            "n_columns": self.n_columns,
            "text": text,
            "sizes": np.array([len(word) for word in words], dtype=np.int64),
            "document_count": self.document_count,
            "n_documents": self.n_documents,
        }

    @classmethod
    def from_fields(cls, options, n_columns, text, sizes, document_count, n_documents) -> Bag:
        bag = cls(options, None)
        bag.n_columns, bag.document_count, bag.n_documents = n_columns, document_count, n_documents
        check_array("text", text, text.shape[:1], dtype=np.uint8)
        joined = text.tobytes().decode("utf-8", "surrogatepass")
        check_array("sizes", sizes, sizes.shape[:1], 0, most=len(joined), dtype=np.int64)
        ends = np.cumsum(sizes).tolist()
        pairs = zip([0, *ends], ends, strict=False)
        bag.vocabulary = {joined[a:b]: j for j, (a, b) in enumerate(pairs)}
        whole = len(bag.vocabulary) == len(sizes) and sum(ends[-1:]) == len(joined)
        demand(whole, "its words are not those of a vocabulary")
        return bag

    def check(self) -> None:
        """Validate the bag, which may come from any file."""
        self.check_options()
        if self.n_columns is not None:
            check_count("n_columns", self.n_columns, 1, _MOST_COLUMNS)
            demand(not self.vocabulary, "words that are hashed have a vocabulary")
        check_count("n_documents", self.n_documents)
        seen = self.document_count
        check_array("document_count", seen, (len(self),), 0.0, most=self.n_documents)

    def check_options(self) -> None:
        """Check the options: only known ones, without patterns that may take exponential time."""
        demand(isinstance(self.options, dict), "the options of its words are not a dict")
        unknown = [str(name) for name in {*self.options} ^ {*COUNTING}]
        demand(not unknown, f"{unknown[:1]} is no option of its words, or it is missing")
        options = dict(self.options)
        for name, allowed in _ALLOWED.items():
            value = options[name]
            known = isinstance(value, str | bool | None) and value in allowed
            demand(known, f"{name}={shown(value)} is not one of {allowed}")
        stop = options["stop_words"]
        listed = isinstance(stop, list) and all(isinstance(word, str) for word in stop)
        demand(stop in (None, "english") or listed, "stop_words are not a list of words")
        shortest, longest = options["ngram_range"]
        check_count("ngram_range", longest, 1, _LONGEST_NGRAM)
        check_count("ngram_range", shortest, 1, longest)
        for name in ("min_df", "max_df"):
            check_number(name, options[name], least=0.0)
        if options["max_features"] is not None:
            check_count("max_features", options["max_features"], 1)
        self._make()

    def __getstate__(self) -> dict[str, Any]:
        # they hold functions, and are built again
        return self.__dict__ | {"_vectorizer": None, "_analyze": None}

    def __deepcopy__(self, memo) -> Bag:
        bag = Bag(self.options, self.n_columns)
        bag.__dict__ |= self.__getstate__()
        bag.vocabulary = dict(self.vocabulary)  # words need no copies
        bag.document_count = self.document_count.copy()
        return bag


def _as_text(document) -> str:
    if not isinstance(document, str):
        raise InputError("documents that are lists of words need analyzer='word'")
    return document


class EmptyVocabulary(InputError):
    """Raised if no document has a word."""


def _translating(work: Callable[[list[Any]], Any], documents: list[Any]) -> Any:
    """Call scikit-learn, and translate its errors into ours."""
    try:
        return work(documents)
    except DiscemError:
        raise
    except UnicodeEncodeError as error:
        raise InputError(f"a word cannot be hashed: {error}") from error
    except ValueError as error:
        if "empty vocabulary" in str(error):
            raise EmptyVocabulary("the documents hold no words, or stop words only") from error
        raise OptionError(str(error)) from error
