"""Do the lines go through the origin? Under p = r(x)·o(t) the click rates of items shown under two factors lie on a
line through the origin; under the affine model α_t·r(x) + β_t (trust bias, Eq. 5 of the limits paper) on a line that
need not. Both rates are noisy, so no regression of one on the other can tell: it is tested as an interaction of
factors with 1/r at the fit of r·o, where noise in relevance has no say (`elute.auditing.assumptions.interaction`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from scipy.sparse import csr_array
from scipy.special import chdtrc, ndtr

from elute.auditing.assumptions.finding import LEVEL, Finding, Panel, decide, format_p_value, holm, report_untestable
from elute.auditing.assumptions.interaction import LARGEST, Interaction, Score, assess_interaction
from elute.auditing.assumptions.lines import Line, fit_best_line
from elute.auditing.assumptions.null import STANDARD, Drawing, Null
from elute.auditing.assumptions.panels import SHOWN, draw_two_factors, select_shared_items
from elute.cells.factors import describe, to_rows
from elute.estimate.solve.problem import Floats

NAME = "linear"

FEWEST = 10
"""Items that a pair of factors must share to be looked at by itself."""

MOST_PAIRS = 200
"""Pairs looked at by themselves: those that share the most items."""


def assess_linear(null: Null, factors: pa.Table, drawing: Drawing = STANDARD) -> Finding:
    """Test all factors at once, then pairs by themselves. `effect`: the largest offset of a pair, in click rate."""
    kept = null.find_most_clicked(LARGEST)
    some = null.restrict_to(kept)
    found = None
    if len(some.items) > 1:
        found = assess_interaction(some, inverse_relevance(some)[:, None], drawing, "linear")
    if found is None:
        return report_untestable(
            NAME,
            "Whether click rates are proportional to relevance cannot be tested: it takes two items or more of "
            "different relevance shown under the same two factors.",
            "Show more items under the same pairs of factors, or merge factors (elute repair), then audit again.",
        )
    names = [describe(row) for row in to_rows(factors, kept)]
    pairs = find_offsets(some, max(found.design_effect or 1.0, 1.0))
    evidence: list[dict[str, Any]] = [
        {"a": names[at.a], "b": names[at.b], "offset": at.line.intercept, "se": at.line.se, "p_value": at.p_value}
        for at in pairs
    ]
    panels = [_draw_panel(some, at, (names[at.a], names[at.b])) for at in pairs[:SHOWN]]
    by_factor = _list_factor_offsets(some, found, names)
    worst = evidence[0] if evidence else None
    effect = abs(worst["offset"]) if worst else None
    used = len(np.unique(null.cells.factor))
    among = "" if used <= LARGEST else f" among the {LARGEST:,} most clicked of {used:,} factors"
    if decide(found.p_value) == "holds":
        return Finding(
            NAME,
            "holds",
            found.p_value,
            effect,
            f"Click rates are proportional between factors: no offset is seen{among} "
            f"({format_p_value(found.p_value)}).",
            "Go on with elute fit --model pbm.",
            evidence,
            by_factor,
            panels,
            design_effect=found.design_effect,
        )
    where = ""
    if worst and worst["p_value"] <= LEVEL:
        where = (
            f"; most between {worst['a']} and {worst['b']}, where the former has {worst['offset']:+.3f} ± "
            f"{worst['se']:.3f} more clicks an impression than its ratio explains"
        )
    return Finding(
        NAME,
        "rejected",
        found.p_value,
        effect,
        f"Click rates are not proportional between factors{among} ({format_p_value(found.p_value)}){where}.",
        "If 'affine' holds, fit with --model affine: inverse propensities alone leave a bias.",
        evidence,
        by_factor,
        panels,
        design_effect=found.design_effect,
    )


def inverse_relevance(null: Null) -> Floats:
    """1/r by item, r being clicks over Σ n·o, shrunk by one click at the mean relevance; the mean is 1. It depends on
    an item's clicks through their number alone, which draws leave as it is. (The best r also depends on where they
    fell: on sparse logs the test then found its own noise.)"""
    clicks = np.bincount(null.item, null.cells.clicks)
    exposure = np.bincount(null.item, null.cells.impressions * null.o[null.cells.factor])
    shrunk = (exposure + exposure.sum() / clicks.sum()) / (clicks + 1)
    return np.asarray(shrunk / shrunk.mean())


class Offset(NamedTuple):
    """Of a pair of factors: the intercept of the best line of the first's click rates on the second's, and the
    p-value of its being 0, corrected for the number of pairs (Holm)."""

    a: int
    b: int
    line: Line
    p_value: float


def find_offsets(null: Null, dispersion: float = 1.0) -> list[Offset]:
    """For pairs of factors, from the items they share; least p-value first. `dispersion`: the variance of clicks over
    that of independent ones."""
    found: list[Offset] = []
    for s, t in _find_most_shared(null):
        two = null.restrict_to(np.array([s, t]))
        if len(two.items) < FEWEST:
            continue
        score = Score(two, inverse_relevance(two)[:, None])
        if score.freedom == 1:
            line = _fit_line(two)
            line = line._replace(se=line.se * dispersion**0.5)
            white = float(score.whiten(two.score(two.cells))[0])
            found.append(Offset(s, t, line, float(chdtrc(1, white**2 / dispersion))))
    p = np.array([offset.p_value for offset in found])
    corrected = holm(p)
    return [found[i]._replace(p_value=float(corrected[i])) for i in np.argsort(p, kind="stable")]


def _fit_line(two: Null) -> Line:
    """Of the first factor's click rates on the second's. Variances are those of r·o."""
    n, c = select_shared_items(two.cells, 0, 1)
    y, x = c / n
    p = np.clip(two.r * two.o[:, None], 1 / (n + 2), 1 - 1 / (n + 2))
    return fit_best_line(x, y, p[1] * (1 - p[1]) / n[1], p[0] * (1 - p[0]) / n[0])


def _list_factor_offsets(null: Null, found: Interaction, names: list[str]) -> list[dict[str, Any]]:
    """The offset of every factor in standard errors, and the corrected p-value (Holm); least p-value first.

    Offsets are known only up to one common number (relevance has no origin): they are against the factor in the
    middle, so that where few factors have one, these are the ones that show."""
    b, covariance = found.estimate[0], found.covariance
    order = np.argsort(b, kind="stable")
    middle = int(order[(len(b) - 1) // 2])
    own = np.diagonal(covariance)
    se = np.sqrt(np.maximum(own + own[middle] - 2 * covariance[middle], 0.0))
    known = np.flatnonzero((se > 0) & (null.component == null.component[middle]))
    z = (b[known] - b[middle]) / se[known]
    p = 2 * ndtr(-np.abs(z))
    corrected = holm(p) if len(p) else p
    return [
        {
            "factor": names[t],
            "against": names[middle],
            "standard_errors": float(z[i]),
            "p_value": float(corrected[i]),
        }
        for i, t in ((i, int(known[i])) for i in np.argsort(p, kind="stable"))
    ]


def _find_most_shared(null: Null) -> list[tuple[int, int]]:
    """The pairs of factors that share the most items."""
    shape = len(null.items), len(null.o)
    seen = csr_array((np.ones(len(null.item)), (null.item, null.cells.factor)), shape=shape)
    common = (seen.T @ seen).tocoo()
    pair = (common.row < common.col) & (common.data >= FEWEST)
    s, t, shared = common.row[pair], common.col[pair], common.data[pair]
    best = np.lexsort((t, s, -shared))[:MOST_PAIRS]
    return [(int(s[i]), int(t[i])) for i in best]


def _draw_panel(null: Null, at: Offset, names: tuple[str, str]) -> Panel:
    """Items of two factors, with the line through the origin and the best line of any offset."""
    lines = {
        "through the origin (r·o)": (0.0, float(null.o[at.a] / null.o[at.b])),
        "best line (affine)": (at.line.intercept, at.line.slope),
    }
    return draw_two_factors(null.restrict_to(np.array([at.a, at.b])).cells, 0, 1, names, lines)
