"""The trainings of section 5.1 of the UPE paper, all seeds of one learner at once.

Each seed has its own lists, clicks and first weights; one program trains them side by side, which a GPU does in
little more time than one. Imports numpy, jax and optax only, so that it runs on a bare GPU machine.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from elute.neural.learner import Learner, State, score_documents, step_key
from elute.neural.metrics import GradedDocuments, list_candidates, ndcg, to_graded_documents
from elute.neural.sources import SimulatedLists, build_simulated_lists, rank_lists
from elute.progress import Progress, silent
from elute.ranking.data import RankingData
from elute_reproduce.upe.experiment.fixed_effects import fixed_effects

Floats = NDArray[np.float64]


class Schedule(NamedTuple):
    """How long to train, and on how much at a time; the defaults are the paper's."""

    steps: int = 10_000
    batch: int = 256
    every: int = 500
    """Steps between measurements."""
    renewed: int = 2_500
    """Steps between two renewals of the lists (OnD)."""


PAPER = Schedule()


@dataclass(frozen=True, eq=False)
class Setup:
    """A data set under one paradigm: what is shown at the start, for each seed, and to whom it is told in the end."""

    train: RankingData
    relevance: Floats
    """By document of `train`: the chance of a click where it is seen."""
    propensities: Floats
    """The truth, by position."""
    items: NDArray[np.int32]
    """By document of `train`: equal numbers for equal features."""
    documents: NDArray[np.int32]
    """(seeds, lists, positions) rows of `train`; -1 after a list's last."""
    logging: NDArray[np.float32]
    """(seeds, lists, positions): the scores they were ranked by."""
    online: bool
    validation: RankingData | None
    test: RankingData


class Outcome(NamedTuple):
    """What a learner came to, for each seed."""

    steps: NDArray[np.int64]
    """When it was measured."""
    log_ratio: NDArray[np.float32]
    """(seeds, measurements, positions): log propensities against the last position."""
    validation: NDArray[np.float32]
    """(seeds, measurements): nDCG@10; NaN without validation data."""
    test: NDArray[np.float32]
    """(seeds, measurements): nDCG@10, to be shown and never to be chosen by."""
    scores: NDArray[np.float32]
    """(seeds, test documents): by the ranker that is best on the validation data; without such data, the last."""
    log_se: NDArray[np.float64]
    """(seeds, positions): of the last log ratios, where the learner has them, else NaN."""
    merges: NDArray[np.int64]
    """(seeds): pairs of positions whose propensities the log could not tell apart; 0 where no fit was made."""
    seconds: float


class _Tally(NamedTuple):
    """The log so far, by item and position."""

    impressions: Array
    clicks: Array


class _Lists(NamedTuple):
    documents: Array
    logging: Array


def train_seeds(
    learners: Sequence[Learner],
    setup: Setup,
    *,
    fitted: bool = False,
    schedule: Schedule = PAPER,
    progress: Progress = silent,
) -> Outcome:
    """Train one learner a seed; they may differ in the propensities they are given, and in nothing else.

    `fitted`: the propensities are fitted anew to all clicks so far at every measurement (the learner `elute`).
    """
    began = time.perf_counter()
    model, positions = learners[0], setup.documents.shape[2]
    shape = setup.train.features.shape[1], positions
    truth = build_simulated_lists(
        setup.train.features, setup.documents[0], setup.logging[0], setup.relevance, setup.propensities
    )
    states = _stack([one.init(jax.random.PRNGKey(seed), *shape) for seed, one in enumerate(learners)])
    lists = _Lists(jnp.asarray(setup.documents), jnp.asarray(setup.logging))
    items = jnp.asarray(setup.items)
    size = (len(learners), int(setup.items.max()) + 1, positions)
    tally = _Tally(jnp.zeros(size, jnp.int32), jnp.zeros(size, jnp.int32)) if fitted else None
    every_document = jnp.asarray(list_candidates(setup.train))
    held = None if setup.validation is None else to_graded_documents(setup.validation)
    shown = to_graded_documents(setup.test)
    best, best_value = states, np.full(len(learners), -1.0)
    log_se, merges = np.full((len(learners), positions), np.nan), np.zeros(len(learners), np.int64)
    history: list[tuple[Any, ...]] = []
    for step in range(schedule.every, schedule.steps + 1, schedule.every):
        states, tally = _advance(model, schedule, truth, lists, items, states, tally)
        if tally is not None:
            states, log_se, merges = _refit(states, tally)
        if setup.online and step % schedule.renewed == 0:
            lists = _renew(model, states, truth.features, every_document, positions)
        value = np.full(len(learners), np.nan) if held is None else _measure(model, states, held)
        history.append((step, _log_ratios(model, states), value, _measure(model, states, shown)))
        better = value > best_value
        best_value = np.where(better, value, best_value)
        best = states if held is None else _choose(jnp.asarray(better), states, best)
        progress(f"training: nDCG@10 {history[-1][3].mean():.4f}", step, schedule.steps)
    scores = np.stack(
        [np.asarray(score_documents(model, _select_seed(best, s), shown.features)) for s in range(len(learners))]
    )
    at, ratios, values, tests = zip(*history, strict=True)
    return Outcome(
        steps=np.array(at),
        log_ratio=_stack_by_seed(ratios),
        validation=_stack_by_seed(values),
        test=_stack_by_seed(tests),
        scores=scores,
        log_se=log_se,
        merges=merges,
        seconds=time.perf_counter() - began,
    )


def _stack_by_seed(measured: Sequence[Any]) -> NDArray[np.float32]:
    return np.stack(measured, axis=1).astype(np.float32)


@partial(jax.jit, static_argnames=("learner", "schedule"))
def _advance(
    learner: Learner,
    schedule: Schedule,
    truth: SimulatedLists,
    lists: _Lists,
    items: Array,
    states: State,
    tally: _Tally | None,
) -> tuple[State, _Tally | None]:
    """The steps up to the next measurement, of every seed; with a tally, its counts go on."""

    def advance_seed(own: _Lists, state: State, tally: _Tally | None) -> tuple[State, _Tally | None]:
        shown = truth._replace(documents=own.documents, logging=own.logging)

        def step_once(carry: tuple[State, _Tally | None], _: None) -> tuple[tuple[State, _Tally | None], None]:
            state, tally = carry
            batch = shown.draw(step_key(state, 0), schedule.batch)
            after, _loss = learner.step(state, truth.features, batch)
            return (after, tally and _count(tally, batch.documents, batch.clicks, items)), None

        end: tuple[State, _Tally | None] = jax.lax.scan(step_once, (state, tally), None, length=schedule.every)[0]
        return end

    after: tuple[State, _Tally | None]
    if jax.default_backend() == "cpu":  # it has no use for several seeds at once
        after = jax.lax.map(lambda seed: advance_seed(*seed), (lists, states, tally))
    else:
        after = jax.vmap(advance_seed)(lists, states, tally)
    return after


def _count(tally: _Tally, documents: Array, clicks: Array, items: Array) -> _Tally:
    there = (documents >= 0).astype(jnp.int32)
    where = items[jnp.maximum(documents, 0)], jnp.broadcast_to(jnp.arange(documents.shape[1]), documents.shape)
    return _Tally(tally.impressions.at[where].add(there), tally.clicks.at[where].add(clicks.astype(jnp.int32) * there))


def _refit(states: State, tally: _Tally) -> tuple[State, Floats, NDArray[np.int64]]:
    """States that weigh by propensities fitted to the tally; the errors of these, and how many merges they took."""
    fits = [fixed_effects(*counts) for counts in zip(np.asarray(tally.impressions), np.asarray(tally.clicks))]  # noqa: B905
    logs = jnp.asarray(np.stack([fit.log_ratio for fit in fits]), jnp.float32)
    states = states._replace(memory={"log_propensities": logs})
    return states, np.stack([fit.log_se for fit in fits]), np.array([fit.merges for fit in fits])


@partial(jax.jit, static_argnames=("learner", "positions"))
def _renew(learner: Learner, states: State, features: Array, every_document: Array, positions: int) -> _Lists:
    """What each seed's ranker shows now."""
    rank_seed = lambda state: rank_lists(learner.scores(state, features), every_document, positions)  # noqa: E731
    return _Lists(*jax.lax.map(rank_seed, states))


def _measure(learner: Learner, states: State, held: GradedDocuments) -> NDArray[np.float32]:
    return np.asarray(_ndcg(learner, states, held))


@partial(jax.jit, static_argnames="learner")
def _ndcg(learner: Learner, states: State, held: GradedDocuments) -> Array:
    values: Array = jax.lax.map(lambda state: ndcg(learner.scores(state, held.features), held), states)
    return values


def _log_ratios(learner: Learner, states: State) -> NDArray[np.float32]:
    logs = np.asarray(jax.vmap(learner.log_propensities)(states))
    return np.asarray(logs - logs[:, -1:])


def _stack(trees: Sequence[Any]) -> Any:
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *trees)


def _select_seed(states: State, seed: int) -> State:
    one: State = jax.tree.map(lambda leaf: leaf[seed], states)
    return one


def _choose(condition: Array, one: Any, other: Any) -> Any:
    def choose_leaf(a: Array, b: Array) -> Array:
        return jnp.where(condition.reshape(-1, *(1,) * (a.ndim - 1)), a, b)

    return jax.tree.map(choose_leaf, one, other)
