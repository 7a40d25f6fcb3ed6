"""Fitting documents, in memory or as a stream."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ..exceptions import OptionError
from ..io.documents import Document, batches
from ._screen import Meter, Pace, counted
from ._training import Job, Learnt, Sizes, check_first_labels, check_labels

if TYPE_CHECKING:
    from .. import TextClassifier
    from ..io.parts import Parts


def fit_text(job: Job, documents: Iterator[Document], sizes: Sizes | None) -> str:
    """Train on documents, and tell what was learnt."""
    with Meter(lines=True) as meter:
        if sizes is None:
            _fit(job, documents, meter)
        else:
            _stream(job, documents, sizes, meter)
    return _summary(job.model, sizes is not None)


def fit_text_on(job: Job, client: Any, read: Callable[[Meter], Parts]) -> str:
    """Train on documents that workers read, and tell what was learnt."""
    from .. import Dask
    from ..io.parts import labels_of, texts_of

    with Meter(lines=True) as meter:
        parts = read(meter)
        job.model.engine = Dask(client)
        texts, labels = parts.partitions(texts_of), parts.partitions(labels_of)
        _train(job, texts, labels, parts.labels, meter)
    return _summary(job.model, stream=False)


def _fit(job: Job, documents: Iterator[Document], meter: Meter) -> None:
    labels: list[str | None] = []
    texts: list[str] = []
    pace = Pace(meter, "reading")
    for batch in batches(documents, 1000):
        labels += [document.label for document in batch]
        texts += [document.text for document in batch]
        pace.passed(len(batch))
    _train(job, texts, labels, Counter(labels), meter)


def _train(job: Job, texts: Any, labels: Any, count: Counter[str | None], meter: Meter) -> None:
    """Train on documents, wherever they are, of which `count` has the labels."""
    model, n_documents = job.model, count.total()
    _check_labels(count, model)

    def show(model: TextClassifier, record: dict[str, Any]) -> None:
        final = record["stage"] == "fit"
        step = record.get("choice") or f"epoch {record['epoch']}"
        share = record["epoch"] / model.model_.max_iter if final else None
        rate = n_documents / max(record["seconds"], 1e-9)
        meter.tell(step, share, record["loss"], rate=rate)

    def fit() -> None:
        try:
            model.fit(texts, labels)
        except Exception as error:
            if "min_df" not in str(error):
                raise
            raise OptionError(
                f"--min-df {model.min_df}: no word is in so many documents"
            ) from error

    meter.tell(f"counting words of {n_documents:,} documents")
    model.callback = show
    job.whole(fit)


def _stream(job: Job, documents: Iterator[Document], sizes: Sizes, meter: Meter) -> None:
    model = job.model

    def teach(batch: list[Document]) -> Learnt:
        labels = [label for label, _ in batch]
        if not model.__sklearn_is_fitted__():
            check_first_labels(labels, "document")
        model.partial_fit([text for _, text in batch], labels)
        return Learnt(len(batch), model.history_[-1]["loss"], _progressive_accuracy(model))

    job.stream(batches(documents, sizes.batch), teach, sizes.save_every, meter)


def _summary(model: TextClassifier, stream: bool) -> str:
    """What was learnt, how, and how well as far as that is known."""
    told = f"{counted(model.n_documents_, 'document')}, {counted(len(model.classes_), 'class')}"
    chosen = model.chosen_
    if stream:
        accuracy = _progressive_accuracy(model)
        return told if accuracy is None else f"{told}, progressive accuracy {accuracy:.4f}"
    told += f", loss {chosen['loss']}, weighting {chosen['weighting']}, epochs {chosen['epochs']}"
    for accuracy in (tried["accuracy"] for tried in model.choice_ if tried["taken"]):
        told += f"; accuracy {accuracy:.4f} on {chosen['held_out']:,} held out"
    return told


def _progressive_accuracy(model: TextClassifier) -> float | None:
    """That of the documents with a label, if there have been any."""
    return getattr(model, "progressive_accuracy_", None)


def _check_labels(labels: Counter[str | None], model: TextClassifier) -> None:
    check_labels(labels, "document", model.loss)
    if isinstance(model.min_df, int) and model.min_df > labels.total():
        raise OptionError(f"--min-df {model.min_df}: there are only {labels.total():,} documents")
