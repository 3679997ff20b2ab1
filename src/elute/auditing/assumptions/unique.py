"""Is the fit the only one? Theorem 6.3 of the limits paper, as a finding (`elute.identify.consistency`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from elute.auditing.assumptions.finding import Finding
from elute.cells.counts import Counts
from elute.cells.factors import describe, to_rows
from elute.cells.formula import BiasFormula, formula_of
from elute.estimate.solve.problem import Floats, pose
from elute.identify.consistency import LISTED, FlatDirection, check_consistency

NAME = "unique fit"


DIRECTIONS = 20
"""Flat directions told."""


def assess_unique(counts: Counts, relevance: Floats, propensity: Floats) -> Finding:
    """Whether any other relevance fits as well. No p-value: it is a matter of where items were shown, not of chance.
    `effect`: the share of items that are not determined. Evidence: the flat directions, with the items and factors
    that move together and how far. Where a formula ties factors, only classes of these are told apart."""
    formula = formula_of(counts.factors)
    if formula is not None:
        return _assess_tied(counts, formula)
    found = check_consistency(counts, np.nan_to_num(relevance), np.nan_to_num(propensity))
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
        [_describe_direction(counts, flat) for flat in found.flat[:DIRECTIONS]],
    )


def _assess_tied(counts: Counts, formula: BiasFormula) -> Finding:
    problem = pose(counts, None)
    parts, item = int(problem.component.max()) + 1, problem.item_component
    share = float((item != np.bincount(item).argmax()).mean())
    if parts == 1:
        said = f"The fit is unique: under {formula} the log compares all factors."
        return Finding(NAME, "holds", None, share, said, "Relevance can be compared across all items.")
    return Finding(
        NAME,
        "rejected",
        None,
        share,
        f"Other relevances fit these clicks as well: under {formula} factors fall into {parts:,} components that "
        "nothing compares.",
        "elute repair --method merge names what to take as equal; compare items within components only.",
    )


def _describe_direction(counts: Counts, flat: FlatDirection) -> dict[str, Any]:
    """One flat direction by name, and in words."""
    items = dict(zip(flat.items[:LISTED].tolist(), to_rows(counts.items, flat.items[:LISTED]), strict=True))
    factors = dict(zip(flat.factors[:LISTED].tolist(), to_rows(counts.factors, flat.factors[:LISTED]), strict=True))
    return {
        "items": len(flat.items),
        "factors": len(flat.factors),
        "example_items": list(items.values()),
        "example_factors": list(factors.values()),
        "sentence": flat.sentence(lambda code: describe(items[code]), lambda code: describe(factors[code])),
    }
