"""ClickLog: a table of clicks, and what its columns mean."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import cached_property, partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self, Unpack

import numpy as np
from numpy.typing import NDArray

from elute._util.paths import require_names
from elute._util.threads import use_threads
from elute._util.urls import is_adbc
from elute.cells.chunks import Chunk, chunks_from_counts
from elute.cells.counts import Counts
from elute.cells.filters import Filters
from elute.cells.log_options import LogOptions as LogOptions
from elute.cells.partitions import Partitions
from elute.cells.rankable import Rankable, count_rankable
from elute.cells.roles import (
    DEFAULT_BIAS,
    DEFAULT_CLICK,
    DEFAULT_DOC,
    DEFAULT_QUERY,
    BiasNames,
    ColumnNames,
    Roles,
    resolve_roles,
)
from elute.cells.structure import Structure, structure_from_counts
from elute.cells.survey import Survey
from elute.engines.base import Chunked, Distributed, Engine, Filterable, Precounted
from elute.engines.counts_folder.engine import CountsEngine
from elute.engines.counts_folder.layout import AboutCounts
from elute.engines.counts_folder.writing import save_counts
from elute.engines.duckdb.engine import DuckDBEngine
from elute.engines.in_memory import InMemoryEngine
from elute.engines.partitioned.choice import open_embedded
from elute.engines.parts.fetching import find_counts
from elute.engines.parts.opening import choose_roles, open_counts, refuse_window
from elute.engines.warehouse.adbc import open_adbc
from elute.errors import EluteError
from elute.io import ultra
from elute.options.takes import takes
from elute.progress import Progress, silent
from elute.results.invocation import Invocation
from elute.results.provenance import Provenance


class ClickLog:
    """A log whose columns and values have been found usable. Made by `read_log`; `source` and `options`
    are what that was given. Of its rows, only those that pass `filters` are ever read."""

    def __init__(
        self,
        engine: Engine,
        roles: Roles,
        source: object,
        options: Mapping[str, Any],
        filters: Filters = Filters(),  # noqa: B008 (it cannot change)
    ) -> None:
        self.engine = engine
        self.filters = filters
        self.source = source
        self.options = options
        self.roles = roles
        self._counts: Counts | None = None
        self._structure: Structure | None = None

    @cached_property
    def survey(self) -> Survey:
        """Size and factors, from a scan of few columns. The factors say by which formula they are tied."""
        found = self.engine.survey(self.roles)
        return found if self.roles.formula is None else found.tie(self.roles.formula)

    def counts(self, progress: Progress = silent, names: bool = False) -> Counts:
        """Impressions and clicks of every cell. The log is read once; later calls return the same. `names`: those of
        items will be asked for, which are then not read in a pass of their own."""
        if self._counts is None:
            self._counts = self.engine.count(self.roles, self.survey, progress, names)
        return self._counts

    def partitions(self, progress: Progress = silent) -> Partitions | None:
        """The cells in partitions, where they are too many to be held at once; None where `counts` holds them all."""
        if self._counts is None and isinstance(self.engine, Distributed):
            return self.engine.partitions(self.roles, self.survey, progress)
        return None

    def save_counts(self, folder: str | Path, progress: Progress = silent) -> AboutCounts:
        """Write the cells to a folder that `read_log` then takes in place of the log; gives what it says of them."""
        source = self.hand_over(progress)
        cut = partial(chunks_from_counts, source) if isinstance(source, Counts) else source
        return save_counts(self.engine, self.roles, self.filters, self.survey, cut, folder, isinstance(source, Counts))

    def hand_over(self, progress: Progress = silent) -> Counts | Callable[[], Iterable[Chunk]]:
        """The cells, or what hands them over in chunks where an engine does not hold them all."""
        if self._counts is None and isinstance(self.engine, Chunked):
            return partial(self.engine.stream_chunks, self.roles, self.survey, progress)
        return self.counts(progress, names=True)

    def connect(self, progress: Progress = silent) -> NDArray[np.int32]:
        """For every factor the smallest factor of its component: less than `counts`, and cheaper."""
        if self._counts is not None or self._structure is not None:
            return self.structure(progress).root
        return self.engine.connect(self.roles, self.survey, progress)

    def structure(self, progress: Progress = silent) -> Structure:
        """Components and sizes: what a check needs of the cells. A distributed engine answers without handing the
        cells over; later calls return the same."""
        if self._structure is None:
            if self._counts is None and isinstance(self.engine, Distributed):
                self._structure = self.engine.structure(self.roles, self.survey, progress)
            else:
                self._structure = structure_from_counts(self.counts(progress))
        return self._structure

    def count_rankable(self, component: NDArray[np.int32], components: int, progress: Progress = silent) -> Rankable:
        """Rankable queries where `component` is that of every factor; only for logs with queries."""
        if self._counts is None and isinstance(self.engine, Distributed):
            return self.engine.count_rankable(self.roles, self.survey, component, components, progress)
        counts = self.counts(progress)
        members = counts.membership
        if members is None:
            raise EluteError(f"{self.engine.label} has no queries to rank")
        return count_rankable(members, component[counts.factor[counts.offsets[:-1]]], components)

    def provenance(self, date: str | None = None) -> Provenance:
        """What a file remembers of the log it was made from."""
        return Provenance(
            self.engine.label,
            list(self.roles.item),
            list(self.roles.bias),
            date,
            session=self.roles.session,
            impressions=self.roles.impressions,
            filters=self.filters.to_dict() if self.filters else None,
            formula=None if self.roles.formula is None else str(self.roles.formula),
        )

    @property
    def invocation(self) -> Invocation:
        """How the log was named, for the commands that pages print."""
        return Invocation.from_call(self.source, self.options)

    @property
    def is_held(self) -> bool:
        """Whether the cells are in memory already."""
        return self._counts is not None

    @property
    def is_counted(self) -> bool:
        """Whether there are counts alone, and no rows to go back to."""
        return isinstance(self.source, Counts) or isinstance(self.engine, CountsEngine) or is_adbc(self.source)

    def close(self) -> None:
        """Release the engine's connection and scratch files. Counts that somebody else has too, a fit for instance,
        keep the names of their items."""
        counts, self._counts = self._counts, None
        kept = weakref.ref(counts) if counts is not None else lambda: None
        del counts
        self._counts = kept()
        if self._counts is not None:
            with suppress(EluteError):  # they say so themselves when they are asked
                self._counts.items  # noqa: B018 (read now)
        self.engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if kind is not None:
            self._counts = None  # nobody will ask for what they count
        self.close()

    def __repr__(self) -> str:
        item, bias = ", ".join(self.roles.item), ", ".join(self.roles.bias)
        return f"ClickLog({self.engine.label}: item = {item}; bias = {bias}; {self.survey.rows:,} rows)"


@takes()
def read_log(
    source: object,
    *,
    query: str = DEFAULT_QUERY,
    doc: str = DEFAULT_DOC,
    item: ColumnNames | None = None,
    bias: BiasNames = DEFAULT_BIAS,
    click: str = DEFAULT_CLICK,
    impressions: str | None = None,
    session: str | None = None,
    where: str | None = None,
    max_position: int | None = None,
    min_factor_impressions: int | None = None,
    last: int | None = None,
    drop: str | None = None,
    engine: str = "duckdb",
    exact: bool = False,
    memory: int | None = None,
    spill: str | Path | None = None,
    threads: int | None = None,
) -> ClickLog:
    """Open a click log and check it; raises `EluteError` with every problem in one message.

    `source`: a path, a glob, a folder or a list of them (Parquet, CSV or NDJSON, gzip too; or a folder in ULTRA's text
    format), `duckdb://file.db#table`, `postgres://user@host/db#schema.table`, Parquet or counts at s3:// or https://,
    `adbc://driver?uri=address#table` (counted there), or a pandas, polars or Arrow table. `item` defaults to the query
    and doc columns and may name any columns, feature columns for instance (`feature_*`). `bias`: columns whose
    combinations are the factors, or a formula that says how they act together (`position + device`). A folder of `elute
    count` takes the log's place. `impressions`: where rows are counts, the column that holds them. `session`: a result
    page's id, used for a health check. Rows for which `where`, an SQL expression over the log's columns, is not true
    are not read; nor are rows beyond `max_position`, nor factors with then fewer than `min_factor_impressions`. `last`,
    `drop`: of a folder of parts, the last so many, without those whose key meets a condition (`day < 2026-10-17`).
    `exact`: tell items apart by value, not by a hash. `engine`: where to count; with "spark" the source is a table's
    name, paths or a DataFrame. `memory`: bytes to use at most; what does not fit goes to a folder in `spill`, or stays
    with Spark (by default half of this machine's memory is used). `threads`: cores to use at most, from here on in all
    of this process; by default those that it may use.
    """
    options: dict[str, Any] = {name: given for name, given in locals().items() if name != "source"}
    require_names(source)
    if threads is not None:
        use_threads(threads)
    clicks: str | None = click
    filters = Filters.from_options(options)
    opened: Filterable
    counted = find_counts(source)
    if not counted:
        refuse_window(source, last, drop)
    if engine == "spark":
        from elute.engines.spark.engine import SparkEngine

        opened = SparkEngine(source, exact, spill, memory)
    elif is_adbc(source) or (counted and isinstance(source, str | Path)):
        held = open_adbc(source, options) if is_adbc(source) else open_counts(source, memory, spill, last, drop)
        try:
            return open_held(held, source, options, filters)
        except BaseException:
            held.close()
            raise
    elif ultra.is_ultra(source):
        opened, clicks = DuckDBEngine(ultra.read(source), exact, label=str(source)), None
    else:
        opened = open_embedded(source, exact, memory, spill)
    try:
        named = {name: options[name] for name in ("query", "doc", "item", "bias", "impressions", "session")}
        roles, problems = resolve_roles(opened.columns, click=clicks, **named)
        if filters and not problems:
            opened.filter(filters, roles)
        problems += opened.find_problems(roles)
        if problems:
            raise EluteError(f"{opened.label}: {'; '.join(problems)}")
    except BaseException:
        opened.close()
        raise
    return ClickLog(opened, roles, source, options, filters)


def open_held(engine: Precounted, source: object, options: Mapping[str, Any], filters: Filters) -> ClickLog:
    """Counts as a log."""
    roles = choose_roles(engine, options)
    if filters:
        engine.filter(filters, roles)
    return ClickLog(engine, roles, source, options, engine.filters)


LogSource = object
"""A `ClickLog`, `Counts`, path, glob, folder, address, list of them, or a pandas, polars or Arrow table: libraries that
elute does not import have no type to name here."""


def as_log(source: LogSource, **options: Unpack[LogOptions]) -> ClickLog:
    """The log that `source` stands for. Columns are named where a log is opened: one that is open keeps its own."""
    if isinstance(source, ClickLog | Counts):
        if options:
            named = ", ".join(f"`{name}=`" for name in options)
            raise EluteError(f"{named}: the log was read already, with its own columns; give these to `elute.read_log`")
        if isinstance(source, ClickLog):
            return source
        engine = InMemoryEngine(source)
        return ClickLog(engine, engine.roles, source, {})
    return read_log(list(source) if isinstance(source, tuple) else source, **options)
