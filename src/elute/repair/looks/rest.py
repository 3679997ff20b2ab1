"""The plan for what is left, and why a look says to stop or to go on."""

from __future__ import annotations

from dataclasses import replace

from elute.repair.looks.following import FollowedSwap, count_left
from elute.repair.looks.sequence import CONFIDENCE, ConfidenceSequence
from elute.repair.plan import SwapPlan
from elute.repair.steps import Row, Swap


def count_planned(swap: Swap) -> int:
    """Its part of a budget, or what it needs."""
    return swap.impressions_needed if swap.impressions_planned is None else swap.impressions_planned


def find_budget_left(plan: SwapPlan, swaps: tuple[FollowedSwap, ...]) -> int | None:
    """Impressions that a plan with a budget has still to spend; None for a plan without one."""
    if any(swap.impressions_planned is None for swap in plan.swaps):
        return None
    return max(sum(swap.impressions_planned - swap.impressions_seen for swap in swaps), 0)


def plan_rest(
    plan: SwapPlan, swaps: tuple[FollowedSwap, ...], budget: int | None, history: tuple[Row, ...]
) -> SwapPlan:
    """The plan for what is left. What a budget has left goes where it is needed, by how much; where nothing is left of
    it, the plan says what is needed without one."""
    pairs = [(one, swap) for one, swap in zip(plan.swaps, swaps, strict=True) if not swap.done]
    total = sum(swap.impressions_left for _, swap in pairs)
    rest = tuple(
        replace(
            one,
            impressions_needed=swap.impressions_left,
            impressions_needed_at_source=swap.impressions_left_at_source,
            impressions_planned=max(budget * swap.impressions_left // max(total, 1), 1) if budget else None,
        )
        for one, swap in pairs
    )
    return replace(plan, swaps=rest, cost=float(sum(swap.cost for swap in rest)), history=history)


def write_reason(
    swaps: tuple[FollowedSwap, ...], links: int, done: int, spent: bool, sequence: ConfidenceSequence
) -> str:
    """What has been reached, in a sentence or two."""
    known = f"{done:,} of {links:,} links {'is' if done == 1 else 'are'} known to ±{sequence.target:.3g}"
    if done == links:
        all_of = "The one link is" if links == 1 else f"All {links:,} links are"
        return (
            f"{all_of} known: log-propensity ratios to ±{sequence.target:.3g}, with {CONFIDENCE:.0%} confidence for "
            "all of them and every look together. There is no need to show more."
        )
    open_swaps = [swap for swap in swaps if not swap.done]
    widths = [swap.half_width for swap in open_swaps if swap.half_width is not None]
    none = sum(swap.half_width is None for swap in open_swaps)
    parts = [f"the widest other to ±{max(widths):.3g}"] if widths else []
    parts += [f"{none:,} {'swap has' if none == 1 else 'swaps have'} too few clicks for an estimate"] if none else []
    reached = f"{known}, {', '.join(parts)}."
    if spent:
        return f"The impressions planned have been shown. {reached}"
    return f"{reached} About {count_left(swaps):,} more impressions are needed."
