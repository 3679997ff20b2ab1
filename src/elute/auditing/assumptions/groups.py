"""Where does r·o fail? Whether ratios of propensities differ between groups (queries, devices, any column).

Items are taken apart by group, so that each may be relevant to one group and not to another: only the *effect of
factors* is compared. Overall by a score test (`elute.auditing.assumptions.interaction`); where by the difference of
log ratios of propensities fitted to either group alone (`elute.auditing.assumptions.ratios`).

The test takes for granted that within a group clicks are r·o. Where they are not, groups that saw different mixtures
of items seem to differ though they act alike. So where it rejects, the remedy is tried: r·o is fitted with the column
as a further bias column, and its own fit tested.

With clusters of clicks that depend on each other, clusters have to be taken apart by group too. That is known where
each item belongs to one group (queries); of other groups it is said that they cannot be tested.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute.auditing.assumptions.draws.clusters import Clusters
from elute.auditing.assumptions.examination import assess_examination
from elute.auditing.assumptions.finding import Finding, decide, format_p_value, report_untestable
from elute.auditing.assumptions.interaction import LARGEST, assess_interaction
from elute.auditing.assumptions.null import DENSE, STANDARD, Drawing, fit_null, make_counts
from elute.auditing.assumptions.ratios import find_differences
from elute.cells.counts import Cells, Clustered, Counts
from elute.cells.factors import describe, to_rows
from elute.errors import EluteError

NAME = "groups"

MOST = 8
"""Groups compared: those with the most clicks; the others are left out."""


@dataclass(frozen=True, eq=False)
class Groups:
    """`column`: what it is called. `codes`: the group of every item (codes from 0), or cells by group. `names` by
    code; None: the codes themselves."""

    column: str
    codes: NDArray[np.integer] | Clustered
    names: Sequence[str] | None = None

    def name(self, code: int) -> str:
        """A group's value in words."""
        return str(code) if self.names is None else self.names[code]


def read_groups(counts: Counts, column: str) -> Groups:
    """Groups by the values of a column of the log, in the order of their text: an engine's may change between runs."""
    found = counts.read_clusters(column).refuse_nulls(column)
    if found.values is None:
        return Groups(column, found)
    names = np.array([str(value) for value in found.values.to_pylist()])
    order = np.argsort(names, kind="stable")
    code = np.empty_like(order)
    code[order] = np.arange(len(order))
    return Groups(column, found._replace(cluster=code[found.cluster]), names[order].tolist())


def assess_groups(counts: Counts, by: Groups, drawing: Drawing = STANDARD) -> Finding:
    """Test that factors act alike in all groups. `effect`: the difference of log ratios between two groups, for the
    pair of factors where it is most standard errors from 0."""
    cells, group, item, total = _split_by_group(counts, by)
    clusters = None
    if drawing.clusters is not None:
        if not _has_groups_of_items(counts, by):
            return report_untestable(
                NAME,
                f"Whether factors act alike for every {by.column} cannot be tested with clusters by "
                f"{drawing.clusters.column}: items were shown to several groups.",
                f"Leave out one of the two, or fit with {by.column} in --bias and audit that log.",
            )
        clusters = _keep_clusters(drawing.clusters, counts.n_items, item)
    base = fit_null(make_counts(counts.factors, cells), clusters)
    label = group[base.items]
    kept = base.find_most_clicked(min(LARGEST // max(len(np.unique(label)) - 1, 1), DENSE))
    some = base.restrict_to(kept)
    label = group[some.items]
    compared = np.unique(label)
    found = None
    if len(compared) > 1:
        z = (label[:, None] == compared[:-1]).astype(np.float64)
        found = assess_interaction(some, z, drawing, "groups")
    if found is None:
        return report_untestable(
            NAME,
            f"Whether factors act alike for every {by.column} cannot be tested: it takes two groups, each with items "
            "clicked under the same two factors.",
            "Show more items of each group under the same factors, or group by a coarser column, then audit again.",
        )
    names = [describe(row) for row in to_rows(counts.factors, kept)]
    evidence: list[dict[str, Any]] = [
        {"a": names[d.a], "b": names[d.b], "first": by.name(d.first), "second": by.name(d.second)}
        | {"difference": d.difference, "se": d.se, "p_value": d.p_value}
        for d in find_differences(some, label, max(found.design_effect or 1.0, 1.0))
    ]
    columns = counts.factors.column_names
    effect = f"The effect of {' and '.join(columns)}"
    who = _list_groups(by, compared, total)
    used = len(np.unique(base.cells.factor))
    among = "" if used <= len(kept) else f" (the {len(kept):,} most clicked of {used:,} factors)"
    worst = evidence[0] if evidence else None
    size = abs(worst["difference"]) if worst else None
    if decide(found.p_value) == "holds":
        sentence = f"{effect}{among} is the same in {who} ({format_p_value(found.p_value)})."
        following = f"There is no need to add {by.column} to --bias."
        return Finding(
            NAME, "holds", found.p_value, size, sentence, following, evidence, design_effect=found.design_effect
        )
    where = ""
    if worst:
        where = (
            f"; most for {worst['a']} against {worst['b']}, whose ratio of propensities for {worst['first']} is "
            f"{np.exp(worst['difference']):.2f} times that for {worst['second']} (log {worst['difference']:+.2f} ± "
            f"{worst['se']:.2f})"
        )
    return Finding(
        NAME,
        "rejected",
        found.p_value,
        size,
        f"{effect}{among} differs between {who} ({format_p_value(found.p_value)}){where}. This assumes that within "
        f"each {by.column} clicks are relevance times propensity; an item's relevance may differ between them.",
        _try_remedy(counts, by, cells, group, item, drawing, clusters),
        evidence,
        design_effect=found.design_effect,
    )


def _try_remedy(
    counts: Counts,
    by: Groups,
    cells: Cells,
    group: NDArray[np.int64],
    item: NDArray[np.int64],
    drawing: Drawing,
    clusters: Clusters | None,
) -> str:
    """What to fit instead, and whether clicks agree with that: every factor once a group, items whole again."""
    bias = ",".join([*counts.factors.column_names, by.column])
    codes, group = np.unique(group, return_inverse=True)
    lengths = np.diff(cells.offsets)
    factor = np.repeat(group, lengths).astype(np.int32) * np.int32(counts.n_factors) + cells.factor
    of = np.repeat(item, lengths)
    order = np.lexsort((factor, of))
    offsets = np.append(np.unique(of[order], return_index=True)[1], len(of)).astype(np.int64)
    whole = Cells(offsets, factor[order], cells.impressions[order], cells.clicks[order])
    table = pa.table({"factor": np.arange(len(codes) * counts.n_factors)})
    if clusters is not None:
        part, factor_of_row = clusters.rows.item, clusters.rows.factor
        place = np.searchsorted(np.unique(item), item[part])
        own = group[part] * counts.n_factors + factor_of_row
        clusters = clusters._replace(rows=clusters.rows._replace(item=place, factor=own))
    tried = assess_examination(fit_null(make_counts(table, whole), clusters), drawing)
    if tried.verdict == "holds" and tried.p_value is not None:
        chance = format_p_value(tried.p_value)
        return f"Fit with --bias {bias}: then clicks agree with relevance times propensity ({chance})."
    if tried.p_value is None:
        return f"Fit with --bias {bias}; whether clicks then are relevance times propensity cannot be tested."
    return (
        f"Fit with --bias {bias}. That is not all that is missing: even then clicks are not relevance times propensity "
        f"({format_p_value(tried.p_value)}), so what seems to differ by {by.column} may have another cause."
    )


def _list_groups(by: Groups, compared: NDArray[np.int64], total: int) -> str:
    """Groups in words, and how many there are beside."""
    names = [by.name(int(code)) for code in compared]
    words = f"{by.column} {', '.join(names[:-1])} and {names[-1]}"
    return words if total == len(names) else f"{words} (of {total:,} the {len(names)} with the most clicks)"


def _has_groups_of_items(counts: Counts, by: Groups) -> bool:
    """Whether each item belongs to one group."""
    if not isinstance(by.codes, Clustered):
        return True
    least, most = np.full(counts.n_items, np.iinfo(np.int64).max), np.full(counts.n_items, -1)
    np.minimum.at(least, by.codes.item, by.codes.cluster)
    np.maximum.at(most, by.codes.item, by.codes.cluster)
    return bool((least >= most).all())


def _keep_clusters(clusters: Clusters, items: int, kept: NDArray[np.int64]) -> Clusters:
    """The clusters' rows of some items, which are numbered anew."""
    place = np.full(items, -1)
    place[kept] = np.arange(len(kept))
    rows = clusters.rows._replace(item=place[clusters.rows.item])
    return clusters._replace(rows=Clustered(*(column[rows.item >= 0] for column in rows[:5])))


def _split_by_group(counts: Counts, by: Groups) -> tuple[Cells, NDArray[np.int64], NDArray[np.int64], int]:
    """Cells of items taken apart by group, of the groups with the most clicks; the group and the item of each such
    part; and how many groups there are."""
    if isinstance(by.codes, Clustered):
        cluster, item, factor, shown, clicks = (np.asarray(column, np.int64) for column in by.codes[:5])
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
    part, first = np.unique(key, return_index=True)
    amounts = (column[keep][order].astype(np.uint64) for column in (shown, clicks))
    offsets = np.append(first, len(key)).astype(np.int64)
    cells = Cells(offsets, factor[keep][order].astype(np.int32), *amounts)
    return cells, part % size, part // size, len(np.unique(cluster))
