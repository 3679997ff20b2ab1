"""The training loop: runs of fused steps, validation, early stopping, checkpoints."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import ArrayLike, NDArray

from elute.errors import Diverged, EluteError
from elute.neural import checkpoint as checkpoints
from elute.neural.data import check_features
from elute.neural.learner import Learner, State, score_documents
from elute.neural.metrics import GradedDocuments, ndcg, to_graded_documents
from elute.neural.networks import Key
from elute.neural.sources import BatchSource, Online
from elute.options.kinds import Whole
from elute.options.table import OPTIONS
from elute.options.takes import declares
from elute.progress import Progress, silent
from elute.ranking.data import RankingData


@declares(
    steps=OPTIONS["steps"],
    batch=OPTIONS["batch"],
    fused=Whole(1),
    every=Whole(1),
    patience=OPTIONS["patience"],
    k=Whole(1),
)
@dataclass(frozen=True, kw_only=True)
class Settings:
    """How long and how to train; the defaults are those of the UPE paper (5.1)."""

    steps: int = 10_000
    batch: int = 256
    fused: int = 50
    """Steps in one call of the device."""
    every: int = 500
    """Steps between validations, checkpoints and calls of the progress."""
    patience: int | None = None
    """Validations in a row without a better one after which training stops; None: never."""
    k: int = 10
    """Validation by grades is by nDCG@k."""


class Validation(Protocol):
    """What rankers are compared by where there are no grades."""

    @property
    def name(self) -> str:
        """Of the measure."""
        ...

    def compare(self, score: Callable[[NDArray[np.float32]], NDArray[Any]], propensities: NDArray[np.float32]) -> float:
        """Higher is better, and at least 0; `score` scores documents by their features, `propensities` are those of
        the learner at this moment."""
        ...


class Moment(NamedTuple):
    """What was measured at a validation."""

    step: int
    loss: float
    """Mean since the last one."""
    ndcg: float
    """Or what another validation has in its place; NaN without any."""
    propensities: NDArray[np.float32]
    """Position 1 = 1."""


class TrainedLearner(NamedTuple):
    """A learner with the state to use: the best one on the validation data, else the last one."""

    learner: Learner
    state: State
    history: list[Moment]

    def scores(self, features: ArrayLike) -> NDArray[np.float32]:
        """By document row; a higher score ranks higher."""
        return np.asarray(score_documents(self.learner, self.state, jnp.asarray(check_features(features))))

    def propensities(self, against: int = 1) -> NDArray[np.float32]:
        """By position, with that of position `against` set to 1."""
        return np.asarray(self.learner.propensities(self.state, against))


class _TrainingRun(NamedTuple):
    """All that decides how training goes on; this is what a checkpoint holds."""

    state: State
    best: State
    best_ndcg: np.float32
    stale: np.int32
    """Validations since the best one."""
    changing: dict[str, Array]
    history: NDArray[np.float32]
    """(validations, 3 + positions)."""


def train(
    learner: Learner,
    source: BatchSource,
    settings: Settings = Settings(),  # noqa: B008 - frozen
    *,
    seed: int = 0,
    validation: RankingData | Validation | None = None,
    progress: Progress = silent,
    checkpoint: str | Path | None = None,
) -> TrainedLearner:
    """Train a learner. With a `checkpoint`, its file is written as training goes, and resumed where it exists."""
    _check(settings, source, validation)
    n_features, positions = source.shape
    state = _start(learner, jax.random.PRNGKey(seed), n_features, positions)
    nothing = np.zeros((0, 3 + positions), np.float32)
    run = _TrainingRun(state, state, np.float32(-1), np.int32(0), source.changing_arrays(), nothing)
    if checkpoint is not None and Path(checkpoint).exists():
        run = _TrainingRun(*checkpoints.load(checkpoint, run))
        if not len(run.history) or run.history[-1, 0] != np.float32(run.state.step):
            raise EluteError(f"{checkpoint} does not fit together; delete it to start over")
        source = source.replace_arrays(run.changing)
    held = to_graded_documents(validation) if isinstance(validation, RankingData) else validation
    measure = getattr(validation, "name", f"nDCG@{settings.k}")
    while int(run.state.step) < settings.steps and not _is_stopped(run, settings):
        run, source = _train_until_next(learner, source, run, settings, held)
        step, value = int(run.state.step), float(run.history[-1, 2])
        progress("training" if held is None else f"training: {measure} {value:.4f}", step, settings.steps)
        if checkpoint is not None:
            checkpoints.save(checkpoint, run)
    moments = [Moment(int(row[0]), float(row[1]), float(row[2]), np.asarray(row[3:])) for row in run.history]
    return TrainedLearner(learner, run.state if held is None else run.best, moments)


def _train_until_next(
    learner: Learner,
    source: BatchSource,
    run: _TrainingRun,
    settings: Settings,
    held: GradedDocuments | Validation | None,
) -> tuple[_TrainingRun, BatchSource]:
    """Train up to the next validation, and validate."""
    state, step = run.state, int(run.state.step)
    end = min((step // settings.every + 1) * settings.every, settings.steps)
    losses, lengths = [], []
    while step < end:
        length = min(settings.fused, end - step)
        state, loss = source.advance(learner, state, length, settings.batch)
        step += length
        source = source.refresh(learner, state, step)
        losses.append(loss)
        lengths.append(length)
    loss = np.average(jax.device_get(losses), weights=lengths)
    if not np.isfinite(loss):
        raise Diverged(
            f"the loss is no longer finite at step {step:,}; lower the learning rate ({learner.optimiser.rate:g})"
        )
    propensities = np.asarray(_compute_propensities(learner, state))
    if held is None:
        value = np.float32(np.nan)
    elif isinstance(held, GradedDocuments):
        value = np.float32(_validate(learner, state, held, settings.k))
    else:
        score = TrainedLearner(learner, state, []).scores
        value = np.float32(held.compare(score, propensities))
    row = np.concatenate(([step, loss, value], propensities), dtype=np.float32)
    better = bool(value > run.best_ndcg)
    return _TrainingRun(
        state,
        state if better else run.best,
        value if better else run.best_ndcg,
        np.int32(0 if better else run.stale + 1),
        source.changing_arrays(),
        np.concatenate((run.history, row[None])),
    ), source


@partial(jax.jit, static_argnames=("learner", "n_features", "positions"))
def _start(learner: Learner, key: Key, n_features: int, positions: int) -> State:
    return learner.init(key, n_features, positions)


@partial(jax.jit, static_argnames="learner")
def _compute_propensities(learner: Learner, state: State) -> Array:
    return learner.propensities(state)


@partial(jax.jit, static_argnames=("learner", "k"))
def _validate(learner: Learner, state: State, held: GradedDocuments, k: int) -> Any:
    return ndcg(learner.scores(state, held.features), held, k)


def _is_stopped(run: _TrainingRun, settings: Settings) -> bool:
    return settings.patience is not None and int(run.stale) >= settings.patience


def _check(settings: Settings, source: BatchSource, validation: RankingData | Validation | None) -> None:
    if settings.every % settings.fused:
        raise EluteError(f"every ({settings.every}) must be a multiple of fused ({settings.fused})")
    if isinstance(source, Online) and source.every % settings.fused:
        raise EluteError(
            f"lists are renewed every {source.every} steps, which must be a multiple of fused ({settings.fused})"
        )
    if settings.patience is not None and validation is None:
        raise EluteError("patience counts validations and needs validation data; pass `validation=`")
    if isinstance(validation, RankingData) and validation.features.shape[1] != source.shape[0]:
        have, want = validation.features.shape[1], source.shape[0]
        raise EluteError(f"validation documents have {have} features, training documents {want}; they must be the same")
