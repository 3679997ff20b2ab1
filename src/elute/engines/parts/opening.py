"""Counts in a log's place, however they are kept."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from elute.cells.roles import DEFAULT_BIAS, DEFAULT_CLICK, DEFAULT_DOC, DEFAULT_QUERY, Roles, resolve_roles
from elute.engines.base import Precounted
from elute.engines.counts_folder.engine import CountsEngine
from elute.engines.counts_folder.held import HeldCounts
from elute.engines.counts_folder.partitioned import PartitionedCountsEngine
from elute.engines.counts_folder.reading import CountsFiles
from elute.engines.parts.fetching import FetchedCounts
from elute.engines.parts.layout import is_parts
from elute.engines.parts.reading import MergedCounts, choose_window
from elute.engines.remote.folder import is_remote_folder
from elute.errors import EluteError


def open_counts(
    source: str | Path, memory: int | None, spill: str | Path | None, last: int | None, drop: str | None
) -> CountsEngine:
    """A folder of counts, which are refused where the log has changed since; or of parts, of which those are read that
    `last` and `drop` leave: a part is what was counted, whatever has become of that night's export."""
    if is_remote_folder(source):
        fetched = FetchedCounts(source, choose_window(source, last, drop), spill)
        try:
            with fetched.naming():
                engine, held = _open_copy(fetched.folder, memory, spill, last, drop, fetched.label)
        except BaseException:
            fetched.remove()
            raise
        weakref.finalize(held, fetched.remove)
        return engine
    return _open_copy(Path(source), memory, spill, last, drop, str(source))[0]


def _open_copy(
    folder: Path, memory: int | None, spill: str | Path | None, last: int | None, drop: str | None, label: str
) -> tuple[CountsEngine, HeldCounts]:
    """A folder on this machine; `label`: what it is called."""
    held: HeldCounts
    if is_parts(folder):
        held = MergedCounts(folder, choose_window(label, last, drop), False, memory is not None, label)
    else:
        refuse_window(label, last, drop)
        held = CountsFiles(folder)
    try:
        if isinstance(held, CountsFiles):
            held.refuse_changed()
        engine = CountsEngine(held, spill) if memory is None else PartitionedCountsEngine(held, memory, spill)
    except BaseException:
        held.close()
        raise
    return engine, held


def refuse_window(source: object, last: int | None, drop: str | None) -> None:
    """Only parts can be chosen from."""
    if last is not None or drop is not None:
        named = f"'{source}'" if isinstance(source, str | Path) else "this log"
        said = "`last=` and `drop=` choose parts of a folder that `elute.count` (`append=True`) wrote"
        raise EluteError(f"{said}, which {named} is not; leave them out")


def choose_roles(engine: Precounted, options: Mapping[str, Any]) -> Roles:
    """Counts know their roles: what was not asked for otherwise is as it was when they were made. `options`: of
    `elute.read_log`."""
    mine = engine.roles
    query, doc, item, bias, click = (options[name] for name in ("query", "doc", "item", "bias", "click"))
    asked, problems = resolve_roles(
        engine.columns,
        query=mine.query or query if query == DEFAULT_QUERY else query,
        item=mine.item if item is None and doc == DEFAULT_DOC else item,
        doc=doc,
        bias=(mine.formula or mine.bias) if bias == DEFAULT_BIAS else bias,
        click=mine.click if click == DEFAULT_CLICK else click,
        impressions=options["impressions"] or mine.impressions,
        session=options["session"] or mine.session,
    )
    roles = replace(asked, query=mine.query) if query == DEFAULT_QUERY else asked
    if asked.formula is not None and set(asked.bias) == set(mine.bias):
        roles = replace(roles, bias=mine.bias)
    problems += engine.find_problems(roles)
    if problems:
        raise EluteError(f"counts of {engine.label}: {'; '.join(problems)}")
    return roles
