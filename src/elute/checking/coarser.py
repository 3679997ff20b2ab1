"""Coarser items: a log that falls apart by query and document may hold together by document.

An item is what relevance belongs to. If a document is as relevant to all its queries, or queries of one intent have a
column, each item was shown more often and links more. That is an assumption, so it is proposed, never made.
"""

from __future__ import annotations

from typing import NamedTuple

from elute.identify.components import find_components
from elute.log import ClickLog, read_log
from elute.progress import Progress, silent

ROWS = 5_000_000
"""Rows up to which coarser items are tried: each takes another count of the log."""

_TRIED = 3


class Coarser(NamedTuple):
    """Other items, and what they would give; None where that was not tried."""

    item: tuple[str, ...]
    components: int | None
    rankable_share: float | None


def propose_items(log: ClickLog, rankable_share: float, progress: Progress = silent) -> list[Coarser]:
    """What the columns allow and links more than the log does; what links most comes first."""
    found = []
    for item in _list_choices(log):
        if log.survey.usable > ROWS:
            found.append(Coarser(item, None, None))
            continue
        with read_log(log.source, **{**log.options, "item": item}) as other:
            structure = other.structure(progress)
            parts = find_components(structure.root, other.survey.factors, other.survey.impressions)
            share = other.count_rankable(parts.of_factor, len(parts), progress).share
        if share > rankable_share or len(parts) == 1:
            found.append(Coarser(item, len(parts), share))
    return sorted(found, key=lambda one: -(one.rankable_share or 0.0))


def _list_choices(log: ClickLog) -> list[tuple[str, ...]]:
    """The document alone; the document with another column for the query. None where only counts are left."""
    roles, query = log.roles, log.roles.query
    if query is None or len(roles.item) != 2 or query not in roles.item or not log.options or log.is_counted:
        return []
    doc = next(column for column in roles.item if column != query)
    others = [column for column in log.engine.columns if "query" in column.lower() and column not in roles.columns]
    return [(doc,), *((other, doc) for other in others[:_TRIED])]
