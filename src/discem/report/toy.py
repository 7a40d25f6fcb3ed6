"""Figure 1 of the paper: the toy example of section 4.1."""

from __future__ import annotations

import json
import os
from typing import Any

from .. import __version__
from ..datasets import toy, toy_accuracy
from ..estimators import GaussianNB
from ..schedules import inverse
from ._output import Progress, Steps, output_folder
from .plots import new_figure, plot_toy

PAPER = {  # section 4.1 to the letter, with the step counted from t = 1
    "prior": "paper",
    "init": "prior",
    "step": inverse(0.1),
    "projection": "check",
    "average": False,
    "max_iter": 5,
    "tol": None,
}
PRINTED = {"nll": 0.786, "ncll": 0.904, "hinge": 0.906}
RUNS: dict[tuple[str, str], dict[str, Any]] = {  # (who, loss): settings beside the defaults
    ("discem", "nll"): {},
    ("paper", "ncll"): PAPER,
    ("paper", "hinge"): PAPER,
    ("discem", "ncll"): {},
    ("discem", "hinge"): {},
}
PICTURES = {
    "paper": ("toy.png", "trained by the paper's own algorithm and settings"),
    "discem": ("toy-defaults.png", "trained with discem's defaults"),
}
DRAWN = 0  # the seed in the pictures


def reproduce_toy(
    output: str | os.PathLike[str],
    seeds: int = 5,
    samples: int = 30_000,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Train on the toy as the paper did and as this library does, over several seeds.

    Writes ``toy.png`` (the paper's figure), ``toy-defaults.png`` (the same, trained with discem's
    defaults) and ``toy.json`` (every number behind them).

    Parameters
    ----------
    output : path
        Folder for these files.
    seeds : int
        Seeds 0, 1, ...: of the sample and of the order of its rows.
    samples : int
        Rows of each sample.
    progress : callable, optional
        Called with the name of the step, the share of the work done, and the training loss.

    Returns
    -------
    dict
        What ``toy.json`` holds: accuracies are of the population, not of a sample.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     result = reproduce_toy(folder, seeds=1, samples=2000)
    >>> [run["loss"] for run in result["runs"]]
    ['nll', 'ncll', 'hinge', 'ncll', 'hinge']
    """
    folder = output_folder(output)
    new_figure(1, 1)  # without matplotlib, say so before the work
    steps = Steps(progress, seeds * len(RUNS))
    fitted: dict[tuple[str, str], list[GaussianNB]] = {run: [] for run in RUNS}
    for seed in range(seeds):
        X, y = toy(samples, random_state=seed)
        for (who, loss), settings in RUNS.items():
            steps.begin(f"{loss} by {who}, seed {seed}")
            model = GaussianNB(loss=loss, random_state=seed, callback=steps.epoch, **settings)
            fitted[who, loss].append(model.fit(X, y))
    accuracies = {run: [toy_accuracy(m) for m in models] for run, models in fitted.items()}

    for who, (name, title) in PICTURES.items():
        plot_toy(
            *toy(samples, random_state=DRAWN),
            fitted["discem", "nll"][DRAWN],
            {"NCLL": fitted[who, "ncll"][DRAWN], "Hinge": fitted[who, "hinge"][DRAWN]},
            {
                "NLL": accuracies["discem", "nll"],
                "NCLL": accuracies[who, "ncll"],
                "Hinge": accuracies[who, "hinge"],
            },
            folder / name,
            title + (f"; accuracy: median (range) of {seeds} seeds" if seeds > 1 else ""),
        )
    result = {
        "experiment": "toy",
        "version": __version__,
        "command": f"discem reproduce toy --seeds {seeds} --samples {samples}",
        "seeds": list(range(seeds)),
        "samples": samples,
        "drawn_seed": DRAWN,
        "pictures": [name for name, _ in PICTURES.values()],
        "runs": [
            {
                "by": who,
                "loss": loss,
                "settings": {name: _plain(value) for name, value in settings.items()},
                "accuracies": accuracies[who, loss],
                "printed": PRINTED[loss],
                "drawn": _parameters(fitted[who, loss][DRAWN]),
            }
            for (who, loss), settings in RUNS.items()
        ],
    }
    (folder / "toy.json").write_text(json.dumps(result, indent=2) + "\n")
    return result


def _plain(setting: Any) -> Any:
    """A setting as JSON takes it: a schedule by its name and numbers."""
    return setting if isinstance(setting, str | int | None) else repr(setting)


def _parameters(model: GaussianNB) -> dict[str, list[float]]:
    """The five parameters of the model, class by class."""
    return {
        "classes": model.classes_.tolist(),
        "class_prior": model.class_prior_.tolist(),
        "mean": model.mean_[:, 0].tolist(),
        "variance": model.var_[:, 0].tolist(),
    }
