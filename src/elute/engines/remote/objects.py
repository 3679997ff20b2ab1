"""Parquet in S3 and behind https, as what DuckDB scans: only the columns it asks for are fetched.

DuckDB's own reader of remote files is an extension that has to be downloaded; pyarrow, which elute needs anyway, reads
S3 as a dataset, and `elute.engines.remote.http_table` reads ranges over https.

Credentials are the user's own. S3: what the AWS tools use (environment, ~/.aws, a machine's role; AWS_ENDPOINT_URL
for other servers). https: see `elute.engines.remote.http_file`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import fs

from elute._util.urls import hide_secrets, is_remote
from elute.engines.remote.http_file import TRUST, HttpFile
from elute.engines.remote.http_table import HttpTable
from elute.engines.source_state import SECONDS, State
from elute.errors import EluteError

if TYPE_CHECKING:
    import pyarrow.dataset as ds

_PARQUET = (".parquet", ".pq")
_AT_ONCE = 16
"""Files whose footers are read at a time."""
_SECONDS = 60
"""Without an answer, after which a request to S3 fails; the library's own 3 are few for a busy server."""
_KEYS = ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_ACCESS_KEY_ID")
_UNTRUSTED = "curlCode: 60"
"""What the AWS library says of a certificate that it cannot verify, for whatever reason."""
_NEXT = {
    "ACCESS_DENIED": "check the AWS credentials and their permission to read this",
    "INVALID_ACCESS_KEY": "check the AWS credentials",
    "SIGNATURE_DOES_NOT_MATCH": "check the AWS secret key",
    "NETWORK_CONNECTION": "check AWS_ENDPOINT_URL and the network",
}
"""What to do about an AWS error."""


def open_files(urls: Sequence[str], label: str) -> tuple[ds.Dataset | HttpTable, list[State]]:
    """All files as one table, columns matched by name, and what they were then."""
    in_s3 = [url.startswith("s3://") for url in urls]
    if not all(map(is_remote, urls)) or any(in_s3) != all(in_s3):
        raise EluteError(f"{label}: files on disk, at s3:// and at https:// cannot be mixed; pass one kind at a time")
    try:
        if all(in_s3):
            return _s3_dataset(urls)
        table = HttpTable([_check_url(url) for url in urls])
        return table, table.state
    except (pa.ArrowException, OSError) as error:
        raise EluteError(f"cannot read {label}: {summarise_error(error)}") from None


def current_state(then: State) -> State | None:
    """The present state of a file that was opened before; nothing where it is out of reach."""
    url = then["url"]
    try:
        if not url.startswith("s3://"):
            return HttpFile(url, quick=True).state
        if then.get("endpoint") != _endpoint_label(find_endpoint()):
            return None
        path = url.removeprefix("s3://")
        found = open_s3(path.partition("/")[0], quick=True).get_file_info(path)
    except (EluteError, pa.ArrowException, OSError):
        return None
    return _s3_state(found) if found.type == fs.FileType.File else None


def summarise_error(error: Exception) -> str:
    """What went wrong in one line, without DuckDB's and Arrow's frames around it and without credentials."""
    text = re.sub(r"^.*?reading the stream registered as '\w+' failed: ", "", str(error), flags=re.DOTALL)
    text = re.sub(r"^[A-Za-z ]*[Ee]rror: ", "", text)
    line = text.partition(". Detail: ")[0].strip().partition("\n")[0]
    for key in _KEYS:
        if os.environ.get(key):
            line = line.replace(os.environ[key], "…")
    if _UNTRUSTED in line:
        return f"the certificate at AWS_ENDPOINT_URL is not trusted; check the address, or {TRUST}"
    step = next((step for words, step in _NEXT.items() if words in line), None)
    line = line if len(line) <= 240 else line[:237] + "…"
    return f"{line}; {step}" if step else line


def _check_url(url: str) -> str:
    bare = re.split(r"[?#]", url)[0]
    if "*" in bare:
        raise EluteError(f"{hide_secrets(url)}: files at https:// cannot be listed; name each one")
    if not bare.lower().endswith(_PARQUET):
        raise EluteError(f"{hide_secrets(url)}: only Parquet can be read over https; the name must end in .parquet")
    return url


def _s3_dataset(urls: Sequence[str]) -> tuple[ds.Dataset, list[State]]:
    import pyarrow.dataset as ds  # with pandas, which takes its time

    files, form = [file for url in urls for file in _find_s3_files(url)], ds.ParquetFileFormat()
    fragments = [form.make_fragment(info.path, filesystem=system) for system, info in files]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        schemas = list(pool.map(lambda fragment: fragment.physical_schema, fragments))
    table = ds.FileSystemDataset(fragments, pa.unify_schemas(schemas, promote_options="permissive"), form)
    return table, [_s3_state(info) for _, info in files]


def _s3_state(info: fs.FileInfo) -> State:
    """Time in whole seconds: S3 says no more where it is asked for one file."""
    seconds = info.mtime and int(info.mtime.timestamp())
    return {
        "url": f"s3://{info.path}",
        "endpoint": _endpoint_label(find_endpoint()),
        "bytes": info.size,
        "changed": seconds,
    }


def _find_s3_files(url: str) -> list[tuple[fs.S3FileSystem, fs.FileInfo]]:
    """The Parquet files that a path, a glob or a folder stands for, in a fixed order."""
    path = url.removeprefix("s3://")
    if "@" in path.partition("/")[0] or re.search(r"\?[^/]*=", path):
        raise EluteError(
            f"{hide_secrets(url)}: credentials do not belong in the URL; set AWS_ACCESS_KEY_ID or use ~/.aws"
        )
    system = open_s3(path.partition("/")[0])
    found = _find_matching(system, path)
    if not found:
        raise EluteError(f"no Parquet file '{hide_secrets(url)}'")
    return [(system, info) for info in found]


def find_endpoint() -> str | None:
    """The S3 server that the environment names; None for AWS's own."""
    return os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")


def _endpoint_label(endpoint: str | None) -> str | None:
    return endpoint and hide_secrets(endpoint)


def open_s3(bucket: str, quick: bool = False) -> fs.S3FileSystem:
    """AWS's own server in the bucket's region, or the one that the environment names. `quick`: it answers soon or
    not at all."""
    endpoint, seconds = find_endpoint(), SECONDS if quick else _SECONDS
    options: dict[str, Any] = {"request_timeout": seconds, "connect_timeout": seconds}
    if quick:
        options["retry_strategy"] = fs.AwsStandardS3RetryStrategy(max_attempts=1)
    if endpoint:
        scheme, _, host = endpoint.rstrip("/").rpartition("://")
        return fs.S3FileSystem(endpoint_override=host, scheme=scheme or "https", **options)
    if os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION"):
        return fs.S3FileSystem(**options)
    try:
        return fs.S3FileSystem(region=fs.resolve_s3_region(bucket), **options)
    except OSError:
        return fs.S3FileSystem(**options)


def _find_matching(system: fs.FileSystem, path: str) -> list[fs.FileInfo]:
    found = system.get_file_info(path.rstrip("/"))
    if found.type == fs.FileType.File:
        return [found]
    fixed = re.split(r"[*?]", path)[0]
    if fixed == path:
        folder, pattern = path.rstrip("/"), re.compile(re.escape(path.rstrip("/")) + "/.*")
    else:
        folder, pattern = fixed.rpartition("/")[0], _glob_to_regex(path)
    selector = fs.FileSelector(folder, recursive=True, allow_not_found=True)
    matching = [
        info
        for info in system.get_file_info(selector)
        if info.type == fs.FileType.File and pattern.fullmatch(info.path) and info.path.lower().endswith(_PARQUET)
    ]
    return sorted(matching, key=lambda info: str(info.path))


def _glob_to_regex(glob: str) -> re.Pattern[str]:
    """** stands for folders, * and ? for what is within one name."""
    signs = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", glob)
    return re.compile("".join(signs.get(part) or re.escape(part) for part in parts), re.DOTALL)
