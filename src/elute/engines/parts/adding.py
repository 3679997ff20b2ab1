"""Adding to a folder of parts, dropping from it, and putting small parts together.

A part is written under a name of its own, beside the others, and becomes one of the folder's when `parts.json` is
replaced: that happens at once, or not at all. Writers wait for each other only there. What no `parts.json` names any
more is removed by whoever writes next while nobody reads.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from elute._util import files, locks, scratch
from elute._util.arrow import take_rows
from elute._util.folders import name_lock
from elute.cells.canonical import take_items
from elute.cells.chunks import Chunk, Members, chunk_of, cut_chunks
from elute.cells.counts import Counts
from elute.cells.filters import Filters
from elute.cells.roles import Roles
from elute.cells.survey import Survey
from elute.engines.base import Engine
from elute.engines.counts_folder.engine import CountsEngine
from elute.engines.counts_folder.layout import ITEM, MARK, PARTS, PLACE, QUERY_KEY, AboutCounts
from elute.engines.counts_folder.reading import CountsFiles
from elute.engines.counts_folder.writing import write_counts
from elute.engines.id_keys import IdHash
from elute.engines.parts.choosing import find_matching, order_parts
from elute.engines.parts.hashing import hash_items, require_alike
from elute.engines.parts.layout import FOLDER, Block, Index, Key, PartEntry, is_name
from elute.engines.parts.ordering import order_items
from elute.engines.parts.reading import MergedCounts
from elute.errors import EluteError
from elute.progress import silent

PATIENCE = 60
"""Seconds to wait for another writer, who only replaces `parts.json`."""

MANY, CELLS_A_BLOCK = 32, 1_000_000
"""So many parts next to each other become a block, where they have no more cells together: to open a part takes some
milliseconds, which only matters where there is little in it."""


class Added(NamedTuple):
    """What became of a part and of its folder."""

    about: AboutCounts
    parts: int
    replaced: bool
    dropped: int


def open_parts(folder: Path, roles: Roles, key: Key) -> Index:
    """The folder that a part with this key is to be added to; made where there is none."""
    if (folder / MARK).exists():
        raise EluteError(f"'{folder}' holds the counts of one log, to which nothing can be added; choose another")
    if not (folder / PARTS).exists():
        inside = {path.name for path in folder.iterdir() if path.name[0] != "."} if folder.is_dir() else set()
        if folder.exists() and (not folder.is_dir() or inside - {FOLDER, name_lock(PARTS)}):
            raise EluteError(f"'{folder}' already exists and is not a counts folder; choose another")
        (folder / FOLDER).mkdir(parents=True, exist_ok=True)
        with _alone(folder):
            if not (folder / PARTS).exists():
                drawn = secrets.randbits(64), secrets.randbits(64)
                _write_index(folder, Index(drawn, roles, tuple(key)))
    index = Index.read(folder)
    _require_fitting(folder, index, roles, key)
    return index


def append_part(
    folder: Path,
    key: Key,
    drop: str | None,
    roles: Roles,
    engine: Engine,
    filters: Filters,
    survey: Survey,
    source: Counts | Callable[[], Iterable[Chunk]],
) -> Added:
    """Add counts to a folder, in the place of those with the same key; then drop parts that meet a condition. `source`:
    what was counted by `Index.unit_roles`, in memory or in chunks."""
    index = open_parts(folder, roles, key)
    if drop is not None:
        find_matching(index, drop)
    with _write_part(folder, index, engine, filters, survey, source) as (written, about), _alone(folder):
        index = Index.read(folder)
        _require_fitting(folder, index, roles, key)
        _require_same_kind(folder, index, written, filters)
        name = _settle(folder, written)
        kept = [part for part in index.parts if part.key != key]
        replaced = len(kept) < len(index.parts)
        new = index._replace(parts=order_parts([*kept, PartEntry(key, name, about["cells"])], index.key))
        gone = set() if drop is None else {part.name for part in find_matching(new, drop)}
        new = new._replace(parts=tuple(part for part in new.parts if part.name not in gone))
        _write_index(folder, _drop_blocks(new))
        _sweep(folder)
    _compact(folder)
    return Added(about, len(new.parts), replaced, len(gone))


def arrange(chunk: Chunk, roles: Roles, hashed: IdHash) -> Chunk:
    """With its items in the order of their places, and with their hashes."""
    table = chunk.items()
    ids = hash_items(table, roles, hashed)
    order = order_items(ids.place, ids.item)
    names = (PLACE, ITEM, QUERY_KEY) if len(ids.query) else (PLACE, ITEM)
    for name, values in zip(names, ids, strict=False):
        table = table.append_column(name, pa.array(values))
    ordered, members = take_rows(table, order), chunk.members
    if members is not None:  # one of each item, in their order
        every = np.arange(len(order), dtype=np.int32)
        members = Members(members.query[order], every, members.impressions[order])
    return Chunk(lambda: ordered, take_items(chunk.cells, order), members)


@contextmanager
def _write_part(
    folder: Path,
    index: Index,
    engine: Engine,
    filters: Filters,
    survey: Survey,
    source: Counts | Callable[[], Iterable[Chunk]],
) -> Iterator[tuple[Path, AboutCounts]]:
    """A folder with the counts, which is gone afterwards unless it has been settled."""
    hashed = IdHash(index.hash)
    chunks: Callable[[], Iterable[Chunk]]
    if isinstance(source, Counts):
        whole = arrange(chunk_of(source), index.roles, hashed)
        chunks = partial(cut_chunks, whole.items, whole.cells, whole.members)
    else:
        chunks = partial(_arrange_all, source, index.roles, hashed)
    with scratch.open_folder(folder / FOLDER) as place:
        held = isinstance(source, Counts)
        yield place, write_counts(engine, index.unit_roles, filters, survey, chunks, place, held)


def _arrange_all(chunks: Callable[[], Iterable[Chunk]], roles: Roles, hashed: IdHash) -> Iterator[Chunk]:
    return (arrange(chunk, roles, hashed) for chunk in chunks())


def _settle(folder: Path, written: Path) -> str:
    """Give a part the name under which it stays. Until `parts.json` has it, it is one to be swept."""
    name = secrets.token_hex(8)
    written.chmod(stat.S_IMODE((folder / FOLDER).stat().st_mode))
    written.rename(folder / FOLDER / name)
    scratch.settle(folder / FOLDER / name)
    return name


def _compact(folder: Path) -> None:
    """Put small parts that lie next to each other into a block, if there are many; one block at a time."""
    index = Index.read(folder)
    members = _choose_members(index)
    if not members:
        return
    held = MergedCounts(folder, lambda _: members, units=True, streams=False)
    engine = CountsEngine(held)
    try:
        survey = engine.survey(held.roles)
        counts = engine.count(held.roles, survey, silent)
        with _write_part(folder, index, engine, held.filters, survey, counts) as (written, _):
            held.close()
            with _alone(folder):
                index = Index.read(folder)
                if {part.name for part in index.parts} >= set(members):
                    block = Block(_settle(folder, written), tuple(members))
                    _write_index(folder, index._replace(blocks=(*index.blocks, block)))
                _sweep(folder)
    finally:
        engine.close()


def _choose_members(index: Index) -> list[str]:
    inside = {name for block in index.blocks for name in block.of}
    found: list[PartEntry] = []
    for part in index.parts:
        if part.name in inside or part.cells > CELLS_A_BLOCK // MANY:
            found = []
            continue
        found.append(part)
        if len(found) == MANY:
            return [one.name for one in found]
    return []


def _drop_blocks(index: Index) -> Index:
    """Without blocks of which some part is gone."""
    names = {part.name for part in index.parts}
    return index._replace(blocks=tuple(block for block in index.blocks if names.issuperset(block.of)))


def _write_index(folder: Path, index: Index) -> None:
    files.write_text(folder / PARTS, json.dumps(index.to_dict(), ensure_ascii=False, indent=1) + "\n")


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """The only one who writes `parts.json`."""
    busy = f"'{folder}' is being written by another process; wait for it, and run this again"
    with locks.hold(Path(os.path.realpath(folder)) / name_lock(PARTS), busy, PATIENCE):
        yield


def _sweep(folder: Path) -> None:
    """Remove parts that are named no more, unless somebody reads. Only by whoever writes alone."""
    index = Index.read(folder)
    named = {*(part.name for part in index.parts), *(block.name for block in index.blocks)}
    with locks.try_alone(folder / FOLDER) as alone:
        for path in (folder / FOLDER).iterdir() if alone else ():
            if is_name(path.name) and path.name not in named:
                shutil.rmtree(path, ignore_errors=True)


def _require_fitting(folder: Path, index: Index, roles: Roles, key: Key) -> None:
    if index.roles != roles:
        mine, theirs = roles.to_dict(), index.roles.to_dict()
        part = next(name for name in {**theirs, **mine} if mine.get(name) != theirs.get(name))
        told = f"were counted with {part} {theirs.get(part)}, not {mine.get(part)}"
        raise EluteError(f"the parts of '{folder}' {told}; name the same columns, or another folder")
    if set(index.key) != set(key):
        raise EluteError(f"the parts of '{folder}' have the key {','.join(index.key)}, not {','.join(key)}")


def _require_same_kind(folder: Path, index: Index, written: Path, filters: Filters) -> None:
    """Refuse a part whose ids, or filters, are not like those of another."""
    if not index.parts:
        return
    other = folder / FOLDER / index.parts[0].name
    mine, theirs = (pq.read_schema(place / "items.parquet") for place in (written, other))
    require_alike(mine, theirs, index.unit_roles.item, folder)
    before = CountsFiles(other).filters
    if before.max_position != filters.max_position:
        told = "all positions" if before.max_position is None else f"positions up to {before.max_position}"
        raise EluteError(f"the parts of '{folder}' have {told}: give the same `max_position=`, or another folder")
