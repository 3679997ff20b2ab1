"""What is not identified is not valued, but bounded: a ranking's value with the unknown part at its worst and its best.

Relevance and propensity are probabilities. So a slot of propensity α (to its component's largest, which is 1 at most)
is clicked on at most α of its pages, whatever it holds, and at least never. A fit with bounds across components (`elute
fit --bounds`) narrows that for items of another component: their relevance, at the slot's scale, is r·s with s between
the bounds of the two scales.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute.estimate.solve.problem import total_by_factor
from elute.valuing.inputs.examination import Examination
from elute.valuing.inputs.exposure import ACROSS, REASONS, VALUED, Exposure
from elute.valuing.inputs.traffic import PageTraffic

Floats = NDArray[np.float64]

_SURE = 3.689
"""Of a factor without a click: -ln 0.025, the most clicks to be expected of one that has none, with 97.5%
confidence."""

_WIDE = 1.96


class Limits(NamedTuple):
    """Clicks a page, over all pages, that the slots without a value add at least and at most."""

    low: float
    high: float


def bound_unknown(exposure: Exposure, seen: Examination, relevance: Floats, scales: pa.Table | None) -> Limits:
    """`relevance`: by item, at its component's scale. `scales`: a fit's bounds of components."""
    traffic = exposure.traffic
    slots = np.flatnonzero(exposure.state != VALUED)
    if not len(slots):
        return Limits(0.0, 0.0)
    high = _cap_factors(traffic, seen, relevance)[traffic.factor[slots]]
    low = np.zeros(len(slots))
    across = exposure.state[slots] == ACROSS
    if scales is not None and across.any():
        least, most = _scale(exposure, slots[across], seen, scales)
        r = np.nan_to_num(relevance[exposure.item[slots[across]]]) * seen.usable[traffic.factor[slots[across]]]
        low[across] = np.minimum(r * least, high[across])
        high[across] = np.minimum(high[across], np.maximum(r * most, low[across]))
    n = traffic.pages.sum()
    return Limits(float(traffic.shown[slots] @ low / n), float(traffic.shown[slots] @ high / n))


def count_reasons(exposure: Exposure) -> dict[str, dict[str, Any]]:
    """Why queries are not valued, each under the first reason that it has: how many, with what share of the pages; and
    the slots' documents."""
    traffic, out = exposure.traffic, {}
    left = ~exposure.valued
    for state, name in REASONS.items():
        mine = exposure.state == state
        queries = left & (np.bincount(exposure.query, mine, traffic.n_queries) > 0)
        if queries.any():
            inside = mine & queries[exposure.query]
            places = np.unique(
                exposure.query[inside].astype(np.int64) * traffic.widest + traffic.place[traffic.factor[inside]]
            )
            share = traffic.pages[queries].sum() / traffic.pages.sum()
            out[name] = {"queries": int(queries.sum()), "pages_share": float(share), "documents": len(places)}
        left &= ~queries
    return out


def _cap_factors(traffic: PageTraffic, seen: Examination, relevance: Floats) -> Floats:
    """By factor: the largest click probability of anything there."""
    cells = traffic.cells
    wide = np.where(seen.known, seen.usable * np.exp(_WIDE * np.nan_to_num(seen.log_se)) + seen.beta, 1.0)
    clicked = total_by_factor(cells.factor, cells.clicks, len(wide))
    seen_with = cells.impressions * np.repeat(np.nan_to_num(relevance), np.diff(cells.offsets))
    reach = np.bincount(cells.factor, seen_with, len(wide))
    never = (clicked == 0) & ~seen.known & (reach > 0)
    wide[never] = _SURE / reach[never]
    return np.minimum(wide, 1.0)


def _scale(exposure: Exposure, slots: NDArray[np.int64], seen: Examination, scales: pa.Table) -> tuple[Floats, Floats]:
    """The interval of the slot's scale over the item's; components in several parts have no bounds of their own."""
    of, low, high = (np.asarray(scales[name].to_numpy(), np.float64) for name in ("component", "low", "high"))
    size = int(max(of.max(), seen.component.max())) + 1
    least, most = np.zeros(size), np.full(size, np.inf)
    once = np.bincount(of.astype(np.int64), minlength=size)[of.astype(np.int64)] == 1
    known = once & np.isfinite(low) & np.isfinite(high)
    least[of[known].astype(np.int64)], most[of[known].astype(np.int64)] = low[known], high[known]
    there = seen.component[exposure.traffic.factor[slots]]
    here = exposure.component[exposure.item[slots]]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nan_to_num(least[there] / most[here]), np.nan_to_num(
            most[there] / least[here], nan=np.inf, posinf=np.inf
        )
