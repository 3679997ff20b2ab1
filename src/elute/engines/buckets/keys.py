"""The user's keys for S3, and what a request carries that is signed with them (AWS Signature Version 4)."""

from __future__ import annotations

import configparser
import hashlib
import hmac
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, urlsplit

from elute.errors import EluteError

_NAMES = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
_WAYS = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or keep them in ~/.aws/credentials"
_SAFE = "-_.~"


class Keys(NamedTuple):
    """`token`: of keys that are lent for a while."""

    access: str
    secret: str
    token: str | None


def find_keys() -> Keys:
    """From the environment, else from the profile in ~/.aws/credentials."""
    given = {name: os.environ.get(name.upper()) for name in _NAMES}
    if not given[_NAMES[0]]:
        given = {name: _read_profile().get(name) for name in _NAMES}
    access, secret, token = given.values()
    if not access or not secret:
        lent = "; keys of a machine's role: aws configure export-credentials --format env"
        raise EluteError(f"there are no AWS keys to write with; {_WAYS}{lent}")
    return Keys(access, secret, token)


def _read_profile() -> Mapping[str, str]:
    path = Path(os.environ.get("AWS_SHARED_CREDENTIALS_FILE") or "~/.aws/credentials").expanduser()
    file = configparser.ConfigParser(interpolation=None)
    try:
        file.read(path, encoding="utf-8")
    except (configparser.Error, OSError, UnicodeDecodeError):
        raise EluteError(f"cannot read {path}; {_WAYS}") from None
    profile = os.environ.get("AWS_PROFILE") or "default"
    return dict(file[profile]) if file.has_section(profile) else {}


def encode(text: str, safe: str = "") -> str:
    """As S3 wants names in addresses."""
    return quote(text, safe=_SAFE + safe)


def sign(
    keys: Keys, method: str, url: str, headers: Mapping[str, str], body_sha256: str, region: str, now: datetime
) -> dict[str, str]:
    """The headers to send. `url`: encoded, its parameters in the order of their names."""
    parts, at = urlsplit(url), now.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    given = {name.lower(): value for name, value in headers.items()}
    given |= {"host": parts.netloc, "x-amz-date": at, "x-amz-content-sha256": body_sha256}
    if keys.token:
        given["x-amz-security-token"] = keys.token
    names = sorted(given)
    listed = "".join(f"{name}:{' '.join(given[name].split())}\n" for name in names)
    canonical = "\n".join((method, parts.path, parts.query, listed, ";".join(names), body_sha256))
    scope = f"{at[:8]}/{region}/s3/aws4_request"
    to_sign = f"AWS4-HMAC-SHA256\n{at}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    key = f"AWS4{keys.secret}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.new(key, to_sign.encode(), "sha256").hexdigest()
    given["authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={keys.access}/{scope}, SignedHeaders={';'.join(names)}, Signature={signature}"
    )
    return given
