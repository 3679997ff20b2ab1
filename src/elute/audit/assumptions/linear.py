"""Do the lines go through the origin? Under p = r(x)·o(t) the click rates of items shown under two factors lie on a
line through the origin; under the affine model α_t·r(x) + β_t (trust bias, Eq. 5 of the limits paper) on a line that
need not. Both rates are noisy, so no regression of one on the other can tell: it is tested as an interaction of
factors with 1/r at the fit of r·o, where noise in relevance has no say (`elute.audit.assumptions.interaction`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from scipy.stats import chi2

from elute.audit.assumptions.finding import Finding, holm, number, untestable, verdict
from elute.audit.assumptions.interaction import LARGEST, Score, interaction
from elute.audit.assumptions.null import STANDARD, Drawing, Null, take
from elute.estimate.problem import Floats
from elute.factors import describe, rows

NAME = "linear"

FEWEST = 10
"""Items that a pair of factors must share to be looked at by itself."""

MOST_PAIRS = 200
"""Pairs looked at by themselves: those that share the most items."""


def linear(null: Null, factors: pa.Table, drawing: Drawing = STANDARD) -> Finding:
    """Test all factors at once, then pairs by themselves. `effect`: the largest offset of a pair, in click rate."""
    found = None
    if len(null.o) <= LARGEST and len(null.items) > 1:
        z = inverse_relevance(null)[:, None]
        found = interaction(null, z, drawing, "linear")
    if found is None:
        return untestable(
            NAME,
            "Whether click rates are proportional to relevance cannot be tested: it takes two items or more of "
            "different relevance shown under the same two factors.",
            "Show more items under the same pairs of factors, or merge factors (elute repair), then audit again.",
        )
    evidence = pairs(null, factors)
    worst = evidence[0] if evidence else None
    effect = abs(worst["offset"]) if worst else None
    if verdict(found.p_value) == "holds":
        return Finding(
            NAME,
            "holds",
            found.p_value,
            effect,
            f"Click rates are proportional between factors: no offset is seen ({number(found.p_value)}).",
            "Go on with elute fit --model pbm.",
            evidence,
        )
    where = ""
    if worst and worst["p_value"] <= 0.05:
        where = (
            f"; most between {worst['a']} and {worst['b']}, where the former has {worst['offset']:+.3f} ± "
            f"{worst['se']:.3f} more clicks an impression than its ratio explains"
        )
    return Finding(
        NAME,
        "rejected",
        found.p_value,
        effect,
        f"Click rates are not proportional between factors ({number(found.p_value)}){where}.",
        "If 'affine' holds, fit with --model affine: inverse propensities alone leave a bias.",
        evidence,
    )


def inverse_relevance(null: Null) -> Floats:
    """1/r by item, shrunk by one click at the mean relevance; the mean is 1. It depends on an item's clicks almost
    through their number alone, which draws leave as it is."""
    clicks = np.bincount(null.item, null.cells.clicks)
    exposure = clicks / null.r
    shrunk = (exposure + exposure.sum() / clicks.sum()) / (clicks + 1)
    return np.asarray(shrunk / shrunk.mean())


def pairs(null: Null, factors: pa.Table) -> list[dict[str, Any]]:
    """For pairs of factors, from the items they share: the offset of the first, its standard error and the p-value of
    no offset, corrected for the number of pairs (Holm); least p-value first."""
    found = []
    for s, t, shared in _most_shared(null):
        keep = np.isin(null.cells.factor, (s, t))
        shared &= np.bincount(null.item[keep], null.cells.clicks[keep], len(shared)) > 0
        keep &= shared[null.item]
        two = Null(take(null.cells, keep), null.items[shared], null.o)
        z = inverse_relevance(two)
        scale = float(np.average(two.r * z))
        score = Score(two, z[:, None])
        if score.freedom != 1:
            continue
        white = float(score.whitened(two.cells)[0])
        difference = score.root[s, 0] - score.root[t, 0]
        unit = null.o[s] * scale
        found.append((s, t, white * difference * unit, abs(difference) * unit, float(chi2.sf(white**2, 1))))
    if not found:
        return []
    corrected = holm(np.array([row[4] for row in found]))
    names = [describe(row) for row in rows(factors, range(factors.num_rows))]
    out = [
        {"a": names[s], "b": names[t], "offset": offset, "se": se, "p_value": float(p)}
        for (s, t, offset, se, _), p in zip(found, corrected, strict=True)
    ]
    return [out[i] for i in np.argsort([row[4] for row in found], kind="stable")]


def _most_shared(null: Null) -> list[tuple[int, int, np.ndarray]]:
    """The pairs of factors that share the most items, with those items."""
    seen = np.zeros((len(null.items), len(null.o)), np.bool_)
    seen[null.item, null.cells.factor] = True
    common = np.triu(seen.T.astype(np.float64) @ seen, 1)
    s, t = np.nonzero(common >= FEWEST)
    best = np.argsort(-common[s, t], kind="stable")[:MOST_PAIRS]
    return [(int(s[i]), int(t[i]), seen[:, s[i]] & seen[:, t[i]]) for i in best]
