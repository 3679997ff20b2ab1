"""Small batches and worlds that the tests of the neural learners share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, cast

import jax
import numpy as np
import pytest
from numpy.typing import NDArray

from elute.neural.data import Batch
from elute.neural.sources import SimulatedLists, build_simulated_lists
from elute.ranking.data import RankingData
from reference.neural_plain import Shown

POSITIONS, FEATURES = 5, 8
BIAS = np.array([0.9, 0.6, 0.45, 0.3, 0.15])


class Small(NamedTuple):
    """The same lists as a batch and page by page."""

    features: NDArray[np.float64]
    batch: Batch
    pages: list[Shown]


def small(seed: int, lengths: tuple[int, ...] = (5, 3, 1, 4, 2, 5)) -> Small:
    """Lists of these lengths; every position gets a click, and not only clicks."""
    rng = np.random.default_rng(seed)
    lists = len(lengths)
    features = rng.normal(size=(lists * POSITIONS, FEATURES))
    rows = rng.permutation(lists * POSITIONS).reshape(lists, POSITIONS).astype(np.int32)
    rows[np.arange(POSITIONS) >= np.array(lengths)[:, None]] = -1
    clicks = (rng.random(rows.shape) < 0.5).astype(np.float64)
    clicks[0], clicks[-1] = (1, 0, 1, 0, 1), (0, 1, 0, 1, 0)
    clicks[rows < 0] = 0
    logging = rng.normal(size=rows.shape)
    pages = [Shown(features[rows[i, :n]], clicks[i, :n], logging[i, :n]) for i, n in enumerate(lengths)]
    return Small(features, batch_of(rows, clicks, logging), pages)


def batch_of(*arrays: NDArray[Any]) -> Batch:
    """A batch of numpy's arrays, which jax takes as they are. Arrays of jax itself would be of single precision."""
    return Batch(*cast(tuple[jax.Array, ...], arrays))


def linear_world(queries: int = 200, seed: int = 0) -> tuple[SimulatedLists, NDArray[np.float64]]:
    """Documents in random order whose log relevance is linear in their features, and that log relevance."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(queries * POSITIONS, FEATURES))
    log_relevance = x @ rng.normal(size=FEATURES) * 0.25 - 1.5
    log_relevance = np.minimum(log_relevance, 0)
    rows = np.arange(len(x)).reshape(queries, POSITIONS)
    return build_simulated_lists(x, rows, log_relevance[rows], np.exp(log_relevance), BIAS), log_relevance


def graded(queries: int = 40, seed: int = 1) -> RankingData:
    """Ranking data of 3 to 7 documents a query, whose grades follow the first feature, with noise."""
    rng = np.random.default_rng(seed)
    offsets = np.concatenate(([0], np.cumsum(rng.integers(3, 8, queries))))
    x = rng.normal(size=(offsets[-1], FEATURES)).astype(np.float32)
    grades = np.clip(np.round(x[:, 0] + rng.normal(size=len(x)) + 1), 0, 4).astype(np.int32)
    names = np.arange(len(x)).astype(np.str_)
    return RankingData(x, grades, offsets, names[:queries], names)


KEY = jax.random.PRNGKey(0)


def quick(function: Callable[..., Any]) -> Any:
    """Compiled with little optimisation, as tests compile much and compute little."""
    return jax.jit(
        function, compiler_options={"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
    )


@pytest.fixture(autouse=True, scope="module")
def compiled_with_little_optimisation() -> Iterator[None]:
    """What `quick` does, for functions that compile themselves: for a module that imports this."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)
