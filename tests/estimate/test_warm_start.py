"""A fit that starts from yesterday's: the same optimum to 1e-6, in as many rounds at most."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pyarrow as pa
import pytest
from memory_partitions import MemoryPartitions

import elute
from elute.cells.counts import Counts
from elute.estimate.models.pbm import PBM

Prior = Literal["none", "beta"]
DAYS, LAST = 31, 28


def fraction(code: np.ndarray, seed: float) -> np.ndarray:
    """A number from 0 to 1 for every id, always the same."""
    return np.modf(np.abs(np.sin(code * seed)) * 43758.5453)[0]


def draw_day(seed: int, rows: int, kind: str) -> dict[str, np.ndarray]:
    """Items keep their places, mostly. "once": most are shown once; "users": each user asks for the same few again and
    again; "lone": a last position that few items reach; "shop": few items."""
    rng = np.random.default_rng(seed)
    if kind == "once":
        doc = np.where(rng.random(rows) < 0.7, rng.integers(10**9, size=rows), rng.integers(rows // 3, size=rows))
    elif kind == "users":
        user = rng.zipf(1.5, size=rows) % 500
        doc = user * 8 + rng.integers(8, size=rows)
    else:
        doc = rng.integers(150 if kind == "shop" else rows // 3, size=rows)
    home = 1 + fraction(doc, 78.233) * 10
    position = np.clip(np.floor(home + rng.normal(0, 0.7, size=rows)), 1, 10).astype(np.int64)
    if kind == "lone":
        position = np.where((doc % 50 == 0) & (rng.random(rows) < 0.2), 40, position)
    chance = (0.02 + 0.5 * fraction(doc, 12.9898)) / position**0.8
    click = (rng.random(rows) < chance).astype(np.int8)
    return {"query_id": doc // 7, "doc_id": doc, "position": position, "click": click}


def count_windows(kind: str, rows: int) -> list[Counts]:
    days = [draw_day(seed, rows, kind) for seed in range(DAYS)]
    windows = [days[end - LAST : end] for end in range(LAST, DAYS + 1)]
    tables = [pa.table({name: np.concatenate([day[name] for day in window]) for name in days[0]}) for window in windows]
    return [elute.read_log(table).counts() for table in tables]


def begin_from(earlier: PBM, prior: Prior) -> PBM:
    model = PBM(relevance_prior=prior)
    model.start_warm(np.where(earlier.propensity_ > 0, earlier.propensity_, 0.3))
    return model


def assert_same(one: PBM, other: PBM) -> None:
    np.testing.assert_allclose(one.propensity_, other.propensity_, rtol=1e-6)
    np.testing.assert_allclose(one.relevance_values_, other.relevance_values_, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(one.propensity_log_se_, other.propensity_log_se_, rtol=1e-5)


@pytest.mark.parametrize("prior", ["none", "beta"])
@pytest.mark.parametrize("kind", ["once", "users", "lone", "shop"])
def test_the_same_optimum_in_fewer_rounds(kind: str, prior: Prior) -> None:
    windows = count_windows(kind, 4_000)
    earlier = PBM(relevance_prior=prior).fit(windows[0])
    cold_rounds, warm_rounds = [], []
    for counts in windows[1:]:
        cold, exact = PBM(relevance_prior=prior).fit(counts), PBM(relevance_prior=prior, tolerance=1e-10).fit(counts)
        warm = begin_from(earlier, prior).fit(counts)
        assert warm.converged_
        assert_same(warm, exact)
        cold_rounds.append(cold.iterations_)
        warm_rounds.append(warm.iterations_)
        earlier = warm
    assert all(warm <= cold for warm, cold in zip(warm_rounds, cold_rounds, strict=True))
    assert sum(warm_rounds) < sum(cold_rounds)


@pytest.mark.parametrize("prior", ["none", "beta"])
def test_in_partitions(prior: Prior) -> None:
    before, counts = count_windows("once", 1_000)[:2]
    owner = np.random.default_rng(0).integers(3, size=counts.n_items)
    parts = MemoryPartitions(counts, owner)
    cold = PBM(relevance_prior=prior).fit(parts)
    exact = PBM(relevance_prior=prior, tolerance=1e-10).fit(parts)
    warm = begin_from(PBM(relevance_prior=prior).fit(before), prior).fit(parts)
    assert warm.converged_ and warm.iterations_ <= cold.iterations_
    np.testing.assert_allclose(warm.propensity_, exact.propensity_, rtol=1e-6)


@pytest.mark.parametrize("prior", ["none", "beta"])
def test_from_far_off_it_ends_at_the_same_place(prior: Prior) -> None:
    counts = count_windows("once", 1_000)[0]
    exact = PBM(relevance_prior=prior, tolerance=1e-10).fit(counts)
    for seed in range(5):
        warm = PBM(relevance_prior=prior)
        warm.start_warm(np.exp(np.random.default_rng(seed).normal(0, 4, counts.factors.num_rows)))
        warm.fit(counts)
        assert warm.converged_
        assert_same(warm, exact)
