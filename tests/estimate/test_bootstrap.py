"""The clustered bootstrap: against refits written out, the information matrix, and repetitions of whole worlds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from worlds import Merge, counts_of

import elute
from elute._util.threads import use_threads
from elute.cells.counts import Clustered, Membership
from elute.errors import EluteError
from elute.estimate.inference.bootstrap import bootstrap
from elute.estimate.models.pbm import PBM

QUERIES, DOCS, POSITIONS = 100, 6, 6
QUERY = np.repeat(np.arange(QUERIES), DOCS)
ITEM = np.repeat(np.arange(QUERIES * DOCS), 3)


def world(seed, habit):
    """Three positions an item, 30 impressions each; `habit`: spread of each query's own factor at a position."""
    design = np.random.default_rng(1)
    r = design.uniform(0.1, 0.6, QUERIES * DOCS)
    factor = np.concatenate([np.sort(design.choice(POSITIONS, 3, replace=False)) for _ in r])
    rng = np.random.default_rng(seed)
    o = np.arange(1, POSITIONS + 1) ** -0.7
    own = np.exp(habit * rng.standard_normal((QUERIES, POSITIONS)))
    n = np.full(len(ITEM), 30)
    p = np.minimum(r[ITEM] * (o * own)[QUERY[ITEM], factor], 0.95)
    return np.stack((ITEM, factor, n, rng.binomial(n, p)), axis=1)


def spread_of_worlds(habit, draws):
    found = [PBM(relevance_prior="none").fit(counts_of(world(100 + k, habit))).propensity_ for k in range(draws)]
    return np.std([np.log(o / o[0]) for o in found], axis=0, ddof=1)


def test_replicates_are_the_fits_of_what_was_drawn():
    """Two draws written out: every item's rows as often as its query was drawn."""
    table = world(0, 0.3)
    found = bootstrap(PBM(tolerance=1e-8, relevance_prior="none"), counts_of(table), QUERY, replicates=2, seed=3)
    rng = np.random.default_rng(3)
    logs = []
    for _ in range(2):
        drawn = rng.integers(QUERIES, size=QUERIES)
        rows = [table[QUERY[table[:, 0]] == query] for query in drawn]
        copies = [np.column_stack((part[:, 0] % DOCS + DOCS * k, part[:, 1:])) for k, part in enumerate(rows)]
        o = PBM(tolerance=1e-8, relevance_prior="none").fit(counts_of(np.concatenate(copies))).propensity_
        logs.append(np.log(o / o[0]))
    assert found.propensity_log_se == pytest.approx(np.std(logs, axis=0, ddof=1), abs=1e-5)
    assert found.factor_replicates.tolist() == [2] * POSITIONS


def test_independent_clicks_have_the_errors_of_the_information_matrix():
    counts = counts_of(world(0, 0.0))
    found = bootstrap(PBM(relevance_prior="none"), counts, QUERY, replicates=200)
    model = PBM(relevance_prior="none").fit(counts)
    assert found.propensity_log_se[0] == 0
    assert found.propensity_log_se[1:] == pytest.approx(model.propensity_log_se_[1:], rel=0.25)
    assert found.propensity_log_se.sum() == pytest.approx(model.propensity_log_se_.sum(), rel=0.15)
    assert found.relevance_log_se == pytest.approx(model.relevance_log_se_, rel=0.05, nan_ok=True)
    assert (found.disconnected, found.failed) == (0, 0)
    assert (found.propensity_low <= model.propensity_).all()
    assert (found.propensity_high >= model.propensity_).all()


def test_habits_of_queries_widen_it_to_what_repetition_shows():
    counts = counts_of(world(0, 0.4))
    truth = spread_of_worlds(0.4, 100)[1:]
    found = bootstrap(PBM(relevance_prior="none"), counts, QUERY, replicates=200).propensity_log_se[1:]
    assert (found > 1.5 * PBM(relevance_prior="none").fit(counts).propensity_log_se_[1:]).all()
    assert found == pytest.approx(truth, rel=0.35)
    assert found.mean() == pytest.approx(truth.mean(), rel=0.2)


def single_impressions(table, sessions, seed):
    """The table's impressions, dealt to sessions at random."""
    rows = np.repeat(np.arange(len(table)), table[:, 2])
    within = np.arange(len(rows)) - np.repeat(np.cumsum(table[:, 2]) - table[:, 2], table[:, 2])
    click = within < table[rows, 3]
    session = np.random.default_rng(seed).integers(sessions, size=len(rows))
    return Clustered(session, table[rows, 0], table[rows, 1], np.ones(len(rows), np.int64), click.astype(np.int64))


def test_sessions_renew_the_items_clicks():
    table = world(0, 0.0)
    counts = counts_of(table)
    found = bootstrap(PBM(relevance_prior="none"), counts, single_impressions(table, 5_000, 0), replicates=150)
    model = PBM(relevance_prior="none").fit(counts)
    assert found.propensity_log_se[1:] == pytest.approx(model.propensity_log_se_[1:], rel=0.25)
    often = np.bincount(table[:, 0], table[:, 3]) >= 15
    ratio = (found.relevance_log_se / model.relevance_log_se_)[often]
    assert np.median(ratio) == pytest.approx(1, abs=0.05)
    assert (found.item_replicates[often] == 150).all()


def test_absent_items_and_factors_are_counted():
    """Query 1 alone holds factor 2 and items 2 and 3; in about a third of the draws it is absent."""
    table = [
        (0, 0, 50, 20),
        (0, 1, 50, 15),
        (1, 0, 50, 25),
        (1, 1, 50, 10),
        (2, 1, 50, 20),
        (2, 2, 50, 10),
        (3, 2, 9, 0),
    ]
    counts = counts_of(table)
    cells = Clustered(np.array([0, 0, 2, 2, 1, 1, 1]), *np.array(table).T)
    rng = np.random.default_rng(0)
    drawn = [set(rng.integers(3, size=3).tolist()) for _ in range(100)]
    others, whole = sum(d != {1} for d in drawn), sum(1 in d and d != {1} for d in drawn)
    assert 0 < whole < others < 100
    for cluster in (np.array([0, 2, 1, 1]), cells):
        found = bootstrap(PBM(relevance_prior="none"), counts, cluster, replicates=100)
        seen = found.factor_replicates
        assert seen.tolist() == [others, others, whole]
        assert (found.disconnected, found.failed) == (100 - whole, 0)
        assert found.item_replicates[3] == 0
        assert np.isnan(found.relevance_log_se[3])
        assert np.isfinite(found.propensity_log_se).all()
    assert found.item_replicates[2] == seen[2]
    assert "100 draws of 3 clusters" in repr(found)


def test_a_plan_and_priors_are_kept():
    table = world(0, 0.2)
    counts = counts_of(table)
    model = PBM(prior="smooth", relevance_prior="beta")
    found = bootstrap(model, counts, QUERY, plan=Merge((2, 3)), replicates=20)
    assert found.propensity_log_se[2] == found.propensity_log_se[3] > 0
    assert model.prior_["smooth"] is not None
    assert np.isfinite(found.relevance_log_se).all()
    cells = single_impressions(table, 50, 0)
    assert bootstrap(model, counts, cells, plan=Merge((2, 3)), replicates=5).failed == 0


def test_queries_come_from_the_counts():
    counts = counts_of(world(0, 0.2))
    items = np.arange(counts.n_items, dtype=np.int32)
    known = replace(counts, membership=Membership(QUERIES, QUERY.astype(np.int32), items, counts.item_impressions))
    given, default = (
        bootstrap(PBM(relevance_prior="none"), counts, QUERY, replicates=5),
        bootstrap(PBM(relevance_prior="none"), known, replicates=5),
    )
    assert (given.propensity_log_se == default.propensity_log_se).all()
    shown = np.ones(counts.n_items + 1, np.int64)
    twice = Membership(2, np.zeros(counts.n_items + 1, np.int32), np.append(items, 0), shown)
    with pytest.raises(EluteError, match="several queries"):
        bootstrap(PBM(relevance_prior="none"), replace(counts, membership=twice), replicates=5)


def test_what_cannot_be_drawn_is_said():
    table = world(0, 0.0)
    counts = counts_of(table)
    cells = single_impressions(table, 10, 0)
    with pytest.raises(EluteError, match="no query column"):
        bootstrap(PBM(relevance_prior="none"), counts)
    with pytest.raises(EluteError, match="5 entries for 600 items"):
        bootstrap(PBM(relevance_prior="none"), counts, np.zeros(5, int))
    with pytest.raises(EluteError, match="two clusters or more"):
        bootstrap(PBM(relevance_prior="none"), counts, np.zeros(600, int))
    with pytest.raises(EluteError, match="replicates"):
        bootstrap(PBM(relevance_prior="none"), counts, QUERY, replicates=1)
    with pytest.raises(EluteError, match="add up"):
        bootstrap(PBM(relevance_prior="none"), counts, cells._replace(clicks=1 - cells.clicks))
    with pytest.raises(EluteError, match="do not have"):
        bootstrap(PBM(relevance_prior="none"), counts, cells._replace(item=cells.item + 1))


def test_queries_of_a_real_log_do_not_agree(data):
    """Yandex: 20 queries, one of them most of the log; clusters make errors about twice as large."""
    with elute.read_log(data / "yandex" / "train.parquet") as log:
        found = bootstrap(PBM(relevance_prior="none"), log, replicates=60)
        model = PBM(relevance_prior="none").fit(log)
    assert found.clusters == 20
    assert found.failed == 0
    assert (found.propensity_log_se[1:] > model.propensity_log_se_[1:]).all()


@pytest.mark.parametrize("renewed", [False, True])
def test_threads_change_nothing(renewed):
    """Replicates side by side: the same draws, added up in the same order."""
    table = world(0, 0.3)
    counts, found = counts_of(table), []
    rows = Clustered(QUERY[table[:, 0]], *table.T) if renewed else QUERY
    for threads in (1, 2, 5):
        use_threads(threads)
        drawn = bootstrap(PBM(), counts, rows, replicates=7)
        found.append((drawn.propensity_log_se, drawn.relevance_log_se, drawn.propensity_low, drawn.item_replicates))
    use_threads(None)
    for other in found[1:]:
        for one, same in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(one, same)
