"""Are the error bars right? How often 95% intervals of log propensities hold the truth, factor by factor."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from elute.cells.counts import Counts
from elute.estimate.models.pbm import PBM
from elute.estimate.solve.problem import Floats
from elute.reporting.charts import specs
from elute_reproduce.result import Claim, ComparedValue, Reproduction, StudyFigure
from elute_reproduce.study import Study

REPETITIONS = 2_000
"""500 leave ± 1.9% on a share: of 37 factors that hold in exactly 95%, some would seem to be outside 93% to 97%."""
_ITEMS = 300
_WORLDS = {
    "dense": (10, 0.6),
    "sparse": (10, 0.15),
    "two devices": (20, 0.15),
}
"""Factors, and the share of items seen under each."""


def run(study: Study) -> Reproduction:
    """The number of repetitions is fixed: it is what the answer's precision rests on."""
    inside = {}
    for number, (name, (factors, density)) in enumerate(_WORLDS.items()):
        inside[name] = _measure_coverage(name, factors, density, number, study)
    compared = [
        ComparedValue({"world": name, "figure": figure}, (value,))
        for name, share in inside.items()
        for figure, value in (("least", share.min()), ("mean", share.mean()), ("largest", share.max()))
    ]
    least, most = (float(f([f(share) for share in inside.values()])) for f in (np.min, np.max))
    sampling = 2 * float(np.sqrt(0.95 * 0.05 / REPETITIONS))
    return Reproduction(
        name="fit-coverage",
        title="Error bars: how often 95% intervals hold the truth",
        source="Standard errors of `elute fit --model pbm` (effective resistances)",
        settings=(
            f"{REPETITIONS} logs drawn from each of {len(_WORLDS)} worlds with {_ITEMS} items, 20 to 200 impressions a "
            "cell; relevance between 0.1 and 0.9, propensities falling by rank.",
            "By factor but the reference: the share of logs with the truth within log propensity ± 1.96 log_se.",
            f"With {REPETITIONS} logs a share of 95% is itself known to ± {sampling:.1%} (two standard errors).",
        ),
        compared=compared,
        claims=(
            Claim(
                "Intervals of every factor hold the truth in 93% to 97% of logs.",
                least >= 0.93 and most <= 0.97,
                f"from {least:.1%} to {most:.1%} over all factors of all worlds; means "
                + ", ".join(f"{name} {share.mean():.1%}" for name, share in inside.items()),
            ),
        ),
        figures=(_figure(inside),),
    )


def _measure_coverage(name: str, factors: int, density: float, number: int, study: Study) -> Floats:
    rng = np.random.default_rng([1, number])
    r = rng.uniform(0.1, 0.9, _ITEMS)
    ranks = np.arange(factors) % 10
    o = 1.0 / (1 + ranks) ** 0.8 * np.where(np.arange(factors) < 10, 1.0, 0.6)
    seen = rng.random((_ITEMS, factors)) < density
    seen[np.arange(_ITEMS), rng.integers(factors, size=_ITEMS)] = True
    item, factor = np.nonzero(seen)
    shown = rng.integers(20, 200, len(item))
    hits = np.zeros(factors)
    for repetition in range(REPETITIONS):
        clicks = rng.binomial(shown, r[item] * o[factor])
        fit = PBM(relevance_prior="none").fit(_make_counts(item, factor, shown, clicks, factors))
        off = np.log(fit.propensity_ / fit.propensity_[0]) - np.log(o / o[0])
        hits += np.abs(off) <= 1.96 * fit.propensity_log_se_
        study.progress(name, repetition + 1, REPETITIONS)
    return np.asarray(hits[1:] / REPETITIONS)


def _make_counts(item: np.ndarray, factor: np.ndarray, shown: np.ndarray, clicks: np.ndarray, factors: int) -> Counts:
    offsets = np.searchsorted(item, np.arange(_ITEMS + 1)).astype(np.int64)
    amounts = shown.astype(np.uint32), clicks.astype(np.uint32)
    names = pa.table({"position": np.arange(factors)})
    items = pa.table({"item": np.arange(_ITEMS)})
    return Counts(offsets, factor.astype(np.int32), *amounts, names, None, 0.0, lambda: items)


def _figure(inside: dict[str, Floats]) -> StudyFigure:
    rows = [
        {"factor": number + 1, "world": name, "share of logs": float(value)}
        for name, share in inside.items()
        for number, value in enumerate(share)
    ]
    chart = specs.lines(rows, x="factor", y="share of logs", series="world", domain=(0.9, 1.0))
    return StudyFigure("coverage", "Share of logs whose 95% interval holds the true log propensity, by factor", chart)
