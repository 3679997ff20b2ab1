"""What is measured of each log: p₁/p₁₀ by every method, intervals that hold, verdicts."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.estimate.models.score_adjusted import ScoreAdjusted
from elute.log import ClickLog
from elute.ranking.data import RankingData
from elute.simulation.grades import relevance_of_grades
from elute.simulation.policies.lambdamart import LambdaMART
from elute_reproduce.score.worlds import Breaks, O, draw_log, draw_world, show
from elute_reproduce.upe.experiment.synthetic import draw_synthetic
from elute_reproduce.upe.experiment.worlds import Graded, load_graded_sets

Floats = NDArray[np.float64]

PAGES = 200
"""Of every list on graded sets."""

LOGS, RIGHT_LOGS, QUERIES, LOG_PAGES = 6, 40, 400, 20
"""Drawn worlds: logs for each seed (of kinds whose score is right, of which few are contradicted, more), their queries,
pages of each list."""

SHIFTED, NOISY = Breaks(shift=2.0), Breaks(noise=0.5)
KINDS: dict[str, tuple[bool, Breaks]] = {
    "holds": (False, Breaks()),
    "holds, lists vary": (True, Breaks()),
    "scores shifted by query": (False, SHIFTED),
    "policy saw more": (False, NOISY),
    "policy saw more, lists vary": (True, NOISY),
}
RIGHT = ("holds", "holds, lists vary")
_SYNTHETIC: dict[str, tuple[str, bool, Breaks]] = {
    "strong": ("strong", False, Breaks()),
    "weak": ("weak", False, Breaks()),
    "strong, varied": ("strong", True, Breaks()),
    "LambdaMART": ("LambdaMART", False, Breaks()),
    "strong, shifted": ("strong", False, SHIFTED),
    "strong, noisy": ("strong", False, NOISY),
}


class LoggedRatios(NamedTuple):
    """p₁/p₁₀ by method; of the score's propensities, the share whose interval holds the truth; the verdict at both
    scales."""

    ratio: dict[str, float]
    held: float
    verdict: str
    verdict_within: str


class DrawnVerdicts(NamedTuple):
    """Of one seed's logs of a kind: the sum of shares of intervals that held; how often a verdict was given; p₁/p₁₀."""

    held: float
    verdicts: dict[str, int]
    ratio: list[float]


def name_sets(data: Path | None) -> list[str]:
    return ["synthetic", *(one.name for one in _load(data))]


@cache
def _load(data: Path | None) -> list[Graded]:
    folders = [] if data is None else [data / name for name in ("mq2008", "mslr5k") if (data / name).is_dir()]
    return [one for folder in folders for one in load_graded_sets(folder)]


def measure_set(data: Path | None, name: str, seed: int) -> dict[str, LoggedRatios]:
    """The logs of a graded set, by kind."""
    if name != "synthetic":
        graded = next(one for one in _load(data) if one.name == name)
        scores = {policy: graded.policy(policy, seed) for policy in ("strong", "weak")}
        return {
            policy: _measure(graded.train, graded.top, own, False, Breaks(), seed) for policy, own in scores.items()
        }
    made = draw_synthetic(seed=seed)
    scores = {policy: own.astype(np.float64) for policy, own in made.logging.items()}
    scores["LambdaMART"] = LambdaMART().fit(made.train).scores(made.train)
    return {
        kind: _measure(made.train, 4, scores[policy], varied, breaks, seed)
        for kind, (policy, varied, breaks) in _SYNTHETIC.items()
    }


def _measure(ranking: RankingData, top: int, scores: Floats, varied: bool, breaks: Breaks, seed: int) -> LoggedRatios:
    rng = np.random.default_rng([seed, 21])
    relevance = relevance_of_grades(ranking.grades, top)
    log = draw_log(show(ranking, scores, varied, breaks, rng), relevance, PAGES, rng)
    ratio = {"ipw-random": _draw_random(relevance, rng), "click rates": _rate(log)}
    raw, within = (ScoreAdjusted(score="score", score_scale=scale).fit(log) for scale in ("raw", "query"))
    ratio |= {"score": _find_ratio(raw), "score within queries": _find_ratio(within)}
    ratio |= {one.name: ratio["score"] / one.gap for one in raw.score_test_.comparisons if not one.reason}
    return LoggedRatios(ratio, float(_hold(raw).mean()), raw.score_test_.verdict, within.score_test_.verdict)


def count_logs(kind: str) -> int:
    """For each seed."""
    return RIGHT_LOGS if kind in RIGHT else LOGS


def measure_world(kind: str, seed: int) -> DrawnVerdicts:
    """All logs of one seed."""
    varied, breaks = KINDS[kind]
    held, ratio = 0.0, []
    verdicts: dict[str, int] = {}
    for number in range(count_logs(kind)):
        rng = np.random.default_rng([seed, number, 22])
        fit = ScoreAdjusted(score="score").fit(draw_world(QUERIES, varied, breaks, LOG_PAGES, rng))
        held += float(_hold(fit).mean())
        ratio.append(_find_ratio(fit))
        word = fit.score_test_.verdict
        verdicts[word] = verdicts.get(word, 0) + 1
    return DrawnVerdicts(held, verdicts, ratio)


def _hold(fit: ScoreAdjusted) -> NDArray[np.bool_]:
    """By position but the reference: whether its 95% interval holds the truth."""
    reference = int(np.flatnonzero(fit.propensity_ == 1)[0])
    off = np.log(fit.propensity_) - np.log(O / O[reference])
    return np.delete(np.abs(off) <= 1.96 * fit.propensity_log_se_, reference)


def _find_ratio(fit: ScoreAdjusted) -> float:
    return float(fit.propensity_[0] / fit.propensity_[-1])


def _rate(log: ClickLog) -> float:
    rates = log.survey.clicks / log.survey.impressions
    return float(rates[0] / rates[-1])


def _draw_random(relevance: Floats, rng: np.random.Generator) -> float:
    """Click rates on 50,000 pages of documents in random order."""
    first, last = rng.binomial(50_000, O[[0, -1]] * relevance.mean())
    return float(first / last)
