"""Parquet files behind http(s) as a stream of Arrow batches, one row group at a time.

Of a row group the byte ranges of the wanted columns are fetched at once, then decoded, while the one before it is
used. Arrow's own reader would fetch ahead in threads that outlive an error and then bring the process down, since here
fetching is Python.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy

import pyarrow as pa
import pyarrow.parquet as pq

from elute._util.threads import run_ahead
from elute.engines.remote.http_file import HttpFile

_AT_ONCE = 8
"""Requests at a time."""


class HttpTable:
    """Scanned by DuckDB as often as it likes; every scan fetches anew."""

    def __init__(self, urls: Sequence[str]) -> None:
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            files = list(pool.map(HttpFile, urls))
            self._files = list(zip(files, pool.map(_open_parquet, files), strict=True))
        self.state = [file.state for file in files if file.state]
        schemas = [file.schema_arrow for _, file in self._files]
        self._schema = pa.unify_schemas(schemas, promote_options="permissive").remove_metadata()

    def select(self, columns: Sequence[str]) -> HttpTable:
        """The same table with fewer columns: no others are fetched."""
        fewer = copy(self)
        fewer._schema = pa.schema([self._schema.field(column) for column in columns])
        return fewer

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Arrow's stream interface."""
        batches = run_ahead(self._read_batches())
        return pa.RecordBatchReader.from_batches(self._schema, batches).__arrow_c_stream__(requested_schema)

    def _read_batches(self) -> Iterator[pa.RecordBatch]:
        nothing, wanted = self._schema.empty_table(), set(self._schema.names)
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for http, file in self._files:
                names = [name for name in file.schema_arrow.names if name in wanted]
                for group in range(file.num_row_groups):
                    http.prefetch(pool, _byte_ranges(file.metadata.row_group(group), wanted))
                    rows = file.read_row_group(group, columns=names, use_threads=False)
                    rows = rows if names else pa.table({"": pa.nulls(rows.num_rows)})
                    whole = pa.concat_tables([nothing, rows], promote_options="permissive")
                    yield from whole.select(self._schema.names).to_batches()
                http.prefetch(pool, [])


def _open_parquet(file: HttpFile) -> pq.ParquetFile:
    return pq.ParquetFile(file, pre_buffer=False)


def _byte_ranges(group: pq.RowGroupMetaData, wanted: set[str]) -> list[tuple[int, int]]:
    """First byte and the one after the last, of every chunk of these columns; neighbours in one."""
    found: list[tuple[int, int]] = []
    for number in range(group.num_columns):
        chunk = group.column(number)
        if chunk.path_in_schema.partition(".")[0] in wanted:
            first = chunk.dictionary_page_offset or chunk.data_page_offset
            found.append((first, first + chunk.total_compressed_size))
    joined: list[tuple[int, int]] = []
    for first, last in sorted(found):
        if joined and first == joined[-1][1]:
            joined[-1] = (joined[-1][0], last)
        else:
            joined.append((first, last))
    return joined
