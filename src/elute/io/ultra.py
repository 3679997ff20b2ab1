"""ULTRA's text format: `.init_list` holds, a query a line, the documents in the order shown.

The format carries rankings and grades, no clicks: enough for a check (`read`) and for simulated clicks
(`read_ranking`). Positions count from 0, as in the papers that use it.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple, TypeGuard

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute.door.fields import Damaged, record, whole
from elute.door.json_file import parse_json
from elute.errors import EluteError
from elute.io.text.blocks import first_column, read_blocks
from elute.ranking.data import RankingData

_PADDING = "-1"
_MOST_FEATURES = 1_000_000


def is_ultra(source: object) -> TypeGuard[str | Path]:
    """Whether a source is a folder that holds rankings in this format."""
    return isinstance(source, str | Path) and any(Path(source).glob("*.init_list"))


def read(folder: str | Path) -> pa.Table:
    """Impressions as `query_id, doc_id, position`, one row for each shown document."""
    path = _find_list_file(folder)
    queries: list[str] = []
    docs: list[str] = []
    positions: list[int] = []
    for _, fields in _read_fields(path):
        shown = [(position, doc) for position, doc in enumerate(fields[1:]) if doc != _PADDING]
        queries += [fields[0]] * len(shown)
        docs += [doc for _, doc in shown]
        positions += [position for position, _ in shown]
    columns = {"query_id": queries, "doc_id": docs, "position": pa.array(positions, pa.int32())}
    return pa.table(columns)


def _find_list_file(folder: str | Path) -> Path:
    lists = sorted(Path(folder).glob("*.init_list"))
    if not lists:
        raise EluteError(f"folder '{folder}' contains no .init_list file")
    if len(lists) > 1:
        raise EluteError(f"folder '{folder}' contains {len(lists)} .init_list files; pass a folder with one")
    return lists[0]


def _read_fields(path: Path) -> list[tuple[int, list[str]]]:
    """The number of every line and its fields: a query, then something for each place."""
    if not path.is_file():
        raise EluteError(f"no file '{path}'")
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise EluteError(f"{path} is not text in UTF-8 (byte {error.start:,}); write it as such") from None
    fields = [(number, line.split()) for number, line in enumerate(lines, start=1)]
    for number, found in fields:
        if len(found) < 2:
            raise EluteError(f"{path}, line {number}: expected a query and its documents, found {lines[number - 1]!r}")
    return fields


class RankedLists(NamedTuple):
    """Rankings in the order shown. A query may have several lists, and a list may show a document twice (the
    identifiability paper's do); `data` has it once."""

    data: RankingData
    """The documents go by their number in `.feature` (from 0), as in `read`."""
    query: NDArray[np.int64]
    """The query of every list, by number."""
    rows: NDArray[np.int32]
    """(lists, longest): the row of `data` at every place; −1 where nothing is shown."""


def read_ranking(folder: str | Path, *, features: bool = True) -> RankedLists:
    """Rankings with grades (`.labels`, place by place like `.init_list`) and features (`.feature`, a document a line).

    One row for each (query, document). Without `features` the table has no column and `.feature` is not opened:
    where documents are one-hot and shared by queries, as in the identifiability paper's simulated sets, it would take
    460 MB and say no more than the documents' numbers do. The number of features is that of `settings.json` beside
    or above the folder, where there is one. Indices count from 1, unless an index 0 occurs.
    """
    path = _find_list_file(folder)
    labels = path.with_suffix(".labels")
    queries: dict[str, int] = {}
    grades: list[dict[int, int]] = []
    lists: list[tuple[int, list[int]]] = []
    graded = _read_fields(labels)
    for number, (line, fields) in enumerate(_read_fields(path)):
        where = f"{path}, line {line}"
        query = queries.setdefault(fields[0], len(queries))
        if query == len(grades):
            grades.append({})
        if number >= len(graded) or len(graded[number][1]) != len(fields) or graded[number][1][0] != fields[0]:
            raise EluteError(f"{where}: {labels.name} has no matching line (same query '{fields[0]}', as many fields)")
        shown = [_parse_whole_number(field, -1, where, "a document's number") for field in fields[1:]]
        for document, label in zip(shown, graded[number][1][1:], strict=True):
            if document >= 0:
                grade = _parse_whole_number(label, 0, f"{labels}, line {graded[number][0]}", "a grade")
                if grades[query].setdefault(document, grade) != grade:
                    raise EluteError(f"{where}: document {document} has two grades for query '{fields[0]}'")
        lists.append((query, shown))
    if not lists:
        raise EluteError(f"{path} is empty; expected a query and its documents on every line")
    if len(graded) > len(lists):
        raise EluteError(f"{labels} has {len(graded)} lines, {path.name} {len(lists)}; they must agree line by line")
    return _assemble(path, queries, grades, lists, features)


def _assemble(
    path: Path,
    queries: dict[str, int],
    grades: list[dict[int, int]],
    lists: list[tuple[int, list[int]]],
    features: bool,
) -> RankedLists:
    documents = np.array([document for graded in grades for document in graded], np.int64)
    offsets = np.concatenate(([0], np.cumsum([len(graded) for graded in grades], dtype=np.int64)))
    table = (
        _read_features(path.with_suffix(".feature"), documents)
        if features
        else np.zeros((len(documents), 0), np.float32)
    )
    data = RankingData(
        table,
        np.array([grade for graded in grades for grade in graded.values()], np.int32),
        offsets,
        np.array(list(queries)),
        documents.astype(np.str_),
    )
    places = [{document: place for place, document in enumerate(graded)} for graded in grades]
    rows = np.full((len(lists), max(len(shown) for _, shown in lists)), -1, np.int32)
    for number, (query, shown) in enumerate(lists):
        at = [int(offsets[query]) + places[query][document] if document >= 0 else -1 for document in shown]
        rows[number, : len(at)] = at
    return RankedLists(data, np.array([query for query, _ in lists], np.int64), rows)


def _read_features(path: Path, documents: NDArray[np.int64]) -> NDArray[np.float32]:
    """The features of some documents, given by their line in the file."""
    if not path.is_file():
        raise EluteError(f"no file '{path}' with the documents' features; add it beside the rankings")
    parts: list[NDArray[np.float32]] = []
    zero = False
    for block in read_blocks(path, grades=False):
        parts.append(block.features)
        zero |= block.zero
    starts = np.cumsum([0] + [len(part) for part in parts])
    if len(documents) and documents.max() >= starts[-1]:
        raise EluteError(f"{path} has {starts[-1]:,} documents; the lists show number {documents.max()}")
    highest = max((part.shape[1] for part in parts), default=0)
    size = _read_feature_size(path.parent)
    first = first_column(highest, zero, None)
    if size is not None and highest - first > size:
        raise EluteError(f"{path}: feature index {highest - 1} is beyond the {size} features of settings.json")
    table = np.zeros((len(documents), highest - first if size is None else size), np.float32)
    order = np.argsort(documents, kind="stable")
    bounds = np.searchsorted(documents[order], starts)
    for i, start in enumerate(starts[:-1].tolist()):
        here, part = order[bounds[i] : bounds[i + 1]], parts.pop(0)
        table[here, : max(part.shape[1] - first, 0)] = part[documents[here] - start, first:]
    return table


def _read_feature_size(folder: Path) -> int | None:
    for settings in (folder / "settings.json", folder.parent / "settings.json"):
        if settings.is_file():
            try:
                found = parse_json(settings, record({"feature_size": whole(most=_MOST_FEATURES)}))
            except Damaged as error:
                raise EluteError(f"{settings} has no 'feature_size' ({error}); add it or remove the file") from None
            return int(found["feature_size"])
    return None


def _parse_whole_number(field: str, least: int, where: str, what: str) -> int:
    try:
        number = float(field)
    except ValueError:
        number = -np.inf
    if not (number >= least and number.is_integer()):
        raise EluteError(f"{where}: '{field}' is not {what}; expected a whole number from {max(least, 0)}")
    return int(number)
