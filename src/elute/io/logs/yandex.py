"""The text log of Yandex' Relevance Prediction Challenge (2011): tab-separated rows, in the order of time.

    session  time  Q  query  region  url url …      a result page: urls in the order shown
    session  time  C  url                           a click

A session holds several pages. A click belongs to the latest page before it, in its session, that shows its url; a
click on a url that no such page shows is an orphan. Relevance was judged by query and region, so `query_id` is both,
joined by `_`. Pages are numbered from 0. The rows of a session stand together, as they were published.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from elute.io.logs.rows import Flags, Ints, LineFields, TextPart, places_within, read_parts, split_fields
from elute.io.logs.tally import Rejects, Tally
from elute.io.text.lines import CHUNK_BYTES
from elute.progress import Progress, silent

BIAS = ("position",)

_RESULTS = 5
"""Fields of a Q row before its urls."""


def read(
    paths: Sequence[Path], tally: Tally, progress: Progress = silent, chunk_bytes: int = CHUNK_BYTES
) -> Iterator[pa.Table]:
    """Impressions, some pages at a time."""
    for part in read_parts(paths, _find_last_session, tally, progress, chunk_bytes):
        yield _to_table(part, tally)


def _find_last_session(text: bytes) -> int:
    """Where the rows of the last session begin."""
    end = len(text)
    session: bytes | None = None
    while end > 0:
        start = text.rfind(b"\n", 0, end - 1) + 1
        line = text[start : end - 1]
        if line:
            this = line.partition(b"\t")[0]
            if session is not None and this != session:
                return end
            session = this
        end = start
    return 0


def _to_table(part: TextPart, tally: Tally) -> pa.Table:
    lines = split_fields(part.text)
    is_query, is_click = _classify_lines(part, lines, tally)
    shown = lines.width[is_query] - _RESULTS
    urls = lines.values.take(pa.array(np.repeat(lines.first[is_query] + _RESULTS, shown) + places_within(shown)))
    query = pc.binary_join_element_wise(lines.column(3, is_query), lines.column(4, is_query), "_")
    clicked = _match_clicks(lines, is_query, is_click, urls, tally)
    page = np.arange(tally.sessions, tally.sessions + len(shown))
    tally.sessions += len(shown)
    columns = {
        "session_id": np.repeat(page, shown),
        "query_id": query.take(pa.array(np.repeat(np.arange(len(shown)), shown))),
        "doc_id": urls,
        "position": (places_within(shown) + 1).astype(np.int32),
        "click": clicked,
    }
    return pa.table(columns)


def _classify_lines(part: TextPart, lines: LineFields, tally: Tally) -> tuple[Flags, Flags]:
    """Which lines are Q rows and which are C rows, those that are malformed left out."""
    long = lines.width >= 4
    kind = lines.column(2, long)
    is_query, is_click = (np.zeros(len(long), bool) for _ in range(2))
    is_query[long] = pc.equal(kind, "Q").to_numpy(zero_copy_only=False)
    is_click[long] = pc.equal(kind, "C").to_numpy(zero_copy_only=False)
    blank = (lines.width == 1) & lines.empty[lines.first]
    rejects = Rejects(len(lines.width))
    rejects.add(~long & ~blank, "fewer than 4 fields")
    rejects.add(long & ~is_query & ~is_click, "neither a Q nor a C row")
    rejects.add(is_query & (lines.width <= _RESULTS), "a Q row without a url")
    rejects.add(is_click & (lines.width != 4), "a C row that does not have 4 fields")
    rejects.add(~blank & np.logical_or.reduceat(lines.empty, lines.first), "an empty field")
    if not rejects.good.all():
        tally.reject(part.path, rejects, part.before, part.text.split(b"\n"))
    return is_query & rejects.good, is_click & rejects.good


def _match_clicks(
    lines: LineFields, is_query: Flags, is_click: Flags, urls: pa.StringArray, tally: Tally
) -> NDArray[np.uint8]:
    """By impression: whether it was clicked.

    Impressions and clicks get the number (session, url, row). Among the impressions sorted by it, the one before a
    click is the latest in its session with its url, if there is any.
    """
    shown, span = lines.width[is_query] - _RESULTS, len(lines.width)
    session = _encode(lines.column(0, is_query), lines.column(0, is_click))
    url = _encode(urls, lines.column(3, is_click))
    width = int(url.max(initial=0)) + 1
    impression = np.repeat(session[: len(shown)], shown) * width + url[: len(urls)]
    impression = impression * span + np.repeat(np.flatnonzero(is_query), shown)
    sought = session[len(shown) :] * width + url[len(urls) :]
    sought = sought * span + np.flatnonzero(is_click)

    order = np.argsort(impression, kind="stable")
    ranked = impression[order]
    found = np.searchsorted(ranked, sought) - 1
    hit = found >= 0
    hit[hit] = ranked[found[hit]] // span == sought[hit] // span
    click = np.zeros(len(urls), np.uint8)
    # A url twice on one page: the click goes to its first place.
    click[order[np.searchsorted(ranked, ranked[found[hit]])]] = 1
    tally.orphans += len(sought) - int(hit.sum())
    tally.repeated_clicks += int(hit.sum()) - int(click.sum())
    return click


def _encode(one: pa.StringArray, other: pa.StringArray) -> Ints:
    """Equal numbers for equal texts."""
    return np.asarray(pa.concat_arrays([one, other]).dictionary_encode().indices.to_numpy(), np.int64)
