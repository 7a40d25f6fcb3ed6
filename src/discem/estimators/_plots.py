"""Plots of fitted models. They need Matplotlib, and return its axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._style import COLOURS, matplotlib_or_error, style
from ..exceptions import InputError, OptionError
from ..targets import UNKNOWN, UNLABELLED
from . import _input
from ._explain import telling_words
from ._views import Views, last_training, objective_of

if TYPE_CHECKING:
    from ._beliefs import Belief

_PANELS = 9  # at most, unless columns are named
_CLASSES = 12  # classes with colours of their own
_WORDS = 12  # for each class
_BINS = 10  # bins of probabilities
_LEAST = 20  # rows for each estimate of an accuracy


class Plots(Views):
    """Plots of what a classifier has learnt, and of how reliable it is."""

    def plot_history(self, ax: Any = None) -> Any:
        """Plot the loss during training.

        If options were tried, this shows the training of the final model. If the final model was
        trained during the trials, it shows the last trial.

        Parameters
        ----------
        ax : axes of Matplotlib, optional
            Where to draw; by default in a new figure.

        Returns
        -------
        axes of Matplotlib
        """
        me: Any = self
        check_is_fitted(me)
        records = last_training(me.history_)
        if not records:
            raise InputError("there is no history: a stream keeps none, use fit")
        epochs = [record["epoch"] for record in records]
        with style():
            ax = _figure(5.2, 3.0).subplots() if ax is None else ax
            name = objective_of(records)
            ax.plot(epochs, [record[name] for record in records], label="training rows")
            if "validation_loss" in records[-1]:
                held = [record.get("validation_loss", np.nan) for record in records]
                ax.plot(epochs, held, label="rows held out")
                ax.legend()
            ax.set_xlabel("epoch")
            ax.set_ylabel(f"{name}, nats a row")
            ax.set_title("Training")
        return ax

    def plot_classes(self, columns: Sequence[Any] | None = None) -> Any:
        """Plot the distribution of each column in each class: densities, or shares of categories.

        For a model of words, show the words that speak most for each class.

        Parameters
        ----------
        columns : sequence of column names, optional
            By default the nine columns that tell most about the class.

        Returns
        -------
        array of axes of Matplotlib
        """
        me: Any = self
        check_is_fitted(me)
        classes = me.classes_[:_CLASSES]
        if hasattr(me, "_words"):
            if columns is not None:
                raise OptionError("columns: a model of words has none")
            return _plot_words(classes, telling_words(me, _WORDS, range(len(classes))))
        from ._beliefs import beliefs  # only models of arrays need it

        found = beliefs(me, columns)
        found = found[:_PANELS] if columns is None else found
        with style():
            axes = _panels(len(found), 2.2)
            for ax, belief in zip(axes, found, strict=True):
                _plot_belief(ax, belief)
            if len(me.classes_) <= _CLASSES:
                labels = [str(label) for label in classes]
                handles = [axes[0].plot([], [], color=_colour(k))[0] for k in range(len(labels))]
                ncols = min(len(labels), 6)
                axes[0].figure.legend(handles, labels, loc="outside lower center", ncols=ncols)
        return axes

    def plot_calibration(self, X: Any, y: Any, ax: Any = None) -> Any:
        """Plot how often predictions are correct against their predicted probability.

        Points on the diagonal are calibrated. Points below it show overconfidence.

        Parameters
        ----------
        X : rows as for `predict`
            Rows that were not trained on.
        y : array-like of shape (n_samples,)
            Their labels.
        ax : axes of Matplotlib, optional

        Returns
        -------
        axes of Matplotlib
        """
        said, share, spread, error = calibration(*_answers(self, X, y))
        with style():
            ax = _figure(3.6, 3.4).subplots() if ax is None else ax
            low = min(*said, *share, 0.9)
            ax.plot([low, 1.0], [low, 1.0], color="#737373", linewidth=0.8)
            ax.errorbar(said, share, yerr=spread, fmt="o-", color=COLOURS[0])
            ax.set_xlabel("probability of the answer")
            ax.set_ylabel("share that is right")
            ax.set_title(f"Calibration (error {100.0 * error:.1f} %)")
        return ax

    def plot_rejection(self, X: Any, y: Any, ax: Any = None) -> Any:
        """Plot the accuracy on the remaining rows if the least certain rows are rejected.

        Parameters
        ----------
        X : rows as for `predict`
            Rows that were not trained on.
        y : array-like of shape (n_samples,)
            Their labels.
        ax : axes of Matplotlib, optional

        Returns
        -------
        axes of Matplotlib
        """
        answered, accuracy = rejection(*_answers(self, X, y))
        with style():
            ax = _figure(4.4, 3.0).subplots() if ax is None else ax
            ax.plot(100.0 * answered, 100.0 * accuracy)
            ax.set_xlabel("rows answered, the most certain first, %")
            ax.set_ylabel("accuracy, %")
            ax.set_title("Rejection")
        return ax


class Calibration(NamedTuple):
    """The accuracy in bins of predicted probability, each with about as many rows."""

    said: np.ndarray  # the mean predicted probability
    share: np.ndarray  # the share of correct predictions
    spread: np.ndarray  # two standard errors of `share`
    error: float  # mean distance of `said` and `share`, over rows


def calibration(sure: np.ndarray, right: np.ndarray) -> Calibration:
    """Return the calibration from the probability of each prediction and whether it is right."""
    order = np.argsort(sure, kind="stable")
    bins = np.array_split(order, max(1, min(_BINS, len(order) // _LEAST)))
    sizes = np.array([len(rows) for rows in bins])
    said = np.array([sure[rows].mean() for rows in bins])
    share = np.array([right[rows].mean() for rows in bins])
    spread = 2.0 * np.sqrt(share * (1.0 - share) / sizes)
    return Calibration(said, share, spread, float((sizes * abs(said - share)).sum() / len(order)))


def rejection(sure: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return shares of the rows, most certain first, and the accuracy on them."""
    right = right[np.argsort(-sure, kind="stable")]
    answered = np.arange(1, len(right) + 1)
    shown = answered >= min(_LEAST, len(right))
    return answered[shown] / len(right), (np.cumsum(right) / answered)[shown]


def _answers(model: Any, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the probability of each predicted class, and whether it is the right one."""
    p = model.predict_proba(X)
    targets = _input.encode(_input.check_y(y, len(p)), model.classes_)
    if not targets.plain:
        raise InputError("y needs plain labels, not label sets or shares")
    known = targets.codes != UNLABELLED
    right = (p.argmax(axis=1) == targets.codes) & (targets.codes != UNKNOWN)
    return p.max(axis=1)[known], right[known]


def _colour(k: int) -> Any:
    """Return the colour of a class; after six distinct colours come shades of them."""
    return COLOURS[k % len(COLOURS)]


def _figure(width: float, height: float) -> Any:
    """Return a figure of pyplot, so that notebooks and ``plt.show()`` show it."""
    matplotlib_or_error()
    import matplotlib.pyplot as plt

    return plt.figure(figsize=(width, height), layout="constrained")


def _panels(n: int, height: float) -> np.ndarray:
    """Return axes of n panels in rows of three."""
    columns = min(n, 3)
    lines = -(-n // columns)
    figure = _figure(2.9 * columns, height * lines + 0.4)
    axes = figure.subplots(lines, columns, squeeze=False).ravel()
    for ax in axes[n:]:
        ax.remove()
    return axes[:n]


def _plot_belief(ax: Any, belief: Belief) -> None:
    shown = belief.p[:_CLASSES]
    for k, p in enumerate(shown):
        if belief.is_density:
            ax.plot(belief.places, p, color=_colour(k))
            ax.fill_between(belief.places, p, color=_colour(k), alpha=0.12, linewidth=0)
        else:
            width = 0.8 / len(shown)
            at = np.arange(len(p)) - 0.4 + (k + 0.5) * width
            ax.bar(at, 100.0 * p, width, color=_colour(k))
    if belief.is_density:
        ax.set_yticks([])
        ax.tick_params(axis="x", labelrotation=30 if belief.places.dtype.kind == "M" else 0)
    else:
        _name_levels(ax, [str(level) for level in belief.places])
        ax.set_ylabel("%")
    title = str(belief.column)
    if belief.zero is not None:
        zeros = ", ".join(f"{100.0 * zero:.0f}" for zero in belief.zero[:_CLASSES])
        title += f" (0: {zeros} %)"
    ax.set_title(title)


def _name_levels(ax: Any, names: list[str]) -> None:
    step = -(-len(names) // 8)
    short = [name if len(name) <= 12 else name[:11] + "\N{HORIZONTAL ELLIPSIS}" for name in names]
    turned = max(map(len, short[::step]), default=0) > 4
    ax.set_xticks(range(0, len(names), step), short[::step], rotation=30 if turned else 0)


def _plot_words(classes: np.ndarray, found: list[list[tuple[Any, float]]]) -> np.ndarray:
    with style():
        axes = _panels(len(classes), 2.6)
        for k, (ax, label) in enumerate(zip(axes, classes, strict=True)):
            words = found[k]
            ax.barh(range(len(words)), [score for _, score in words], color=_colour(k))
            ax.set_yticks(range(len(words)), [str(word) for word, _ in words])
            ax.set_xticks([])
            ax.invert_yaxis()
            ax.grid(False)
            ax.set_title(str(label))
    return axes
