"""Is any affine model left standing? Counterfactual estimates can only be unbiased where click probability is an affine
function of relevance (Theorem 5.5 and Corollaries 5.6 to 5.8 of the limits paper). Relevance is not known, but under
α_t·r(x) + β_t the click rates of items under two factors lie on one line, and under many factors on one line in many
dimensions: what is left beside the best line, with errors in every coordinate, is compared with what chance leaves.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincc

from elute.auditing.assumptions.draws.clusters import ClusterRows
from elute.auditing.assumptions.finding import (
    Finding,
    Panel,
    decide,
    exceedance,
    find_design_effect,
    format_p_value,
    holm,
    report_untestable,
)
from elute.auditing.assumptions.lines import FittedLines, fit_lines
from elute.auditing.assumptions.null import STANDARD, Drawing, take_cells
from elute.auditing.assumptions.panels import SHOWN, draw_two_factors
from elute.cells.counts import Cells, Counts
from elute.cells.factors import describe, to_rows
from elute.estimate.solve.problem import Floats
from elute.kernels.forest import connect_cells

NAME = "affine"

FILLED = 5.0
"""The least variance n·p·(1-p) of a cell's clicks, at its factor's click rate: normal errors are far off below."""

FEWEST = 3
"""Items a factor must have: two fix its line."""


class FilledCells(NamedTuple):
    """Cells filled well enough, under factors with items enough."""

    cells: Cells
    freedom: int
    kept: NDArray[np.bool_]
    """Which of the counts' cells these are."""


def assess_affine(counts: Counts, propensity: Floats, drawing: Drawing = STANDARD) -> Finding:
    """Test the best affine model against any. `propensity`: of a fit of r·o, where the search for the lines starts.

    `effect`: the typical distance of a cell's click rate from its line, beyond chance."""
    cells, freedom, kept = select_filled(counts)
    if freedom <= 0:
        return report_untestable(
            NAME,
            "Whether clicks are affine in relevance cannot be tested: it takes three items or more under the same two "
            f"factors, each cell with about {FILLED:.0f} clicks and as many impressions without one.",
            "Collect more clicks, show more items under the same factors, or give labels, then audit again.",
        )
    fit = fit_lines(cells, *start_lines(cells, propensity))
    p = np.clip(fit.probability(cells), 0.0, 1.0)
    rows = None if drawing.clusters is None else drawing.clusters.place(counts).take(kept)
    drawn = np.empty((drawing.replicates, len(fit.squares)))
    for replicate, clicks in enumerate(_draw_clicks(cells, fit, p, rows, drawing)):
        drawing.progress("affine", replicate + 1, drawing.replicates)
        drawn[replicate] = fit_lines(cells._replace(clicks=clicks), *fit[:3]).squares
    total = float(fit.squares.sum())
    value = exceedance(total, drawn.sum(axis=1))
    excess = max(total - float(drawn.sum(axis=1).mean()), 0.0)
    n = cells.impressions.astype(np.float64)
    precision = n / np.clip(p * (1 - p), 1 / (n + 2), None)
    dispersion = find_design_effect(rows, drawn.sum(axis=1), freedom)
    effect = float(np.sqrt(excess / (precision.sum() * freedom / len(n))))
    by_factor = _rank_factors(fit, drawn)
    names = [describe(row) for row in to_rows(counts.factors, range(counts.n_factors))]
    evidence = [
        {"factor": names[t], "squares": squares, "expected": expected, "p_value": p}
        for t, squares, expected, p in by_factor
    ]
    panels = _draw_panels(cells, fit, [t for t, *_ in by_factor], names)
    if decide(value) == "holds":
        return Finding(
            NAME,
            "holds",
            value,
            effect,
            f"Click rates lie on lines, as they must if clicks are affine in relevance ({format_p_value(value)}, "
            f"{freedom:,} degrees of freedom).",
            "Counterfactual estimates can be unbiased here: --model pbm where 'linear' holds, else --model affine.",
            evidence,
            panels=panels,
            design_effect=dispersion,
        )
    return Finding(
        NAME,
        "rejected",
        value,
        effect,
        f"Clicks are not an affine function of any relevance ({format_p_value(value)}): click rates are off their "
        f"lines by a typical {effect:.3f} beyond chance, most under {evidence[0]['factor']}.",
        "No inverse propensity weighting can be unbiased here (Theorem 5.5): add to --bias what clicks depend on "
        "besides, or use a click model of whole pages.",
        evidence,
        panels=panels,
        design_effect=dispersion,
    )


def select_filled(counts: Counts) -> FilledCells:
    """The cells to test on, by impressions and by how often factors are clicked, never by an item's own clicks."""
    n = counts.n_factors
    shown, clicked = (np.bincount(counts.factor, amounts, n) for amounts in (counts.impressions, counts.clicks))
    rate = clicked / np.maximum(shown, 1)
    item = np.repeat(np.arange(counts.n_items), np.diff(counts.offsets))
    keep = counts.impressions * (rate * (1 - rate))[counts.factor] >= FILLED
    while True:
        items = np.bincount(counts.factor[keep], minlength=n)
        factors = np.bincount(item[keep], minlength=counts.n_items)
        fewer = keep & (items >= FEWEST)[counts.factor] & (factors > 1)[item]
        if (fewer == keep).all():
            break
        keep = fewer
    cells = take_cells(counts, keep)
    used = np.unique(cells.factor)
    parts = len(np.unique(connect_cells(cells.offsets, cells.factor, n)[used]))
    return FilledCells(cells, len(cells.factor) - (len(cells.offsets) - 1) - 2 * len(used) + 2 * parts, keep)


def _draw_clicks(
    cells: Cells, fit: FittedLines, p: Floats, rows: ClusterRows | None, drawing: Drawing
) -> Iterator[NDArray[Any]]:
    """Clicks on the lines and beside them as far as chance takes them: binomial, or by clusters, which may be any
    numbers."""
    rng, n = np.random.default_rng(drawing.seed), cells.impressions.astype(np.int64)
    if rows is None:
        yield from (rng.binomial(n, p).astype(np.uint64) for _ in range(drawing.replicates))
        return
    item = np.repeat(np.arange(len(cells.offsets) - 1), np.diff(cells.offsets))
    yield from (n * p + e for e in rows.flip(p, fit.alpha[cells.factor], item, rng, drawing.replicates))


def start_lines(cells: Cells, propensity: Floats) -> tuple[Floats, Floats, Floats]:
    """Lines through the origin, and every item where they put it."""
    o = np.where(np.isfinite(propensity) & (propensity > 0), propensity, 1e-3)
    item = np.repeat(np.arange(len(cells.offsets) - 1), np.diff(cells.offsets))
    exposure = np.bincount(item, cells.impressions * o[cells.factor])
    return o, np.zeros_like(o), np.bincount(item, cells.clicks) / exposure


def _rank_factors(fit: FittedLines, drawn: NDArray[np.float64]) -> list[tuple[int, float, float, float]]:
    """By factor, its squares, what chance would leave and how far from it that is: p-values by a gamma law with the
    draws' mean and variance (more than the draws alone could resolve), corrected for the number of factors (Holm).
    Least p-value first."""
    mean, variance = drawn.mean(axis=0), drawn.var(axis=0)
    used = np.flatnonzero(variance > 0)
    p = gammaincc(mean[used] ** 2 / variance[used], fit.squares[used] * mean[used] / variance[used])
    corrected = holm(p)
    return [
        (int(used[i]), float(fit.squares[used[i]]), float(mean[used[i]]), float(corrected[i]))
        for i in np.argsort(p, kind="stable")
    ]


def _draw_panels(cells: Cells, fit: FittedLines, worst: list[int], names: list[str]) -> list[Panel]:
    """The worst factors, each against the one it shares the most items with, and the line of the whole fit. Two
    factors are drawn once."""
    item = np.repeat(np.arange(len(cells.offsets) - 1), np.diff(cells.offsets))
    drawn: dict[tuple[int, int], Panel] = {}
    for t in worst:
        with_it = np.isin(item, item[cells.factor == t])
        shared = np.bincount(cells.factor[with_it], minlength=len(fit.alpha))
        shared[t] = 0
        other = int(np.argmax(shared))
        if shared[other] < FEWEST or fit.alpha[other] == 0 or (other, t) in drawn:
            continue
        slope = float(fit.alpha[t] / fit.alpha[other])
        line = {"affine in relevance": (float(fit.beta[t] - slope * fit.beta[other]), slope)}
        drawn[t, other] = draw_two_factors(cells, t, other, (names[t], names[other]), line)
        if len(drawn) == SHOWN:
            break
    return list(drawn.values())
