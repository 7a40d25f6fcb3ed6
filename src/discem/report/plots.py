"""Pictures.

Matplotlib is imported when one is drawn, and never through pyplot: no window, no global state.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..exceptions import MissingExtraError

# Okabe and Ito's blue and vermillion: told apart by every kind of colour vision, and in grey.
_COLOURS = ("#0072B2", "#D55E00")
_PALE = ("#A9CFE6", "#F3BC98")
_DASHED: dict[str, Any] = {"linestyle": (0, (4, 2)), "linewidth": 1.4}
_SOLID: dict[str, Any] = {"linestyle": "solid", "linewidth": 2.0}


def new_figure(width: float, height: float) -> Any:
    """An empty figure, `width` by `height` inches."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("pictures need matplotlib: pip install 'discem[plot]'") from error
    return Figure(figsize=(width, height), layout="constrained")


def save_figure(figure: Any, path: Path) -> None:
    """Write `path` with the endings .svg (text stays text, no background) and .png."""
    from matplotlib import rc_context

    with rc_context({"svg.fonttype": "none", "svg.hashsalt": path.name}):
        figure.savefig(path.with_suffix(".svg"), transparent=True, metadata={"Date": None})
    figure.savefig(path.with_suffix(".png"), dpi=160, facecolor="white")


def plot_toy(
    X: np.ndarray,
    y: np.ndarray,
    plain: Any,
    panels: Mapping[str, Any],
    accuracies: Mapping[str, Sequence[float]],
    path: str | os.PathLike[str],
    title: str = "",
) -> Path:
    """Figure 1 of the paper: what plain and discriminative training make of the toy.

    Each panel has the histogram of the sample, the densities ``p(y=k) N(x; mean, sd)`` of the plain
    model (dashed) and of a discriminative one (solid), and below them what each predicts.

    Parameters
    ----------
    X : ndarray of shape (n, 1)
        The sample, from `discem.datasets.toy`.
    y : ndarray of shape (n,)
        Its labels.
    plain : classifier
        A Gaussian naive Bayes fitted by maximum likelihood, drawn in every panel.
    panels : mapping of str to classifier
        The title and the discriminative model of each panel.
    accuracies : mapping of str to sequence of float
        For "NLL" and for each title the accuracies to quote, one a seed.
    path : path
        The picture to write; its ending says the format.
    title : str, optional
        A line above all panels.

    Returns
    -------
    Path

    Examples
    --------
    >>> import tempfile
    >>> from discem import GaussianNB
    >>> from discem.datasets import toy, toy_accuracy
    >>> X, y = toy(500, random_state=0)
    >>> plain, ncll = (GaussianNB(loss=loss).fit(X, y) for loss in ("nll", "ncll"))
    >>> accuracies = {"NLL": [toy_accuracy(plain)], "NCLL": [toy_accuracy(ncll)]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     plot_toy(X, y, plain, {"NCLL": ncll}, accuracies, f"{folder}/toy.png").name
    'toy.png'
    """
    figure = new_figure(0.6 + 4.7 * len(panels), 4.8)
    axes = figure.subplots(2, len(panels), height_ratios=(9, 1), sharex=True, squeeze=False)
    figure.suptitle(title, fontsize=10, color="0.35")
    x = np.linspace(-10.5, 10.5, 2101)
    joint = {name: np.exp(m.predict_joint_log_proba(x[:, None])) for name, m in panels.items()}
    dashed = np.exp(plain.predict_joint_log_proba(x[:, None]))
    # the sample's two peaks are ten times as high as all that matters
    top = float(np.clip(1.08 * max(curve.max() for curve in joint.values()), 0.1, 0.3))
    for place, (name, model) in enumerate(panels.items()):
        curves, strip = axes[:, place]
        curves.set_title(f"({'abcdefgh'[place]}) {name} loss", loc="left", weight="bold", size=11)
        quoted = [f"{line} accuracy {percent(accuracies[line])}" for line in ("NLL", name)]
        curves.set_title("\n".join(quoted), loc="right", size=9)
        curves.set(xlim=(x[0], x[-1]), ylim=(0, top), yticks=np.arange(0, top, 0.05))
        curves.spines[["top", "right"]].set_visible(False)
        _histograms(curves, X[:, 0], y, plain.classes_, top)
        for k, colour in enumerate(_COLOURS):
            curves.plot(x, dashed[:, k], color=colour, **_DASHED)
            curves.plot(x, joint[name][:, k], color=colour, **_SOLID)
        _decisions(strip, x, {"NLL": plain, name: model})
    axes[0, 0].set_ylabel("p(y, x)")
    _key(figure, plain.classes_)
    figure.savefig(path, dpi=200)
    return Path(path)


def _histograms(axes: Any, x: np.ndarray, y: np.ndarray, classes: np.ndarray, top: float) -> None:
    edges = np.arange(-10.5, 10.55, 0.1)
    for label, pale, colour in zip(classes, _PALE, _COLOURS, strict=True):
        chosen = x[y == label]
        # each bar is a share of the whole sample, so that the histogram compares with p(y, x)
        weights = np.full(len(chosen), 1 / (len(x) * (edges[1] - edges[0])))
        heights = axes.hist(chosen, edges, weights=weights, color=pale, histtype="stepfilled")[0]
        tall = np.flatnonzero(heights > top)
        for peak in np.split(tall, np.flatnonzero(np.diff(tall) > 1) + 1) if len(tall) else ():
            side = -1 if edges[peak[0]] < 0 else 1  # say how high the bars go that are cut off
            text = f"\N{UPWARDS ARROW} to {heights[peak].max():.1f}"
            where = edges[peak[len(peak) // 2]] + 0.5 * side, 0.94 * top
            axes.text(*where, text, color=colour, size=8, ha="right" if side < 0 else "left")


def _decisions(axes: Any, x: np.ndarray, models: Mapping[str, Any]) -> None:
    """One band a model, coloured by the class that it predicts."""
    from matplotlib.colors import ListedColormap

    axes.imshow(
        np.array([model.predict(x[:, None]) == model.classes_[1] for model in models.values()]),
        aspect="auto",
        cmap=ListedColormap(_COLOURS),
        vmin=0,
        vmax=1,
        extent=(x[0], x[-1], len(models) - 0.5, -0.5),
        interpolation="nearest",
    )
    axes.axhline(0.5, color="white", linewidth=3)
    axes.set_yticks(range(len(models)), [f"{name} predicts" for name in models], fontsize=8)
    axes.set_xticks(range(-10, 11, 5))
    axes.tick_params(axis="y", length=0)
    axes.spines[:].set_visible(False)
    axes.set_xlabel("x")


def _key(figure: Any, classes: np.ndarray) -> None:
    """Colours mean classes, line styles ways of training."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    patches = [Patch(facecolor=p, edgecolor=c) for p, c in zip(_PALE, _COLOURS, strict=True)]
    lines = [Line2D([], [], color="0.25", **style) for style in (_DASHED, _SOLID)]
    names = [f"class {label}".replace("-", "\N{MINUS SIGN}") for label in classes]
    names += ["maximum likelihood (NLL)", "discriminative"]
    figure.legend(
        patches + lines, names, loc="outside lower center", ncols=4, frameon=False, fontsize=9
    )


def percent(values: Sequence[float]) -> str:
    """The median of accuracies, and their range where there are several.

    >>> percent([0.9041, 0.91, 0.90])
    '90.4 % (90.0 to 91.0)'
    >>> percent([0.9])
    '90.0 %'
    """
    middle = f"{100 * np.median(values):.1f} %"
    if len(values) == 1:
        return middle
    return f"{middle} ({100 * min(values):.1f} to {100 * max(values):.1f})"
