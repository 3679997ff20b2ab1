"""Is the examination hypothesis itself rejected? The fit of p = r(x)·o(t) to cells.

On a graph with cycles r·o has fewer parameters than cells, so clicks can contradict it. The deviance from the
saturated model measures by how much; clicks drawn under the null, given every item's total (`elute.auditing.
assumptions.null`), say how much is chance, however sparse the cells are. Every draw is compared at its own maximum:
items are refitted, propensities by one Newton step, which at their precision is all it takes.
"""

from __future__ import annotations

import numpy as np

from elute.auditing.assumptions.finding import Finding, decide, exceedance, format_p_value, report_untestable
from elute.auditing.assumptions.null import STANDARD, Drawing, Null, compute_scores
from elute.cells.counts import Cells
from elute.estimate.solve.interior import BARRIER
from elute.estimate.solve.profile import fit_items

NAME = "examination"


def assess_examination(null: Null, drawing: Drawing = STANDARD) -> Finding:
    """Test the fit. `effect`: the typical deviation of a cell's click rate from r·o beyond chance, as a share of it
    (the standard deviation of log p around log r + log o)."""
    if null.freedom <= 0:
        return report_untestable(
            NAME,
            "Whether clicks are relevance times propensity cannot be tested: no factors are linked by items in more "
            "than one way, so some r·o fits any clicks.",
            "Show more items under two factors each (elute repair --method swap names them), then audit again.",
        )
    observed = deviance(null, null.cells)
    drawn = np.array([deviance(null, cells) for cells in null.draw(drawing, "examination")])
    p = exceedance(observed, drawn)
    spread = float(np.sqrt(max(observed - drawn.mean(), 0.0) / _deviance_per_variance(null)))
    if decide(p) == "rejected":
        return Finding(
            NAME,
            "rejected",
            p,
            spread,
            f"Clicks are not relevance times propensity ({format_p_value(p)}): cells deviate from r·o by a typical "
            f"{spread:.0%} beyond chance.",
            "Add what position effects depend on to --bias, or look at 'linear' and 'affine'.",
        )
    return Finding(
        NAME,
        "holds",
        p,
        spread,
        f"Clicks agree with relevance times propensity ({format_p_value(p)}, {null.freedom:,} degrees of freedom).",
        "Go on with elute fit --model pbm.",
    )


def deviance(null: Null, cells: Cells) -> float:
    """Twice the log-likelihood that r·o at its maximum misses, to second order in propensities."""
    slope, value = compute_scores(cells, fit_items(*cells, null.o, BARRIER), null.o)
    return value - null.energy(np.bincount(cells.factor, slope, len(null.o)).astype(np.float64))


def _deviance_per_variance(null: Null) -> float:
    """Σ w·(1 - w/W): what the deviance gains for every unit of variance in log p around the fit."""
    total = np.bincount(null.item, null.w)[null.item]
    return float((null.w * (1.0 - null.w / total)).sum())
