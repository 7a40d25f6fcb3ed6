"""Figures in the style of `discem._style`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .._style import COLOURS, matplotlib_or_error, new_figure, style
from ..io.files import write_atomically

_COLOURS = COLOURS[:2]
_NOTHING = 1e-9  # contribution of a missing cell, up to rounding
_PALE = ("#A9CFE6", "#F3BC98")
_DASHED: dict[str, Any] = {"linestyle": (0, (4, 2)), "linewidth": 1.4}
_SOLID: dict[str, Any] = {"linestyle": "solid", "linewidth": 2.0}


def save_figure(figure: Any, path: Path) -> None:
    """Write `path` with the endings .svg (text stays text, no background) and .png."""
    with (
        matplotlib_or_error().rc_context({"svg.fonttype": "none", "svg.hashsalt": path.stem}),
        write_atomically(path.with_suffix(".svg"), "wb") as file,
    ):
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    with write_atomically(path.with_suffix(".png"), "wb") as file:
        figure.savefig(file, format="png", dpi=160, facecolor="white")


def plot_toy(
    X: np.ndarray,
    y: np.ndarray,
    joints: Mapping[str, Callable[[np.ndarray], np.ndarray]],
    accuracies: Mapping[str, Sequence[float]],
    title: str = "",
) -> Any:
    """Plot figure 1 of the paper: plain and discriminative training on the toy data.

    Each panel has the histogram of the sample, the densities ``p(y=k) N(x; mean, sd)`` of the plain
    model (dashed) and of a discriminative one (solid), and below them what each predicts.

    Parameters
    ----------
    X : ndarray of shape (n, 1)
        The sample, from `discem.datasets.toy`.
    y : ndarray of shape (n,)
        Its labels.
    joints : mapping of str to callable
        By the name of the loss, the function from x, of shape (m,), to p(y, x), of shape (m, 2).
        "NLL" is the plain model, drawn in every panel; each of the others has one.
    accuracies : mapping of str to sequence of float
        For each loss the accuracies to quote, one a seed.
    title : str, optional
        A line above all panels.

    Returns
    -------
    Figure
        Of Matplotlib.

    Examples
    --------
    >>> import numpy as np
    >>> from discem import GaussianNB
    >>> from discem.datasets import toy, toy_accuracy
    >>> X, y = toy(500, random_state=0)
    >>> models = {name: GaussianNB(loss=name.lower()).fit(X, y) for name in ("NLL", "NCLL")}
    >>> accuracies = {name: [toy_accuracy(model)] for name, model in models.items()}
    >>> joints = {name: joint_of(model) for name, model in models.items()}
    >>> figure = plot_toy(X, y, joints, accuracies)
    >>> len(figure.axes)  # curves and predictions
    2
    """
    names = [name for name in joints if name != "NLL"]
    x = np.linspace(-10.5, 10.5, 2101)
    values = {name: joint(x) for name, joint in joints.items()}
    classes = np.unique(y)
    figure = new_figure(0.6 + 4.7 * len(names), 4.8)
    axes = figure.subplots(2, len(names), height_ratios=(9, 1), sharex=True, squeeze=False)
    figure.suptitle(title, fontsize=10)
    # the sample's two peaks are ten times as high as all that matters
    top = float(np.clip(1.08 * max(values[name].max() for name in names), 0.1, 0.3))
    for place, name in enumerate(names):
        curves, strip = axes[:, place]
        curves.set_title(f"({'abcdefgh'[place]}) {name} loss", loc="left", weight="bold", size=11)
        quoted = [f"{line} accuracy {percent(accuracies[line])}" for line in ("NLL", name)]
        curves.set_title("\n".join(quoted), loc="right", size=9, weight="normal")
        curves.set(xlim=(x[0], x[-1]), ylim=(0, top), yticks=np.arange(0, top, 0.05))
        curves.grid(False)
        curves.spines[["top", "right"]].set_visible(False)
        _histograms(curves, X[:, 0], y, classes, top)
        for k, colour in enumerate(_COLOURS):
            curves.plot(x, values["NLL"][:, k], color=colour, **_DASHED)
            curves.plot(x, values[name][:, k], color=colour, **_SOLID)
        _decisions(strip, x, {line: values[line].argmax(axis=1) for line in ("NLL", name)})
    axes[0, 0].set_ylabel("p(y, x)")
    _key(figure, classes)
    return figure


def joint_of(model: Any) -> Callable[[np.ndarray], np.ndarray]:
    """Return the joint density of a fitted model with one feature, for `plot_toy`."""
    return lambda x: np.exp(model.predict_joint_log_proba(x[:, None]))


def _histograms(axes: Any, x: np.ndarray, y: np.ndarray, classes: np.ndarray, top: float) -> None:
    edges = np.arange(-10.5, 10.55, 0.1)
    for label, pale, colour in zip(classes, _PALE, _COLOURS, strict=True):
        chosen = x[y == label]
        # bars are shares of the whole sample, to compare with p(y, x)
        weights = np.full(len(chosen), 1 / (len(x) * (edges[1] - edges[0])))
        heights = axes.hist(chosen, edges, weights=weights, color=pale, histtype="stepfilled")[0]
        tall = np.flatnonzero(heights > top)
        for peak in np.split(tall, np.flatnonzero(np.diff(tall) > 1) + 1) if len(tall) else ():
            side = -1 if edges[peak[0]] < 0 else 1  # say how high the bars go that are cut off
            text = f"\N{UPWARDS ARROW} to {heights[peak].max():.1f}"
            where = edges[peak[len(peak) // 2]] + 0.5 * side, 0.94 * top
            axes.text(*where, text, color=colour, size=8, ha="right" if side < 0 else "left")


def _decisions(axes: Any, x: np.ndarray, predicted: Mapping[str, np.ndarray]) -> None:
    """Draw one band per model, in the colour of the predicted class."""
    for row, best in enumerate(predicted.values()):
        change = np.flatnonzero(np.diff(best))
        starts = np.concatenate(([x[0]], (x[change] + x[change + 1]) / 2))
        colours = [_COLOURS[k] for k in best[np.append(change, len(x) - 1)]]
        axes.barh(row, np.diff(starts, append=x[-1]), left=starts, color=colours, height=0.86)
    axes.set_yticks(range(len(predicted)), [f"{name} predicts" for name in predicted], fontsize=8)
    axes.set_xticks(range(-10, 11, 5))
    axes.tick_params(axis="y", length=0)
    axes.grid(False)
    axes.spines[:].set_visible(False)
    axes.invert_yaxis()
    axes.set_xlabel("x")


def _key(figure: Any, classes: np.ndarray) -> None:
    """Draw the legend: colours are classes, line styles are ways of training."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    patches = [Patch(facecolor=p, edgecolor=c) for p, c in zip(_PALE, _COLOURS, strict=True)]
    lines = [Line2D([], [], color="black", **style) for style in (_DASHED, _SOLID)]
    names = [f"class {label}".replace("-", "\N{MINUS SIGN}") for label in classes]
    names += ["maximum likelihood (NLL)", "discriminative"]
    figure.legend(
        patches + lines, names, loc="outside lower center", ncols=4, frameon=False, fontsize=9
    )


def plot_explanation(
    why: Any, label: Any = None, other: Any = None, cells: Mapping[Any, Any] | None = None
) -> Any:
    """Plot what each column adds to the log-odds of one class against another.

    Parameters
    ----------
    why : Explanation
        Of a row, from `explain`.
    label, other : class, optional
        As for `Explanation.against`.
    cells : mapping, optional
        The row, whose values stand beside the names of the columns.

    Columns that add nothing are left out.

    Returns
    -------
    Figure
        Of Matplotlib.

    Examples
    --------
    >>> from discem import TableClassifier
    >>> rows = [{"size": 1.0 + i % 3, "kind": "ab"[i % 2]} for i in range(60)]
    >>> model = TableClassifier(random_state=0).fit(rows, [row["kind"] + "!" for row in rows])
    >>> figure = plot_explanation(model.explain(rows[0]), cells=rows[0])
    >>> len(figure.axes[0].patches)  # two columns, the average, the intercept, and all of it
    5
    """
    parts = {name: part for name, part in why.against(label, other) if abs(part) > _NOTHING}
    one, two = why._places(label, other)
    odds = float(why.scores[one] - why.scores[two])
    before = float(why.intercept[one] - why.intercept[two])
    names = [str(name) if cells is None else _cell(name, cells) for name in parts]
    heights = [*parts.values(), before, odds]
    colours = [COLOURS[0] if part > 0 else COLOURS[1] for part in parts.values()]
    with style():
        figure = new_figure(7.2, 1.0 + 0.3 * len(heights))
        axes = figure.subplots()
        places = range(len(heights))
        bars = axes.barh(places, heights, color=[*colours, "#A6A6A6", "#404040"], height=0.7)
        axes.bar_label(bars, [f"{height:+.2f}" for height in heights], padding=3, fontsize=8.5)
        axes.set_yticks(places, [*names, "intercept", "all together"])
        axes.tick_params(axis="y", length=0)
        axes.axvline(0.0, color="#737373", linewidth=0.8)
        axes.grid(False, axis="y")
        axes.margins(x=0.12)
        axes.invert_yaxis()
        axes.set_title(f"Why {why.classes[one]}, and not {why.classes[two]}?")
        axes.set_xlabel("log-odds")
    return figure


def _cell(name: Any, cells: Mapping[Any, Any]) -> str:
    cell = cells.get(name)
    if cell is None or str(cell) in ("nan", "NaT", "<NA>"):
        return f"{name} is missing"
    text = f"{cell:.6g}" if isinstance(cell, float) else str(cell)
    return f"{name} = {text.removesuffix(' 00:00:00')}"


def percent(values: Sequence[float]) -> str:
    """Format the median of accuracies, and their range if there are several.

    >>> percent([0.9041, 0.91, 0.90])
    '90.4 % (90.0 to 91.0)'
    >>> percent([0.9])
    '90.0 %'
    """
    middle = f"{100 * np.median(values):.1f} %"
    if len(values) == 1:
        return middle
    return f"{middle} ({100 * min(values):.1f} to {100 * max(values):.1f})"
