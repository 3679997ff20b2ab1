"""What a folder of parts holds.

| file | what |
|---|---|
| `parts.json` | the parts by key, the columns, and the key under which ids are hashed in all of them |
| `parts/NAME/` | a part: a counts folder, never changed once `parts.json` names it. Its items come in runs, each in the
  order of `elute_place`, and carry the hashes by which they are known in other parts |
| `parts.unfinished` | while `parts.json` is written |

Where an item does not tell its query, a part has items within queries: these tell both. A block is a part made of
others, which are kept: it takes their place where all of them are read.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Self

from elute.cells.roles import Roles
from elute.door.fields import each, mapping, record, text, whole
from elute.door.json_file import read_json
from elute.engines.counts_folder.layout import PARTS, ROLES
from elute.errors import EluteError

FORMAT = 1
FOLDER = "parts"

Key = dict[str, str]

_NAMES = each(text, least=1, unique=True)
_INDEX = record(
    {
        "format": whole(),
        "hash": each(text, least=2),
        "roles": ROLES,
        "key": _NAMES,
        "parts": each(record({"key": mapping(text), "name": text, "cells": whole()}, closed=True)),
        "blocks": each(record({"name": text, "of": _NAMES}, closed=True)),
        "crc32": whole(most=2**32 - 1),
    }
)


class PartEntry(NamedTuple):
    """A part as `parts.json` has it; its folder is called `name`."""

    key: Key
    name: str
    cells: int


class Block(NamedTuple):
    """What stands for several parts, by their names."""

    name: str
    of: tuple[str, ...]


class Index(NamedTuple):
    """`parts.json`. Parts are in the order of their keys."""

    hash: tuple[int, int]
    roles: Roles
    key: tuple[str, ...]
    parts: tuple[PartEntry, ...] = ()
    blocks: tuple[Block, ...] = ()

    @classmethod
    def read(cls, folder: Path) -> Self:
        path = folder / PARTS
        found = read_json(path, _INDEX, "what `elute.count` writes", "count the log again")
        if found["format"] != FORMAT:
            raise EluteError(f"{folder} was written by another version of elute; count the log again")
        if found["crc32"] != _sum({name: value for name, value in found.items() if name != "crc32"}):
            raise EluteError(f"{path} is not as elute wrote it: its checksum differs; count the log again")
        try:
            first, second = (int(half, 16) for half in found["hash"])
        except ValueError:
            raise EluteError(f"{path} is not what `elute.count` writes ('hash'); count the log again") from None
        parts = tuple(PartEntry(**part) for part in found["parts"])
        blocks = tuple(Block(block["name"], tuple(block["of"])) for block in found["blocks"])
        names = [*(part.name for part in parts), *(block.name for block in blocks)]
        keys = {tuple(part.key.get(name) for name in found["key"]) for part in parts}
        twice = len(set(names)) < len(names) or len(keys) < len(parts)
        if twice or any(set(part.key) != set(found["key"]) for part in parts) or not all(map(is_name, names)):
            raise EluteError(f"{path} contradicts itself; count the log again")
        return cls((first, second), Roles.from_fields(found["roles"]), tuple(found["key"]), parts, blocks)

    @property
    def names(self) -> set[str]:
        """Of parts and blocks."""
        return {*(part.name for part in self.parts), *(block.name for block in self.blocks)}

    @property
    def unit_roles(self) -> Roles:
        """By which parts are counted: their items tell the query."""
        return find_unit_roles(self.roles)

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        fields = {
            "format": FORMAT,
            "hash": [f"{half:016x}" for half in self.hash],
            "roles": self.roles.to_dict(),
            "key": list(self.key),
            "parts": [part._asdict() for part in self.parts],
            "blocks": [block._asdict() for block in self.blocks],
        }
        return {**fields, "crc32": _sum(fields)}


def _sum(fields: dict[str, Any]) -> int:
    """Of all but itself: ids are hashed by what stands there."""
    return zlib.crc32(json.dumps(fields, sort_keys=True).encode())


def find_unit_roles(roles: Roles) -> Roles:
    """Items within queries, where a log has queries that its items do not tell."""
    if roles.query is None or roles.items_within_queries:
        return roles
    return replace(roles, item=(roles.query, *roles.item))


def is_name(name: str) -> bool:
    """Whether a folder is called as parts are."""
    return len(name) == 16 and set(name) <= set("0123456789abcdef")


def is_parts(source: object) -> bool:
    """Whether a source is a folder of parts."""
    return isinstance(source, str | Path) and (Path(source) / PARTS).is_file()
