"""A fit that goes from partition to partition finds what the fit in memory finds, however items are partitioned."""

from __future__ import annotations

from copy import copy
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memory_partitions import MemoryPartitions
from worlds import Merge, counts_of, draw

from elute.errors import EluteError
from elute.estimate.models.pbm import PBM


def partition(counts, seed=0, partitions=3):
    return MemoryPartitions(counts, np.random.default_rng(seed).integers(0, partitions, counts.n_items))


def compare(one, other, log_o=3e-4, relevance=3e-4):
    """Propensities within so many standard errors (each fit stops within 1e-4 of its own, as the curvature there says),
    everything else as close."""
    np.testing.assert_array_equal(one.component_, other.component_)
    np.testing.assert_array_equal(np.isnan(one.propensity_), np.isnan(other.propensity_))
    np.testing.assert_array_equal(one.propensity_ == 0, other.propensity_ == 0)
    known = one.propensity_ > 0
    apart = np.abs(np.log(one.propensity_[known] / other.propensity_[known]))
    assert (apart <= log_o * np.maximum(np.nan_to_num(one.propensity_log_se_[known]), 0.1)).all()
    top = one.component_[one.propensity_ > 1 - 1e-4]
    errors = len(top) == len(set(top.tolist()))  # else rounding decides which factor they are measured from
    if errors:
        np.testing.assert_allclose(one.propensity_log_se_, other.propensity_log_se_, rtol=1e-3, atol=1e-6)
    tables = [fit.relevance_.sort_by("doc_id") for fit in (one, other)]
    assert tables[0].schema == tables[1].schema
    for column in ("doc_id", "component", "impressions", "clicks"):
        assert tables[0][column].equals(tables[1][column])
    for column in ("relevance", "log_se")[: 1 + errors]:
        mine, theirs = (table[column].to_numpy() for table in tables)
        np.testing.assert_allclose(mine, theirs, rtol=relevance, atol=relevance)
    assert one.converged_ == other.converged_
    assert one.log_likelihood_ == pytest.approx(other.log_likelihood_, rel=1e-6, abs=1e-4)


@pytest.mark.parametrize("mean", [0, 0.5, 3, 40])
@pytest.mark.parametrize("seed", range(4))
def test_the_same_maximum_as_in_memory(seed, mean):
    """Sparse ones too: cells clicked every time, factors that have no finite propensity, items without clicks."""
    table, _, _ = draw(seed, 60, 8, 0.25, mean, (0.6, 1.0) if seed % 2 else (0.05, 0.9))
    counts = counts_of(table)
    compare(PBM(relevance_prior="none").fit(counts), PBM(relevance_prior="none").fit(partition(counts, seed)))


@pytest.mark.parametrize("seed", range(3))
def test_the_same_posterior_as_in_memory(seed):
    """The prior is found by a simplex that stops early: its two numbers agree to a percent or so."""
    counts = counts_of(draw(seed, 300, 6, 0.4, 2)[0])
    one, other = (PBM(relevance_prior="auto").fit(source) for source in (counts, partition(counts, seed)))
    assert one.prior_["relevance"] is not None
    assert other.prior_["relevance"] == pytest.approx(one.prior_["relevance"], rel=0.05)
    compare(one, other, relevance=0.01)


@given(st.integers(0, 10**6), st.integers(1, 7), st.booleans())
@settings(max_examples=25, deadline=None)
def test_how_items_are_partitioned_does_not_matter(seed, partitions, beta):
    counts = counts_of(draw(seed, 25, 5, 0.4, 4)[0])
    prior: Literal["beta", "none"] = "beta" if beta else "none"
    one = PBM(relevance_prior=prior).fit(
        MemoryPartitions(counts, np.zeros(counts.n_items, int)), allow_unidentified=True
    )
    other = PBM(relevance_prior=prior).fit(partition(counts, seed, partitions), allow_unidentified=True)
    compare(one, other, relevance=0.02 if beta else 1e-5)


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_any_small_log(data):
    """Among them logs that fall apart, and logs whose maximum lies at the boundary."""
    items, factors = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 4))
    cells = [(x, t) for x in range(items) for t in range(factors)]
    clicks = data.draw(st.lists(st.sampled_from([-1, -1, 0, 1, 2, 3]), min_size=len(cells), max_size=len(cells)))
    table = [(*cell, 3, c) for cell, c in zip(cells, clicks, strict=True) if c >= 0]
    table += [(x, x % factors, 3, 1) for x in range(items) if all(row[0] != x for row in table)]
    counts = counts_of(table, factors)
    model = PBM(relevance_prior="none")
    one, other = (copy(model).fit(source, allow_unidentified=True) for source in (counts, partition(counts)))
    assert one.reason_ == other.reason_
    if any(n == c for *_, n, c in table):  # then many propensities may be as likely as each other
        np.testing.assert_array_equal(np.isnan(one.propensity_), np.isnan(other.propensity_))
        assert one.log_likelihood_ == pytest.approx(other.log_likelihood_, abs=1e-4)
    else:
        compare(one, other)


@pytest.mark.parametrize(("clicks", "beta"), [((1, 1, 80, 80), False), ((1, 3, 4, 80), True), ((0, 4, 6, 9), False)])
def test_the_prior_is_wanted_for_the_same_logs(clicks, beta):
    """By the median of clicks an item, also where the two in the middle are far apart: 5 or more needs none."""
    counts = counts_of([(x, t, 100, c // 2 + t * (c % 2)) for x, c in enumerate(clicks) for t in (0, 1)])
    for source in (counts, partition(counts)):
        assert (PBM(relevance_prior="auto").fit(source).prior_["relevance"] is not None) == beta


def test_the_likelihood_does_not_depend_on_the_partitions():
    """With a prior, items without clicks have relevance: their cells count, whether or not some item of their partition
    was shown across parts."""
    table = [(x, x % 2, 3, 1) for x in range(6)] + [
        (6, 0, 2, 1),
        (6, 1, 2, 0),
        *((x, x % 2, 4, 0) for x in range(7, 20)),
    ]
    counts = counts_of(table)
    found = [PBM(relevance_prior="beta").fit(partition(counts, 0, n)).log_likelihood_ for n in (1, 3, 9)]
    found.append(PBM(relevance_prior="beta").fit(counts).log_likelihood_)
    assert found == pytest.approx([found[0]] * 4, rel=1e-3)


def test_merged_factors_and_a_start():
    counts, plan = counts_of(draw(1, 50, 6, 0.4, 5)[0]), Merge((1, 2), (4, 5))
    start = np.linspace(1, 0.2, 6)
    compare(
        PBM(start=start, relevance_prior="none").fit(counts, plan),
        PBM(start=start, relevance_prior="none").fit(partition(counts), plan),
    )


def test_a_matrix_too_large_to_keep():
    """Newton's steps come from products then, and standard errors from draws: theirs are within a quarter."""
    counts = counts_of(draw(2, 80, 7, 0.4, 20)[0])
    exact = PBM(relevance_prior="none").fit(counts)
    partitions = partition(counts)
    partitions.dense_limit = 3
    found = PBM(relevance_prior="none").fit(partitions)
    assert partitions.largest < 8 * 7 * 200 + 1_000  # draws, by far the most
    assert found.converged_
    np.testing.assert_allclose(np.log(found.propensity_ / exact.propensity_), 0, atol=1e-4)
    rest = exact.propensity_log_se_ > 0
    assert (found.propensity_log_se_[~rest] == 0).all()
    np.testing.assert_allclose(found.propensity_log_se_[rest], exact.propensity_log_se_[rest], rtol=0.25)
    one, other = (fit.relevance_.sort_by("doc_id")["log_se"].to_numpy() for fit in (exact, found))
    np.testing.assert_allclose(one, other, rtol=0.25)


def test_draws_that_take_more_than_allowed_are_refused():
    """Before anything is gone through."""
    partitions = partition(counts_of(draw(2, 80, 7, 0.4, 20)[0]))
    partitions.dense_limit, partitions.memory = 3, 3 * 200 * 8 * 7 - 1
    with pytest.raises(EluteError, match=r"`memory=`: standard errors of 7 factors .* allow three times as much"):
        PBM(relevance_prior="none").fit(partitions)
    assert partitions.largest == 0
    partitions.memory += 1
    assert PBM(relevance_prior="none").fit(partitions).converged_


def test_what_comes_back_does_not_grow_with_the_items():
    """The largest answer to a round, by items; the sample for a prior is of a fixed size and left out here."""
    sizes = []
    for items in (200, 2_000):
        partitions = partition(counts_of(draw(3, items, 6, 0.4, 5)[0]))
        PBM(relevance_prior="none").fit(partitions)
        sizes.append(partitions.largest)
    assert sizes[0] == sizes[1]


def test_a_smooth_prior_wants_all_cells():
    with pytest.raises(EluteError, match="smooth prior"):
        PBM(prior="smooth", relevance_prior="none").fit(partition(counts_of(draw(0, 10, 3, 0.5, 5)[0])))
