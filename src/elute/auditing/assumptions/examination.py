"""Is the examination hypothesis itself rejected? The fit of p = r(x)·o(t) to cells.

On a graph with cycles r·o has fewer parameters than cells, so clicks can contradict it. The deviance from the
saturated model measures by how much; clicks drawn under the null, given every item's total (`elute.auditing.
assumptions.null`), say how much is chance, however sparse the cells are. Every draw is compared at its own maximum:
items are refitted, propensities by one Newton step, which at their precision is all it takes. With clusters the
deviance is Pearson's.
"""

from __future__ import annotations

import numpy as np

from elute.auditing.assumptions.finding import (
    Finding,
    decide,
    exceedance,
    find_design_effect,
    format_p_value,
    report_untestable,
)
from elute.auditing.assumptions.null import STANDARD, CellScores, Drawing, Null

NAME = "examination"


def assess_examination(null: Null, drawing: Drawing = STANDARD) -> Finding:
    """Test the fit. `effect`: the typical deviation of a cell's click rate from r·o beyond chance, as a share of it
    (the standard deviation of log p around log r + log o)."""
    if null.freedom <= 0:
        return report_untestable(
            NAME,
            "Whether clicks are relevance times propensity cannot be tested: no factors with clicks enough are linked "
            "by items in more than one way, so some r·o fits any clicks.",
            "Show more items under two factors each (elute repair --method swap names them), then audit again.",
        )
    observed, *others = (deviance(null, scores) for scores in null.score_draws(drawing, NAME))
    drawn = np.array(others)
    p = exceedance(observed, drawn)
    effect = find_design_effect(null.rows, drawn, null.freedom)
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
            design_effect=effect,
        )
    return Finding(
        NAME,
        "holds",
        p,
        spread,
        f"Clicks agree with relevance times propensity ({format_p_value(p)}, {null.freedom:,} degrees of freedom).",
        "Go on with elute fit --model pbm.",
        design_effect=effect,
    )


def deviance(null: Null, scores: CellScores) -> float:
    """Twice the log-likelihood that r·o at its maximum misses, to second order in propensities."""
    by_factor = np.bincount(null.cells.factor, scores.slope, len(null.o)).astype(np.float64)
    return scores.deviance - null.energy(by_factor)


def _deviance_per_variance(null: Null) -> float:
    """Σ w·(1 - w/W): what the deviance gains for every unit of variance in log p around the fit."""
    total = np.bincount(null.item, null.w)[null.item]
    return float((null.w * (1.0 - null.w / total)).sum())
