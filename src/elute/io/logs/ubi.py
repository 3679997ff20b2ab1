"""Logs of OpenSearch User Behavior Insights (UBI 1.x): the documents of `ubi_queries` and `ubi_events`.

What is what is told by the documents themselves: one with an `action_name` is an event, others are queries, so that
any number of files may be given, in any order, also bulk files that hold both.

- UBI's `query_id` names one search by one user, that is a page: it becomes `session_id`. The text of the query,
  `user_query`, becomes `query_id`.
- Impressions are `query_response_hit_ids`, in their order, at positions 1, 2, 3 …. A query without clicks is a page of
  impressions without clicks. Of documents with the same `query_id`, the first counts.
- Clicks are events whose `action_name` is `click`, on the object `event_attributes.object.object_id`. Several on one
  result are one click. A click whose object is not on the page of its query is an orphan.
- `event_attributes.position.ordinal` counts from 0 in some clients and from 1 in others. Which, is found by comparing
  it with the places in the lists; where it agrees with neither, the lists may not be what users saw.

Queries and clicks go to tables that spill to disk, and are joined there, so that memory stays bounded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from elute._util import scratch
from elute.engines.duckdb.connection import connect
from elute.engines.sql import quoting
from elute.io.logs.tally import SHOWN, Tally
from elute.io.logs.ubi_records import is_parquet, parquet_relation, read_lines
from elute.io.text.lines import CHUNK_BYTES
from elute.progress import Progress, silent

BIAS = ("position",)

_MEMORY = "1GB"
_ROWS = 1 << 18
_FIGURES = (
    "queries",
    "queries_without_results",
    "queries_without_text",
    "repeated_queries",
    "events",
    "click_events",
)
_ACTIONS = 20
"""Names of actions that are counted one by one."""

_MALFORMED = """
    CASE WHEN NOT valid THEN 'not a JSON object'
         WHEN bulk AND query_id IS NULL AND action IS NULL THEN NULL
         WHEN action IS NULL AND attributes AND hits IS NULL THEN 'an event without action_name'
         WHEN action IS NULL AND coalesce(query_id, '') = '' THEN 'neither an event nor a query with a query_id'
         WHEN action IS NULL AND len(hits) > list_count(hits)
         THEN 'an empty id in query_response_hit_ids' END"""


def read(
    paths: Sequence[Path], tally: Tally, progress: Progress = silent, chunk_bytes: int = 4 * CHUNK_BYTES
) -> Iterator[pa.Table]:
    """Impressions, some pages at a time."""
    with scratch.open_folder() as folder, connect() as con:
        con.execute(f"SET memory_limit = '{_MEMORY}'; SET temp_directory = {quoting.text(str(folder))}")
        con.execute("CREATE TEMP TABLE queries (query_id VARCHAR, user_query VARCHAR, hits VARCHAR[])")
        con.execute("CREATE TEMP TABLE clicks (query_id VARCHAR, object_id VARCHAR, ordinal BIGINT)")
        tally.figures = dict.fromkeys(_FIGURES, 0)
        done, total = 0, sum(path.stat().st_size for path in paths)
        for path in paths:
            if is_parquet(path):
                tally.unit = "row"
                _store(con, path, parquet_relation(path), 0, tally)
                done += path.stat().st_size
                progress(f"reading {path.name}", done, total)
                continue
            tally.unit = "line"
            for records, before, size in read_lines(con, path, chunk_bytes):
                _store(con, path, records, before, tally)
                done += size
                progress(f"reading {path.name}", min(done, total), total)
        yield from _join_impressions(con, tally, progress)


def _store(con: duckdb.DuckDBPyConnection, path: Path, records: str, before: int, tally: Tally) -> None:
    """Queries with results to one table, clicks to the other, and the rest to the tally."""
    con.execute(f"CREATE OR REPLACE TEMP TABLE records AS SELECT *, {_MALFORMED} AS malformed FROM {records}")
    bad = con.execute("SELECT count(malformed) FROM records").fetchall()[0][0]
    if bad:
        rows = con.execute(f"SELECT row, malformed FROM records WHERE malformed IS NOT NULL ORDER BY row LIMIT {SHOWN}")
        tally.reject_at(path, ((before + row + 1, reason) for row, reason in rows.fetchall()), bad)
    con.execute("DELETE FROM records WHERE malformed IS NOT NULL OR (bulk AND query_id IS NULL AND action IS NULL)")
    counted = con.execute(
        """SELECT count(*) FILTER (action IS NULL),
                  count(*) FILTER (action IS NULL AND coalesce(len(hits), 0) = 0),
                  count(*) FILTER (action IS NULL AND coalesce(len(hits), 0) > 0 AND user_query IS NULL),
                  0, count(action), count(*) FILTER (lower(action) = 'click') FROM records"""
    ).fetchall()[0]
    for figure, value in zip(tally.figures, counted, strict=True):
        tally.figures[figure] += value
    for action, number in con.execute("SELECT action, count(action) FROM records GROUP BY ALL ORDER BY ALL").fetchall():
        if action is not None and (action in tally.actions or len(tally.actions) < _ACTIONS):
            tally.actions[action] = tally.actions.get(action, 0) + number
    con.execute(
        """INSERT INTO queries SELECT query_id, user_query, hits FROM records
           WHERE action IS NULL AND coalesce(len(hits), 0) > 0 AND user_query IS NOT NULL ORDER BY row"""
    )
    con.execute(
        """INSERT INTO clicks SELECT query_id, object_id, TRY_CAST(ordinal AS BIGINT) FROM records
           WHERE lower(action) = 'click' AND query_id IS NOT NULL AND object_id IS NOT NULL"""
    )


def _join_impressions(con: duckdb.DuckDBPyConnection, tally: Tally, progress: Progress) -> Iterator[pa.Table]:
    """Pages joined with their clicks, and only then unrolled: so the rows of a page stay together."""
    pages, distinct = con.execute("SELECT count(*), count(DISTINCT query_id) FROM queries").fetchall()[0]
    tally.sessions, tally.figures["repeated_queries"] = distinct, pages - distinct
    first = "SELECT * FROM queries QUALIFY row_number() OVER (PARTITION BY query_id ORDER BY rowid) = 1"
    queries = "queries" if pages == distinct else f"({first})"
    joined = con.sql(
        f"""WITH per_result AS (
                SELECT query_id, object_id, count(*) AS n, min(ordinal) AS ordinal FROM clicks GROUP BY ALL),
            per_page AS (
                SELECT query_id, list(object_id) AS objects, list(n) AS n, list(ordinal) AS ordinals
                FROM per_result GROUP BY ALL),
            pages AS (
                SELECT query_id, user_query, hits, objects, n, ordinals,
                       CASE WHEN len(list_distinct(hits)) = len(hits) THEN range(1, len(hits) + 1)
                       ELSE list_filter(range(1, len(hits) + 1), lambda i: list_position(hits, hits[i]) = i)
                       END AS places
                FROM {queries} LEFT JOIN per_page USING (query_id)),
            results AS (
                SELECT *, CASE WHEN len(places) = len(hits) THEN hits
                          ELSE list_transform(places, lambda i: hits[i]) END AS docs,
                       CASE WHEN objects IS NOT NULL
                       THEN list_transform(docs, lambda doc: list_position(objects, doc)) END AS clicked
                FROM pages)
            SELECT query_id AS session_id, user_query AS query_id, unnest(docs) AS doc_id,
                   unnest(places)::INTEGER AS position,
                   coalesce(unnest(list_transform(clicked, lambda i: n[i])), 0) AS n,
                   unnest(list_transform(clicked, lambda i: ordinals[i])) AS ordinal
            FROM results"""
    )
    matched = agree_0 = agree_1 = ordinals = rows = 0
    for batch in joined.to_arrow_reader(_ROWS):
        table = pa.Table.from_batches([batch])
        n, place = table["n"].to_numpy(), table["position"].to_numpy()
        given = table["ordinal"].is_valid().to_numpy()
        behind = place[given] - table["ordinal"].drop_null().to_numpy()
        click = (n > 0).astype(np.uint8)
        matched, tally.repeated_clicks = matched + int(n.sum()), tally.repeated_clicks + int((n - click).sum())
        agree_0, agree_1 = agree_0 + int((behind == 1).sum()), agree_1 + int((behind == 0).sum())
        ordinals, rows = ordinals + len(behind), rows + table.num_rows
        progress("writing", rows, 0)
        yield table.drop_columns(["n", "ordinal"]).append_column("click", pa.array(click))
    tally.orphans = tally.figures["click_events"] - matched
    if ordinals:
        tally.position_base = 0 if agree_0 > agree_1 else 1
        tally.figures |= {"clicks_with_position": ordinals, "positions_agree": max(agree_0, agree_1)}
