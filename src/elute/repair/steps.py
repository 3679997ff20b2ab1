"""The steps of plans: pairs of factors to merge, items to show elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute.cells.factors import describe_some, find_rows, index_rows, row_key
from elute.errors import EluteError
from elute.results.provenance import Provenance

Row = dict[str, Any]


@dataclass(frozen=True)
class Pair:
    """Two factors that are to share one propensity."""

    a: Row
    b: Row
    cost: float
    bound: float | None = None
    """Proposition 2: how far this pair alone bends the ratio of estimated to true relevance."""
    bound_share: float | None = None
    """The part of the plan's bound that this pair makes."""
    log_ratio: float | None = None
    """By given propensities: log o(a) - log o(b)."""


@dataclass(frozen=True)
class Swap:
    """An item, known under one factor, to be shown under another."""

    item: Row
    source: Row
    target: Row
    cost: float
    impressions_needed: int
    """Impressions of the item under its new factor: its part of what brings the link to the wanted standard error."""
    click_probability: float
    """Of the item under its new factor, as far as is known."""
    users_lose: float
    """Expected clicks that all of these impressions cost; 0 where users gain by them."""
    share: float
    """Of the pages of its query that have this place, for as long as the plan runs."""
    query: object = None
    """None where the log has no queries."""
    impressions_planned: int | None = None
    """Its part of a budget."""
    impressions_needed_at_source: int = 0
    """Further impressions under the factor it is known from, where what has been seen of it there is too little."""

    @property
    def impressions(self) -> int:
        """How often it is to be shown."""
        return self.impressions_needed if self.impressions_planned is None else self.impressions_planned

    def to_dict(self) -> Row:
        fields = asdict(self)
        return {
            "item": fields.pop("item"),
            "from": fields.pop("source"),
            "to": fields.pop("target"),
            **fields,
        }


def read_swap(fields: Mapping[str, Any]) -> Swap:
    """A swap from its fields in a file."""
    rest = {name: value for name, value in fields.items() if name not in ("item", "from", "to")}
    return Swap(fields["item"], fields["from"], fields["to"], **rest)


def find_item_codes(items: pa.Table, wanted: list[Row]) -> NDArray[np.int64]:
    """Item codes of a few rows among many."""
    codes = find_rows(items, wanted)
    missing = [row for row, code in zip(wanted, codes, strict=True) if code < 0]
    if missing:
        names = describe_some(list(missing[0]), [list(row.values()) for row in missing])
        raise EluteError(f"the plan names items that this log lacks: {names}")
    return codes


def find_factor_codes(factors: pa.Table, wanted: list[Row], made_for: Provenance) -> NDArray[np.int64]:
    """Factor codes of a plan's rows; refuses a log that it was not made for."""
    columns = factors.column_names
    if set(columns) != set(made_for.bias):
        raise EluteError(f"the plan was made for bias {', '.join(made_for.bias)}; this log has {', '.join(columns)}")
    known = index_rows(factors)
    missing = [row for row in wanted if row_key(row) not in known]
    if missing:
        names = describe_some(list(missing[0]), [list(row.values()) for row in missing])
        raise EluteError(f"the plan (made for {made_for.log}) names factors that this log lacks: {names}")
    return np.array([known[row_key(row)] for row in wanted], np.int64)
