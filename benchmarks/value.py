"""`elute value` of three rankings against `elute fit`, on the same log of many impressions.

    python -m benchmarks.value [--rows 10_000_000] [--repeats 3]

The log is that of the other benchmarks (string ids), with positions alone as factors. The rankings are the order shown,
one with noise, and one at random, of all documents that were shown. The aim is 3 times the seconds of the fit at most.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import duckdb

import elute
from benchmarks import measure
from benchmarks.logs import FOLDER, click_log

AIM = 3.0
_SEEDS = {"same": 0.0, "noisy": 3.0, "random": 1e6}
"""By ranking: how much noise is added to the mean position."""


def prepare(name: str, path: str) -> measure.Work:
    """Compiled first, on a log of the same kind that is small."""
    small = str(click_log(100_000))
    _run(name, small)
    return lambda: _run(name, path)


def _run(name: str, path: str) -> float:
    if name == "fit":
        found = elute.fit(path)
        found.save(_fit_folder(path))
        return float(found.summary["log_likelihood"])
    if not _fit_folder(path).exists():
        elute.fit(path).save(_fit_folder(path))
    rankings = [str(file) for file in make_rankings(path)]
    return float(elute.value(path, _fit_folder(path), rankings).to_dict()["valued_share"])


def _fit_folder(path: str) -> Path:
    return FOLDER / f"{Path(path).stem}-fit"


def make_rankings(path: str) -> list[Path]:
    """Made once and kept."""
    out = []
    for name, noise in _SEEDS.items():
        file = FOLDER / f"{Path(path).stem}-{name}.parquet"
        if not file.exists():
            duckdb.connect().execute(
                f"COPY (SELECT query_id, doc_id, -place + {noise} * (hash(query_id, doc_id, '{name}') / "
                f"18446744073709551616.0) AS score FROM (SELECT query_id, doc_id, avg(position) AS place FROM '{path}' "
                f"GROUP BY ALL)) TO '{file}' (FORMAT parquet)"
            )
        out.append(file)
    return out


def main() -> None:
    """Print seconds, memory and their ratio; exit 1 where the aim is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    path = str(click_log(given.rows))
    make_rankings(path)
    found = measure.compare("benchmarks.value", ["fit", "value"], path, given.repeats)
    for name, one in found.items():
        print(f"{name:<8}{one['seconds']:8.2f} s {one['gib']:8.2f} GiB")
    ratio = found["value"]["seconds"] / found["fit"]["seconds"]
    print(f"value / fit: {ratio:.2f} (aim: {AIM:g}); {found['value']['result']:.1%} of the pages valued")
    sys.exit(ratio > AIM)


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1] == "--child":
        measure.main(prepare)
    else:
        main()
