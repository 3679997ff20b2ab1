"""Do intervals of DCG, nDCG and success hold? Worlds whose truth is simulated, and rankings from good to chance."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.cells.counts import Counts
from elute.valuing.findings.metrics import METRICS, measure_metrics
from elute.valuing.worth.find import find_worth
from elute_reproduce.result import Claim, ComparedValue, Reproduction
from elute_reproduce.study import Study
from elute_reproduce.value.runs import pose_setting
from elute_reproduce.value.worlds import DOCS, LOOK, PLACES, Truth, ValueWorld, count

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

RUNS = 50
"""Logs of a world: a share of 95% is known from them to 6.2 points (two standard errors)."""

SIZES = {"dense": (50, 20_000), "sparse": (400, 8_000), "very sparse": (2_000, 6_000)}
CHANGES = ("small", "large", "by chance")
_LEAST = 0.9


class MetricOutcome(NamedTuple):
    """Of one log, by metric: the error of the difference, whether the intervals of the difference and of the value hold
    the truth, and whether the verdict has the wrong sign."""

    error: Floats
    inside: NDArray[np.bool_]
    value_inside: NDArray[np.bool_]
    wrong: NDArray[np.bool_]


def run(study: Study) -> Reproduction:
    """The number of logs is fixed: it is what the answer's precision rests on."""
    jobs = [(size, strong, change) for size in SIZES for strong in (True, False) for change in CHANGES]
    done = study.map("worlds", try_world, jobs)
    found = {
        f"{size}, {'strong' if strong else 'weak'} logging, {'change ' * (change != CHANGES[2])}{change}": outcomes
        for (size, strong, change), outcomes in zip(jobs, done, strict=True)
    }
    return Reproduction(
        name="value-metrics",
        title="DCG, nDCG and success of another ranking, and their intervals",
        source="The field `metrics` of `elute value`",
        settings=(
            f"{RUNS} logs from each of {len(jobs)} worlds, those of [value](value.md) whose users are position-based: "
            "the other ranking is the logging policy's with noise (small), another ranker's (large), or by chance.",
            "Coverage: how often the 95% interval of the difference from what was shown (and of the metric itself) "
            f"holds the truth, over the queries that are valued. {RUNS} logs tell a share of 95% to "
            f"± {2 * np.sqrt(0.95 * 0.05 / RUNS):.1%}. Wrong: verdicts of the wrong sign.",
        ),
        compared=[value for name, outcomes in found.items() for value in _compare(name, outcomes)],
        claims=tuple(_judge(found)),
        reading=(
            "DCG is clicks a page by another name, and success nearly so: what clicks say without a prior corrects the "
            "posterior's draws. nDCG divides by the best order of the query's documents, which only the posterior "
            "knows: where most documents were hardly shown, its differences come out too small.",
        ),
    )


def try_world(size: str, strong: bool, change: str) -> list[MetricOutcome]:
    """All logs of a world."""
    truth = Truth(ValueWorld(*SIZES[size], strong, change == "large"), 0)
    if change == CHANGES[2]:
        every = np.tile(np.arange(DOCS), (truth.world.queries, 1))
        truth.ranking = np.random.default_rng(5).permuted(every, axis=1)[:, :PLACES]
    return [_try_log(truth, np.random.default_rng([2, number])) for number in range(RUNS)]


def _try_log(truth: Truth, rng: np.random.Generator) -> MetricOutcome:
    counts, item, queries = count(truth.draw(rng))
    setting = pose_setting(truth, counts, item, queries)
    valued = setting.exposures[0].valued
    measured = measure_metrics(setting, setting.told, valued, PLACES, find_worth("snips", setting, valued))[1]
    rows = [measured[name] for name in METRICS]
    new, logged = measure_truth(truth, counts, item, queries, valued)
    apart = new - logged
    sign = np.array([{"better": 1, "worse": -1, "cannot tell": 0}[row["verdict"]] for row in rows])
    ends = {key: np.array([row[key] for row in rows]) for key in rows[0] if key != "verdict"}
    return MetricOutcome(
        ends["difference"] - apart,
        (ends["difference_low"] <= apart) & (apart <= ends["difference_high"]),
        (ends["low"] <= new) & (new <= ends["high"]),
        sign * np.sign(apart) < 0,
    )


def measure_truth(
    truth: Truth, counts: Counts, item: Ints, queries: Ints, valued: NDArray[np.bool_]
) -> tuple[Floats, Floats]:
    """The metrics of the other ranking and of what was shown, as they are: over pages of the valued queries, where each
    place of what was shown has the mean relevance of what stood there, and the best order is of what was shown."""
    of_item = np.repeat(np.arange(counts.n_items), np.diff(counts.offsets))
    relevance = truth.relevance.ravel()[item]
    total, stood = np.zeros((2, len(queries), PLACES))
    at = np.searchsorted(queries, item // DOCS)[of_item], counts.factor
    np.add.at(stood, at, counts.impressions)
    np.add.at(total, at, counts.impressions * relevance[of_item])
    held = np.full(truth.world.queries * DOCS, -np.inf)
    held[item] = relevance
    best = -np.sort(-held.reshape(-1, DOCS)[queries], axis=1)[:, :PLACES]
    ideal = (np.where(np.isfinite(best), best, 0.0) * LOOK).sum(axis=1)
    pages = np.where(valued, stood[:, 0], 0.0)
    out = []
    for r in (truth.relevance[queries[:, None], truth.ranking[queries]], total / stood):
        dcg = (r * LOOK).sum(axis=1)
        each = np.stack((dcg, dcg / ideal, 1 - np.prod(1 - r * LOOK, axis=1)))
        out.append(each @ pages / pages.sum())
    return out[0], out[1]


def _compare(name: str, outcomes: list[MetricOutcome]) -> list[ComparedValue]:
    error, inside, value_inside, wrong = (np.stack(part).astype(float) for part in zip(*outcomes, strict=True))
    figures = {
        "bias": error.mean(axis=0),
        "RMSE": np.sqrt((error**2).mean(axis=0)),
        "coverage": inside.mean(axis=0),
        "coverage of value": value_inside.mean(axis=0),
        "wrong": wrong.mean(axis=0),
    }
    return [
        ComparedValue({"world": name, "metric": metric, "figure": figure}, (float(values[at]),))
        for at, metric in enumerate(METRICS)
        for figure, values in figures.items()
    ]


def _judge(found: dict[str, list[MetricOutcome]]) -> list[Claim]:
    shares = np.stack([np.mean([one.inside for one in outcomes], axis=0) for outcomes in found.values()])
    wrong = np.array([one.wrong for outcomes in found.values() for one in outcomes])
    slack = 2 * float(np.sqrt(0.95 * 0.05 / RUNS))
    claims = []
    for at, metric in enumerate(METRICS):
        low = list(found)[int(shares[:, at].argmin())]
        claims.append(
            Claim(
                f"Intervals of differences of {metric} hold the truth in {_LEAST:.0%} of logs or more, in every world "
                "as far as its logs can tell.",
                bool(shares[:, at].min() >= _LEAST - slack),
                f"{shares[:, at].mean():.1%} over all worlds; least {shares[:, at].min():.0%} ({low})",
            )
        )
    claims.append(
        Claim(
            "Few verdicts have the wrong sign.",
            bool(wrong.mean() <= 0.025),
            f"{wrong.mean():.2%} of {wrong.size:,} verdicts",
        )
    )
    return claims
