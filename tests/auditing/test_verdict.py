"""Verdicts: what decides, case by case."""

from __future__ import annotations

from dataclasses import replace

import pytest

from elute.auditing.cmip.calibrated import LEVEL, Excess, Power
from elute.auditing.verdict import BLIND, ENOUGH, PLAIN, Evidence, reach_verdict

CLEAN = Excess(0.001, -0.01, 0.01, 0.6, 0.02, 0.01, 79)
ECHO = Excess(0.3, 0.2, 0.4, 0.0125, 0.02, 0.01, 79)
STRONG, WEAK = Power("a bias", 0.95), Power("a bias", 0.4)


def known(
    excess: Excess | None = CLEAN,
    power: Power | None = STRONG,
    *,
    perplexity: float = 1.2,
    missing: str = "",
    converged: bool = True,
) -> Evidence:
    return Evidence(perplexity, 1.3, excess, power, missing, converged)


@pytest.mark.parametrize(
    ("evidence", "word", "says"),
    [
        (known(), "pass", "a bias would have been found in 95% of draws"),
        (known(ECHO), "fail", "follows the order of the logging policy"),
        (known(ECHO, WEAK), "fail", "excess 0.300 nats, p = 0.013"),
        (known(CLEAN, WEAK), "unknown", "too few judged items or clicks to tell: a bias would have been found in 40%"),
        (known(None, None, missing="there are no labels"), "unknown", "not known: there are no labels"),
        (known(perplexity=1.3), "unknown", "no better than the mean click rate"),
        (known(perplexity=float("inf")), "unknown", "no better than the mean click rate"),
        (known(perplexity=float("nan")), "unknown", "no better than the mean click rate"),
        (known(converged=False), "unknown", "did not converge"),
        (known(ECHO, converged=False), "fail", "did not converge"),
    ],
)
def test_what_decides(evidence: Evidence, word: str, says: str) -> None:
    given = reach_verdict(evidence)
    assert given.word == word
    assert says in given.sentence


def test_the_thresholds_are_where_they_are_said_to_be() -> None:
    at, above = (Excess(0.3, 0.2, 0.4, p, 0.0, 0.01, 79) for p in (LEVEL, LEVEL + 1e-9))
    less, enough = (Excess(nats, 0.0, 0.1, 0.0125, 0.0, 0.02, 79) for nats in (0.02 - 1e-9, 0.02))
    words = [reach_verdict(known(each)).word for each in (at, above, less, enough)]
    assert words == ["fail", "pass", "pass", "fail"]
    powers = [reach_verdict(known(power=Power("a bias", value))).word for value in (ENOUGH, ENOUGH - 1e-9)]
    assert powers == ["pass", "unknown"]
    found = Excess(0.02, 0.0, 0.1, 0.0125, 0.0, 0.02, 79)
    blind = [reach_verdict(known(found, Power("a bias", value))) for value in (BLIND, BLIND + 1e-9)]
    assert [each.word for each in blind] == ["unknown", "fail"]
    plain = [replace(found, estimate=nats) for nats in (0.02 * PLAIN - 1e-9, 0.02 * PLAIN)]
    assert [reach_verdict(known(each, Power("a bias", 0.0))).word for each in plain] == ["unknown", "fail"]
    assert blind[0].sentence.startswith("An excess (")
