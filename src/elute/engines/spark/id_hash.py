"""Keys of ids, made by Spark: 64 bits, with a key that is drawn for each run, so that ids cannot be made up to collide.

Spark's own hash takes a seed, but text can be made up that collides whatever the seed is. So text goes through MD5
first, behind the key; what comes out of that nobody can choose.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column

_NUMBERS = re.compile(
    r"boolean|tinyint|smallint|int|bigint|float|double|date|timestamp(_ntz)?|decimal\((\d|1[0-8]),\d+\)"
)
"""Types of at most 64 bits, which Spark's hash, with a seed that nobody knows, mixes as they are."""


class SparkIdHash:
    """The key, and columns of hashes."""

    def __init__(self) -> None:
        self._seed, self._text = secrets.randbits(63), secrets.token_hex(16)

    def hash_columns(self, columns: Iterable[str], types: Mapping[str, str]) -> Column:
        """`types`: Spark's names."""
        from pyspark.sql import functions as f

        return f.xxhash64(f.lit(self._seed), *(self._shorten(column, types[column]) for column in columns))

    def _shorten(self, column: str, kind: str) -> Column:
        from pyspark.sql import functions as f

        if _NUMBERS.fullmatch(kind):
            return f.col(column)
        return f.md5(f.concat(f.lit(self._text), f.col(column).cast("string")))


def place_columns(columns: Iterable[str]) -> Column:
    """A hash that is the same in every run: what rows are shuffled by, so that partitions are the same, too."""
    from pyspark.sql import functions as f

    return f.xxhash64(*columns)
