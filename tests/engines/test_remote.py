"""Parquet behind https and in S3: the same answer as from disk, the user's credentials, and none of them shown."""

from __future__ import annotations

import base64
import io
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from file_server import ACCESS, SECRET, Served, serving, with_keys
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st
from test_against_reference import ODD_TEXT, ODD_UINT64, Case, logs, plain

import elute
from conftest import CHAIN, Outcome, run_elute
from elute._util.urls import censor_urls, hide_secrets, scrub_passwords
from elute.cli import main
from elute.engines.remote import objects
from elute.engines.remote.http_file import HttpFile

PASSWORD = "s3cr/et@#"  # noqa: S105
ENCODED = "s3cr%2Fet%40%23"


@pytest.fixture
def http() -> Iterator[Served]:
    with serving() as served:
        yield served


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    with serving(s3=True) as served:
        with_keys(monkeypatch, served)
        yield served


@pytest.fixture(autouse=True)
def _no_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("ELUTE_BEARER_TOKEN", raising=False)
    monkeypatch.setenv("NETRC", str(tmp_path / "none"))


def parquet(table: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


def verdict(source: object, **roles: Any) -> dict[str, Any]:
    with elute.read_log(source, **roles) as log:
        return elute.check(log).to_dict()


def ask(*arguments: object) -> Outcome:
    """The command line in this process."""
    done = CliRunner().invoke(main, [str(argument) for argument in arguments])
    return Outcome(done.exit_code, done.stdout, done.stderr)


def wide(rows: int) -> pa.Table:
    """A log with a heavy column that plays no role."""
    random = np.random.default_rng(1)
    return pa.table(
        {
            "query_id": random.integers(0, 50, rows),
            "doc_id": random.integers(0, 20, rows),
            "position": random.integers(1, 11, rows),
            "click": random.integers(0, 2, rows),
            "heavy": [random.bytes(400) for _ in range(rows)],
        }
    )


@pytest.mark.parametrize("protocol", ["http", "s3"])
def test_same_answer_and_only_the_columns_with_a_role(protocol: str, request: pytest.FixtureRequest) -> None:
    served: Served = request.getfixturevalue(protocol)
    table, sent = wide(5000), 0
    served.files["/lake/log.parquet"] = parquet(table, row_group_size=1000, compression="none")
    source = f"{served.url}/lake/log.parquet" if protocol == "http" else "s3://lake/log.parquet"
    expected = verdict(table)
    served.seen.clear()
    with elute.read_log(source) as log:
        assert log.engine.label == source
        assert [state["url"] for state in log.engine.state] == [source]
        opened = len(served.seen)
        assert elute.check(log).to_dict() == expected
        sent = len(served.seen)
    assert sent == opened  # what was fetched to open the log is all that is fetched


def test_a_heavy_column_stays_where_it_is(http: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    data = parquet(wide(5000), row_group_size=1000, compression="none")
    http.files["/log.parquet"] = data
    fetched = []
    fetch = HttpFile._fetch

    def counted(self: HttpFile, wanted: str, most: int) -> tuple[bytes, int]:
        body, size = fetch(self, wanted, most)
        fetched.append(len(body))
        return body, size

    monkeypatch.setattr(HttpFile, "_fetch", counted)
    verdict(f"{http.url}/log.parquet")
    assert sum(fetched) < len(data) / 5


@settings(
    max_examples=8,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(case=logs(nulls=True))
@example(case=plain([("q", text, text) for text in ODD_TEXT], "text"))
@example(case=plain([(1, number, number) for number in ODD_UINT64], "uint64"))
def test_random_logs_alike(case: Case) -> None:
    roles: dict[str, Any] = {"query": "query", "doc": "doc", "bias": case.bias}
    roles |= {name: of for name, of in (("item", case.item), ("impressions", case.impressions)) if of}
    with tempfile.TemporaryDirectory() as folder, serving() as http:
        path = Path(folder) / "log.parquet"
        pq.write_table(case.table, path)
        http.files["/log.parquet"] = path.read_bytes()
        answers = []
        for source in (str(path), f"{http.url}/log.parquet"):
            try:
                answers.append(verdict(source, **roles))
            except elute.EluteError as error:
                answers.append({"refused": str(error).replace(source, "LOG")})
    assert answers[0] == answers[1]


def test_yandex_alike(data: Path, s3: Served) -> None:
    s3.files["/lake/yandex.parquet"] = (data / "yandex" / "test.parquet").read_bytes()
    assert verdict("s3://lake/yandex.parquet") == verdict(data / "yandex" / "test.parquet")


def test_files_with_other_columns_are_matched_by_name(http: Served, tmp_path: Path) -> None:
    chain = pa.table(CHAIN)
    http.files["/a.parquet"] = parquet(chain.slice(0, 3))
    other = chain.slice(3).append_column("more", pa.array([1, 2, 3]))
    http.files["/b.parquet"] = parquet(other.set_column(2, "position", other["position"].cast(pa.int32())))
    assert verdict([f"{http.url}/a.parquet", f"{http.url}/b.parquet"]) == verdict(chain)


def test_globs_and_folders_in_s3(s3: Served) -> None:
    chain = pa.table(CHAIN)
    s3.files |= {
        "/lake/logs/day 1/a.parquet": parquet(chain.slice(0, 2)),
        "/lake/logs/day 1/b.parquet": parquet(chain.slice(2, 2)),
        "/lake/logs/day 2/a.parquet": parquet(chain.slice(4)),
        "/lake/logs/day 2/readme.txt": b"not a table",
    }
    rows = {
        "s3://lake/logs": 6,
        "s3://lake/logs/": 6,
        "s3://lake/logs/**/*.parquet": 6,
        "s3://lake/logs/*/a.parquet": 4,
        "s3://lake/logs/day?2/*": 2,
        "s3://lake/logs/day 1/*.parquet": 4,
    }
    assert {source: verdict(source)["impressions"] for source in rows} == rows
    with pytest.raises(elute.EluteError, match=r"no Parquet file 's3://lake/logs/\*.parquet'"):
        verdict("s3://lake/logs/*.parquet")


BASIC = "Basic " + base64.b64encode(f"me:{PASSWORD}".encode()).decode()


@pytest.mark.parametrize("way", ["url", "netrc", "token"])
def test_credentials_over_http(way: str, http: Served, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    http.files["/log.parquet"] = parquet(pa.table(CHAIN))
    http.authorization = f"Bearer {PASSWORD}" if way == "token" else BASIC
    source = f"{http.url}/log.parquet"
    if way == "url":
        source = source.replace("://", f"://me:{ENCODED}@")
    if way == "netrc":
        (tmp_path / "netrc").write_text(f"machine 127.0.0.1 login me password {PASSWORD}\n")
        (tmp_path / "netrc").chmod(0o600)
        monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    if way == "token":
        monkeypatch.setenv("ELUTE_BEARER_TOKEN", PASSWORD)
    asked = ask("check", source)
    assert asked.code == 3
    assert f"elute repair {http.url}/log.parquet" in asked.out.replace("\n", "")
    answered = ask("check", source, "--json")
    assert answered.json["impressions"] == 6
    for secret in (PASSWORD, ENCODED, BASIC.removeprefix("Basic ")):
        assert secret not in asked.out + asked.err + answered.out + answered.err


def test_credentials_are_not_sent_where_a_server_redirects_to(http: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving() as elsewhere:
        elsewhere.files["/log.parquet"] = parquet(pa.table(CHAIN))
        http.redirects["/log.parquet"] = f"{elsewhere.url}/log.parquet"
        monkeypatch.setenv("ELUTE_BEARER_TOKEN", PASSWORD)
        assert verdict(f"{http.url}/log.parquet")["impressions"] == 6
        assert {given for _, _, given in http.seen} == {f"Bearer {PASSWORD}"}
        assert {given for _, _, given in elsewhere.seen} == {None}


def test_no_password_over_plain_http() -> None:
    with pytest.raises(elute.EluteError, match="a password must not be sent over plain http; use https") as refused:
        elute.read_log(f"http://me:{ENCODED}@files.example/log.parquet")
    assert ENCODED not in str(refused.value)


def one_line(outcome: Any, *secrets: str) -> str:
    """What the command line says of a failure: one line, nothing on stdout, exit code 1, no secret.

    On a busy machine a line of progress may come before it."""
    assert (outcome.code, outcome.out) == (1, ""), outcome
    assert outcome.err.replace("elute: opening the log\n", "").count("\n") == 1, outcome
    for secret in secrets:
        assert secret not in outcome.err
    said: str = outcome.err
    return said


def test_what_goes_wrong_over_http_is_said_in_one_line(http: Served, tmp_path: Path) -> None:
    http.files |= {"/log.parquet": parquet(pa.table(CHAIN)), "/empty.parquet": b"", "/no.parquet": b"PAR1 not at all"}
    http.authorization = BASIC
    right, wrong = (http.url.replace("://", f"://me:{word}@") for word in (ENCODED, "wr0ng"))
    said = one_line(ask("check", f"{wrong}/log.parquet?sig=t0ken"), "wr0ng", "t0ken")
    assert f"cannot read {http.url}/log.parquet?…: the server says 401 Unauthorized; give credentials" in said
    for file, words in {
        "lost.parquet": "the server says 404 Not Found",
        "empty.parquet": "the file is empty",
        "no.parquet": "Parquet magic bytes not found",
        "log.csv": "only Parquet can be read over https",
        "*.parquet": "cannot be listed; name each one",
    }.items():
        with pytest.raises(elute.EluteError, match=words) as refused:
            elute.read_log(f"{right}/{file}")
        assert ENCODED not in str(refused.value)
    for other in ("s3://lake/log.parquet", "log.parquet"):
        with pytest.raises(elute.EluteError, match="cannot be mixed; pass one kind at a time"):
            elute.read_log([f"{http.url}/log.parquet", other])
    http.ranges = False
    with pytest.raises(elute.EluteError, match="does not support range requests; download the file"):
        elute.read_log(f"{right}/log.parquet")
    with pytest.raises(elute.EluteError, match=r"the server cannot be reached \(.*refused"):
        elute.read_log("http://127.0.0.1:9/log.parquet")
    with pytest.raises(elute.EluteError, match=r"is not an address such as https://host/file\.parquet") as refused:
        elute.read_log("http://me:p/w0rd@127.0.0.1:9/log.parquet")
    assert "w0rd" not in str(refused.value)


@pytest.mark.parametrize("protocol", ["http", "s3"])
def test_a_server_that_dies_half_way_leaves_nothing(
    protocol: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    served: Served = request.getfixturevalue(protocol)
    served.files["/lake/log.parquet"] = data = parquet(wide(3000), row_group_size=500, compression="none")
    served.dies_beyond = len(data) // 2
    source = f"{served.url}/lake/log.parquet" if protocol == "http" else "s3://lake/log.parquet"
    out, spill = tmp_path / "counts", tmp_path / "spill"
    spill.mkdir()
    said = one_line(run_elute("count", source, "--spill", spill, "--out", out), SECRET, ACCESS)
    assert f"cannot read {source}: " in said
    if protocol == "http":
        assert "the connection was lost (IncompleteRead); try again" in said
    assert not out.exists()
    assert list(spill.iterdir()) == []


def test_a_file_that_changes_while_it_is_read_is_refused(http: Served) -> None:
    table = wide(3000)
    http.files["/log.parquet"] = parquet(table, compression="none")
    file = HttpFile(f"{http.url}/log.parquet")
    http.files["/log.parquet"] = parquet(table.slice(1), compression="none")
    with pytest.raises(OSError, match="changed while it was being read; try again"):
        file.read(100)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("AWS_ACCESS_KEY_ID", "AKIDWRONG", "check"),
        ("AWS_SECRET_ACCESS_KEY", "wr0ng/secret", "check"),
    ],
)
def test_wrong_keys_in_s3(s3: Served, monkeypatch: pytest.MonkeyPatch, key: str, value: str, words: str) -> None:
    s3.files["/lake/log.parquet"] = parquet(pa.table(CHAIN))
    assert verdict("s3://lake/log.parquet")["impressions"] == 6
    monkeypatch.setenv(key, value)
    for source in ("s3://lake/log.parquet", "s3://lake/*.parquet"):
        said = one_line(ask("check", source), SECRET, ACCESS, value)
        assert f"cannot read {source}: " in said
        assert words in said


def test_what_goes_wrong_in_s3_is_said_in_one_line(s3: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(elute.EluteError, match=r"no Parquet file 's3://lake/lost.parquet'"):
        elute.read_log("s3://lake/lost.parquet")
    for url in (f"s3://{ACCESS}:{ENCODED}@lake/log.parquet", f"s3://lake/log.parquet?secret_key={SECRET}"):
        with pytest.raises(elute.EluteError, match="credentials do not belong in the URL") as refused:
            elute.read_log(url)
        assert not any(secret in str(refused.value) for secret in (ACCESS, SECRET, ENCODED))


def test_a_machine_without_s3_keys_in_the_environment_uses_its_files(
    s3: Served, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    s3.files["/lake/log.parquet"] = parquet(pa.table(CHAIN))
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    keys = tmp_path / "credentials"
    keys.write_text(f"[work]\naws_access_key_id = {ACCESS}\naws_secret_access_key = {SECRET}\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(keys))
    monkeypatch.setenv("AWS_PROFILE", "work")
    assert ask("check", "s3://lake/log.parquet", "--json").json["impressions"] == 6


@pytest.mark.parametrize(
    ("source", "public"),
    [
        ("log.parquet", "log.parquet"),
        ("duckdb://a@b.db#t", "duckdb://a@b.db#t"),
        ("postgres://me:pw@host/db#s.t", "postgres://me@host/db#s.t"),
        ("postgresql://me@host/db?sslmode=require#t", "postgresql://me@host/db?sslmode=require#t"),
        ("postgres://host/db?user=me&password=pw&sslmode=require#t", "postgres://host/db?user=me&password=…&sslmode=require#t"),
        ("postgres://me:p@w:x/y@host/db#t", "postgres://me@host/db#t"),
        ("https://me:pw@host:80/a.parquet", "https://host:80/a.parquet"),
        ("https://token@host/a.parquet", "https://host/a.parquet"),
        ("https://host/@scope/a.parquet", "https://host/@scope/a.parquet"),
        ("https://host:80/@scope/a.parquet?X-Amz-Signature=1/2", "https://host:80/@scope/a.parquet?…"),
        ("https://me:p/w@host/a.parquet", "https://host/a.parquet"),
        ("s3://lake/a?b*.parquet", "s3://lake/a?b*.parquet"),
        ("s3://key:pw@lake/a.parquet?secret_key=pw", "s3://lake/a.parquet?…"),
    ],
)  # fmt: skip
def test_urls_are_shown_without_secrets(source: str, public: str) -> None:
    assert hide_secrets(source) == public
    assert hide_secrets(public) == public


@settings(max_examples=300, deadline=None)
@given(
    middle=st.text("a1:/@?#=&% ", max_size=8), scheme=st.sampled_from(["postgres", "postgresql", "http", "https", "s3"])
)
def test_no_password_survives_however_it_is_written(middle: str, scheme: str) -> None:
    """Also one whose signs should have been written in percent."""
    password = f"§{middle}§"
    url = f"{scheme}://me:{password}@host/db.parquet#t"
    assert "§" not in hide_secrets(url)
    assert "§" not in scrub_passwords(f"cannot parse {password!r}", url)
    assert "host/db.parquet" in hide_secrets(url)


def test_messages_lose_passwords() -> None:
    assert (
        scrub_passwords('bad token "p%zw" or "x"', "postgres://me:p%zw@host/db?password=x#t") == 'bad token "…" or "…"'
    )
    assert censor_urls("no file 'https://me:p/w@host/a' at s3://k:v@b") == "no file 'https://me@host/a' at s3://k@b"


def test_said_is_one_line_without_frames() -> None:
    framed = "Invalid Input Error: reading the stream registered as 'x' failed: IOError: gone\nand more. Detail: Python"
    assert objects.summarise_error(OSError(framed)) == "gone"
    assert len(objects.summarise_error(OSError("x" * 1000))) <= 240
