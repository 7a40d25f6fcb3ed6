"""A stream of table files that is larger than memory should be: CPU, memory, and kills on the way.

Parquet files of ten numbers, ten categories and two classes are written to a folder. `discem fit
--stream` learns them in one pass. With `--kills N`, it gets N SIGKILLs at random moments, and goes
on with `--resume` each time. After each kill, the model in the file knows how many rows it has
learnt, and in the end no row was learnt twice and none was left out. With `--beside`, the same rows
are learnt again in one run without kills, and both models answer rows that none has seen.

    python benchmarks/out_of_core.py --kills 3                     # ten million rows
    python benchmarks/out_of_core.py --rows 20000 --kills 2 --beside
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow.parquet as pq
from tables_speed import write_stream

import discem

FILES, HELD_OUT = 10, 20_000
MAIN = "from discem.cli import main; main()"


class Run(NamedTuple):
    """What a process took, and whether it came to its end."""

    seconds: float
    cpu: float
    megabytes: float
    ended: bool


def fit(files: list[Path], model: Path, kill_after: float | None = None) -> Run:
    """Run `discem fit --stream`, which goes on with a model that is there; kill it after a time."""
    options = ["--target", "class", "--stream", "--batch-size", "10000", "-o", str(model)]
    options += ["--resume", str(model)] if model.exists() else []
    begun = time.monotonic()
    command = [sys.executable, "-c", MAIN, "fit", *map(str, files), *options]
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).pid
    while kill_after is not None and time.monotonic() - begun < kill_after:
        time.sleep(0.05)
    if kill_after is not None:
        os.kill(child, signal.SIGKILL)
    _, status, usage = os.wait4(child, 0)
    cpu = usage.ru_utime + usage.ru_stime
    return Run(time.monotonic() - begun, cpu, usage.ru_maxrss / 1024, status == 0)


def learnt(model: Path) -> int:
    """How many rows the model in a file has learnt."""
    return int(discem.load(model).stream_["rows"]) if model.exists() else 0


def answers(model: Path, path: Path) -> dict[str, float]:
    """Accuracy and log-loss of a model on the rows of a file."""
    frame = pq.read_table(path).to_pandas()
    y = frame.pop("class").astype(str).to_numpy()
    trained = discem.load(model)
    p = trained.predict_proba(frame)
    own = p[np.arange(len(y)), np.searchsorted(trained.classes_, y)]
    return {
        "accuracy": float((trained.classes_[p.argmax(axis=1)] == y).mean()),
        "log-loss": float(-np.log(own).mean()),
    }


def main() -> None:
    """Print what each process took, and what the model knows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--every", type=float, default=10.0, help="seconds to a kill, at most")
    parser.add_argument("--beside", action="store_true", help="also learn in one unbroken run")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", help="where files go, and stay; default: a temporary one")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(options.folder or temporary)
        folder.mkdir(parents=True, exist_ok=True)
        files = [folder / f"part-{number}.parquet" for number in range(FILES)]
        for number, path in enumerate(files):
            if not path.exists():
                write_stream(path, options.rows // FILES, seed=number)
        fresh = folder / "fresh.parquet"
        write_stream(fresh, HELD_OUT, seed=FILES)
        model = folder / "model.skops"
        model.unlink(missing_ok=True)
        print("run         seconds     CPU s      MB       rows learnt")
        runs = []
        for number in range(options.kills + 1):
            last = number == options.kills
            after = None if last else rng.uniform(0.3, 1.0) * options.every
            runs.append(fit(files, model, after))
            show("killed" if not runs[-1].ended else "to its end", runs[-1], learnt(model))
        everything = (sum(own) for own in zip(*runs, strict=True))
        seconds, cpu, _, _ = everything
        most = max(run.megabytes for run in runs)
        show("all", Run(seconds, cpu, most, ended=True), learnt(model))
        assert runs[-1].ended and learnt(model) == options.rows // FILES * FILES
        print("fresh rows", answers(model, fresh))
        if options.beside:
            other = folder / "unbroken.skops"
            other.unlink(missing_ok=True)
            show("unbroken", fit(files, other), learnt(other))
            print("fresh rows", answers(other, fresh))


def show(name: str, run: Run, rows: int) -> None:
    print(
        f"{name:10} {run.seconds:8.1f} {run.cpu:9.1f} {run.megabytes:7.0f} {rows:17,}", flush=True
    )


if __name__ == "__main__":
    main()
