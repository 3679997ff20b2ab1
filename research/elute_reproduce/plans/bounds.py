"""Do bounds across components hold? Worlds whose truth is known, from many pages to hardly a click."""

from __future__ import annotations

import numpy as np

from elute_reproduce.plans.bounds_coverage import WORLDS, BoundsOutcome, measure_coverage, sum_outcomes
from elute_reproduce.result import Claim, ComparedValue, Reproduction
from elute_reproduce.study import Study

_DRAWS = 10
"""Logs of a world for every seed."""

_BROKEN = "position 3 seen more than position 2"


def run(study: Study) -> Reproduction:
    """Every world."""
    jobs = [(name, at, part) for at, name in enumerate(WORLDS) for part in range(study.seeds)]
    parts = study.map("logs", _measure_part, jobs)
    found = {
        name: sum_outcomes([one for job, one in zip(jobs, parts, strict=True) if job[0] == name]) for name in WORLDS
    }
    compared = [
        ComparedValue({"world": name, "figure": figure}, (value,))
        for name, outcome in found.items()
        for figure, value in _list_figures(outcome).items()
    ]
    return Reproduction(
        name="plans-bounds",
        title="Do bounds across components hold?",
        source="`elute check --bounds`",
        settings=(
            f"{study.seeds * _DRAWS} logs from each of {len(WORLDS)} worlds, with the same pages and other clicks.",
            "Held: the share of logs in which every interval of every factor and scale holds the truth at once, "
            "without an assumption and with log propensities that do not rise with position. Noticed: the share in "
            "which elute says that this assumption contradicts the log.",
            "Ordered: the share of pairs of items of one query in different components that the bounds put in order.",
        ),
        compared=compared,
        claims=_judge(found),
    )


def _measure_part(name: str, at: int, part: int) -> BoundsOutcome:
    """Some logs of a world, whose pages are the same for all parts."""
    return measure_coverage(WORLDS[name](np.random.default_rng([3, at])), _DRAWS, np.random.default_rng([3, at, part]))


def _list_figures(outcome: BoundsOutcome) -> dict[str, float]:
    pairs = max(outcome.pairs, 1)
    return {
        "held": outcome.held / outcome.draws,
        "held, not rising": outcome.held_monotone / outcome.draws,
        "noticed": outcome.contradicted / outcome.draws,
        "ordered": outcome.ordered / pairs,
        "ordered, not rising": outcome.ordered_monotone / pairs,
    }


def _judge(found: dict[str, BoundsOutcome]) -> tuple[Claim, ...]:
    least = min(found.values(), key=lambda one: one.held / one.draws)
    ordered = sum(one.ordered + one.ordered_monotone for name, one in found.items() if name != _BROKEN)
    wrong = sum(one.wrong for name, one in found.items() if name != _BROKEN)
    broken = found[_BROKEN]
    return (
        Claim(
            "All intervals hold the truth at once in at least 95% of the logs of every world.",
            least.held >= 0.95 * least.draws,
            f"least: {least.held} of {least.draws}",
        ),
        Claim(
            "Of the pairs that bounds put in order, at least 95% are in the right one.",
            wrong <= 0.05 * max(ordered, 1),
            f"{wrong} of {ordered:,} wrong",
        ),
        Claim(
            "Where propensities do rise with position, elute says that the assumption contradicts the log.",
            broken.contradicted >= 0.95 * broken.draws,
            f"{broken.contradicted} of {broken.draws}: “{broken.example}”",
        ),
    )
