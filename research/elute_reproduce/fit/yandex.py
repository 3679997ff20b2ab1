"""Real clicks: propensities of ranks 1 to 10 in the Yandex Relevance Prediction log, by several estimators, and how
well each predicts held-out clicks."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from elute.auditing.perplexity import perplexity
from elute.errors import EluteError
from elute.estimate.inference.bootstrap import bootstrap
from elute.estimate.models.base import Estimator
from elute.estimate.models.ctr import CTR
from elute.estimate.models.dla import DLA
from elute.estimate.models.em import RegressionEM
from elute.estimate.models.harvest import Harvest
from elute.estimate.models.naive import Naive
from elute.estimate.models.pbm import PBM
from elute.estimate.solve.problem import Floats
from elute.log import read_log
from elute.reporting.charts import specs
from elute_reproduce.result import Claim, ComparedValue, Reproduction, StudyFigure
from elute_reproduce.study import Study

REPLICATES = 200
_LEAST = 1e-3
"""Predictions are kept this far from 0 and 1: an item without a click in training may have one in the test."""


class _Test(NamedTuple):
    """Held-out impressions; the item is -1 where training never showed it."""

    item: np.ndarray
    position: np.ndarray
    click: np.ndarray


def run(study: Study) -> Reproduction:
    """One fit each; error bars by drawing queries, as clicks of one query are not independent."""
    folder = find_folder(study.data)
    models: dict[str, Estimator] = {
        "pbm": PBM(relevance_prior="none"),
        "pbm, Beta prior": PBM(relevance_prior="beta"),
        "em": RegressionEM(max_iter=20_000),
        "dla": DLA(start=1.0),
        "harvest, all pairs": Harvest(method="all-pairs"),
        "harvest, pivot": Harvest(method="pivot"),
        "naive": Naive(),
        "ctr": CTR(),
    }
    scores: dict[str, tuple[float, Floats]] = {}
    with read_log(str(folder / "train.parquet")) as log:
        counts = log.counts()
        test = _read_held_out(folder / "test.parquet", counts.items)
        for done, (name, model) in enumerate(models.items()):
            study.progress(name, done, len(models) + 2)
            model.fit(counts)
            scores[name] = _score(test, model.relevance_values_, model.propensity_)
        by_rank = np.bincount(counts.factor, counts.clicks) / np.bincount(counts.factor, counts.impressions)
        scores["rank CTR"] = _score(test, np.ones(counts.n_items), by_rank)
        by_query = bootstrap(PBM(relevance_prior="none"), counts, replicates=REPLICATES, progress=study.progress)
        by_session = bootstrap(
            PBM(relevance_prior="none"),
            counts,
            counts.read_clusters("session_id"),
            replicates=REPLICATES,
            progress=study.progress,
        )
    errors = {
        "independent": models["pbm"].propensity_log_se_,
        "sessions": by_session.propensity_log_se,
        "queries": by_query.propensity_log_se,
    }
    curves = {name: model.propensity_ for name, model in models.items() if name not in ("naive", "ctr")}
    compared = [
        ComparedValue({"quantity": f"propensity, {name}", "rank": str(rank + 1)}, (float(value),))
        for name, curve in curves.items()
        for rank, value in enumerate(curve)
    ]
    compared += [
        ComparedValue({"quantity": f"standard error of its log (pbm), {name}", "rank": str(rank + 1)}, (float(value),))
        for name, values in errors.items()
        for rank, value in enumerate(values)
    ]
    return Reproduction(
        name="fit-yandex",
        title="Real clicks: the Yandex log",
        source="Yandex Relevance Prediction Challenge (sample): 35,064 pages to train on, 21,413 held out",
        settings=(
            "Items are (query, document), the bias factor is the rank. Estimators at their defaults; DLA from 1.",
            f"Error bars of pbm: from the information matrix (impressions independent), and from {REPLICATES} draws of "
            "sessions and of queries.",
            f"Perplexity: mean over ranks, on held-out pages. Predictions are kept {_LEAST} from 0 and 1; an "
            "item that training never showed gets the mean relevance of the others. rank CTR predicts by rank alone.",
            "Ranks were not randomised, and one of the 20 queries has two thirds of the pages.",
        ),
        compared=compared,
        claims=_claims(scores, curves, errors),
        figures=(_draw_curves(curves, by_query.propensity_low, by_query.propensity_high), _draw_perplexities(scores)),
        reading=(
            _perplexity_table(scores),
            "Shrinkage matters as much as debiasing here: half of the items have a handful of impressions, and a rate "
            "of 0 clicks is a poor prediction. Maximum likelihood alone (`pbm`) is about level with click rates that "
            "are shrunk (`ctr`); with both, `pbm` with a Beta prior is ahead of either.",
            "The pivot of harvesting takes every ratio through one rank, and errs where it shares few items with "
            "others; all pairs use what every two ranks share.",
        ),
    )


def find_folder(data: Path | None) -> Path:
    """Where the log's two files are."""
    for folder in (data, data and data / "yandex"):
        if folder is not None and (folder / "train.parquet").exists() and (folder / "test.parquet").exists():
            return folder
    raise EluteError(
        "the Yandex log is needed: pass `data=`, a folder with train.parquet and test.parquet (or set ELUTE_DATA)"
    )


def _read_held_out(path: Path, items: pa.Table) -> _Test:
    table = pq.read_table(path)
    known = {row: code for code, row in enumerate(zip(*items.to_pydict().values(), strict=True))}
    names = zip(*(table[column].to_pylist() for column in items.column_names), strict=True)
    item = np.array([known.get(name, -1) for name in names])
    return _Test(item, table["position"].to_numpy(), table["click"].to_numpy())


def _score(test: _Test, relevance: Floats, propensity: Floats) -> tuple[float, Floats]:
    """Perplexity, mean and by rank."""
    mean = float(np.nanmean(relevance))
    r = np.where(test.item < 0, mean, np.nan_to_num(relevance, nan=mean)[test.item])
    p = np.clip(r * propensity[test.position - 1], _LEAST, 1 - _LEAST)
    found = perplexity(p, test.click, ranks=test.position)
    return found.mean, found.at_rank


def _claims(
    scores: dict[str, tuple[float, Floats]], curves: dict[str, Floats], errors: dict[str, Floats]
) -> tuple[Claim, ...]:
    pbm = curves["pbm"]
    apart = np.abs(np.log(curves["harvest, all pairs"] / pbm)) / np.maximum(errors["queries"], 1e-12)
    wider = errors["queries"][1:] / errors["independent"][1:]
    plain, shrunk = ("pbm", "naive"), ("pbm, Beta prior", "ctr")
    return (
        Claim(
            "pbm predicts held-out clicks better than click rates by document and by rank.",
            scores["pbm"][0] < min(scores["naive"][0], scores["rank CTR"][0]),
            f"perplexity {', '.join(f'{scores[name][0]:.4f} ({name})' for name in (*plain, 'rank CTR'))}",
        ),
        Claim(
            "So it does where both are shrunk towards the mean of all items.",
            scores[shrunk[0]][0] < scores[shrunk[1]][0],
            f"perplexity {', '.join(f'{scores[name][0]:.4f} ({name})' for name in shrunk)}",
        ),
        Claim(
            "Harvested propensities, which use other statistics, agree with pbm within two clustered standard errors.",
            bool((apart[1:] < 2).all()),
            f"largest difference {apart[1:].max():.1f} standard errors",
        ),
        Claim(
            "Clicks of one query are not independent: drawing queries gives wider error bars.",
            bool((wider > 1).all()),
            f"{wider.min():.1f} to {wider.max():.1f} times those that take impressions for independent",
        ),
        Claim(
            "Examination falls with rank.",
            bool((np.diff(pbm)[:7] < 0).all()),
            ", ".join(f"{value:.3f}" for value in pbm),
        ),
    )


def _draw_curves(curves: dict[str, Floats], low: Floats, high: Floats) -> StudyFigure:
    rows = []
    for name, curve in curves.items():
        ends = (low, high) if name == "pbm" else (curve, curve)
        rows += [
            {
                "rank": rank + 1,
                "model": name,
                "propensity": float(value),
                "low": float(ends[0][rank]),
                "high": float(ends[1][rank]),
            }
            for rank, value in enumerate(curve)
        ]
    chart = specs.lines(rows, x="rank", y="propensity", series="model", low="low", high="high", size=(520, 300))
    return StudyFigure("propensities", "Propensities by rank; band: 95% interval of pbm from draws of queries", chart)


def _draw_perplexities(scores: dict[str, tuple[float, Floats]]) -> StudyFigure:
    rows = [
        {"rank": rank + 1, "model": name, "perplexity": float(value)}
        for name, (_, at_rank) in scores.items()
        for rank, value in enumerate(at_rank)
    ]
    chart = specs.lines(rows, x="rank", y="perplexity", series="model", size=(520, 300))
    return StudyFigure("perplexity", "Perplexity of held-out clicks by rank; lower is better", chart)


def _perplexity_table(scores: dict[str, tuple[float, Floats]]) -> str:
    lines = [f"| {name} | {mean:.4f} |" for name, (mean, _) in sorted(scores.items(), key=lambda entry: entry[1][0])]
    return "\n".join(["Perplexity on held-out pages, best first:\n", "| model | perplexity |", "|---|---|", *lines])
