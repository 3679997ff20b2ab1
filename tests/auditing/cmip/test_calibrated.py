"""CMIP against redrawn clicks: the population it draws from, its statistic, and verdicts in worlds that are known."""

from __future__ import annotations

import numpy as np
import pytest

from elute.auditing.cmip import cmip
from elute.auditing.cmip.calibrated import MonotonePart, calibrate
from elute.auditing.cmip.population import ClickLaw, fit_mixture
from elute.auditing.cmip.within import rank_within
from elute.cells.counts import Cells
from elute_reproduce.cmip import calibrated as study
from elute_reproduce.cmip.sparse_world import draw_log, fit_model


def draw_cells(relevance, shown, alpha, seed=0):
    """Every item under every factor, `shown` times."""
    rng = np.random.default_rng(seed)
    items, factors = len(relevance), len(alpha)
    clicks = rng.binomial(shown, np.outer(relevance, alpha)).ravel()
    offsets = np.arange(items + 1) * factors
    factor = np.tile(np.arange(factors, dtype=np.int32), items)
    return Cells(offsets, factor, np.full(items * factors, shown, np.uint32), clicks.astype(np.uint32))


ALPHA = np.array([1.0, 0.5, 0.25])
LAW = ClickLaw(ALPHA, np.zeros(3))


@pytest.mark.parametrize("shown", [1, 5, 2_000])
def test_noise_adds_no_spread_to_a_grade_whose_items_are_alike(shown):
    cells = draw_cells(np.full(2_000, 0.3), shown, ALPHA)
    found = fit_mixture(cells, LAW, np.arange(2_000), np.random.default_rng(0))
    mean = found.share @ found.place
    assert mean == pytest.approx(0.3, abs=4 * np.sqrt(0.3 / (2_000 * shown * ALPHA.sum())))
    # Clicks over exposure have a spread of √(.3 / (1.75 · shown)): .41 at one impression a cell.
    assert np.sqrt(found.share @ (found.place - mean) ** 2) < {1: 0.1, 5: 0.06, 2_000: 0.005}[shown]


def test_spread_within_a_grade_is_found():
    relevance = np.where(np.arange(3_000) % 3 == 0, 0.6, 0.1)
    found = fit_mixture(draw_cells(relevance, 20, ALPHA), LAW, np.arange(3_000), np.random.default_rng(0))
    high = found.place > 0.3
    assert found.share[high].sum() == pytest.approx(1 / 3, abs=0.04)
    assert found.share[high] @ found.place[high] / found.share[high].sum() == pytest.approx(0.6, abs=0.03)


def test_the_statistic_is_the_copula_estimate_of_cmip():
    rng = np.random.default_rng(0)
    grade, query = rng.integers(0, 3, 600).astype(float), np.repeat(np.arange(60), 10)
    policy = grade + rng.standard_normal(600)
    scores = policy + rng.standard_normal(600)
    high = rank_within(policy, query)
    found = MonotonePart.prepare(high, grade, rng).estimate(scores, rng)
    # Ranks within queries tie across queries, and ties are broken at random.
    assert found == pytest.approx(cmip(scores, policy, grade, "copula", queries=query).estimate, abs=0.03)
    untied = high + 1e-9 * rng.random(600)
    assert MonotonePart.prepare(untied, grade, rng).estimate(scores, rng) == pytest.approx(
        cmip(scores, untied, grade, "copula").estimate, abs=1e-12
    )
    assert MonotonePart.prepare(high, grade, rng).estimate(np.ones(600), rng) == 0


@pytest.mark.parametrize(("name", "word"), [("true IPW", "pass"), ("naive", "fail"), ("DCTR", "fail")])
def test_right_passes_and_wrong_fails_where_clicks_suffice(name, word):
    verdicts = [study.audit_run(study.LogSize(86, 100, 86), name, run).verdict for run in range(3)]
    assert verdicts == [word] * 3


def test_pbm_does_not_fail_and_few_labels_are_unknown():
    dense = [study.audit_run(study.LogSize(86, 1_000, 86), "PBM", run).verdict for run in range(3)]
    assert "fail" not in dense
    assert "pass" in dense
    few = [study.audit_run(study.LogSize(86, 10, 6), "true IPW", run) for run in range(2)]
    assert [o.verdict for o in few] == ["unknown"] * 2


def test_the_seed_decides_and_nothing_else():
    judged, relevance = fit_model("naive", draw_log(20, 20, np.random.default_rng(0)), 20)
    first, again, other = (calibrate(judged, relevance, seed, draws=19, power_draws=5) for seed in (0, 0, 1))
    assert first == again
    assert first[0] != other[0]


def test_items_that_never_were_clicked_and_a_single_grade_do_no_harm():
    log = draw_log(20, 3, np.random.default_rng(0))
    bare = log._replace(clicked=np.zeros_like(log.clicked), grade=np.zeros_like(log.grade))
    judged, relevance = fit_model("naive", bare, 20)
    excess, power = calibrate(judged, relevance, draws=19, power_draws=5)
    assert (excess.estimate, excess.p_value, power.value) == (0, 1, 0)
