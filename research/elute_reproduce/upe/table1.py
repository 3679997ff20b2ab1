"""Table 1 of the UPE paper: learners under deterministic online learning (OnD)."""

from __future__ import annotations

from elute_reproduce.result import Reproduction
from elute_reproduce.study import Study
from elute_reproduce.upe.published import TABLE1
from elute_reproduce.upe.ranked import ranked
from elute_reproduce.upe.worlds import ONLINE


def run(study: Study) -> Reproduction:
    """All learners, on every set."""
    return ranked(study, "upe-table1", "Table 1: learners with deterministic online learning", ONLINE, TABLE1)
