"""From a log to how much of it is known."""

from __future__ import annotations

from elute.identify.components import LinkingPlan
from elute.known.precision import Precision, measure
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
    merges = plan if plan is not None and plan.method == "merge" else None
    partitions = log.partitions(progress) if plan is None or merges is not None else None
    if partitions is not None and log.structure(progress).cells > CELLS:
        return measure(sample_partitions(partitions, merges), target, progress=progress)
    few = partitions is not None  # held for this once: what follows may still go by partition
    counts = log.engine.count(roles, log.survey, progress) if few else log.counts(progress)
    if plan is not None and merges is None:
        counts = plan.apply(counts)
    session, clusters = roles.session, None
    if session is not None and plan is None and log.survey.usable <= CLUSTERED:
        clusters = session, lambda: counts.read_clusters(session)
    return measure(sample_counts(counts, merges), target, query=roles.query, cluster=clusters, progress=progress)
