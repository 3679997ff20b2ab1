"""The cells of a plan in a log, and an item before and after the plan as two items.

A plan picks the items that looked best, so that the clicks which picked an item flatter it: the best of a hundred alike
is off by two and a half standard errors where it is known from, and its link with it. Clicks since the plan was made do
not. So a planned item counts as another item from then on. Its link is learnt from clicks of one time, which also keeps
out what has changed since the old log; its old clicks still tell of the factors that it was shown under before.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.cells.counts import Clustered, Counts, Membership
from elute.cells.factors import find_rows, to_rows

Ints = NDArray[np.int64]


class SeenCells(NamedTuple):
    """Impressions and clicks of some cells, 0 where the log has none."""

    impressions: Ints
    clicks: Ints


class PartedItems(NamedTuple):
    """Counts in which planned items appear twice. `again`: codes of the later ones. `code`: by item of the counts
    before, its code here, -1 for those planned. `later`: by item of the counts since the plan, likewise, -1 for the
    others. `factor`: by factor of the counts since the plan, its code here."""

    counts: Counts
    again: Ints
    code: Ints
    later: Ints
    factor: Ints

    def part_clusters(self, all_rows: Clustered, since: Clustered) -> Clustered:
        """Cells by cluster: of other items those of all of the log, of planned ones those since the plan. Clusters of
        the latter stand apart from the former, but for each other."""
        kept, mine = self.code[all_rows.item] >= 0, self.later[since.item] >= 0
        first = int(all_rows.cluster.max(initial=-1)) + 1
        return Clustered(
            np.concatenate((all_rows.cluster[kept], since.cluster[mine] + first)),
            np.concatenate((self.code[all_rows.item[kept]], self.later[since.item[mine]])),
            np.concatenate((all_rows.factor[kept], self.factor[since.factor[mine]])),
            np.concatenate((all_rows.impressions[kept], since.impressions[mine])),
            np.concatenate((all_rows.clicks[kept], since.clicks[mine])),
        )


def look_up(counts: Counts, item: Ints, factor: Ints) -> SeenCells:
    """Of these pairs; a code of -1 is what the log does not have."""
    out = np.zeros((2, len(item)), np.int64)
    for at, (x, t) in enumerate(zip(item.tolist(), factor.tolist(), strict=True)):
        if x < 0 or t < 0:
            continue
        own = slice(counts.offsets[x], counts.offsets[x + 1])
        here = counts.factor[own] == t
        out[:, at] = counts.impressions[own][here].sum(), counts.clicks[own][here].sum()
    return SeenCells(out[0], out[1])


def part_items(counts: Counts, since: Counts, item: Ints, item_since: Ints) -> PartedItems:
    """Part these items. `counts`: of all of the log; `since`: of what came after the plan was made. The same items by
    their codes in both, -1 where the latter lacks one; no item twice."""
    n, factors = counts.n_items, counts.n_factors
    factor = find_rows(counts.factors, to_rows(since.factors, range(since.n_factors)))
    number = np.full(since.n_items, -1)
    number[item_since[item_since >= 0]] = np.flatnonzero(item_since >= 0)
    of_cell = np.repeat(number, np.diff(since.offsets))
    mine = (of_cell >= 0) & (factor[since.factor] >= 0)
    which, under = of_cell[mine], factor[since.factor[mine]]

    owner = np.repeat(np.arange(n), np.diff(counts.offsets))
    at = np.searchsorted(owner * factors + counts.factor, item[which] * factors + under)
    amounts = []
    for all_of, part in ((counts.impressions, since.impressions), (counts.clicks, since.clicks)):
        before = all_of.astype(np.int64)
        before[at] -= part[mine].astype(np.int64)
        amounts.append(np.concatenate((before, part[mine].astype(np.int64))))
    kept = amounts[0] > 0
    owners, row = np.unique(np.concatenate((owner, n + which))[kept], return_inverse=True)
    beneath = np.concatenate((counts.factor.astype(np.int64), under))[kept]
    order = np.lexsort((beneath, row))

    code = np.full(n + len(item), -1)
    code[owners] = np.arange(len(owners))
    again, others = code[n:], code[:n].copy()
    others[item] = -1
    parted = replace(
        counts,
        offsets=np.concatenate(([0], np.cumsum(np.bincount(row)))).astype(np.int64),
        factor=beneath[order].astype(np.int32),
        impressions=amounts[0][kept][order].astype(np.uint64),
        clicks=amounts[1][kept][order].astype(np.uint64),
        membership=_part_membership(counts.membership, item, owners, n),
    )
    return PartedItems(parted, again, others, np.where(number >= 0, again[number], -1), factor)


def _part_membership(members: Membership | None, item: Ints, owners: Ints, n: int) -> Membership | None:
    """The query of every item, where each has one; None otherwise."""
    if members is None or len(members.item) != n:
        return None
    query = np.empty(n, np.int32)
    query[members.item] = members.query
    both = np.concatenate((query, query[item]))[owners]
    return Membership(members.queries, both, np.arange(len(owners), dtype=np.int32), np.ones(len(owners), np.int64))
