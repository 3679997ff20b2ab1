"""Ways to damage a file. Each takes a path and a generator of chance, and changes the file in place.

Blind damage knows only bytes. The rest writes a file of the same format that holds something else: what somebody else's
program, another version or an attacker may hand over.
"""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

Damage = Callable[[Path, random.Random], None]


def flip_bits(path: Path, chance: random.Random) -> None:
    data = bytearray(path.read_bytes())
    for _ in range(chance.choice((1, 1, 8, 64))):
        if data:
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    path.write_bytes(data)


def truncate(path: Path, chance: random.Random) -> None:
    data = path.read_bytes()
    path.write_bytes(
        data[: chance.choice((0, 1, len(data) // 2, max(len(data) - 1, 0), chance.randrange(len(data) + 1)))]
    )


def append(path: Path, chance: random.Random) -> None:
    path.write_bytes(path.read_bytes() + chance.randbytes(chance.choice((1, 100))))


def overwrite(path: Path, chance: random.Random) -> None:
    """A stretch of zeros, or of anything."""
    data = bytearray(path.read_bytes())
    at, long = chance.randrange(len(data) + 1), chance.randrange(1, 200)
    data[at : at + long] = bytes(long) if chance.random() < 0.5 else chance.randbytes(long)
    path.write_bytes(data)


def remove(path: Path, chance: random.Random) -> None:
    path.unlink()


def become_folder(path: Path, chance: random.Random) -> None:
    path.unlink()
    path.mkdir()


BLIND: tuple[Damage, ...] = (flip_bits, flip_bits, truncate, truncate, append, overwrite, remove, become_folder)

NUMBERS = (-1, 0, -5, 1, 2, 3, 10**9, -(10**9), 2**31, 2**31 - 1, 2**63 - 1, -(2**63), 2**64, 10**30, 0.5, -0.5, 1e308)
ODD: tuple[Any, ...] = (
    *NUMBERS,
    *(math.nan, math.inf, -math.inf, None, True, False, "", "x", "1", "\ud800", "a\0b", "\x1b[31m", "é" * 3000),
    *([], {}, [None], [1, "a"], {"a": 1}, [[]], {"": {}}),
)


def change_json(path: Path, chance: random.Random) -> None:
    """Something else in one place."""
    value = json.loads(path.read_text(encoding="utf-8"))
    for _ in range(chance.choice((1, 1, 2))):
        holder, key = chance.choice(list(_places(value)) or [(None, None)])
        if holder is None:
            value = chance.choice(ODD)
            break
        way = chance.random()
        if way < 0.2:
            del holder[key]
        elif way < 0.3 and isinstance(holder, list):
            holder.append(holder[key])
        elif way < 0.4 and isinstance(holder, dict):
            holder[chance.choice(("", "x", f"{key} "))] = holder.pop(key)
        elif way < 0.6 and isinstance(holder[key], int | float):
            holder[key] = chance.choice(NUMBERS)
        else:
            holder[key] = chance.choice(ODD)
    path.write_text(json.dumps(value), encoding="utf-8")


def _places(value: Any) -> Any:
    if isinstance(value, dict | list):
        keys = list(value) if isinstance(value, dict) else range(len(value))
        for key in keys:
            yield value, key
            yield from _places(value[key])


def nest_json(path: Path, chance: random.Random) -> None:
    """Deeper than anything can follow."""
    text, deep = path.read_text(encoding="utf-8"), chance.choice((900, 100_000))
    brackets = chance.choice((("[", "]"), ('{"a":', "}")))
    deepened = brackets[0] * deep + "1" + brackets[1] * deep
    whole = chance.random() < 0.5 or ": " not in text
    path.write_text(deepened if whole else text.replace(": ", f': {deepened}, "x": ', 1), encoding="utf-8")


def _change_column(column: pa.ChunkedArray, chance: random.Random) -> pa.Array | pa.ChunkedArray:
    values = column.to_pylist()
    at = chance.randrange(len(values)) if values else 0
    odd = chance.choice((*NUMBERS, math.nan, math.inf, None, "x", b"\xff\xfe"))
    way = chance.randrange(8)
    if way == 0 and values:  # one value
        values[at] = odd
    elif way == 1:  # all values
        values = [odd] * len(values)
    elif way == 2 and values:  # one value, of the same type if that is possible
        values[at] = chance.choice(NUMBERS)
        return _as_type(values, column.type) or column
    elif way == 3:
        return _as_type([None if value is None else str(value) for value in values], pa.string()) or column
    elif way == 4:
        return pa.array([[value] for value in values])
    elif way == 5:
        return pa.array([{"a": value} for value in values])
    elif way == 6:
        chance.shuffle(values)
        return _as_type(values, column.type) or column
    else:
        kind = chance.choice((pa.float64(), pa.int8(), pa.uint64(), pa.int64(), pa.float32(), pa.binary(), pa.bool_()))
        return _as_type(values, kind) or column
    return _as_type(values, column.type) or _as_type(values, None) or _as_type(list(map(str, values)), None) or column


def _as_type(values: list[Any], kind: pa.DataType | None) -> pa.Array | None:
    try:
        return pa.array(values, kind)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        return None


def change_table(path: Path, chance: random.Random) -> None:
    """Parquet with other columns, rows or values."""
    table = pq.read_table(path)
    n, names = table.num_rows, table.column_names
    name = chance.choice(names)
    at, way = names.index(name), chance.randrange(12)
    if way == 0:
        table = table.drop_columns([name])
    elif way == 1:
        table = table.append_column(chance.choice((name, "x", "component", "elute_cells", "")), table[name])
    elif way == 2:
        other = chance.randrange(len(names))
        table = table.set_column(at, name, table[other]).set_column(other, names[other], table[name])
    elif way == 3 and n:
        table = table.slice(0, chance.randrange(n))
    elif way == 4 and n:
        table = pa.concat_tables([table, table.slice(chance.randrange(n), 1)])
    elif way == 5 and n:
        table = table.take(pa.array(np.random.default_rng(chance.randrange(2**32)).permutation(n)))
    else:
        table = table.set_column(at, name, _change_column(table[name], chance))
    pq.write_table(table, path, row_group_size=chance.choice((None, 7)))


def change_arrays(path: Path, chance: random.Random) -> None:
    """An npz file with other arrays."""
    with np.load(path, allow_pickle=False) as kept:
        arrays = dict(kept)
    name = chance.choice(sorted(arrays))
    array, way = arrays[name], chance.randrange(6)
    if way == 0:
        del arrays[name]
    elif way == 1:
        arrays["x"] = array
    elif way == 2:
        kinds = (np.float64, np.int8, np.str_) if array.dtype.kind in "fiub" else (np.bytes_,)
        arrays[name] = array.astype(chance.choice(kinds))
    elif way == 3:
        arrays[name] = array[..., None]
    elif way == 4:
        arrays[name] = np.resize(array, chance.choice(((0,), (3,), (1, 1), (5, 2))))
    elif array.dtype.kind in "fiu":
        arrays[name] = np.full_like(array, chance.choice((np.nan, np.inf, -1)) if array.dtype.kind == "f" else 1)
    with path.open("wb") as file:
        np.savez(file, **arrays)


def change_text(path: Path, chance: random.Random) -> None:
    """Lines lost, repeated, moved, or with another number in them."""
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)
    for _ in range(chance.choice((1, 1, 5))):
        if not lines:
            break
        at, way = chance.randrange(len(lines)), chance.randrange(5)
        if way == 0:
            del lines[at]
        elif way == 1:
            lines.insert(at, lines[chance.randrange(len(lines))])
        elif way == 2:
            lines[at] = lines[at][: chance.randrange(len(lines[at]) + 1)]
        else:
            words = re.split(r"([ =,\t<>])", lines[at])  # every other one is what stands between two
            odd = chance.choice((*NUMBERS, "nan", "inf", "x", "", "\0", '"'))
            words[2 * chance.randrange((len(words) + 1) // 2)] = str(odd)
            lines[at] = "".join(words)
    path.write_text("".join(lines), encoding="utf-8")


INFORMED: dict[str, tuple[Damage, ...]] = {
    ".json": (change_json, change_json, change_json, nest_json),
    ".parquet": (change_table,),
    ".npz": (change_arrays,),
    **dict.fromkeys((".txt", ".xml", ".csv", ".ndjson", ".init_list", ".labels", ".feature"), (change_text,)),
}


def damage(path: Path, chance: random.Random, blind: float = 0.35) -> str:
    """Damage a file in some way; gives the way's name."""
    way = chance.choice(BLIND if chance.random() < blind else INFORMED[path.suffix])
    way(path, chance)
    return way.__name__
