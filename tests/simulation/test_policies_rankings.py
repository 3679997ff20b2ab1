"""Rankings drawn by policies: against exact Plackett–Luce probabilities, closed forms, and what must always hold."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from elute.errors import EluteError
from elute.ranking.data import RankingData
from elute.simulation.policies import NoisyOracle, Policy, Scored, Uniform

ALPHA = 1e-5
"""Chance of a false alarm in each test of frequencies; the seeds are fixed."""


def world(sizes: list[int], seed: int = 0) -> RankingData:
    offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    n = int(offsets[-1])
    grades = np.random.default_rng(seed).integers(0, 5, n).astype(np.int32)
    queries = np.array([f"q{i}" for i in range(len(sizes))])
    return RankingData(np.zeros((n, 0), np.float32), grades, offsets, queries, np.arange(n).astype(np.str_))


def probabilities(scores: list[float], temperature: float, length: int) -> dict[tuple[int, ...], float]:
    """P(page) for every page of `length` documents, by the definition of the model."""
    weights = np.exp((np.array(scores) - max(scores)) / temperature)
    out = {}
    for page in permutations(range(len(scores)), length):
        left, p = set(range(len(scores))), 1.0
        for document in page:
            p *= weights[document] / sum(weights[list(left)])
            left.remove(document)
        out[page] = float(p)
    return out


def p_value(pages: np.ndarray, expected: dict[tuple[int, ...], float]) -> float:
    """Chi-square of pages against their probabilities; pages expected fewer than 5 times count as one."""
    found = dict.fromkeys(expected, 0)
    for page, count in zip(*np.unique(pages, axis=0, return_counts=True), strict=True):
        found[tuple(page.tolist())] = int(count)
    common = [page for page, p in expected.items() if p * len(pages) >= 5]
    observed = [found[page] for page in common]
    means = [expected[page] * len(pages) for page in common]
    rest = len(pages) - sum(means)
    if rest > 1e-6:
        observed.append(len(pages) - sum(observed))
        means.append(rest)
    scale = len(pages) / sum(means)
    return float(stats.chisquare(observed, np.array(means) * scale).pvalue)


SCORES = {
    "all of four": ([0.3, 0.0, 1.0, 0.7], 4),
    "two of five, most in the race": ([0.0, 2.0, 0.0, 1.0, -1.0], 3),
    "two of seven, by bisection": ([0.0, 2.0, 0.1, 1.0, -1.0, 0.5, 1.9], 2),
    "three of eight, two far ahead": ([9.0, 0.0, 0.2, 9.5, -0.3, 0.1, 0.4, -0.2], 3),
    "equal": ([1.0] * 7, 2),
}


@pytest.mark.parametrize(("scores", "width"), SCORES.values(), ids=SCORES.keys())
@pytest.mark.parametrize("temperature", [0.7, 3.0])
def test_pages_are_as_frequent_as_plackett_and_luce_say(scores: list[float], width: int, temperature: float) -> None:
    data = world([3, len(scores), 2])
    given_scores = np.concatenate(([0.0, 1.0, 2.0], scores, [0.0, 1.0]))
    policy = Scored(given_scores, temperature=temperature)
    rows, length = policy.sample(data, np.full(100_000, 1), width, np.random.default_rng(5))
    assert (length == width).all()
    assert p_value(rows - 3, probabilities(scores, temperature, width)) > ALPHA


@pytest.mark.parametrize("width", [2, 6])
def test_scores_beyond_the_range_of_exp(width: int) -> None:
    """1,000 temperatures between groups: the order of the groups is sure, that within a group as ever."""
    policy = Scored(np.array([0.0, 1000.0, 2000.0, 999.0, 0.4, 1000.5]), temperature=1.0)
    rows, _ = policy.sample(world([6]), np.zeros(20_000, int), width, np.random.default_rng(1))
    assert (rows[:, 0] == 2).all()
    shown = min(width - 1, 3)
    middle = {_at(page, [1, 3, 5]): p for page, p in probabilities([1.0, 0.0, 1.5], 1.0, shown).items()}
    assert p_value(rows[:, 1 : 1 + shown], middle) > ALPHA
    if width == 6:
        last = {_at(page, [0, 4]): p for page, p in probabilities([0.0, 0.4], 1.0, 2).items()}
        assert p_value(rows[:, 4:], last) > ALPHA


def _at(page: tuple[int, ...], documents: list[int]) -> tuple[int, ...]:
    return tuple(documents[i] for i in page)


def test_uniform_gives_every_page_alike() -> None:
    rows, _ = Uniform().sample(world([2, 5]), np.ones(60_000, int), 3, np.random.default_rng(2))
    pages: dict[tuple[int, ...], float] = dict.fromkeys(permutations(range(2, 7), 3), 1 / 60)
    assert p_value(rows, pages) > ALPHA


def test_uniform_is_fresh_for_each_session_of_any_query() -> None:
    """Sessions of other queries in between leave no trace."""
    query = np.tile([0, 1, 2], 20_000)
    rows, _ = Uniform().sample(world([4, 9, 4]), query, 4, np.random.default_rng(3))
    for q, start in ((0, 0), (2, 13)):
        assert p_value(rows[query == q] - start, dict.fromkeys(permutations(range(4)), 1 / 24)) > ALPHA


@pytest.mark.parametrize("temperature", [0.0, 0.5, 2.0])
def test_expected_ranks_are_the_means_of_ranks(temperature: float) -> None:
    data = world([6, 1, 12], seed=4)
    policy = NoisyOracle(sd=1.0, temperature=temperature, seed=4)
    _ranks_agree(policy, data)


def test_expected_ranks_of_uniform() -> None:
    data = world([3, 8])
    assert Uniform().expected_ranks(data).tolist() == [2.0] * 3 + [4.5] * 8
    _ranks_agree(Uniform(), data)


def _ranks_agree(policy: Policy, data: RankingData) -> None:
    sessions = 20_000
    query = np.repeat(np.arange(data.n_queries), sessions)
    rows, _ = policy.sample(data, query, 12, np.random.default_rng(6))
    expected = policy.expected_ranks(data)
    for row in range(data.n_documents):
        rank = np.nonzero(rows == row)[1] + 1.0
        assert len(rank) == sessions
        error = rank.std() / np.sqrt(sessions)
        assert abs(rank.mean() - expected[row]) <= 4 * error + 1e-9


def test_expected_ranks_of_equal_scores_and_of_huge_differences() -> None:
    data = world([4])
    assert Scored(np.ones(4), temperature=0.3).expected_ranks(data).tolist() == [2.5] * 4
    far = Scored(np.array([0.0, 1e6, -1e6, 2e6]), temperature=1e-3).expected_ranks(data)
    assert far.tolist() == [3.0, 2.0, 4.0, 1.0]


def test_temperature_zero_sorts_and_breaks_ties_by_seed() -> None:
    data = world([4, 40])
    scores = np.concatenate(([0.1, 3.0, -1.0, 2.0], np.zeros(40)))
    query = np.array([0, 1, 1, 0])
    rows, length = Scored(scores, seed=1).sample(data, query, 40, np.random.default_rng(0))
    assert rows[0, :4].tolist() == rows[3, :4].tolist() == [1, 3, 0, 2]
    assert (rows[0, 4:] == -1).all()
    assert length.tolist() == [4, 40, 40, 4]
    assert rows[1].tolist() == rows[2].tolist() != list(range(4, 44))
    other, _ = Scored(scores, seed=2).sample(data, query, 40, np.random.default_rng(0))
    assert other[1].tolist() != rows[1].tolist()
    assert other[0].tolist() == rows[0].tolist()


def test_a_tiny_temperature_sorts() -> None:
    data = world([50])
    scores = np.random.default_rng(0).normal(size=50)
    sorted_rows, _ = Scored(scores).sample(data, np.zeros(3, int), 10, np.random.default_rng(0))
    for temperature in (1e-6, 1e-300):
        rows, _ = Scored(scores, temperature=temperature).sample(data, np.zeros(3, int), 10, np.random.default_rng(0))
        assert rows.tolist() == sorted_rows.tolist()


def test_the_noise_of_the_oracle_is_drawn_once_with_the_given_sd() -> None:
    data = world([100] * 400)
    policy = NoisyOracle(sd=0.5, seed=7)
    noise = policy.scores(data) - data.grades
    assert policy.scores(data).tolist() == (noise + data.grades).tolist()
    assert noise.std() == pytest.approx(0.5, abs=4 * 0.5 / np.sqrt(2 * len(noise)))
    assert NoisyOracle(seed=8).scores(data).tolist() != policy.scores(data).tolist()
    assert NoisyOracle(sd=0.0).scores(data).tolist() == data.grades.tolist()


POLICIES = [
    lambda n: Uniform(),
    lambda n: Scored(np.arange(n) % 3.0),
    lambda n: Scored(np.arange(n) % 7.0, temperature=0.5),
    lambda n: Scored(np.arange(n) ** 2.0, temperature=0.01),
    lambda n: NoisyOracle(),
]


@settings(deadline=None, max_examples=60)
@given(
    sizes=st.lists(st.integers(0, 40), min_size=1, max_size=8),
    width=st.integers(1, 15),
    seed=st.integers(0, 1000),
    make=st.sampled_from(POLICIES),
)
def test_every_page_holds_documents_of_its_query_each_once(sizes: list[int], width: int, seed: int, make) -> None:
    data = world(sizes, seed)
    policy = make(data.n_documents)
    query = np.random.default_rng(seed).integers(len(sizes), size=30)
    rows, length = policy.sample(data, query, width, np.random.default_rng(seed))
    assert rows.shape == (30, width)
    assert rows.dtype == np.int32
    for page, q, n in zip(rows, query, length, strict=True):
        assert n == min(width, sizes[q])
        shown = page[:n].tolist()
        assert len(set(shown)) == n
        assert all(data.offsets[q] <= row < data.offsets[q + 1] for row in shown)
        assert (page[n:] == -1).all()
    again, _ = policy.sample(data, query, width, np.random.default_rng(seed))
    assert (again == rows).all()
    ranks = policy.expected_ranks(data)
    for start, end in zip(data.offsets[:-1], data.offsets[1:], strict=True):
        n = end - start
        assert ranks[start:end].sum() == pytest.approx(n * (n + 1) / 2)


def test_a_sampler_draws_on() -> None:
    data = world([9, 5])
    sampler = Scored(np.zeros(14), temperature=1.0).sampler(data)
    rng = np.random.default_rng(0)
    query = np.array([0, 1, 1], np.int32)
    assert sampler.sample(query, 3, rng).rows.tolist() != sampler.sample(query, 3, rng).rows.tolist()


def test_what_is_wrong_is_named() -> None:
    data, rng = world([2, 3]), np.random.default_rng(0)
    query = np.array([0, 1])
    with pytest.raises(EluteError, match=r"query 'q1', document '3': no score \(3 for 5 rows\)"):
        Scored(np.zeros(3)).sample(data, query, 2, rng)
    with pytest.raises(EluteError, match="query 'q1', document '4': score nan is not finite"):
        Scored(np.array([0, 0, 0, 0, np.nan])).sample(data, query, 2, rng)
    with pytest.raises(EluteError, match="5 documents, but scores of shape"):
        Scored(np.zeros(6)).expected_ranks(data)
    with pytest.raises(EluteError, match="5 documents, but scores of shape"):
        Scored(np.zeros((5, 1))).expected_ranks(data)
    with pytest.raises(EluteError, match="'temperature' is -1; give a number from 0"):
        NoisyOracle(temperature=-1).sample(data, query, 2, rng)
    with pytest.raises(EluteError, match="'temperature' is nan"):
        NoisyOracle(temperature=np.nan).sample(data, query, 2, rng)
    with pytest.raises(EluteError, match=r"'sd' is -1\.0"):
        NoisyOracle(sd=-1.0).scores(data)
    with pytest.raises(EluteError, match="a page of 0 documents"):
        Uniform().sample(data, query, 0, rng)
    with pytest.raises(EluteError, match="sessions name queries 0 to 2; there are 0 to 1"):
        Uniform().sample(data, np.array([0, 2]), 1, rng)
