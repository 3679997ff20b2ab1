"""Logs in the formats people have, to the one elute reads by default: a row for every result shown.

Columns: `session_id` (a result page), `query_id`, `doc_id`, `position` (from 1), `click`, and the bias columns that the
format has besides. Readers yield tables as they go, and these are written as they come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from elute._util.atomic import write_atomically
from elute._util.paths import refuse_harm
from elute._util.text import format_count, to_one_line
from elute.errors import EluteError
from elute.io.logs import baidu, pages, tiangong, ubi, yandex
from elute.io.logs.tally import Tally
from elute.io.text.lines import Paths, find_files
from elute.progress import Progress, silent
from elute.results.base import Fields, Result
from elute.results.card import Card

Reader = Callable[[Sequence[Path], Tally, Progress], Iterator[pa.Table]]
"""Yields impressions in the columns above, and fills the tally."""

READERS: dict[str, tuple[Reader, tuple[str, ...]]] = {
    "ubi": (ubi.read, ubi.BIAS),
    "yandex": (yandex.read, yandex.BIAS),
    "tiangong": (tiangong.read, tiangong.BIAS),
    "baidu": (baidu.read, baidu.BIAS),
    "sessions": (pages.read, pages.BIAS),
}
"""By format: its reader and its bias columns."""

_ROW_GROUP = 1 << 19


@dataclass(frozen=True, repr=False)
class Conversion(Result):
    """What was written, and what was found on the way."""

    log: str
    format: str
    bias: tuple[str, ...]
    has_query: bool
    rows: int
    clicks: int
    tally: Tally

    def to_dict(self) -> dict[str, Any]:
        """The JSON of `elute convert`."""
        return {
            "log": self.log,
            "format": self.format,
            "bias": list(self.bias),
            "rows": self.rows,
            "sessions": self.tally.sessions,
            "clicks": self.clicks,
            "orphans": self.tally.orphans,
            "repeated_clicks": self.tally.repeated_clicks,
            "position_base": self.tally.position_base,
            "malformed": self.tally.malformed,
            "problems": [problem._asdict() for problem in self.tally.problems],
            **self.tally.figures,
            **({"actions": self.tally.actions} if self.tally.figures else {}),
        }

    @classmethod
    def describe(cls, fields: Fields) -> Card:
        sentence = (
            f"{format_count(fields['rows'])} results on {format_count(fields['sessions'])} pages, "
            f"{format_count(fields['clicks'])} of them clicked, written to {to_one_line(fields['log'], 200)}"
        )
        names = ("orphans", "repeated_clicks", "malformed")
        return Card(
            "calm", "Converted", sentence, [(format_count(fields[name]), name.replace("_", " ")) for name in names]
        )


def convert(
    source: Paths, format: str, out: str | Path, *, skip_malformed: bool = False, progress: Progress = silent
) -> Conversion:
    """Read logs of one format and write them as one Parquet file, whole or not at all."""
    if format not in READERS:
        raise EluteError(f"no format '{format}'; there are: {', '.join(READERS)}")
    paths = _find_paths(source, Path(out))
    read, bias = READERS[format]
    tally = Tally(skip=skip_malformed)
    rows = clicks = 0
    names: list[str] = []
    with _translate_errors(paths), write_atomically(Path(out)) as temporary:
        writer: pq.ParquetWriter | None = None
        try:
            for table in _group_tables(read(paths, tally, progress)):
                if writer is None:
                    names = table.column_names
                    writer = pq.ParquetWriter(temporary, table.schema)
                writer.write_table(table, row_group_size=table.num_rows)
                rows += table.num_rows
                clicks += int(np.count_nonzero(table["click"].to_numpy()))
        finally:
            if writer is not None:
                writer.close()
        if writer is None:
            named = ", ".join(map(str, paths[:3]))
            raise EluteError(f"no result page in {named}; is it in the format '{format}'?")
    return Conversion(str(out), format, bias, "query_id" in names, rows, clicks, tally)


@contextmanager
def _translate_errors(paths: list[Path]) -> Iterator[None]:
    """Turn what libraries say of a damaged file into one line."""
    try:
        yield
    except (duckdb.Error, pa.ArrowException) as problem:
        named = ", ".join(map(str, paths[:3]))
        raise EluteError(f"cannot read {named}: {str(problem).splitlines()[0][:240]}") from problem


def _group_tables(tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """Tables of about a row group each, without empty ones."""
    held: list[pa.Table] = []
    for table in tables:
        if table.num_rows:
            held.append(table)
        if sum(part.num_rows for part in held) >= _ROW_GROUP:
            yield pa.concat_tables(held)
            held = []
    if held:
        yield pa.concat_tables(held)


def _find_paths(source: Paths, out: Path) -> list[Path]:
    given = [source] if isinstance(source, str | Path) else list(source)
    for part in given:
        if Path(part).is_dir():
            raise EluteError(f"'{part}' is a folder; name its files, as in '{part}/*'")
    refuse_harm(out, given)
    return find_files(given)
