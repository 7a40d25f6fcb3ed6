"""How the pictures of experiments look.

The reports of experiments are drawn within `discem.report.plots.style`, so a script only draws::

    figure, axes = panels(3, sharex=True)              # three in a row; axes: 1 row, 3 columns
    for loss, values in curves.items():
        axes[0, 0].plot(epochs, values, color=BY_LOSS[loss], label=loss)
    axes[0, 0].axhline(svm, label="linear SVM", **REFERENCE)
    axes[0, 0].set(title="20ng", xlabel="epoch", ylabel="accuracy")
    key(figure, axes[0, 0])                            # one legend for all panels, below them

A loss has one colour in all pictures; a second thing (prior, data set) is told by the dash, never
by colour alone. Pictures are at most 10 inches wide: the page shows them at their natural size,
with black, white and grey turned to what its theme has.
"""

from __future__ import annotations

from typing import Any

from discem.report.plots import COLOURS, new_figure

BY_LOSS = {"ncll": COLOURS[0], "hinge": COLOURS[1], "nll": COLOURS[2]}
REFERENCE: dict[str, Any] = {"color": "#737373", "linewidth": 1.2, "linestyle": (0, (5, 2))}
"""How to draw what curves are held against, such as the accuracy of another method."""


def panels(columns: int, rows: int = 1, height: float = 2.7, **subplots: Any) -> tuple[Any, Any]:
    """A figure and its axes, `rows` by `columns`, each `height` inches high.

    Other arguments, such as ``sharex``, are those of Matplotlib's ``Figure.subplots``.
    """
    figure = new_figure(min(10.0, 0.4 + 4.4 * columns), 0.4 + height * rows)
    return figure, figure.subplots(rows, columns, squeeze=False, **subplots)


def key(figure: Any, axes: Any, columns: int = 5) -> None:
    """One legend for the whole figure, below it, of what one panel has, in `columns` at most."""
    handles, names = axes.get_legend_handles_labels()
    room = max(1, int(figure.get_figwidth() / 1.9))  # inches that an entry needs
    ncols = min(columns, room, len(names))
    figure.legend(handles, names, loc="outside lower center", ncols=ncols)
