"""Table 2 of the UPE paper: learners under offline learning (Off) from a weak policy's lists."""

from __future__ import annotations

from elute.reproduce.result import Reproduction
from elute.reproduce.study import Study
from elute.reproduce.upe_published import TABLE2
from elute.reproduce.upe_ranked import ranked
from elute.reproduce.upe_worlds import WEAK


def run(study: Study) -> Reproduction:
    """All learners, on every set."""
    return ranked(study, "upe-table2", "Table 2: learners with offline learning", WEAK, TABLE2)
