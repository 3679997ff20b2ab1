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

from elute._util.files import whole
from elute.io.features import Features
from elute.judging.groups import Groups
from elute.judging.numerals import shortest

WEIGHTED, POSITIONS = "weighted.tsv", "positions.tsv"
FILES = (
    WEIGHTED, f"{WEIGHTED}.query", f"{WEIGHTED}.weight", POSITIONS, f"{POSITIONS}.query", f"{POSITIONS}.position",
)  # fmt: skip


def write_weighted(folder: Path, parts: Iterable[Groups], features: Features) -> tuple[int, int]:
    """A group a click, and in `.weight` its weight on each of its rows; returns groups and rows."""
    return _write(folder, WEIGHTED, "weight", parts, features, lambda part: np.repeat(part.weight, part.size).tolist())


def write_positions(
    folder: Path, parts: Iterable[Groups], features: Features, position: NDArray[np.int64]
) -> tuple[int, int]:
    """A group a page, and in `.position` where each row was shown; `position` is by factor."""
    return _write(folder, POSITIONS, "position", parts, features, lambda part: position[part.factor].tolist())


def _write(
    folder: Path,
    name: str,
    beside: str,
    parts: Iterable[Groups],
    features: Features,
    column: Callable[[Groups], list[float]],
) -> tuple[int, int]:
    @cache
    def text(document: int) -> str:
        return "\t".join(shortest(features.values[document]))

    groups = rows = 0
    with ExitStack() as stack:
        data, query, other = (_open(stack, folder / (name + end)) for end in ("", ".query", f".{beside}"))
        for part in parts:
            labelled = zip(part.label.tolist(), part.document.tolist(), strict=True)
            data.writelines(f"{label}\t{text(document)}\n" for label, document in labelled)
            query.writelines(f"{size}\n" for size in part.size.tolist())
            other.writelines(f"{value}\n" for value in column(part))
            groups, rows = groups + len(part.size), rows + len(part.label)
    return groups, rows


def _open(stack: ExitStack, path: Path) -> TextIO:
    return stack.enter_context(stack.enter_context(whole(path)).open("w", encoding="utf-8", newline=""))
