"""`elute.follow`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Unpack

import pyarrow as pa

from elute._util.urls import hide_secrets
from elute.cells.counts import Counts
from elute.checking.measured import find_clusters
from elute.engines.duckdb.files import find_files
from elute.engines.duckdb.source import DuckDBSource, to_arrow
from elute.engines.parts.fetching import find_counts
from elute.errors import EluteError
from elute.log import ClickLog, LogOptions, LogSource, read_log
from elute.progress import Progress, silent
from elute.repair.looks.following import Following
from elute.repair.looks.look import follow_plan
from elute.repair.plan import SwapPlan
from elute.results.invocation import DEFAULTS
from elute.verbs.source import PlanSource, as_plan


def follow(
    plan: PlanSource,
    new_log: LogSource,
    log: LogSource | None = None,
    *,
    date: str | None = None,
    progress: Progress = silent,
    **columns: Unpack[LogOptions],
) -> Following:
    """What a swap plan has taught so far, what is left of it, and whether to stop.

    `plan`: a swap plan, what an earlier look left of one (`Following.rest`), or the file of either. `new_log`: what
    users were shown since the plan was made, or since the earlier look. `log`: the log that the plan was made for, by
    default the one it names. All are read together, the logs of earlier looks too, and in the columns that the plan
    names. Look as often as you like, and stop when it says so: the intervals of all links hold at all looks together,
    with 95% confidence. `date` is kept in the history of `rest` as it is given.
    """
    swaps = as_plan(plan)
    if not isinstance(swaps, SwapPlan):
        raise EluteError("a merge plan takes no new clicks: there is nothing to continue")
    options, new = _choose_options(swaps, log, columns), _list_parts(new_log)
    made_for, earlier = _find_log(swaps, log), _list_looks(swaps)
    _refuse_repeated([*made_for, *earlier], new)
    alone = {**options, "min_factor_impressions": None}
    with ExitStack() as opened:
        joint = opened.enter_context(_open([*made_for, *earlier, *new], options))
        fresh = opened.enter_context(_open(new, alone))
        since = opened.enter_context(_open([*earlier, *new], alone)) if earlier else fresh
        roles = joint.roles
        if roles.click is None:
            raise EluteError(f"{joint.engine.label} has no clicks to learn from")
        clusters, notes = find_clusters(joint, joint.counts(progress))
        return follow_plan(
            swaps,
            joint.counts(progress),
            since.counts(progress),
            fresh.counts(progress),
            query=roles.query if roles.items_within_queries else None,
            clusters=[name for name, _ in clusters],
            notes=notes,
            look={"date": date, "log": _name(new)},
            progress=progress,
        )


def _find_log(plan: SwapPlan, log: LogSource | None) -> list[object]:
    """The log that the plan was made for."""
    made_for = plan.provenance.log
    if log is None and "://" not in made_for:
        try:
            find_files(made_for)
        except EluteError:
            raise EluteError(
                f"the plan was made for '{made_for}', which is not found by that name; give that log too"
            ) from None
    return _list_parts(made_for if log is None else log)


def _list_looks(plan: SwapPlan) -> list[object]:
    """The logs of earlier looks."""
    parts: list[object] = []
    for number, look in enumerate(plan.history, start=1):
        if not look["log"]:
            raise EluteError(
                f"look {number} read a table in memory, which has no name; give all that came since the plan was made "
                "together with the first plan"
            )
        parts += look["log"]
    return parts


def _list_parts(source: LogSource) -> list[object]:
    """A log as a list of what it is read from."""
    if isinstance(source, ClickLog):
        source = source.source
    parts = list(source) if isinstance(source, list | tuple) else [source]
    for part in parts:
        if isinstance(part, Counts) or find_counts(part):
            named = "these are" if isinstance(part, Counts) else f"{part} holds"
            raise EluteError(f"{named} counts, which are not read together with other logs; give the log itself")
    return parts


def _refuse_repeated(before: Sequence[object], new: Sequence[object]) -> None:
    known = {file for part in before for file in _find_local(part)}
    again = sorted({str(part) for part in new if known & _find_local(part)})
    if again:
        raise EluteError(
            f"{hide_secrets(again[0])} was read before; give what came since the last look, or all that came since the "
            "plan was made together with the first plan"
        )


def _find_local(part: object) -> set[str]:
    """The files that a path, a glob or a folder stands for; an address stands for itself."""
    if not isinstance(part, str | Path):
        return set()
    return {str(part)} if "://" in str(part) else {str(Path(file).resolve()) for file in find_files(str(part))}


def _choose_options(plan: SwapPlan, log: LogSource | None, given: Mapping[str, Any]) -> dict[str, Any]:
    """What was asked for, else what the log was read with, else what the plan remembers of its log."""
    made = plan.provenance
    options: dict[str, Any] = {
        **DEFAULTS,
        "item": made.item,
        "bias": made.formula or made.bias,
        "session": made.session,
        "impressions": made.impressions,
        **(made.filters or {}),
    }
    for asked in (log.options if isinstance(log, ClickLog) else {}, given):
        options |= {name: value for name, value in asked.items() if value != DEFAULTS[name]}
    return options


def _open(parts: Sequence[object], options: Mapping[str, Any]) -> ClickLog:
    """Several sources as one log: files by their names, tables in memory put together."""
    if len(parts) == 1:
        return read_log(parts[0], **options)
    if all(isinstance(part, str | Path) for part in parts):
        return read_log(list(parts), **options)
    tables = [DuckDBSource(str(p)).read_table() if isinstance(p, str | Path) else to_arrow(p) for p in parts]
    try:
        return read_log(pa.concat_tables(tables, promote_options="permissive"), **options)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise EluteError(f"the logs do not go together: {error}") from None


def _name(parts: Sequence[object]) -> list[str] | None:
    """As the history keeps them; None where one has no name."""
    return [str(part) for part in parts] if all(isinstance(part, str | Path) for part in parts) else None
