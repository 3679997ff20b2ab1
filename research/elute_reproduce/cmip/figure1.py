"""Figure 1 of the CMIP paper: what two click models make of documents, against where the logging policy put them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.stats import spearmanr

from elute.auditing.cmip import cmip
from elute.auditing.ranking_metrics import ndcg
from elute.reporting.charts import specs
from elute_reproduce.cmip.documents import load
from elute_reproduce.cmip.fits import LogKey, Sizes, fit_counted, simulate
from elute_reproduce.cmip.grid import PAPER, SMALL
from elute_reproduce.cmip.page import SOURCE
from elute_reproduce.cmip.world import SHORT, Documents, Floats
from elute_reproduce.result import Claim, ComparedValue, Reproduction, StudyFigure
from elute_reproduce.study import Study

_MODELS = ("DCTR", "PBM")
_SHOWN = 1_500
"""Documents in the picture, as in the paper; all are measured."""
_NDCG, _CMIP, _SLOPE, _P = "nDCG", "CMIP", "correlation within a grade", "judged not debiased"


class _FittedLog(NamedTuple):
    """One log: the policy's expected ranks, and by model relevance and figures."""

    ranks: Floats
    relevance: dict[str, Floats]
    figures: dict[str, dict[str, float]]


def run(study: Study) -> Reproduction:
    """Both models on logs of one kind, a run for each seed; the picture is the first run's."""
    graded = load(study.data)
    documents = graded.documents[SHORT]
    sizes = PAPER if graded.is_papers else SMALL
    runs = []
    for seed in range(study.seeds):
        study.progress("fitting", seed, study.seeds)
        runs.append(_fit_one(documents, seed, sizes))
    compared = {
        (name, metric): ComparedValue(
            {"model": name, "metric": metric}, tuple(one.figures[name][metric] for one in runs)
        )
        for name in _MODELS
        for metric in (_NDCG, _CMIP, _SLOPE, _P)
    }
    return Reproduction(
        name="cmip-figure1",
        title="Figure 1: a model that echoes the policy, and one that does not",
        source=SOURCE,
        settings=(
            f"Data: {graded.name}, {documents.data.n_queries:,} queries × {SHORT} documents. Users click by the "
            f"position-based model on pages of the NoisyOracle; {sizes.train * documents.data.n_queries:,} sessions a "
            f"run, {study.seeds} runs.",
            "The policy's relevance of a document is its expected rank, as in the text. CMIP by elute's default "
            "estimator; judged not debiased: the share of runs with p ≤ 0.05, permuting ranks within grades.",
            "Correlation: Spearman's, of a model's relevance with expected rank within each grade, the mean over "
            "documents; near -1 where the model repeats the policy.",
        ),
        compared=tuple(compared.values()),
        claims=_claims({key: entry.mean for key, entry in compared.items()}),
        figures=[_picture(documents, runs[0])],
        reading=(
            "In the paper's picture the DCTR model also has the higher nDCG. Whether it has depends on how good the "
            "policy is and how many clicks the PBM has to learn from; the slope within each grade, which CMIP "
            "measures, does not.",
            "The PBM is right here, and has no slope. Yet its relevance still says something of the rank: documents "
            "that are always shown low are examined seldom, so their estimates spread more, as the picture shows. "
            "That is dependence, so CMIP is above 0 and the test finds it; with more clicks it shrinks.",
        ),
    )


def _fit_one(documents: Documents, seed: int, sizes: Sizes) -> _FittedLog:
    job = LogKey("text", "PBM", "NoisyOracle", seed)
    logs = simulate(documents, job, sizes)
    data = documents.data
    ranks = logs.world.policy(job.logging).expected_ranks(data)
    relevance = {name: fit_counted(name, logs).relevance_values_ for name in _MODELS}
    figures = {}
    for name, values in relevance.items():
        shared = cmip(values, ranks, data.grades)
        figures[name] = {
            _NDCG: ndcg(data.grades, values, data.offsets).mean,
            _CMIP: shared.estimate,
            _SLOPE: _correlate_within(values, ranks, data.grades),
            _P: float(shared.p_value <= 0.05),
        }
    return _FittedLog(ranks, relevance, figures)


def _correlate_within(relevance: Floats, ranks: Floats, grades: np.ndarray[tuple[int], np.dtype[np.int32]]) -> float:
    """Spearman's correlation within grades of at least three documents, weighted by their number."""
    members = [rows for g in np.unique(grades) if len(rows := np.flatnonzero(grades == g)) >= 3]
    each = [float(spearmanr(relevance[rows], ranks[rows]).statistic) for rows in members]
    return float(np.average(each, weights=[len(rows) for rows in members]))


def _claims(mean: dict[tuple[str, str], float]) -> list[Claim]:
    dctr, pbm = ({m: mean[name, m] for m in (_NDCG, _CMIP, _SLOPE, _P)} for name in _MODELS)
    return [
        Claim(
            "The DCTR model's relevance correlates with the policy beyond the grade, which its high CMIP shows",
            dctr[_CMIP] > 0.1 and dctr[_P] == 1,
            f"CMIP {dctr[_CMIP]:.3f}, not debiased in {dctr[_P]:.0%} of runs; correlation within grades "
            f"{dctr[_SLOPE]:.2f}",
        ),
        Claim(
            "The PBM's CMIP is far lower",
            pbm[_CMIP] < dctr[_CMIP] / 3,
            f"{pbm[_CMIP]:.3f} against {dctr[_CMIP]:.3f}; correlation within grades {pbm[_SLOPE]:.2f}",
        ),
        Claim(
            "The PBM is debiased: no dependence on the policy is found beyond chance",
            pbm[_P] <= 0.1,
            f"not debiased in {pbm[_P]:.0%} of runs",
        ),
        Claim(
            "nDCG does not show the difference: the DCTR model has the higher one",
            dctr[_NDCG] > pbm[_NDCG],
            f"DCTR {dctr[_NDCG]:.3f}, PBM {pbm[_NDCG]:.3f}",
        ),
    ]


def _picture(documents: Documents, first: _FittedLog) -> StudyFigure:
    grades = documents.data.grades
    shown = np.random.default_rng(0).permutation(len(grades))[:_SHOWN]
    panels = []
    for name in _MODELS:
        points = [
            {
                "expected rank": float(first.ranks[i]),
                "relevance": float(first.relevance[name][i]),
                "grade": int(grades[i]),
            }
            for i in shown
        ]
        figures = first.figures[name]
        heading = f"{name}: nDCG {figures[_NDCG]:.3f}, CMIP {figures[_CMIP]:.3f}"
        panels.append(specs.add_title(specs.cloud(points, x="expected rank", y="relevance", series="grade"), heading))
    return StudyFigure(
        "relevance",
        "Relevance that two models learnt from the same clicks, against the rank at which the logging policy showed "
        "each document. Within a grade (one colour) a debiased model has no slope; the DCTR model's falls with rank.",
        specs.place_side_by_side(*panels),
    )
