"""What tests of the command line share."""

import csv
import gzip
import io
import json
import os
import random

import pytest

from discem.cli._screen import Meter


def send(signum, when):
    """Signal this process when the meter is told of something that starts so."""
    before = Meter.tell

    def tell(self, step, *args, **more):
        if step.startswith(when):
            os.kill(os.getpid(), signum)
        before(self, step, *args, **more)

    return tell


def people(n, seed=0):
    """Rows whose label two columns tell, some cells missing."""
    rng = random.Random(seed)
    rows = []
    for number in range(n):
        label = rng.choice(["no", "yes"])
        row = {
            "name": f"p{number}",
            "age": round(rng.gauss(60 if label == "yes" else 40, 8), 1),
            "job": rng.choice(["cook", "clerk", "cook"] if label == "yes" else ["clerk", "nurse"]),
            "since": f"2024-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d}",
            "member": rng.random() < 0.5,
        }
        for name in ("age", "job", "member"):
            if rng.random() < 0.1:
                row[name] = None
        rows.append(row | {"out": label})
    return rows


def write(path, rows, missing="?"):
    """A file of that format, which its name tells."""
    kind = path.name.split(".")[1]
    if kind == "parquet":
        pa = pytest.importorskip("pyarrow", reason="Parquet needs discem[parquet]")
        import pyarrow.parquet as pq

        pq.write_table(pa.Table.from_pylist(rows), path)
        return path
    text = io.StringIO()
    if kind == "jsonl":
        text.writelines(json.dumps(row) + "\n" for row in rows)
    else:
        writer = csv.DictWriter(text, list(rows[0]), delimiter="\t" if kind == "tsv" else ",")
        writer.writeheader()
        for row in rows:
            writer.writerow({k: missing if cell is None else cell for k, cell in row.items()})
    with gzip.open(path, "wt") if path.suffix == ".gz" else open(path, "w") as file:
        file.write(text.getvalue())
    return path
