"""With labels: is the click rate at a factor linear in relevance? (Theorem 5.5, Corollaries 5.6 to 5.8 of the limits
paper.)

Labels are P(relevant), or anything affine in it; grades must be turned into such first. Items of one label differ in
click rate for reasons of their own, so the error of a mean is taken from items, not from clicks (weighted least
squares with a sandwich covariance). Few distinct labels: a mean for each, against a line. Many: square and cube.

How small a p-value has to be is settled by wild bootstrap (Wu 1986): logs in which every item keeps its distance from
the factor's line but for its sign, drawn anew for each item, the same under all factors. The least p-value of each
such log gives p-values corrected for the number of factors (Westfall and Young 1993), whatever the errors' variances
are; those of the F law alone were up to twice too large where errors shrink at the ends of a line.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import fdtrc

from elute.auditing.assumptions.finding import (
    LEVEL,
    Finding,
    Panel,
    decide,
    exceedance,
    format_p_value,
    report_untestable,
)
from elute.auditing.assumptions.null import STANDARD, Drawing
from elute.auditing.assumptions.panels import SHOWN
from elute.cells.counts import Counts
from elute.cells.factors import describe, to_rows
from elute.errors import EluteError
from elute.estimate.solve.problem import Floats

NAME = "linear in labels"

FEW = 10
"""Distinct labels up to which each has a mean of its own."""

FEWEST = 5
"""Items beyond the number of parameters that a factor must have; and items a label must have to count."""


_AT_ONCE = 32
"""Logs drawn at a time."""


def assess_labels(counts: Counts, labels: ArrayLike, drawing: Drawing = STANDARD) -> Finding:
    """Test every factor by itself, corrected for their number. `effect`: the largest distance of the fitted
    curve from the line, in click rate, at the factor of least p-value."""
    label = np.asarray(labels, np.float64)
    if label.shape != (counts.n_items,):
        raise EluteError(f"{label.size:,} labels for {counts.n_items:,} items: give one an item, NaN where unknown")
    tested = assess_factors(counts, label, drawing)
    if not tested:
        return report_untestable(
            NAME,
            "Whether click rates are linear in the labels cannot be tested: no factor has enough items of three "
            "different labels.",
            "Label more items, at three grades of relevance or more, and audit again.",
        )
    names = [describe(row) for row in to_rows(counts.factors, range(counts.n_factors))]
    evidence = [{"factor": names[t], "distance": distance, "p_value": p} for t, distance, p in tested]
    panels = [_draw_panel(counts, label, t, names[t]) for t, *_ in tested[:SHOWN]]
    worst, distance, p = tested[0]
    if decide(p) == "holds":
        sentence = f"Click rates are linear in the labels under all {len(evidence):,} factors ({format_p_value(p)})."
        following = "Affine corrections can be unbiased."
        return Finding(NAME, "holds", p, distance, sentence, following, evidence, panels=panels)
    bent = sum(row[2] <= LEVEL for row in tested)
    return Finding(
        NAME,
        "rejected",
        p,
        distance,
        f"Click rates are not linear in the labels under {bent:,} of {len(evidence):,} factors: most under "
        f"{names[worst]}, by up to {distance:.3f} ({format_p_value(p)}).",
        _explain_bend(label),
        evidence,
        panels=panels,
    )


def _explain_bend(label: Floats) -> str:
    """What a bend means: of grades it may be the grades' own."""
    if np.nanmax(label) > 1:
        return (
            "These labels are grades, so the bend may be theirs: this asks whether grades are equidistant. Turn them "
            "into probabilities of relevance, in a column 'relevance', and audit again."
        )
    return (
        "If the labels are probabilities of relevance, no inverse propensity weighting can be unbiased here (Theorem "
        "5.5); if they are grades scaled to 1, turn them into such first."
    )


def assess_factors(counts: Counts, label: Floats, drawing: Drawing) -> list[tuple[int, float, float]]:
    """Factor, distance from the line and corrected p-value; least first."""
    item = np.repeat(np.arange(counts.n_items), np.diff(counts.offsets))
    usable = np.isfinite(label)[item] & (counts.impressions > 0)
    found = []
    for factor in np.unique(counts.factor[usable]):
        at = np.flatnonzero(usable & (counts.factor == factor))
        n = counts.impressions[at].astype(np.float64)
        curve = fit_bend(label[item[at]], n)
        if curve is not None:
            rate = counts.clicks[at] / n
            p = float(curve.p_values(rate[curve.kept, None])[0])
            found.append((int(factor), curve, item[at[curve.kept]], rate[curve.kept], p))
    if not found:
        return []
    rng = np.random.default_rng(drawing.seed)
    least = np.ones(drawing.replicates)
    for begin in range(0, drawing.replicates, _AT_ONCE):
        drawing.progress("labels", begin, drawing.replicates)
        some = least[begin : begin + _AT_ONCE]
        signs = rng.choice(np.array([-1.0, 1.0]), (counts.n_items, len(some)))
        for _, curve, items, rate, _ in found:
            np.minimum(some, curve.p_values(curve.flip(rate, signs[items])), out=some)
    order = sorted(found, key=lambda row: row[4])
    return [(factor, curve.distance(rate), exceedance(-p, -least)) for factor, curve, _, rate, p in order]


def _draw_panel(counts: Counts, label: Floats, factor: int, name: str) -> Panel:
    """Mean click rates of labels under a factor (of tenths of the items, where labels are many), and the best line."""
    item = np.repeat(np.arange(counts.n_items), np.diff(counts.offsets))
    at = (counts.factor == factor) & np.isfinite(label)[item] & (counts.impressions > 0)
    x, n = label[item[at]], counts.impressions[at].astype(np.float64)
    y, w = counts.clicks[at] / n, np.minimum(n, np.median(n))
    values, part = np.unique(x, return_inverse=True)
    if len(values) > FEW:
        part = np.searchsorted(np.quantile(x, np.arange(1, FEW) / FEW), x)
    total, items = np.bincount(part, w), np.bincount(part)
    x_mean, y_mean = (np.bincount(part, w * column) / np.maximum(total, 1e-300) for column in (x, y))
    spread = np.bincount(part, (w * (y - y_mean[part])) ** 2) * items / np.maximum(items - 1, 1)
    se = np.sqrt(spread) / np.maximum(total, 1e-300)
    shown = np.bincount(part, n)
    columns = (column[items > 1].tolist() for column in (x_mean, y_mean, se, shown))
    points = [
        {"x": a, "y": b, "x_se": 0.0, "y_se": error, "impressions": k} for a, b, error, k in zip(*columns, strict=True)
    ]
    slope, intercept = np.polyfit(x, y, 1, w=np.sqrt(w))
    return Panel(name, "label", f"click rate under {name}", points, {"linear": (float(intercept), float(slope))})


@dataclass(frozen=True, eq=False)
class Bend:
    """A line in the labels of a factor's items, and what may bend it, as an orthonormal basis.

    Weights are impressions up to their median: an item of very many is still one item. The covariance is HC2's, the
    p-value that of Hotelling's F. A variance estimated as Σ q²·e², with Σ q² = 1, has about 1/Σ q⁴ degrees of freedom
    (Satterthwaite): few, where few items of extreme label carry the bend."""

    kept: NDArray[np.bool_]
    """The items of labels with items enough."""
    w: Floats
    """Roots of the weights."""
    line: Floats
    beyond: Floats

    def p_values(self, y: Floats) -> Floats:
        """Of there being no bend, by column of click rates `y` (by item kept); 1 where errors leave no variance."""
        z = self.w[:, None] * y
        bent = self.beyond.T @ z
        residual = z - self.line @ (self.line.T @ z) - self.beyond @ bent
        leverage = (self.line**2).sum(axis=1) + (self.beyond**2).sum(axis=1)
        squares = residual**2 / np.maximum(1 - leverage, 1e-6)[:, None]
        q = self.beyond.shape[1]
        variance, vectors = np.linalg.eigh(np.einsum("ni,nj,nb->bij", self.beyond, self.beyond, squares, optimize=True))
        usable = variance[:, 0] > 1e-12 * np.maximum((bent**2).sum(axis=0), 1e-300)
        turned = np.einsum("bij,ib->bj", vectors, bent) ** 2
        statistic = (turned / np.where(usable[:, None], variance, 1.0)).sum(axis=1)
        known = min(len(z) - 2.0 - q, float((1 / (self.beyond**4).sum(axis=0)).min()))
        rest = max(known - q + 1, 1.0)
        p = fdtrc(q, rest, statistic * rest / (q * max(known, 1.0)))
        return np.asarray(np.where(usable, p, 1.0))

    def flip(self, y: Floats, signs: Floats) -> Floats:
        """Click rates on the best line, each at its own distance from it (HC2) on a side by its sign."""
        z = self.w * y
        on = self.line @ (self.line.T @ z)
        off = (z - on) / np.sqrt(np.maximum(1 - (self.line**2).sum(axis=1), 1e-6))
        return np.asarray((on[:, None] + off[:, None] * signs) / self.w[:, None])

    def distance(self, y: Floats) -> float:
        """The largest distance of the curve from the line."""
        return float(np.abs(self.beyond @ (self.beyond.T @ (self.w * y)) / self.w).max())


def fit_bend(x: Floats, n: Floats) -> Bend | None:
    """For labels `x` of items with `n` impressions; None where there are too few."""
    values, of, times = np.unique(x, return_inverse=True, return_counts=True)
    kept = np.ones(len(x), np.bool_)
    if len(values) <= FEW:
        kept = (times >= FEWEST)[of]
        x, n = x[kept], n[kept]
        values = np.unique(x)
    if len(values) < 3:
        return None
    z = (x - x.mean()) / x.std()
    bends = x[:, None] == values[1:-1] if len(values) <= FEW else np.stack((z**2, z**3), axis=1)
    if len(x) - 2 - bends.shape[1] < FEWEST:
        return None
    w = np.sqrt(np.minimum(n, np.median(n)))
    q = np.linalg.qr(w[:, None] * np.column_stack((np.ones_like(z), z, bends))).Q
    return Bend(kept, w, q[:, :2], q[:, 2:])
