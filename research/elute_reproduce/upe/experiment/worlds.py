"""What the UPE reproductions train on: graded sets, the lists that weak and strong logging policies show of them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from elute.errors import EluteError
from elute.ranking.data import RankingData
from elute.ranking.normalise import LogStandard
from elute.simulation.grades import PROPENSITIES, relevance_of_grades
from elute.simulation.policies.lambdamart import LambdaMART
from elute.simulation.policies.ranking_svm import RankingSVM
from elute_reproduce.identifiability import semi_synthetic as semi
from elute_reproduce.upe.experiment.synthetic import draw_synthetic
from elute_reproduce.upe.experiment.training import Setup

Floats = NDArray[np.float64]

WEAK, STRONG, VARIED, ONLINE = "off, weak", "off, strong", "off, strong, varied", "ond"
"""Paradigms of 5.1: fixed lists (Off) of a weak or a strong policy; of a strong one that varies, which is ours; lists
of the ranker itself, renewed as it learns, a weak policy's at first (OnD)."""

WEAK_SHARE = 0.01
"""Of the training queries, that a weak policy learns from."""
RANKINGS, NOISE = 4, 0.2
"""A varied policy has so many rankings a query; the noise in their scores, in standard deviations of the scores."""


@dataclass(frozen=True, eq=False)
class Graded:
    """A graded set on one scale. `known` is the paper's name of it, None for any other."""

    name: str
    known: str | None
    train: RankingData
    validation: RankingData | None
    test: RankingData
    policy: Callable[[str, int], Floats]
    """("weak" or "strong", seed): scores by document of `train`."""
    digest: str
    """Of the data as they were read."""

    @property
    def top(self) -> int:
        """The highest grade."""
        return max(int(part.grades.max()) for part in (self.train, self.test))


def digest_data(*parts: RankingData | None) -> str:
    """Of all features and grades as they were read: scaled ones may differ in their last bits between machines."""
    found = hashlib.sha256()
    for part in parts:
        if part is not None:
            for array in (part.features, part.grades, part.offsets):
                found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()[:16]


def load_graded_sets(data: Path | None) -> list[Graded]:
    """The LETOR set in a folder, or those in the folders below it."""
    return [_scale(dataset) for dataset in semi.load_datasets(data)]


def _scale(dataset: semi.Dataset) -> Graded:
    raw, scale = dataset.train, LogStandard.fit(dataset.train)
    if np.diff(raw.offsets).max() < len(PROPENSITIES):
        raise EluteError(
            f"{dataset.name}: no training query has {len(PROPENSITIES)} documents; use a set of longer lists"
        )
    strong: list[Floats] = []

    def policy(name: str, seed: int) -> Floats:
        if name == "weak":
            return RankingSVM(share=1.0).fit(_draw_queries(raw, seed)).scores(raw)
        if not strong:
            strong.append(LambdaMART().fit(raw).scores(raw))
        return strong[0]

    held = None if dataset.validation is None else scale(dataset.validation)
    digest = digest_data(raw, dataset.validation, dataset.test)
    return Graded(dataset.name, dataset.known, scale(raw), held, scale(dataset.test), policy, digest)


def _draw_queries(train: RankingData, seed: int) -> RankingData:
    """1% of the queries, at least one. Kept trainings are of a weak policy that scaled features over these alone."""
    chosen = np.zeros(train.n_queries, np.bool_)
    n = max(1, round(WEAK_SHARE * train.n_queries))
    chosen[np.random.default_rng(seed).choice(train.n_queries, n, replace=False)] = True
    return train.keep(chosen[train.query_of])


def make_synthetic_set(queries: int = 1_400) -> Graded:
    """The synthetic set; its policies do not depend on the seed."""
    made = draw_synthetic(queries)
    return Graded(
        "synthetic",
        None,
        made.train,
        made.validation,
        made.test,
        lambda name, seed: made.logging[name].astype(np.float64),
        digest_data(made.train, made.validation, made.test),
    )


def set_up(graded: Graded, paradigm: str, seeds: int) -> Setup:
    """The set under a paradigm, with the lists that each seed starts from."""
    policy = "strong" if paradigm in (STRONG, VARIED) else "weak"
    shown = [_rank_lists(graded, graded.policy(policy, seed), seed, paradigm == VARIED) for seed in range(seeds)]
    documents, logging = (np.stack(parts) for parts in zip(*shown, strict=True))
    return Setup(
        train=graded.train,
        relevance=relevance_of_grades(graded.train.grades, graded.top),
        propensities=np.array(PROPENSITIES),
        items=semi.identify_items(graded.train.features).astype(np.int32),
        documents=documents,
        logging=logging,
        online=paradigm == ONLINE,
        validation=graded.validation,
        test=graded.test,
    )


def _rank_lists(
    graded: Graded, scores: Floats, seed: int, varied: bool
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """(lists, positions): the rows shown and the scores they were ranked by; a list a query, or some of each."""
    if not varied:
        return take_top(graded.train, scores, len(PROPENSITIES))
    rng, spread = np.random.default_rng(seed), NOISE * scores.std()
    noisy = [scores + spread * rng.normal(size=len(scores)) for _ in range(RANKINGS)]
    lists = [take_top(graded.train, own, len(PROPENSITIES)) for own in noisy]
    documents, logging = (np.concatenate(parts) for parts in zip(*lists, strict=True))
    return documents, logging


def take_top(data: RankingData, scores: Floats, positions: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """The documents of every query with the highest scores, ties by row, and these scores; -1 and 0 after the last."""
    order = np.lexsort((-scores, data.query_of))
    place = np.arange(positions)
    there = place < np.diff(data.offsets)[:, None]
    rows = order[np.minimum(data.offsets[:-1, None] + place, len(order) - 1)]
    return np.where(there, rows, -1).astype(np.int32), np.where(there, scores[rows], 0.0).astype(np.float32)
