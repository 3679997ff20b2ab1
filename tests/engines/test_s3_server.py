"""S3 as a server has it that others wrote: moto's, where it is installed (`pip install 'moto[server]'`)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from conftest import call_elute
from elute.simulation import toy

moto_server = pytest.importorskip("moto.server", reason="moto[server] is not installed")
boto3 = pytest.importorskip("boto3", reason="boto3 is not installed")


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    server = moto_server.ThreadedMotoServer("127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    address = f"http://{host}:{port}"
    for name, value in (
        ("AWS_ENDPOINT_URL", address),
        ("AWS_ACCESS_KEY_ID", "key"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
        ("AWS_REGION", "us-east-1"),
        ("AWS_DEFAULT_REGION", "us-east-1"),
    ):
        monkeypatch.setenv(name, value)
    boto3.client("s3").create_bucket(Bucket="logs")
    yield "logs"
    server.stop()


def test_days_in_a_bucket_are_those_on_disk(bucket: str, tmp_path: Path) -> None:
    paths = [tmp_path / f"part [{day}].parquet" for day in range(2)]
    for day, path in enumerate(paths):
        pq.write_table(toy.simulate(300, 20, broken=False, seed=day), path)
        boto3.client("s3").upload_file(str(path), bucket, f"day={day}/{path.name}")
    asked = ("check", "--json")
    whole = call_elute(*asked, *map(str, paths)).json
    assert call_elute(*asked, f"s3://{bucket}/**/*.parquet").json == whole
    for day in range(2):
        words = "count", f"s3://{bucket}/day={day}/*.parquet", "--append", "--key", f"day={day}"
        call_elute(*words, "--out", str(tmp_path / "parts"))
    assert call_elute(*asked, str(tmp_path / "parts")).json["cells"] == whole["cells"]
    assert call_elute("check", f"s3://{bucket}/none.parquet").code == 1
    assert call_elute("check", f"s3://{bucket}/day=0/{paths[0].name}").code in (0, 3)
