"""Is the fit the only one? Theorem 6.3 of the limits paper, as a finding (`elute.identify.consistency`)."""

from __future__ import annotations

import numpy as np

from elute.audit.assumptions.finding import Finding
from elute.counts import Counts
from elute.estimate.problem import Floats
from elute.identify.consistency import consistency

NAME = "unique fit"


def unique(counts: Counts, relevance: Floats, propensity: Floats) -> Finding:
    """Whether any other relevance fits as well. No p-value: it is a matter of where items were shown, not of chance.
    `effect`: the share of items that are not determined."""
    found = consistency(counts, np.nan_to_num(relevance), np.nan_to_num(propensity))
    share = float((~found.item_determined).mean())
    if found.consistent:
        return Finding(NAME, "holds", None, share, found.sentence, "Relevance can be compared across all items.")
    return Finding(
        NAME,
        "rejected",
        None,
        share,
        found.sentence,
        "elute repair (merge offline, or swap online) links what hangs loose; compare items within components only.",
    )
