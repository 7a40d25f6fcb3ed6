"""How long `TableClassifier` takes: the first fit of a process, a default fit, a stream.

The first fit is of a small made-up table. The default fit,
all that it tries included, is of Adult's training rows, where `--data DIR` has them, and of as many
made-up ones. The stream comes from a Parquet file of ten numbers and ten categories and two
classes; it is held against reading that file and making data frames of it.

    python benchmarks/tables_speed.py --data DIR --json speed.json
    python benchmarks/tables_speed.py --rows 10000000          a long stream
    python benchmarks/tables_speed.py --quick                  whether it runs
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from harness import in_process, seconds_of, versions, write_json

from discem import TableClassifier
from discem.datasets import customers

BATCH = 65_536
COLUMNS = 10  # of each kind, in the stream


def first_fit() -> dict[str, float]:
    """Seconds of the first and of the second fit of a process."""
    rows, y = customers(400, random_state=0)
    X = pd.DataFrame(rows)
    first, second = (seconds_of(lambda: TableClassifier(random_state=0).fit(X, y)) for _ in "12")
    return {"first": first, "second": second}


def default_fit(folder: str | None, n_rows: int) -> dict[str, float]:
    """Seconds of a default fit, by table."""
    rows, y = customers(n_rows, random_state=0)
    tables = {f"made up, {n_rows} rows": (pd.DataFrame(rows), y)}
    path = Path(folder or ".") / "tabular" / "adult-train.csv.gz"
    if folder and path.exists():
        frame = pd.read_csv(path, na_values="?", skipinitialspace=True)
        tables["Adult"] = frame.drop(columns="class"), frame["class"]
    return {
        name: seconds_of(lambda X=X, y=y: TableClassifier(random_state=0).fit(X, y))
        for name, (X, y) in tables.items()
    }


def write_stream(path: Path, n_rows: int, seed: int = 0) -> None:
    """Numbers, and categories by their codes, that tell two classes apart a little."""
    rng = np.random.default_rng(seed)
    with pq.ParquetWriter(path, _batch(rng, 1).schema) as file:
        for begin in range(0, n_rows, BATCH):
            file.write_batch(_batch(rng, min(BATCH, n_rows - begin)))


def _batch(rng: np.random.Generator, n: int) -> pa.RecordBatch:
    y = rng.integers(2, size=n)
    columns: dict[str, Any] = {}
    for j in range(COLUMNS):
        columns[f"number {j}"] = pa.array(rng.normal(size=n) + 0.3 * (j % 3) * y)
        levels = [f"level {i}" for i in range(3 + j)]
        codes = (rng.random(n) * len(levels) + 0.5 * y).astype(np.int32) % len(levels)
        columns[f"level {j}"] = pa.DictionaryArray.from_arrays(codes, levels)
    columns["class"] = pa.DictionaryArray.from_arrays(y.astype(np.int32), ["no", "yes"])
    return pa.record_batch(columns)


def stream(path: str) -> dict[str, float]:
    """Microseconds of CPU a row: to read, to make frames, and to learn from these."""
    model = TableClassifier(random_state=0)

    def learn(batch: pa.RecordBatch) -> None:
        frame = batch.to_pandas()
        model.partial_fit(frame.drop(columns="class"), frame["class"])

    steps: dict[str, Callable] = {
        "read": lambda batch: batch,
        "read and convert": lambda batch: batch.to_pandas(),
        "read, convert and learn": learn,
    }
    return {name: _per_row(path, step) for name, step in steps.items()}


def _per_row(path: str, step: Callable) -> float:
    file, begun = pq.ParquetFile(path), time.process_time()
    for batch in file.iter_batches(BATCH):
        step(batch)
    return 1e6 * (time.process_time() - begun) / file.metadata.num_rows


def main() -> None:
    """Print what was measured, in medians."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=os.environ.get("DISCEM_DATA"), help="has tabular/adult")
    parser.add_argument("--rows", type=int, default=1_000_000, help="of the stream")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="see whether it runs")
    parser.add_argument("--json", metavar="OUT", help="write every number to this file")
    options = parser.parse_args()
    if options.quick:
        options.data, options.rows, options.repeat = None, 4000, 1
    n_rows = 300 if options.quick else 30_000

    def medians(work: Callable, *given: Any) -> dict[str, float]:
        runs = [in_process(work, *given) for _ in range(options.repeat)]
        return {name: statistics.median(run[name] for run in runs) for name in runs[0]}

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "stream.parquet"
        write_stream(path, options.rows)
        found = {
            "a small fit, s": medians(first_fit),
            "a default fit, s": medians(default_fit, options.data, n_rows),
            f"a stream of {options.rows} rows, us of CPU a row": medians(stream, str(path)),
        }
    for title, figures in found.items():
        print(title)
        for name, value in figures.items():
            print(f"    {name:26} {value:8.2f}")
    _, converted, learnt = figures.values()
    print(f"    learning takes {learnt / converted:.1f} times as long as reading and converting")
    if options.json:
        write_json(options.json, {"versions": versions(), "results": found})


if __name__ == "__main__":
    main()
