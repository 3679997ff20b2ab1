"""Whether a table in Postgres is still what it was, without reading it.

Asked of the catalogue and of the server's own statistics, for the table, its partitions, and what a view reads:

- which relations they are, the files they are stored in and how views are defined: a table made anew, truncated or
  rewritten has another file;
- their bytes, which grow as rows are added;
- the rows ever inserted, updated and deleted, as the server has counted them.

max(xmin) or a count of the rows would need a scan of the table, which is what counts are there to save. What this does
not see is in docs/sources.md.
"""

from __future__ import annotations

from elute._util.urls import to_public_address
from elute.engines.remote import postgres
from elute.engines.source_state import SECONDS, State
from elute.engines.sql import quoting
from elute.errors import EluteError

_NEVER = "!password,!md5"
"""Ways to log in that would hand PGPASSWORD to whoever answers at the address that a folder of counts names."""

_ASK = """
    WITH RECURSIVE
    link AS (
        SELECT inhparent AS above, inhrelid AS below FROM pg_inherits
        UNION ALL
        SELECT rule.ev_class, used.refobjid
        FROM pg_rewrite AS rule
        JOIN pg_class AS reader ON reader.oid = rule.ev_class AND reader.relkind = 'v'
        JOIN pg_depend AS used ON used.classid = 'pg_rewrite'::regclass AND used.objid = rule.oid
        WHERE used.refclassid = 'pg_class'::regclass
    ),
    part (oid) AS (
        SELECT {table}::regclass::oid
        UNION
        SELECT link.below FROM part JOIN link ON link.above = part.oid
    )
    SELECT
        bool_or(own.relkind = 'f'),
        sum(coalesce(pg_relation_size(own.oid), 0))::bigint,
        (
            sum(pg_stat_get_tuples_inserted(own.oid)) + sum(pg_stat_get_tuples_updated(own.oid))
            + sum(pg_stat_get_tuples_deleted(own.oid))
        )::bigint,
        md5(string_agg(concat_ws(' ', own.oid, pg_relation_filenode(own.oid), md5(rule.ev_action::text)), ','
            ORDER BY own.oid))
    FROM part
    JOIN pg_class AS own USING (oid)
    LEFT JOIN pg_rewrite AS rule ON rule.ev_class = own.oid AND rule.ev_type = '1'
"""


def table_state(url: str) -> State | None:
    """The state of a table or view; nothing where it cannot be told: of a foreign table, or without an answer."""
    try:
        with postgres.transaction(url) as (cursor, table):
            cursor.execute(f"SET LOCAL statement_timeout = '{SECONDS}s'")
            cursor.execute(_ASK.format(table=quoting.text(table)))
            foreign, size, written, stored = cursor.fetchone()
    except EluteError:
        return None
    return None if foreign else {"table": to_public_address(url), "bytes": size, "written": written, "stored": stored}


def current_table_state(name: str) -> State | None:
    """The state of a table that a folder of counts names: soon or not at all, whatever the address asks for (of two
    values of a parameter, libpq takes the last)."""
    server, mark, table = name.partition("#")
    careful = f"require_auth={_NEVER}&connect_timeout={SECONDS}"
    now = table_state(f"{server}{'&' if '?' in server else '?'}{careful}{mark}{table}")
    return now and {**now, "table": name}
