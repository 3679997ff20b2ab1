"""Clicks adjusted for the logging policy's score: which propensities come out, whether their intervals hold, and
whether the tests of what this assumes notice where it is wrong."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.estimate.models.score_adjusted import ScoreAdjusted
from elute.log import ClickLog
from elute.ranking.data import RankingData
from elute.reporting.charts import specs
from elute.simulation.grades import relevance_of_grades
from elute.simulation.policies.lambdamart import LambdaMART
from elute_reproduce.result import Claim, ComparedValue, Reproduction, StudyFigure
from elute_reproduce.score.worlds import RATIO, Breaks, O, draw_log, draw_world, show
from elute_reproduce.study import Study
from elute_reproduce.upe.experiment import store
from elute_reproduce.upe.experiment.synthetic import draw_synthetic
from elute_reproduce.upe.experiment.worlds import STRONG, VARIED, WEAK, Graded, load_graded_sets

Floats = NDArray[np.float64]

PAGES = 200
"""Of every list on graded sets."""

LOGS, QUERIES, LOG_PAGES = 6, 400, 20
"""Drawn worlds: logs for each seed, their queries, pages of each list."""

SHIFTED, NOISY = Breaks(shift=2.0), Breaks(noise=0.5)
KINDS: dict[str, tuple[bool, Breaks]] = {
    "holds": (False, Breaks()),
    "holds, lists vary": (True, Breaks()),
    "scores shifted by query": (False, SHIFTED),
    "policy saw more": (False, NOISY),
    "policy saw more, lists vary": (True, NOISY),
}
_RIGHT = ("holds", "holds, lists vary")
_METHODS = ("score", "score within queries", "lists", "items", "click rates", "ipw-random")
_KEPT = ("synthetic", "mq2008", "mslr5k")
_TRAINED = ("dla", "upe, in stages")
_SYNTHETIC: dict[str, tuple[str, bool, Breaks]] = {
    "strong": ("strong", False, Breaks()),
    "weak": ("weak", False, Breaks()),
    "strong, varied": ("strong", True, Breaks()),
    "LambdaMART": ("LambdaMART", False, Breaks()),
    "strong, shifted": ("strong", False, SHIFTED),
    "strong, noisy": ("strong", False, NOISY),
}
_PARADIGMS = {"strong": STRONG, "weak": WEAK, "strong, varied": VARIED}


class _Logged(NamedTuple):
    """p₁/p₁₀ by method; of the score's propensities, the share whose interval holds the truth; the verdict at both
    scales."""

    ratio: dict[str, float]
    held: float
    verdict: str
    verdict_within: str


class _Drawn(NamedTuple):
    """Of one seed's logs of a kind: the sum of shares of intervals that held; how often a verdict was given; p₁/p₁₀."""

    held: float
    verdicts: dict[str, int]
    ratio: list[float]


def run(study: Study) -> Reproduction:
    """Graded sets, then drawn worlds."""
    sets = _name_sets(study.data)
    jobs = [(study.data, name, seed) for name in sets for seed in range(study.seeds)]
    graded: dict[tuple[str, str], list[_Logged]] = {}
    for (_, name, _), found in zip(jobs, study.map("graded sets", measure_set, jobs), strict=True):
        for log, one in found.items():
            graded.setdefault((name, log), []).append(one)
    drawn_jobs = [(kind, seed) for kind in KINDS for seed in range(study.seeds)]
    drawn: dict[str, list[_Drawn]] = {kind: [] for kind in KINDS}
    for (kind, _), of_kind in zip(drawn_jobs, study.map("drawn worlds", measure_world, drawn_jobs), strict=True):
        drawn[kind].append(of_kind)
    logs = study.seeds * LOGS
    held = {kind: sum(one.held for one in drawn[kind]) / logs for kind in KINDS}
    said = {
        kind: {word: sum(one.verdicts.get(word, 0) for one in drawn[kind]) / logs for word in _WORDS} for kind in KINDS
    }
    trained = _read_trained(study.out)
    return Reproduction(
        name="score-adjusted",
        title="Clicks adjusted for the logging policy's score",
        source="`elute fit --model score-adjusted`; the question of Luo et al., Unbiased Learning-to-Rank Needs "
        "Unconfounded Propensity Estimation (SIGIR 2024)",
        settings=_describe(study, logs, bool(trained)),
        compared=[*_rows(graded, trained), *_drawn_rows(drawn, held, said)],
        claims=_claims(graded, held, said, logs),
        figures=(_draw(graded, trained),),
        reading=(
            "Where lists are fixed no document stands at two positions: `elute fit --model pbm` refuses such a log, "
            "and a score that is comparable between queries is what is left. Its verdict stands before its numbers.",
            "A verdict of `contradicted` says that the estimates disagree by more than chance, not how wrong the "
            "score's is: where the policy saw more than the score, lists by themselves are wrong too, in the same "
            "direction. Only documents shown at several positions tell what is right.",
            "On real features a policy that was trained on the same queries ranks by more than what its score says of "
            "relevance on average; how far that goes is what the rows of mq2008 and mslr5k show.",
        ),
    )


_WORDS = ("holds", "contradicted", "untestable")


def _name_sets(data: Path | None) -> list[str]:
    return ["synthetic", *(one.name for one in _load(data))]


@cache
def _load(data: Path | None) -> list[Graded]:
    folders = [] if data is None else [data / name for name in ("mq2008", "mslr5k") if (data / name).is_dir()]
    return [one for folder in folders for one in load_graded_sets(folder)]


def measure_set(data: Path | None, name: str, seed: int) -> dict[str, _Logged]:
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


def _measure(ranking: RankingData, top: int, scores: Floats, varied: bool, breaks: Breaks, seed: int) -> _Logged:
    rng = np.random.default_rng([seed, 21])
    relevance = relevance_of_grades(ranking.grades, top)
    log = draw_log(show(ranking, scores, varied, breaks, rng), relevance, PAGES, rng)
    ratio = {"ipw-random": _draw_random(relevance, rng), "click rates": _rate(log)}
    raw, within = (ScoreAdjusted(score="score", score_scale=scale).fit(log) for scale in ("raw", "query"))
    ratio |= {"score": _find_ratio(raw), "score within queries": _find_ratio(within)}
    ratio |= {one.name: ratio["score"] / one.gap for one in raw.score_test_.comparisons if not one.reason}
    return _Logged(ratio, float(_hold(raw).mean()), raw.score_test_.verdict, within.score_test_.verdict)


def measure_world(kind: str, seed: int) -> _Drawn:
    """All logs of one seed."""
    varied, breaks = KINDS[kind]
    held, ratio = 0.0, []
    verdicts: dict[str, int] = {}
    for number in range(LOGS):
        rng = np.random.default_rng([seed, number, 22])
        fit = ScoreAdjusted(score="score").fit(draw_world(QUERIES, varied, breaks, LOG_PAGES, rng))
        held += float(_hold(fit).mean())
        ratio.append(_find_ratio(fit))
        word = fit.score_test_.verdict
        verdicts[word] = verdicts.get(word, 0) + 1
    return _Drawn(held, verdicts, ratio)


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


def _read_trained(out: Path | None) -> dict[tuple[str, str], dict[str, list[float]]]:
    """p₁/p₁₀ of trainings that `upe-propensities` and `upe-figure3` keep beside their pages, where these are."""
    found: dict[tuple[str, str], dict[str, list[float]]] = {}
    files = [] if out is None else [(name, out / "data" / f"upe-{name}.parquet") for name in _KEPT]
    for name, path in files:
        for one in store.load(path):
            kind = next((kind for kind, paradigm in _PARADIGMS.items() if paradigm == one.paradigm), None)
            if kind is not None and one.learner in _TRAINED:
                of_log = found.setdefault((name, kind), {})
                of_log.setdefault(one.learner, []).append(float(one.ratios[-1, 0]))
    return found


def _rows(
    graded: dict[tuple[str, str], list[_Logged]], trained: dict[tuple[str, str], dict[str, list[float]]]
) -> list[ComparedValue]:
    rows = []
    for (name, kind), own in graded.items():
        values = {method: [one.ratio[method] for one in own if method in one.ratio] for method in _METHODS}
        values |= trained.get((name, kind), {})
        values["contradicted"] = [float(one.verdict == "contradicted") for one in own]
        values["contradicted within queries"] = [float(one.verdict_within == "contradicted") for one in own]
        for method, measured in values.items():
            if measured:
                rows.append(ComparedValue({"log": f"{name}, {kind}", "quantity": method}, tuple(measured)))
    return rows


def _drawn_rows(
    drawn: dict[str, list[_Drawn]], held: dict[str, float], said: dict[str, dict[str, float]]
) -> list[ComparedValue]:
    rows = []
    for kind, found in drawn.items():
        values = {"score": tuple(ratio for one in found for ratio in one.ratio), "intervals that hold": (held[kind],)}
        values |= {word: (share,) for word, share in said[kind].items()}
        rows += [ComparedValue({"log": f"drawn, {kind}", "quantity": name}, value) for name, value in values.items()]
    return rows


def _claims(
    graded: dict[tuple[str, str], list[_Logged]], held: dict[str, float], said: dict[str, dict[str, float]], logs: int
) -> list[Claim]:
    claims = []
    for (name, kind), own in graded.items():
        ratio = np.array([one.ratio["score"] for one in own])
        middle = float(np.exp(np.log(ratio).mean()))
        share = np.mean([one.verdict == "contradicted" for one in own])
        claims.append(
            Claim(
                f"{name}, {kind}: the score's p₁/p₁₀ is within 15% of the truth, {RATIO:.1f}, or contradicted in 8 "
                "logs of 10.",
                bool(abs(np.log(middle / RATIO)) <= np.log(1.15) or share >= 0.8),
                f"{middle:.1f} (from {ratio.min():.1f} to {ratio.max():.1f}), contradicted in {share:.0%}",
            )
        )
    for kind in KINDS:
        if kind in _RIGHT:
            claims.append(
                Claim(
                    f"Drawn, {kind}: 95% intervals hold the truth in 93% to 97% of {logs} logs, and at most 7% are "
                    "contradicted.",
                    bool(0.93 <= held[kind] <= 0.97 and said[kind]["contradicted"] <= 0.07),
                    f"{held[kind]:.1%} hold; {said[kind]['contradicted']:.1%} contradicted",
                )
            )
        else:
            claims.append(
                Claim(
                    f"Drawn, {kind}: 80% or more are contradicted.",
                    said[kind]["contradicted"] >= 0.8,
                    f"{said[kind]['contradicted']:.1%}",
                )
            )
    return claims


def _describe(study: Study, logs: int, trained: bool) -> list[str]:
    settings = [
        f"{study.seeds} seeds. Position-based clicks, p₁/p₁₀ = {RATIO:.2f}; {PAGES} pages of every list on graded "
        "sets. The synthetic set is drawn anew for each seed (1,400 queries of 20 to 30 documents); mq2008 and mslr5k "
        "are as in the other pages, strong: LambdaMART trained on the set, weak: a ranking SVM on 1% of it.",
        "*score*: `elute fit --model score-adjusted`; *within queries*: with `--score-scale query`. *lists*, *items*: "
        "the estimates that it is compared with, from lists by themselves and from documents at several positions, "
        "where there are any. *click rates*: unadjusted. *ipw-random*: 50,000 pages in random order.",
        "*LambdaMART*: trained on the synthetic set. *Shifted*: a normal number for each query, of twice the scores' "
        "standard deviation, is added to what is logged; *noisy*, *policy saw more*: half of one for each document. "
        f"*Varied*: four lists a query, ranked with noise of {0.2} standard deviations that has nothing to do with "
        "relevance.",
        f"Drawn worlds: {logs} logs of each kind, {QUERIES} queries of 25 documents, {LOG_PAGES} pages of a list.",
    ]
    if trained:
        settings.append(
            "`dla` and `upe, in stages`: trainings kept by `elute reproduce upe-propensities` and `upe-figure3`."
        )
    return settings


def _draw(
    graded: dict[tuple[str, str], list[_Logged]], trained: dict[tuple[str, str], dict[str, list[float]]]
) -> StudyFigure:
    rows = []
    for (name, kind), own in graded.items():
        values = {method: [one.ratio[method] for one in own] for method in ("score", "click rates")}
        values |= {method: found for method, found in trained.get((name, kind), {}).items() if method == "dla"}
        rows += [
            {"log": f"{name}, {kind}", "method": method, "p₁/p₁₀": float(np.mean(measured))}
            for method, measured in values.items()
        ]
    caption = f"p₁/p₁₀ by log and method, mean over seeds; the truth is {RATIO:.1f}"
    return StudyFigure("ratios", caption, specs.bars(rows, x="log", y="p₁/p₁₀", series="method"))
