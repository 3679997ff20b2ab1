"""Table 2 of the UPE paper: learners under offline learning (Off) from a weak policy's lists."""

from __future__ import annotations

from elute_reproduce.result import Reproduction
from elute_reproduce.study import Study
from elute_reproduce.upe.published import TABLE2
from elute_reproduce.upe.ranked import ranked
from elute_reproduce.upe.worlds import WEAK


def run(study: Study) -> Reproduction:
    """All learners, on every set."""
    return ranked(study, "upe-table2", "Table 2: learners with offline learning", WEAK, TABLE2)
