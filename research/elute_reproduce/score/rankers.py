"""Rankers trained on one fixed list a query: clicks taken as they are, and weighed by the score's or the true
propensities. No document stands at two positions, so that links tell nothing."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from elute.auditing.ranking_metrics import ndcg
from elute.estimate.models.score_adjusted import ScoreAdjusted
from elute.neural.learners import build_learner
from elute.neural.networks import Network
from elute.neural.optimise import Optimiser
from elute.neural.sources import build_logged_source
from elute.neural.train import Settings, train
from elute.simulation.grades import relevance_of_grades
from elute_reproduce.result import Claim, ComparedValue
from elute_reproduce.score.worlds import Breaks, O, draw_log, show
from elute_reproduce.study import Study
from elute_reproduce.upe.experiment.synthetic import Synthetic, draw_synthetic

Floats = NDArray[np.float64]

PAGES = 200
"""Of every list."""

STEPS, HIDDEN = 300, (64, 32)
LEARNERS = ("naive", "score-adjusted", "true propensities")
RANKED = ("weak", "strong", "weak, shifted")
"""Logging policies; the last one's scores are logged with a shift by query, which the test contradicts."""


class RankedBy(NamedTuple):
    """nDCG@10 on documents of other queries, by what clicks are weighed with; `logging`: of the policy on its own
    queries. `verdict`: on the score."""

    ndcg: dict[str, float]
    logging: float
    verdict: str


def measure_rankers(kind: str, seed: int) -> RankedBy:
    """One world and policy."""
    made, policy = draw_synthetic(seed=seed), kind.partition(",")[0]
    scores = made.logging[policy].astype(np.float64)
    rng = np.random.default_rng([seed, 23])
    breaks = Breaks(shift=2.0) if kind.endswith("shifted") else Breaks()
    shown = show(made.train, scores, False, breaks, rng)
    log = draw_log(shown, relevance_of_grades(made.train.grades, 4), PAGES, rng)
    fit = ScoreAdjusted(score="score").fit(log)
    there = shown.document >= 0
    clicks = np.zeros(there.shape)
    clicks[there] = log.source["click"].to_numpy() / PAGES  # type: ignore[index]
    known = {"naive": np.ones(len(O)), "score-adjusted": fit.propensity_, "true propensities": O / O[0]}
    found = {name: _train(made, shown.document, clicks / known[name], seed) for name in LEARNERS}
    lists = made.train.grades, scores, made.train.offsets
    return RankedBy(found, float(ndcg(*lists, 10).mean), fit.score_test_.verdict)


def measure_all(study: Study) -> dict[str, list[RankedBy]]:
    """By policy, over seeds."""
    jobs = [(kind, seed) for kind in RANKED for seed in range(study.seeds)]
    out: dict[str, list[RankedBy]] = {kind: [] for kind in RANKED}
    for (kind, _), found in zip(jobs, study.map("rankers", measure_rankers, jobs), strict=True):
        out[kind].append(found)
    return out


def describe_rankers() -> list[str]:
    """How they were trained."""
    return [
        f"Rankers: networks of {HIDDEN[0]} and {HIDDEN[1]} hidden units, {STEPS} steps on the synthetic set's fixed "
        "lists, as of `elute train --learner score-adjusted`, `naive`, and `ipw` with the true propensities; nDCG@10 "
        "on 400 other queries. *logging*: of the policy, on the queries of the log.",
        "How long to train was chosen by looking at the first seed, with 300, 600 and 2,000 steps in "
        "batches of 128 (300) or 256 pages. At 600 the weak policy's log gave .698, .860 and .858 (naive, "
        "score, true). At 2,000 all of them overfit, those with weights more: .637, .763, .759, and under "
        "the strong policy naive was ahead (.797, .739, .740). What the two kinds of propensities have in "
        "common, that one is as good as the other, was so each time.",
    ]


def list_ranked(ranked: dict[str, list[RankedBy]]) -> list[ComparedValue]:
    """nDCG@10 by policy and learner."""
    rows = []
    for kind, found in ranked.items():
        values = {name: [one.ndcg[name] for one in found] for name in LEARNERS}
        values["logging"] = [one.logging for one in found]
        values["contradicted"] = [float(one.verdict == "contradicted") for one in found]
        log = f"rankers, {kind} (nDCG@10)"
        rows += [ComparedValue({"log": log, "quantity": name}, tuple(own)) for name, own in values.items()]
    return rows


def claim_ranked(ranked: dict[str, list[RankedBy]]) -> list[Claim]:
    """As good as the true propensities, and better than naive under the weak policy. Stated after a look at seed 0."""
    claims = []
    for kind in ("weak", "strong"):
        to_true = _compare(ranked[kind], "score-adjusted", "true propensities")
        claims.append(
            Claim(
                f"Rankers, {kind}: nDCG@10 with the score's propensities is within .02 of that with the true ones.",
                bool(abs(to_true.mean()) <= 0.02),
                f"{to_true.mean():+.3f} ({_interval(to_true)})",
            )
        )
    gain = _compare(ranked["weak"], "score-adjusted", "naive")
    claims.append(
        Claim(
            "Rankers, weak: it is higher than naive by .05 at least.",
            bool(gain.mean() >= 0.05),
            f"{gain.mean():+.3f} ({_interval(gain)})",
        )
    )
    said = np.mean([one.verdict == "contradicted" for one in ranked["weak, shifted"]])
    claims.append(
        Claim(
            "Rankers, weak, shifted: the score is contradicted before anything is trained, in 8 logs of 10.",
            bool(said >= 0.8),
            f"{said:.0%}",
        )
    )
    return claims


def _compare(found: list[RankedBy], one: str, other: str) -> Floats:
    return np.array([each.ndcg[one] - each.ndcg[other] for each in found])


def _interval(values: Floats) -> str:
    """95%, by Student's t over seeds."""
    if len(values) < 2:
        return "one seed"
    margin = stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / len(values) ** 0.5
    return f"95% {values.mean() - margin:+.3f} to {values.mean() + margin:+.3f}"


def _train(made: Synthetic, document: NDArray[np.int64], targets: Floats, seed: int) -> float:
    """A list's pages are one with the mean of their weighted clicks: the loss is the same."""
    source = build_logged_source(made.train.features, document.astype(np.int32), targets.astype(np.float32))
    network = Network(hidden=HIDDEN, dropout=0.0)
    learner = build_learner("naive", network=network, optimiser=Optimiser(rate=0.05))
    settings = Settings(steps=STEPS, batch=128, fused=50, every=STEPS)
    trained = train(learner, source, settings, seed=seed)
    return float(ndcg(made.test.grades, trained.scores(made.test.features), made.test.offsets, 10).mean)
