"""A server of files for tests: ranges over http behind a login, and as much of S3 as reading takes.

S3 requests are let in by their signature, which is computed here anew from the secret key (AWS Signature Version 4).
"""

from __future__ import annotations

import hashlib
import hmac
import ssl
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, quote, unquote, urlsplit
from xml.sax.saxutils import escape

import pytest
from certificates import Certificates

ACCESS, SECRET = "AKIDEXAMPLE", "wJalrXUt/nFEMI+bPxRfi"


@dataclass
class Served:
    """What is served and to whom; tests change it while the server runs."""

    port: int
    scheme: str = "http"
    files: dict[str, bytes] = field(default_factory=dict)
    authorization: str | None = None
    """The header to let in over http; None lets everybody in."""
    ranges: bool = True
    changed: datetime = datetime(2022, 1, 1, tzinfo=UTC)
    """Of all files but those that were put there."""
    put: dict[str, datetime] = field(default_factory=dict)
    """When files were put there, over S3's protocol."""
    conditions: bool = True
    """Whether a write that has a condition is refused where it is not met."""
    dies_after: int | None = None
    """So many writes are done; the next one is too, but its answer is lost, as the server is then."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    tells: tuple[str, ...] = ("ETag", "Last-Modified")
    """What the answers over http say of a file's version."""
    redirects: dict[str, str] = field(default_factory=dict)
    dies_beyond: int | None = None
    """Ranges that start before this byte break off half-way."""
    stalls_before: int | None = None
    """Ranges that start before this byte are never answered; `stalled` says that one was asked for."""
    stalled: threading.Event = field(default_factory=threading.Event)
    seen: list[tuple[str, str, str | None]] = field(default_factory=list)
    """Method, path and Authorization of every request."""

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"


@contextmanager
def serving(s3: bool = False, certificates: Certificates | None = None) -> Iterator[Served]:
    """The server on a free port, in a thread; behind TLS where it has a certificate."""
    server = _Server(("127.0.0.1", 0), _S3 if s3 else _Http)
    server.daemon_threads = True
    server.served = Served(server.server_address[1])  # type: ignore[attr-defined]
    if certificates is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificates.certificate, certificates.key)
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        server.served.scheme = "https"  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield server.served  # type: ignore[attr-defined]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """Quiet where a client hangs up because it does not trust the certificate."""
        if not isinstance(sys.exception(), ssl.SSLError | ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class _Http(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def served(self) -> Served:
        found: Served = self.server.served  # type: ignore[attr-defined]
        return found

    @property
    def modified(self) -> str:
        return format_datetime(self.served.changed, usegmt=True)

    def log_message(self, *_: object) -> None:
        """Quiet."""

    def do_GET(self) -> None:
        path, given = urlsplit(self.path).path, self.headers.get("Authorization")
        self.served.seen.append(("GET", self.path, given))
        if path in self.served.redirects:
            self.answer(302, b"", {"Location": self.served.redirects[path]})
        elif self.served.authorization not in (None, given):
            self.answer(401, b"who are you?")
        elif path not in self.served.files:
            self.answer(404, b"nothing here")
        else:
            self.send(self.served.files[path])

    def send(self, data: bytes) -> None:
        """The range that is asked for, or all."""
        wanted = self.headers.get("Range")
        version = {"ETag": tag_of(data), "Last-Modified": self.modified}
        tag = {"Accept-Ranges": "bytes"} | {name: version[name] for name in self.served.tells}
        if wanted is None or not self.served.ranges:
            self.answer(200, data, tag)
            return
        first, _, last = wanted.removeprefix("bytes=").partition("-")
        start = max(0, len(data) - int(last)) if not first else int(first)
        end = len(data) if not first or not last else min(int(last) + 1, len(data))
        if start >= len(data):
            self.answer(416, b"")
            return
        if self.served.stalls_before is not None and start < self.served.stalls_before:
            self.served.stalled.set()
            self.connection.recv(1)  # until the client hangs up
            return
        self.answer(206, data[start:end], tag | {"Content-Range": f"bytes {start}-{end - 1}/{len(data)}"}, start)

    def answer(self, code: int, body: bytes, headers: dict[str, str] | None = None, start: int | None = None) -> None:
        self.send_response(code)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if start is not None and self.served.dies_beyond is not None and start < self.served.dies_beyond:
            self.wfile.write(body[: len(body) // 2])
            self.close_connection = True
        elif self.command != "HEAD":
            self.wfile.write(body)


class _S3(_Http):
    """HeadObject, GetObject, ListObjectsV2, PutObject (on a condition too) and DeleteObject, addressed by path."""

    def do_PUT(self) -> None:
        self.served.seen.append((self.command, self.path, self.headers.get("Authorization")))
        path, data = unquote(urlsplit(self.path).path), self.rfile.read(int(self.headers["Content-Length"]))
        code = self.refusal()
        if code or hashlib.sha256(data).hexdigest() != self.headers["x-amz-content-sha256"]:
            self.error(403, code or "XAmzContentSHA256Mismatch")
            return
        with self.served.lock:
            before = self.served.files.get(path)
            wanted, free = self.headers.get("If-Match"), self.headers.get("If-None-Match") == "*"
            met = (not free or before is None) and (wanted is None or (before is not None and wanted == tag_of(before)))
            if self.served.conditions and not met:
                self.error(404 if wanted and before is None else 412, "PreconditionFailed")
                return
            self.served.files[path], self.served.put[path] = data, datetime.now(UTC)
            if self.served.dies_after is not None:
                self.served.dies_after -= 1
        if self.served.dies_after is not None and self.served.dies_after < 0:
            self.served.dies_after = None
            self.close_connection = True
            return
        self.answer(200, b"", {"ETag": tag_of(data)})

    def do_DELETE(self) -> None:
        self.served.seen.append((self.command, self.path, self.headers.get("Authorization")))
        code = self.refusal()
        if code:
            self.error(403, code)
            return
        self.served.files.pop(unquote(urlsplit(self.path).path), None)
        self.answer(204, b"")

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        self.served.seen.append((self.command, self.path, self.headers.get("Authorization")))
        url = urlsplit(self.path)
        code = self.refusal()
        if code:
            self.error(403, code)
        elif "list-type=2" in url.query:
            self.list(unquote(url.path).strip("/"), dict(parse_qsl(url.query)))
        elif unquote(url.path) not in self.served.files:
            self.error(404, "NoSuchKey")
        elif self.command == "HEAD":
            size = str(len(self.served.files[unquote(url.path)]))
            self.answer(200, b"", {"Content-Length": size, "Last-Modified": self.modified})
        else:
            self.send(self.served.files[unquote(url.path)])

    def refusal(self) -> str | None:
        """S3's name for what is wrong with the signature."""
        given = self.headers.get("Authorization", "")
        parts = dict(part.strip().split("=", 1) for part in given.removeprefix("AWS4-HMAC-SHA256 ").split(",") if part)
        if not {"Credential", "SignedHeaders", "Signature"} <= parts.keys():
            return "AccessDenied"
        access, day, region, service, last = parts["Credential"].split("/")
        if access != ACCESS:
            return "InvalidAccessKeyId"
        url, names = urlsplit(self.path), parts["SignedHeaders"].split(";")
        pairs = sorted(parse_qsl(url.query, keep_blank_values=True))
        query = "&".join(f"{quote(name, safe='-_.~')}={quote(value, safe='-_.~')}" for name, value in pairs)
        headers = "".join(f"{name}:{' '.join(self.headers.get(name, '').split())}\n" for name in names)
        body = self.headers.get("x-amz-content-sha256", "")
        canonical = "\n".join((self.command, url.path, query, headers, ";".join(names), body))
        scope = "/".join((day, region, service, last))
        digest = hashlib.sha256(canonical.encode()).hexdigest()
        to_sign = f"AWS4-HMAC-SHA256\n{self.headers['x-amz-date']}\n{scope}\n{digest}"
        key = f"AWS4{SECRET}".encode()
        for part in (day, region, service, last):
            key = hmac.digest(key, part.encode(), "sha256")
        signature = hmac.new(key, to_sign.encode(), "sha256").hexdigest()
        return None if hmac.compare_digest(signature, parts["Signature"]) else "SignatureDoesNotMatch"

    def error(self, status: int, code: str) -> None:
        self.answer(status, f"<Error><Code>{code}</Code><Message>refused: {code}</Message></Error>".encode())

    def list(self, bucket: str, asked: dict[str, str]) -> None:
        prefix, found = asked.get("prefix", ""), []
        for path, data in sorted(dict(self.served.files).items()):
            key = path.removeprefix(f"/{bucket}/")
            if key != path and key.startswith(prefix):
                changed = self.served.put.get(path, self.served.changed)
                found.append(
                    f"<Contents><Key>{escape(key)}</Key><Size>{len(data)}</Size>"
                    f"<LastModified>{changed:%Y-%m-%dT%H:%M:%S}.123Z</LastModified></Contents>"
                )
        keys = f"<KeyCount>{len(found)}</KeyCount><IsTruncated>false</IsTruncated>{''.join(found)}"
        body = f"<ListBucketResult><Name>{bucket}</Name><Prefix>{escape(prefix)}</Prefix>{keys}</ListBucketResult>"
        self.answer(200, body.encode(), {"Content-Type": "application/xml"})


def tag_of(data: bytes) -> str:
    """A file's version."""
    return f'"{hashlib.sha256(data).hexdigest()[:16]}"'


def with_keys(monkeypatch: pytest.MonkeyPatch, served: Served) -> None:
    """The user's keys for an S3 server, in the environment, and nothing else of that kind."""
    for name in ("AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ENDPOINT_URL", served.url)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
