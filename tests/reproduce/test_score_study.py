"""The study of scores: rankers on fixed lists, and claims that can fail."""

from __future__ import annotations

import numpy as np
import pytest

from elute_reproduce.score import measure, rankers
from elute_reproduce.score.rankers import RankedBy, claim_ranked, list_ranked
from elute_reproduce.score.worlds import O
from elute_reproduce.upe.experiment.synthetic import draw_synthetic


def rank(naive: float, score: float, true: float, verdict: str = "holds") -> list[RankedBy]:
    values = dict(zip(rankers.LEARNERS, (naive, score, true), strict=True))
    return [RankedBy({name: value + 0.001 * seed for name, value in values.items()}, 0.5, verdict) for seed in range(3)]


def test_claims_on_rankers_follow_their_figures() -> None:
    good, bad = rank(0.7, 0.86, 0.87), rank(0.7, 0.72, 0.87)
    for weak, held in ((good, [True, True, True, True]), (bad, [False, True, False, True])):
        ranked = {"weak": weak, "strong": good, "weak, shifted": rank(0.7, 0.7, 0.8, "contradicted")}
        assert [claim.holds for claim in claim_ranked(ranked)] == held
        assert len(list_ranked(ranked)) == 15
    shifted = {"weak": good, "strong": good, "weak, shifted": rank(0.7, 0.7, 0.8, "untestable")}
    assert not claim_ranked(shifted)[-1].holds


def test_a_ranker_of_a_small_world(monkeypatch: pytest.MonkeyPatch) -> None:
    """Targets are clicks of a list's pages over their number, by position of the list."""
    seen: dict[int, np.ndarray] = {}

    def keep(made: object, document: np.ndarray, targets: np.ndarray, seed: int) -> float:
        seen[len(seen)] = targets
        return 0.5

    monkeypatch.setattr(rankers, "_train", keep)
    monkeypatch.setattr(rankers, "draw_synthetic", lambda seed: draw_synthetic(60, seed))
    found = rankers.measure_rankers("weak", 1)
    naive, adjusted, true = (seen[number] for number in range(3))
    assert naive.shape == (60, 10) and 0 <= naive.min() < naive.max() <= 1
    assert true == pytest.approx(naive / (O / O[0]))
    clicked = naive[:, 3] > 0
    assert np.ptp(adjusted[clicked, 3] / naive[clicked, 3]) == pytest.approx(0, abs=1e-9)
    assert set(found.ndcg) == set(rankers.LEARNERS) and 0.3 < found.logging < 0.8


def test_kinds_whose_score_is_right_have_more_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "RIGHT_LOGS", 2)
    monkeypatch.setattr(measure, "LOGS", 1)
    monkeypatch.setattr(measure, "QUERIES", 60)
    assert len(measure.measure_world("holds", 0).ratio) == 2
    assert len(measure.measure_world("scores shifted by query", 0).ratio) == 1
