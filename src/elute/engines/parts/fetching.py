"""Counts that lie in S3 or behind https, copied to this machine for as long as they are read: of a folder of parts,
only those that are chosen."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from elute._util import files, scratch
from elute.door.json_file import read_json
from elute.engines.counts_folder.layout import ABOUT, FILES, MARK, PARTS, is_counts
from elute.engines.parts.layout import FOLDER, Index
from elute.engines.remote.folder import RemoteFolder, is_remote_folder
from elute.errors import EluteError

_TRIES = 5
"""To fetch parts that somebody replaces meanwhile."""
_AGAIN = "count the log again"

Choose = Callable[[Index], Sequence[str]]
"""Names of parts, or of blocks."""


def find_counts(source: object) -> bool:
    """Whether a source is a folder of counts, or of parts, wherever it is."""
    if is_remote_folder(source):
        place = RemoteFolder(source)
        return place.has(MARK) or place.has(PARTS)
    return is_counts(source)


class FetchedCounts:
    """A copy, `folder`, which stays until `remove` is called."""

    def __init__(self, url: str, choose: Choose, spill: str | Path | None = None) -> None:
        """`choose`: which parts, where it is a folder of parts."""
        self.remote = RemoteFolder(url)
        self.label = self.remote.label
        self.folder, self.remove = scratch.make_folder(spill)
        try:
            with self.naming():
                if self.remote.has(MARK):
                    fetch_files(self.remote, "", self.folder)
                else:
                    fetch_parts(self.remote, choose, self.folder)
        except BaseException:
            self.remove()
            raise

    @contextmanager
    def naming(self) -> Iterator[None]:
        """Problems are those of the address, not of its copy."""
        try:
            yield
        except EluteError as error:
            error.args = (str(error).replace(str(self.folder), self.label),)
            raise


def fetch_parts(remote: RemoteFolder, choose: Choose, folder: Path) -> None:
    """Chosen parts, and `parts.json` without blocks that are not among them. What is gone by the time that it is
    fetched has been replaced: then `parts.json` is read anew."""
    before = None
    for _ in range(_TRIES):
        index = fetch_index(remote, folder)
        if index == before:
            break
        names, before = list(choose(index)), index
        try:
            for name in names:
                fetch_files(remote, f"{FOLDER}/{name}/", folder)
        except EluteError as error:
            gone = error
            continue
        (folder / FOLDER).mkdir(exist_ok=True)
        kept = index._replace(blocks=tuple(block for block in index.blocks if block.name in names))
        files.write_text(folder / PARTS, json.dumps(kept.to_dict(), ensure_ascii=False) + "\n")
        return
    raise gone


def fetch_index(remote: RemoteFolder, folder: Path) -> Index:
    """`parts.json` as it is now."""
    remote.fetch([PARTS], folder)
    return Index.read(folder)


def fetch_files(remote: RemoteFolder, within: str, folder: Path) -> None:
    """One counts folder: what `counts.json` says there is."""
    remote.fetch([within + MARK], folder)
    about = read_json(folder / within / MARK, ABOUT, "what `elute.count` writes", _AGAIN)
    told = about.get("files") or {}
    remote.fetch([within + name for name in FILES if name in told], folder)
