"""Draws given totals against enumeration; the statistics against dense, plain code."""

from __future__ import annotations

import numpy as np
import pytest
from worlds import counts_of, draw

from elute.auditing.assumptions.draws.given_totals import draw_given_totals, tilt_odds
from elute.auditing.assumptions.examination import deviance
from elute.auditing.assumptions.interaction import Score
from elute.auditing.assumptions.lines import fit_lines, weights
from elute.auditing.assumptions.null import Drawing, compute_scores, fit_null, take_cells
from elute.auditing.assumptions.pairwise import Equality
from elute.cells.counts import Cells
from elute.estimate.models.pbm import PBM
from reference.plain_assumptions import (
    deviance as plain_deviance,
)
from reference.plain_assumptions import (
    least_line_squares,
    mantel_haenszel,
    score_statistic,
    splits,
)
from reference.plain_pbm import highest_likelihood, log_likelihood


def measure_equality(counts) -> tuple[float, int]:
    equality = Equality(counts)
    return equality.measure(counts.clicks), equality.freedom


def table_of(cells: Cells):
    item = np.repeat(np.arange(len(cells.offsets) - 1), np.diff(cells.offsets))
    columns = (item, cells.factor, cells.impressions, cells.clicks)
    return list(zip(*(column.tolist() for column in columns), strict=True))


@pytest.mark.parametrize("tilt", [False, True])
def test_draws_given_totals_follow_the_conditional_law(tilt):
    shown, p, total = [4, 3, 6], np.array([0.7, 0.15, 0.4]), 5
    exact = splits(shown, total, p.tolist())
    copies = 40_000
    cells = Cells(
        np.arange(0, 3 * copies + 1, 3),
        np.tile(np.arange(3, dtype=np.int32), copies),
        np.tile(np.array(shown, np.uint32), copies),
        np.tile(np.array([0, 0, 5], np.uint32), copies),
    )
    every = np.tile(p, copies)
    if tilt:
        every = tilt_odds(*cells, every)
        assert (every[:3] * shown).sum() == pytest.approx(total)
    drawn = draw_given_totals(*cells, every, np.random.default_rng(1)).reshape(copies, 3)
    assert (drawn.sum(axis=1) == total).all()
    ways, times = np.unique(drawn, axis=0, return_counts=True)
    found = {tuple(way): count for way, count in zip(ways.tolist(), times.tolist(), strict=True)}
    assert set(found) <= set(exact)
    z = [(found.get(way, 0) - copies * q) / np.sqrt(copies * q * (1 - q)) for way, q in exact.items()]
    assert np.abs(z).max() < 4


def test_items_without_a_choice_stay_as_they_are():
    cells = Cells(
        np.array([0, 2, 4, 5]),
        np.array([0, 1, 0, 1, 0], np.int32),
        np.array([3, 4, 3, 4, 9], np.uint32),
        np.array([0, 0, 3, 4, 5], np.uint32),
    )
    drawn = draw_given_totals(*cells, np.full(5, 0.3), np.random.default_rng(0))
    assert drawn.tolist() == cells.clicks.tolist()


@pytest.mark.parametrize("seed", range(4))
def test_the_deviance_of_a_draw_is_that_of_its_own_maximum(seed):
    """One Newton step of the propensities against a general optimiser over all parameters."""
    base = fit_null(counts_of(draw(seed, 12, 4, 0.8, 400)[0]))
    for cells in base.draw(Drawing(seed, 3), ""):
        table = table_of(cells)
        best = max(highest_likelihood(table, start) for start in range(3))
        saturated = sum(log_likelihood([(0, 0, n, c)], [c / n], [1.0]) for _, _, n, c in table if 0 < c < n)
        assert deviance(base, base.score(cells)) == pytest.approx(2 * (saturated - best), abs=0.15)


@pytest.mark.parametrize("seed", range(3))
def test_slopes_and_deviance_by_hand(seed):
    base = fit_null(counts_of(draw(seed, 15, 4, 0.7, 60)[0]))
    table = table_of(base.cells)
    slope, value = compute_scores(base.cells, base.r, base.o)
    assert value == pytest.approx(plain_deviance(table, base.r, base.o))
    p = np.array([base.r[x] * base.o[t] for x, t, _, _ in table])
    n, c = base.cells.impressions, base.cells.clicks
    assert np.allclose(slope, (c - n * p) / (1 - p))
    assert np.bincount(base.cells.factor, slope) == pytest.approx(0, abs=0.05)


@pytest.mark.parametrize("seed", range(5))
def test_the_score_statistic_against_the_whole_information_matrix(seed):
    base = fit_null(counts_of(draw(seed, 20, 5, 0.6, 80)[0]))
    z = np.random.default_rng(seed).normal(size=(len(base.items), 2))
    for cells in (base.cells, next(base.draw(Drawing(seed, 1), ""))):
        white = Score(base, z).whiten(base.score(cells))
        if cells is base.cells:
            assert white @ white == pytest.approx(score_statistic(table_of(cells), base.r, base.o, z), rel=1e-4)
        assert len(white) == 2 * (5 - 1)


@pytest.mark.parametrize("seed", range(5))
def test_equal_propensities_against_enumeration(seed):
    table = draw(seed, 8, 3, 0.8, 3)[0]
    statistic, freedom = measure_equality(counts_of(table, 3))
    assert statistic == pytest.approx(mantel_haenszel(table))
    assert freedom == 2


def test_equal_propensities_of_one_pair_is_the_textbook_one():
    """Two by two tables: (Σ a - E a)² / Σ Var a (Mantel and Haenszel 1959, without continuity correction)."""
    from scipy.stats import hypergeom

    table = [(0, 0, 10, 6), (0, 1, 12, 3), (1, 0, 7, 2), (1, 1, 5, 1)]
    laws = [hypergeom(22, 9, 10), hypergeom(12, 3, 7)]
    expected = (8 - sum(law.mean() for law in laws)) ** 2 / sum(law.var() for law in laws)
    assert measure_equality(counts_of(table))[0] == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(4))
def test_lines_are_the_least_squares(seed):
    table, r, o = draw(seed, 12, 4, 0.8, 200)
    counts = counts_of(table)
    cells = take_cells(counts, np.ones(counts.n_cells, np.bool_))
    start = o, np.zeros(4), r
    found = fit_lines(cells, *start)
    first = fit_lines_once(cells, start)
    weight = weights(cells, first)
    assert found.squares.sum() == pytest.approx(least_line_squares(table, weight, start), rel=1e-4)


def fit_lines_once(cells: Cells, start) -> np.ndarray:
    """The probabilities at which the last weights were taken."""
    from elute.auditing.assumptions import lines

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "_REWEIGHTED", 1)
        return lines.fit_lines(cells, *start).probability(cells)


def test_the_null_is_the_maximum_of_the_likelihood():
    counts = counts_of(draw(3, 30, 4, 0.8, 300)[0])
    base = fit_null(counts)
    assert len(base.items) == 30
    assert np.allclose(base.o, PBM(relevance_prior="none").fit(counts, allow_unidentified=True).propensity_)
    assert base.freedom == counts.n_cells - 30 - 4 + 1


def test_many_factors_give_the_same_statistics(monkeypatch):
    """Beyond some number of factors nothing dense is formed."""
    from elute.auditing.assumptions import null as null_module
    from elute.auditing.assumptions import pairwise

    counts = counts_of(draw(7, 200, 30, 0.2, 60)[0])
    base = fit_null(counts)
    cells = next(base.draw(Drawing(0, 1), ""))
    dense = deviance(base, base.score(cells)), measure_equality(counts)
    monkeypatch.setattr(null_module, "DENSE", 5)
    monkeypatch.setattr(pairwise, "DENSE", 5)
    assert deviance(base, base.score(cells)) == pytest.approx(dense[0], rel=1e-5)
    assert measure_equality(counts) == pytest.approx(dense[1], rel=1e-5)
