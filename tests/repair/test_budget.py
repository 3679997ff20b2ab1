"""Spending impressions: against the full information matrix, maximum-likelihood fits, and other plans."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from elute.errors import EluteError
from elute.identify.information import find_references, information
from elute.repair.allowed import FittedCells
from elute.repair.budget import spend
from elute.repair.candidates import NO_CANDIDATES, Candidates
from elute.repair.spending import few
from elute.repair.spending.objective import POWER
from elute.repair.swap import find_minimum_swaps
from reference import budget_greedy
from reference.dense_resistance import laplacian, pseudo_inverse, rank_one_update, variances


def world(seed, k=3, n_factors=10, n_items=60, impressions: tuple[int, int] = (20, 400)):
    """Factors in k components; a third of the items are seen under two factors, the others under one."""
    rng = np.random.default_rng(seed)
    component = np.sort(np.concatenate((np.arange(k), rng.integers(0, k, n_factors - k))))
    rows: list[list[int]] = []
    for t in [*range(n_factors), *rng.integers(0, n_factors, n_items - n_factors)]:
        own = np.flatnonzero(component == component[t])
        following = own[(np.searchsorted(own, t) + 1) % len(own)]
        twice = len(rows) < n_factors or rng.random() < 0.3
        rows.append(sorted({int(t), int(following)} if twice else {int(t)}))
    factor = np.array([t for row in rows for t in row], dtype=np.int32)
    return FittedCells(
        np.concatenate(([0], np.cumsum([len(row) for row in rows]))),
        factor,
        rng.integers(impressions[0], impressions[1], len(factor)).astype(np.uint32),
        rng.uniform(0.05, 0.7, n_items),
        np.sort(rng.uniform(0.1, 0.9, n_factors))[::-1].copy(),
        component.astype(np.int32),
    )


def pairs_of(cells, most=10**9):
    """Every item under every factor, as known under its first."""
    items, n = len(cells.relevance), len(cells.propensity)
    item, target = np.divmod(np.arange(items * n), n)
    source = cells.factor[cells.offsets[item]].astype(np.int64)
    return Candidates(item, source, target, np.full(len(item), most), np.zeros(len(item)))


def links_of(cells, most=10**9):
    found = find_minimum_swaps(cells).swaps
    return Candidates(*found[:3], np.full(len(found.item), most), np.zeros(len(found.item)))


def plan(cells, budget, **options):
    return spend(cells, links_of(cells), pairs_of(cells), budget, **options)


def factors_of(cells, item):
    """Under which it has been seen: nothing is learnt from one that is seen under its target alone."""
    return cells.factor[cells.offsets[item] : cells.offsets[item + 1]].tolist()


def table(cells, extra=()):
    """Impressions as a dense item × factor table, with extra (item, factor, impressions) shown."""
    shown = np.zeros((len(cells.relevance), len(cells.propensity)))
    np.add.at(shown, (cells.item, cells.factor), cells.impressions)
    for item, factor, n in extra:
        shown[item, factor] += n
    return shown


def errors_of(cells, extra=()):
    """Standard errors from the whole Fisher matrix of items and factors, the reference's row left out."""
    p = np.outer(cells.relevance, cells.propensity)
    w = table(cells, extra) * p / (1 - p)
    full = np.block([[np.diag(w.sum(1)), w], [w.T, np.diag(w.sum(0))]])
    reference = len(w) + int(cells.propensity.argmax())
    kept = np.delete(np.arange(len(full)), reference)
    variance = np.zeros(len(full))
    variance[kept] = np.diag(np.linalg.inv(full[np.ix_(kept, kept)]))
    return np.sqrt(variance[len(w) :])


def plan_of(spending):
    return list(zip(spending.item, spending.target, spending.impressions, strict=True))


@given(st.integers(0, 2**32), st.data())
@settings(max_examples=50, deadline=None)
def test_rank_one_update_is_the_recomputed_pseudo_inverse(seed, data):
    cells = world(seed, k=1)
    p = np.outer(cells.relevance, cells.propensity)
    w = table(cells) * p / (1 - p)

    def by_numpy(weights):
        matrix = np.diag(weights.sum(0)) - weights.T @ (weights / weights.sum(1, keepdims=True))
        return matrix, np.linalg.pinv(matrix, rcond=1e-12)

    n_factors = len(cells.propensity)
    matrix = laplacian(cells.offsets, cells.factor, w[cells.item, cells.factor], n_factors)
    inverse = pseudo_inverse(matrix, np.zeros(n_factors, dtype=np.int32))
    expected_matrix, expected = by_numpy(w)
    assert matrix == pytest.approx(expected_matrix)
    assert inverse == pytest.approx(expected, rel=1e-6, abs=1e-9)

    item, target = data.draw(st.integers(0, len(w) - 1)), data.draw(st.integers(0, n_factors - 1))
    added = data.draw(st.floats(0.1, 1e4))
    z, c = rank_one_update(w[item], target, added)
    g = inverse @ z
    w[item, target] += added
    assert inverse - c * np.outer(g, g) / (1 + c * z @ g) == pytest.approx(by_numpy(w)[1], rel=1e-6, abs=1e-9)


def test_information_of_proposition_1():
    """One item under two factors: variance (1/p₁ + 1/p₂ - 2)/n."""
    n, p = 1000, np.array([0.25, 0.1])
    matrix = laplacian(np.array([0, 2]), np.array([0, 1], dtype=np.int32), information(n, p), 2)
    group = np.zeros(2, dtype=np.int32)
    resistance = variances(pseudo_inverse(matrix, group), find_references(p, group))
    assert resistance == pytest.approx([0.0, (1 / 0.25 + 1 / 0.1 - 2) / n])


def test_information_stays_finite():
    certain, unknown, none = information(np.array([10, 10, 10]), np.array([1.0, np.nan, 0.0]))
    assert certain == pytest.approx(100)
    assert unknown == none == 0


@pytest.mark.parametrize("objective", ["max", "mean"])
@pytest.mark.parametrize("seed", range(4))
def test_predictions_are_those_of_the_full_information_matrix(seed, objective):
    cells = world(seed)
    links = links_of(cells)
    spending = plan(cells, 5_003, objective=objective)
    assert spending.impressions.sum() == 5_003
    assert spending.unspent == 0
    assert spending.connecting == 2
    assert spending.item[:2].tolist() == links.item.tolist()
    assert spending.source[:2].tolist() == links.source.tolist()
    assert spending.target[:2].tolist() == links.target.tolist()
    assert spending.se_after == pytest.approx(errors_of(cells, plan_of(spending)), rel=1e-6)
    for component in range(3):
        inside = cells.component == component
        items = inside[cells.factor[cells.offsets[:-1]]]
        part = cells._replace(
            offsets=np.concatenate(([0], np.cumsum(np.diff(cells.offsets)[items]))),
            factor=(np.cumsum(inside) - 1)[cells.factor[inside[cells.factor]]].astype(np.int32),
            impressions=cells.impressions[inside[cells.factor]],
            relevance=cells.relevance[items],
            propensity=cells.propensity[inside],
        )
        assert spending.se_before[inside] == pytest.approx(errors_of(part), rel=1e-6)


@pytest.mark.parametrize("objective", ["max", "mean"])
@pytest.mark.parametrize("seed", range(3))
def test_a_single_grant_goes_to_the_best_of_all_pairs(seed, objective, monkeypatch):
    monkeypatch.setattr(few, "GRANTS", 1)
    cells = world(seed, k=1, n_factors=6, n_items=25)
    score = partial(np.linalg.norm, ord=POWER[objective])
    pairs = [(item, target) for item in range(25) for target in range(6)]
    best = min(score(errors_of(cells, [(*pair, 700)])) for pair in pairs)
    spending = spend(cells, NO_CANDIDATES, pairs_of(cells), 700, objective=objective)
    assert spending.impressions.tolist() == [700]
    assert score(spending.se_after) == pytest.approx(best, rel=1e-9)


def fitted_log_ratios(shown, clicks, start):
    """Maximum likelihood of r·o over all cells, by a general optimiser; log o(t) - log o(0) of the others."""
    n_items = len(shown)

    def log_probability(parameters):
        return parameters[:n_items, None] + np.concatenate(([0.0], parameters[n_items:]))

    def loss(parameters):
        log_p = log_probability(parameters)
        if log_p.max() >= 0:
            return np.inf, np.zeros(len(parameters))
        p = np.exp(log_p)
        slope = (shown - clicks) * p / (1 - p) - clicks
        value = -(clicks * log_p + (shown - clicks) * np.log1p(-p)).sum()
        return value, np.concatenate((slope.sum(1), slope.sum(0)[1:]))

    def curvature(parameters):
        p = np.exp(log_probability(parameters))
        h = (shown - clicks) * p / (1 - p) ** 2
        return np.block([[np.diag(h.sum(1)), h[:, 1:]], [h[:, 1:].T, np.diag(h.sum(0)[1:])]])

    fit = minimize(loss, start, jac=True, hess=curvature, method="trust-exact")
    assert fit.success
    return fit.x[n_items:]


def test_predicted_errors_are_those_of_repeated_fits():
    cells = world(7, k=2, n_factors=5, n_items=12, impressions=(1_000, 4_000))
    spending = plan(cells, 10_000)
    shown = table(cells, plan_of(spending)).astype(np.int64)
    p = np.outer(cells.relevance, cells.propensity)
    true = np.log(cells.propensity[1:] / cells.propensity[0])
    start = np.concatenate((np.log(cells.relevance * cells.propensity[0]), true))
    rng = np.random.default_rng(0)
    draws = np.array([fitted_log_ratios(shown, rng.binomial(shown, p), start) for _ in range(400)])
    assert spending.se_after[0] == 0
    assert draws.std(axis=0) / spending.se_after[1:] == pytest.approx(np.ones(4), abs=0.12)
    assert np.abs(draws.mean(axis=0) - true).max() < 0.3 * spending.se_after.max()


def test_greedy_beats_random_swaps_and_links_alone():
    """Same worlds, same links, same budget: the rest at random, or all of it on the links."""
    greedy, at_random, links_alone = [], [], []
    for seed in range(12):
        cells = world(seed)
        links = links_of(cells)
        joins = [(item, target, 100) for item, target in zip(links.item, links.target, strict=True)]
        rng = np.random.default_rng(seed)
        others = [(rng.integers(60), rng.integers(10), 100) for _ in range(48)]
        greedy.append(plan(cells, 5_000).se_after.max())
        at_random.append(errors_of(cells, joins + others).max())
        links_alone.append(errors_of(cells, [(item, target, 2_500) for item, target, _ in joins]).max())
    assert np.mean(greedy) < 0.8 * np.mean(at_random)
    assert np.mean(greedy) < 0.6 * np.mean(links_alone)


def test_each_objective_is_best_at_its_own():
    largest, mean = [], []
    for seed in range(6):
        cells = world(seed)
        by_max, by_mean = (plan(cells, 5_000, objective=kind) for kind in ("max", "mean"))
        largest.append(by_max.se_after.max() / by_mean.se_after.max())
        mean.append(by_mean.se_after.mean() / by_max.se_after.mean())
    assert np.mean(largest) < 1
    assert np.mean(mean) < 1


@pytest.mark.parametrize("objective", ["max", "mean"])
@pytest.mark.parametrize("k", [1, 5])
def test_no_worse_than_the_greedy_plan_it_replaced(k, objective):
    score, ratios = np.max if objective == "max" else np.mean, []
    for seed in range(4):
        cells = world(seed, k=k, n_factors=20, n_items=120)
        greedy = budget_greedy.spend(cells, find_minimum_swaps(cells).swaps, 10_000, objective=objective)
        ratios.append(score(plan(cells, 10_000, objective=objective).se_after) / score(greedy.se_after))
    assert max(ratios) < 1.02


@given(st.integers(0, 2**32), st.integers(0, 30), st.sampled_from(["max", "mean"]), st.booleans())
@settings(max_examples=12, deadline=None)
def test_no_pair_gets_more_than_it_can_take(seed, most, objective, many_factors):
    """And what is spent, what is left, and what could have been taken add up."""
    cells = world(seed % 1000, k=2)
    rng = np.random.default_rng(seed)
    every = pairs_of(cells)
    more = every.take(rng.random(len(every.item)) < 0.5)
    more = more._replace(most=rng.integers(0, most + 1, len(more.item)))
    links = links_of(cells, 5)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("elute.repair.budget.DENSE", 0 if many_factors else 600)
        spending = spend(cells, links, more, 2_000, objective=objective)
    limits = {(x, t): n for x, t, n in zip(more.item, more.target, more.most, strict=True)}
    limits |= dict.fromkeys(zip(links.item, links.target, strict=True), 5)
    assert all(0 < n <= limits[x, t] for x, t, n in plan_of(spending))
    assert len({(x, t) for x, t, _ in plan_of(spending)}) == len(spending.item)
    assert spending.impressions.sum() + spending.unspent == 2_000
    if spending.unspent:
        given = {(x, t): n for x, t, n in plan_of(spending)}
        useful = {pair: n for pair, n in limits.items() if set(factors_of(cells, pair[0])) != {pair[1]}}
        assert {pair: n for pair, n in useful.items() if n} == {pair: n for pair, n in given.items() if pair in useful}
    assert spending.se_after == pytest.approx(errors_of_capped(cells, plan_of(spending)), rel=1e-4)


def test_factors_of_which_nothing_is_known():
    cells = world(0, k=1)
    propensity = cells.propensity.copy()
    propensity[-1] = np.nan
    spending = spend(cells._replace(propensity=propensity), NO_CANDIDATES, pairs_of(cells), 1_000)
    assert np.isnan(spending.se_after).tolist() == [False] * 9 + [True]
    assert np.isnan(spending.se_before).tolist() == [False] * 9 + [True]


def test_parts_left_apart_are_improved_on_their_own():
    """Without links two components stay two: errors refer to each one's own reference."""
    cells = world(3, k=2)
    spending = spend(cells, NO_CANDIDATES, pairs_of(cells), 3_000)
    source, target = cells.component[spending.source], cells.component[spending.target]
    assert (source == target).all()
    assert (spending.se_after <= spending.se_before + 1e-12).all()
    assert (spending.se_after == 0).sum() == 2


def test_budgets_that_cannot_be_spent_are_refused():
    with pytest.raises(EluteError, match="too few for 2 connecting swaps"):
        plan(world(0), 1)


def test_links_that_cannot_be_shown_join_nothing():
    """Errors stay those of the parts, rather than refer to what was not reached."""
    cells = world(2, k=2)
    spending = spend(cells, links_of(cells, 0), NO_CANDIDATES, 100)
    assert spending.connecting == len(spending.item) == 0
    assert spending.unspent == 100
    assert spending.se_after == pytest.approx(spending.se_before)


def test_cells_outside_the_part_of_an_item_tie_nothing_until_parts_are_joined():
    """Item 0 was shown under factor 2 of another part, which clicks do not tie."""
    offsets, factor = np.array([0, 3, 5, 7]), np.array([0, 1, 2, 0, 1, 2, 3], np.int32)
    cells = FittedCells(
        offsets, factor, np.full(7, 100, np.uint32), np.full(3, 0.3), np.full(4, 0.5), np.array([0, 0, 1, 1])
    )
    apart = spend(cells, NO_CANDIDATES, NO_CANDIDATES, 1)
    assert (apart.se_before == 0).tolist() == [True, False, True, False]
    link = Candidates(np.array([1]), np.array([0]), np.array([2]), np.array([9]), np.zeros(1))
    joined = spend(cells, link, NO_CANDIDATES, 9)
    assert (joined.se_after == 0).tolist() == [True, False, False, False]
    assert joined.se_after == pytest.approx(errors_of(cells, [(1, 2, 9)]), rel=1e-6)


def test_design_effects_scale_errors_and_draw_impressions():
    cells = world(1, k=1)
    effect = np.where(np.arange(10) == 5, 9.0, 1.0)
    plain, clustered = plan(cells, 3_000), plan(cells, 3_000, dispersion=effect)
    assert clustered.se_before == pytest.approx(plain.se_before * np.sqrt(effect))
    given = [found.impressions[found.target == 5].sum() for found in (plain, clustered)]
    assert given[1] > 2 * given[0]


def test_what_nothing_can_lower_does_not_take_the_budget():
    """The least known factor is out of reach; the next is not."""
    cells = world(4, k=1)
    shown = cells.impressions.copy()
    shown[cells.factor == 7] = 1
    cells = cells._replace(impressions=shown)
    every = pairs_of(cells)
    away = ~np.isin(every.item, cells.item[cells.factor == 7]) & (every.target != 7)
    spending = spend(cells, NO_CANDIDATES, every.take(away), 5_000)
    others = np.arange(10) != 7
    assert spending.se_before.argmax() == 7
    assert spending.se_after[others].max() < 0.7 * spending.se_before[others].max()


@pytest.mark.parametrize("objective", ["max", "mean"])
def test_rounds_by_draws_come_close_to_grants_by_the_whole_covariance(objective, monkeypatch):
    score = np.max if objective == "max" else np.mean
    cells = world(0, k=4, n_factors=60, n_items=400)
    exact = score(plan(cells, 30_000, objective=objective).se_after)
    monkeypatch.setattr("elute.repair.budget.DENSE", 0)
    found = score(plan(cells, 30_000, objective=objective).se_after)
    assert found < 1.15 * exact
    assert found < 0.8 * score(errors_of(cells, [(*pair[:2], 500) for pair in plan_of(plan(cells, 60))]))


def test_many_factors_are_planned_for_in_seconds(monkeypatch):
    """More than were allowed once; the forecast from draws is that of all solutions."""
    cells = world(0, k=40, n_factors=1_500, n_items=6_000)
    rng = np.random.default_rng(0)
    item, target = rng.integers(6_000, size=40_000), rng.integers(1_500, size=40_000)
    source = cells.factor[cells.offsets[item]].astype(np.int64)
    more = Candidates(item, source, target, np.full(40_000, 50), np.zeros(40_000))
    spending = spend(cells, links_of(cells), more, 60_000)
    assert spending.unspent == 0
    assert spending.connecting == 39
    assert spending.se_after.max() < 0.5 * np.nanmax(spending.se_before)
    monkeypatch.setattr("elute.estimate.solve.resistance.DENSE", 2_000)
    again = spend(cells, NO_CANDIDATES, NO_CANDIDATES, 1)
    off = spending.se_before[again.se_before > 0] / again.se_before[again.se_before > 0] - 1
    assert np.sqrt((off**2).mean()) < 0.05
    assert np.abs(off).max() < 0.25


def test_smallest_budget_only_connects():
    cells = world(0)
    spending = plan(cells, 2)
    assert spending.impressions.tolist() == [1, 1]
    assert spending.se_after == pytest.approx(errors_of_capped(cells, plan_of(spending)), rel=1e-4)


def errors_of_capped(cells, extra):
    """As errors_of; a single impression counts at most as p = 1/2."""
    p = np.outer(cells.relevance, cells.propensity)
    w = table(cells) * p / (1 - p)
    for item, factor, n in extra:
        w[item, factor] += n * min(p[item, factor] / (1 - p[item, factor]), n)
    matrix = np.diag(w.sum(0)) - w.T @ (w / w.sum(1, keepdims=True))
    inverse = np.linalg.inv(matrix[1:, 1:])
    return np.sqrt(np.concatenate(([0.0], np.diag(inverse))))
