"""Where a folder of parts is kept, and how its `parts.json` is replaced: at once, or not at all.

On disk a part is renamed to its place, and writers wait for each other where they replace `parts.json`. In an object
store there is neither (`elute.engines.parts.stored`).
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import NamedTuple, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from elute._util import files, locks, scratch
from elute._util.folders import name_lock
from elute.cells.filters import Filters
from elute.engines.counts_folder.layout import MARK, PARTS
from elute.engines.counts_folder.reading import CountsFiles
from elute.engines.parts.layout import FOLDER, Index, is_name
from elute.engines.parts.reading import MergedCounts
from elute.errors import EluteError

PATIENCE = 60
"""Seconds to wait for another writer, who only replaces `parts.json`."""

Change = Callable[[Index, str], Index | None]
"""What becomes of `parts.json` with a part of this name; None: nothing. It may be asked several times."""


class PartKind(NamedTuple):
    """What all parts must have alike."""

    items: pa.Schema
    filters: Filters


class IndexChange(NamedTuple):
    """`parts.json`, before and after."""

    before: Index
    after: Index


class PartsStore(Protocol):
    """A folder of parts, by its name, `label`."""

    label: str

    def begin(self, make: Callable[[], Index]) -> Index:
        """What there is, or a new folder."""

    def read(self) -> Index: ...

    def open_folder(self) -> AbstractContextManager[Path]:
        """Where a part is written before it is published; gone afterwards."""

    def publish(self, written: Path, change: Change) -> IndexChange:
        """Make what was written a part of the folder."""

    def describe(self, name: str) -> PartKind:
        """A part."""

    def open_merged(self, names: Sequence[str]) -> AbstractContextManager[MergedCounts]:
        """These parts as one, with items as the parts have them."""


def describe_part(folder: Path) -> PartKind:
    """A part on this machine."""
    return PartKind(pq.read_schema(folder / "items.parquet"), CountsFiles(folder).filters)


class PartsOnDisk:
    """In a folder of this machine."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.label = folder, str(folder)

    def begin(self, make: Callable[[], Index]) -> Index:
        folder = self.folder
        if (folder / MARK).exists():
            raise EluteError(f"'{folder}' holds the counts of one log, to which nothing can be added; choose another")
        if not (folder / PARTS).exists():
            inside = {path.name for path in folder.iterdir() if path.name[0] != "."} if folder.is_dir() else set()
            if folder.exists() and (not folder.is_dir() or inside - {FOLDER, name_lock(PARTS)}):
                raise EluteError(f"'{folder}' already exists and is not a counts folder; choose another")
            (folder / FOLDER).mkdir(parents=True, exist_ok=True)
            with self._alone():
                if not (folder / PARTS).exists():
                    self._write(make())
        return self.read()

    def read(self) -> Index:
        return Index.read(self.folder)

    def open_folder(self) -> AbstractContextManager[Path]:
        return scratch.open_folder(self.folder / FOLDER)

    def publish(self, written: Path, change: Change) -> IndexChange:
        with self._alone():
            index, name = self.read(), secrets.token_hex(8)
            new = change(index, name)
            if new is not None:
                self._settle(written, name)
                self._write(new)
            self._sweep()
        return IndexChange(index, new or index)

    def describe(self, name: str) -> PartKind:
        return describe_part(self.folder / FOLDER / name)

    @contextmanager
    def open_merged(self, names: Sequence[str]) -> Iterator[MergedCounts]:
        held = MergedCounts(self.folder, lambda _: names, units=True, streams=False)
        try:
            yield held
        finally:
            held.close()

    def _settle(self, written: Path, name: str) -> None:
        """Give a part the name under which it stays. Until `parts.json` has it, it is one to be swept."""
        written.chmod(stat.S_IMODE((self.folder / FOLDER).stat().st_mode))
        written.rename(self.folder / FOLDER / name)
        scratch.settle(self.folder / FOLDER / name)

    def _write(self, index: Index) -> None:
        files.write_text(self.folder / PARTS, write_index(index))

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """The only one who writes `parts.json`."""
        busy = f"'{self.folder}' is being written by another process; wait for it, and run this again"
        with locks.hold(Path(os.path.realpath(self.folder)) / name_lock(PARTS), busy, PATIENCE):
            yield

    def _sweep(self) -> None:
        """Remove parts that are named no more, unless somebody reads. Only by whoever writes alone."""
        named = self.read().names
        with locks.try_alone(self.folder / FOLDER) as alone:
            for path in (self.folder / FOLDER).iterdir() if alone else ():
                if is_name(path.name) and path.name not in named:
                    shutil.rmtree(path, ignore_errors=True)


def write_index(index: Index) -> str:
    """As `parts.json` has it."""
    return json.dumps(index.to_dict(), ensure_ascii=False, indent=1) + "\n"
