"""Figure 5 of the UPE paper: UPE against the naive joint model, as training goes on."""

from __future__ import annotations

import numpy as np

from elute.reporting.charts import specs
from elute.simulation.grades import PROPENSITIES
from elute_reproduce.result import Claim, ComparedValue, Reproduction, StudyFigure
from elute_reproduce.study import Study
from elute_reproduce.upe.experiment.grid import Grid, collect_runs
from elute_reproduce.upe.experiment.learners import FITTED, JOINT, RANDOM, READINGS
from elute_reproduce.upe.experiment.worlds import ONLINE, Graded, load_graded_sets
from elute_reproduce.upe.presentation import charts as upe_charts
from elute_reproduce.upe.presentation.tables import (
    SOURCE,
    TRUTH,
    claim_better,
    curve_rows,
    describe_settings,
    describe_small_sets,
    format_spread,
    ratios,
)

_LEARNERS = (JOINT, *READINGS, RANDOM, FITTED)
_POSITIONS = (1, 2, 3, 9)
_TRUTHS = [f"{PROPENSITIES[k - 1] / PROPENSITIES[-1]:.1f}" for k in _POSITIONS]


def run(study: Study) -> Reproduction:
    """The learners of the figure, with `ipw-random` and `elute` beside them, on every set."""
    sets = load_graded_sets(study.data)
    grids = [collect_runs(study, one, [(ONLINE, name) for name in _LEARNERS]) for one in sets]
    pairs = list(zip(sets, grids, strict=True))
    return Reproduction(
        name="upe-figure5",
        title="Figure 5: UPE and the naive joint model",
        source=f"{SOURCE}, Figure 5; {', '.join(one.name for one in sets)}",
        settings=describe_settings(study, sets, grids),
        compared=[entry for one, grid in pairs for entry in _rows(one, grid)],
        claims=[claim for one, grid in pairs for claim in _claims(one, grid)],
        figures=[figure for one, grid in pairs for figure in (_propensities(one, grid), _ranking(one, grid))],
        reading=[*filter(None, [describe_small_sets(sets)])],
    )


def _rows(graded: Graded, grid: Grid) -> list[ComparedValue]:
    return [
        entry
        for (_, learner), own in grid.items()
        for entry in curve_rows({"data": graded.name, "learner": learner}, own, _POSITIONS)
    ]


def _claims(graded: Graded, grid: Grid) -> list[Claim]:
    joint = ratios(grid[ONLINE, JOINT])
    late = [np.mean(one.test[-5:]) - np.mean(one.test[4:9]) for one in grid[ONLINE, JOINT]]
    return [
        Claim(
            f"{graded.name}: {JOINT} fails to learn propensities: p₁/p₁₀ ends below 1 (truth {TRUTH:.1f}).",
            bool(joint.mean() < 1),
            format_spread(joint),
        ),
        Claim(
            f"{graded.name}: the nDCG@10 of {JOINT} does not rise after the first quarter.",
            bool(np.mean(late) <= 0.005),
            f"last quarter less second quarter: {format_spread(np.array(late))}",
        ),
        *(claim_better(graded, grid, ONLINE, name, JOINT) for name in READINGS),
    ]


def _propensities(graded: Graded, grid: Grid) -> StudyFigure:
    panels = [
        specs.add_title(upe_charts.draw_by_position(grid[ONLINE, name], _POSITIONS), name)
        for name in (JOINT, *READINGS)
    ]
    return StudyFigure(
        f"{graded.name}-propensities",
        f"{graded.name}: propensities of positions 1, 2, 3 and 9 against position 10 as training goes on, on a log "
        f"scale; the truth is {', '.join(_TRUTHS)}.",
        specs.place_side_by_side(*panels),
    )


def _ranking(graded: Graded, grid: Grid) -> StudyFigure:
    return StudyFigure(
        f"{graded.name}-ranking",
        f"{graded.name}: nDCG@10 on the test queries as training goes on; median over seeds, bands from the least to "
        "the largest.",
        upe_charts.draw_ranking(grid, ONLINE, (JOINT, *READINGS)),
    )
