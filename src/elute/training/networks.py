"""Networks learnt from the pages of a log, by `elute.neural`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.errors import EluteError
from elute.neural import export
from elute.neural.host import Host, device_memory
from elute.neural.learner import Learner
from elute.neural.learners import build_learner as named
from elute.neural.networks import LINEAR, PAPER, Network
from elute.neural.optimise import Optimiser
from elute.neural.sources import BatchSource, build_logged_source
from elute.neural.train import Moment, Settings, train
from elute.progress import Progress, silent
from elute.ranking.data import RankingData
from elute.ranking.normalise import LogStandard, split_rows
from elute.training.held_out import HeldOutClicks
from elute.training.task import Task
from elute.training.weights import WEIGHTED

NETWORKS = {"mlp": PAPER, "linear": LINEAR}


def build_network(model: str, hidden: Sequence[int] | None = None, dropout: float | None = None) -> Network:
    """The network of that name, with other hidden layers or another dropout where these are given."""
    base = NETWORKS[model]
    widths = base.hidden if hidden is None else tuple(hidden)
    return Network(hidden=widths, dropout=base.dropout if dropout is None else dropout)


class Learnt(NamedTuple):
    """A network as arrays that score raw features, and how it came about."""

    arrays: dict[str, NDArray[Any]]
    history: list[Moment]
    propensities: NDArray[np.float32]
    """By position, position 1 = 1; of no meaning where the task has weights."""
    note: str
    """What is known of such propensities."""


def learn(
    task: Task,
    name: str,
    network: Network,
    settings: Settings,
    *,
    rate: float,
    seed: int,
    own: Mapping[str, Any] = MappingProxyType({}),
    checkpoint: Path | None = None,
    progress: Progress = silent,
) -> Learnt:
    """Train a network. Features are put on one scale first, and the scale becomes part of the ranker.

    `own`: settings of the learner."""
    scale = LogStandard.fit(as_ranking(task.features.values))
    scaled = _scale_documents(task, scale)
    source = _make_source(task, scaled)
    held: RankingData | HeldOutClicks | None = None if task.validation is None else scale(task.validation)
    if held is None and task.held_out is not None:
        held = task.held_out._replace(features=scaled)
    model = as_learner(name, network, rate, own)
    trained = train(model, source, settings, seed=seed, validation=held, progress=progress, checkpoint=checkpoint)
    arrays: dict[str, NDArray[Any]] = {**export.to_arrays(model, trained.state), "mean": scale.mean, "sd": scale.sd}
    return Learnt(arrays, trained.history, trained.propensities(), model.note)


def _scale_documents(task: Task, scale: LogStandard) -> NDArray[np.float32]:
    raw = task.features.values
    scaled: NDArray[np.float32] = task.storage.new_array("scaled", raw.shape, np.float32)
    for part, out in zip(split_rows(raw), split_rows(scaled), strict=True):
        out[:] = scale.apply(part)
    return scaled


def _make_source(task: Task, scaled: NDArray[np.float32]) -> BatchSource:
    """The pages with scaled features: on the device where they fit, else read as they are needed."""
    logged_lists = (scaled, task.pages.documents, task.compute_targets(), task.pages.scores)
    device = device_memory()
    if task.storage.on_disk or (device is not None and _count_bytes(logged_lists) > device // 2):
        return Host(*logged_lists)
    return build_logged_source(*logged_lists)


def _count_bytes(arrays: tuple[NDArray[Any] | None, ...]) -> int:
    return sum(array.nbytes for array in arrays if array is not None)


def as_learner(name: str, network: Network, rate: float, own: Mapping[str, Any] = MappingProxyType({})) -> Learner:
    """With weighted clicks, inverse propensity weighting is what naive learning is with plain ones."""
    return named("naive" if name in WEIGHTED else name, network=network, optimiser=Optimiser(rate=rate), **own)


def require_steps(name: str, own: Mapping[str, Any], steps: int) -> None:
    """Refuse fewer steps than a learner prepares for: another would be learnt than was asked for."""
    prepares = as_learner(name, LINEAR, 1.0, own).prepares
    if steps <= prepares:
        raise EluteError(
            f"the learner '{name}' prepares for {prepares:,} steps, and there are {steps:,} in all; give more, or set "
            "its `pretraining` lower"
        )


def as_ranking(features: NDArray[np.float32]) -> RankingData:
    """Features without queries, for what looks at features alone."""
    n = len(features)
    return RankingData(features, np.zeros(n, np.int32), np.array([0, n]), np.array([""]), np.zeros(n, np.str_))
