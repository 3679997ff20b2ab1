"""Figure 4 of the UPE paper: the propensity of position 1 as lists are renewed online."""

from __future__ import annotations

import numpy as np

from elute_reproduce.result import Claim, ComparedValue, Reproduction, StudyFigure
from elute_reproduce.study import Study
from elute_reproduce.upe.experiment.grid import Grid, collect_runs
from elute_reproduce.upe.experiment.learners import DLA, FITTED, RANDOM, READINGS
from elute_reproduce.upe.experiment.worlds import ONLINE, Graded, load_graded_sets
from elute_reproduce.upe.presentation import charts
from elute_reproduce.upe.presentation.tables import (
    SOURCE,
    TRUTH,
    claim_close,
    claim_covered,
    compute_errors,
    describe_fit,
    describe_settings,
    ratios,
)

_LEARNERS = (RANDOM, FITTED, *READINGS, DLA)
_AT = (2_500, 5_000, 7_500, 10_000)


def run(study: Study) -> Reproduction:
    """The learners of the figure, with `ipw-random` and `elute` beside them, on every set."""
    sets = load_graded_sets(study.data)
    grids = [collect_runs(study, one, [(ONLINE, name) for name in _LEARNERS]) for one in sets]
    pairs = list(zip(sets, grids, strict=True))
    off = float(np.mean([compute_errors(grid[ONLINE, FITTED]).mean() for grid in grids]))
    notes = "; ".join(describe_fit(one, grid, ONLINE) for one, grid in pairs)
    return Reproduction(
        name="upe-figure4",
        title="Figure 4: the propensity of position 1, online",
        source=f"{SOURCE}, Figure 4; {', '.join(one.name for one in sets)}",
        settings=(*describe_settings(study, sets, grids), "Lists are renewed after 2,500, 5,000 and 7,500 steps."),
        compared=[entry for one, grid in pairs for entry in _rows(one, grid)],
        claims=[claim for one, grid in pairs for claim in _claims(one, grid)],
        figures=[
            StudyFigure(
                one.name,
                f"{one.name}: p₁/p₁₀ as training goes on, on a log scale; median over seeds, bands from the least to "
                "the largest.",
                charts.draw_learning(grid, ONLINE, _LEARNERS),
            )
            for one, grid in pairs
        ],
        reading=[
            "Until the first renewal every query has one list, and the fit behind `elute` has nothing to go by: it "
            f"starts as `naive`. From the second list on, documents stand at several positions. At the end: {notes}.",
            f"Online, what is shown depends on earlier clicks, which the fit does not know. Its log p₁/p₁₀ is off by "
            f"{off:+.1f} standard errors on average; these are small.",
        ],
    )


def _rows(graded: Graded, grid: Grid) -> list[ComparedValue]:
    return [
        ComparedValue(
            {"data": graded.name, "learner": learner, "p₁/p₁₀ at step": f"{step:,}"},
            tuple(float(one.ratios[one.steps.index(step), 0]) for one in own),
        )
        for (_, learner), own in grid.items()
        for step in own[0].steps
        if step in _AT
    ]


def _claims(graded: Graded, grid: Grid) -> list[Claim]:
    error = {name: float(np.abs(np.log(ratios(grid[ONLINE, name]) / TRUTH)).mean()) for name in (DLA, *READINGS)}
    return [
        *(claim_close(graded, grid, ONLINE, name) for name in _LEARNERS),
        claim_covered(graded, grid, ONLINE),
        *(
            Claim(
                f"{graded.name}: {name} ends nearer the truth than {DLA}.",
                error[name] < error[DLA],
                f"mean error of log p₁/p₁₀: {error[name]:.2f}, {DLA} {error[DLA]:.2f}",
            )
            for name in READINGS
        ),
    ]
