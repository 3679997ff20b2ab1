"""How many worlds and draws, and shares of verdicts over them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from elute.auditing.assumptions import Finding
from elute.estimate.solve.problem import Floats

WORLDS_A_SEED = 20
MORE = 5
"""Times as many worlds where something holds: sizes are told from 5% only by many."""

REPLICATES = 39
"""Draws a test: of 39, as of 99 or 199, the level is exactly 0.05; more only add power."""


def read_verdicts(findings: Sequence[Finding]) -> dict[str, float]:
    """By test: 1 where rejected, 0 where it holds, NaN where untestable."""
    share = {"rejected": 1.0, "holds": 0.0, "untestable": np.nan}
    return {finding.name: share[finding.verdict] for finding in findings}


def share_rejected(verdicts: Floats) -> float:
    """Of worlds where it could be tested; -1 where it never could."""
    known = verdicts[~np.isnan(verdicts)]
    return float(known.mean()) if len(known) else -1.0
