"""Clicks adjusted for the logging policy's score: which propensities come out, whether their intervals hold, and
whether the tests of what this assumes notice where it is wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from elute.reporting.charts import specs
from elute_reproduce.result import Claim, ComparedValue, Reproduction, StudyFigure
from elute_reproduce.score.measure import (
    KINDS,
    LOG_PAGES,
    LOGS,
    PAGES,
    QUERIES,
    RIGHT,
    RIGHT_LOGS,
    DrawnVerdicts,
    LoggedRatios,
    count_logs,
    measure_set,
    measure_world,
    name_sets,
)
from elute_reproduce.score.rankers import claim_ranked, describe_rankers, list_ranked, measure_all
from elute_reproduce.score.worlds import RATIO
from elute_reproduce.study import Study
from elute_reproduce.upe.experiment import store
from elute_reproduce.upe.experiment.worlds import STRONG, VARIED, WEAK

_METHODS = ("score", "score within queries", "lists", "items", "click rates", "ipw-random")
_KEPT = ("synthetic", "mq2008", "mslr5k")
_TRAINED = ("dla", "upe, in stages")
_PARADIGMS = {"strong": STRONG, "weak": WEAK, "strong, varied": VARIED}


def run(study: Study) -> Reproduction:
    """Graded sets, then drawn worlds."""
    sets = name_sets(study.data)
    jobs = [(study.data, name, seed) for name in sets for seed in range(study.seeds)]
    graded: dict[tuple[str, str], list[LoggedRatios]] = {}
    for (_, name, _), found in zip(jobs, study.map("graded sets", measure_set, jobs), strict=True):
        for log, one in found.items():
            graded.setdefault((name, log), []).append(one)
    drawn_jobs = [(kind, seed) for kind in KINDS for seed in range(study.seeds)]
    drawn: dict[str, list[DrawnVerdicts]] = {kind: [] for kind in KINDS}
    for (kind, _), of_kind in zip(drawn_jobs, study.map("drawn worlds", measure_world, drawn_jobs), strict=True):
        drawn[kind].append(of_kind)
    logs = {kind: study.seeds * count_logs(kind) for kind in KINDS}
    held = {kind: sum(one.held for one in drawn[kind]) / logs[kind] for kind in KINDS}
    said = {
        kind: {word: sum(one.verdicts.get(word, 0) for one in drawn[kind]) / logs[kind] for word in _WORDS}
        for kind in KINDS
    }
    ranked = measure_all(study)
    trained = _read_trained(study.out)
    return Reproduction(
        name="score-adjusted",
        title="Clicks adjusted for the logging policy's score",
        source="`elute fit --model score-adjusted`; the question of Luo et al., Unbiased Learning-to-Rank Needs "
        "Unconfounded Propensity Estimation (SIGIR 2024)",
        settings=[*_describe(study, bool(trained)), *describe_rankers()],
        compared=[*_rows(graded, trained), *_drawn_rows(drawn, held, said), *list_ranked(ranked)],
        claims=[*_claims(graded, held, said, logs), *claim_ranked(ranked)],
        figures=(_draw(graded, trained),),
        reading=(
            "Where lists are fixed no document stands at two positions: `elute fit --model pbm` refuses such a log, "
            "and a score that is comparable between queries is what is left. Its verdict stands before its numbers.",
            "A verdict of `contradicted` says that the estimates disagree by more than chance, not how wrong the "
            "score's is: where the policy saw more than the score, lists by themselves are wrong too, in the same "
            "direction. Only documents shown at several positions tell what is right.",
            "On real features a policy that was trained on the same queries ranks by more than what its score says of "
            "relevance on average; how far that goes is what the rows of mq2008 and mslr5k show.",
            "Where a log is off and not contradicted (mq2008 and mslr5k, weak), what the test lacks is power. "
            "On five seeds looked at one by one, the gap to lists by themselves was 1.2 to 1.4 on mq2008 (339 "
            "queries) and 1.0 to 1.6 on mslr5k (41), where a gap of 1.4 to 1.5, and of 1.4 to 2.7, would be "
            "noticed 4 times in 5 (`noticed` of each comparison says this). `holds` is a statement about a "
            "factor of 2, not of 1.3.",
            "Rankers: on one fixed list a query links give no propensities, and merging would leave click rates as "
            "they are, which is naive. Where the score is wrong, the verdict says so before anything is trained.",
        ),
    )


_WORDS = ("holds", "contradicted", "untestable")


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
    graded: dict[tuple[str, str], list[LoggedRatios]], trained: dict[tuple[str, str], dict[str, list[float]]]
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
    drawn: dict[str, list[DrawnVerdicts]], held: dict[str, float], said: dict[str, dict[str, float]]
) -> list[ComparedValue]:
    rows = []
    for kind, found in drawn.items():
        values = {"score": tuple(ratio for one in found for ratio in one.ratio), "intervals that hold": (held[kind],)}
        values |= {word: (share,) for word, share in said[kind].items()}
        rows += [ComparedValue({"log": f"drawn, {kind}", "quantity": name}, value) for name, value in values.items()]
    return rows


def _claims(
    graded: dict[tuple[str, str], list[LoggedRatios]],
    held: dict[str, float],
    said: dict[str, dict[str, float]],
    logs: dict[str, int],
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
        if kind in RIGHT:
            claims.append(
                Claim(
                    f"Drawn, {kind}: 95% intervals hold the truth in 93% to 97% of {logs[kind]} logs, and at most 7% "
                    "are contradicted.",
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


def _describe(study: Study, trained: bool) -> list[str]:
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
        f"Drawn worlds: {study.seeds * LOGS} logs of each kind, {study.seeds * RIGHT_LOGS} where the score is right; "
        f"{QUERIES} queries of 25 documents, {LOG_PAGES} pages of a list.",
    ]
    if trained:
        settings.append(
            "`dla` and `upe, in stages`: trainings kept by `elute reproduce upe-propensities` and `upe-figure3`."
        )
    return settings


def _draw(
    graded: dict[tuple[str, str], list[LoggedRatios]], trained: dict[tuple[str, str], dict[str, list[float]]]
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
