"""What a hostile file, an unlucky machine or a careless program does to the library.

Each campaign is a subcommand, runs what may die in processes of its own, and ends with a table of
what became of every case. A quick part of each is in the tests.

    python benchmarks/torture.py files                    # 2 000 model files, altered in structure
    python benchmarks/torture.py files --count 100        # whether it runs
    python benchmarks/torture.py files --first 340 --count 1 --json one.json
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from harness import versions, write_json

TESTS = Path(__file__).parents[1] / "tests"

Outcome = dict[str, Any]  # a case, and under "end" what became of it


# --- model files ----------------------------------------------------------------------------------

ENDS = {
    "refused": "with a line of its own",
    "harmless": "predicts, learns, draws and saves, or says in an error of ours why not",
    "raised": "an error of another kind",
    "died": "by a signal, or after five minutes",
}


def add_files(commands: Any) -> None:
    """Model files that nobody saved: refused, or harmless."""
    parser = commands.add_parser("files", help=add_files.__doc__)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    parser.set_defaults(run=files, bad=("raised", "died"))


def files(options: argparse.Namespace) -> list[Outcome]:
    """Run all cases; a process that dies is followed by another."""
    found: list[Outcome] = []
    first, last = options.first, options.first + options.count
    while first < last:
        for outcome in lines_of(TESTS / "hostile.py", first, last):
            if outcome["end"] == "begun":
                begun = outcome["case"]
                continue
            found.append(outcome)
        first = begun + 1
        if not found or found[-1]["case"] != begun:
            found.append({"case": begun, "kind": "?", "file": "?", "end": "died"})
    show(found, "kind", ENDS)
    return found


# --- what campaigns share -------------------------------------------------------------------------


def lines_of(script: Path, *words: Any) -> Iterator[Outcome]:
    """Run a script, and yield the JSON that it prints, line by line, until it ends or dies."""
    command = [sys.executable, str(script), *map(str, words)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout or ():
            yield json.loads(line)


def show(found: list[Outcome], by: str, ends: dict[str, str]) -> None:
    """Print how many cases of each kind ended in each way."""
    counts: dict[str, Counter[str]] = {}
    for outcome in found:
        counts.setdefault(outcome[by], Counter())[outcome["end"]] += 1
    counts["all"] = Counter(outcome["end"] for outcome in found)
    print(f"{by:14s}" + "".join(f"{end:>10s}" for end in ends))
    for kind, count in counts.items():
        print(f"{kind:14s}" + "".join(f"{count[end]:10d}" for end in ends))
    for end, meaning in ends.items():
        print(f"{end}: {meaning}")


CAMPAIGNS: tuple[Callable[[Any], None], ...] = (add_files,)


def main() -> None:
    """Run a campaign; fail if anything broke."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    commands = parser.add_subparsers(required=True, metavar="CAMPAIGN")
    for add in CAMPAIGNS:
        add(commands)
    for command in commands.choices.values():
        command.add_argument("--json", type=Path, help="write every outcome")
    options = parser.parse_args()
    found = options.run(options)
    if options.json:
        write_json(options.json, {"versions": versions(), "outcomes": found})
    broken = [outcome for outcome in found if outcome["end"] in options.bad]
    for outcome in broken:
        print(json.dumps(outcome))
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
