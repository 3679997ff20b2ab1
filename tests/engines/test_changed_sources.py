"""Counts of a log that is elsewhere: refused once it has changed, taken as they are where it is out of reach.

Postgres has its own in test_postgres.py, files on disk in tests/cli/test_count.py.
"""

from __future__ import annotations

import base64
import io
import json
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from file_server import ACCESS, SECRET, Served, serving, with_keys

import elute
from conftest import CHAIN, Outcome
from elute._util.urls import to_public_address
from elute.cli import main
from elute.engines.fingerprint import compare as state
from elute.engines.source_state import State, file_state

PASSWORD = "s3cr/et@#"  # noqa: S105
ENCODED = "s3cr%2Fet%40%23"
BASIC = "Basic " + base64.b64encode(f"me:{PASSWORD}".encode()).decode()


@pytest.fixture
def http(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Served]:
    """A server of one file; the user's credentials for it are in a netrc."""
    monkeypatch.delenv("ELUTE_BEARER_TOKEN", raising=False)
    (tmp_path / "netrc").write_text(f"machine 127.0.0.1 login me password {PASSWORD}\n")
    (tmp_path / "netrc").chmod(0o600)
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    with serving() as served:
        served.files["/log.parquet"] = parquet(CHAIN["click"])
        served.authorization = BASIC
        yield served


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """A server of two files; the user's keys for it are in the environment."""
    with serving(s3=True) as served:
        with_keys(monkeypatch, served)
        served.files |= {f"/lake/{name}.parquet": parquet(CHAIN["click"]) for name in "ab"}
        yield served


def parquet(clicks: list[int]) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({**CHAIN, "click": clicks}), sink, compression="none")
    return sink.getvalue()


OTHER = parquet([1 - click for click in CHAIN["click"]])
"""As long as the other file."""


def ask(*arguments: object) -> Outcome:
    """The command line in this process."""
    done = CliRunner().invoke(main, [str(argument) for argument in arguments])
    return Outcome(done.exit_code, done.stdout, done.stderr)


def counted(source: str, out: Path) -> Path:
    assert ask("count", source, "--out", out).code == 0
    return out


def taken(counts: Path) -> bool:
    """Whether the counts are taken; where not, that is said in one line."""
    asked = ask("check", counts, "--json")
    if asked.code == 3:
        assert asked.json["impressions"] % 6 == 0
        return True
    assert (asked.code, asked.out) == (1, ""), asked
    assert asked.err.count("\n") == 1
    assert re.search(r"has changed since it was counted: count .+ again with 'elute count' \(--out ", asked.err)
    return False


def secrets_in(folder: Path) -> list[str]:
    """Which secrets stand in a folder's files."""
    together = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    return [word for word in (PASSWORD, ENCODED, BASIC[6:], SECRET, ACCESS, "t0ken") if word.encode() in together]


def test_over_http_by_tag(http: Served, tmp_path: Path) -> None:
    source = http.url.replace("://", f"://me:{ENCODED}@") + "/log.parquet"
    counts = counted(source, tmp_path / "counts")
    (kept,) = json.loads((counts / "counts.json").read_text())["source"]
    assert kept["url"] == f"{http.url}/log.parquet"
    assert secrets_in(counts) == []
    assert taken(counts)
    assert len(OTHER) == len(http.files["/log.parquet"])
    http.files["/log.parquet"] = OTHER
    refused = ask("check", counts)
    assert refused.err == (
        f"elute: {http.url}/log.parquet has changed since it was counted: "
        f"count {http.url}/log.parquet again with 'elute count' (--out {counts})\n"
    )
    again = counted(f"{http.url}/log.parquet", counts)
    assert taken(again)


@pytest.mark.parametrize(("tells", "seen"), [(("Last-Modified",), True), ((), False)])
def test_over_http_by_what_the_server_tells(http: Served, tmp_path: Path, tells: tuple[str, ...], seen: bool) -> None:
    """A server that tells nothing but the length lets a file of the same length pass."""
    http.tells = tells
    counts = counted(f"{http.url}/log.parquet", tmp_path / "counts")
    http.files["/log.parquet"], http.changed = OTHER, http.changed + timedelta(seconds=1)
    assert taken(counts) is not seen
    http.files["/log.parquet"] = OTHER + b" "
    assert not taken(counts)


def test_out_of_reach_over_http(http: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts are then taken as they are; the file has changed all the while."""
    counts = counted(f"{http.url}/log.parquet", tmp_path / "counts")
    data, http.files["/log.parquet"] = http.files["/log.parquet"], OTHER
    assert not taken(counts)
    monkeypatch.setenv("NETRC", str(tmp_path / "none"))
    assert taken(counts)
    http.authorization = None
    assert not taken(counts)
    del http.files["/log.parquet"]
    assert taken(counts)
    about = json.loads((counts / "counts.json").read_text())
    about["source"][0]["url"] = "https://127.0.0.1:9/log.parquet"
    (counts / "counts.json").write_text(json.dumps(about))
    assert taken(counts)
    http.files["/log.parquet"] = data


def test_only_credentials_for_that_host_are_sent_to_one_that_a_folder_names(
    http: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder may come from somebody who wants to have them."""
    http.authorization = "Bearer t0ken"
    monkeypatch.setenv("ELUTE_BEARER_TOKEN", "t0ken")
    counts = counted(f"{http.url}/log.parquet", tmp_path / "counts")
    assert secrets_in(counts) == []
    http.files["/log.parquet"] = OTHER
    http.seen.clear()
    assert taken(counts)
    (tmp_path / "netrc").write_text(f"default login me password {PASSWORD}\n")
    assert taken(counts)
    assert [given for *_, given in http.seen] == [BASIC, None]


def test_of_a_signed_address_nothing_is_kept(http: Served, tmp_path: Path) -> None:
    counts = counted(f"{http.url}/log.parquet?signature=t0ken", tmp_path / "counts")
    assert json.loads((counts / "counts.json").read_text())["source"] == []
    assert secrets_in(counts) == []
    http.files["/log.parquet"] = OTHER
    assert taken(counts)


def test_in_s3(s3: Served, tmp_path: Path) -> None:
    counts = counted("s3://lake/*.parquet", tmp_path / "counts")
    kept = json.loads((counts / "counts.json").read_text())["source"]
    assert [state["url"] for state in kept] == ["s3://lake/a.parquet", "s3://lake/b.parquet"]
    assert secrets_in(counts) == []
    assert taken(counts)
    s3.changed += timedelta(seconds=1)
    assert not taken(counts)
    s3.changed -= timedelta(seconds=1)
    s3.files["/lake/b.parquet"] += b" "
    refused = ask("check", counts)
    assert "s3://lake/b.parquet has changed" in refused.err
    assert f"count s3://lake/*.parquet again with 'elute count' (--out {counts})" in refused.err


def test_out_of_reach_in_s3(s3: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = counted("s3://lake/a.parquet", tmp_path / "counts")
    s3.files["/lake/a.parquet"] += b" "
    assert not taken(counts)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another")
    assert taken(counts)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    assert not taken(counts)
    with serving(s3=True) as other:
        other.files["/lake/a.parquet"] = OTHER + b"  "
        monkeypatch.setenv("AWS_ENDPOINT_URL", other.url)
        assert taken(counts)
        assert other.seen == []
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3.url)
    del s3.files["/lake/a.parquet"]
    assert taken(counts)


@pytest.mark.parametrize("place", ["disk", "s3"])
def test_a_log_that_changes_while_it_is_counted_is_refused(place: str, s3: Served, tmp_path: Path) -> None:
    """What is kept is the state in which the log was opened, not that in which counting ended."""
    file = tmp_path / "log.parquet"
    pq.write_table(pa.table(CHAIN), file)
    with elute.read_log(file if place == "disk" else "s3://lake/a.parquet") as log:
        log.counts()
        s3.files["/lake/a.parquet"] += b" "
        pq.write_table(pa.table(CHAIN).slice(1), file)
        log.save_counts(tmp_path / "counts")
    assert not taken(tmp_path / "counts")


def test_where_nobody_answers_the_rest_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def gone(then: State) -> None:
        asked.append(then["url"])

    monkeypatch.setattr(state, "_current_state", gone)
    assert state.find_changed_source([{"url": f"https://gone/{number}"} for number in range(100)]) is None
    assert len(asked) == 16


def test_each_file_on_disk_is_looked_at(tmp_path: Path) -> None:
    files = [tmp_path / str(number) for number in range(40)]
    for file in files:
        file.write_text("as it was")
    then = [file_state(file) for file in files]
    for file in files[:35]:
        file.unlink()
    assert state.find_changed_source(then) is None
    files[39].write_text("as it is")
    assert state.find_changed_source(then) == str(files[39])


@pytest.mark.parametrize(
    ("source", "kept"),
    [
        ("postgres://me:pw@host/db#s.t", "postgres://me@host/db#s.t"),
        ("postgres://host/db?password=pw#t", "postgres://host/db#t"),
        (
            "postgres://host/db?user=me&sslpassword=pw&PASSWORD=x&sslmode=require#t",
            "postgres://host/db?user=me&sslmode=require#t",
        ),
        ("https://me:pw@host:80/a.parquet#x", "https://host:80/a.parquet"),
        ("https://host/a.parquet?X-Amz-Signature=1", None),
        ("s3://lake/a?b*.parquet", "s3://lake/a?b*.parquet"),
    ],
)
def test_addresses_are_kept_without_secrets(source: str, kept: str | None) -> None:
    assert to_public_address(source) == kept
