"""Maximum likelihood of chains by EM, sped up by squared extrapolation (SQUAREM, Varadhan and Roland 2008)."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from elute.clicks.base.beta import PseudoCounts
from elute.clicks.base.model import ExactFit, Floats
from elute.clicks.base.prior import pseudo_counts, rate, typical_rate
from elute.clicks.base.tower_model import TowerModel
from elute.clicks.exact.expectation import Expected, expectations
from elute.clicks.logspace import to_logits
from elute.clicks.page import DevicePages, split_pages
from elute.clicks.sessions import Sessions, SessionSource, iterate_sessions
from elute.clicks.structure.chain import ChainStructure
from elute.clicks.structure.towers import Params, to_embedding
from elute.errors import EluteError
from elute.progress import Progress

C = TypeVar("C", bound=ChainStructure)

_PIECE = 1 << 16
_TOLERANCE = 1e-6
"""Of the mean log-likelihood of a session, gained in one cycle."""

_CYCLES_BEFORE, _CYCLES = 3, 200
"""At most; the former of maximum likelihood, before a prior is fitted."""

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


Rates = dict[str, Floats]
"""Probabilities by name: those of towers by document, the others as the model has them."""

Tallies = dict[str, tuple[Floats, Floats]]
"""By tower: how often what it stands for happened, of how many times it could have, by document."""


class ChainModel(TowerModel[C]):
    """A chain fitted by EM from the closed form in which the user is taken to have left at the last click.

    A fitted prior is fitted to what is expected after a few cycles of maximum likelihood.
    """

    @abstractmethod
    def _begin(self, seen: ChainCounts) -> tuple[Tallies, Rates]:
        """The closed form: the tallies of documents, and the other rates."""

    @abstractmethod
    def _maximise(self, rates: Rates, expected: Expected, seen: ChainCounts) -> tuple[Tallies, Rates]:
        """The M-step, likewise; `rates` are those of the E-step."""

    def _fit_exactly(self, source: SessionSource, progress: Progress) -> ExactFit:
        seen = count_chains(source, self.documents, self.ranks)
        if not seen.sessions:
            raise EluteError("there are no sessions to fit")
        held = [pages for _, pages in split_pages(source, _PIECE)] if isinstance(source, Sessions) else None
        tallies, rest = self._begin(seen)
        fitted = self.prior == "fitted"
        added = {name: pseudo_counts(None if fitted else self.prior, *tally) for name, tally in tallies.items()}

        def step(at: Rates) -> tuple[Rates, float]:
            """The next rates, and the objective of these, by session."""
            expected = self._expect(at, held, source)
            value = expected.log_likelihood + _log_prior(at, added)
            return _compute_rates(*self._maximise(at, expected, seen), added), value / seen.sessions

        rates = _compute_rates(tallies, rest, added)
        if fitted:
            rates, _, _ = climb(step, rates, _CYCLES_BEFORE, progress)
            tallies, _ = self._maximise(rates, self._expect(rates, held, source), seen)
            added = {name: pseudo_counts("fitted", *tally) for name, tally in tallies.items()}
        rates, cycles, converged = climb(step, rates, _CYCLES, progress)
        return ExactFit(self._build_params(rates), cycles, converged)

    def _build_params(self, rates: Rates) -> Params:
        like = self.structure.init(jax.random.key(0), 0)
        return {
            name: to_embedding(values, float(values.mean()))
            if isinstance(like[name], dict)
            else jnp.asarray(to_logits(values))
            for name, values in rates.items()
        }

    def _expect(self, rates: Rates, held: list[DevicePages] | None, source: SessionSource) -> Expected:
        params = self._build_params(rates)
        total: Expected | None = None
        around = (
            held
            if held is not None
            else (pages for part in iterate_sessions(source) for _, pages in split_pages(part, _PIECE))
        )
        for pages in around:
            one = expectations(self.structure, params, self._features, pages, self.ranks)
            total = one if total is None else total.add(one)
        if total is None:
            raise EluteError("there are no sessions to fit")
        return total


def _compute_rates(tallies: Tallies, rest: Rates, added: dict[str, PseudoCounts]) -> Rates:
    """A document nothing is known of has the typical rate."""
    towers = {
        name: np.nan_to_num(rate(*tally, added[name]), nan=typical_rate(*tally, added[name]))
        for name, tally in tallies.items()
    }
    return towers | rest


def _log_prior(rates: Rates, added: dict[str, PseudoCounts]) -> float:
    value = 0.0
    for name, beta in added.items():
        if beta.a + beta.b > 0:
            p = np.clip(rates[name], _EDGE, 1.0 - _EDGE)
            value += beta.a * float(np.log(p).sum()) + beta.b * float(np.log1p(-p).sum())
    return value


def climb(
    step: Callable[[Rates], tuple[Rates, float]], rates: Rates, cycles: int, progress: Progress
) -> tuple[Rates, int, bool]:
    """Two steps of EM, an extrapolation from them, and on from there where that is no worse.

    And how many cycles were made, and whether the last gained nothing.
    """
    before = -np.inf
    for cycle in range(1, cycles + 1):
        one, value = step(rates)
        progress("fitting", cycle, 0)
        if value - before < _TOLERANCE:
            return rates, cycle, True
        before = value
        two, reached = step(one)
        first = {name: one[name] - rates[name] for name in rates}
        second = {name: two[name] - 2.0 * one[name] + rates[name] for name in rates}
        length = max(1.0, _norm(first) / max(_norm(second), 1e-300))
        far = {
            name: np.clip(rates[name] + 2.0 * length * first[name] + length**2 * second[name], _EDGE, 1.0 - _EDGE)
            for name in rates
        }
        landed, value_far = step(far)
        rates = landed if value_far >= reached else two
    return rates, cycles, False


def _norm(rates: Rates) -> float:
    return math.sqrt(sum(float((values**2).sum()) for values in rates.values()))
