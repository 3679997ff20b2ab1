"""Which learner finds the propensities? The question of Figure 3 of the UPE paper, on a synthetic set that is large
enough to tell learners apart, with other readings of UPE. Ours; nothing is published for it."""

from __future__ import annotations

import numpy as np

from elute.reporting.charts import specs
from elute_reproduce.result import Claim, ComparedValue, Reproduction, StudyFigure
from elute_reproduce.study import Study
from elute_reproduce.upe.experiment.grid import Grid, collect_runs
from elute_reproduce.upe.experiment.learners import DLA, FIGURE, FITTED, NAIVE, RANDOM, READINGS, TRUE, UPE_PUBLIC
from elute_reproduce.upe.experiment.worlds import (
    ONLINE,
    STRONG,
    VARIED,
    WEAK,
    Graded,
    load_graded_sets,
    make_synthetic_set,
)
from elute_reproduce.upe.presentation import charts as upe_charts
from elute_reproduce.upe.presentation import law
from elute_reproduce.upe.presentation.tables import (
    MERGED,
    SOURCE,
    TRUTH,
    claim_better,
    claim_close,
    claim_covered,
    describe_fit,
    describe_settings,
    ratios,
)

SEEDS = 3
_MORE = (TRUE, "rem", "vectorization")
_SHOWN = (RANDOM, FITTED, *READINGS, DLA)
_POLICIES = (
    "Both policies score documents by a mixture of what makes their grades and of noise, the same for every seed: "
    "nDCG@10 of about .54 (weak) and .91 (strong)."
)
_PARADIGMS = (WEAK, STRONG, VARIED, ONLINE)


def run(study: Study) -> Reproduction:
    """The learners of Figure 3 everywhere, and some more under fixed lists."""
    graded = make_synthetic_set()
    cells = [(policy, name) for policy in (STRONG, WEAK) for name in (*FIGURE, *_MORE)]
    cells += [(paradigm, name) for paradigm in (VARIED, ONLINE) for name in FIGURE]
    grid = collect_runs(study, graded, cells, most=SEEDS)
    others = [] if study.data is None else load_graded_sets(study.data)
    laws = law.solve_law(graded, grid)
    for other in others:
        laws += law.solve_law(other, collect_runs(study, other, law.CELLS, most=SEEDS))
    return Reproduction(
        name="upe-propensities",
        title="UPE: which learner finds the propensities?",
        source=f"The question of Figure 3 of {SOURCE}; a synthetic set, not its data",
        settings=(
            *describe_settings(study, [graded], [grid], SEEDS, _POLICIES),
            "The law of UPE (below) is solved for the lists and the dual-learning curves of these trainings"
            + (f", and for those of {', '.join(other.name for other in others)} (Figure 3)." if others else "."),
        ),
        compared=_rows(grid),
        claims=[*_claims(graded, grid), *law.claim_law(laws)],
        figures=[
            StudyFigure(
                "curves",
                "Propensities against position 10, on a log scale; median over seeds, bands from the least to the "
                "largest. Where the truth is hidden, `ipw-random` or `elute` lie on it.",
                specs.place_side_by_side(
                    *(
                        specs.add_title(upe_charts.draw_curves(grid, paradigm, _SHOWN), paradigm)
                        for paradigm in _PARADIGMS
                    )
                ),
            ),
            law.draw(laws),
        ],
        reading=[*_read_law(laws), *_reading(graded, grid)],
    )


def _rows(grid: Grid) -> list[ComparedValue]:
    rows = []
    for learner in (*FIGURE, *_MORE):
        for paradigm in _PARADIGMS:
            if own := grid.get((paradigm, learner)):
                values = {"p₁/p₁₀": ratios(own).tolist(), "nDCG@10": [one.mean("nDCG@10") for one in own]}
                for name, measured in values.items():
                    rows.append(ComparedValue({"learner": learner, "quantity": f"{paradigm}: {name}"}, tuple(measured)))
    return rows


def _claims(graded: Graded, grid: Grid) -> list[Claim]:
    return [
        *(claim_close(graded, grid, policy, DLA) for policy in (WEAK, STRONG)),
        *(claim_close(graded, grid, policy, name) for policy in (WEAK, STRONG) for name in READINGS),
        *(
            claim_close(graded, grid, paradigm, name)
            for paradigm in (VARIED, ONLINE)
            for name in (DLA, *READINGS, FITTED)
        ),
        *(claim_covered(graded, grid, paradigm) for paradigm in (VARIED, ONLINE)),
        *(claim_better(graded, grid, paradigm, FITTED, DLA) for paradigm in (VARIED, ONLINE)),
        *(claim_better(graded, grid, policy, TRUE, NAIVE) for policy in (WEAK, STRONG)),
    ]


def _read_law(laws: list[law.Law]) -> list[str]:
    return [
        "**Why UPE cannot.** Let s be the frozen confounding effect of a document and b_k the part of a position. "
        "The second stage (Eq. 13) is at its optimum where Σ_q softmax(s + b)_k = Q · softmax(y^p)_k, whatever the "
        "encoder, the optimiser or the rate. The first (Eq. 10) makes s the logging policy's score, up to a "
        "constant in each list. So, every document put at every position (Eq. 6d), log UPE_k is about log DLA_k − "
        "E[τ · score | k], with τ = 1 for the scores as they are. Nothing in the losses ties that scale to clicks: "
        "a policy with doubled scores shows the same lists, gets the same clicks, and has other propensities.",
        law.tabulate(laws),
        "Medians over seeds, solved exactly (`research/elute_reproduce/upe/exact.py`) but for DLA and `upe, in "
        "stages`, which are trained: 500 steps of each stage, every 2,500. Where these are not near the exact "
        "solution, their own y^p is not that of a separate DLA, or their network does not add what the law adds: "
        "[upe-readings](upe-readings.md) has trainings of which it is the latter.",
        "Documents at their own positions, as Eq. 7 is printed, return the confounded target: UPE is DLA. The true "
        "log r as the score does not help, since dual learning has divided by relevance already. With raw clicks as "
        "the target it does, exactly: it is clicks that must be adjusted for the score, not what dual learning made "
        "of them. [score-adjusted](score-adjusted.md) does that.",
        "**Readings.** Those that are not on this page, trained smaller and beside their exact solutions on "
        "[upe-readings](upe-readings.md): y^p from a separate DLA with a ranker of its own; online learning started "
        "from a random ranker; the first public version's encoder, a transformer of two layers, with its optimisers "
        "made anew at every step; rates by learner.",
    ]


def _describe_errors(grid: Grid) -> str:
    """Which reading is the least wrong."""

    def error(learner: str) -> float:
        found = [np.log(ratios(grid[paradigm, learner]) / TRUTH) for paradigm in _PARADIGMS]
        return float(np.mean(np.abs(np.concatenate(found))))

    errors = {learner: error(learner) for learner in (*READINGS, DLA)}
    best = min(READINGS, key=lambda reading: errors[reading])
    return (
        "Mean of |log p₁/p₁₀ − log truth| over the four ways of logging: "
        + ", ".join(f"`{name}` {value:.2f}" for name, value in errors.items())
        + f". The least wrong reading is `{best}`; `elute train --learner upe` takes `{UPE_PUBLIC}`."
    )


def _reading(graded: Graded, grid: Grid) -> list[str]:
    notes = "; ".join(describe_fit(graded, grid, paradigm) for paradigm in _PARADIGMS)
    return [
        f"The log behind `elute`. {notes}. {MERGED}",
        _describe_errors(grid),
        "Joint learning overestimates the first positions under the strong policy and hardly under the weak one, as "
        "the paper says. No reading of UPE that we tried repairs it; when its stages are trained changes most.",
        "Other readings, on this set with 4 seeds and both losses in every step (`python -m benchmarks.neural --study "
        "--seeds 4 --only upe`): which quantity the backdoor adjustment averages (logit, probability, exponentiated "
        "logit) changes nothing; propensities as targets in place of their logits give p₁/p₁₀ = 0.29 (strong) and "
        "0.21 (weak), their ratios 0.16 and 0.11.",
        "Where documents stand at more than one position, whoever put them there, the fixed-effect fit finds the "
        "propensities and says how precisely. Under a strong policy that does little for nDCG: the ranker without any "
        "correction does as well as the one with the true propensities.",
    ]
