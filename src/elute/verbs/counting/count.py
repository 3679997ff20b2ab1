"""`elute.count`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Unpack

from elute._util.paths import refuse_harm
from elute._util.text import format_count as spell_count
from elute._util.urls import hide_secrets
from elute.cells.counts import Counts
from elute.cells.filters import describe_filters
from elute.engines.buckets.bucket import is_bucket
from elute.engines.parts.adding import append_part
from elute.engines.parts.choosing import parse_key, spell_key
from elute.engines.parts.layout import Key, find_unit_roles
from elute.engines.parts.store import PartsOnDisk, PartsStore
from elute.engines.parts.stored import PartsInBucket
from elute.errors import EluteError
from elute.log import ClickLog, LogOptions, LogSource, as_log
from elute.options.takes import takes
from elute.progress import Progress, silent
from elute.results.base import Fields, Recorded
from elute.results.card import Card
from elute.verbs.counting.bucket import save_in_bucket
from elute.verbs.source import name_source, read_cells


class Counted(Recorded):
    """Counts that were written to a folder, `out`, which takes the log's place. Fields are attributes."""

    @classmethod
    def describe(cls, fields: Fields) -> Card:
        sentence = f"{spell_count(fields['rows'])} rows became {spell_count(fields['cells'])} cells in {fields['out']}."
        said = [sentence, *(f"Read: {filters}." for filters in describe_filters(fields)), *_describe_parts(fields)]
        names = ("impressions", "clicks", "items", "factors", "queries")
        figures = [(spell_count(fields[name]), name) for name in names if fields[name] is not None]
        return Card("calm", "Counted", " ".join(said), figures)


def _describe_parts(fields: Fields) -> list[str]:
    """Of a folder that was appended to."""
    if "key" not in fields:
        return []
    done = "replaced in" if fields["replaced"] else "added to"
    dropped = f", {spell_count(fields['dropped'])} dropped" if fields["dropped"] else ""
    parts = f"{spell_count(fields['parts'])} {'part' if fields['parts'] == 1 else 'parts'}"
    return [f"{spell_key(fields['key'])} was {done} {parts}{dropped}."]


@takes()
def count(  # type: ignore[misc]  # `drop` is of the folder that is written, not of a log
    log: LogSource,
    out: str | Path,
    *,
    append: bool = False,
    key: str | None = None,
    drop: str | None = None,
    from_cells: bool = False,
    progress: Progress = silent,
    **columns: Unpack[LogOptions],
) -> Counted:
    """Count a log once, into a folder that the other verbs then take in its place.

    The counts remember the columns and filters they were made with and the files they were made from, and are refused
    when those have changed. `append`: add the log to a folder as a part, in the place of the part with the same `key`
    (`day=2026-11-14`; by default the log's own name). All parts together are read as one log; `last` and `drop` of
    `elute.read_log` choose some. `drop`: then remove parts whose key meets this condition (`day < 2026-10-17`). What is
    done to the folder is done at once or not at all, and others may read it, or add to it, meanwhile. `from_cells`:
    `log` is Parquet, the result of the statement of `elute.sql`. `columns`: as for `elute.read_log`.
    """
    if not append and (key or drop) is not None:
        raise EluteError("`key=` and `drop=` are about the parts of a folder: they go with `append=True`")
    refuse_harm(out, [name_source(log)], folder=True, stores=True)
    opened = read_cells(log, **columns) if from_cells else as_log(log, **columns)
    added: dict[str, Any] = {}
    if append:
        named = parse_key(key) if key is not None else _name_part(opened)
        opened, added = _append(opened, out, named, drop, progress)
        about = added.pop("about")
    else:
        about = save_in_bucket(opened, out, progress) if is_bucket(out) else opened.save_counts(out, progress)
    survey = opened.survey
    return Counted(
        {
            "rows": survey.rows,
            "rows_filtered": survey.filtered,
            "filters": opened.filters.to_dict(),
            "impressions": int(survey.impressions.sum()),
            "clicks": int(survey.clicks.sum()) if opened.roles.click is not None else None,
            "items": about["items"],
            "factors": len(survey.keys),
            "cells": about["cells"],
            "queries": about["queries"],
            "out": str(out),
            **added,
        }
    )


def _append(
    log: ClickLog, out: str | Path, key: Key, drop: str | None, progress: Progress
) -> tuple[ClickLog, dict[str, Any]]:
    """The log as it was counted, and what became of it."""
    if log.filters.min_factor_impressions is not None:
        raise EluteError(
            "`min_factor_impressions=` is about all parts together: give it where the folder is read, not to its parts"
        )
    units, roles = log, find_unit_roles(log.roles)
    if roles != log.roles:
        problems = log.engine.find_problems(roles)
        if problems or isinstance(log.source, Counts):
            raise EluteError(f"{log.engine.label} does not name the queries of its items; append the log itself")
        units = ClickLog(log.engine, roles, log.source, log.options, log.filters)
    survey = units.survey
    store: PartsStore = PartsInBucket(out) if is_bucket(out) else PartsOnDisk(Path(out))
    added = append_part(store, key, drop, log.roles, log.engine, log.filters, survey, units.hand_over(progress))
    return units, {**added._asdict(), "key": key}


def _name_part(log: ClickLog) -> Key:
    """A log that has one name is its own key."""
    if isinstance(log.source, str | Path):
        name = str(log.source)
        value = hide_secrets(name) if "://" in name else str(Path(name).resolve())
        if "," not in value and value.strip():
            return {"log": value}
    raise EluteError("`append=True` needs a `key=` here: a name for the part, as in 'day=2026-11-14'")
