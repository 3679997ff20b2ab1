"""With labels: is the click rate at a factor linear in relevance? (Theorem 5.5, Corollaries 5.6 to 5.8 of the limits
paper.)

Labels are P(relevant), or anything affine in it; grades must be turned into such first. Items of one label differ in
click rate for reasons of their own, so the error of a mean is taken from items, not from clicks (weighted least
squares with a sandwich covariance). Few distinct labels: a mean for each, against a line. Many: square and cube.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from scipy.linalg import eigh
from scipy.stats import f as fisher

from elute.audit.assumptions.finding import Finding, holm, number, untestable, verdict
from elute.counts import Counts
from elute.errors import EluteError
from elute.estimate.problem import Floats
from elute.factors import describe, rows

NAME = "linear in labels"

FEW = 10
"""Distinct labels up to which each has a mean of its own."""

FEWEST = 5
"""Items beyond the number of parameters that a factor must have; and items a label must have to count."""


def labelled(counts: Counts, labels: Floats) -> Finding:
    """Test every factor by itself, corrected for their number (Holm). `effect`: the largest distance of the fitted
    curve from the line, in click rate, at the factor of least p-value."""
    label = np.asarray(labels, np.float64)
    if label.shape != (counts.n_items,):
        raise EluteError(f"{label.size:,} labels for {counts.n_items:,} items: give one an item, NaN where unknown")
    evidence = by_factor(counts, label)
    if not evidence:
        return untestable(
            NAME,
            "Whether click rates are linear in the labels cannot be tested: no factor has items enough of three "
            "different labels.",
            "Label more items, at three grades of relevance or more, and audit again.",
        )
    worst = evidence[0]
    p = worst["p_value"]
    if verdict(p) == "holds":
        sentence = f"Click rates are linear in the labels under all {len(evidence):,} factors ({number(p)})."
        return Finding(NAME, "holds", p, worst["distance"], sentence, "Affine corrections can be unbiased.", evidence)
    bent = sum(row["p_value"] <= 0.05 for row in evidence)
    return Finding(
        NAME,
        "rejected",
        p,
        worst["distance"],
        f"Click rates are not linear in the labels under {bent:,} of {len(evidence):,} factors: most under "
        f"{worst['factor']}, by up to {worst['distance']:.3f} ({number(p)}).",
        "If the labels are grades, turn them into probabilities of relevance first; if they are, no inverse propensity "
        "weighting can be unbiased here (Theorem 5.5).",
        evidence,
    )


def by_factor(counts: Counts, label: Floats) -> list[dict[str, Any]]:
    """Factor, distance from the line and corrected p-value; least first."""
    item = np.repeat(np.arange(counts.n_items), np.diff(counts.offsets))
    usable = np.isfinite(label)[item] & (counts.impressions > 0)
    found = []
    for factor in np.unique(counts.factor[usable]):
        at = usable & (counts.factor == factor)
        n = counts.impressions[at].astype(np.float64)
        tested = curvature(label[item[at]], counts.clicks[at] / n, n)
        if tested is not None:
            found.append((int(factor), *tested))
    if not found:
        return []
    corrected = holm(np.array([row[2] for row in found]))
    names: list[pa.Table] = rows(counts.factors, [row[0] for row in found])
    out = [
        {"factor": describe(name), "distance": distance, "p_value": float(p)}
        for name, (_, distance, _), p in zip(names, found, corrected, strict=True)
    ]
    return [out[i] for i in np.argsort([row[2] for row in found], kind="stable")]


def curvature(x: Floats, y: Floats, n: Floats) -> tuple[float, float] | None:
    """Of y on x: the largest distance of the curve from the line, and the p-value of there being none.

    Weights are n up to their median: an item of very many impressions is still one item. The covariance is HC2's,
    the p-value that of Hotelling's F. A variance estimated as Σ q²·e², with Σ q² = 1, has about 1/Σ q⁴ degrees of
    freedom (Satterthwaite): few, where few items of extreme label carry the bend."""
    values, of, times = np.unique(x, return_inverse=True, return_counts=True)
    if len(values) <= FEW:
        keep = (times >= FEWEST)[of]
        x, y, n = x[keep], y[keep], n[keep]
        values = np.unique(x)
    if len(values) < 3:
        return None
    z = (x - x.mean()) / x.std()
    line = np.stack((np.ones_like(z), z), axis=1)
    bend = x[:, None] == values[1:-1] if len(values) <= FEW else np.stack((z**2, z**3), axis=1)
    spare = len(x) - 2 - bend.shape[1]
    if spare < FEWEST:
        return None
    w = np.sqrt(np.minimum(n, np.median(n)))
    design = np.linalg.qr(w[:, None] * np.hstack((line, bend)))
    residual = w * y - design.Q @ (design.Q.T @ (w * y))
    leverage = (design.Q**2).sum(axis=1)
    scaled = design.Q[:, 2:].T * (residual / np.sqrt(np.maximum(1 - leverage, 1e-6)))
    beyond = design.Q[:, 2:].T @ (w * y)
    variance, vectors = eigh(scaled @ scaled.T)
    if variance[0] <= 1e-12 * max(float(beyond @ beyond), 1e-300):
        return None
    statistic = float(((vectors.T @ beyond) ** 2 / variance).sum())
    q = bend.shape[1]
    known = min(float(spare), float((1 / (design.Q[:, 2:] ** 4).sum(axis=0)).min()))
    rest = max(known - q + 1, 1.0)
    p = float(fisher.sf(statistic * rest / (q * max(known, 1.0)), q, rest))
    return float(np.abs(design.Q[:, 2:] @ beyond / w).max()), p
