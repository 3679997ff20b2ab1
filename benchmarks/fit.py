"""`elute fit` on a million sessions × 10 positions against peers, each from its own Parquet file.

    python -m benchmarks.fit                   # BENCH_SESSIONS=1000000 by default
    python -m benchmarks.fit --cells 50000000  # the fit alone, on counts of this many cells

CLAX runs in an environment of its own (see `benchmarks.peers`), or is left out with the reason. PyClick is not on PyPI;
what stands for it is EM in plain Python over sessions, which is how it works, on 10,000 sessions and extrapolated
linearly.

Goals: at least 20 × faster than CLAX at equal or better held-out perplexity; 50 million cells under 60 s and 6 GiB.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.measure import Work, compare, main
from benchmarks.peers import clax
from elute.auditing.perplexity import perplexity
from elute.cells.counts import Counts
from elute.estimate.models.base import Estimator
from elute.estimate.models.dla import DLA
from elute.estimate.models.em import RegressionEM
from elute.estimate.models.pbm import PBM
from elute.log import read_log
from elute.ranking.data import RankingData
from elute.simulation import log
from elute.simulation.grades import relevance_of_grades
from elute.simulation.policies.noisy_oracle import NoisyOracle
from elute.simulation.users.position import PositionBased
from elute.simulation.world import WIDTH, World, draw_pages, spawn_streams

ROOT = Path(__file__).parent.parent
QUERIES = 10_000
HELD_OUT = 100_000
PLAIN_SESSIONS, PLAIN_STEPS = 10_000, 10
MODELS: dict[str, Callable[[], Estimator]] = {
    "pbm": PBM,
    "pbm, Beta prior": partial(PBM, relevance_prior="beta"),
    "em": partial(RegressionEM, max_iter=500),
    "dla": partial(DLA, max_iter=500),
}


def world() -> World:
    rng = np.random.default_rng(0)
    n = QUERIES * WIDTH
    data = RankingData(
        np.zeros((n, 1), np.float32),
        rng.integers(0, 5, n).astype(np.int32),
        np.arange(0, n + 1, WIDTH),
        np.array([str(q) for q in range(QUERIES)]),
        np.array([str(d) for d in range(n)]),
    )
    return World(data, NoisyOracle(temperature=1.0), PositionBased(), relevance_of_grades(data.grades, 4))


def files(sessions: int) -> Path:
    """The same pages as impressions (train, test) and as sessions (CLAX: train, validation and test in one file)."""
    folder = ROOT / ".benchmarks" / f"fit-{sessions}"
    if not (folder / "sessions" / "part-0.parquet").exists():
        made = world()
        for seed, (name, size) in enumerate({"train": sessions, "validation": HELD_OUT, "test": HELD_OUT}.items()):
            log.write(folder / f"{name}.parquet", made, draw_pages(made, size, spawn_streams(seed)), size)
        parts = [pq.read_table(folder / f"{name}.parquet") for name in ("train", "validation", "test")]
        doc, click = (np.concatenate([part[c].to_numpy() for part in parts]) for c in ("doc_id", "click"))
        starts = pa.array(np.arange(0, len(click) + 1, WIDTH, dtype=np.int32))
        columns = {
            "query_id": (doc.astype(np.int64) // WIDTH)[::WIDTH],
            "query_doc_ids": pa.ListArray.from_arrays(starts, pa.array(doc.astype(np.int64))),
            "clicks": pa.ListArray.from_arrays(starts, pa.array(click.astype(np.int64))),
        }
        (folder / "sessions").mkdir(exist_ok=True)
        pq.write_table(pa.table(columns), folder / "sessions" / "part-0.parquet")
    return folder


def quality(folder: Path, relevance: np.ndarray, propensity: np.ndarray) -> dict[str, float]:
    """Held-out perplexity, and the correlation with the true relevance; arrays by document and by rank."""
    test = pq.read_table(folder / "test.parquet")
    doc, rank = test["doc_id"].to_numpy().astype(np.int64), test["position"].to_numpy().astype(np.int64)
    p = np.clip(relevance[doc] * propensity[rank - 1], 1e-6, 1 - 1e-6)
    found = perplexity(p, test["click"].to_numpy(), ranks=rank).mean
    return {"perplexity": found, "correlation": float(np.corrcoef(relevance, world().relevance)[0, 1])}


def prepare(name: str, path: str) -> Work:
    folder = Path(path)
    if name == "plain":
        return lambda: plain(folder)
    MODELS[name]().fit(small())  # compile, or load what was compiled

    def work() -> dict[str, float]:
        began = time.perf_counter()
        with read_log(str(folder / "train.parquet"), item="doc_id") as opened:
            counts = opened.counts()
            counted = time.perf_counter() - began
            fit = MODELS[name]().fit(counts)
            ended = time.perf_counter() - began
            relevance = np.full(QUERIES * WIDTH, np.nanmean(fit.relevance_values_))
            relevance[counts.items["doc_id"].to_numpy(zero_copy_only=False).astype(np.int64)] = fit.relevance_values_
        measured = {"seconds": ended, "counting": counted, "iterations": fit.iterations_, "converged": fit.converged_}
        return measured | quality(folder, relevance, fit.propensity_)

    return work


def small() -> Counts:
    return synthetic(2_000, 50)


def plain(folder: Path) -> dict[str, float]:
    """EM as PyClick runs it: Python objects, one pass over all sessions for each step."""
    table = pq.read_table(folder / "train.parquet").slice(0, PLAIN_SESSIONS * WIDTH)
    rows = list(zip(*(table[c].to_pylist() for c in ("query_id", "doc_id", "position", "click")), strict=True))
    attraction: dict[tuple[str, str], float] = {}
    examination = dict.fromkeys(range(1, WIDTH + 1), 0.5)
    began = time.perf_counter()
    for _ in range(PLAIN_STEPS):
        sums: dict[tuple[str, str] | int, list[float]] = {}
        for query, doc, position, click in rows:
            r, o = attraction.get((query, doc), 0.5), examination[position]
            if click:
                seen, liked = 1.0, 1.0
            else:
                seen, liked = o * (1 - r) / (1 - o * r), r * (1 - o) / (1 - o * r)
            for key, value in (((query, doc), liked), (position, seen)):
                total = sums.setdefault(key, [1.0, 2.0])
                total[0] += value
                total[1] += 1
        for key, (value, n) in sums.items():
            if isinstance(key, tuple):
                attraction[key] = value / n
            else:
                examination[key] = value / n
    return {"seconds": time.perf_counter() - began}


def peer_of(folder: Path, sessions: int) -> dict[str, float] | str:
    """CLAX's own loader and trainer, or why not."""
    found = clax("pbm", folder / "sessions", (sessions, HELD_OUT, HELD_OUT, QUERIES * WIDTH))
    if isinstance(found, str):
        return found
    values = np.load(folder / "sessions-clax-pbm.npz")
    return {"seconds": found["seconds"], **quality(folder, values["relevance"], values["propensity"])}


def synthetic(cells: int, factors: int) -> Counts:
    """Counts of a position-based world: items seen under 5 factors each, about 20 impressions a cell."""
    rng = np.random.default_rng(1)
    items, each = cells // 5, 5
    factor = np.sort((rng.integers(factors, size=(items, 1)) + rng.integers(factors, size=(items, each))) % factors)
    keep = np.ones(factor.shape, bool)
    keep[:, 1:] = np.diff(factor) > 0
    offsets = np.concatenate(([0], np.cumsum(keep.sum(axis=1))))
    flat = factor[keep].astype(np.int32)
    r, o = rng.uniform(0.05, 0.9, items), rng.uniform(0.1, 1.0, factors)
    shown = (1 + rng.poisson(20, len(flat))).astype(np.uint32)
    p = np.repeat(r, keep.sum(axis=1)) * o[flat]
    names = pa.table({"position": np.arange(factors)})
    clicks = rng.binomial(shown, p).astype(np.uint32)
    return Counts(offsets, flat, shown, clicks, names, None, 0.0, lambda: pa.table({"doc_id": np.arange(items)}))


def fit_only(cells: int) -> None:
    import resource

    PBM(relevance_prior="none").fit(small())
    counts = synthetic(cells, 5_000)
    made = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    began = time.perf_counter()
    fit = PBM(relevance_prior="none").fit(counts)
    seconds = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"{counts.n_cells:,} cells, {counts.n_items:,} items, {counts.n_factors:,} factors: {seconds:.1f} s, "
        f"{fit.iterations_} iterations, converged {fit.converged_}; peak {peak:.2f} GiB ({made:.2f} before the fit)"
    )


def run() -> None:
    sessions = int(float(os.environ.get("BENCH_SESSIONS", "1_000_000")))
    folder = files(sessions)
    found = compare("benchmarks.fit", [*MODELS, "plain"], str(folder), 2)
    print(f"{sessions:,} sessions × {WIDTH}, {QUERIES * WIDTH:,} items; from the Parquet file to the fit\n")
    print("| | seconds | of CLAX | perplexity | correlation with truth | |\n|---|---|---|---|---|---|")
    peer = peer_of(folder, sessions)
    for name in MODELS:
        got = found[name]["result"]
        share = f"1/{peer['seconds'] / got['seconds']:.0f}" if isinstance(peer, dict) else "–"
        note = f"{got['counting']:.2f} s of it counting, {got['iterations']} iterations"
        note += "" if got["converged"] else ", not converged"
        print(
            f"| {name} | {got['seconds']:.2f} | {share} | {got['perplexity']:.4f} | {got['correlation']:.4f} | {note} |"
        )
    if isinstance(peer, dict):
        print(f"| CLAX PBM | {peer['seconds']:.2f} | 1 | {peer['perplexity']:.4f} | {peer['correlation']:.4f} | |")
    else:
        print(f"| CLAX PBM | | | | | {peer} |")
    slow = found["plain"]["result"]["seconds"] * sessions / PLAIN_SESSIONS
    print(f"| EM in plain Python | {slow:,.0f} | | | | from {PLAIN_SESSIONS:,} sessions, {PLAIN_STEPS} steps |")
    print("\nTruth:", {name: round(value, 4) for name, value in quality(folder, world().relevance, truth()).items()})


def truth() -> np.ndarray:
    return np.asarray(PositionBased().propensities)


if __name__ == "__main__":
    if "--child" in sys.argv:
        main(prepare)
    else:
        parser = argparse.ArgumentParser()
        parser.add_argument("--cells", type=int)
        given = parser.parse_args()
        if given.cells:
            fit_only(given.cells)
        else:
            run()
