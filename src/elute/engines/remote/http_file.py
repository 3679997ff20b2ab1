"""A file behind http(s) that is read range by range.

Credentials, in this order: user and password in the URL, a bearer token in ELUTE_BEARER_TOKEN, ~/.netrc (or NETRC).
They are sent to the host the user named and to no other a server redirects to, and only over https or to this machine.
"""

from __future__ import annotations

import base64
import http.client
import io
import netrc
import os
import re
import ssl
import urllib.error
import urllib.request
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

from elute._util.urls import hide_secrets, to_public_address
from elute.engines.source_state import SECONDS, State
from elute.errors import EluteError

TOKEN = "ELUTE_BEARER_TOKEN"  # noqa: S105 (the variable's name)
_TAIL = 1 << 16
"""Bytes read first: they tell the file's size, and mostly hold Parquet's footer."""
_SECONDS = 60
_LOCAL = ("localhost", "127.0.0.1", "::1")
_NEXT = {
    401: f"give credentials in ~/.netrc or {TOKEN}",
    403: f"check the credentials in the URL, {TOKEN} or ~/.netrc",
    404: "check the address",
}
TRUST = "set SSL_CERT_FILE to the certificate of the authority that signed it"
_ISSUER = (18, 19, 20, 21)
"""OpenSSL's numbers for a certificate by somebody who is not known here."""


class HttpFile:
    """As much of a file object as Arrow asks for."""

    def __init__(self, url: str, quick: bool = False) -> None:
        """`quick`: only to see whether the file is still the same: soon or not at all, and without credentials that
        are not for this host alone."""
        self.label = hide_secrets(url)
        self._at = 0
        self.closed = False
        self._url, self._authorization = _split_credentials(url, quick)
        trusting = urllib.request.HTTPSHandler(context=ssl.create_default_context())
        self._opener = urllib.request.build_opener(trusting)
        self._seconds = SECONDS if quick else _SECONDS
        self._tag: str | None = None
        self._modified: str | None = None
        self._kept: list[tuple[int, bytes]] = []
        try:
            self._tail, self._size = self._fetch(f"bytes=-{_TAIL}", _TAIL)
        except OSError as error:
            raise EluteError(f"cannot read {self.label}: {error}") from None

    @property
    def state(self) -> State | None:
        """What tells whether it is the same file; nothing where its address cannot be kept."""
        name = to_public_address(self._url)
        told = {"url": name, "bytes": self._size, "tag": self._tag, "modified": self._modified}
        return told if name else None

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    def close(self) -> None:
        self.closed = True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = start + offset
        return self._at

    def read(self, size: int = -1) -> bytes:
        first = self._at
        last = self._size if size < 0 else min(first + size, self._size)
        if first >= last:
            return b""
        self._at = last
        for start, data in ((self._size - len(self._tail), self._tail), *self._kept):
            if start <= first and last <= start + len(data):
                return data[first - start : last - start]
        return self._fetch_range(first, last)

    def prefetch(self, pool: ThreadPoolExecutor, ranges: Sequence[tuple[int, int]]) -> None:
        """Fetch these ranges at once and keep them, instead of those before, for the reads that follow."""
        self._kept = []
        fetched = list(pool.map(lambda ends: self._fetch_range(*ends), ranges))
        self._kept = [(first, data) for (first, _), data in zip(ranges, fetched, strict=True)]

    def _fetch_range(self, first: int, last: int) -> bytes:
        data, size = self._fetch(f"bytes={first}-{last - 1}", last - first)
        if size != self._size or len(data) != last - first:
            raise OSError("the file changed while it was being read; try again")
        return data

    def _fetch(self, wanted: str, most: int) -> tuple[bytes, int]:
        """A range of at most so many bytes and the size of the whole; everything that fails is an OSError of one
        line."""
        request = urllib.request.Request(self._url, headers={"Range": wanted, "User-Agent": "elute"})  # noqa: S310 (http or https)
        if self._authorization:
            request.add_unredirected_header("Authorization", self._authorization)
        try:
            with self._opener.open(request, timeout=self._seconds) as answer:
                size = re.fullmatch(r"bytes \d+-\d+/(\d{1,18})", answer.headers.get("Content-Range", ""))
                if answer.status != http.HTTPStatus.PARTIAL_CONTENT or not size:
                    raise OSError("the server does not support range requests; download the file and read it from disk")
                tag = answer.headers.get("ETag")
                if self._tag not in (None, tag):
                    raise OSError("the file changed while it was being read; try again")
                self._tag, self._modified = tag, answer.headers.get("Last-Modified")
                data = answer.read(most + 1)
                if len(data) > most:
                    raise OSError("the server sends more than it was asked for; download the file first")
                if len(data) < int(answer.headers.get("Content-Length") or 0):
                    raise http.client.IncompleteRead(data)
                return data, int(size[1])
        except urllib.error.HTTPError as error:
            error.close()
            if error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                raise OSError("the file is empty (0 bytes)") from None
            step = f"; {_NEXT[error.code]}" if error.code in _NEXT else ""
            raise OSError(f"the server says {error.code} {http.client.responses.get(error.code, '')}{step}") from None
        except urllib.error.URLError as error:
            if isinstance(error.reason, ssl.SSLCertVerificationError):
                raise OSError(_describe_untrusted(error.reason)) from None
            raise OSError(f"the server cannot be reached ({error.reason})") from None
        except (http.client.HTTPException, ConnectionError, TimeoutError) as error:
            raise OSError(f"the connection was lost ({type(error).__name__}); try again") from None


def _describe_untrusted(error: ssl.SSLCertVerificationError) -> str:
    step = TRUST if error.verify_code in _ISSUER else "check the address, or have the certificate renewed"
    return f"the server's certificate is not trusted ({error.verify_message.rstrip('.')}); {step}"


def _split_credentials(url: str, quick: bool) -> tuple[str, str | None]:
    """The URL without credentials, and the header that carries them."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port, parts = None, None, SplitResult("", "", "", "", "")
    if not host or re.search(r"\s", url):
        example = "https://host/file.parquet; in a password, write / and @ as %2F and %40"
        raise EluteError(f"{hide_secrets(url)} is not an address such as {example}")
    private = parts.scheme == "https" or host in _LOCAL
    if parts.password and not private:
        raise EluteError(f"{hide_secrets(url)}: a password must not be sent over plain http; use https")
    named = f"[{host}]" if ":" in host else host
    bare = urlunsplit((parts.scheme, named if port is None else f"{named}:{port}", parts.path, parts.query, ""))
    return bare, _authorization(parts, host, quick) if private else None


def _authorization(parts: SplitResult, host: str, quick: bool) -> str | None:
    user, password = parts.username, parts.password
    if user is None:
        if os.environ.get(TOKEN) and not quick:
            return f"Bearer {os.environ[TOKEN]}"
        user, password = _read_netrc(host, quick)
    else:
        user, password = unquote(user), unquote(password or "")
    if user is None:
        return None
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def _read_netrc(host: str, quick: bool) -> tuple[str | None, str | None]:
    try:
        file = netrc.netrc(os.environ.get("NETRC"))
        known = file.hosts.get(host) if quick else file.authenticators(host)
    except FileNotFoundError:
        return None, None
    except (netrc.NetrcParseError, OSError) as error:
        raise EluteError(f"cannot read ~/.netrc: {getattr(error, 'msg', None) or error}") from None
    return (known[0], known[2]) if known else (None, None)
