"""What a score plan says: the scales of components by the score, all propensities, and what this rests on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute._util.text import format_count, format_share
from elute.cells.factors import describe_some, to_rows
from elute.errors import EluteError
from elute.identify.assumed import AssumedScore

Row = dict[str, Any]
Floats = NDArray[np.float64]

_VERDICTS = {
    "holds": "which the log bears out",
    "contradicted": "which the log contradicts",
    "untestable": "which this log cannot test",
}


class ScoreContents(NamedTuple):
    """`score`: how the score did, as `elute fit --json` says it. `links`: one from each component to the one with the
    most impressions: factors `a` and `b` of most clicks, the `ratio` of their propensities and its `log_se`.
    `components`: their `factors`, `impressions`, and where their `ratios` are from: items, both, or None where there is
    one factor. `propensities`: of all factors, on one scale."""

    score: Row
    links: tuple[Row, ...]
    components: tuple[Row, ...]
    propensities: tuple[Row, ...]
    assumption: AssumedScore

    def to_dict(self) -> Row:
        """The fields of the plan's file."""
        lists = {name: list(getattr(self, name)) for name in ("links", "components", "propensities")}
        return {"assumption": self.assumption.to_dict(), "score": self.score, **lists}

    def place(self, factors: pa.Table, codes: NDArray[np.int64], made_for: str) -> tuple[Floats, Floats]:
        """Propensities and errors by factor of a log, where `codes` are those of the plan's."""
        lacking = np.setdiff1d(np.arange(factors.num_rows), codes)
        if len(lacking):
            names = describe_some(factors.column_names, [list(row.values()) for row in to_rows(factors, lacking)])
            raise EluteError(f"the plan (made for {made_for}) has no propensity for {names}; make it again")
        out = np.full((2, factors.num_rows), np.nan)
        out[:, codes] = [[row[name] for row in self.propensities] for name in ("propensity", "log_se")]
        return out[0], out[1]

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any]) -> ScoreContents:
        """From a plan's file."""
        links, components, propensities = (tuple(fields[name]) for name in ("links", "components", "propensities"))
        return cls(fields["score"], links, components, propensities, AssumedScore(**fields["assumption"]))


def assume(score: Row, components: Sequence[Row]) -> AssumedScore:
    """What rests on the score, from how it did and where components have their ratios from."""
    shown = [one["impressions"] for one in components]
    placed, combined = len(components) - 1, sum(one["ratios"] == "both" for one in components)
    share = 1 - max(shown) / sum(shown)
    rests = []
    if placed:
        many = (
            f"the scale{'' if placed == 1 else 's'} of {format_count(placed)} of {format_count(placed + 1)} components"
        )
        rests.append(f"{many}, with {format_share(share)} of the impressions")
    if combined:
        many = (
            "its one component" if not placed else f"{format_count(combined)} component{'' if combined == 1 else 's'}"
        )
        rests.append(f"in part the ratios within {many}, which items alone know too loosely")
    what = ", and ".join(rests) or "no figures: items alone know all ratios"
    named = f"'{score['column']}'" + ("" if score["scale"] == "raw" else f" ({score['scale']})")
    sentence = (
        f"Rests on the assumption that {named} is all that ties relevance to factors, {_VERDICTS[score['verdict']]}. "
        f"From it {'comes' if placed == 1 and not combined else 'come'} {what}."
    )
    return AssumedScore(sentence, score["verdict"], score["column"], score["scale"], placed, share, combined)
