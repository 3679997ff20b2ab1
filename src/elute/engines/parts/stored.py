"""A folder of parts in an object store.

A part is uploaded under a name that nobody else has. Then `parts.json`, a small object, is written over the very
version that it was made from (`If-Match`), and made anew where somebody else was first: so of two writers neither is
lost, and who reads sees the folder before or after. A writer that is killed leaves objects that no `parts.json` names.
Whoever writes next removes them once they are a day old, by when nobody can be about to name them.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from elute._util import scratch
from elute.cells.filters import Filters
from elute.door.json_file import read_json
from elute.engines.buckets.bucket import Bucket, Taken
from elute.engines.counts_folder.layout import ABOUT, FILES, MARK, PARTS
from elute.engines.parts.fetching import FetchedCounts
from elute.engines.parts.layout import FOLDER, Index, is_name
from elute.engines.parts.reading import MergedCounts
from elute.engines.parts.store import Change, IndexChange, PartKind, write_index
from elute.engines.remote.folder import RemoteFolder
from elute.engines.remote.objects import open_s3
from elute.errors import EluteError

_TRIES = 100
"""Of a writer that others are always ahead of."""
_AGE = timedelta(days=1)


class PartsInBucket:
    """At s3://bucket/folder."""

    def __init__(self, url: str | Path) -> None:
        self._bucket = Bucket(url)
        self.label, self.url = self._bucket.label, self._bucket.url

    def begin(self, make: Callable[[], Index]) -> Index:
        if self._bucket.read(MARK) is not None:
            raise EluteError(
                f"'{self.label}' holds the counts of one log, to which nothing can be added; choose another"
            )
        if self._bucket.read(PARTS) is None:
            if any(not one.name.startswith((f"{FOLDER}/", PARTS)) for one in self._bucket.list(most=2)):
                raise EluteError(f"'{self.label}' already exists and is not a counts folder; choose another")
            new = write_index(make()).encode()
            with suppress(Taken):
                self._bucket.write(PARTS, new)
                self._require_conditions(new)
        return self.read()

    def read(self) -> Index:
        return self._read()[0]

    def open_folder(self) -> AbstractContextManager[Path]:
        return scratch.open_folder()

    def publish(self, written: Path, change: Change) -> IndexChange:
        name = secrets.token_hex(8)
        for file in (*FILES, MARK):
            if (written / file).exists():
                self._bucket.upload(f"{FOLDER}/{name}/{file}", written / file)
        before, _ = self._read()
        for tried in range(_TRIES):
            index, tag = self._read()
            if name in index.names:  # written, though the answer was lost
                return IndexChange(before, index)
            before = index
            try:
                new = change(index, name)
            except BaseException:
                self._remove(name)
                raise
            if new is None:
                self._remove(name)
                return IndexChange(index, index)
            try:
                self._bucket.write(PARTS, write_index(new).encode(), over=tag)
            except Taken:
                time.sleep(secrets.randbelow(50 * min(tried + 1, 20)) / 1000)
                continue
            self._sweep(new)
            return IndexChange(index, new)
        raise EluteError(f"'{self.label}' is being written by others all the time; run this again")

    def describe(self, name: str) -> PartKind:
        place = f"{FOLDER}/{name}"
        with scratch.open_folder() as folder:
            RemoteFolder(self.url).fetch([f"{place}/{MARK}"], folder)
            about = read_json(folder / place / MARK, ABOUT, "what `elute.count` writes", "count the log again")
        path = f"{self.url.removeprefix('s3://')}/{place}/items.parquet"
        try:
            schema = pq.read_schema(path, filesystem=open_s3(path.partition("/")[0]))
        except (pa.ArrowException, OSError):
            raise EluteError(f"cannot read s3://{path}; count its part again, into a new folder") from None
        return PartKind(schema, Filters.from_options(about.get("filters", {})))

    @contextmanager
    def open_merged(self, names: Sequence[str]) -> Iterator[MergedCounts]:
        fetched = FetchedCounts(self.url, lambda _: names)
        try:
            held = MergedCounts(fetched.folder, lambda _: names, units=True, streams=False, label=self.label)
            try:
                yield held
            finally:
                held.close()
        finally:
            fetched.remove()

    def _read(self) -> tuple[Index, str]:
        """`parts.json` and its version."""
        found = self._bucket.read(PARTS)
        if found is None:
            raise EluteError(f"{self.label}/{PARTS} is missing; count the log again")
        with scratch.open_folder() as folder:
            (folder / PARTS).write_bytes(found.data)
            try:
                return Index.read(folder), found.tag
            except EluteError as error:
                raise EluteError(str(error).replace(str(folder), self.label)) from None

    def _require_conditions(self, new: bytes) -> None:
        """Refuse a store that writes over an object although it was told not to: of two writers one would be lost."""
        for over in (None, '"0"'):
            with suppress(Taken):
                self._bucket.write(PARTS, new, over)
                self._bucket.delete(PARTS)
                told = "does not write on a condition (If-None-Match, If-Match), without which writers lose parts"
                raise EluteError(f"the store of {self.label} {told}; append on disk, and copy the folder")

    def _remove(self, name: str) -> None:
        for one in list(self._bucket.list(f"{FOLDER}/{name}/")):
            self._bucket.delete(one.name)

    def _sweep(self, index: Index) -> None:
        """Remove parts that are named no more."""
        newest: dict[str, datetime] = {}
        for one in self._bucket.list(f"{FOLDER}/"):
            name = one.name.split("/")[1]
            newest[name] = max(one.changed, newest.get(name, one.changed))
        for name, changed in newest.items():
            if is_name(name) and name not in index.names and changed < datetime.now(UTC) - _AGE:
                self._remove(name)
