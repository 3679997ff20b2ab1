"""Small runs of the reproductions: they work, and say what they should."""

from __future__ import annotations

from elute_reproduce.fit import coverage
from elute_reproduce.identifiability import figure6
from elute_reproduce.repair import budget
from elute_reproduce.study import Study


def test_error_bars_hold_the_truth(monkeypatch):
    monkeypatch.setattr(coverage, "REPETITIONS", 60)
    result = coverage.run(Study())
    for entry in result.compared:
        if entry.where["figure"] == "mean":
            assert 0.92 < entry.mean < 0.98, entry


def test_a_budget_spent_by_resistance_beats_chance(monkeypatch):
    monkeypatch.setattr(budget, "_BUDGETS", (5_000,))
    result = budget.run(Study(seeds=4))
    assert result.claims[1].holds, result.claims[1].evidence
    mean = {tuple(entry.where.values())[:2]: entry.mean for entry in result.compared}
    assert mean["budget, largest", "largest standard error"] < 0.7 * mean["random swaps", "largest standard error"]
    assert mean["budget, largest", "largest standard error"] < 0.4 * mean["all on the links", "largest standard error"]


def test_merging_gives_one_curve_and_a_better_one(data, monkeypatch):
    monkeypatch.setattr(figure6, "_SETS", (2,))
    result = figure6.run(Study(data, seeds=2))
    assert [claim.holds for claim in result.claims[:2]] == [True, True], [claim.evidence for claim in result.claims]
