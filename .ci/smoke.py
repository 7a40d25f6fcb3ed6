"""Whether an installed discem does its work under the Python that runs this file.

It needs no clone, no test tool and no data. Extras that are not installed are passed over, by name.
"""

import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import discem
from discem.datasets import customers


def numbers() -> None:
    X, y = [[0.0], [0.2], [1.0], [1.2]], ["low", "low", "high", "high"]
    for estimator in (discem.GaussianNB, discem.GaussianClassifier, discem.MixtureClassifier):
        found = estimator(random_state=0).fit(X, y).predict(X).tolist()
        assert found == y, (estimator, found)


def words() -> None:
    texts = ["good film", "bad film", "a good plot", "a bad plot"]
    model = discem.TextClassifier(random_state=0).fit(texts, ["+", "-", "+", "-"])
    assert model.predict(["what a good plot!"]).tolist() == ["+"]


def table_and_file(folder: Path) -> None:
    rows, y = customers(200, random_state=0)
    model = discem.TableClassifier(random_state=0).fit(rows, y)
    model.save(folder / "model.skops")
    again = discem.load(folder / "model.skops")
    np.testing.assert_array_equal(again.predict_proba(rows), model.predict_proba(rows))
    assert model.score(rows, y) > 0.8


def frames() -> None:
    import pandas as pd

    rows, y = customers(200, random_state=0)
    model = discem.TableClassifier(random_state=0).fit(pd.DataFrame(rows), y)
    assert isinstance(model.impute(pd.DataFrame(rows)), pd.DataFrame)


def parquet(folder: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({"x": [0.0, 0.1, 1.0, 1.1] * 5, "y": ["a", "a", "b", "b"] * 5})
    pq.write_table(table, folder / "rows.parquet")
    command("fit", folder / "rows.parquet", "--target", "y", "-o", folder / "rows.skops")


def gibbs() -> None:
    counts = np.array([[3, 0, 1], [0, 3, 1]] * 5)
    model = discem.TopicClassifier(inference="gibbs", max_iter=2, random_state=0)
    model.fit(counts, ["a", "b"] * 5)


def pictures() -> None:
    from discem.report import plots

    with plots.style():
        pass


def workers() -> None:
    import dask.array as da
    from distributed import Client

    X = da.from_array(np.array([[0.0], [0.2], [1.0], [1.2]] * 4), chunks=(8, 1))
    y = da.from_array(np.array([0, 0, 1, 1] * 4), chunks=8)
    with Client(processes=False, n_workers=1, dashboard_address=None):
        discem.GaussianNB(engine="dask", max_iter=5, tol=None).fit(X, y)


def help_is_shown() -> None:
    command("--help")


def command(*arguments: object) -> None:
    program = [sys.executable, "-c", "from discem.cli import main; main()"]
    subprocess.run([*program, *map(str, arguments)], check=True, capture_output=True)


def main() -> None:
    parts = [
        (numbers, []),
        (words, []),
        (table_and_file, []),
        (frames, ["narwhals", "pandas"]),
        (help_is_shown, ["typer"]),
        (parquet, ["typer", "pyarrow"]),
        (gibbs, ["numba"]),
        (pictures, ["matplotlib"]),
        (workers, ["dask", "distributed"]),
    ]
    with tempfile.TemporaryDirectory() as folder:
        for part, needed in parts:
            absent = [name for name in needed if find_spec(name) is None]
            if absent:
                print(f"{part.__name__}: passed over, for want of {', '.join(absent)}")
            else:
                part(*[Path(folder)] * part.__code__.co_argcount)
    print(f"smoke test passed under {sys.executable}, Python {sys.version.split()[0]}")


if __name__ == "__main__":
    main()
