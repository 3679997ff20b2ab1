"""`elute.count`."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

from elute._util.paths import refuse_harm
from elute._util.text import format_count as spell_count
from elute.cells.filters import describe_filters
from elute.log import LogOptions, LogSource, as_log
from elute.options.takes import takes
from elute.progress import Progress, silent
from elute.results.base import Fields, Recorded
from elute.results.card import Card
from elute.verbs.source import name_source, read_cells


class Counted(Recorded):
    """Counts that were written to a folder, `out`, which takes the log's place. Fields are attributes."""

    @classmethod
    def describe(cls, fields: Fields) -> Card:
        sentence = f"{spell_count(fields['rows'])} rows became {spell_count(fields['cells'])} cells in {fields['out']}."
        names = ("impressions", "clicks", "items", "factors", "queries")
        figures = [(spell_count(fields[name]), name) for name in names if fields[name] is not None]
        return Card(
            "calm", "Counted", " ".join([sentence, *(f"Read: {said}." for said in describe_filters(fields))]), figures
        )


@takes()
def count(
    log: LogSource,
    out: str | Path,
    *,
    from_cells: bool = False,
    progress: Progress = silent,
    **columns: Unpack[LogOptions],
) -> Counted:
    """Count a log once, into a folder that the other verbs then take in its place.

    The counts remember the columns and filters they were made with and the files they were made from, and are refused
    when those have changed. `from_cells`: `log` is Parquet, the result of the statement of `elute.sql`. `columns`: as
    for `elute.read_log`.
    """
    refuse_harm(out, [name_source(log)], folder=True)
    opened = read_cells(log, **columns) if from_cells else as_log(log, **columns)
    about = opened.save_counts(out, progress)
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
        }
    )
