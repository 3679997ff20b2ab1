"""Which verdict a model gets, and which model to take.

CMIP counts every dependence on the policy. One kind says nothing against a model: relevance is estimated less
precisely where the policy showed less, so that its spread follows the policy even where its mean does not, at any size
of log. Bias has a direction: what the policy ranked high is rated too high, or too low. The monotone part of CMIP (its
Gaussian copula estimate) sees the second and not the first, so a model fails by it, and is warned of by the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from elute.auditing.cmip.metric import Cmip
from elute.auditing.selection import select

Word = Literal["pass", "warn", "fail"]

LEVEL = 0.05
"""Of the test of debiasedness."""
SLIGHT = 0.01
"""Nats; as much as a correlation of 0.14 within a grade. Less direction than this fails nobody."""


class Evidence(NamedTuple):
    """What is known of a model. `missing`: why there is no CMIP, in words. `by_rank`: the perplexity of the click rate
    at each rank, which knows nothing of items."""

    perplexity: float
    by_rank: float
    ndcg: float | None
    cmip: Cmip | None
    monotone: Cmip | None
    missing: str
    converged: bool


class Verdict(NamedTuple):
    """The verdict and its reason."""

    word: Word
    sentence: str


class Selection(NamedTuple):
    """The number of the model taken, by which strategy of `elute.auditing.selection`, and why in words."""

    model: int
    strategy: str
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
        word = "warn"
    return Verdict(word, " ".join(sentences))


def _judge_debiasedness(evidence: Evidence) -> Verdict:
    cmip, monotone = evidence.cmip, evidence.monotone
    if cmip is None or monotone is None:
        return Verdict("warn", f"Whether it is debiased is not known: {evidence.missing}.")
    figures = f"CMIP {cmip.estimate:.3f} nats, p = {cmip.p_value:.2g}"
    if cmip.p_value > LEVEL:
        return Verdict("pass", f"No sign of the logging policy in its relevance beyond the grades ({figures}).")
    if monotone.low > SLIGHT:
        return Verdict(
            "fail",
            "Not debiased: among items of one grade, its relevance still follows the order of the logging policy "
            f"({figures}; its monotone part {monotone.estimate:.3f}, at least {monotone.low:.3f}).",
        )
    return Verdict(
        "warn",
        f"Its relevance depends on the logging policy beyond the grades ({figures}), but not clearly in its "
        f"direction (its monotone part {monotone.estimate:.3f}): as where items that the policy showed less are "
        "estimated less precisely.",
    )


def choose(evidence: Sequence[Evidence], verdicts: Sequence[Verdict]) -> Selection:
    """Models that fail are left out unless all do; of the others, the strategy with the least regret in Table 2 of the
    CMIP paper decides, as far as its metrics are known. Its "top 4" alone would leave out nobody among four models,
    and the highest nDCG by itself is the worst strategy of the table."""
    passing = [i for i, given in enumerate(verdicts) if given.word != "fail"]
    among = passing or list(range(len(evidence)))
    models = [evidence[i] for i in among]
    ndcg = [m.ndcg for m in models if m.ndcg is not None]
    cmip = [m.cmip.estimate for m in models if m.cmip is not None]
    strategy = "PPL"
    if len(ndcg) == len(models):
        strategy = "top-4 CMIP, top-4 PPL: nDCG" if len(cmip) == len(models) else "top-4 nDCG: PPL"
    unknown = np.zeros(len(models))
    picked = select(
        [m.perplexity for m in models],
        ndcg if len(ndcg) == len(models) else unknown,
        cmip if len(cmip) == len(models) else unknown,
    )[strategy]
    return Selection(
        among[picked], strategy, _explain_choice(len(among), len(evidence), bool(passing), _WORDS[strategy])
    )


def _explain_choice(among: int, models: int, passing: bool, by: str) -> str:
    """Why a model is taken."""
    if models == 1:
        return "It is the only one." if passing else "It is the only one, and it fails."
    if not passing:
        return f"All fail; it is the best of them by {by}."
    if among == 1:
        return "It is the only one that does not fail."
    return f"It is the best{'' if among == models else f' of the {among} that do not fail'} by {by}."


_WORDS = {
    "PPL": "perplexity (without labels there is nothing else to go by)",
    "top-4 nDCG: PPL": "perplexity among the four of highest nDCG (CMIP is not known)",
    "top-4 CMIP, top-4 PPL: nDCG": "nDCG among the four of lowest CMIP and the four of lowest perplexity",
}
