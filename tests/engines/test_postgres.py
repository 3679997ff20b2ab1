"""A log in Postgres: the same answer as from Parquet, read only, and no password anywhere.

The tests start a server of their own; they are skipped where Postgres is not installed.
"""

from __future__ import annotations

import os
import socket
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from certificates import made
from click.testing import CliRunner
from hypothesis import HealthCheck, Phase, example, given, settings
from postgres_server import ENCODED, PASSWORD, Server, running
from test_against_reference import ODD_INT64, ODD_TEXT, ODD_UINT64, Case, logs, plain

import elute
from conftest import CHAIN, Outcome, run_elute
from elute.cli import main
from elute.engines.duckdb.source import DuckDBSource
from elute.engines.fingerprint import postgres
from elute.engines.remote.postgres import transaction
from elute.engines.source_state import State

pytestmark = pytest.mark.xdist_group("postgres")


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    with running() as started:
        yield started


@pytest.fixture(autouse=True)
def _no_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("PGPASSWORD", raising=False)
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "none"))


def verdict(source: object, **roles: Any) -> dict[str, Any]:
    with elute.read_log(source, **roles) as log:
        return elute.check(log).to_dict()


@settings(
    max_examples=max(8, int(os.environ.get("ELUTE_FUZZ_LOGS", "0"))),
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(case=logs(nulls=True))
@example(case=plain([("q", text, text) for text in ODD_TEXT], "text"))
@example(case=plain([(1, number, number) for number in ODD_INT64], "int64"))
@example(case=plain([(1, number, number) for number in ODD_UINT64], "uint64"))
@example(case=plain([(1, None, 1), (1, 1, None)]))
@example(case=plain([(n % 7, n, n % 30) for n in range(90)], clicks="counts"))
def test_random_logs_alike(server: Server, case: Case) -> None:
    roles: dict[str, Any] = {"query": "query", "doc": "doc", "bias": case.bias}
    roles |= {name: of for name, of in (("item", case.item), ("impressions", case.impressions)) if of}
    table = case.table
    for number, column in enumerate(table.schema):  # Postgres has no unsigned integers
        if pa.types.is_uint64(column.type):
            table = table.set_column(number, column.name, table[column.name].cast(pa.decimal128(20, 0)))
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/log.parquet"
        pq.write_table(table, path)
        url, found = server.load(table), []
        for source, label in ((path, path), (url, server.url("log", None))):
            try:
                found.append(verdict(source, **roles))
            except elute.EluteError as error:
                found.append({"refused": str(error).replace(label, "LOG")})
    assert found[0] == found[1]


def test_yandex_alike(server: Server, data: Path) -> None:
    path = data / "yandex" / "test.parquet"
    url = server.load(pq.read_table(path), "yandex")
    for roles in ({"bias": ["query_id", "position"], "item": "doc_id"}, {"session": "session_id"}):
        assert verdict(url, **roles) == verdict(path, **roles)


def test_bytes_are_no_ids(server: Server) -> None:
    """No file that elute writes could name such an item."""
    server.run("DROP TABLE IF EXISTS nested", "CREATE TABLE nested (doc_id bytea, position int, click bool)")
    server.run(r"INSERT INTO nested VALUES ('\x00', 1, true)")
    with pytest.raises(elute.EluteError, match="doc_id"):
        elute.check(server.url("nested"), item="doc_id")


def test_types_as_ids(server: Server) -> None:
    """A column of every kind names the items; equal values are one item, different ones are not."""
    kinds = {
        "smallint": ("1", "2"), "integer": ("1", "2"), "bigint": ("9007199254740992", "9007199254740993"),
        "boolean": ("true", "false"), "real": ("1.5", "2.5"), "double precision": ("0.1", "0.2"),
        "numeric": ("1.0", "2"), "numeric(30,5)": ("9007199254740992.00001", "9007199254740992.00002"),
        "text": ("'a'", "'A'"), "varchar(5)": ("'a'", "'b'"), "char(5)": ("'a'", "'b'"), "name": ("'a'", "'b'"),
        "uuid": ("'00000000-0000-0000-0000-000000000001'", "'00000000-0000-0000-0000-000000000002'"),
        "date": ("'2024-01-01'", "'2024-01-02'"),
        "timestamp": ("'2024-01-01 00:00:00.000001'", "'2024-01-01 00:00:00.000002'"),
        "timestamptz": ("'2024-01-01 00:00:00+01'", "'2024-01-01 00:00:00+02'"),
        "jsonb": ("'{\"a\": 1}'", "'{\"a\": 2}'"), "integer[]": ("'{1}'", "'{2}'"),
        "inet": ("'10.0.0.1'", "'10.0.0.2'"), "interval": ("'1 day'", "'2 days'"),
        "colour": ("'red'", "'blue'"), "small": ("1", "2"),
    }  # fmt: skip
    server.run(
        "DROP TABLE IF EXISTS kinds",
        "DROP TYPE IF EXISTS colour",
        "DROP DOMAIN IF EXISTS small",
        "CREATE TYPE colour AS ENUM ('red', 'blue')",
        "CREATE DOMAIN small AS numeric(3, 0) CHECK (VALUE < 100)",
        f"CREATE TABLE kinds (position int, click bool, {', '.join(f'c{n} {kind}' for n, kind in enumerate(kinds))})",
    )
    rows = [f"({place}, {place == 1}, {', '.join(pair[which] for pair in kinds.values())})" for which, place in PLACES]
    again = ", ".join("1.00" if kind == "numeric" else "null" for kind in kinds)
    server.run(f"INSERT INTO kinds VALUES {', '.join(rows)}, (1, false, {again})")
    source = DuckDBSource(server.url("kinds"))
    counted = ", ".join(f"count(DISTINCT c{number}), count(c{number})" for number in range(len(kinds)))
    (found,) = source.connection.execute(f"SELECT {counted} FROM {source.relation}").fetchall()
    source.close()
    for number, kind in enumerate(kinds):
        assert (kind, *found[2 * number : 2 * number + 2]) == (kind, 2, len(PLACES) + (kind == "numeric"))
    with elute.read_log(server.url("kinds"), item=[f"c{number}" for number in range(len(kinds))]) as log:
        counts = log.counts()
    assert (counts.n_items, len(counts.factor), int(counts.impressions.sum())) == (2, 4, len(PLACES))


PLACES = ((0, 1), (0, 2), (1, 2), (1, 3), (0, 1))
"""Which of two values, and its position."""


def test_whole_numeric_is_an_integer(server: Server) -> None:
    """As schemas that came from other databases have them: places count as places."""
    numeric = "query_id::text, doc_id::text, position::numeric(18, 0), click::numeric(1, 0)"
    url = server.load(pa.table(CHAIN), "chain")
    server.run("DROP TABLE IF EXISTS moved", f"CREATE TABLE moved AS SELECT {numeric} FROM chain")
    assert verdict(server.url("moved")) == verdict(url) == verdict(pa.table(CHAIN))


def test_numbers_of_every_kind_are_counts(server: Server) -> None:
    server.run(
        "DROP TABLE IF EXISTS sums",
        "CREATE TABLE sums AS SELECT n AS query_id, 1 AS doc_id, p::numeric AS position, "
        "sum(3.0) AS shown, sum(1.00)::numeric(9, 2) AS click FROM generate_series(1, 4) n, generate_series(1, 2) p "
        "GROUP BY 1, 2, 3",
    )
    found = verdict(server.url("sums"), impressions="shown")
    assert (found["impressions"], found["clicks"], found["factors"]) == (24, 8, 2)


@pytest.mark.parametrize("verb", [["fit", "--out", "fit", "--allow-unidentified"], ["count", "--out", "counts"]])
def test_what_is_written_knows_no_password(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: list[str]
) -> None:
    url = server.load(pa.table(CHAIN), "chain")
    monkeypatch.chdir(tmp_path)
    written = ask(verb[0], url, *verb[1:])
    assert written.code == 0, written
    files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    together = b"".join([written.out.encode(), written.err.encode(), *files])
    assert server.url("chain", None).encode() in together
    assert not any(secret.encode() in together for secret in (PASSWORD, ENCODED))


def test_pages_know_no_password(server: Server, tmp_path: Path) -> None:
    url = server.load(pa.table(CHAIN), "chain")
    page = ask("check", url)
    assert page.code == 3
    assert f"elute repair '{server.url('chain', None)}'" in page.out
    report = ask("report", url, "--out", tmp_path / "report.html")
    assert report.code == 0, report
    with elute.read_log(url) as log:
        shown = repr(log) + repr(elute.check(log)) + elute.check(log).to_json()
    for text in (page.out, page.err, report.out, report.err, (tmp_path / "report.html").read_text(), shown):
        assert not any(secret in text for secret in (PASSWORD, ENCODED, "ss%2F", "ss/w"))


def ask(*arguments: object) -> Outcome:
    """The command line in this process."""
    done = CliRunner().invoke(main, [str(argument) for argument in arguments])
    return Outcome(done.exit_code, done.stdout, done.stderr)


@pytest.mark.parametrize("way", ["PGPASSWORD", "PGPASSFILE", "PGSERVICEFILE"])
def test_libpq_finds_the_password(server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, way: str) -> None:
    server.load(pa.table(CHAIN), "chain")
    url = server.url("chain", None)
    file = tmp_path / "secret"
    if way == "PGPASSWORD":
        monkeypatch.setenv(way, PASSWORD)
    elif way == "PGPASSFILE":
        file.write_text(f"127.0.0.1:{server.port}:*:owner:{PASSWORD}\n", encoding="utf-8")
        file.chmod(0o600)
        monkeypatch.setenv(way, str(file))
    else:
        url = "postgresql://?service=clicks#chain"
        lines = (
            "[clicks]",
            "host=127.0.0.1",
            f"port={server.port}",
            "user=owner",
            f"password={PASSWORD}",
            "dbname=postgres",
        )
        file.write_text("\n".join(lines), encoding="utf-8")
        monkeypatch.setenv(way, str(file))
    assert verdict(url)["impressions"] == 6


def test_read_only(server: Server) -> None:
    """Not even a function that a view calls may write."""
    server.load(pa.table(CHAIN), "chain")
    server.run(
        "CREATE TABLE IF NOT EXISTS visits (at timestamp)",
        "CREATE OR REPLACE FUNCTION visit() RETURNS int LANGUAGE sql VOLATILE AS "
        "'INSERT INTO visits VALUES (now()); SELECT 1'",
        "CREATE OR REPLACE VIEW spying AS SELECT *, visit() AS visited FROM chain",
    )
    with pytest.raises(elute.EluteError, match="spying: cannot execute INSERT in a read-only transaction"):
        verdict(server.url("spying"))
    with transaction(server.url("chain")) as (cursor, _):
        cursor.execute("SELECT current_setting('transaction_read_only')")
        assert cursor.fetchone() == ("on",)
        cursor.execute("SELECT current_setting('transaction_isolation')")
        assert cursor.fetchone() == ("repeatable read",)
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM visits")
        assert cursor.fetchone() == (0,)


def test_a_table_without_prepare_can_be_scanned_again_and_left_early(server: Server) -> None:
    """As features are: more than once, whole or in part."""
    source = DuckDBSource(server.load(pa.table(CHAIN), "chain"))
    for query, answer in {"count(*)": 6, "sum(click)": 3, "max(doc_id)": "d"}.items():
        assert source.connection.execute(f"SELECT {query} FROM {source.relation}").fetchall() == [(answer,)]
    assert len(source.connection.execute(f"SELECT * FROM {source.relation} LIMIT 1").fetchall()) == 1
    assert source.read_table().to_pydict() == CHAIN
    with elute.read_log(server.url("chain"), item="doc_id") as log:
        means = log.engine.compute_means(("query_id",), "click").sort_by("query_id")
    assert means.to_pydict() == {"query_id": ["q1", "q2", "q3"], "click": [pytest.approx(1 / 3), 1.0, 0.0]}


def test_names_are_quoted(server: Server) -> None:
    server.run('CREATE SCHEMA IF NOT EXISTS "Odd ""name"""', 'DROP TABLE IF EXISTS "Odd ""name"""."Log; --"')
    server.run('CREATE TABLE "Odd ""name"""."Log; --" AS SELECT 1 AS "Query", 2 AS doc_id, 3 AS "a""b", true AS click')
    found = verdict(server.url('Odd "name".Log; --'), query="Query", bias='a"b')
    assert found["impressions"] == 1


def test_what_goes_wrong_is_said_in_one_line(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = server.load(pa.table(CHAIN), "chain")
    server.run("DROP TABLE IF EXISTS secret", "CREATE TABLE secret AS SELECT 1 AS n", "DROP ROLE IF EXISTS guest")
    server.run("CREATE ROLE guest LOGIN PASSWORD 'guest'", "CREATE TABLE IF NOT EXISTS hollow ()")
    public = server.url("chain", None)
    port, host = str(server.port), "127.0.0.1"
    cases = {
        server.url(
            "chain", "wr0ng"
        ): f'cannot read {public}: password authentication failed for user "owner"; give it in',
        server.url("chain", None): f"cannot read {public}: .*no password supplied; give it in PGPASSWORD or ~/.pgpass",
        server.url("public.lost"): 'relation "public.lost" does not exist; write #schema.table',
        server.url("secret", "guest", "guest"): "permission denied for table secret; GRANT SELECT",
        url.replace(port, "9"): "Connection refused; start the server, or correct host and port",
        url.replace(host, "nowhere.invalid"): 'could not translate host name "nowhere.invalid"',
        url.replace("/postgres#", "/lost#"): 'database "lost" does not exist',
        url.removesuffix("#chain"): "names no table; write postgres://owner@127.0.0.1:\\d+/postgres#schema.table",
        url.replace(ENCODED, "wr0ng/x"): "cannot tell user, host and table apart",
        url.replace(ENCODED, "wr0ng%zz"): 'invalid percent-encoded token: "…"',
        server.url("hollow"): "has no columns",
    }
    for source, words in cases.items():
        with pytest.raises(elute.EluteError, match=words) as refused:
            elute.read_log(source)
        assert not any(secret in str(refused.value) for secret in (PASSWORD, ENCODED, "wr0ng", ":guest"))
        assert "\n" not in str(refused.value)
    with pytest.raises(elute.EluteError, match=r"postgres#chain: no column 'rank'"):
        elute.read_log(url, bias="rank")
    with pytest.raises(elute.EluteError, match="pass one Postgres table at a time"):
        elute.read_log([url, url])
    monkeypatch.setitem(sys.modules, "adbc_driver_postgresql", None)
    with pytest.raises(elute.EluteError, match=r'pip install "elute\[postgres\]"'):
        elute.read_log(url)


def test_a_server_that_goes_away_leaves_nothing(server: Server, tmp_path: Path) -> None:
    """The backend ends its own connection in the middle of the table."""
    server.load(pa.table(CHAIN), "chain")
    server.run(
        "CREATE OR REPLACE FUNCTION gone(n bigint) RETURNS bigint LANGUAGE sql VOLATILE AS "
        "'SELECT CASE WHEN n = 30000 AND pg_terminate_backend(pg_backend_pid()) THEN 0 ELSE n % 10 END'",
        "CREATE OR REPLACE VIEW dying AS SELECT n AS query_id, n AS doc_id, gone(n) AS position, 0 AS click "
        "FROM generate_series(1::bigint, 60000) n",
    )
    spill, out = tmp_path / "spill", tmp_path / "counts"
    spill.mkdir()
    done = run_elute("count", server.url("dying"), "--spill", spill, "--out", out)
    assert (done.code, done.out) == (1, ""), done
    assert done.err.replace("elute: opening the log\n", "").count("\n") == 1, done  # progress, on a busy machine
    assert f"cannot read {server.url('dying', None)}: terminating connection due to administrator command" in done.err
    assert not out.exists()
    assert list(spill.iterdir()) == []


def refused(counts: Path) -> bool:
    """Whether the counts are refused since the table has changed, in one line without a secret."""
    asked = ask("check", counts, "--json")
    if asked.code in (0, 3):
        return False
    assert (asked.code, asked.out, asked.err.count("\n")) == (1, "", 1), asked
    assert "has changed since it was counted: count postgres://" in asked.err
    assert f"again with 'elute count' (--out {counts})" in asked.err
    assert not any(secret in asked.err for secret in (PASSWORD, ENCODED))
    return True


FLUSH = "SELECT pg_stat_force_next_flush()"
"""Statistics are else told to others after up to a second, or ten where the writer idles."""

CHANGES = {
    "insert": "INSERT INTO days SELECT * FROM days LIMIT 1",
    "update": "UPDATE days SET click = 1 - click WHERE position = 5",
    "delete": "DELETE FROM days WHERE position = 5",
    "truncate": "TRUNCATE days",
    "rewrite": "ALTER TABLE days ALTER position TYPE text",
    "a table made anew": "CREATE TABLE new AS TABLE days; DROP TABLE days CASCADE; ALTER TABLE new RENAME TO days",
    "nothing": "SELECT * FROM days; ANALYZE days; INSERT INTO elsewhere VALUES (1)",
}


def test_counts_are_refused_when_the_table_has_changed(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, counts = server.load(pa.table(CHAIN), "days"), tmp_path / "counts"
    server.run(FLUSH)
    assert ask("count", url, "--out", counts).code == 0
    server.run(CHANGES["update"], FLUSH)
    assert not refused(counts)  # out of reach without a password, so taken as they are
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    assert refused(counts)
    assert ask("count", url, "--out", counts).code == 0
    assert not refused(counts)


@pytest.mark.parametrize("kind", CHANGES)
def test_what_changes_a_table(server: Server, kind: str) -> None:
    url = server.load(pa.table(CHAIN), "days")
    server.run("CREATE TABLE IF NOT EXISTS elsewhere (n int)", "DROP TABLE IF EXISTS new", FLUSH)
    before = postgres.table_state(url)
    assert before is not None
    assert before["table"] == server.url("days", None)
    server.run(*CHANGES[kind].split("; "), FLUSH)
    assert (postgres.table_state(url) != before) is (kind != "nothing")


def test_partitions_and_views_change_with_what_is_below(server: Server) -> None:
    server.load(pa.table(CHAIN), "days")
    server.run(
        "DROP TABLE IF EXISTS parted CASCADE",
        "CREATE TABLE parted (LIKE days) PARTITION BY RANGE (position)",
        "CREATE TABLE low PARTITION OF parted FOR VALUES FROM (0) TO (4)",
        "CREATE TABLE high PARTITION OF parted FOR VALUES FROM (4) TO (9)",
        "INSERT INTO parted SELECT * FROM days",
        "CREATE OR REPLACE VIEW seen AS SELECT * FROM parted WHERE position < 9",
        "CREATE MATERIALIZED VIEW kept AS SELECT * FROM seen",
        FLUSH,
    )
    names = ("parted", "seen", "kept")
    known: dict[str, State | None] = {}

    def changed() -> list[str]:
        """Since this was asked before."""
        before = dict(known)
        known.update({name: postgres.table_state(server.url(name)) for name in names})
        return [name for name in names if known[name] != before.get(name)]

    changed()
    assert changed() == []
    server.run("DELETE FROM high", FLUSH)
    assert changed() == ["parted", "seen"]
    server.run("REFRESH MATERIALIZED VIEW kept", FLUSH)
    assert changed() == ["kept"]
    server.run("CREATE OR REPLACE VIEW seen AS SELECT * FROM parted WHERE position < 3", FLUSH)
    assert changed() == ["seen"]
    server.run("CREATE TABLE higher PARTITION OF parted FOR VALUES FROM (9) TO (20)", FLUSH)
    assert changed() == ["parted", "seen"]


def test_what_cannot_be_asked_is_not_kept(server: Server, tmp_path: Path) -> None:
    """A foreign table's rows are somebody else's."""
    server.run(
        "CREATE EXTENSION IF NOT EXISTS file_fdw",
        "DROP SERVER IF EXISTS files CASCADE",
        "CREATE SERVER files FOREIGN DATA WRAPPER file_fdw",
        "CREATE FOREIGN TABLE afar (query_id int, doc_id int, position int, click int) SERVER files "
        "OPTIONS (program 'echo 1,1,1,0', format 'csv')",
    )
    assert postgres.table_state(server.url("afar")) is None
    assert ask("count", server.url("afar"), "--out", tmp_path / "counts").code == 0
    assert not refused(tmp_path / "counts")


def test_a_server_that_wants_the_password_itself_is_not_given_it(server: Server, tmp_path: Path) -> None:
    """Whom a folder of counts names may be anybody."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        heard: list[bytes] = []

        def greedy() -> None:
            client, _ = listening.accept()
            with client:
                client.recv(8)  # asks for TLS
                client.sendall(b"N")
                client.recv(4096)
                client.sendall(b"R" + (8).to_bytes(4) + (3).to_bytes(4))  # send me the password in clear
                heard.append(client.recv(4096))

        thread = threading.Thread(target=greedy)
        thread.start()
        name = f"postgres://me:{ENCODED}@127.0.0.1:{listening.getsockname()[1]}/db#t"
        assert postgres.current_table_state(name) is None
        thread.join()
    assert heard == [b""]


def test_a_certificate_is_verified(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = server.load(pa.table(CHAIN), "chain")
    strict = url.replace("#", "?sslmode=verify-full#")
    monkeypatch.setenv("HOME", str(tmp_path))
    for where, authority in (("", None), ("&sslrootcert={}", made(tmp_path).authority)):
        failed = ask("check", strict.replace("#", where.format(authority) + "#"))
        assert (failed.code, failed.out, failed.err.count("\n")) == (1, "", 1), failed
        assert "certificate" in failed.err
        assert "set sslrootcert= or PGSSLROOTCERT to the certificate of the authority that signed it" in failed.err
        assert not any(secret in failed.err for secret in (PASSWORD, ENCODED))
    monkeypatch.setenv("PGSSLROOTCERT", str(server.certificates.authority))
    assert verdict(strict) == verdict(url)
    with pytest.raises(elute.EluteError, match=r"does not match host name .*; name the server as its certificate does"):
        verdict(strict.replace("127.0.0.1", "127.0.0.2"))
