"""What merging leaves to debias with: how many propensities, and how much of the log shares one.

A plan that merges all factors into one connects any log. What is fitted under it are click rates as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute._util.text import format_count, format_share

NEARLY = 0.95
"""The share of the impressions under one merged propensity from which on a plan hardly debiases."""


class MergedFactors(NamedTuple):
    """Factors under a merge plan."""

    factors: int
    """Of the log."""
    propensities_after: int
    """Distinct propensities that are left."""
    largest_merged_factors: int
    """Factors of the group with the most impressions among those that the plan makes; 0 where it makes none."""
    largest_merged_share: float
    """Share of the log's impressions in that group."""

    @property
    def debiases(self) -> bool:
        """Whether two propensities are left at least."""
        return self.propensities_after > 1

    @property
    def caution(self) -> str:
        """What a reader of the plan must know; empty where there is nothing to say."""
        if self.largest_merged_factors == 0:
            return ""
        if not self.debiases:
            return "This plan leaves one propensity for all factors: what follows is raw click rates, no debiasing."
        if self.largest_merged_share < NEARLY:
            return ""
        some = f"{format_count(self.largest_merged_factors)} of {format_count(self.factors)} factors"
        return (
            f"This plan leaves nearly no debiasing: {some}, with {format_share(self.largest_merged_share)} of the "
            "impressions, share one propensity."
        )

    @property
    def word(self) -> str:
        """The caution in two or three words."""
        return "" if not self.caution else "Nearly no debiasing" if self.debiases else "No debiasing"

    def to_dict(self) -> dict[str, Any]:
        """The fields of a plan's file."""
        return {**self._asdict(), "debiases": self.debiases}

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any]) -> MergedFactors | None:
        """From a plan's file; None where an older elute wrote it."""
        if any(fields.get(name) is None for name in cls._fields):
            return None
        return cls(*(fields[name] for name in cls._fields))


def measure_merged(group: NDArray[np.integer], impressions: NDArray[np.integer]) -> MergedFactors:
    """From the merged factor and the impressions of every factor."""
    sizes, shown = np.bincount(group), np.bincount(group, weights=impressions)
    made = np.where(sizes > 1, shown, -1.0)
    largest = int(made.argmax())
    if sizes[largest] < 2:
        return MergedFactors(len(group), len(sizes), 0, 0.0)
    return MergedFactors(len(group), len(sizes), int(sizes[largest]), float(shown[largest] / shown.sum()))
