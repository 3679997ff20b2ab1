"""Table 3 of the UPE paper: what the confounding effect is fitted to, logging scores or positions (Eq. 15)."""

from __future__ import annotations

from elute_reproduce.result import Reproduction
from elute_reproduce.study import Study
from elute_reproduce.upe.experiment.grid import collect_runs
from elute_reproduce.upe.experiment.learners import DCG, FITTED, MRR, RANDOM, UPE_TEXT
from elute_reproduce.upe.experiment.worlds import ONLINE, load_graded_sets
from elute_reproduce.upe.presentation.published import TABLE3
from elute_reproduce.upe.presentation.tables import (
    SOURCE,
    claim_better,
    claim_close,
    describe_settings,
    describe_small_sets,
    metric_rows,
)

_LEARNERS = (UPE_TEXT, MRR, DCG, RANDOM, FITTED)


def run(study: Study) -> Reproduction:
    """The three targets, with `ipw-random` and `elute` beside them, on every set."""
    sets = load_graded_sets(study.data)
    grids = [collect_runs(study, one, [(ONLINE, name) for name in _LEARNERS]) for one in sets]
    pairs = list(zip(sets, grids, strict=True))
    return Reproduction(
        name="upe-table3",
        title="Table 3: what UPE's confounding effect is fitted to",
        source=f"{SOURCE}, Table 3; {', '.join(one.name for one in sets)}",
        settings=describe_settings(study, sets, grids),
        compared=[entry for one, grid in pairs for entry in metric_rows(one, grid, ONLINE, TABLE3, marked=False)],
        claims=[
            *(claim_better(one, grid, ONLINE, UPE_TEXT, other) for one, grid in pairs for other in (MRR, DCG)),
            *(claim_close(one, grid, ONLINE, name) for one, grid in pairs for name in _LEARNERS),
        ],
        reading=[
            "Targets from positions are flatter than raw scores, so they take less away from the propensities; in this "
            "reading of UPE, which takes away too much, that helps.",
            *filter(None, [describe_small_sets(sets)]),
        ],
    )
