"""Postgres for tests: a server of their own, where Debian's package or another has installed one."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from adbc_driver_postgresql import dbapi
from certificates import Certificates, made

PASSWORD = "pä ss/w@rd#1"  # noqa: S105
ENCODED = "p%C3%A4%20ss%2Fw%40rd%231"


@dataclass
class Server:
    """Postgres on a free port of this machine."""

    port: int
    certificates: Certificates

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


@contextmanager
def running() -> Iterator[Server]:
    """A server of its own on a free port, which also speaks TLS; skips where Postgres is not installed."""
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
    data, signed = str(folder / "data"), made(folder)
    signed.key.chmod(0o600)
    if become:
        shutil.chown(signed.key, "postgres")

    def run(*command: str) -> None:
        subprocess.run([*become, *command], check=True, stdout=subprocess.DEVNULL, cwd=folder)

    secret = f"--pwfile={folder / 'password'}"
    run(initdb, "-D", data, "-U", "owner", "--auth=scram-sha-256", secret, "--no-sync", "-E", "UTF8", "--locale=C")
    options = f"-p {port} -c listen_addresses=127.0.0.1,127.0.0.2 -c unix_socket_directories= "
    options += "-c fsync=off -c shared_buffers=16MB"
    options += f" -c ssl=on -c ssl_cert_file={signed.certificate} -c ssl_key_file={signed.key}"
    run(postgres, "-D", data, "-w", "-l", str(folder / "log"), "-o", options, "start")
    try:
        yield Server(port, signed)
    finally:
        run(postgres, "-D", data, "-w", "-m", "immediate", "stop")
        shutil.rmtree(folder)
