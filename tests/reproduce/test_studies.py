"""Small runs of the reproductions: they work, and say what they should."""

from __future__ import annotations

from elute.reproduce import fit_coverage, identifiability_figure6, repair_budget
from elute.reproduce.study import Study


def test_error_bars_hold_the_truth(monkeypatch):
    monkeypatch.setattr(fit_coverage, "REPETITIONS", 60)
    result = fit_coverage.run(Study())
    for entry in result.compared:
        if entry.where["figure"] == "mean":
            assert 0.92 < entry.mean < 0.98, entry


def test_a_budget_spent_by_resistance_beats_chance(monkeypatch):
    monkeypatch.setattr(repair_budget, "_BUDGETS", (5_000,))
    result = repair_budget.run(Study(seeds=4))
    assert all(claim.holds for claim in result.claims), [claim.evidence for claim in result.claims]
    mean = {tuple(entry.where.values())[:2]: entry.mean for entry in result.compared}
    assert mean["budget, largest", "largest standard error"] < 0.6 * mean["random swaps", "largest standard error"]


def test_merging_gives_one_curve_and_a_better_one(data, monkeypatch):
    monkeypatch.setattr(identifiability_figure6, "_SETS", (2,))
    result = identifiability_figure6.run(Study(data, seeds=2))
    assert [claim.holds for claim in result.claims[:2]] == [True, True], [claim.evidence for claim in result.claims]
