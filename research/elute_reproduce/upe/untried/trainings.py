"""One training of a reading, small enough for a processor, and the exact optimum of its second stage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from elute.neural import dual, joint
from elute.neural.learner import Learner, State, score_documents
from elute.neural.learners.dla import DLA
from elute.neural.learners.upe import AFTER_PUBLIC_CODE, UPE, Stages
from elute.neural.losses import log_softmax
from elute.neural.metrics import list_candidates, ndcg, to_graded_documents
from elute.neural.networks import Network
from elute.neural.sources import BatchSource, Offline, Online, SimulatedLists, build_simulated_lists
from elute.ranking.data import RankingData
from elute_reproduce.upe.exact import Floats, ShownLists, solve, target_of
from elute_reproduce.upe.experiment.training import Setup
from elute_reproduce.upe.experiment.worlds import STRONG, WEAK, Graded, set_up, take_top
from elute_reproduce.upe.untried import public_versions
from elute_reproduce.upe.untried.public_versions import PublicUPE
from elute_reproduce.upe.untried.separate import SeparateUPE
from elute_reproduce.upe.untried.steered import Steered, set_rate

RANDOM_START = "ond, random at first"
"""Online, from lists that a random ranker shows."""


@dataclass(frozen=True)
class Size:
    """How much is trained: less than the paper's, for a processor."""

    steps: int = 1_000
    batch: int = 64
    renewed: int = 250
    """Steps between two renewals of the lists, and in a cycle of stages."""
    stage: int = 100
    """Steps of each of UPE's two stages."""
    fused: int = 50
    """Steps between two adjustments over all lists."""
    hidden: tuple[int, ...] = (64, 32)


SMALL = Size()
TEXT, STAGED, AFTER_CODE, SEPARATE = "upe", "upe, in stages", "upe, after the public code", "upe, separate y^p"
FIRST, NOW = "public code, first version", "public code, now"
AT_REST = "upe, separate y^p of 10,000 steps"
TARGET = "dla"

LONG = {
    STRONG: (3.006, 2.719, 2.331, 1.823, 1.517, 1.102, 0.404, 0.216, 0.057, 0.0),
    WEAK: (2.501, 2.278, 1.990, 1.602, 1.379, 0.998, 0.389, 0.261, 0.098, 0.0),
}
"""Log propensities that dual learning found at the paper's size, on the larger set of `upe-propensities`; medians over
its seeds. None is below 0, where the dual problem's parameters are its logits."""


@dataclass(frozen=True)
class FoundReading:
    """p₁/p₁₀ of one training, and what the law makes of it."""

    trained: float
    target: float
    """What the second stage was given: DLA's own propensities, or clicks weighted by inverse relevance."""
    exact: float
    """The optimum of the second stage with the logging score (Eq. 13), averaged over documents at all positions."""
    own: float
    """The same with the confounder as far as it was learnt, in place of the logging score; NaN without one."""
    reached: float
    """Of the shares that a frozen second stage gives documents where they stand: `target` at its optimum; else NaN."""
    ndcg: float
    """@10 on the test queries."""
    validation: float


def build_reading(name: str, size: Size, given: Sequence[float] = ()) -> Learner:
    """The learner of a reading; its rate is set later."""
    rule, network = Steered(start=0.0), Network(hidden=size.hidden)
    upe: dict[str, Any] = {"network": network, "optimiser": rule, "over": "log"}
    stages = Stages(size.stage, size.stage, size.renewed)
    plain = Network(hidden=size.hidden, dropout=0.0)
    if name == TARGET:
        return DLA(network=network, optimiser=rule)
    if name in (SEPARATE, AT_REST):
        whole = Stages(size.steps // 3, size.steps // 3, size.steps)
        return SeparateUPE(**upe, stages=whole, given=tuple(given))
    if name in (FIRST, NOW):
        if name == FIRST:
            return PublicUPE(network=plain, optimiser=Steered(anew=True), encoder="transformer")
        return PublicUPE(network=plain, optimiser=rule, encoder="linear")
    return UPE(**upe, **{TEXT: {}, STAGED: {"stages": stages}, AFTER_CODE: AFTER_PUBLIC_CODE}[name])


def build_source(graded: Graded, world: Setup, seed: int, size: Size, paradigm: str) -> Offline:
    """Lists of a logging policy that stay; or, online, those of a random ranker at first."""
    documents, logging = world.documents[seed], world.logging[seed]
    if paradigm == RANDOM_START:
        scores = np.random.default_rng(seed).normal(size=graded.train.n_documents)
        documents, logging = take_top(graded.train, scores, documents.shape[1])
    shown = build_simulated_lists(graded.train.features, documents, logging, world.relevance, world.propensities)
    if paradigm != RANDOM_START:
        return Offline(shown)
    return Online(shown, jnp.asarray(list_candidates(graded.train)), size.renewed)


def train_reading(graded: Graded, paradigm: str, name: str, rate: float, seed: int, size: Size = SMALL) -> FoundReading:
    """Train a reading and solve its second stage."""
    world = set_up(graded, paradigm, seed + 1)
    source = build_source(graded, world, seed, size, paradigm)
    given: Sequence[float] = ()
    if name == SEPARATE:
        before, _ = advance(build_reading(TARGET, size), source, rate, seed + 1_000, size)
        given = np.asarray(before.params["dual"]).tolist()
    elif name == AT_REST:
        given = LONG[paradigm]
    learner = build_reading(name, size, given)
    state, last = advance(learner, source, rate, seed, size)
    log_p = np.asarray(learner.log_propensities(state), np.float64)
    target, exact, own = solve_reading(learner, state, last)
    return FoundReading(
        trained=float(np.exp(log_p[0] - log_p[-1])),
        target=target,
        exact=exact,
        own=own,
        reached=measure_reached(learner, state, last),
        ndcg=_measure(learner, state, graded.test),
        validation=float("nan") if graded.validation is None else _measure(learner, state, graded.validation),
    )


def advance(learner: Learner, source: Offline, rate: float, seed: int, size: Size) -> tuple[State, SimulatedLists]:
    """All steps; the state after them, and the lists that the last of them were on."""
    state = _start(learner, jax.random.PRNGKey(seed), *source.shape)
    state = state._replace(optimiser=set_rate(state.optimiser, rate))
    now: BatchSource = source
    for step in range(size.fused, size.steps + 1, size.fused):
        state, _ = now.advance(learner, state, size.fused, size.batch)
        if step < size.steps:
            now = now.refresh(learner, state, step)
    lists = now.data  # type: ignore[attr-defined]  # of simulated lists, as it was at the start
    return _adjust(learner, state, lists), lists


def solve_reading(learner: Learner, state: State, lists: SimulatedLists) -> tuple[float, float, float]:
    """p₁/p₁₀ of the target that the second stage has now; at its optimum with the logging score, and with its own."""
    rows = np.asarray(lists.documents)
    there = rows >= 0
    relevance = np.where(there, np.asarray(lists.relevance)[np.maximum(rows, 0)], np.nan).astype(np.float64)
    shown = ShownLists(np.where(there, np.asarray(lists.logging, np.float64), np.nan), relevance)
    if "dual" in state.params and getattr(learner, "target", "logit") == "logit":
        y = np.asarray(dual.logits(state.params["dual"]), np.float64)
        wanted = target_of(y, there)
    else:
        wanted = _weigh_clicks(learner, state, lists, shown)
    learnt = _confounder(learner, state, lists)
    scores = (np.zeros(rows.shape), shown.score, np.full(rows.shape, np.nan) if learnt is None else learnt)
    found = [np.exp(solve(score, wanted, there)[0]) if np.isfinite(score[there]).all() else np.nan for score in scores]
    return float(found[0]), float(found[1]), float(found[2])


def measure_reached(learner: Learner, state: State, lists: SimulatedLists) -> float:
    """p₁/p₁₀ of the mean softmax over each list, documents at their own positions."""
    if not isinstance(learner, UPE) or not learner.frozen:
        return float("nan")
    document = state.params["document"]
    encoded = joint.encode(document, lists.features[jnp.maximum(lists.documents, 0)])
    mask = lists.documents >= 0
    fitted = log_softmax(joint.score(document, encoded + state.params["position"]), mask)
    shares = np.asarray(jnp.where(mask, jnp.exp(fitted), 0.0).sum(axis=0), np.float64)
    return float(shares[0] / shares[-1])


def _confounder(learner: Learner, state: State, lists: SimulatedLists) -> Floats | None:
    """What the network without positions has learnt of the logging score, by list and position."""
    if "document" not in state.params:
        return None
    document, mask = state.params["document"], lists.documents >= 0
    x = lists.features[jnp.maximum(lists.documents, 0)]
    if isinstance(learner, PublicUPE):
        return np.asarray(public_versions.score(document, learner.encode(document, x, mask, None)), np.float64)
    return np.asarray(joint.score(document, joint.encode(document, x)), np.float64)


def _weigh_clicks(learner: Learner, state: State, lists: SimulatedLists, shown: ShownLists) -> Floats:
    """Expected clicks × inverse relevance, by the ranker as it is."""
    of_document = np.asarray(score_documents(learner, state, lists.features), np.float64)
    scores = of_document[np.maximum(np.asarray(lists.documents), 0)]
    weights = np.asarray(dual.inverse_relevance(jnp.asarray(scores)), np.float64)
    return np.where(shown.there, np.asarray(lists.propensities, np.float64) * shown.relevance * weights, 0.0)


def _measure(learner: Learner, state: State, data: RankingData) -> float:
    held = to_graded_documents(data)
    return float(ndcg(score_documents(learner, state, held.features), held))


@partial(jax.jit, static_argnames=("learner", "n_features", "positions"))
def _start(learner: Learner, key: Any, n_features: int, positions: int) -> State:
    return learner.init(key, n_features, positions)


@partial(jax.jit, static_argnames="learner")
def _adjust(learner: Learner, state: State, lists: SimulatedLists) -> State:
    return learner.adjust_over_log(state, lists.features, lists.documents)
