"""A file of `head index:value …` lines as dense blocks, chunk by chunk, with every problem named by file and line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.errors import EluteError
from elute.io.text import svmlight
from elute.io.text.lines import CHUNK_BYTES, read_chunks


class TextBlock(NamedTuple):
    """The documents of one chunk."""

    path: Path
    text: bytes
    before: int
    """Lines of the file before this chunk."""
    lines: svmlight.ParsedLines
    features: NDArray[np.float32]
    """A column for every index from 0 to the highest in this chunk."""
    zero: bool
    """Whether an index 0 occurs."""

    def head(self, row: int) -> str:
        """The query's id (or the head) on a row."""
        return self.decode_id(self.text[self.lines.head_start[row] : self.lines.head_end[row]], row)

    def decode_id(self, token: bytes, row: int) -> str:
        """An id on a row as text."""
        try:
            return token.decode()
        except UnicodeDecodeError as error:
            where = f"{self.path}, line {self.before + int(self.lines.line[row]) + 1}"
            raise EluteError(f"{where}: id {token!r} is not UTF-8; correct or remove the line") from error


def read_blocks(path: Path, grades: bool, chunk_bytes: int = CHUNK_BYTES) -> Iterator[TextBlock]:
    """The blocks of a file; chunks without a document give none."""
    before = 0
    for text in read_chunks(path, chunk_bytes):
        lines, problem = svmlight.parse(text, grades)
        _raise_problem(path, before, text, problem)
        used = lines.column[: lines.entries[-1]]
        features, problem = svmlight.to_dense(lines, int(used.max(initial=-1)) + 1)
        _raise_problem(path, before, text, problem)
        if len(features):
            yield TextBlock(path, text, before, lines, features, bool((used == 0).any()))
        before += lines.n_lines


def first_column(width: int, zero: bool, zero_based: bool | None) -> int:
    """The index of the first feature: 1, unless indices count from 0 (`None`: they do where an index 0 occurs)."""
    if zero_based is False and zero:
        raise EluteError("a feature index is 0, but `zero_based=False` says that indices count from 1")
    return 0 if zero or zero_based else min(1, width)


def _raise_problem(path: Path, before: int, text: bytes, problem: svmlight.LineProblem) -> None:
    """Say what is wrong with a line, if anything is."""
    if not problem.code:
        return
    found = re.split(rb"\s", text[problem.at : problem.at + 200], maxsplit=1)[0].decode(errors="replace")[:60]
    words = {
        svmlight.GRADE: f"grade '{found}' is not a whole number from 0",
        svmlight.QUERY: f"expected qid:<id> after the grade, found '{found}'",
        svmlight.FEATURE: f"expected index:value, found '{found}'",
        svmlight.INDEX: f"the index of '{found}' is larger than {svmlight.MAX_INDEX}",
        svmlight.VALUE: f"the value of '{found}' is not a finite number",
        svmlight.LARGE: f"the value of '{found}' is too large for 32-bit floats",
        svmlight.TWICE: f"feature index {problem.at} appears twice on the line",
    }[problem.code]
    raise EluteError(f"{path}, line {before + problem.line + 1}: {words}; correct or remove the line")
