"""`adbc://`: the statement runs where the log is, and what is said is what is said of the log itself."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from postgres_server import ENCODED, PASSWORD, Server, running

import elute
from elute._util.urls import hide_secrets, scrub_values
from elute.cli import main
from elute.simulation import toy

pytest.importorskip("sqlglot")
pytest.importorskip("adbc_driver_sqlite")


@pytest.fixture(scope="module")
def table() -> pa.Table:
    """A few rows have no document."""
    log = toy.simulate(sessions=400, queries=30, broken=True, seed=3)
    docs = [None if at % 97 == 5 else doc for at, doc in enumerate(log["doc_id"].to_pylist())]
    return log.set_column(log.column_names.index("doc_id"), "doc_id", pa.array(docs))


@pytest.fixture(scope="module")
def log(table: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("log") / "log.parquet"
    pq.write_table(table, path)
    return path


@pytest.fixture(scope="module")
def shop(table: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The same log in SQLite."""
    path = tmp_path_factory.mktemp("a shop") / "50% off.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        names = ", ".join(f'"{name}"' for name in table.column_names)
        connection.execute(f"CREATE TABLE clicks ({names})")
        connection.executemany(
            f"INSERT INTO clicks VALUES ({', '.join('?' * table.num_columns)})",
            [*zip(*table.to_pydict().values(), strict=True)],
        )
        connection.commit()
    return f"adbc://sqlite?uri={quote(str(path))}#clicks"


@pytest.mark.parametrize(
    "options", [{}, {"where": "position < 3"}, {"max_position": 2, "min_factor_impressions": 5}, {"item": "doc_id"}]
)
def test_as_the_log_itself(shop: str, log: Path, options: dict[str, Any]) -> None:
    assert elute.check(shop, **options).to_dict() == elute.check(log, **options).to_dict()


def test_with_sessions_as_counts_of_the_log(shop: str, log: Path, tmp_path: Path) -> None:
    """Which clicks are of one session no counts tell."""
    elute.count(log, tmp_path / "counts", session="session_id")
    found, expected = elute.check(shop, session="session_id"), elute.check(tmp_path / "counts")
    assert found.to_dict() == expected.to_dict()


def test_from_the_command_line_into_a_folder_that_grows(shop: str, log: Path, tmp_path: Path) -> None:
    out = tmp_path / "daily"
    for key in ("day=1", "day=2"):
        run = CliRunner().invoke(main, ["count", shop, "--append", "--key", key, "--out", str(out)])
        assert run.exit_code == 0, run.output
    assert elute.check(out, last=1).to_dict() == elute.check(log).to_dict()


def test_a_fit_of_it_is_that_of_the_log(shop: str, log: Path) -> None:
    found, expected = (elute.fit(source, allow_unidentified=True).propensities for source in (shop, log))
    assert found is not None and expected is not None
    for name in ("position", "propensity", "log_se"):
        np.testing.assert_allclose(found[name].to_numpy(), expected[name].to_numpy(), rtol=1e-9)


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("adbc://sqlite?uri=nowhere.sqlite#clicks", "there is no such file"),
        ("adbc://sqlite#clicks", "there is no such file"),
        ("adbc://oracle?uri=x#clicks", "no driver 'oracle'; known are bigquery, flightsql, postgresql"),
        ("adbc://sqlite?uri=x", "write adbc://DRIVER?uri=ADDRESS#schema.table"),
        ("adbc://sqlite?x#clicks", "is not NAME=VALUE"),
        ("adbc://snowflake?password=env:ELUTE_NOT_SET#clicks", "the environment has no ELUTE_NOT_SET"),
        ("adbc://flightsql?uri=grpc://h&password=geheim#clicks", "add &dialect=NAME"),
        ("adbc://flightsql?uri=grpc://h&password=geheim&dialect=cobol#clicks", "`dialect=` is 'cobol'; give bigquery"),
        ("adbc://bigquery?password=geheim#clicks", 'pip install "elute[adbc]" adbc-driver-bigquery'),
    ],
)
def test_one_line_says_what_is_wrong(address: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(elute.EluteError) as refused:
        elute.check(address)
    assert said in str(refused.value) and "geheim" not in str(refused.value) and "\n" not in str(refused.value)
    assert not list(tmp_path.iterdir())


def test_what_the_warehouse_says_is_handed_on(shop: str) -> None:
    with pytest.raises(elute.EluteError, match=r"cannot count adbc://sqlite\?…#nothing: .*no such table: nothing"):
        elute.check(shop.replace("#clicks", "#nothing"))
    with pytest.raises(elute.EluteError, match="no rows: the log has none, or none passes the filters"):
        elute.check(shop, where="position > 99")


def test_a_secret_is_told_to_nobody() -> None:
    address = "adbc://snowflake?uri=me:geheim@account/db&password=geheim&adbc.token=env:X#shop.clicks"
    assert hide_secrets(address) == "adbc://snowflake?…#shop.clicks"
    assert hide_secrets("adbc://postgresql?uri=postgres://me:ge#heim@host/db") == "adbc://postgresql?…#…"
    options = {"uri": "postgres://me:geheim@host/db", "password": "verborgen", "auth_token": "xyz"}
    said = scrub_values("no geheim for postgres://me:geheim@host/db, verborgen, xyz", options)
    assert not any(word in said for word in ("geheim", "verborgen", "xyz"))


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running() as started:
        yield started


def test_in_postgres_and_no_password_in_any_file(
    server: Server, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, _, _ = server.load(pq.read_table(log), "clicks").partition("#")
    monkeypatch.setenv("SHOP_URI", url)
    for uri in (quote(url), "env:SHOP_URI"):
        address = f"adbc://postgresql?uri={uri}#clicks"
        assert elute.check(address).to_dict() == elute.check(log).to_dict()
        elute.count(address, tmp_path / "counts")
        elute.fit(address, allow_unidentified=True).save(tmp_path / "fit")
        for path in tmp_path.rglob("*"):
            kept = path.read_bytes() if path.is_file() else b""
            assert PASSWORD.encode() not in kept and ENCODED.encode() not in kept
    with pytest.raises(elute.EluteError) as refused:
        elute.check(f"adbc://postgresql?uri={quote(url.replace(ENCODED, 'wrong-one'))}#clicks")
    assert "wrong-one" not in str(refused.value)
