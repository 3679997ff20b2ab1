"""A ranking as a plan of impressions: which item each slot of the log's pages would hold, and whether that can be
valued.

A click probability α_t·r_x is determined where item and factor lie in one component (Theorem 1): there the scale
cancels. Elsewhere the slot is not valued, whatever the estimator.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from elute.cells.counts import Amounts
from elute.kernels.jit import jit
from elute.valuing.inputs.examination import Examination
from elute.valuing.inputs.rankings import NEVER_SHOWN, Ranking
from elute.valuing.inputs.traffic import PageTraffic

Floats = NDArray[np.float64]
Codes = NDArray[np.int32]
Flags = NDArray[np.bool_]
Ints = NDArray[np.int64]

EMPTY, KEPT = -2, -3
"""Of a slot: the ranking has no document for it; its query keeps what was shown."""

VALUED, UNSEEN, ACROSS, NO_PROPENSITY, NO_RELEVANCE = range(5)

REASONS = {
    UNSEEN: "never_shown",
    ACROSS: "other_component",
    NO_PROPENSITY: "place_not_known",
    NO_RELEVANCE: "no_estimate",
}
"""Why a slot is not valued: its document was never shown; it was shown, but under factors of another component; nothing
is known of the slot's own factor; clicks of its document were made under a factor of which nothing is known."""


@dataclass(frozen=True, eq=False)
class Exposure:
    """By slot: the `item` that a ranking puts there (`NEVER_SHOWN`, `EMPTY`, `KEPT` where there is none); `state`:
    `VALUED` or why not. `component`: by item."""

    traffic: PageTraffic
    ranking: Ranking
    component: Codes
    item: Ints
    state: NDArray[np.int8]

    @cached_property
    def query(self) -> Ints:
        """By slot."""
        return np.repeat(np.arange(self.traffic.n_queries), np.diff(self.traffic.offsets))

    @cached_property
    def valued(self) -> Flags:
        """By query: whether all its slots are."""
        return np.asarray(np.bincount(self.query, self.state != VALUED, self.traffic.n_queries) == 0)

    def sum_by_item(self, weight: Floats, queries: Flags) -> Floats:
        """Of slots that hold a known item, in these queries; `weight`: by factor, for one page."""
        used = (self.item >= 0) & (self.state == VALUED) & queries[self.query]
        amounts = self.traffic.shown[used] * weight[self.traffic.factor[used]]
        return np.bincount(self.item[used], amounts, self.traffic.n_items).astype(np.float64)

    def sum_by_factor(self, value: Floats, queries: Flags) -> Floats:
        """Pages times the `value` of the item, over the same slots."""
        used = (self.item >= 0) & (self.state == VALUED) & queries[self.query]
        amounts = self.traffic.shown[used] * value[self.item[used]]
        return np.bincount(self.traffic.factor[used], amounts, len(self.traffic.place)).astype(np.float64)

    def value_queries(self, relevance: Floats, alpha: Floats, beta: Floats) -> Floats:
        """By query: expected clicks on all its pages, from the slots that are valued and those that keep what was
        shown."""
        t, out = self.traffic, np.zeros(self.traffic.n_queries)
        used = (self.item >= 0) & (self.state == VALUED)
        clicks = alpha[t.factor[used]] * relevance[self.item[used]] + beta[t.factor[used]]
        out += np.bincount(self.query[used], t.shown[used] * clicks, t.n_queries)
        return np.where(self.ranking.kept, t.clicks, out)


def plan_exposure(traffic: PageTraffic, ranking: Ranking, seen: Examination, item_component: Codes) -> Exposure:
    """What a ranking would show. `item_component`: by item, -1 where its relevance has no estimate."""
    item = _fill(traffic.offsets, traffic.factor, traffic.place, ranking.offsets, ranking.item, ranking.kept)
    at_factor = seen.component[traffic.factor]
    at_item = item_component[np.maximum(item, 0)]
    state = np.select(
        [item <= EMPTY, at_factor < 0, item == NEVER_SHOWN, at_item < 0, at_item != at_factor],
        [VALUED, NO_PROPENSITY, UNSEEN, NO_RELEVANCE, ACROSS],
        VALUED,
    )
    return Exposure(traffic, ranking, item_component, item, state.astype(np.int8))


def find_item_components(traffic: PageTraffic, seen: Examination) -> Codes:
    """By item: the component that its factors lie in; -1 where none is known, or one that it was clicked under is
    not."""
    return _find_components(*traffic.cells, seen.component)


@jit
def _fill(offsets: Ints, factor: Codes, place: Codes, ranked: Ints, documents: Ints, kept: Flags) -> Ints:
    out = np.empty(factor.shape[0], np.int64)
    for query in range(offsets.shape[0] - 1):
        length = ranked[query + 1] - ranked[query]
        for slot in range(offsets[query], offsets[query + 1]):
            at = place[factor[slot]]
            out[slot] = KEPT if kept[query] else documents[ranked[query] + at] if at < length else EMPTY
    return out


@jit
def _find_components(offsets: Ints, factor: Codes, impressions: Amounts, clicks: Amounts, component: Codes) -> Codes:
    out = np.full(offsets.shape[0] - 1, -1, np.int32)
    for item in range(out.shape[0]):
        for cell in range(offsets[item], offsets[item + 1]):
            if component[factor[cell]] >= 0:
                out[item] = component[factor[cell]]
        for cell in range(offsets[item], offsets[item + 1]):
            if component[factor[cell]] < 0 and clicks[cell] > 0:
                out[item] = -1
    return out
