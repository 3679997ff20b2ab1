"""Adding to a folder of parts, dropping from it, and putting small parts together.

A part is written under a name of its own, beside the others, and becomes one of the folder's when `parts.json` is
replaced: that happens at once, or not at all (`elute.engines.parts.store`). What no `parts.json` names any more is
removed by whoever writes next.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from elute._util.arrow import take_rows
from elute.cells.canonical import take_items
from elute.cells.chunks import Chunk, Members, chunk_of, cut_chunks
from elute.cells.counts import Counts
from elute.cells.filters import Filters
from elute.cells.roles import Roles
from elute.cells.survey import Survey
from elute.engines.base import Engine
from elute.engines.counts_folder.engine import CountsEngine
from elute.engines.counts_folder.layout import ITEM, PLACE, QUERY_KEY, AboutCounts
from elute.engines.counts_folder.writing import write_counts
from elute.engines.id_keys import IdHash
from elute.engines.parts.choosing import find_matching, order_parts
from elute.engines.parts.hashing import hash_items, require_alike
from elute.engines.parts.layout import Block, Index, Key, PartEntry
from elute.engines.parts.ordering import order_items
from elute.engines.parts.store import PartKind, PartsStore, describe_part
from elute.errors import EluteError
from elute.progress import silent

MANY, CELLS_A_BLOCK = 32, 1_000_000
"""So many parts next to each other become a block, where they have no more cells together: to open a part takes some
milliseconds, which only matters where there is little in it."""


class Added(NamedTuple):
    """What became of a part and of its folder."""

    about: AboutCounts
    parts: int
    replaced: bool
    dropped: int


def open_parts(store: PartsStore, roles: Roles, key: Key) -> Index:
    """The folder that a part with this key is to be added to; made where there is none."""
    index = store.begin(lambda: Index((secrets.randbits(64), secrets.randbits(64)), roles, tuple(key)))
    _require_fitting(store.label, index, roles, key)
    return index


def append_part(
    store: PartsStore,
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
    index = open_parts(store, roles, key)
    if drop is not None:
        find_matching(index, drop)
    with _write_part(store, index, engine, filters, survey, source) as (written, about):
        mine = describe_part(written)

        def change(index: Index, name: str) -> Index:
            _require_fitting(store.label, index, roles, key)
            if index.parts:
                _require_same_kind(store.label, index, mine, store.describe(index.parts[0].name))
            kept = [part for part in index.parts if part.key != key]
            new = index._replace(parts=order_parts([*kept, PartEntry(key, name, about["cells"])], index.key))
            gone = set() if drop is None else {part.name for part in find_matching(new, drop)}
            return _drop_blocks(new._replace(parts=tuple(part for part in new.parts if part.name not in gone)))

        before, after = store.publish(written, change)
    _compact(store)
    others = sum(part.key != key for part in before.parts)
    return Added(about, len(after.parts), others < len(before.parts), others + 1 - len(after.parts))


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
    store: PartsStore,
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
    with store.open_folder() as place:
        held = isinstance(source, Counts)
        yield place, write_counts(engine, index.unit_roles, filters, survey, chunks, place, held)


def _arrange_all(chunks: Callable[[], Iterable[Chunk]], roles: Roles, hashed: IdHash) -> Iterator[Chunk]:
    return (arrange(chunk, roles, hashed) for chunk in chunks())


def _compact(store: PartsStore) -> None:
    """Put small parts that lie next to each other into a block, if there are many; one block at a time."""
    index = store.read()
    members = _choose_members(index)
    if not members:
        return

    def change(index: Index, name: str) -> Index | None:
        if not {part.name for part in index.parts} >= set(members):
            return None
        return index._replace(blocks=(*index.blocks, Block(name, tuple(members))))

    with store.open_merged(members) as held, closing(CountsEngine(held)) as engine:
        survey = engine.survey(held.roles)
        counts = engine.count(held.roles, survey, silent)
        with _write_part(store, index, engine, held.filters, survey, counts) as (written, _):
            held.close()
            store.publish(written, change)


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


def _require_fitting(folder: str, index: Index, roles: Roles, key: Key) -> None:
    if index.roles != roles:
        mine, theirs = roles.to_dict(), index.roles.to_dict()
        part = next(name for name in {**theirs, **mine} if mine.get(name) != theirs.get(name))
        told = f"were counted with {part} {theirs.get(part)}, not {mine.get(part)}"
        raise EluteError(f"the parts of '{folder}' {told}; name the same columns, or another folder")
    if set(index.key) != set(key):
        raise EluteError(f"the parts of '{folder}' have the key {','.join(index.key)}, not {','.join(key)}")


def _require_same_kind(folder: str, index: Index, mine: PartKind, theirs: PartKind) -> None:
    """Refuse a part whose ids, or filters, are not like those of another."""
    require_alike(mine.items, theirs.items, index.unit_roles.item, folder)
    before = theirs.filters.max_position
    if before != mine.filters.max_position:
        told = "all positions" if before is None else f"positions up to {before}"
        raise EluteError(f"the parts of '{folder}' have {told}: give the same `max_position=`, or another folder")
