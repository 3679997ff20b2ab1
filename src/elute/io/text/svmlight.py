"""Lines of `head index:value index:value … # comment`, from bytes to arrays.

LETOR's head is a grade and `qid:…`; that of ULTRA's `.feature` files is an id. The parser runs over the bytes once
and writes features as (index, value) entries, from which a dense block is filled when its width is known.
"""

from __future__ import annotations

from mmap import mmap
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.io.text.decimals import MAX_FLOAT32, POWERS, SURE, UNSURE, WRONG, ZERO_POWER, parse_number, parse_plain
from elute.kernels.jit import jit

Bytes = NDArray[np.uint8]

MAX_INDEX = (1 << 20) - 1
"""The largest feature index: more columns than this are no dense table."""

GRADE, QUERY, FEATURE, INDEX, VALUE, LARGE, TWICE = range(1, 8)
"""What can be wrong with a line."""


_NEWLINE, _SPACE, _HASH, _COLON, _MINUS = 10, 32, 35, 58, 45


class ParsedLines(NamedTuple):
    """The documents on some lines. `text[head_start:head_end]` is the query's id (or the head), `changes` is true
    where it differs from the row before; a comment runs from `comment` (−1: none) to `end`."""

    line: NDArray[np.int64]
    grade: NDArray[np.int32]
    head_start: NDArray[np.int64]
    head_end: NDArray[np.int64]
    changes: NDArray[np.bool_]
    comment: NDArray[np.int64]
    end: NDArray[np.int64]
    entries: NDArray[np.int64]
    """(rows + 1) offsets into `column` and `value`."""
    column: NDArray[np.int32]
    value: NDArray[np.float32]
    n_lines: int
    """Lines read, with or without a document."""


class LineProblem(NamedTuple):
    """What is wrong (0: nothing), in which line (from 0) and at which byte."""

    code: int
    line: int
    at: int


def parse(text: bytes, grades: bool) -> tuple[ParsedLines, LineProblem]:
    """Parse whole lines; with `grades` the head is `grade qid:id`, else one token."""
    codes = np.frombuffer(text, np.uint8)
    n = int(np.count_nonzero(codes == _NEWLINE))
    m = len(text) // 4 + 1  # a feature takes 4 bytes or more
    longs = [np.empty(n, np.int64) for _ in range(5)]
    line, head_start, head_end, comment, end = longs
    grade, changes, entries = np.empty(n, np.int32), np.empty(n, np.bool_), np.zeros(n + 1, np.int64)
    index, value = np.empty(m, np.int32), np.empty(m, np.float32)
    unsure = np.empty((m, 3), np.int64)  # memory that is not touched costs nothing
    lines = ParsedLines(line, grade, head_start, head_end, changes, comment, end, entries, index, value, n)
    rows, n_unsure, code, wrong_line, at = _parse(codes, grades, POWERS, unsure, *lines[:-1])
    for entry, start, stop in unsure[:n_unsure].tolist():
        number = float(text[start:stop])
        if abs(number) >= MAX_FLOAT32:
            row = int(np.searchsorted(entries[: rows + 1], entry, side="right")) - 1
            return lines, LineProblem(LARGE, int(line[row]), start)
        value[entry] = number
    return _cut_rows(lines, rows), LineProblem(code, wrong_line, at)


def _cut_rows(lines: ParsedLines, rows: int) -> ParsedLines:
    return lines._replace(
        line=lines.line[:rows],
        grade=lines.grade[:rows],
        head_start=lines.head_start[:rows],
        head_end=lines.head_end[:rows],
        changes=lines.changes[:rows],
        comment=lines.comment[:rows],
        end=lines.end[:rows],
        entries=lines.entries[: rows + 1],
    )


def to_dense(lines: ParsedLines, width: int) -> tuple[NDArray[np.float32], LineProblem]:
    """The features as a table with a column for every index from 0; an index twice on a line is a problem."""
    table = _zeros(len(lines.line), width)
    row, index = _fill(lines.entries, lines.column, lines.value, table, np.full(width, -1, np.int64))
    return table, LineProblem(TWICE, int(lines.line[row]), int(index)) if row >= 0 else LineProblem(0, 0, 0)


def _zeros(rows: int, columns: int) -> NDArray[np.float32]:
    """A table in pages of its own, which go back to the system at once when it is let go."""
    if rows * columns == 0:
        return np.zeros((rows, columns), np.float32)
    return np.ndarray((rows, columns), np.float32, buffer=mmap(-1, 4 * rows * columns))


@jit
def _fill(
    entries: NDArray[np.int64],
    index: NDArray[np.int32],
    value: NDArray[np.float32],
    table: NDArray[np.float32],
    seen: NDArray[np.int64],
) -> tuple[int, int]:
    """Returns the row and index of the first repetition, or −1."""
    for row in range(table.shape[0]):
        for entry in range(entries[row], entries[row + 1]):
            column = index[entry]
            if seen[column] == row:
                return row, column
            seen[column] = row
            table[row, column] = value[entry]
    return -1, -1


@jit
def _skip_blanks(text: Bytes, i: int) -> int:
    """The first byte from i on that is no blank; a line's end is none."""
    while text[i] <= _SPACE and text[i] != _NEWLINE:
        i += 1
    return i


@jit
def _skip_token(text: Bytes, i: int) -> int:
    """The end of the token that starts at byte i."""
    while text[i] > _SPACE and text[i] != _HASH:
        i += 1
    return i


@jit
def _is_same(text: Bytes, a: int, a_end: int, b: int, b_end: int) -> bool:
    k = 0
    while a + k < a_end and b + k < b_end and text[a + k] == text[b + k]:
        k += 1
    return a + k == a_end and b + k == b_end


@jit
def _parse(
    text: Bytes,
    grades: bool,
    powers: NDArray[np.float64],
    unsure: NDArray[np.int64],
    line: NDArray[np.int64],
    grade: NDArray[np.int32],
    head_start: NDArray[np.int64],
    head_end: NDArray[np.int64],
    changes: NDArray[np.bool_],
    comment: NDArray[np.int64],
    end: NDArray[np.int64],
    entries: NDArray[np.int64],
    index: NDArray[np.int32],
    value: NDArray[np.float32],
) -> tuple[int, int, int, int, int]:
    """Returns the rows, the unsure numbers, and the first problem: code, line, byte. The text ends in a newline."""
    i = row = entry = n_unsure = 0
    number_of_line = -1
    while i < text.shape[0]:
        number_of_line += 1
        i = _skip_blanks(text, i)
        if text[i] == _HASH or text[i] == _NEWLINE:
            while text[i] != _NEWLINE:
                i += 1
            i += 1
            continue
        if grades:
            number, after, kind = parse_number(text, i, powers)
            if kind != SURE or text[after] > _SPACE or number < 0.0 or number != np.floor(number) or number >= 2**31:
                return row, n_unsure, GRADE, number_of_line, i
            grade[row] = np.int32(number)
            i = _skip_blanks(text, after)
            if not (text[i] == 113 and text[i + 1] == 105 and text[i + 2] == 100 and text[i + 3] == _COLON):
                return row, n_unsure, QUERY, number_of_line, i
            i += 4
        head_start[row] = i
        i = _skip_token(text, i)
        head_end[row] = i
        if head_end[row] == head_start[row]:
            return row, n_unsure, QUERY, number_of_line, i
        changes[row] = row == 0 or not _is_same(
            text, head_start[row - 1], head_end[row - 1], head_start[row], head_end[row]
        )
        line[row] = number_of_line
        comment[row] = -1
        while True:
            i = _skip_blanks(text, i)
            if text[i] == _NEWLINE:
                break
            if text[i] == _HASH:
                comment[row] = i + 1
                while text[i] != _NEWLINE:
                    i += 1
                break
            start = i
            column = np.int64(0)
            while 48 <= text[i] <= 57:
                column = min(column * 10 + np.int64(text[i]) - 48, np.int64(MAX_INDEX + 1))
                i += 1
            if i == start or text[i] != _COLON:
                return row, n_unsure, FEATURE, number_of_line, start
            if column > MAX_INDEX:
                return row, n_unsure, INDEX, number_of_line, start
            i += 1
            after, mantissa, places = parse_plain(text, i)
            kind = SURE
            if places >= 0:
                number = np.float64(mantissa) / powers[ZERO_POWER + places]
                if text[i] == _MINUS:
                    number = -number
            else:
                number, after, kind = parse_number(text, i, powers)
                if kind == WRONG or (text[after] > _SPACE and text[after] != _HASH):
                    return row, n_unsure, VALUE, number_of_line, start
                if kind == SURE and abs(number) >= MAX_FLOAT32:
                    return row, n_unsure, LARGE, number_of_line, start
            if kind == UNSURE:
                unsure[n_unsure, 0] = entry
                unsure[n_unsure, 1] = i
                unsure[n_unsure, 2] = after
                n_unsure += 1
            index[entry] = column
            value[entry] = np.float32(number)
            entry += 1
            i = after
        end[row] = i
        i += 1
        row += 1
        entries[row] = entry
    return row, n_unsure, 0, 0, 0
