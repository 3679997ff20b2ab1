"""What Tables 1 and 2 of the UPE paper share: all learners under one paradigm, by nDCG and ERR."""

from __future__ import annotations

from elute_reproduce.result import Claim, Reproduction
from elute_reproduce.study import Study
from elute_reproduce.upe.grid import Grid, runs
from elute_reproduce.upe.learners import FITTED, RANDOM, READINGS, TABLE
from elute_reproduce.upe.published import Table
from elute_reproduce.upe.tables import (
    BETTER,
    LEVEL,
    MERGED,
    SOURCE,
    WORSE,
    against,
    beats,
    best_baseline,
    fitted_note,
    metric_rows,
    said,
    settings,
    unlike,
)
from elute_reproduce.upe.worlds import Graded, graded_sets

MARKS = (
    f"{BETTER} UPE or `elute` significantly better, {WORSE} worse, than the best learner that is neither and needs no "
    f"randomisation (Fisher's randomisation test over test queries, metrics averaged over seeds, p ≤ {LEVEL})."
)


def ranked(study: Study, name: str, title: str, paradigm: str, table: Table) -> Reproduction:
    """One of the two tables."""
    sets = graded_sets(study.data)
    grids = [runs(study, one, [(paradigm, learner) for learner in TABLE]) for one in sets]
    pairs = list(zip(sets, grids, strict=True))
    notes = "; ".join(fitted_note(one, grid, paradigm) for one, grid in pairs)
    return Reproduction(
        name=name,
        title=title,
        source=f"{SOURCE}, {title.split(':')[0]}; {', '.join(one.name for one in sets)}",
        settings=(*settings(study, sets, grids), MARKS),
        compared=[entry for one, grid in pairs for entry in metric_rows(one, grid, paradigm, table)],
        claims=[claim for one, grid in pairs for claim in _claims(one, grid, paradigm)],
        reading=[f"The log behind `elute`. {notes}. {MERGED}", *filter(None, [unlike(sets)])],
    )


def _claims(graded: Graded, grid: Grid, paradigm: str) -> list[Claim]:
    best = best_baseline(grid, paradigm, "nDCG@10")
    claims = [beats(graded, grid, paradigm, name, best) for name in (*READINGS, FITTED)]
    for name in (*READINGS, FITTED):
        found = against(grid, paradigm, name, RANDOM, "nDCG@10")
        claims.append(
            Claim(
                f"{graded.name}, {paradigm}: {name} is not significantly worse than {RANDOM} in nDCG@10.",
                not (found.difference < 0 and found.p_value <= LEVEL),
                said(found),
            )
        )
    return claims
