"""Table 1 of the UPE paper: learners under deterministic online learning (OnD)."""

from __future__ import annotations

from elute_reproduce.result import Reproduction
from elute_reproduce.study import Study
from elute_reproduce.upe.experiment.worlds import ONLINE
from elute_reproduce.upe.presentation.learner_tables import compare_learners
from elute_reproduce.upe.presentation.published import TABLE1


def run(study: Study) -> Reproduction:
    """All learners, on every set."""
    return compare_learners(study, "upe-table1", "Table 1: learners with deterministic online learning", ONLINE, TABLE1)
