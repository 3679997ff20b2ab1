"""How much of a log can be compared, as bars."""

from __future__ import annotations

from typing import Any

from elute._util.text import format_share
from elute.checking.check import Check

_WORDS = {
    "rankable_share": "queries",
    "comparable_pairs_share": "pairs of items",
    "impressions_in_largest_share": "impressions",
}


def share_bars(check: Check) -> list[dict[str, Any]]:
    """A bar for each share that the log has."""
    fields = check.to_dict()
    return [
        {"label": word, "value": fields[name], "text": format_share(fields[name])}
        for name, word in _WORDS.items()
        if fields[name] is not None
    ]
