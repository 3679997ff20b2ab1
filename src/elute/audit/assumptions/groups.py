"""Where does r·o fail? Whether ratios of propensities differ between groups (queries, devices, any column).

Items are taken apart by group, so that each may be relevant to one group and not to another: only the *effect of
factors* is compared. Overall by a score test (`elute.audit.assumptions.interaction`); where by the difference of
log ratios of propensities fitted to either group alone, with its standard error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elute.audit.assumptions.finding import Finding, number, untestable, verdict
from elute.audit.assumptions.interaction import LARGEST, interaction
from elute.audit.assumptions.null import DENSE, STANDARD, Drawing, null, with_cells
from elute.counts import Clustered, Counts
from elute.errors import EluteError
from elute.estimate.problem import Cells
from elute.factors import describe, rows

NAME = "groups"

MOST = 8
"""Groups compared: those with the most clicks; the others are left out."""


@dataclass(frozen=True, eq=False)
class Groups:
    """`column`: what it is called. `codes`: the group of every item (codes from 0), or cells by group, as
    `counts.read_clusters(column)` gives them. `names` by code; None: the codes themselves."""

    column: str
    codes: NDArray[np.integer] | Clustered
    names: Sequence[str] | None = None

    def name(self, code: int) -> str:
        """A group in words."""
        return f"{self.column} {code if self.names is None else self.names[code]}"


def grouped(counts: Counts, by: Groups, drawing: Drawing = STANDARD) -> Finding:
    """Test that factors act alike in all groups. `effect`: the difference of log ratios between two groups, for the
    pair of factors where it is most standard errors from 0."""
    cells, group = _apart(counts, by)
    base = null(with_cells(counts, cells))
    label = group[base.items]
    kept = np.unique(label)
    found = None
    if len(kept) > 1 and (len(kept) - 1) * len(base.o) <= LARGEST and len(base.o) <= DENSE:
        z = (label[:, None] == kept[:-1]).astype(np.float64)
        found = interaction(base, z, drawing, "groups")
    if found is None:
        return untestable(
            NAME,
            f"Whether factors act alike for every {by.column} cannot be tested: it takes two groups, each with items "
            "clicked under the same two factors.",
            "Show more items of each group under the same factors, or group by a coarser column, then audit again.",
        )
    evidence = compare(counts, by, cells, group, kept)
    worst = evidence[0] if evidence else None
    effect = abs(worst["difference"]) if worst else None
    if verdict(found.p_value) == "holds":
        return Finding(
            NAME,
            "holds",
            found.p_value,
            effect,
            f"Factors act alike for every {by.column} ({number(found.p_value)}).",
            f"No need of {by.column} in --bias.",
            evidence,
        )
    columns = counts.factors.column_names
    words, plural = " and ".join(columns), "" if len(columns) > 1 else "s"
    where = ""
    if worst:
        where = (
            f"; most for {worst['a']} against {worst['b']}, whose log ratio is {worst['difference']:+.2f} ± "
            f"{worst['se']:.2f} in {worst['first']} from that in {worst['second']}"
        )
    return Finding(
        NAME,
        "rejected",
        found.p_value,
        effect,
        f"The effect of {words} differ{plural} by {by.column} ({number(found.p_value)}){where}.",
        f"Fit with --bias {','.join([*columns, by.column])}.",
        evidence,
    )


def compare(
    counts: Counts, by: Groups, cells: Cells, group: NDArray[np.int64], kept: NDArray[np.int64]
) -> list[dict[str, Any]]:
    """For every two groups and every two factors that both determine: the difference of log(o_a/o_b), with its
    standard error; furthest from 0, in standard errors, first; at most 20."""
    fits = {}
    for code in kept:
        part = null(with_cells(counts, _of_items(cells, group == code)))
        if len(part.items):
            fits[int(code)] = part
    names = [describe(row) for row in rows(counts.factors, range(counts.n_factors))]
    found = []
    codes = list(fits)
    for i, first in enumerate(codes):
        for second in codes[i + 1 :]:
            one, two = fits[first], fits[second]
            shared = np.intersect1d(one.cells.factor, two.cells.factor)
            difference = np.log(one.o[shared]) - np.log(two.o[shared])
            covariance = (one.inverse + two.inverse)[np.ix_(shared, shared)]
            own = np.diagonal(covariance)
            variance = own[:, None] + own - 2 * covariance
            a, b = np.triu_indices(len(shared), 1)
            for s, t in zip(a, b, strict=True):
                se = float(np.sqrt(max(variance[s, t], 0.0)))
                if se > 0:
                    off = float(difference[s] - difference[t])
                    found.append((abs(off) / se, off, se, int(shared[s]), int(shared[t]), first, second))
    found.sort(key=lambda row: -row[0])
    return [
        {
            "a": names[s],
            "b": names[t],
            "first": by.name(first),
            "second": by.name(second),
            "difference": off,
            "se": se,
        }
        for _, off, se, s, t, first, second in found[:20]
    ]


def _apart(counts: Counts, by: Groups) -> tuple[Cells, NDArray[np.int64]]:
    """Cells of items taken apart by group, of the groups with the most clicks; and the group of each such item."""
    if isinstance(by.codes, Clustered):
        cluster, item, factor, shown, clicks = (np.asarray(column, np.int64) for column in by.codes)
    else:
        of_item = np.asarray(by.codes, np.int64)
        if of_item.shape != (counts.n_items,):
            raise EluteError(f"{by.column} has {of_item.size:,} groups for {counts.n_items:,} items: give one an item")
        item = np.repeat(np.arange(counts.n_items), np.diff(counts.offsets))
        cluster, factor = of_item[item], counts.factor.astype(np.int64)
        shown, clicks = counts.impressions.astype(np.int64), counts.clicks.astype(np.int64)
    if len(cluster) == 0 or cluster.min() < 0:
        raise EluteError(f"groups of {by.column} must be coded 0, 1, 2, …")
    most = np.argsort(-np.bincount(cluster, clicks), kind="stable")[:MOST]
    keep = np.isin(cluster, most)
    size = int(cluster.max()) + 1
    order = np.lexsort((factor[keep], item[keep] * size + cluster[keep]))
    key = (item[keep] * size + cluster[keep])[order]
    stratum, first = np.unique(key, return_index=True)
    amounts = (column[keep][order].astype(np.uint64) for column in (shown, clicks))
    offsets = np.append(first, len(key)).astype(np.int64)
    return Cells(offsets, factor[keep][order].astype(np.int32), *amounts), stratum % size


def _of_items(cells: Cells, items: NDArray[np.bool_]) -> Cells:
    keep = np.repeat(items, np.diff(cells.offsets))
    ends = np.concatenate(([0], np.cumsum(keep)))[cells.offsets]
    return Cells(np.unique(ends), cells.factor[keep], cells.impressions[keep], cells.clicks[keep])
