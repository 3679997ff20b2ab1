"""Figure 3 of the UPE paper: estimated propensities and rankings under a weak and a strong logging policy.

Beside the paper's two policies a third: the strong one with a little variation, so that documents stand at more than
one position. That is what identifies propensities."""

from __future__ import annotations

import numpy as np

from elute.reporting.charts import specs
from elute_reproduce.result import Claim, ComparedValue, Reproduction, StudyFigure
from elute_reproduce.study import Study
from elute_reproduce.upe.experiment.grid import Grid, collect_runs
from elute_reproduce.upe.experiment.learners import DLA, FIGURE, FITTED, RANDOM, READINGS
from elute_reproduce.upe.experiment.worlds import NOISE, RANKINGS, STRONG, VARIED, WEAK, Graded, load_graded_sets
from elute_reproduce.upe.presentation import charts as upe_charts
from elute_reproduce.upe.presentation.tables import (
    MERGED,
    SOURCE,
    TRUTH,
    claim_close,
    claim_covered,
    curve_rows,
    describe_fit,
    describe_settings,
    describe_small_sets,
    format_spread,
    ratios,
    standard_error,
)

_POLICIES = (WEAK, STRONG, VARIED)
_SHOWN = (RANDOM, FITTED, *READINGS, DLA)


def run(study: Study) -> Reproduction:
    """All policies and learners of the figure, on every set."""
    sets = load_graded_sets(study.data)
    grids = [collect_runs(study, one, [(p, name) for p in _POLICIES for name in FIGURE]) for one in sets]
    pairs = list(zip(sets, grids, strict=True))
    return Reproduction(
        name="upe-figure3",
        title="Figure 3: propensities under weak and strong logging policies",
        source=f"{SOURCE}, Figure 3; {', '.join(one.name for one in sets)}",
        settings=(
            *describe_settings(study, sets, grids),
            f"`{VARIED}`: each query has {RANKINGS} rankings by the strong policy, with noise of {NOISE} standard "
            "deviations of its scores, instead of one.",
        ),
        compared=[entry for one, grid in pairs for entry in _rows(one, grid)],
        claims=[claim for one, grid in pairs for claim in _claims(one, grid)],
        figures=[_figure(one, grid) for one, grid in pairs],
        reading=_reading(pairs),
    )


def _rows(graded: Graded, grid: Grid) -> list[ComparedValue]:
    return [
        entry
        for (policy, learner), own in grid.items()
        for entry in curve_rows({"data": graded.name, "policy": policy, "learner": learner}, own, (1, 2, 3, 5))
    ]


def _claims(graded: Graded, grid: Grid) -> list[Claim]:
    weak, strong = (ratios(grid[policy, DLA]) for policy in (WEAK, STRONG))
    ranked = {policy: np.array([one.mean("nDCG@10") for one in grid[policy, DLA]]) for policy in (WEAK, STRONG)}
    return [
        Claim(
            f"{graded.name}: under a strong policy {DLA} overestimates p₁/p₁₀ (truth {TRUTH:.1f}).",
            bool(strong.mean() - 2 * standard_error(strong) > TRUTH),
            format_spread(strong),
        ),
        Claim(
            f"{graded.name}: {DLA} is further above the truth under the strong policy than under the weak one.",
            bool(strong.mean() > weak.mean() and abs(weak.mean() - TRUTH) < abs(strong.mean() - TRUTH)),
            f"strong {format_spread(strong)}, weak {format_spread(weak)}",
        ),
        Claim(
            f"{graded.name}: {DLA} ranks worse under the strong policy than under the weak one.",
            bool(ranked[STRONG].mean() + 2 * standard_error(ranked[STRONG]) < ranked[WEAK].mean()),
            f"nDCG@10: strong {format_spread(ranked[STRONG])}, weak {format_spread(ranked[WEAK])}",
        ),
        *(claim_close(graded, grid, policy, name) for policy in (WEAK, STRONG) for name in (*READINGS, RANDOM, FITTED)),
        *(claim_close(graded, grid, VARIED, name) for name in (DLA, *READINGS, FITTED)),
        claim_covered(graded, grid, VARIED),
    ]


def _figure(graded: Graded, grid: Grid) -> StudyFigure:
    panels = [specs.add_title(upe_charts.draw_curves(grid, policy, _SHOWN), policy) for policy in _POLICIES]
    return StudyFigure(
        graded.name,
        f"{graded.name}: propensities against position 10, on a log scale; median over seeds, bands from the least to "
        "the largest. Where the truth is hidden, `ipw-random` or `elute` lie on it. Curves below 1 are turned over.",
        specs.place_side_by_side(*panels),
    )


def _reading(pairs: list[tuple[Graded, Grid]]) -> list[str]:
    notes = "; ".join(describe_fit(one, grid, policy) for one, grid in pairs for policy in _POLICIES)
    return [
        f"The log behind `elute`. {notes}. {MERGED}",
        "A single fixed list a query shows every document at one position only. Then no method that looks at clicks "
        "alone can tell its relevance from its position; joint learners seem to by what their network assumes. A "
        "little variation is enough.",
        "Right propensities are no guarantee of a right ranking. Under a strong policy a ranker sees only the ten "
        "documents that were ranked best, and learns to tell these apart, not to tell them from those never "
        "shown; there even `naive` can rank better than `ipw-random`.",
        *filter(None, [describe_small_sets([one for one, _ in pairs])]),
    ]
