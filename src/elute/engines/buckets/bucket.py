"""A folder in S3, or in another store that speaks its protocol, that is written to.

pyarrow, by which such folders are read, cannot say "only if nobody was here before me"; so these few requests are made
here: an object is written unconditionally, only where there is none (`If-None-Match: *`), or only over the version that
was read (`If-Match`).
"""

from __future__ import annotations

import hashlib
import http.client
import io
import os
import re
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import pyarrow as pa
from pyarrow import fs

from elute._util.urls import hide_secrets
from elute.engines.buckets.keys import encode, find_keys, sign
from elute.engines.remote.objects import find_endpoint
from elute.errors import EluteError

_SECONDS = 60
_MOST = 5 * 2**30
"""Bytes that one request may write."""
_PAUSES = (0.2, 1.0, 3.0)
"""Seconds after each try that failed for a reason that may pass."""
_REGION = "us-east-1"
_VERBS = {"GET": "read", "PUT": "write", "DELETE": "delete"}
_TAKEN = (http.HTTPStatus.CONFLICT, http.HTTPStatus.PRECONDITION_FAILED)
_NEXT = {
    401: "check the AWS keys",
    403: "check the AWS keys and their right to read, write, list and delete there",
    404: "check the bucket's name",
    501: "this store cannot write on a condition; write to disk, and copy it from there",
}
_NAME = re.compile(r"s3://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])/(.*[^/])/*")


class Taken(Exception):
    """Somebody else has written the object first."""


class Version(NamedTuple):
    """An object as it was read."""

    data: bytes
    tag: str


class StoredObject(NamedTuple):
    """As a list has it; `name` is relative to the folder."""

    name: str
    changed: datetime


def is_bucket(path: object) -> bool:
    """Whether this is an address that can be written to."""
    return isinstance(path, str | Path) and re.match(r"s3:/", str(path)) is not None


class Bucket:
    """Names are relative to the folder."""

    def __init__(self, url: str | Path) -> None:
        self.url = re.sub(r"^s3:/+", "s3://", str(url)).rstrip("/")  # a Path has one stroke left
        self.label = hide_secrets(self.url)
        named = _NAME.fullmatch(self.url)
        if named is None or "@" in self.url:
            raise EluteError(f"{self.label} is not an address such as s3://bucket/folder")
        self._bucket, self._prefix = named[1], f"{named[2]}/"
        self._keys, self._region = find_keys(), _find_region(self._bucket)
        endpoint = find_endpoint()
        if endpoint:
            server = endpoint if "://" in endpoint else f"https://{endpoint}"
            self._server = f"{server.rstrip('/')}/{self._bucket}"
        elif "." in self._bucket:
            self._server = f"https://s3.{self._region}.amazonaws.com/{self._bucket}"
        else:
            self._server = f"https://{self._bucket}.s3.{self._region}.amazonaws.com"
        trusting = urllib.request.HTTPSHandler(context=ssl.create_default_context())
        self._opener = urllib.request.build_opener(trusting)

    def read(self, name: str) -> Version | None:
        """A small object; None where there is none."""
        status, data, tag = self._ask("GET", name)
        return None if status == http.HTTPStatus.NOT_FOUND else Version(data, tag)

    def write(self, name: str, data: bytes, over: str | None = None) -> None:
        """Where there is no such object, or `over` the version with this tag; `Taken` where that is not so."""
        headers = {"If-None-Match": "*"} if over is None else {"If-Match": over}
        status, *_ = self._ask("PUT", name, data, headers)
        if status in (*_TAKEN, http.HTTPStatus.NOT_FOUND):
            raise Taken

    def upload(self, name: str, path: Path) -> None:
        """A file, whatever was there."""
        if path.stat().st_size > _MOST:
            raise EluteError(f"{path.name} has more than 5GB, which S3 does not take at once; count fewer rows a part")
        self._ask("PUT", name, path)

    def delete(self, name: str) -> None:
        self._ask("DELETE", name)

    def list(self, within: str = "", most: int | None = None) -> Iterator[StoredObject]:
        """Objects whose names begin so; `most`: of no more than so many."""
        more: str | None = ""
        while more is not None:
            asked = {"list-type": "2", "prefix": self._prefix + within}
            asked |= {"continuation-token": more} if more else {}
            asked |= {"max-keys": str(most)} if most else {}
            query = "&".join(f"{encode(name)}={encode(value)}" for name, value in sorted(asked.items()))
            answer = ElementTree.fromstring(self._ask("GET", None, query=query)[1])  # noqa: S314 (the user's own store)
            for one in answer.iter():
                if one.tag.rpartition("}")[2] == "Contents":
                    told = {part.tag.rpartition("}")[2]: part.text or "" for part in one}
                    changed = datetime.fromisoformat(told["LastModified"])
                    yield StoredObject(told["Key"].removeprefix(self._prefix), changed)
            token = next((one.text for one in answer.iter() if one.tag.endswith("NextContinuationToken")), None)
            more = None if most else token

    def _ask(
        self,
        method: str,
        name: str | None,
        body: bytes | Path = b"",
        condition: dict[str, str] | None = None,
        query: str = "",
    ) -> tuple[int, bytes, str]:
        """Status, body and tag of the answer: done, not there, or that somebody was first."""
        path = "/" if name is None else "/" + encode(self._prefix + name, "/")
        url, headers = f"{self._server}{path}{'?' if query else ''}{query}", condition or {}
        size = body.stat().st_size if isinstance(body, Path) else len(body)
        failed = f"cannot {_VERBS[method]} {self.label}/{name or ''}".rstrip("/")
        digest, expected = _digest(body), (http.HTTPStatus.NOT_FOUND, *(_TAKEN if condition else ()))
        for pause in _PAUSES:
            signed = sign(self._keys, method, url, headers, digest, self._region, datetime.now(UTC))
            try:
                with io.BytesIO(body) if isinstance(body, bytes) else body.open("rb") as data:
                    request = urllib.request.Request(url, data, signed, method=method)  # noqa: S310 (http or https)
                    request.add_header("Content-Length", str(size))
                    with self._opener.open(request, timeout=_SECONDS) as answer:
                        return answer.status, answer.read(), answer.headers.get("ETag", "")
            except urllib.error.HTTPError as error:
                error.close()
                if error.code in expected and name is not None and (method != "PUT" or condition):
                    return error.code, b"", ""
                step = _NEXT.get(error.code, "try again")
                said = f"the store says {error.code} {http.client.responses.get(error.code, '')}; {step}"
                if error.code < http.HTTPStatus.INTERNAL_SERVER_ERROR or error.code in _NEXT:
                    break
            except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
                why = getattr(error, "reason", None) or type(error).__name__
                said = f"the store cannot be reached ({why}); check AWS_ENDPOINT_URL and the network"
            time.sleep(pause)
        raise EluteError(f"{failed}: {said}")


def _digest(body: bytes | Path) -> str:
    if isinstance(body, bytes):
        return hashlib.sha256(body).hexdigest()
    with body.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _find_region(bucket: str) -> str:
    """Where the environment says, or AWS; other servers mostly do not care."""
    named = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if named or find_endpoint():
        return named or _REGION
    with suppress(OSError, pa.ArrowException):
        return str(fs.resolve_s3_region(bucket))
    return _REGION
