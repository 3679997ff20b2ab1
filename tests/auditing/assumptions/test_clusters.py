"""Nulls drawn by clusters: against enumeration and dense matrices; that tests keep their size, and their power."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from worlds import counts_of
from worlds import draw as draw_table

from elute.auditing.assumptions import Groups
from elute.auditing.assumptions.affine import assess_affine
from elute.auditing.assumptions.draws.clusters import ClusterRows, Clusters, make_clusters
from elute.auditing.assumptions.examination import assess_examination, deviance
from elute.auditing.assumptions.groups import assess_groups
from elute.auditing.assumptions.linear import assess_linear
from elute.auditing.assumptions.null import Drawing, fit_null
from elute.auditing.assumptions.pairwise import Equality, assess_pairwise
from elute.cells.counts import Clustered, Counts
from elute.errors import EluteError
from elute_reproduce.limits.visits import draw_sparse, draw_visits
from reference.plain_pbm import design


def deal(counts: Counts, size: int, seed: int) -> Clusters:
    """Impressions dealt to clusters of some size at random: clicks stay independent."""
    rng = np.random.default_rng(seed)
    n, c = counts.impressions.astype(int), counts.clicks.astype(int)
    cell = np.repeat(np.arange(len(n)), n)
    click = np.concatenate([np.arange(k) < of for k, of in zip(n, c, strict=True)])
    item = np.repeat(np.arange(counts.n_items), np.diff(counts.offsets))
    cluster = rng.permutation(len(cell)) // size
    one = np.ones(len(cell), int)
    return make_clusters("user", Clustered(cluster, item[cell], counts.factor[cell], one, click.astype(int)))


def test_draws_are_all_signs_of_the_clusters_differences() -> None:
    """Two items, three clusters; against the definition with dense matrices (I - H)^(-1/2)."""
    cluster, cell = np.array([0, 0, 1, 1, 2, 2, 2]), np.array([0, 1, 0, 1, 1, 2, 3])
    n, c = np.array([4.0, 2, 3, 5, 1, 2, 6]), np.array([1.0, 2, 0, 1, 1, 0, 4])
    item, p = np.array([0, 0, 1, 1]), np.array([0.4, 0.2, 0.5, 0.3])
    rows = ClusterRows(cluster, cell, n, c, 3)
    w = n * (p * (1 - p))[cell]
    direction = n * p[cell] / np.sqrt(w)
    own = []
    for k in range(3):
        e = np.where(cluster == k, (c - n * p[cell]) / np.sqrt(w), 0.0)
        h = np.zeros((7, 7))
        for x in range(2):
            at = item[cell] == x
            d = np.where(at & (cluster == k), direction, 0.0)
            h += np.outer(d, d) / (direction[at] ** 2).sum()
        values, vectors = np.linalg.eigh(np.eye(7) - h)
        if k == 2:  # all that is known of the second item is the third cluster's
            values = np.where(values < 1e-9, 1.0, values)
        own.append(np.bincount(cell, np.sqrt(w) * (vectors @ ((vectors.T @ e) / np.sqrt(values))), 4))
    expected = {tuple(np.round(np.array(v) @ np.array(own), 9)) for v in itertools.product((-1, 1), repeat=3)}
    drawn = {tuple(np.round(e, 9)) for e in rows.flip(p, p, item, np.random.default_rng(0), 200)}
    assert drawn == expected


@pytest.mark.parametrize("seed", range(3))
def test_the_statistic_is_pearsons_with_all_parameters_projected_out(seed: int) -> None:
    counts = counts_of(draw_table(seed, 12, 4, 0.8, 400)[0])
    base = fit_null(counts, deal(counts, 5, seed))
    item, factor, n = base.item, base.cells.factor, base.cells.impressions
    p = base.r[item] * base.o[factor]
    x = design([(int(a), int(b), 1, 1) for a, b in zip(item, factor, strict=True)]) * np.sqrt(base.w)[:, None]
    scores = base.score_draws(Drawing(seed, 3, clusters=deal(counts, 5, seed)), "")
    e = (base.cells.clicks - n * p) / np.sqrt(n * p * (1 - p))
    left = e - x @ np.linalg.lstsq(x, e, rcond=None)[0]
    assert deviance(base, next(scores)) == pytest.approx(left @ left, rel=1e-6)
    assert all(deviance(base, drawn) > 0 for drawn in scores)


def test_independent_clicks_have_a_design_effect_of_one() -> None:
    counts = counts_of(draw_table(1, 40, 5, 0.8, 100)[0])
    clusters = deal(counts, 5, 0)
    drawing = Drawing(0, 199, clusters=clusters)
    base = fit_null(counts, clusters)
    found = [
        assess_examination(base, drawing),
        assess_linear(base, counts.factors, drawing),
        assess_affine(counts, base.o, drawing),
        assess_pairwise(counts, np.ones(counts.n_items) / 2, np.ones(counts.n_factors), drawing),
    ]
    assert [each.design_effect for each in found[::2]] == pytest.approx([1, 1], abs=0.15)
    assert [each.design_effect for each in found[1::2]] == pytest.approx([1, 1], abs=0.4)


def test_users_who_come_again() -> None:
    """Taken for independent, clicks contradict a true r·o; as clusters they seldom do, and trust is still found."""
    rejected = {"independent": 0, "clusters": 0, "trust": 0}
    for seed in range(8):
        log = draw_visits("own tastes", np.random.default_rng(seed))
        rejected["independent"] += assess_examination(fit_null(log.counts), Drawing(seed, 19)).verdict == "rejected"
        base, drawing = fit_null(log.counts, log.clusters), Drawing(seed, 19, clusters=log.clusters)
        found = assess_examination(base, drawing)
        assert found.design_effect is not None
        assert found.design_effect > 1.3
        rejected["clusters"] += found.verdict == "rejected"
        trusting = draw_visits("own tastes", np.random.default_rng(seed), 0.3)
        base = fit_null(trusting.counts, trusting.clusters)
        drawing = Drawing(seed, 19, clusters=trusting.clusters)
        rejected["trust"] += assess_linear(base, trusting.counts.factors, drawing).verdict == "rejected"
    assert rejected["independent"] == rejected["trust"] == 8
    assert rejected["clusters"] <= 2


def test_few_pages_a_query_are_seldom_rejected() -> None:
    """Two tests on each of 10 logs at level 0.05: about one rejection."""
    rejected = 0
    for seed in range(10):
        counts = draw_sparse(np.random.default_rng(seed)).counts
        base, drawing = fit_null(counts), Drawing(seed, 19)
        found = assess_examination(base, drawing), assess_linear(base, counts.factors, drawing)
        rejected += sum(each.verdict == "rejected" for each in found)
    assert rejected <= 4


def test_groups_of_items_are_compared_by_clusters_and_others_not() -> None:
    log = draw_visits("own tastes", np.random.default_rng(3))
    drawing = Drawing(0, 19, clusters=log.clusters)
    by_query = assess_groups(log.counts, Groups("query", np.arange(log.counts.n_items) // 6), drawing)
    assert by_query.design_effect is not None
    rows = log.clusters.rows
    crossed = assess_groups(log.counts, Groups("user", rows._replace(cluster=rows.cluster % 2)), drawing)
    assert crossed.verdict == "untestable"
    assert "with clusters by user" in crossed.sentence


def test_the_statistic_of_equal_propensities_is_linear_in_differences() -> None:
    counts = counts_of(draw_table(2, 20, 4, 0.8, 50)[0])
    equality = Equality(counts)
    item = np.repeat(np.arange(counts.n_items), np.diff(counts.offsets))
    shifted = counts.clicks + np.random.default_rng(0).random(counts.n_items)[item] * counts.impressions
    assert equality.measure(shifted) == pytest.approx(equality.measure(counts.clicks))


def test_clusters_that_tell_nothing_are_refused() -> None:
    counts = counts_of(draw_table(0, 15, 4, 0.7, 60)[0])
    with pytest.raises(EluteError, match="'user' is different in every row"):
        deal(counts, 1, 0)
    with pytest.raises(EluteError, match="'user' makes 1 cluster; 10 or more"):
        deal(counts, 10**6, 0)
