"""LETOR's text format (SVMlight with `qid`): `grade qid:id index:value … # comment`, a document a line.

MQ2007 and MQ2008, MSLR-WEB10K and 30K, Istella-S and Yahoo! set 1 all use it. What differs between them, and between
the tools that write it, is taken as follows.

- A feature that is not on a line is 0. Indices may come in any order, but none twice on a line.
- Indices count from 1, unless an index 0 occurs anywhere: then they count from 0.
- Documents are named by their comment where it says `docid = …` (MQ2007, MQ2008), else by their place in the query,
  counted from 0.
- Lines of one query that lie apart are brought together, in the order in which they were read.

The files are read in chunks. Each becomes a dense block; blocks are let go as they are copied into the one table, so
that the peak is that table (documents × features × 4 bytes: 2.1 GB for the 3.8 million documents of MSLR-WEB30K)
and about 50 MB for a chunk with its block. Where lines of a query lie far apart it is up to twice the table.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from elute.errors import EluteError
from elute.io.text.blocks import TextBlock, first_column, read_blocks
from elute.io.text.lines import CHUNK_BYTES, Paths, find_files
from elute.ranking.data import RankingData

_DOCUMENT = re.compile(rb"docid\s*[=:]\s*(\S+)", re.IGNORECASE)


def read(
    source: Paths, *, n_features: int | None = None, zero_based: bool | None = None, chunk_bytes: int = CHUNK_BYTES
) -> RankingData:
    """Queries, documents, grades and features from a path, a glob, a folder, or a list of these, read as one set.

    `n_features`: columns to give, so that the parts of a split agree; by default up to the highest index found.
    `zero_based`: whether indices count from 0; by default true where an index 0 occurs.
    """
    parts = _Parts()
    for path in find_files(source):
        for block in read_blocks(path, True, chunk_bytes):
            _add(block, parts)
    if not parts.features:
        raise EluteError(f"no document in {_describe_source(source)}; expected lines such as '2 qid:1 1:0.5 2:0.3'")
    highest = max(features.shape[1] for features in parts.features)
    first = first_column(highest, parts.zero, zero_based)
    width = highest - first
    if n_features is not None and n_features < width:
        raise EluteError(f"{_describe_source(source)}: feature index {highest - 1} is beyond `n_features={n_features}`")
    return _assemble(parts, first, width if n_features is None else n_features)


@dataclass
class _Parts:
    """What has been read so far."""

    features: list[NDArray[np.float32]] = field(default_factory=list)
    """By block."""
    grades: list[NDArray[np.int32]] = field(default_factory=list)
    queries: dict[str, int] = field(default_factory=dict)
    runs: list[tuple[int, int]] = field(default_factory=list)
    """(query, documents) for lines of one query in a row."""
    documents: list[tuple[int, str]] = field(default_factory=list)
    """(row, id) where a comment names the document."""
    zero: bool = False
    """Whether an index 0 occurred."""
    n: int = 0


def _add(block: TextBlock, parts: _Parts) -> None:
    lines = block.lines
    starts = np.flatnonzero(lines.changes)
    counts = np.diff(starts, append=len(lines.line))
    for row, count in zip(starts.tolist(), counts.tolist(), strict=True):
        parts.runs.append((parts.queries.setdefault(block.head(row), len(parts.queries)), count))
    for row in np.flatnonzero(lines.comment >= 0).tolist():
        if named := _DOCUMENT.search(block.text, int(lines.comment[row]), int(lines.end[row])):
            parts.documents.append((parts.n + row, block.decode_id(named[1], row)))
    parts.zero |= block.zero
    parts.features.append(block.features)
    parts.grades.append(lines.grade)
    parts.n += len(lines.line)


def _assemble(parts: _Parts, first: int, width: int) -> RankingData:
    """One table from the blocks, which are let go on the way."""
    run = np.array(parts.runs, np.int64)
    query = np.repeat(run[:, 0], run[:, 1])
    target = np.empty(parts.n, np.int64)
    target[np.argsort(query, kind="stable")] = np.arange(parts.n)
    offsets = np.concatenate(([0], np.cumsum(np.bincount(query, minlength=len(parts.queries)))))

    grades = np.empty(parts.n, np.int32)
    grades[target] = np.concatenate(parts.grades)
    features = np.zeros((parts.n, width), np.float32)
    start = 0
    for i, block in enumerate(parts.features):
        rows = target[start : start + len(block)]
        together = rows[-1] - rows[0] == len(rows) - 1 and bool((np.diff(rows) == 1).all())
        features[slice(rows[0], rows[-1] + 1) if together else rows, : max(block.shape[1] - first, 0)] = block[
            :, first:
        ]
        start += len(block)
        parts.features[i] = np.empty((0, block.shape[1]), np.float32)
        del block
    return RankingData(features, grades, offsets, np.array(list(parts.queries)), _document_ids(parts, offsets, target))


def _document_ids(parts: _Parts, offsets: NDArray[np.int64], target: NDArray[np.int64]) -> NDArray[np.str_]:
    """The documents' ids, unique within a query."""
    length = np.diff(offsets)
    place = np.arange(parts.n) - np.repeat(offsets[:-1], length)
    documents = np.arange(length.max()).astype(np.str_)[place]
    if not parts.documents:
        return documents
    rows, names = zip(*parts.documents, strict=True)
    named = np.array(names)
    documents = documents.astype(max(documents.dtype, named.dtype))
    documents[target[list(rows)]] = named
    seen: set[tuple[int, str]] = set()
    for pair in zip(np.repeat(np.arange(len(length)), length).tolist(), documents.tolist(), strict=True):
        if pair in seen:
            raise EluteError(
                f"document '{pair[1]}' appears twice in query '{list(parts.queries)[pair[0]]}'; keep one line"
            )
        seen.add(pair)
    return documents


def _describe_source(source: Paths) -> str:
    return str(source) if isinstance(source, str | Path) else ", ".join(map(str, source))
