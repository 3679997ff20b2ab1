"""Session Parquet with list columns, as CLAX uses: a page a row.

`query_doc_ids` (the results in the order shown) and `clicks` (one for each) must be there. `positions` is read where it
is, and counts from 0 or from 1; otherwise results stand at 1, 2, 3 …. Where there is no `query_id`, the log has none
either: ids of documents are then ids of query and document together. Pages are numbered from 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from elute.errors import EluteError
from elute.io.logs.rows import Flags, Ints, places_within
from elute.io.logs.tally import Rejects, Tally
from elute.io.sessions import LISTS
from elute.progress import Progress, silent

BIAS = ("position",)

_POSITIONS = "positions"
_PAGES = 1 << 16


def read(
    paths: Sequence[Path], tally: Tally, progress: Progress = silent, batch_pages: int = _PAGES
) -> Iterator[pa.Table]:
    """Impressions, some pages at a time."""
    tally.unit = "row"
    columns = [_find_columns(path) for path in paths]
    if len(set(map(tuple, columns))) > 1:
        raise EluteError(f"{paths[0]} and other files differ in {LISTS.query} or {_POSITIONS}; convert them one by one")
    if _POSITIONS in columns[0]:
        tally.position_base = min(map(_find_lowest_position, paths))
    done, total = 0, sum(pq.read_metadata(path).num_rows for path in paths)
    for path in paths:
        before = 0
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=batch_pages, columns=columns[0]):
                yield _to_table(path, batch, before, tally)
                before += batch.num_rows
                done += batch.num_rows
                progress(f"reading {path.name}", done, total)


def _find_columns(path: Path) -> list[str]:
    try:
        schema = pq.read_schema(path)
    except (OSError, pa.ArrowInvalid) as problem:
        raise EluteError(f"{path} cannot be read as Parquet: {str(problem).splitlines()[0]}") from problem
    for name in (LISTS.doc, LISTS.click):
        if name not in schema.names:
            raise EluteError(f"{path} has no column '{name}'; it has: {', '.join(schema.names[:12])}")
    lists = [name for name in (LISTS.doc, LISTS.click, _POSITIONS) if name in schema.names]
    for name in lists:
        kind = schema.field(name).type
        if not (pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)):
            raise EluteError(f"{path}: column '{name}' is {kind}; with a page in each row it must be a list")
        _require_kind(path, name, kind.value_type)
    if LISTS.query in schema.names:
        _require_kind(path, LISTS.query, schema.field(LISTS.query).type)
    return lists + [name for name in (LISTS.query,) if name in schema.names]


def _require_kind(path: Path, name: str, kind: pa.DataType) -> None:
    """Clicks and positions are numbers, ids single values that text can stand for."""
    numbers = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_null(kind)
    if name in (LISTS.click, _POSITIONS):
        fits = numbers or (name == LISTS.click and pa.types.is_boolean(kind))
    else:
        fits = not (pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind))
        fits &= not pa.types.is_fixed_size_binary(kind)
    if not fits:
        wanted = "numbers" if name in (LISTS.click, _POSITIONS) else "text or numbers"
        raise EluteError(f"{path}: column '{name}' holds {kind} values; make {wanted} of them")


def _find_lowest_position(path: Path) -> int:
    """The lowest position in a file: what it counts from."""
    with pq.ParquetFile(path) as file:
        batches = file.iter_batches(columns=[_POSITIONS])
        found = [pc.min(batch.column(0).flatten()).as_py() for batch in batches]
    lowest = min((value for value in found if value is not None), default=1)
    if lowest not in (0, 1):
        raise EluteError(f"{path}: '{_POSITIONS}' start at {lowest}; they must count from 0 or 1")
    return int(lowest)


def _to_table(path: Path, batch: pa.RecordBatch, before: int, tally: Tally) -> pa.Table:
    names = batch.schema.names
    lists = {name: batch.column(name) for name in names if name != LISTS.query}
    rejects = Rejects(batch.num_rows)
    for name in names:
        rejects.add(batch.column(name).is_null().to_numpy(zero_copy_only=False), f"no {name}")
    lengths = {name: _list_lengths(values) for name, values in lists.items()}
    for name in lists:
        rejects.add(lengths[name] != lengths[LISTS.doc], f"not as many {name} as {LISTS.doc}")
    for name, values in lists.items():
        empty = values.flatten().is_null().to_numpy(zero_copy_only=False)
        rejects.add(_find_pages(empty, lengths[name]), f"an empty value in {name}")
    rejects.add(_find_pages(~_is_click(lists[LISTS.click]), lengths[LISTS.click]), "a click that is neither 0 nor 1")
    if _POSITIONS in names:
        rejects.add(_find_pages(~_is_position(lists[_POSITIONS]), lengths[_POSITIONS]), "a position that is none")
    rejects.add(lengths[LISTS.doc] == 0, "a page without results")
    if not rejects.good.all():
        tally.reject(path, rejects, before)

    kept = batch.filter(pa.array(rejects.good))
    shown = lengths[LISTS.doc][rejects.good]
    page = np.arange(tally.sessions, tally.sessions + len(shown))
    tally.sessions += len(shown)
    position = places_within(shown) + 1
    if _POSITIONS in names:
        position = kept.column(_POSITIONS).flatten().to_numpy() + (1 - (tally.position_base or 0))
    columns = {"session_id": np.repeat(page, shown)}
    if LISTS.query in names:
        query = kept.column(LISTS.query).cast(pa.string())
        columns["query_id"] = query.take(pa.array(np.repeat(np.arange(len(shown)), shown)))
    columns["doc_id"] = kept.column(LISTS.doc).flatten().cast(pa.string())
    columns["position"] = position.astype(np.int32)
    columns["click"] = (kept.column(LISTS.click).flatten().to_numpy(zero_copy_only=False) == 1).astype(np.uint8)
    return pa.table(columns)


def _list_lengths(values: pa.Array) -> Ints:
    return np.asarray(pc.list_value_length(values).fill_null(0).to_numpy(zero_copy_only=False), np.int64)


def _is_click(values: pa.Array) -> Flags:
    """By result, whatever type clicks have."""
    clicks = values.flatten().cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return np.asarray((clicks == 0) | (clicks == 1))


def _is_position(values: pa.Array) -> Flags:
    at = values.flatten().cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return np.asarray((at >= 0) & (at < np.iinfo(np.int32).max) & (at == np.floor(at)))


def _find_pages(flags: Flags, lengths: Ints) -> Flags:
    """By page: whether one of its results is flagged."""
    pages = np.repeat(np.arange(len(lengths)), lengths)[flags]
    return np.bincount(pages, minlength=len(lengths)) > 0
