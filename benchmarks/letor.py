"""`elute.io.letor` against scikit-learn's `load_svmlight_file(query_id=True)` on one file of MSLR's shape.

    python -m benchmarks.letor [--documents N] [--repeats N]

Both give queries, grades and features. Peak memory is of the whole process; the dense table is printed beside it, and
"import" is what a process takes before it reads anything.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import measure

FEATURES = 136
PER_QUERY = 120


def write(path: Path, documents: int) -> None:
    """A file like MSLR-WEB10K's: 136 features, a third of them 0, counts and decimals in the rest."""
    rng = np.random.default_rng(0)
    with path.open("w", encoding="ascii") as out:
        for first in range(0, documents, PER_QUERY):
            n = min(PER_QUERY, documents - first)
            values = np.round(rng.lognormal(0.0, 3.0, size=(n, FEATURES)), 6)
            values[:, ::2] = np.floor(values[:, ::2])
            values[rng.random(values.shape) < 1 / 3] = 0.0
            for grade, row in zip(rng.integers(0, 5, n), values, strict=True):
                features = " ".join(f"{i}:{value:.8g}" for i, value in enumerate(row, start=1))
                out.write(f"{grade} qid:{first // PER_QUERY} {features} \n")


def prepare(name: str, path: str) -> measure.Work:
    small = Path(path).with_name("small.txt")
    if name == "elute":
        from elute.io import letor

        letor.read(small)

        def ours() -> list[Any]:
            data = letor.read(path)
            return [list(data.features.shape), data.n_queries, float(data.features.sum(dtype=np.float64))]

        return ours
    if name == "import":
        from elute.io import letor

        letor.read(small)
        return lambda: None
    from sklearn.datasets import load_svmlight_file

    def theirs() -> list[Any]:
        features, _, query = load_svmlight_file(path, query_id=True, dtype=np.float32)
        return [list(features.shape), len(np.unique(query)), float(features.sum(dtype=np.float64))]

    return theirs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=120_000)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.txt"
        write(path, arguments.documents)
        write(path.with_name("small.txt"), 2 * PER_QUERY)
        size = path.stat().st_size
        runs = measure.compare("benchmarks.letor", ["import", "elute", "scikit-learn"], str(path), arguments.repeats)
    ours, theirs = runs["elute"], runs["scikit-learn"]
    assert ours["result"][:2] == theirs["result"][:2]
    assert np.isclose(ours["result"][2], theirs["result"][2], rtol=1e-6)
    table = 4 * arguments.documents * FEATURES / 2**30
    print(f"{arguments.documents:,} documents, {size / 2**20:,.0f} MiB of text, dense table {table:.2f} GiB\n")
    print("| reader | seconds | MB/s | peak GiB |\n|---|---|---|---|")
    for name in ("elute", "scikit-learn"):
        seconds = runs[name]["seconds"]
        print(f"| {name} | {seconds:.2f} | {size / seconds / 1e6:.0f} | {runs[name]['gib']:.2f} |")
    print(f"\nratio of seconds {theirs['seconds'] / ours['seconds']:.1f}; import {runs['import']['gib']:.2f} GiB")


if __name__ == "__main__":
    if "--child" in sys.argv:
        measure.main(prepare)
    else:
        main()
