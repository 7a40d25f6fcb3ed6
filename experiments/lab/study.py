"""Experiments: work cut into parts that are done once, pictures, and claims held against them.

An experiment is a script with these names:

- ``TITLE`` and ``PAPER``, what it is about and which figure of the paper it redoes;
- ``parts(plan)``, the list of `Part` to do, each a call of one of the script's functions; a call
  that several experiments have in common is made once;
- ``report(results)``, a `Report` made from the results of the parts, by name; parts that could
  not be done are left out of them, and if none could there is nothing to report.

A part takes and returns what JSON can hold, and runs in a process of its own, where
``DISCEM_DATA`` is the folder of the data sets. Its result is kept as soon as it is there, so that
work which was interrupted goes on where it stopped.
"""

from __future__ import annotations

import json
import os
import platform
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

from discem import __version__
from discem.exceptions import DiscemError
from discem.io.files import write_atomically
from discem.report._output import Progress, output_folder
from discem.report.plots import new_figure, save_figure, style

from .catalogue import load
from .workers import NotPossibleError, Workers

__all__ = [
    "Claim", "Evidence", "NotPossibleError", "Part", "Picture", "Plan", "Report", "Table", "run",
]  # fmt: skip


@dataclass(frozen=True)
class Plan:
    """What the user asked for."""

    data: str | None = None  # the folder of the data sets
    seeds: int | None = None  # how many; None: as many as the experiment thinks right
    quick: bool = False

    def seeds_or(self, usual: int, quick: int) -> range:
        """The seeds to run: as asked, or `usual`, or `quick` if there is little time."""
        return range(self.seeds or (quick if self.quick else usual))


class Part(NamedTuple):
    """A piece of work: ``work(**settings)``."""

    name: str  # of its result, and of the file that keeps it
    work: Callable[..., Any]  # a function at the top of the script
    settings: dict[str, Any]
    data: tuple[str, ...] = ()  # the data sets that it reads
    cost: float = 1.0  # seconds that it takes, roughly


class Evidence(NamedTuple):
    """A number that a verdict rests on, and the bounds (None: any) that it has to keep."""

    what: str
    value: float
    low: float | None = None
    high: float | None = None

    def holds(self) -> bool:
        return (self.low is None or self.value >= self.low) and (
            self.high is None or self.value <= self.high
        )


@dataclass(frozen=True)
class Claim:
    """A statement of the paper in our words, or one of ours, and the rule that judges it.

    It holds if all its evidence keeps its bounds. What the bounds are is said by `rule`, what the
    numbers are by `shown`, and `form` is how they are written. `undecided` says why a claim
    cannot be decided: its evidence is shown, and decides nothing.
    """

    says: str
    rule: str  # "we ask that ..."
    shown: str
    evidence: Sequence[Evidence]
    where: str = ""  # in the paper; a claim that is in none of its sentences is ours
    choices: str = ""  # whose the settings and bounds are, where the paper leaves them open
    form: str = "+z.1f"
    undecided: str = ""  # why it cannot be decided here

    def holds(self) -> bool:
        decided = bool(self.evidence) and not self.undecided
        return decided and all(each.holds() for each in self.evidence)

    def seen(self) -> str:
        """The evidence in words; what is out of bounds is marked."""
        return f"{self.shown}: " + "; ".join(
            f"{each.what} {each.value:{self.form}}{'' if each.holds() else ' (✗)'}"
            for each in self.evidence
        )

    def as_json(self) -> dict[str, Any]:
        return {
            "says": self.says,
            "where": self.where,
            "ours": not self.where,
            "rule": self.rule,
            "choices": self.choices,
            "seen": self.seen(),
            "holds": self.holds(),
            "undecided": self.undecided,
            "evidence": [each._asdict() for each in self.evidence],
        }


class Picture(NamedTuple):
    name: str  # of its files
    figure: Any  # of Matplotlib
    title: str
    alt: str  # what there is to see, for those who do not


class Table(NamedTuple):
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]  # numbers as numbers: the page sorts by them
    note: str = ""


@dataclass
class Report:
    """What an experiment has to say."""

    pictures: list[Picture] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # paragraphs: what differs, and why


class PartFailedError(DiscemError):
    """A part that should have been done, and was not."""


# --- running --------------------------------------------------------------------------------------


def run(
    names: Sequence[str],
    plan: Plan,
    output: str | os.PathLike[str],
    jobs: int = 1,
    progress: Progress | None = None,
) -> list[dict[str, Any]]:
    """Do what is left of the experiments, and write what they say.

    Parameters
    ----------
    names : sequence of str
        Of experiments, see `catalogue.available`.
    plan : Plan
        Data, seeds and size.
    output : path
        Folder for ``<name>.json``, the pictures, and the parts' own results (in ``parts``).
    jobs : int
        Parts that are done at the same time, each in a process and on one thread.
    progress : callable, optional
        Called with what was done last, the share of the work done, and None.

    Returns
    -------
    list of dict
        What each ``<name>.json`` holds.

    Raises
    ------
    PartFailedError
        If a part fails, other than by `NotPossibleError`. What was done is kept.
    """
    folder = output_folder(output, _folders(plan))
    new_figure(1, 1)  # without matplotlib, say so before the work
    work = {name: load(name).parts(plan) for name in names}
    missing = {
        (name, part.name): why
        for name, parts in work.items()
        for part in parts
        if (why := _absent(part, plan))
    }
    todo: dict[str, list[tuple[str, Part]]] = {}  # by the call, all experiments that want it
    for name, parts in work.items():
        for part in parts:
            if (name, part.name) not in missing and _kept(folder, name, part) is None:
                todo.setdefault(_call(part), []).append((name, part))
    # the longest first: no core waits for them at last
    calls = sorted(todo.values(), key=lambda wanted: -wanted[0][1].cost)
    left = Counter(name for wanted in calls for name, _ in wanted)
    total, done = sum(wanted[0][1].cost for wanted in calls), 0.0

    def conclude(name: str) -> dict[str, Any]:
        return _conclude(folder, name, work[name], plan, missing)

    contents = {name: conclude(name) for name in names if not left[name]}
    environment = {} if plan.data is None else {"DISCEM_DATA": plan.data}
    with Workers(min(jobs, len(calls)), environment) as workers:
        for place, outcome in workers.do(
            [(each[0][1].work, each[0][1].settings) for each in calls]
        ):
            name, part = calls[place][0]
            if outcome.failed:
                raise PartFailedError(f"{name}, part {part.name!r}: {outcome.failed}")
            done += part.cost
            if progress is not None:
                progress(f"{name}: {part.name}", done / total, None)
            for name, part in calls[place]:
                if outcome.impossible:
                    missing[name, part.name] = outcome.impossible
                else:
                    _keep(folder, name, part, outcome.seconds, json.loads(outcome.result))
                left[name] -= 1
                if not left[name]:
                    contents[name] = conclude(name)  # while others are at work
    return [contents[name] for name in names]


def count(names: Sequence[str], plan: Plan, output: str | os.PathLike[str]) -> tuple[int, int]:
    """How many parts are done, and how many there are that have their data."""
    parts = [(name, part) for name in names for part in load(name).parts(plan)]
    possible = [(name, part) for name, part in parts if not _absent(part, plan)]
    done = [each for each in possible if _kept(Path(output), *each) is not None]
    return len(done), len(possible)


def forget(names: Sequence[str], plan: Plan, output: str | os.PathLike[str]) -> None:
    """Make parts that are done undone."""
    for name in names:
        for part in load(name).parts(plan):
            _path(Path(output), name, part).unlink(missing_ok=True)


def _absent(part: Part, plan: Plan) -> str | None:
    """Why the part cannot be done, if its data are not there."""
    for name in part.data:
        if plan.data is None:
            return f"needs the data set {name!r}: pass --data DIR, or set DISCEM_DATA"
        if not any(Path(plan.data, name, f"train.txt{end}").exists() for end in (".gz", "")):
            return f"needs the data set {name!r}: put it into the data folder as {name}/*.txt.gz"
    return None


def _folders(plan: Plan) -> list[Path]:
    """Where the data sets are, which is no place for results."""
    if plan.data is None:
        return []
    return [Path(plan.data), *(file.parent for file in Path(plan.data).glob("*/train.txt*"))]


def _call(part: Part) -> str:
    """What is the same for parts that do the same."""
    settings = json.dumps(part.settings, sort_keys=True)
    return f"{part.work.__module__}.{part.work.__qualname__}({settings})"


def _path(folder: Path, name: str, part: Part) -> Path:
    return folder / "parts" / name / f"{part.name}.json"


def _keep(folder: Path, name: str, part: Part, seconds: float, result: Any) -> None:
    path = _path(folder, name, part)
    path.parent.mkdir(parents=True, exist_ok=True)
    origin = {"version": __version__, "settings": part.settings}
    _write(path, origin | {"seconds": seconds, "result": result})


def _kept(folder: Path, name: str, part: Part) -> dict[str, Any] | None:
    """The result of a part, if it was done before, with these settings and this version."""
    try:
        kept = json.loads(_path(folder, name, part).read_text())
    except (OSError, ValueError):
        return None
    origin = {"version": __version__, "settings": json.loads(json.dumps(part.settings))}
    return kept if isinstance(kept, dict) and origin.items() <= kept.items() else None


def _conclude(
    folder: Path, name: str, parts: list[Part], plan: Plan, missing: dict[tuple[str, str], str]
) -> dict[str, Any]:
    """Write what an experiment says, as far as it was done."""
    script = load(name)
    kept = {part.name: _kept(folder, name, part) for part in parts}
    done = {part: outcome for part, outcome in kept.items() if outcome is not None}
    report = Report()
    with style():
        if done:
            report = script.report({part: each["result"] for part, each in done.items()})
        for picture in report.pictures:
            save_figure(picture.figure, folder / picture.name)
    seeds = "" if plan.seeds is None else f" --seeds {plan.seeds}"
    content = {
        "experiment": name,
        "title": script.TITLE,
        "paper": script.PAPER,
        "command": f"discem reproduce {name}{seeds}" + (" --quick" if plan.quick else ""),
        "versions": versions(),
        "seconds": round(sum(each["seconds"] for each in done.values()), 1),
        "pictures": [
            {"name": each.name, "title": each.title, "alt": each.alt} for each in report.pictures
        ],
        "claims": [each.as_json() for each in report.claims],
        "tables": [each._asdict() for each in report.tables],
        "notes": report.notes,
        "missing": [
            {"part": part.name, "why": missing[name, part.name]}
            for part in parts
            if (name, part.name) in missing
        ],
        "parts": {
            part: {"settings": each["settings"], "result": each["result"]}
            for part, each in done.items()
        },
    }
    _write(folder / f"{name}.json", content)
    return content


def versions(*peers: str) -> dict[str, str]:
    """Of what the figures depend on, `peers` included, which may be absent."""
    found = {"discem": __version__, "python": platform.python_version()}
    for name in ("numpy", "scipy", "scikit-learn", "numba", *peers):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "absent"
    return found | {"machine": platform.machine()}


def _write(path: Path, content: Any) -> None:
    with write_atomically(path) as file:
        file.write(json.dumps(content, indent=1, allow_nan=False) + "\n")
