"""Parquet behind https and in S3 behind TLS: read where the certificate's authority is known, refused where not."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from certificates import Certificates, made
from click.testing import CliRunner
from file_server import ACCESS, SECRET, Served, serving

import elute
from conftest import CHAIN, Outcome, run_elute
from elute.cli import main


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return made(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(params=["https", "s3"])
def served(
    request: pytest.FixtureRequest, signed: Certificates, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Served]:
    with serving(s3=request.param == "s3", certificates=signed) as server:
        sink = io.BytesIO()
        pq.write_table(pa.table(CHAIN), sink)
        server.files["/lake/log.parquet"] = sink.getvalue()
        for name in ("AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_ENDPOINT_URL_S3", "SSL_CERT_FILE", "ELUTE_BEARER_TOKEN"):
            monkeypatch.delenv(name, raising=False)
        keys = {"AWS_ACCESS_KEY_ID": ACCESS, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": "eu-central-1"}
        for name, value in {**keys, "AWS_ENDPOINT_URL": server.url, "AWS_EC2_METADATA_DISABLED": "true"}.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("NETRC", str(tmp_path / "none"))
        yield server


def in_process(*arguments: str) -> Outcome:
    done = CliRunner().invoke(main, arguments)
    return Outcome(done.exit_code, done.stdout, done.stderr)


def test_the_authority_decides(
    served: Served, signed: Certificates, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    over_https = "https" in request.node.name
    source = f"{served.url}/lake/log.parquet" if over_https else "s3://lake/log.parquet"
    failed = in_process("check", source)
    assert (failed.code, failed.out) == (1, ""), failed
    words = (
        "the server's certificate is not trusted (unable to get local issuer certificate); "
        if over_https
        else "the certificate at AWS_ENDPOINT_URL is not trusted; check the address, or "
    )
    step = "set SSL_CERT_FILE to the certificate of the authority that signed it"
    assert failed.err.replace("elute: opening the log\n", "") == f"elute: cannot read {source}: {words}{step}\n"
    assert served.seen == []  # no credentials went to it
    monkeypatch.setenv("SSL_CERT_FILE", str(signed.authority))
    ask = in_process if over_https else run_elute  # the AWS library looks at SSL_CERT_FILE once in a process
    assert ask("check", source, "--json").json["impressions"] == 6


def test_a_certificate_for_another_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = made(tmp_path, "DNS:elsewhere.example")
    monkeypatch.setenv("SSL_CERT_FILE", str(other.authority))
    with (
        serving(certificates=other) as served,
        pytest.raises(elute.EluteError, match=r"is not trusted \(IP address mismatch.*\); check the address, or have"),
    ):
        elute.read_log(f"{served.url}/log.parquet")
