"""Table 2 of the UPE paper: learners under offline learning (Off) from a weak policy's lists."""

from __future__ import annotations

from elute_reproduce.result import Reproduction
from elute_reproduce.study import Study
from elute_reproduce.upe.experiment.worlds import WEAK
from elute_reproduce.upe.presentation.learner_tables import compare_learners
from elute_reproduce.upe.presentation.published import TABLE2


def run(study: Study) -> Reproduction:
    """All learners, on every set."""
    return compare_learners(study, "upe-table2", "Table 2: learners with offline learning", WEAK, TABLE2)
