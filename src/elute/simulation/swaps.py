"""Showing what a swap plan asks for: pages of the item's query on which it stands under its new factor.

Each swap gets as many pages as it was planned (or needs). The policy ranks, then the item changes places with what
stands at its new position; where the policy had not shown it at all, it takes that place.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from elute.cells.factors import describe
from elute.errors import EluteError
from elute.repair.plan import SwapPlan
from elute.repair.steps import Swap
from elute.simulation.log import CONTEXT, DOC, POSITION, QUERY
from elute.simulation.world import PAGES_AT_A_TIME, SimulatedPages, Streams, World, draw_clicks, draw_contexts


class _Target(NamedTuple):
    """A document (by row), its query, and the place (from 0) and context to show it in."""

    row: int
    query: int
    place: int
    context: int | None
    pages: int


def draw_swapped_pages(
    world: World, plan: SwapPlan, chance: Streams, chunk: int = PAGES_AT_A_TIME
) -> Iterator[SimulatedPages]:
    """The pages a plan asks for, swap by swap."""
    targets = [_find_target(world, swap) for swap in plan.swaps]
    sampler = world.policy.sampler(world.data)
    for target in targets:
        for first in range(0, target.pages, chunk):
            query = np.full(min(chunk, target.pages - first), target.query, np.int64)
            rankings = sampler.sample(query, world.width, chance.rankings)
            _move_document(rankings.rows, target.row, target.place)
            context = draw_contexts(world, rankings, chance)
            if context is not None and target.context is not None:
                context[:, target.place] = target.context
            yield SimulatedPages(query, rankings, context, draw_clicks(world, rankings, context, chance))


def _find_target(world: World, swap: Swap) -> _Target:
    unknown = set(swap.target) - {POSITION, CONTEXT}
    if unknown or POSITION not in swap.target:
        raise EluteError(
            f"a simulated log has positions and contexts only; the plan's factors are: {describe(swap.target)}"
        )
    row = _find_document(world, swap)
    query = int(np.searchsorted(world.data.offsets, row, side="right")) - 1
    length = min(world.width, int(np.diff(world.data.offsets)[query]))
    position = swap.target[POSITION]
    if not isinstance(position, int) or not 1 <= position <= length:
        raise EluteError(
            f"the plan shows {describe(swap.item)} at position {position}; pages of its query have {length} results"
        )
    context = swap.target.get(CONTEXT)
    if world.contexts and context is not None and (not isinstance(context, int) or not 0 <= context < world.contexts):
        raise EluteError(
            f"the plan shows {describe(swap.item)} in context {context}; there are {world.contexts}, from 0"
        )
    return _Target(row, query, position - 1, context, swap.impressions_planned or swap.impressions_needed)


def _find_document(world: World, swap: Swap) -> int:
    """The document that a plan means; by its name alone, the first of that name."""
    data = world.data
    if DOC not in swap.item:
        raise EluteError(
            f"the plan's items have no column {DOC}: {describe(swap.item)}; check the simulated log with items by {DOC}"
        )
    found = data.documents == str(swap.item[DOC])
    if QUERY in swap.item:
        found &= data.queries[data.query_of] == str(swap.item[QUERY])
    if not found.any():
        raise EluteError(f"the plan shows {describe(swap.item)}, which the ranking data do not have")
    return int(found.argmax())


def _move_document(rows: np.ndarray, row: int, place: int) -> None:
    """Put a document at its place on every page; what stood there goes where the document was."""
    page, old = np.nonzero(rows == row)
    rows[page, old] = rows[page, place]
    rows[:, place] = row
