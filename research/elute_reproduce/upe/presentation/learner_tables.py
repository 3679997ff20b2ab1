"""What Tables 1 and 2 of the UPE paper share: all learners under one paradigm, by nDCG and ERR."""

from __future__ import annotations

from elute_reproduce.result import Claim, Reproduction
from elute_reproduce.study import Study
from elute_reproduce.upe.experiment.grid import Grid, collect_runs
from elute_reproduce.upe.experiment.learners import FITTED, RANDOM, READINGS, TABLE
from elute_reproduce.upe.experiment.worlds import Graded, load_graded_sets
from elute_reproduce.upe.presentation.published import Table
from elute_reproduce.upe.presentation.tables import (
    BETTER,
    LEVEL,
    MERGED,
    SOURCE,
    WORSE,
    claim_better,
    compare,
    describe_fit,
    describe_settings,
    describe_small_sets,
    find_best_baseline,
    format_difference,
    metric_rows,
)

MARKS = (
    f"{BETTER} UPE or `elute` significantly better, {WORSE} worse, than the best learner that is neither and needs no "
    f"randomisation (Fisher's randomisation test over test queries, metrics averaged over seeds, p ≤ {LEVEL})."
)


def compare_learners(study: Study, name: str, title: str, paradigm: str, table: Table) -> Reproduction:
    """One of the two tables."""
    sets = load_graded_sets(study.data)
    grids = [collect_runs(study, one, [(paradigm, learner) for learner in TABLE]) for one in sets]
    pairs = list(zip(sets, grids, strict=True))
    notes = "; ".join(describe_fit(one, grid, paradigm) for one, grid in pairs)
    return Reproduction(
        name=name,
        title=title,
        source=f"{SOURCE}, {title.split(':')[0]}; {', '.join(one.name for one in sets)}",
        settings=(*describe_settings(study, sets, grids), MARKS),
        compared=[entry for one, grid in pairs for entry in metric_rows(one, grid, paradigm, table)],
        claims=[claim for one, grid in pairs for claim in _claims(one, grid, paradigm)],
        reading=[f"The log behind `elute`. {notes}. {MERGED}", *filter(None, [describe_small_sets(sets)])],
    )


def _claims(graded: Graded, grid: Grid, paradigm: str) -> list[Claim]:
    best = find_best_baseline(grid, paradigm, "nDCG@10")
    claims = [claim_better(graded, grid, paradigm, name, best) for name in (*READINGS, FITTED)]
    for name in (*READINGS, FITTED):
        found = compare(grid, paradigm, name, RANDOM, "nDCG@10")
        claims.append(
            Claim(
                f"{graded.name}, {paradigm}: {name} is not significantly worse than {RANDOM} in nDCG@10.",
                not (found.difference < 0 and found.p_value <= LEVEL),
                format_difference(found),
            )
        )
    return claims
