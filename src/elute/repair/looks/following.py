"""What a look at a swap plan gives: what has been learnt, what is left, whether to stop."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from elute.cells.factors import row_key
from elute.known.precision import shorten
from elute.repair.looks.card import describe_following
from elute.repair.looks.sequence import CONFIDENCE
from elute.repair.plan import SwapPlan
from elute.repair.steps import Row
from elute.results.base import Fields, Result
from elute.results.card import Card
from elute.results.provenance import Provenance


@dataclass(frozen=True)
class FollowedSwap:
    """A swap of the plan, and what has become of it. `log_ratio` is that of the propensities, of the factor that the
    item is known from over the new one; None until clicks tell it."""

    item: Row
    source: Row
    target: Row
    impressions_planned: int
    impressions_seen: int
    clicks_seen: int
    impressions_left: int
    impressions_left_at_source: int
    log_ratio: float | None
    low: float | None
    high: float | None
    half_width: float | None
    done: bool

    def to_dict(self) -> Row:
        fields = asdict(self)
        return {"item": fields.pop("item"), "from": fields.pop("source"), "to": fields.pop("target"), **fields}


def count_left(swaps: tuple[FollowedSwap, ...]) -> int:
    """Impressions left of these swaps. What is shown where an item is known from serves all its swaps from there."""
    at_source: dict[str, int] = {}
    for swap in swaps:
        key = row_key({"item": swap.item, "from": swap.source})
        at_source[key] = max(at_source.get(key, 0), swap.impressions_left_at_source)
    return sum(swap.impressions_left for swap in swaps) + sum(at_source.values())


@dataclass(frozen=True, repr=False)
class Following(Result):
    """A look at a swap plan while it is carried out. `rest` is the plan for what is left, to be continued again."""

    provenance: Provenance
    rest: SwapPlan
    swaps: tuple[FollowedSwap, ...]
    links: int
    """Pairs of factors that the first plan links; intervals hold for all of them together."""
    links_done: int
    stop: bool
    reason: str
    joined: bool
    """Whether clicks tie both ends of every link by now."""
    largest_half_width: float | None
    """Of the links that are left in the plan; None where one has no estimate yet."""
    target_half_width: float
    information_factor: float
    """How many times the information of a single look at the end it takes to look at any time."""
    design_effect: float
    """The largest of a link."""
    clusters: tuple[str, ...]
    notes: tuple[str, ...] = ()

    method: ClassVar[str] = "continue"

    @property
    def looks(self) -> int:
        """How often the plan has been looked at."""
        return len(self.rest.history)

    @property
    def impressions_left(self) -> int:
        """Of all swaps, where they are shown anew and where they are known from."""
        return count_left(self.swaps)

    def to_dict(self) -> dict[str, Any]:
        return {
            "method": self.method,
            "stop": self.stop,
            "reason": self.reason,
            "looks": self.looks,
            "links": self.links,
            "links_done": self.links_done,
            "joined": self.joined,
            "largest_half_width": self.largest_half_width,
            "target_half_width": self.target_half_width,
            "confidence": CONFIDENCE,
            "information_factor": self.information_factor,
            "design_effect": shorten(self.design_effect),
            "clusters": list(self.clusters),
            "impressions_left": self.impressions_left,
            "swaps": [swap.to_dict() for swap in self.swaps],
            "history": list(self.rest.history),
            "notes": list(self.notes),
            "provenance": asdict(self.provenance),
        }

    @classmethod
    def describe(cls, fields: Fields) -> Card:
        return describe_following(fields)
