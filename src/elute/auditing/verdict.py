"""Which verdict a model gets.

`fail`: its relevance follows the policy more than noise makes it (`elute.auditing.cmip.calibrated`). `pass`: it does
not, and a bias of a stated size would have been found. `unknown`: the rest, with the reason in words.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from elute.auditing.cmip.calibrated import Excess, Power

Word = Literal["pass", "fail", "unknown"]

ENOUGH, BLIND, PLAIN = 0.8, 0.05, 3.0
"""Power: what a pass needs, and what is too little to fail by. A test that finds the stated bias no more often than it
may fail a right model tells nothing, unless the bias is far larger than the stated one: the excess is then `PLAIN`
times what fails a model."""


class Evidence(NamedTuple):
    """What is known of a model. `missing`: why there is no excess, in words. `by_rank`: the perplexity of the click
    rate at each rank, which knows nothing of items."""

    perplexity: float
    by_rank: float
    excess: Excess | None
    power: Power | None
    missing: str
    converged: bool


class Verdict(NamedTuple):
    """The verdict and its reason."""

    word: Word
    sentence: str


def reach_verdict(evidence: Evidence) -> Verdict:
    """Debiasedness first (Definition 4.2): unbiasedness needs it, and so do predictions that outlast the policy.
    It is not enough (a random model has it too), hence the look at clicks."""
    word, first = _judge_debiasedness(evidence)
    sentences = [first]
    if not evidence.perplexity < evidence.by_rank:
        sentences.append("It predicts clicks no better than the mean click rate of each position.")
    if not evidence.converged:
        sentences.append("The fit did not converge.")
    if word == "pass" and len(sentences) > 1:
        word = "unknown"
    return Verdict(word, " ".join(sentences))


def _judge_debiasedness(evidence: Evidence) -> Verdict:
    excess, power = evidence.excess, evidence.power
    if excess is None or power is None:
        return Verdict("unknown", f"Whether it is debiased is not known: {evidence.missing}.")
    figures = f"excess {excess.estimate:.3f} nats, p = {excess.p_value:.2g}"
    known = f"{power.against} would have been found in {power.value:.0%} of draws"
    if excess.is_bias and (power.value > BLIND or excess.estimate >= PLAIN * excess.least):
        return Verdict(
            "fail",
            "Not debiased: among items of one grade, its relevance follows the order of the logging policy more than "
            f"noise would make it ({figures}).",
        )
    if power.value >= ENOUGH:
        return Verdict(
            "pass", f"No more of the logging policy in its relevance than noise leaves ({figures}); {known}."
        )
    seen = "An excess" if excess.is_bias else "No sign of bias"
    return Verdict("unknown", f"{seen} ({figures}), but too few judged items or clicks to tell: {known}.")
