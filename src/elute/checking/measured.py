"""From a log to how much of it is known."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from elute.cells.counts import Clustered, Counts
from elute.identify.components import LinkingPlan
from elute.known.precision import Precision, measure, measure_placed
from elute.known.sample import CELLS, sample_counts, sample_partitions
from elute.log import ClickLog
from elute.progress import Progress, silent

CLUSTERED = 3_000_000
"""Rows up to which the cells of every session are read: they are nearly as many as the rows."""


def measure_log(
    log: ClickLog, plan: LinkingPlan | None, target: float, progress: Progress = silent
) -> Precision | None:
    """As if `plan` had been carried out; None where the log has no clicks."""
    roles = log.roles
    if roles.click is None:
        return None
    placed = None if plan is None else plan.place(log.survey.factors)
    if placed is not None:
        return measure_placed(sample_counts(log.counts(progress), None), *placed, target)
    merges = plan if plan is not None and plan.method == "merge" else None
    partitions = log.partitions(progress) if plan is None or merges is not None else None
    if partitions is not None and log.structure(progress).cells > CELLS:
        return measure(sample_partitions(partitions, merges), target, progress=progress)
    few = partitions is not None  # held for this once: what follows may still go by partition
    counts = log.engine.count(roles, log.survey, progress) if few else log.counts(progress)
    if plan is not None and merges is None:
        counts = plan.apply(counts)
    clusters, notes = find_clusters(log, counts) if plan is None or merges is not None else ([], [])
    sample = sample_counts(counts, merges)
    return measure(sample, target, query=roles.query, clusters=clusters, notes=notes, progress=progress)


def find_clusters(log: ClickLog, counts: Counts) -> tuple[list[tuple[str, Callable[[], Clustered]]], list[str]]:
    """Columns whose values share what makes clicks alike, beyond the queries of items that have one each; and why one
    is left out."""
    roles, members = log.roles, counts.membership
    wanted = [roles.session] if roles.session is not None else []
    if roles.query is not None and members is not None and len(members.item) > counts.n_items:
        wanted.append(roles.query)
    if not wanted:
        return [], []
    if log.survey.usable > CLUSTERED:
        return [], [f"the log is too large to look at how clicks of one {' or '.join(wanted)} depend on each other"]
    if log.is_counted:
        return [], [
            f"counts do not tell which clicks are of one {' or '.join(wanted)}, so how these depend is left out"
        ]
    return [(column, partial(_read_clusters, counts, column)) for column in wanted], []


def _read_clusters(counts: Counts, column: str) -> Clustered:
    """How clicks depend shows in the rows that have a cluster."""
    return counts.read_clusters(column).leave_out_nulls()
