"""Sessions of Baidu-ULTR as published: tab-separated text, a line for the query and one for each result under it.

    qid  query  reformulation
    position  url  title  abstract  multimedia-type  click  …         32 fields, of which these six are read

Positions count from 1. `query_id` is the qid, `doc_id` the MD5 of the url, `media_type` the type of the result (an
advertisement, a video, a map …), which is a bias column of its own. Pages are numbered from 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from elute.io.logs.rows import Flags, LineFields, TextPart, find_repeated, parse_numbers, read_parts, split_fields
from elute.io.logs.tally import Rejects, Tally
from elute.io.text.lines import CHUNK_BYTES
from elute.progress import Progress, silent

BIAS = ("position", "media_type")

_QUERY = 3
_RESULT = 6
"""Fields of a query's line, and the fewest of a result's."""


def read(
    paths: Sequence[Path], tally: Tally, progress: Progress = silent, chunk_bytes: int = CHUNK_BYTES
) -> Iterator[pa.Table]:
    """Impressions, some pages at a time."""
    tally.position_base = 1
    for part in read_parts(paths, _find_last_query, tally, progress, chunk_bytes):
        yield _to_table(part, tally)


def _find_last_query(text: bytes) -> int:
    """Where the last query's line begins."""
    end = len(text)
    while end > 0:
        start = text.rfind(b"\n", 0, end - 1) + 1
        if text.count(b"\t", start, end) == _QUERY - 1:
            return start
        end = start
    return 0


def _to_table(part: TextPart, tally: Tally) -> pa.Table:
    lines = split_fields(part.text)
    is_query, is_result = lines.width == _QUERY, lines.width >= _RESULT
    position, number = parse_numbers(lines.column(0, is_result), 1)
    click, flag = parse_numbers(lines.column(5, is_result), 0)
    page = np.cumsum(is_query) - 1
    rejects = Rejects(len(lines.width))
    rejects.add(~is_query & ~is_result & ~_is_blank(lines), "neither a query (3 fields) nor a result (6 or more)")
    rejects.add(is_query & lines.empty[lines.first], "a query without an id")
    rejects.add(_spread(is_result, ~number), "a position that is not a whole number from 1")
    rejects.add(_spread(is_result, ~(flag & (click <= 1))), "a click that is not 0 or 1")
    rejects.add(is_result & lines.empty[lines.first + np.minimum(1, lines.width - 1)], "a result without an id")
    rejects.add(is_result & (page < 0), "a result before any query")
    lost = np.append(~rejects.good[is_query], False)  # the last is for results before any query
    rejects.add(is_result & lost[page], "a result of a query that cannot be read")
    twice = find_repeated(page[is_result], position, rejects.good[is_result])
    rejects.add(_spread(is_result, twice), "a position already on the page")
    if not rejects.good.all():
        tally.reject(part.path, rejects, part.before, part.text.split(b"\n"))

    kept = is_result & rejects.good
    where = pa.array(page[kept])
    first = tally.sessions
    tally.sessions += int(is_query.sum())
    columns = {
        "session_id": page[kept] + first,
        "query_id": lines.column(0, is_query).take(where),
        "doc_id": lines.column(1, kept),
        "position": position[kept[is_result]],
        "click": click[kept[is_result]].astype(np.uint8),
        "media_type": pc.utf8_trim_whitespace(lines.column(4, kept)),
    }
    return pa.table(columns)


def _is_blank(lines: LineFields) -> Flags:
    return np.asarray((lines.width == 1) & lines.empty[lines.first])


def _spread(lines: Flags, bad: Flags) -> Flags:
    """From some lines to all."""
    all_lines = np.zeros(len(lines), bool)
    all_lines[lines] = bad
    return all_lines
