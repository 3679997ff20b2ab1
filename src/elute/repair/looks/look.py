"""A look at a swap plan while it is carried out.

At every look each link has an interval that holds together with those of all other links and of all other looks, with
probability 95% (`sequence`). A link is done when its half-width is at most 1.96·`target_se`: what the plan promised
for one look at the end. All done: stop. So, too, when a plan with a budget has shown what it had to show.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elute.cells.counts import Clustered, Counts
from elute.cells.factors import describe_some, find_rows
from elute.errors import EluteError
from elute.known.precision import shorten
from elute.progress import Progress, silent
from elute.repair.looks.cells import PartedItems, SeenCells, look_up, part_items
from elute.repair.looks.following import FollowedSwap, Following
from elute.repair.looks.left import Lacking, SwapEnds, find_left
from elute.repair.looks.links import MeasuredLinks, measure_links
from elute.repair.looks.rest import count_planned, find_budget_left, plan_rest, write_reason
from elute.repair.looks.sequence import ConfidenceSequence, plan_sequence
from elute.repair.plan import SwapPlan
from elute.repair.swap_plan import TARGET_SE

Ints = NDArray[np.int64]


def follow_plan(
    plan: SwapPlan,
    counts: Counts,
    since: Counts,
    new: Counts,
    *,
    query: str | None = None,
    clusters: Sequence[str] = (),
    notes: Sequence[str] = (),
    look: Mapping[str, Any] | None = None,
    progress: Progress = silent,
) -> Following:
    """Look at a plan. `counts`: of all of the log, from before the plan to now; `since`: of what came after the plan
    was made; `new`: of what came since the last look. `query`: the column of the queries that items belong to by name,
    if they do; `clusters`: other columns whose values make clicks depend on each other. `look`: what the plan's history
    keeps of this look beside what was seen."""
    if not plan.swaps:
        raise EluteError("the plan has no swaps left to follow: check the log, or plan anew with `elute.swap`")
    item, source, target = _find_swaps(plan, counts)
    pairs, which, shared = np.unique(
        np.sort(np.stack((source, target), axis=1), axis=1), axis=0, return_inverse=True, return_counts=True
    )
    which = which.ravel()
    links = int(plan.history[0]["links"]) if plan.history else len(pairs)
    sequence = plan_sequence(_find_target_se(plan), links)
    later = find_rows(since.items, [swap.item for swap in plan.swaps])
    first = np.unique(item, return_index=True)[1]
    parted = part_items(counts, since, item[first], later[first])
    again = parted.again[np.searchsorted(item[first], item)]
    found = measure_links(
        parted.counts,
        pairs[:, 0],
        pairs[:, 1],
        parted.again[parted.again >= 0],
        query=query,
        clusters=[(name, partial(_read_clusters, parted, counts, since, name)) for name in clusters],
        progress=progress,
    )
    ends = SwapEnds(
        look_up(parted.counts, again, source),
        look_up(parted.counts, again, target),
        _find_rates(look_up(counts, item, source)),
        np.array([swap.click_probability for swap in plan.swaps]),
    )
    effect = float(np.median(found.effect))  # a link's own is a poor forecast while its clicks are few
    left = find_left(ends, found.variance[which] / effect, sequence.goal / effect, shared[which].astype(np.float64))
    seen = look_up(
        new,
        find_rows(new.items, [swap.item for swap in plan.swaps]),
        find_rows(new.factors, [swap.target for swap in plan.swaps]),
    )
    swaps = _describe_swaps(plan, found, sequence, which, source != pairs[which, 0], seen, left)
    done = links - len(pairs) + int(np.count_nonzero(found.variance <= sequence.goal))
    budget = find_budget_left(plan, swaps)
    entry = {**(look or {}), "impressions": int(seen.impressions.sum()), "clicks": int(seen.clicks.sum())}
    history = (*plan.history, {**entry, "links": links, "links_done": done})
    return Following(
        provenance=plan.provenance,
        rest=plan_rest(plan, swaps, budget, history),
        swaps=swaps,
        links=links,
        links_done=done,
        stop=done == links or budget == 0,
        reason=write_reason(swaps, links, done, budget == 0, sequence),
        joined=bool(found.tied.all()),
        largest_half_width=_find_largest(swaps),
        target_half_width=sequence.target,
        information_factor=sequence.factor,
        design_effect=float(found.effect.max()),
        clusters=found.clusters,
        notes=tuple(notes),
    )


def _read_clusters(parted: PartedItems, counts: Counts, since: Counts, column: str) -> Clustered:
    return parted.part_clusters(counts.read_clusters(column), since.read_clusters(column))


def _find_rates(seen: SeenCells) -> NDArray[np.float64]:
    """Click rates, with half a click and half a miss more."""
    return np.asarray((seen.clicks + 0.5) / (seen.impressions + 1.0))


def _find_swaps(plan: SwapPlan, counts: Counts) -> tuple[Ints, Ints, Ints]:
    """Codes of every swap's item, of the factor it is known from and of the new one."""
    item = find_rows(counts.items, [swap.item for swap in plan.swaps])
    missing = [swap.item for swap, code in zip(plan.swaps, item, strict=True) if code < 0]
    if missing:
        names = describe_some(list(missing[0]), [list(row.values()) for row in missing])
        raise EluteError(f"the plan names items that no log has: {names}; is this the log it was made for?")
    source, target = (
        find_rows(counts.factors, [getattr(swap, end) for swap in plan.swaps]) for end in ("source", "target")
    )
    if (source < 0).any() or (target < 0).any():
        lost = [swap.source for swap, code in zip(plan.swaps, source, strict=True) if code < 0]
        lost += [swap.target for swap, code in zip(plan.swaps, target, strict=True) if code < 0]
        names = describe_some(list(lost[0]), [list(row.values()) for row in lost])
        raise EluteError(f"the plan names factors that no log has: {names}; is this the log it was made for?")
    return item, source, target


def _find_target_se(plan: SwapPlan) -> float:
    """What the plan was asked for."""
    return float(plan.limits.get("target_se", TARGET_SE))


def _describe_swaps(
    plan: SwapPlan,
    found: MeasuredLinks,
    sequence: ConfidenceSequence,
    which: Ints,
    flipped: NDArray[np.bool_],
    seen: SeenCells,
    left: Lacking,
) -> tuple[FollowedSwap, ...]:
    """`which` link each swap belongs to, and whether that is written the other way round."""
    out = []
    width = sequence.find_half_widths(found.variance)
    for at, swap in enumerate(plan.swaps):
        link = int(which[at])
        ratio = shorten(float(found.log_ratio[link]) * (-1 if flipped[at] else 1)) if found.tied[link] else None
        half = shorten(float(width[link])) if found.tied[link] else None
        out.append(
            FollowedSwap(
                item=swap.item,
                source=swap.source,
                target=swap.target,
                impressions_planned=count_planned(swap),
                impressions_seen=int(seen.impressions[at]),
                clicks_seen=int(seen.clicks[at]),
                impressions_left=int(left.target[at]),
                impressions_left_at_source=int(left.source[at]),
                log_ratio=ratio,
                low=None if ratio is None or half is None else shorten(ratio - half),
                high=None if ratio is None or half is None else shorten(ratio + half),
                half_width=half,
                done=bool(found.variance[link] <= sequence.goal),
            )
        )
    return tuple(out)


def _find_largest(swaps: tuple[FollowedSwap, ...]) -> float | None:
    widths = [swap.half_width for swap in swaps]
    return None if None in widths else max(width for width in widths if width is not None)
