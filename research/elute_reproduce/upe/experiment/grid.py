"""The trainings that the UPE reproductions share: made once for each set, paradigm and learner, and kept."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import jax
import numpy as np

from elute.auditing.ranking_metrics import err, ndcg
from elute.neural.networks import PAPER as PAPER_NETWORK
from elute.neural.networks import Network
from elute.ranking.data import RankingData
from elute_reproduce.study import Study
from elute_reproduce.upe.experiment import store
from elute_reproduce.upe.experiment.learners import FITTED, make_learners
from elute_reproduce.upe.experiment.store import AT, TrainingRun
from elute_reproduce.upe.experiment.training import PAPER, Outcome, Schedule, train_seeds
from elute_reproduce.upe.experiment.worlds import NOISE, RANKINGS, Graded, set_up

SEEDS = 5
"""At most; each is hours of training on a CPU."""

_VERSION = 1
"""Of what a training means here: raise it with every change of a learner that changes results."""


@dataclass(frozen=True)
class Scale:
    """How much is trained; smaller in tests alone."""

    schedule: Schedule = PAPER
    network: Network = PAPER_NETWORK


Grid = Mapping[tuple[str, str], Sequence[TrainingRun]]
"""By paradigm and learner, seed by seed."""


def collect_runs(
    study: Study,
    graded: Graded,
    cells: Sequence[tuple[str, str]],
    *,
    most: int = SEEDS,
    scale: Scale = Scale(),  # noqa: B008 - frozen
) -> Grid:
    """The runs of every (paradigm, learner): those that are kept, and the others trained now, and kept."""
    seeds = min(study.seeds, most)
    path = None if study.out is None else study.out / "data" / f"upe-{graded.name}.parquet"
    kept = [] if path is None else store.load(path)
    found: dict[tuple[str, str], Sequence[TrainingRun]] = {}
    for done, (paradigm, learner) in enumerate(cells):
        study.progress(f"{graded.name}, {paradigm}: {learner}", done, len(cells))
        key = key_of(graded, paradigm, learner, scale)
        own = sorted((run for run in kept if run.key == key), key=lambda run: run.seed)
        if [run.seed for run in own[:seeds]] != list(range(seeds)):
            own = train_runs(graded, paradigm, learner, seeds, scale)
            kept = [run for run in kept if (run.paradigm, run.learner) != (paradigm, learner)] + own
            if path is not None:
                store.save(path, kept)
        found[paradigm, learner] = own[:seeds]
    return found


def key_of(graded: Graded, paradigm: str, learner: str, scale: Scale) -> str:
    """What decides a training, short; the data, the settings, the learner."""
    varied = (RANKINGS, NOISE)
    words = (_VERSION, graded.digest, paradigm, learner, tuple(scale.schedule), scale.network, varied)
    return hashlib.sha256(repr(words).encode()).hexdigest()[:16]


def train_runs(graded: Graded, paradigm: str, learner: str, seeds: int, scale: Scale) -> list[TrainingRun]:
    """Train a learner under a paradigm, once for every seed."""
    world = set_up(graded, paradigm, seeds)
    models = make_learners(learner, world, scale.network)
    outcome = train_seeds(models, world, fitted=learner == FITTED, schedule=scale.schedule)
    key = key_of(graded, paradigm, learner, scale)
    return record_runs(outcome, graded, paradigm, learner, key, jax.devices()[0].device_kind)


def record_runs(
    outcome: Outcome, graded: Graded, paradigm: str, learner: str, key: str, device: str
) -> list[TrainingRun]:
    """What is kept of an outcome."""
    return [
        TrainingRun(
            key=key,
            paradigm=paradigm,
            learner=learner,
            seed=seed,
            steps=outcome.steps.tolist(),
            log_ratio=outcome.log_ratio[seed].tolist(),
            validation=outcome.validation[seed].tolist(),
            test=outcome.test[seed].tolist(),
            log_se=outcome.log_se[seed].tolist(),
            merges=int(outcome.merges[seed]),
            seconds=float(outcome.seconds) / len(outcome.scores),
            device=device,
            metrics=measure_queries(graded.test, outcome.scores[seed], graded.top),
        )
        for seed in range(len(outcome.scores))
    ]


def measure_queries(test: RankingData, scores: np.ndarray, top: int) -> dict[str, list[float]]:
    """nDCG and ERR of every test query, over its whole list."""
    lists = (test.grades, scores, test.offsets)
    found = {f"nDCG@{k}": ndcg(*lists, k).by_query for k in AT}
    found |= {f"ERR@{k}": err(*lists, k, highest=top).by_query for k in AT}
    return {name: values.tolist() for name, values in found.items()}


def describe_effort(grid: Grid) -> str:
    """How many trainings there were, where, and for how long."""
    every = [run for own in grid.values() for run in own]
    devices = " and ".join(sorted({run.device for run in every}))
    minutes = sum(run.seconds for run in every) / 60
    return f"{len(every)} trainings on {devices}, {minutes:.0f} minutes in all with several at a time"
