"""A folder of counts that lies in S3 or behind https: its files by name, as many as are asked for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from shutil import copyfileobj
from typing import Any, TypeGuard

import pyarrow as pa
from pyarrow import fs

from elute._util.urls import hide_secrets, is_remote
from elute.engines.remote.http_file import HttpFile
from elute.engines.remote.objects import open_s3, summarise_error
from elute.errors import EluteError

_AT_ONCE = 8
"""Files that are fetched at a time."""
_BLOCK = 1 << 22
_FILES = re.compile(r"[*?#]|\.(parquet|pq|csv|json|ndjson|gz)/?$", re.IGNORECASE)
"""What names files rather than a folder."""


def is_remote_folder(source: object) -> TypeGuard[str]:
    """Whether this is an address that may be a folder's."""
    return isinstance(source, str) and is_remote(source) and not _FILES.search(source)


class RemoteFolder:
    """`has` and `fetch` take names relative to the folder."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        self.label = hide_secrets(self.url)
        self._path = self.url.removeprefix("s3://")
        self._system = open_s3(self._path.partition("/")[0]) if self.url.startswith("s3://") else None

    def has(self, name: str) -> bool:
        """Whether there is a file of this name, as far as one may know."""
        if self._system is None:
            with suppress(EluteError, OSError):
                return HttpFile(f"{self.url}/{name}").seek(0) == 0
            return False
        with suppress(pa.ArrowException, OSError):
            return bool(self._system.get_file_info(f"{self._path}/{name}").type == fs.FileType.File)
        return False

    def fetch(self, names: Sequence[str], target: Path) -> None:
        """Copy files."""
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(lambda name: self._fetch_one(name, target / name), names))

    def _fetch_one(self, name: str, target: Path) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            with target.open("wb") as out, closing(self._open(name)) as file:
                copyfileobj(file, out, _BLOCK)
        except FileNotFoundError:
            raise EluteError(f"{self.label}/{name} is missing; count the log again") from None
        except (pa.ArrowException, OSError) as error:
            raise EluteError(f"cannot read {self.label}/{name}: {summarise_error(error)}") from None

    def _open(self, name: str) -> Any:
        if self._system is None:
            return HttpFile(f"{self.url}/{name}")
        return self._system.open_input_stream(f"{self._path}/{name}")
