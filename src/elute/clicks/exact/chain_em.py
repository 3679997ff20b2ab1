"""Chains by EM, sped up by squared extrapolation (SQUAREM, Varadhan and Roland 2008).

Without a prior this is maximum likelihood. With one, what is maximised over the prior of each rate of documents and
over the rates that all share is the marginal likelihood, documents integrated out, as far as a factorised posterior
knows it: documents have Beta posteriors made of expected tallies, the prior is refitted to these in every round
(`elute.clicks.base.ranked_prior`), and the E-step judges a place by the others (`elute.clicks.exact.expectation`). That
will do for attraction, most of which is seen. Satisfaction is hidden, and integrated out
(`elute.clicks.exact.satisfaction`).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from typing import NamedTuple, TypeVar

import numpy as np

from elute.clicks.backend import jnp, sigmoid
from elute.clicks.base.model import ExactFit, Floats
from elute.clicks.base.ranked_prior import RankedPrior, choose_prior, update
from elute.clicks.base.tower_model import TowerModel
from elute.clicks.exact.expectation import ChainSums, Weights, expect
from elute.clicks.exact.satisfaction import Endings
from elute.clicks.exact.shared import attraction_params
from elute.clicks.exact.tally import mean_log_ranks, ranks_of, tally
from elute.clicks.logspace import to_logits
from elute.clicks.page import DevicePages, split_pages
from elute.clicks.sessions import Sessions, SessionSource, iterate_sessions
from elute.clicks.structure.chain import ChainStructure
from elute.clicks.structure.towers import Params, to_embedding
from elute.errors import EluteError
from elute.progress import Progress

C = TypeVar("C", bound=ChainStructure)

_PIECE = 1 << 13
"""Sessions; the last piece is filled up to as many."""

_TOLERANCE = 1e-6
"""Of the mean log-likelihood of a session, gained in one cycle."""

_CYCLES = 200
"""At most."""

_NEAR = 1e-3
"""How near to 0 or 1 is as good as there."""

HIDDEN = "satisfaction"
"""The rate of documents that is integrated out, where there is a prior."""

_CERTAIN = 1e9
"""Trials that no prior moves and no place left out."""

_EDGE = 1e-9
"""How near to 0 and 1 an extrapolation may come."""


class ChainCounts(NamedTuple):
    """Counts that do not change while EM runs; `turn` counts clicks with a place below to go on to.

    `above`: impressions at or above the last click, all of them where nothing is clicked. `stayed`: last clicks with a
    place below.
    """

    shown: Floats
    clicks: Floats
    above: Floats
    turns: Floats
    stayed: Floats
    turns_by_rank: Floats
    stayed_by_rank: Floats
    sessions: int


def count_chains(source: SessionSource, documents: int, ranks: int) -> ChainCounts:
    """Count, in one pass."""
    by_doc = np.zeros((5, documents))
    by_rank = np.zeros((2, ranks))
    sessions = 0
    for part in iterate_sessions(source):
        mask, clicked = part.mask, part.clicked
        rank = np.arange(part.width)
        last = np.where(clicked, rank + 1, 0).max(axis=1, initial=0)
        above = mask & ((rank < last[:, None]) | (last == 0)[:, None])
        turn = clicked & (rank + 1 < part.length[:, None])
        stay = turn & (rank + 1 == last[:, None])
        for row, flags in enumerate((mask, clicked, above, turn, stay)):
            by_doc[row] += np.bincount(part.doc[flags], minlength=documents)
        for row, flags in enumerate((turn, stay)):
            by_rank[row, : part.width] += flags.sum(axis=0)
        sessions += int((part.length > 0).sum())
    shown, clicks, above, turns, stayed = by_doc
    return ChainCounts(shown, clicks, above, turns, stayed, by_rank[0], by_rank[1], sessions)


class ChainState(NamedTuple):
    """Where EM is. `tallies`: of every rate of documents, how often it happened and of how many times, by document (of
    one that is integrated out: its posterior mean, of very many). `rest`: the rates that all documents share."""

    tallies: dict[str, Floats]
    rest: dict[str, Floats]


class ChainModel(TowerModel[C]):
    """A chain fitted by EM from the closed form in which the user is taken to have left at the last click."""

    @property
    def boundary_(self) -> list[str]:
        """Rates of going on that are 0 or 1."""
        if "continuation" not in self.params_:
            return []
        rates = np.ravel(np.asarray(sigmoid(self.params_["continuation"]), np.float64))
        near = np.flatnonzero((rates < _NEAR) | (rates > 1.0 - _NEAR))
        return [f"continuation {int(place) + 1 if len(rates) > 1 else ''} = {rates[place]:.0f}" for place in near]

    @abstractmethod
    def _begin(self, seen: ChainCounts) -> ChainState:
        """The closed form."""

    def _fit_exactly(self, source: SessionSource, progress: Progress) -> ExactFit:
        seen = count_chains(source, self.documents, self.ranks)
        if not seen.sessions:
            raise EluteError("there are no sessions to fit")
        held = [pages for _, pages in split_pages(source, _PIECE)] if isinstance(source, Sessions) else None
        z, centre = mean_log_ranks(tally(source, self.documents, self.ranks, ranks_of), np.arange(self.ranks))
        first = self._begin(seen)
        integrates = self.prior is not None and HIDDEN in first.tallies
        priors: dict[str, RankedPrior] = {}
        endings: Endings | None = None

        def choose(at: ChainState) -> None:
            for name, (happened, trials) in at.tallies.items():
                if name == HIDDEN and endings is not None and self.prior == "fitted":
                    priors[name] = endings.choose_prior(z, priors[name])
                else:
                    priors[name] = choose_prior(self.prior, happened, trials, z, priors.get(name))

        def step(at: ChainState) -> tuple[ChainState, float]:
            """The next state, and the objective of this one, by session."""
            nonlocal endings
            weights = {name: _weigh(both, priors[name], z) for name, both in at.tallies.items()}
            sums = self._expect(weights, at.rest, held, source)
            rest = {name: _divide(sums.tallies[name], before) for name, before in at.rest.items()}
            tallies = {name: sums.tallies[name] for name in at.tallies}
            if integrates:
                endings = Endings.gather(sums.last, seen.turns - seen.stayed, float(at.rest.get("continuation", 1.0)))
                means = endings.average(priors[HIDDEN], z)
                tallies[HIDDEN] = np.stack((means * _CERTAIN, np.full_like(means, _CERTAIN)))
            return ChainState(tallies, rest), sums.log_likelihood / seen.sessions

        found, cycles, converged = climb(step, choose, first, _CYCLES, progress)
        params = self._build_params(found, priors, z, seen.shown > 0, centre)
        return ExactFit(params, cycles, converged, {name: prior.to_dict() for name, prior in priors.items()})

    def _build_params(
        self, found: ChainState, priors: dict[str, RankedPrior], z: Floats, shown: np.ndarray, centre: float
    ) -> Params:
        params: Params = {name: jnp.asarray(to_logits(values)) for name, values in found.rest.items()}
        for name, (happened, trials) in found.tallies.items():
            means = update(happened, trials, priors[name], z)
            if name == "attraction":
                params |= attraction_params(means, shown, priors[name], centre, self.ranks)
            else:
                params[name] = to_embedding(means, 1.0 / (1.0 + math.exp(-priors[name].level)))
        return params

    def _expect(
        self,
        weights: dict[str, Weights],
        rest: dict[str, Floats],
        held: list[DevicePages] | None,
        source: SessionSource,
    ) -> ChainSums:
        total: ChainSums | None = None
        around = (
            held
            if held is not None
            else (pages for part in iterate_sessions(source) for _, pages in split_pages(part, _PIECE))
        )
        for pages in around:
            one = expect(self.structure, self.prior is not None, weights, rest, pages)
            total = one if total is None else total.add(one)
        if total is None:
            raise EluteError("there are no sessions to fit")
        return total


def _weigh(tallied: Floats, prior: RankedPrior, z: Floats) -> Weights:
    """Prior and tallies together; a document nothing is known of is typical."""
    happened, trials = tallied
    if prior.strength > 0.0:
        a, b = prior.counts(z)
        return Weights(happened + a, np.maximum(trials - happened, 0.0) + b)
    typical = 1.0 / (1.0 + math.exp(-prior.level))
    some = trials > 0
    return Weights(np.where(some, happened, typical), np.where(some, np.maximum(trials - happened, 0.0), 1.0 - typical))


def _divide(tallied: Floats, before: Floats) -> Floats:
    """A rate that all share; as before where it plays no part."""
    happened, trials = tallied
    return np.clip(np.where(trials > 0, happened / np.where(trials > 0, trials, 1.0), before), 0.0, 1.0)


def climb(
    step: Callable[[ChainState], tuple[ChainState, float]],
    choose: Callable[[ChainState], None],
    state: ChainState,
    cycles: int,
    progress: Progress,
) -> tuple[ChainState, int, bool]:
    """Choose the prior, two steps of EM, an extrapolation from them, and on from there where that is no worse.

    And how many cycles were made, and whether the last gained nothing.
    """
    before = -np.inf
    for cycle in range(1, cycles + 1):
        choose(state)
        one, value = step(state)
        progress("fitting", cycle, 0)
        if abs(value - before) < _TOLERANCE:
            return state, cycle, True
        before = value
        two, reached = step(one)
        far = _extrapolate(state, one, two)
        landed, value_far = step(far)
        state = landed if value_far >= reached else two
    return state, cycles, False


def _extrapolate(zero: ChainState, one: ChainState, two: ChainState) -> ChainState:
    """Along two steps, each rate of documents by its share and by its number of trials."""
    points = [_to_vector(state) for state in (zero, one, two)]
    first, second = points[1] - points[0], points[2] - 2.0 * points[1] + points[0]
    length = max(1.0, float(np.linalg.norm(first)) / max(float(np.linalg.norm(second)), 1e-300))
    far = points[0] + 2.0 * length * first + length**2 * second
    rest, at = {}, 0
    tallies = {}
    for name, values in zero.tallies.items():
        amount = values.shape[1]
        share = np.clip(far[at : at + amount], _EDGE, 1.0 - _EDGE)
        tallies[name] = np.stack((share * two.tallies[name][1], two.tallies[name][1]))
        at += amount
    for name, values in zero.rest.items():
        rest[name] = np.clip(far[at : at + values.size], _EDGE, 1.0 - _EDGE).reshape(values.shape)
        at += values.size
    return ChainState(tallies, rest)


def _to_vector(state: ChainState) -> Floats:
    shares = [np.divide(h, t, out=np.full_like(h, 0.5), where=t > 0) for h, t in state.tallies.values()]
    return np.concatenate([*shares, *(values.ravel() for values in state.rest.values())])
