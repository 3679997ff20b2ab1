"""May one look at a swap plan as often as one likes? A thousand runs of twenty looks each, and whole fits beside."""

from __future__ import annotations

import numpy as np

from elute_reproduce.plans.fits import watch_plan
from elute_reproduce.plans.links import LinkWorld, Looks, watch_link
from elute_reproduce.result import Claim, ComparedValue, Reproduction
from elute_reproduce.study import Study

RUNS, LOOKS, FITS = 1_000, 20, 200

WORLDS = {
    "clicks are common": LinkWorld(0.5, 0.25),
    "clicks are rare": LinkWorld(0.1, 0.03),
    "queries have tastes": LinkWorld(0.2, 0.08, tastes=0.5, size=20),
}
TASTES = "queries have tastes"
PICKED = {
    "one item": LinkWorld(0.1, 0.03, before=4_000),
    "best of 100": LinkWorld(0.1, 0.03, before=4_000, picked=100),
    "best of 1,000": LinkWorld(0.1, 0.03, before=4_000, picked=1_000),
}
"""What would happen if the clicks that an item was picked for were used again."""

_FIGURES = ("ever_out", "naive_ever_out", "held_at_stop", "naive_held_at_stop", "stopped", "used")


def run(study: Study) -> Reproduction:
    """The number of runs is fixed: it is what the answer's precision rests on."""
    found = watch_worlds(RUNS)
    for number, (name, tastes) in enumerate((("whole fits", 0.0), ("whole fits, users have tastes", 0.5))):
        found[name] = watch_plan(study, FITS, LOOKS, number, tastes)
    blind = watch_link(WORLDS[TASTES], RUNS, LOOKS, np.random.default_rng([1, 2]), with_clusters=False)
    picked = {name: watch_link(world, RUNS, LOOKS, np.random.default_rng(3)) for name, world in PICKED.items()}
    return Reproduction(
        name="plans-looks",
        title="Looking at a swap plan as often as one likes",
        source="Confidence sequences of `elute repair --continue` (Robbins 1970)",
        settings=(
            f"{RUNS:,} runs of one link, looked at {LOOKS} times, the last with twice the impressions that the "
            f"sequence is expected to take; {FITS} runs of a sparse log of 150 items in two parts, with the plan that "
            "elute makes for it and a fit at every look.",
            "ever_out: the interval excluded the truth at some look; naive: ±1.96 standard errors. held_at_stop: the "
            "interval at the first look at which its half-width was 0.196 held the truth. used: impressions until "
            "then, over those of the naive interval.",
        ),
        compared=[
            ComparedValue({"world": name, "figure": figure}, (getattr(looks, figure),))
            for name, looks in {**found, **picked}.items()
            for figure in _FIGURES
        ],
        claims=judge(found, blind, picked),
    )


def watch_worlds(runs: int) -> dict[str, Looks]:
    """One link in every world."""
    return {
        name: watch_link(world, runs, LOOKS, np.random.default_rng([1, number]))
        for number, (name, world) in enumerate(WORLDS.items())
    }


def judge(found: dict[str, Looks], blind: Looks, picked: dict[str, Looks]) -> tuple[Claim, ...]:
    """What the runs bear out. Shares of a few hundred runs are known to a percent or two: the bar is what was said."""
    return (
        Claim(
            "At most 5% of runs ever have an interval without the truth, at any of 20 looks.",
            max(looks.ever_out for looks in found.values()) <= 0.05,
            "; ".join(f"{name} {looks}" for name, looks in found.items()),
        ),
        Claim(
            "Intervals of ±1.96 standard errors, looked at 20 times, exclude the truth in more than 15% of runs.",
            min(looks.naive_ever_out for looks in found.values()) > 0.15,
            f"from {min(looks.naive_ever_out for looks in found.values()):.1%} "
            f"to {max(looks.naive_ever_out for looks in found.values()):.1%}",
        ),
        Claim(
            "Where it stops, the sequence holds the truth in at least 95% of runs.",
            min(looks.held_at_stop for looks in found.values()) >= 0.95,
            f"at least {min(looks.held_at_stop for looks in found.values()):.1%}; naive intervals, stopped by their "
            f"width alone, {min(looks.naive_held_at_stop for looks in found.values()):.1%} and more",
        ),
        Claim(
            "Without the design effect, dependent clicks break that.",
            blind.ever_out > 0.05,
            f"{TASTES}: {blind}",
        ),
        Claim(
            "So do the clicks that an item was picked for, if they are used again.",
            picked["best of 1,000"].ever_out > 0.05 >= picked["one item"].ever_out,
            "; ".join(f"{name} {looks}" for name, looks in picked.items()),
        ),
    )
