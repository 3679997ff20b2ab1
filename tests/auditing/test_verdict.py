"""Verdicts and selection: what decides, case by case."""

from __future__ import annotations

import pytest

from elute.auditing.cmip.metric import Cmip
from elute.auditing.verdict import LEVEL, SLIGHT, Evidence, Verdict, choose, reach_verdict

CLEAN = Cmip(0.0, -0.01, 0.01, 0.6, "knn", 500)
ECHO = Cmip(0.3, 0.2, 0.4, 0.001, "knn", 500)
NO_DIRECTION = Cmip(0.005, -0.005, 0.015, 0.001, "copula", 500)
DIRECTION = Cmip(0.2, 0.1, 0.3, 0.001, "copula", 500)


def known(
    cmip: Cmip | None = CLEAN,
    monotone: Cmip | None = NO_DIRECTION,
    *,
    perplexity: float = 1.2,
    ndcg: float | None = 0.9,
    missing: str = "",
    converged: bool = True,
) -> Evidence:
    return Evidence(perplexity, 1.3, ndcg, cmip, monotone, missing, converged)


@pytest.mark.parametrize(
    ("evidence", "word", "says"),
    [
        (known(), "pass", "No sign of the logging policy"),
        (known(ECHO, DIRECTION), "fail", "follows the order of the logging policy"),
        (known(ECHO, NO_DIRECTION), "warn", "not clearly in its direction"),
        (known(CLEAN, DIRECTION), "pass", "p = 0.6"),
        (known(None, None, missing="there are no labels"), "warn", "not known: there are no labels"),
        (known(perplexity=1.3), "warn", "no better than the mean click rate"),
        (known(perplexity=float("inf")), "warn", "no better than the mean click rate"),
        (known(perplexity=float("nan")), "warn", "no better than the mean click rate"),
        (known(converged=False), "warn", "did not converge"),
        (known(ECHO, DIRECTION, converged=False), "fail", "did not converge"),
    ],
)
def test_what_decides(evidence: Evidence, word: str, says: str) -> None:
    given = reach_verdict(evidence)
    assert given.word == word
    assert says in given.sentence


def test_the_thresholds_are_where_they_are_said_to_be() -> None:
    at = ECHO.__class__(0.3, 0.2, 0.4, LEVEL, "knn", 500)
    above = ECHO.__class__(0.3, 0.2, 0.4, LEVEL + 1e-9, "knn", 500)
    slight = Cmip(0.1, SLIGHT, 0.2, 0.001, "copula", 500)
    more = Cmip(0.1, SLIGHT + 1e-9, 0.2, 0.001, "copula", 500)
    assert [reach_verdict(known(*pair)).word for pair in ((at, more), (above, more), (at, slight))] == [
        "fail", "pass", "warn"
    ]  # fmt: skip


def chosen(*evidence: Evidence) -> tuple[int, str, str]:
    return choose(evidence, [reach_verdict(each) for each in evidence])


def test_a_model_that_fails_is_not_taken_for_its_ndcg() -> None:
    model, strategy, sentence = chosen(known(ECHO, DIRECTION, ndcg=0.99, perplexity=1.1), known(ndcg=0.9))
    assert (model, strategy) == (1, "top-4 CMIP, top-4 PPL: nDCG")
    assert sentence == "It is the only one that does not fail."


def test_among_the_others_the_papers_best_strategy_decides() -> None:
    """Of six, the highest nDCG has the second to last CMIP, and the next one the second to last perplexity."""
    ndcg = [0.99, 0.98, 0.97, 0.5, 0.4, 0.3]
    cmip = [0.05, 0.01, 0.02, 0.03, 0.04, 0.06]
    perplexity = [1.1, 1.25, 1.12, 1.13, 1.14, 1.26]
    models = [
        known(Cmip(c, -1, 1, 0.5, "knn", 500), ndcg=n, perplexity=p)
        for n, c, p in zip(ndcg, cmip, perplexity, strict=True)
    ]
    assert chosen(*models)[0] == 2


def test_without_cmip_or_labels_the_best_strategy_that_is_left() -> None:
    unlabelled = [known(None, None, ndcg=None, perplexity=p) for p in (1.25, 1.2, 1.22)]
    assert chosen(*unlabelled)[:2] == (1, "PPL")
    unscored = [known(None, None, ndcg=n, perplexity=p) for n, p in ((0.9, 1.25), (0.8, 1.2))]
    assert chosen(*unscored)[:2] == (1, "top-4 nDCG: PPL")


def test_where_all_fail_one_is_taken_and_said_to_fail() -> None:
    worse, better = known(ECHO, DIRECTION, ndcg=0.8), known(ECHO, DIRECTION, ndcg=0.9)
    model, _, sentence = chosen(worse, better)
    assert model == 1
    assert sentence.startswith("All fail")
    assert chosen(worse)[2] == "It is the only one, and it fails."


def test_the_models_that_fail_do_not_shift_the_numbers_of_the_others() -> None:
    fails = known(ECHO, DIRECTION)
    assert chosen(fails, known(ndcg=0.7), fails, known(ndcg=0.8))[0] == 3
    assert choose([fails], [Verdict("fail", "")]).model == 0
