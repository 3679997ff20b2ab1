"""Table 1 of the UPE paper: learners under deterministic online learning (OnD)."""

from __future__ import annotations

from elute.reproduce.result import Reproduction
from elute.reproduce.study import Study
from elute.reproduce.upe_published import TABLE1
from elute.reproduce.upe_ranked import ranked
from elute.reproduce.upe_worlds import ONLINE


def run(study: Study) -> Reproduction:
    """All learners, on every set."""
    return ranked(study, "upe-table1", "Table 1: learners with deterministic online learning", ONLINE, TABLE1)
