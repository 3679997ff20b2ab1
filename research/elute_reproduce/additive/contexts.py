"""The identifiability paper's setting, simulated: thousands of contexts × 10 positions, hardly any combination twice.

Bias is that of a contextual position-based model, o = k^(-η(context)) with k the position, or effects that multiply.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute.auditing.recovery import mcc
from elute.cells.counts import Counts
from elute.cells.formula import BiasFormula, tie_factors
from elute.checking.check import check
from elute.estimate.models.base import Estimator
from elute.estimate.models.naive import Naive
from elute.estimate.models.pbm import PBM
from elute.log import as_log
from elute.repair.merge_plan import plan_merges

Floats = NDArray[np.float64]

POSITIONS = 10
WORLDS = ("contexts multiply", "contexts bend")


def compare_contexts(world: str, queries: int, contexts: int, seed: int) -> dict[str, dict[str, float]]:
    """MCC and nDCG@10 by method; and the components under each."""
    rng = np.random.default_rng([seed, WORLDS.index(world)])
    r, counts, vectors = _draw(world, queries, contexts, rng)
    tied = replace(counts, factors=tie_factors(counts.factors, BiasFormula.add("position", "context")))
    product = check(as_log(counts), target_log_se=None)
    plan = plan_merges(product, vectors=vectors)
    fits: dict[str, tuple[Estimator, int]] = {
        "additive": (PBM().fit(tied, allow_unidentified=True), check(as_log(tied), target_log_se=None).components),
        "merging": (PBM().fit(counts, plan, allow_unidentified=True), product.components),
        "no debias": (Naive().fit(counts, allow_unidentified=True), product.components),
    }
    out = {}
    for name, (fit, components) in fits.items():
        found = np.nan_to_num(np.asarray(fit.relevance_values_))
        out[name] = {"MCC": mcc(found, r), "nDCG@10": _ndcg(r, found), "components": float(components)}
    return out


def _draw(world: str, queries: int, contexts: int, rng: np.random.Generator) -> tuple[Floats, Counts, pa.Table]:
    """Three contexts a query; what a context ranks, it ranks by relevance and chance."""
    features = rng.uniform(-1, 1, (contexts, 5))
    direction = rng.uniform(-0.25, 0.25, 5)
    weight = features @ direction
    r = rng.uniform(0.1, 0.9, (queries, POSITIONS))
    chosen = rng.integers(0, contexts, (queries, 3))
    noisy = r[:, None, :] + rng.normal(0, 0.4, (queries, 3, POSITIONS))
    place = np.argsort(np.argsort(-noisy, axis=2), axis=2)
    log_k = np.log1p(place)
    if world == "contexts multiply":
        log_o = -log_k - np.abs(weight)[chosen][:, :, None]
    else:
        log_o = -np.maximum(1.0 + weight[chosen][:, :, None], 0.0) * log_k
    shown = np.full(place.shape, 400)
    clicks = rng.binomial(shown, r[:, None, :] * np.exp(log_o))
    item = np.broadcast_to(np.arange(queries * POSITIONS).reshape(queries, 1, POSITIONS), place.shape)
    key = np.broadcast_to(chosen[:, :, None], place.shape) * POSITIONS + place
    codes, factor = np.unique(key, return_inverse=True)
    order = np.lexsort((factor.ravel(), item.ravel()))
    cells = np.stack([part.ravel()[order] for part in (item, factor.reshape(place.shape), shown, clicks)])
    cells = _add_equal(cells)
    offsets = np.searchsorted(cells[0], np.arange(queries * POSITIONS + 1)).astype(np.int64)
    factors = pa.table({"position": codes % POSITIONS + 1, "context": codes // POSITIONS})
    names = pa.table(
        {"query_id": np.arange(queries * POSITIONS) // POSITIONS, "doc_id": np.arange(queries * POSITIONS)}
    )
    amounts = cells[2].astype(np.uint32), cells[3].astype(np.uint32)
    counts = Counts(offsets, cells[1].astype(np.int32), *amounts, factors, None, 0.0, lambda: names)
    table = {"context": np.arange(contexts), **{f"x{k}": features[:, k] for k in range(features.shape[1])}}
    return r.ravel(), counts, pa.table(table)


def _add_equal(cells: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where a query has drawn a context twice."""
    keys, first = np.unique(cells[:2], axis=1, return_index=True)
    return np.concatenate((keys, np.add.reduceat(cells[2:], first, axis=1)))


def _ndcg(truth: Floats, found: Floats) -> float:
    """With relevance itself as gain, over queries."""
    real, said = truth.reshape(-1, POSITIONS), found.reshape(-1, POSITIONS)
    discount = 1.0 / np.log2(np.arange(2, POSITIONS + 2))
    gained = np.take_along_axis(real, np.argsort(-said, axis=1, kind="stable"), axis=1) @ discount
    return float(np.mean(gained / (-np.sort(-real, axis=1) @ discount)))
