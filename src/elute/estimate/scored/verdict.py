"""Whether relevance is independent of the factor given the score: two estimates that are right under less than that.

- `lists`: with one effect a query beside the score's. Where scores are shifted from query to query, only this is right.
- `items`: with one effect an item and no score, from items shown under several factors: the position-based model alone.

Each is compared with the pooled estimate as Hausman compares (differences, their variance from clusters of queries)
along one contrast: how log propensities fall from the factor with the highest click rate to the one with the lowest.

- `labels`: where items have labels, these are adjusted for the score as clicks are. What falls with the factor then is
  relevance, which no score explains, and clicks fall by as much more than propensities do.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.special import ndtri, stdtr, stdtrit

from elute.estimate.scored.conditional import ClickShares, Sharing, add_up, fit_shares
from elute.estimate.scored.groups import keep_sharing, one_hot, sum_by
from elute.estimate.scored.pooled import Pooled, fit_stiff
from elute.estimate.scored.rows import ScoredRows
from elute.estimate.scored.spline import ScoreBins

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
ScoreVerdict = Literal["holds", "contradicted", "untestable"]

LEVEL = 0.05
"""Of all comparisons together: how often a score that is right is said not to be."""

STATED = 2.0
"""`holds` is said where a ratio of propensities that is wrong by this much would have been noticed 4 times in 5."""

_MOST_FACTORS = 2_000
_FAR = 20.0
"""A standard error of a log ratio beyond which there is none to speak of."""
_NAMES = {"lists": "lists by themselves", "items": "items shown under several factors", "labels": "labels"}
_OPENINGS = {
    "holds": "Holds: the log bears out that the score is all that ties relevance to factors.",
    "contradicted": "Contradicted: the score is not all that ties relevance to factors; do not trust the propensities.",
    "untestable": "Untestable: whether the score is all that ties relevance to factors, this log cannot tell.",
}
_POWER = float(ndtri(0.8))


class TestedGap(NamedTuple):
    """`other`: the ratio of `ScoreTest` by the other estimate. `gap`: the score's over it, with its 95% interval.
    `noticed`: the gap, or its inverse, that would be noticed 4 times in 5. `reason`: why there are no figures."""

    name: Literal["lists", "items", "labels"]
    reason: str = ""
    other: float = np.nan
    gap: float = np.nan
    low: float = np.nan
    high: float = np.nan
    p_value: float = np.nan
    noticed: float = np.inf

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it; without figures where there are none."""
        figures = {name: getattr(self, name) for name in ("other", "gap", "low", "high", "p_value", "noticed")}
        return {"with": self.name, "reason": self.reason or None, **({} if self.reason else figures)}


class ScoreTest(NamedTuple):
    """`ratio`: of the propensities of the factors with the highest and the lowest click rate."""

    verdict: ScoreVerdict
    ratio: float
    comparisons: tuple[TestedGap, ...]

    def to_dict(self) -> dict[str, Any]:
        """The field `score` of `elute fit --json`."""
        return {
            "verdict": self.verdict,
            "ratio": self.ratio,
            "sentence": self.sentence,
            "comparisons": [one.to_dict() for one in self.comparisons],
        }

    @property
    def sentence(self) -> str:
        """The verdict and what it rests on."""
        falls = [f"By the score propensities fall {self.ratio:.3g}-fold", *map(_describe, self.comparisons)]
        return f"{_OPENINGS[self.verdict]} {', '.join(falls)}."


def _describe(one: TestedGap) -> str:
    if one.reason:
        return f"{_NAMES[one.name]} cannot tell ({one.reason})"
    return f"{_NAMES[one.name]} say {one.other:.3g}-fold (gap {one.gap:.2f}, 95% {one.low:.2f} to {one.high:.2f})"


class _Scale(NamedTuple):
    """Click rates by factor, in logarithms, and the clicks that weigh them."""

    rate: Floats
    clicks: Floats
    ratio: float
    spread: float


def test_score(rows: ScoredRows, bins: ScoreBins, pooled: Pooled, labels: Floats | None = None) -> ScoreTest:
    """Compare the pooled estimate with those that need less. `labels`: by item of the log, NaN where it has none."""
    factors = len(pooled.log_o)
    shown, clicks = (add_up(rows.factor, part, factors) for part in (rows.shown, rows.clicked))
    rate = np.log(np.maximum(clicks, 0.5) / shown)
    well = np.flatnonzero(clicks >= clicks.max() / 100)
    first, last = well[rate[well].argmax()], well[rate[well].argmin()]
    ratio = float(np.exp(pooled.log_o[first] - pooled.log_o[last]))
    scale = _Scale(rate, clicks, ratio, float(rate[first] - rate[last]))
    if factors < 2:
        reason = "there is one propensity only"
    elif factors > _MOST_FACTORS:
        reason = f"there are more than {_MOST_FACTORS:,} factors"
    else:
        made = [_compare_lists(rows, bins, pooled, scale), _compare_items(rows, pooled, scale)]
        if labels is not None:
            made.append(_compare_labels(rows, bins, pooled, scale, labels))
        return ScoreTest(_decide(tuple(made)), ratio, tuple(made))
    return ScoreTest("untestable", ratio, (TestedGap("lists", reason), TestedGap("items", reason)))


def _decide(comparisons: tuple[TestedGap, ...]) -> ScoreVerdict:
    made = [one for one in comparisons if not one.reason]
    if any(one.p_value < LEVEL / len(made) for one in made):
        return "contradicted"
    return "holds" if any(one.noticed <= STATED for one in made) else "untestable"


def _compare_lists(rows: ScoredRows, bins: ScoreBins, pooled: Pooled, scale: _Scale) -> TestedGap:
    """Groups are queries; x is the spline and the factor."""
    if not rows.has_queries:
        return TestedGap("lists", "the log has no queries")
    factors, width = len(pooled.log_o), bins.basis.shape[1]
    key, shown, clicked = sum_by((rows.query, bins.bin, rows.factor), (len(bins.centre), factors), rows)
    query, bin_, factor = key
    kept = keep_sharing(query, clicked)
    if not kept.any():
        return TestedGap("lists", "no query with clicks has two results")
    query, bin_, factor = (part[kept] for part in (query, bin_, factor))
    shown, clicked = shown[kept], clicked[kept]
    design = sparse.hstack([sparse.csr_array(bins.basis)[bin_], one_hot(factor, factors)]).tocsr()
    penalty = np.zeros((width + factors, width + factors))
    penalty[:width, :width] = pooled.stiffness * bins.penalty
    group = np.unique(query, return_inverse=True)[1].reshape(-1)
    found = fit_shares(ClickShares(group, design, shown, clicked), penalty)
    return _compare("lists", found, query, group, factor, width, pooled, scale)


def _compare_items(rows: ScoredRows, pooled: Pooled, scale: _Scale) -> TestedGap:
    """Groups are items; x is the factor."""
    factors = len(pooled.log_o)
    (item, factor), shown, clicked = sum_by((rows.item, rows.factor), (factors,), rows)
    kept = keep_sharing(item, clicked)
    if not kept.any():
        return TestedGap("items", "no item with clicks was shown under two factors")
    item, factor, shown, clicked = item[kept], factor[kept], shown[kept], clicked[kept]
    query = np.zeros(int(rows.item.max()) + 1, np.int64)
    query[rows.item] = rows.query
    group = np.unique(item, return_inverse=True)[1].reshape(-1)
    found = fit_shares(ClickShares(group, one_hot(factor, factors), shown, clicked), np.zeros((factors, factors)))
    return _compare("items", found, query[item], group, factor, 0, pooled, scale)


def _compare_labels(rows: ScoredRows, bins: ScoreBins, pooled: Pooled, scale: _Scale, labels: Floats) -> TestedGap:
    """Labels in place of clicks: what the score leaves of their fall."""
    label = labels[rows.whole]
    kept = np.isfinite(label)
    if not (label[kept] > 0).any():
        return TestedGap("labels", "no item has a label above 0")
    names = ("query", "item", "whole", "score", "factor", "shown")
    judged = rows._replace(
        **{name: getattr(rows, name)[kept] for name in names}, clicked=(rows.shown * label)[kept] / np.nanmax(label)
    )
    factors = len(pooled.log_o)
    found = fit_stiff(judged, bins._replace(bin=bins.bin[kept]), factors, pooled.stiffness)
    weight = add_up(judged.factor, judged.clicked, factors)
    apart = np.where(weight > 0, scale.rate - weight @ scale.rate / weight.sum(), 0.0)
    total = float(weight @ apart**2)
    if total <= 1e-9 * weight.sum():
        return TestedGap("labels", "items with labels are all of one factor")
    contrast = weight * apart / total * scale.spread
    gap = float(contrast[weight > 0] @ found.log_o[weight > 0])
    return _state("labels", gap, found.influence.along(contrast), len(np.unique(judged.query)), scale)


def _compare(
    name: Literal["lists", "items"],
    found: Sharing,
    query: Codes,
    group: Codes,
    factor: Codes,
    width: int,
    pooled: Pooled,
    scale: _Scale,
) -> TestedGap:
    """Along the fall of click rates among factors that groups link."""
    factors, groups = len(pooled.log_o), int(group.max()) + 1
    clicks = add_up(factor, found.rows.clicked, factors)
    linked = found.rows.clicked > 0
    graph = sparse.coo_array(
        (np.ones(linked.sum()), (factor[linked], factors + group[linked])), (factors + groups,) * 2
    )
    part = connected_components(graph, directed=False)[1][:factors]
    weight = clicks
    mean = np.bincount(part, weight * scale.rate) / np.maximum(np.bincount(part, weight), 1e-300)
    apart = np.where(weight > 0, scale.rate - mean[part], 0.0)
    total = float(weight @ apart**2)
    if total <= 1e-9 * weight.sum():
        return TestedGap(name, "what was clicked links no two factors with different click rates")
    contrast = weight * apart / total * scale.spread
    padded = np.r_[np.zeros(width), contrast]
    kept = found.information @ np.linalg.solve(found.information + 1e-6 * np.eye(len(padded)), padded)
    if np.abs(kept - padded).max() > 0.01 * np.abs(padded).max():
        return TestedGap(name, "scores and factors cannot be told apart within it")
    gap = float(contrast[clicks > 0] @ (pooled.log_o - found.coefficients[width:])[clicks > 0])
    moved = pooled.influence.along(contrast)
    of_other = found.project(query, padded[:, None])[:, 0]
    moved[: len(of_other)] -= of_other
    return _state(name, gap, moved, len(np.unique(query)), scale)


def _state(
    name: Literal["lists", "items", "labels"], gap: float, moved: Floats, clusters: int, scale: _Scale
) -> TestedGap:
    """A gap of logarithms with its error, from how clusters move it."""
    if clusters < 2:
        return TestedGap(name, "its clicks are of one query")
    error = float(np.sqrt((moved**2).sum() * clusters / (clusters - 1)))
    if not 0 < error < _FAR:
        return TestedGap(name, "its clicks are too few")
    widest = stdtrit(clusters - 1, 0.975)
    margin = widest * error
    return TestedGap(
        name,
        other=scale.ratio * np.exp(-gap),
        gap=float(np.exp(gap)),
        low=float(np.exp(gap - margin)),
        high=float(np.exp(gap + margin)),
        p_value=float(2 * stdtr(clusters - 1, -abs(gap) / error)),
        noticed=float(np.exp((widest + _POWER) * error)),
    )
