"""What a log's URL looks like where it is printed or kept: without what is secret in it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeGuard
from urllib.parse import unquote

_TABLE = re.compile(r"[^@:/=&]*")
_POSTGRES = ("postgres", "postgresql")
_REMOTE = ("s3", "http", "https")
_PARAMETER = re.compile(r"(?<=[?&])([^?&#=\s]+)=([^&#\s]*)")
_SECRET = re.compile(r"(?i)pass(word|wd)?$|secret|token|signature")
_WITH_PASSWORD = re.compile(r"(?i)\b([a-z][a-z0-9+.-]*:/{0,3}[^\s@/:]*):[^\s@]*@")
_PLAIN_HOST = re.compile(r"[^/@:]*(:\d{1,5})?/")


def is_postgres(source: str) -> bool:
    """Whether a source names a Postgres table."""
    return _scheme(source) in _POSTGRES


def is_remote(source: str) -> bool:
    """Whether a source names a file that is fetched."""
    return _scheme(source) in _REMOTE


def is_adbc(source: object) -> TypeGuard[str]:
    """Whether a source names a table that an ADBC driver reaches."""
    return isinstance(source, str) and _scheme(source) == "adbc"


def hide_secrets(source: str) -> str:
    """The source without passwords, tokens and signatures; what is no URL stays as it is.

    Where it is unclear what belongs to a password, more is left out rather than less. A user's name is kept for
    Postgres only: elsewhere it may be a token.
    """
    scheme, mark, rest = source.partition("://")
    if not mark:
        return censor_urls(source)
    if scheme == "duckdb":
        return source
    if scheme == "adbc":
        driver, (_, sign, table) = re.split(r"[?#]", rest)[0], rest.rpartition("#")
        named = "" if not sign else f"#{table}" if _TABLE.fullmatch(table) else "#…"  # or a password with a #
        return f"adbc://{driver}{'?…' if '?' in rest else ''}{named}"
    credentials, at, place = rest.rpartition("@")
    if scheme in _POSTGRES:
        public = _hide_parameters(place)
        return f"{scheme}://{credentials.partition(':')[0]}{at}{public}"
    if _PLAIN_HOST.match(rest):
        place = rest
    parameters = r"\?[^/]*=.*" if scheme == "s3" else r"\?.*"
    return f"{scheme}://{re.sub(parameters, '?…', place, flags=re.DOTALL)}"


def to_public_address(source: str) -> str | None:
    """The address without secrets, as it can be opened by somebody who has the credentials elsewhere.

    None where that is not known: what follows ? at https may be a signature or the file's name.
    """
    address, mark, table = hide_secrets(source).partition("#")
    server, asked, parameters = address.partition("?")
    if is_postgres(source):
        kept = "&".join(part for part in parameters.split("&") if not _is_secret(part.partition("=")[0]))
        return f"{server}{'?' if kept else ''}{kept}{mark}{table}"
    return hide_secrets(source) if _scheme(source) == "s3" else None if asked else server


def scrub_passwords(message: str, source: str) -> str:
    """A library's message about a source, without the passwords of its URL."""
    credentials = source.partition("://")[2].rpartition("@")[0]
    secret = [value for name, value in _PARAMETER.findall(source) if _is_secret(name)]
    passwords = [credentials.partition(":")[2], *secret]
    for password in passwords:
        for spelling in (password, unquote(password)):
            if spelling:
                message = message.replace(spelling, "…")
    return message


def scrub_values(message: str, options: Mapping[str, str]) -> str:
    """A library's message, without the values of options that are secret, nor passwords of addresses among them."""
    for name, value in options.items():
        message = scrub_passwords(message, value)
        if _is_secret(name):
            message = message.replace(value, "…") if value else message
    return censor_urls(message)


def censor_urls(message: str) -> str:
    """A message whose writer did not know of secrets, without the passwords of the URLs in it."""
    return _hide_parameters(_WITH_PASSWORD.sub(r"\1@", message))


def _hide_parameters(text: str) -> str:
    return _PARAMETER.sub(lambda found: f"{found[1]}=…" if _is_secret(found[1]) else found[0], text)


def _is_secret(parameter: str) -> bool:
    """Whatever a name is spelled with: servers read %77 as w."""
    plain = unquote(parameter)
    return _is_secret(plain) if plain != parameter else bool(_SECRET.search(plain))


def _scheme(source: str) -> str | None:
    scheme, mark, _ = source.partition("://")
    return scheme if mark else None
