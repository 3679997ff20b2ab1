"""Log files as parts of whole pages, and the fields of their lines as Arrow arrays: text without a loop over lines.

A part is some megabytes of text that ends where a page (or a user's session) ends, so that what belongs together is
read together and a file of any size needs a fixed amount of memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from elute.errors import EluteError
from elute.io.logs.tally import Rejects, Tally
from elute.io.text.lines import read_chunks
from elute.progress import Progress

_LONGEST = 1 << 26
"""Bytes in which a page must end; real ones take thousands."""

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
FindLastPage = Callable[[bytes], int]
"""Where in a text its last page begins, which the next chunk may continue; 0 where there is no other page."""


class TextPart(NamedTuple):
    path: Path
    text: bytes
    """Ends with a line's end. Windows' line ends have become plain ones, lines that are not UTF-8 empty."""
    before: int
    """Lines of the file before this part."""


class LineFields(NamedTuple):
    """The fields of all lines, one after the other."""

    values: pa.StringArray
    first: Ints
    """By line: the place of its first field."""
    width: Ints
    """By line: how many it has; an empty line has one."""
    empty: Flags
    """By field: whether it is empty."""

    def column(self, place: int, lines: Flags) -> pa.StringArray:
        """One field of some lines, all of which have it."""
        return self.values.take(pa.array(self.first[lines] + place))


def read_parts(
    paths: Sequence[Path], cut: FindLastPage, tally: Tally, progress: Progress, size: int
) -> Iterator[TextPart]:
    """All parts of all files, in order."""
    done, total = 0, sum(path.stat().st_size for path in paths) if not any(map(_is_gzip, paths)) else 0
    for path in paths:
        before, rest = 0, b""
        for chunk in read_chunks(path, size):
            text = rest + _normalise(TextPart(path, chunk, before + rest.count(b"\n")), tally)
            end = cut(text)
            if not end and len(text) > _LONGEST:
                where = f"{path}, line {before + 1}"
                raise EluteError(f"{where}: no page ends in the next {_LONGEST >> 20} MB; is it in the named format?")
            if end:
                yield TextPart(path, text[:end], before)
                before += text.count(b"\n", 0, end)
            rest = text[end:]
            done += len(chunk)
            progress(f"reading {path.name}", done, total)
        if rest:
            yield TextPart(path, rest, before)


def split(text: bytes, separators: bytes) -> tuple[pa.StringArray, Ints]:
    """What stands before each separator, and where the separators are."""
    bytes_ = np.frombuffer(text, np.uint8)
    separates = bytes_ == separators[0]
    for other in separators[1:]:
        separates |= bytes_ == other
    at = np.flatnonzero(separates)
    ends = np.zeros(len(at) + 1, np.int32)
    ends[1:] = at - np.arange(len(at))
    kept = bytes_[~separates]
    return pa.StringArray.from_buffers(len(at), pa.py_buffer(ends), pa.py_buffer(kept)), at


def split_fields(text: bytes) -> LineFields:
    """Tab-separated fields."""
    values, at = split(text, b"\t\n")
    last = np.flatnonzero(np.frombuffer(text, np.uint8)[at] == ord("\n"))
    first = np.concatenate(([0], last[:-1] + 1))
    return LineFields(values, first, last - first + 1, np.diff(at, prepend=-1) == 1)


def parse_numbers(values: pa.StringArray, lowest: int) -> tuple[NDArray[np.int32], Flags]:
    """Whole numbers of at most 9 digits, and which values are such numbers from `lowest` on."""
    digits = pc.match_substring_regex(values, "^[0-9]{1,9}$")
    found = pc.if_else(digits, values, "0").cast(pa.int32()).to_numpy(zero_copy_only=False)
    return found, digits.to_numpy(zero_copy_only=False) & (found >= lowest)


def places_within(lengths: Ints) -> Ints:
    """0, 1, 2 … within each group of these lengths."""
    ends = np.cumsum(lengths)
    return np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - lengths, lengths)


def place_keys(page: Ints, position: NDArray[np.int32]) -> Ints:
    """A number for every place on every page."""
    return page * 10**9 + position


def find_repeated(page: Ints, position: NDArray[np.int32], among: Flags) -> Flags:
    """Which of some results stand at a position that an earlier one of them on the page has."""
    again = np.ones(int(among.sum()), bool)
    again[np.unique(place_keys(page[among], position[among]), return_index=True)[1]] = False
    all_results = np.zeros(len(page), bool)
    all_results[among] = again
    return all_results


def _normalise(part: TextPart, tally: Tally) -> bytes:
    text = part.text.replace(b"\r\n", b"\n") if b"\r" in part.text else part.text
    try:
        text.decode()
    except UnicodeDecodeError:
        lines = text.split(b"\n")[:-1]
        rejects = Rejects(len(lines))
        rejects.add(np.array([not _is_utf8(line) for line in lines]), "not UTF-8")
        tally.reject(part.path, rejects, part.before, lines)
        return b"".join((line if good else b"") + b"\n" for line, good in zip(lines, rejects.good, strict=True))
    return text


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def _is_gzip(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(2) == b"\x1f\x8b"
