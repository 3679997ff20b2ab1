"""A log in Postgres: the same answer as from Parquet, read only, and no password anywhere.

The tests start a server of their own; they are skipped where Postgres is not installed.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from adbc_driver_postgresql import dbapi
from click.testing import CliRunner
from hypothesis import HealthCheck, Phase, example, given, settings

import elute
from conftest import CHAIN, Outcome, run_elute
from elute.cli import main
from elute.engines.postgres import PostgresTable
from elute.engines.sources import Source

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "identify"))
from test_against_reference import ODD_INT64, ODD_TEXT, ODD_UINT64, Case, logs, plain

pytestmark = pytest.mark.xdist_group("postgres")

PASSWORD = "pä ss/w@rd#1"  # noqa: S105
ENCODED = "p%C3%A4%20ss%2Fw%40rd%231"


@dataclass
class Server:
    """Postgres on a free port of this machine."""

    port: int
    folder: Path

    def url(self, table: str, password: str | None = ENCODED, user: str = "owner") -> str:
        login = user if password is None else f"{user}:{password}"
        return f"postgres://{login}@127.0.0.1:{self.port}/postgres#{table}"

    def run(self, *statements: str) -> None:
        with self.connect() as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def connect(self) -> Any:
        return dbapi.connect(self.url("").removesuffix("#"), autocommit=True)

    def load(self, table: pa.Table, name: str = "log") -> str:
        """An Arrow table as a table of this name; its URL."""
        self.run(f"DROP TABLE IF EXISTS {name} CASCADE")
        arrow, numeric = table, []
        for number, column in enumerate(table.schema):
            if pa.types.is_dictionary(column.type) or pa.types.is_decimal(column.type):
                arrow = arrow.set_column(number, column.name, arrow[column.name].cast(pa.string()))
                numeric += [column] if pa.types.is_decimal(column.type) else []
        with self.connect() as connection, connection.cursor() as cursor:
            cursor.adbc_ingest(name, arrow)
            for column in numeric:
                kind = f"numeric({column.type.precision}, {column.type.scale})"
                cursor.execute(f'ALTER TABLE {name} ALTER "{column.name}" TYPE {kind} USING "{column.name}"::{kind}')
        return self.url(name)


def binary(name: str) -> str | None:
    """A server's program, which Debian keeps out of the path."""
    found = sorted(str(path) for path in Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return shutil.which(name) or (found[-1] if found else None)


def unprivileged(folder: Path) -> list[str]:
    """Postgres refuses to run as root: the words before a command that make it another user's."""
    if os.geteuid() != 0:
        return []
    if not shutil.which("setpriv"):
        pytest.skip("Postgres does not run as root, and there is no setpriv to run it as somebody else")
    shutil.chown(folder, "postgres", "postgres")
    return ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    initdb, postgres = binary("initdb"), binary("pg_ctl")
    if initdb is None or postgres is None:
        pytest.skip("Postgres is not installed (Debian: apt install postgresql)")
    folder = Path(tempfile.mkdtemp(prefix="elute-postgres-"))
    become = unprivileged(folder)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    (folder / "password").write_text(PASSWORD + "\n")
    (folder / "password").chmod(0o644)
    data = str(folder / "data")

    def run(*command: str) -> None:
        subprocess.run([*become, *command], check=True, stdout=subprocess.DEVNULL, cwd=folder)

    secret = f"--pwfile={folder / 'password'}"
    run(initdb, "-D", data, "-U", "owner", "--auth=scram-sha-256", secret, "--no-sync", "-E", "UTF8", "--locale=C")
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off -c shared_buffers=16MB"
    run(postgres, "-D", data, "-w", "-l", str(folder / "log"), "-o", options, "start")
    try:
        yield Server(port, folder)
    finally:
        run(postgres, "-D", data, "-w", "-m", "immediate", "stop")
        shutil.rmtree(folder)


@pytest.fixture(autouse=True)
def _no_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("PGPASSWORD", raising=False)
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "none"))


def verdict(source: object, **roles: Any) -> dict[str, Any]:
    with elute.read_log(source, **roles) as log:
        return elute.check(log).to_dict()


@settings(
    max_examples=8, deadline=None, phases=[Phase.explicit, Phase.generate], suppress_health_check=list(HealthCheck)
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
        "bytea": (r"'\x00'", r"'\x01'"), "jsonb": ("'{\"a\": 1}'", "'{\"a\": 2}'"), "integer[]": ("'{1}'", "'{2}'"),
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
    source = Source(server.url("kinds"))
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
    texts = [written.out, written.err, *(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())]
    together = b"".join(text.encode() if isinstance(text, str) else text for text in texts)
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
    with PostgresTable(server.url("chain"))._cursor() as cursor:
        cursor.execute("SELECT current_setting('transaction_read_only')")
        assert cursor.fetchone() == ("on",)
        cursor.execute("SELECT current_setting('transaction_isolation')")
        assert cursor.fetchone() == ("repeatable read",)
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM visits")
        assert cursor.fetchone() == (0,)


def test_a_table_without_prepare_can_be_scanned_again_and_left_early(server: Server) -> None:
    """As features are: more than once, whole or in part."""
    source = Source(server.load(pa.table(CHAIN), "chain"))
    for query, answer in {"count(*)": 6, "sum(click)": 3, "max(doc_id)": "d"}.items():
        assert source.connection.execute(f"SELECT {query} FROM {source.relation}").fetchall() == [(answer,)]
    assert len(source.connection.execute(f"SELECT * FROM {source.relation} LIMIT 1").fetchall()) == 1
    assert source.table().to_pydict() == CHAIN
    with elute.read_log(server.url("chain"), item="doc_id") as log:
        means = log.engine.means(("query_id",), "click").sort_by("query_id")
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
        url.replace(port, "9"): "Connection refused; start the server, or mend host and port",
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
    with pytest.raises(elute.EluteError, match="one Postgres table at a time"):
        elute.read_log([url, url])
    monkeypatch.setitem(sys.modules, "adbc_driver_postgresql", None)
    with pytest.raises(elute.EluteError, match=r"pip install 'elute\[postgres\]'"):
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
