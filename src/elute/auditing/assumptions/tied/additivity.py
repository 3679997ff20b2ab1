"""Do several bias columns act by the product of their effects, as a formula for bias says?

Score tests with clusters of what the formula leaves out, one for each two columns that it does not join
(`elute.known.additivity`). Their p-values are taken together by Bonferroni's bound. Clusters are queries, or items
where the log has none.
"""

from __future__ import annotations

import numpy as np

from elute.auditing.assumptions.finding import Finding, decide, format_p_value, report_untestable
from elute.cells.counts import Counts
from elute.cells.formula import BiasFormula
from elute.estimate.models.pbm import PBM
from elute.estimate.solve.problem import pose
from elute.identify.effects.design import build_design
from elute.known.additivity import assess_columns, build_null, list_untested

NAME = "additivity"


def assess_additivity(counts: Counts, formula: BiasFormula) -> Finding:
    """Test the formula. `effect`: how far clicks are off where two columns act otherwise (the root mean square of log
    observed/expected)."""
    problem = pose(counts, None)
    design = build_design(counts.factors, formula).roughen()
    left = list_untested(design.formula, counts.factors.column_names)
    fitted = PBM(relevance_prior="beta").fit_factors(problem)
    members, cluster = counts.membership, np.arange(counts.n_items)
    if members is not None and len(members.item) == counts.n_items:
        cluster[members.item] = members.query
    null = build_null(design, problem.cells, np.where(fitted.apart, 0.0, fitted.o), fitted.apart, cluster)
    found = [assess_columns(null, some) for some in left]
    told = [one for one in found if one.p_value is not None]
    if not told:
        return report_untestable(
            NAME,
            f"Whether bias acts as {formula} says cannot be tested: the log shows no two columns changing apart.",
            "Log more pages on which one bias column changes and the others do not.",
        )
    worst = min(told, key=lambda one: (one.p_value, one.columns))
    p = min(1.0, float(worst.p_value or 0.0) * len(told))
    evidence = [
        {**cell, "columns": " × ".join(one.columns), "p_value": one.p_value} for one in told for cell in one.cells
    ]
    named, tested = " and ".join(worst.columns), f"{len(told)} {'pair' if len(told) == 1 else 'pairs'} tested"
    if decide(p) == "rejected":
        joined = ":".join(worst.columns)
        return Finding(
            NAME,
            "rejected",
            p,
            worst.distortion,
            f"{named} do not act by the product of their effects ({format_p_value(p)}): clicks are off by a typical "
            f"{worst.distortion:.0%} where they meet.",
            f"Add {joined} to the formula (--bias '{formula} + {joined}'), and check that the log can bear it.",
            evidence=evidence,
        )
    return Finding(
        NAME,
        "holds",
        p,
        worst.distortion,
        f"Clicks agree with {formula} ({format_p_value(p)}; {tested}).",
        "Go on with elute fit.",
        evidence=evidence,
    )
