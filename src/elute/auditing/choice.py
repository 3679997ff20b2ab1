"""Which model to take: by evidence that none of them was fitted to, and none where the evidence does not tell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.auditing.paired import compute_p_value
from elute.auditing.verdict import Verdict

Floats = NDArray[np.float64]

LEVEL = 0.05
"""Of paired differences, shared among the comparisons with the best."""

RULE = (
    "Of the models that pass (where none does, of those that are unknown), take the one with the highest held-out "
    "log-likelihood of clicks, then the highest nDCG; where paired differences by query tell the best from no other, "
    "take none."
)


class Candidate(NamedTuple):
    """What is known of a model, by query: the log-likelihood of a log that it was not fitted to, and nDCG. None where
    there is none."""

    name: str
    verdict: Verdict
    held_out: Floats | None
    ndcg: Floats | None


class Selection(NamedTuple):
    """The number of the model to take, None where none is; by what evidence, and why in words; `tied`: the models that
    could not be told apart."""

    model: int | None
    strategy: str
    sentence: str
    tied: tuple[str, ...] = ()


def choose(models: Sequence[Candidate], impressions: Floats) -> Selection:
    """By `RULE`. `impressions`: by query."""
    among = next((found for word in ("pass", "unknown") if (found := _find(models, word))), [])
    if not among:
        one = "It fails" if len(models) == 1 else "All fail"
        return Selection(None, "verdict", f"{one}: no model is to be taken.")
    word = models[among[0]].verdict.word
    if len(among) == 1:
        lead = "It is the only one" if len(models) == 1 else f"It is the only one {_ALONE[word]}"
        more = ", and whether it is debiased is unknown" if len(models) == 1 and word == "unknown" else ""
        return Selection(among[0], "verdict", f"{lead}{more}.")
    left, used = among, []
    for name, by, weights in (("held-out log-likelihood", "held_out", impressions), ("nDCG", "ndcg", None)):
        values = [getattr(models[i], by) for i in left]
        if any(value is None for value in values):
            continue
        used.append(name)
        left = _keep_best(left, values, weights)
        if len(left) == 1:
            return Selection(left[0], name, f"Of the {len(among)} {_WORDS[word]}, it has the highest {name}.")
    tied = tuple(models[i].name for i in left)
    names = " and ".join([", ".join(tied[:-1]), tied[-1]])
    if not used:
        return Selection(
            None,
            "none",
            f"Nothing here tells {names} apart: they were fitted to this very log, and there are no labels.",
            tied,
        )
    return Selection(None, used[-1], f"Cannot tell {names} apart by {' or '.join(used)} (paired by query).", tied)


_WORDS = {"pass": "that pass", "unknown": "that may be debiased (none passes)"}
_ALONE = {**_WORDS, "pass": "that passes"}


def _find(models: Sequence[Candidate], word: str) -> list[int]:
    return [i for i, model in enumerate(models) if model.verdict.word == word]


def _keep_best(numbers: list[int], values: Sequence[Floats], weights: Floats | None) -> list[int]:
    """The best and those that are not worse beyond doubt, at a level shared among the comparisons."""
    best = int(np.argmax([np.nansum(value) for value in values]))
    level = LEVEL / (len(values) - 1)
    return [
        number
        for i, number in enumerate(numbers)
        if i == best or compute_p_value(values[best], values[i], weights) > level
    ]
