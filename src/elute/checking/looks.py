"""What a check looks at once the structure is there: what is known, which queries can be ranked, and the components."""

from __future__ import annotations

from typing import NamedTuple

from elute._util.threads import run_beside
from elute.cells.rankable import Rankable
from elute.cells.structure import Structure
from elute.checking.details import ComponentDetail, describe_components
from elute.checking.measured import measure_log
from elute.identify.components import Components, LinkingPlan
from elute.known.precision import Precision
from elute.log import ClickLog
from elute.progress import Progress


class Sights(NamedTuple):
    """`precision`: None where the log has no clicks, or where it was not asked for. `ranking`: None where the log has
    no queries."""

    precision: Precision | None
    ranking: Rankable | None
    components: list[ComponentDetail]


def look_closer(
    log: ClickLog,
    structure: Structure,
    found: Components,
    plan: LinkingPlan | None,
    target_log_se: float | None,
    progress: Progress,
) -> Sights:
    """Where the cells are in memory, queries are ranked while what is known is measured: neither keeps all cores busy.
    The engine, which answers one thread at a time, is asked for examples after that."""

    def measure() -> Precision | None:
        return None if target_log_se is None else measure_log(log, plan, target_log_se, progress)

    def rank() -> Rankable | None:
        return None if structure.queries is None else log.count_rankable(found.of_factor, len(found), progress)

    precision, (ranking,) = run_beside(measure, (rank,)) if log.is_held else (measure(), (rank(),))
    return Sights(precision, ranking, describe_components(log, structure, found))
