"""Pictures of classifiers: as cells of the test rows go missing, and against the time they take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from laboratory import key, panels

from discem.report.plots import COLOURS, style

MARKERS = ("o", "s", "^", "D", "v", "P")


def plot_removed(
    shares: Sequence[float], figures: Mapping[str, Mapping[str, Sequence[float]]], title: str = ""
) -> Any:
    """What becomes of classifiers as cells of the test rows go missing, a panel for each figure.

    Where methods differ by more than a factor of five, the scale is logarithmic.

    `shares` are those of the cells that are removed. `figures` has, by the name of the figure and
    of the method, one number for each share. The first method is drawn in front of the others.
    """
    from matplotlib.ticker import LogLocator, NullLocator, PercentFormatter, StrMethodFormatter

    with style():
        figure, axes = panels(len(figures), height=3.2, sharex=True)
        figure.suptitle(title, fontsize=10)
        for panel, (name, curves) in zip(axes[0], figures.items(), strict=True):
            for place, (method, values) in enumerate(curves.items()):
                look = {"color": COLOURS[place % len(COLOURS)], "marker": MARKERS[place % 6]}
                width = {"linewidth": 2.6, "zorder": 3} if place == 0 else {"linewidth": 1.5}
                panel.plot(shares, values, label=method, **look, **width)
            panel.set(title=name, xlabel="test cells removed", xticks=shares)
            panel.xaxis.set_major_formatter(PercentFormatter(1, decimals=0))
            seen = np.array([*curves.values()])
            if seen.min() > 0 and seen.max() > 5 * seen.min():
                panel.set(yscale="log", title=f"{name}, logarithmic scale")
                panel.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
                panel.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
                panel.yaxis.set_minor_locator(NullLocator())
        key(figure, axes[0, 0], columns=3)
    return figure


def plot_seconds(
    seconds: Mapping[str, float], figures: Mapping[str, Mapping[str, float]], title: str = ""
) -> Any:
    """What classifiers achieve against the seconds of a fit, a panel for each figure.

    `figures` has, by the name of the figure and of the method, one number. The first method is
    drawn in front of the others.
    """
    from matplotlib.ticker import LogLocator, StrMethodFormatter

    with style():
        figure, axes = panels(len(figures), height=3.6, sharex=True)
        figure.suptitle(title, fontsize=10)
        for panel, (name, values) in zip(axes[0], figures.items(), strict=True):
            for place, (method, value) in enumerate(values.items()):
                look = {"color": COLOURS[place % len(COLOURS)], "marker": MARKERS[place % 6]}
                size = {"s": 90, "zorder": 3} if place == 0 else {"s": 36}
                panel.scatter(seconds[method], value, label=method, **look, **size)
            panel.set(title=name, xlabel="seconds of a fit, one thread", xscale="log")
            panel.xaxis.set_major_locator(LogLocator())
            panel.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        key(figure, axes[0, 0], columns=4)
    return figure
