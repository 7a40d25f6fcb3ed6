"""How pictures look.

Matplotlib is imported when one is drawn, and never through pyplot: no window, no global state.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from .exceptions import needing

# Okabe and Ito: told apart by every kind of colour vision. Without their yellow and black, which
# are lost on a white and on a dark page.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")


def style() -> AbstractContextManager[None]:
    """Within it, figures are drawn in the style of this library."""
    matplotlib = matplotlib_or_error()
    return matplotlib.rc_context(
        {
            "axes.prop_cycle": matplotlib.cycler(color=COLOURS),
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "axes.axisbelow": True,
            "axes.edgecolor": "#737373",
            "axes.titlelocation": "left",
            "axes.titleweight": "bold",
            "axes.titlesize": 10.5,
            "grid.color": "#737373",
            "grid.alpha": 0.22,
            "grid.linewidth": 0.6,
            "figure.constrained_layout.hspace": 0.06,
            "figure.constrained_layout.wspace": 0.05,
            "font.family": "DejaVu Sans",  # comes with Matplotlib: the same everywhere
            "font.size": 9.5,
            "legend.fontsize": 9,
            "legend.frameon": False,
            "lines.linewidth": 1.8,
            "lines.markersize": 4.5,
            "xtick.color": "#737373",
            "xtick.labelcolor": "black",
            "xtick.labelsize": 8.5,
            "ytick.color": "#737373",
            "ytick.labelcolor": "black",
            "ytick.labelsize": 8.5,
        }
    )


def new_figure(width: float, height: float) -> Any:
    """An empty figure, `width` by `height` inches."""
    matplotlib_or_error()
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def matplotlib_or_error() -> Any:
    with needing("pictures need matplotlib", "'discem[plot]'"):
        import matplotlib
    return matplotlib
