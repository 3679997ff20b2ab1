"""Spending impressions: against the full information matrix, maximum-likelihood fits, and other plans."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from elute.errors import EluteError
from elute.identify.information import (
    find_references,
    information,
    laplacian,
    pseudo_inverse,
    rank_one_update,
    variances,
)
from elute.repair import budget as budget_module
from elute.repair.allowed import Allowed, FittedCells
from elute.repair.budget import MAX_FACTORS, spend
from elute.repair.swap import NO_SWAPS, find_minimum_swaps


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
    links = find_minimum_swaps(cells).swaps
    spending = spend(cells, links, 5_003, objective=objective)
    assert spending.impressions.sum() == 5_003
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
    monkeypatch.setattr(budget_module, "_GRANTS", 1)
    cells = world(seed, k=1, n_factors=6, n_items=25)
    score = np.max if objective == "max" else np.mean
    pairs = [(item, target) for item in range(25) for target in range(6)]
    best = min(score(errors_of(cells, [(*pair, 700)])) for pair in pairs)
    spending = spend(cells, NO_SWAPS, 700, objective=objective)
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
    spending = spend(cells, find_minimum_swaps(cells).swaps, 10_000)
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
        links = find_minimum_swaps(cells).swaps
        joins = [(item, target, 100) for item, target in zip(links.item, links.target, strict=True)]
        rng = np.random.default_rng(seed)
        others = [(rng.integers(60), rng.integers(10), 100) for _ in range(48)]
        greedy.append(spend(cells, links, 5_000).se_after.max())
        at_random.append(errors_of(cells, joins + others).max())
        links_alone.append(errors_of(cells, [(item, target, 2_500) for item, target, _ in joins]).max())
    assert np.mean(greedy) < 0.8 * np.mean(at_random)
    assert np.mean(greedy) < 0.6 * np.mean(links_alone)


def test_each_objective_is_best_at_its_own():
    largest, mean = [], []
    for seed in range(6):
        cells = world(seed)
        links = find_minimum_swaps(cells).swaps
        by_max, by_mean = (spend(cells, links, 5_000, objective=kind) for kind in ("max", "mean"))
        largest.append(by_max.se_after.max() / by_mean.se_after.max())
        mean.append(by_mean.se_after.mean() / by_max.se_after.mean())
    assert np.mean(largest) < 1
    assert np.mean(mean) < 1


@pytest.mark.parametrize("seed", range(4))
def test_constraints_hold_for_every_swap(seed):
    rng = np.random.default_rng(seed)
    cells = world(seed, k=2)
    only, without = rng.random(10) < 0.8, rng.random(60) < 0.3
    allowed = Allowed(
        only_positions=only,
        exclude_items=without,
        min_impressions=50,
        max_position_change=4,
        position=np.arange(10.0),
    )
    spending = spend(cells, find_minimum_swaps(cells, allowed).swaps, 5_000, allowed)
    shown = table(cells)
    assert len(spending.item) > 3
    assert only[spending.target].all()
    assert not without[spending.item].any()
    assert (shown[spending.item, spending.source] >= 50).all()
    change = np.abs(spending.source - spending.target)
    assert change.min() > 0
    assert change.max() <= 4


def test_factors_of_which_nothing_is_known():
    cells = world(0, k=1)
    propensity = cells.propensity.copy()
    propensity[-1] = np.nan
    spending = spend(cells._replace(propensity=propensity), NO_SWAPS, 1_000)
    assert np.isnan(spending.se_after).tolist() == [False] * 9 + [True]
    assert np.isnan(spending.se_before).tolist() == [False] * 9 + [True]


def test_parts_left_apart_are_improved_on_their_own():
    """Without links two components stay two: errors refer to each one's own reference."""
    cells = world(3, k=2)
    spending = spend(cells, NO_SWAPS, 3_000)
    source, target = cells.component[spending.source], cells.component[spending.target]
    assert (source == target).all()
    assert (spending.se_after <= spending.se_before + 1e-12).all()
    assert (spending.se_after == 0).sum() == 2


def test_budgets_that_cannot_be_spent_are_refused():
    cells = world(0)
    with pytest.raises(EluteError, match="too few for 2 connecting swaps"):
        spend(cells, find_minimum_swaps(cells).swaps, 1)
    many = cells._replace(propensity=np.ones(MAX_FACTORS + 1))
    with pytest.raises(EluteError, match="at most 3,000 factors, not 3,001; merge some first"):
        spend(many, NO_SWAPS, 1)


def test_smallest_budget_only_connects():
    cells = world(0)
    spending = spend(cells, find_minimum_swaps(cells).swaps, 2)
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
