"""What a plan takes on trust, and what the log says to that."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple


class AssumedScore(NamedTuple):
    """That a score is all that ties relevance to factors. `verdict`: of the log that the plan was made for.
    `components_placed`: components whose scale rests on it, with `impressions_share` of the impressions.
    `components_combined`: those whose ratios rest on it in part."""

    sentence: str
    verdict: Literal["holds", "contradicted", "untestable"]
    score: str
    score_scale: Literal["raw", "query", "rank"]
    components_placed: int
    impressions_share: float
    components_combined: int

    @property
    def doubted(self) -> bool:
        """Whether what rests on it cannot count as known."""
        return self.verdict != "holds"

    def to_dict(self) -> dict[str, Any]:
        """The field `assumption` of a plan and of `elute check --plan`."""
        return self._asdict()
