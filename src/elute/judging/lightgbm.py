"""A folder that LightGBM reads by itself: rows of label and features, with what belongs to them in files beside.

LightGBM takes up `NAME.query`, `NAME.weight` and `NAME.position` beside `NAME` unasked. So weights and positions, of
which a model may have one and never both, are beside different files: `weighted.tsv` and `positions.tsv`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import TextIO

import numpy as np
from numpy.typing import NDArray

from elute._util.atomic import write_atomically
from elute.io.features import Features
from elute.judging.groups import GroupRows
from elute.judging.numerals import format_shortest

WEIGHTED, POSITIONS = "weighted.tsv", "positions.tsv"
FILES = (
    WEIGHTED, f"{WEIGHTED}.query", f"{WEIGHTED}.weight", POSITIONS, f"{POSITIONS}.query", f"{POSITIONS}.position",
)  # fmt: skip


def write_weighted(folder: Path, chunks: Iterable[GroupRows], features: Features) -> tuple[int, int]:
    """A group a click, and in `.weight` its weight on each of its rows; returns groups and rows."""
    return _write(
        folder, WEIGHTED, "weight", chunks, features, lambda chunk: np.repeat(chunk.weight, chunk.size).tolist()
    )


def write_positions(
    folder: Path, chunks: Iterable[GroupRows], features: Features, position: NDArray[np.int64]
) -> tuple[int, int]:
    """A group a page, and in `.position` where each row was shown; `position` is by factor."""
    return _write(folder, POSITIONS, "position", chunks, features, lambda chunk: position[chunk.factor].tolist())


def _write(
    folder: Path,
    name: str,
    beside: str,
    chunks: Iterable[GroupRows],
    features: Features,
    column: Callable[[GroupRows], list[float]],
) -> tuple[int, int]:
    @cache
    def format_features(document: int) -> str:
        return "\t".join(format_shortest(features.values[document]))

    groups = rows = 0
    with ExitStack() as stack:
        data, query, other = (_open(stack, folder / (name + end)) for end in ("", ".query", f".{beside}"))
        for chunk in chunks:
            labelled = zip(chunk.label.tolist(), chunk.document.tolist(), strict=True)
            data.writelines(f"{label}\t{format_features(document)}\n" for label, document in labelled)
            query.writelines(f"{size}\n" for size in chunk.size.tolist())
            other.writelines(f"{value}\n" for value in column(chunk))
            groups, rows = groups + len(chunk.size), rows + len(chunk.label)
    return groups, rows


def _open(stack: ExitStack, path: Path) -> TextIO:
    return stack.enter_context(stack.enter_context(write_atomically(path)).open("w", encoding="utf-8", newline=""))
