"""Which model is taken: held-out evidence first, labels next, and none where neither tells."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from elute.auditing.choice import Candidate, Selection, choose
from elute.auditing.paired import compute_p_value, mean_by_query
from elute.auditing.verdict import Verdict

Floats = NDArray[np.float64]
SHOWN = np.full(40, 100.0)


def noise(seed: int) -> Floats:
    return np.random.default_rng(seed).normal(0, 1, 40)


def model(name: str, word: str = "pass", held_out: Floats | None = None, ndcg: Floats | None = None) -> Candidate:
    return Candidate(name, Verdict(word, ""), held_out, ndcg)  # type: ignore[arg-type]


def pick(*models: Candidate) -> Selection:
    return choose(models, SHOWN)


def test_held_out_clicks_decide_among_those_that_pass() -> None:
    hard = 30 * noise(0)  # queries differ far more than models do
    found = pick(
        model("unknown and best", "unknown", hard + 5),
        model("worse", "pass", hard + 0.1 * noise(1)),
        model("better", "pass", hard + 1 + 0.1 * noise(2)),
        model("failing and best", "fail", hard + 9),
    )
    assert (found.model, found.strategy, found.tied) == (2, "held-out log-likelihood", ())
    assert found.sentence == "Of the 2 that pass, it has the highest held-out log-likelihood."


def test_what_no_difference_tells_apart_is_said_and_not_taken() -> None:
    same = noise(0)
    found = pick(model("a", held_out=same + 0.01 * noise(1)), model("b", held_out=same + 0.01 * noise(2)))
    assert (found.model, found.tied) == (None, ("a", "b"))
    assert found.sentence == "Cannot tell a and b apart by held-out log-likelihood (paired by query)."


def test_ndcg_breaks_a_tie_and_is_all_there_is_in_sample() -> None:
    low, high = 0.8 + 0.01 * noise(1), 0.9 + 0.01 * noise(2)
    tied = noise(0)
    assert pick(model("a", held_out=tied, ndcg=low), model("b", held_out=tied, ndcg=high)).model == 1
    found = pick(model("a", ndcg=high), model("b", ndcg=low))
    assert (found.model, found.strategy) == (0, "nDCG")
    # One fit of the two saw the log: its likelihood is no evidence, and so nor is the other's beside it.
    assert pick(model("a", held_out=tied + 9, ndcg=low), model("b", ndcg=high)).model == 1


def test_in_sample_without_labels_nothing_is_taken() -> None:
    found = pick(model("a", "unknown"), model("b", "unknown"))
    assert found.model is None
    assert found.sentence == (
        "Nothing here tells a and b apart: they were fitted to this very log, and there are no labels."
    )


@pytest.mark.parametrize(
    ("words", "taken", "says"),
    [
        (("pass",), 0, "It is the only one."),
        (("unknown",), 0, "It is the only one, and whether it is debiased is unknown."),
        (("fail",), None, "It fails: no model is to be taken."),
        (("fail", "fail"), None, "All fail: no model is to be taken."),
        (("fail", "pass", "unknown"), 1, "It is the only one that passes."),
        (("fail", "unknown"), 1, "It is the only one that may be debiased (none passes)."),
    ],
)
def test_verdicts_come_first(words: tuple[str, ...], taken: int | None, says: str) -> None:
    found = pick(*(model(str(i), word) for i, word in enumerate(words)))
    assert (found.model, found.sentence) == (taken, says)


def test_intervals_hold_the_mean_as_often_as_they_say() -> None:
    rng, held = np.random.default_rng(0), 0
    for _ in range(400):
        size = rng.integers(1, 50, 30).astype(float)
        found = mean_by_query(size * (0.3 + rng.normal(0, 0.1, 30)), size)
        held += found.low <= 0.3 <= found.high
    assert 0.92 <= held / 400 <= 0.98


def test_differences_are_those_of_the_t_test() -> None:
    from scipy.stats import ttest_rel

    a, b = noise(1), noise(1) + 0.2 + 0.5 * noise(2)
    assert compute_p_value(a, b) == pytest.approx(ttest_rel(a, b).pvalue)
    b[3] = np.nan
    assert compute_p_value(a, b) == pytest.approx(ttest_rel(a, b, nan_policy="omit").pvalue)
    assert compute_p_value(a, a) == 1.0
