"""The identifiability paper's own setting, on graded sets: documents of real queries under random contexts, clicks of
the contextual position-based model (section 5.2), which no sum of effects can say exactly."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from elute.auditing.ranking_metrics import ndcg
from elute.auditing.recovery import mcc
from elute.cells.formula import BiasFormula, tie_factors
from elute.checking.check import check
from elute.estimate.models.base import Estimator
from elute.estimate.models.naive import Naive
from elute.estimate.models.pbm import PBM
from elute.log import as_log
from elute.repair.merge_plan import plan_merges
from elute_reproduce.identifiability.semi_synthetic import (
    FEW,
    draw,
    draw_columns,
    is_connected_by_position,
    load_datasets,
    rank_weakly,
    scale_contexts,
)


def list_sets(data: Path | None) -> list[str]:
    """Names of the graded sets at hand."""
    return [] if data is None else [dataset.name for dataset in load_datasets(data)]


def compare_graded(data: Path, name: str, seed: int) -> dict[str, dict[str, float]]:
    """MCC and nDCG@10 by method, and the components under each."""
    train = next(dataset for dataset in load_datasets(data) if dataset.name == name).train
    rng = np.random.default_rng(seed)
    pages = rank_weakly(train, seed)
    whole = is_connected_by_position(train, pages)
    columns = None if whole else draw_columns(train.features.shape[1], FEW, rng)
    world = draw(train, pages, scale_contexts(pages), rng, columns)
    log = world.draw_log(rng)
    counts = log.counts()
    tied = replace(counts, factors=tie_factors(counts.factors, BiasFormula.add("position", "context")))
    product = check(log, target_log_se=None)
    plan = plan_merges(product, vectors=world.bias_features)
    classes = check(as_log(tied), target_log_se=None).components
    fits: dict[str, tuple[Estimator, int]] = {
        "additive": (PBM(relevance_prior="none").fit(tied, allow_unidentified=True), classes),
        "merging": (PBM(relevance_prior="none").fit(counts, plan, allow_unidentified=True), product.components),
        "no debias": (Naive().fit(counts, allow_unidentified=True), product.components),
    }
    out = {}
    for method, (fit, components) in fits.items():
        relevance = np.zeros(len(world.relevance))
        relevance[counts.items["item"].to_numpy()] = np.nan_to_num(np.asarray(fit.relevance_values_))
        ranked = ndcg(world.grade, relevance[world.item], world.lists, 10).mean
        out[method] = {"MCC": mcc(world.relevance, relevance), "nDCG@10": ranked, "components": float(components)}
    return out
