"""How much of a log can be compared, as bars."""

from __future__ import annotations

from typing import Any

from elute._util.text import share
from elute.checking.check import Check

_WORDS = {
    "rankable_share": "queries",
    "comparable_pairs_share": "pairs of items",
    "impressions_in_largest_share": "impressions",
}


def shares(check: Check) -> list[dict[str, Any]]:
    """A bar for each share that the log has."""
    fields = check.to_dict()
    return [
        {"label": word, "value": fields[name], "text": share(fields[name])}
        for name, word in _WORDS.items()
        if fields[name] is not None
    ]
