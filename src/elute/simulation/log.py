"""A simulated log on disk, with its truth beside it.

The log has the default columns: `session_id, query_id, doc_id, position` (from 1)`, click`, the policy's `score`, and
`context` where there are contexts. The truth has a row for every item (`kind` "item": its grade, relevance and, where
there is one, satisfaction) and, for users whose clicks are r(x)·o(t), for every factor ("factor": its propensity).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from elute._util.atomic import is_stream, write_atomically
from elute._util.files import write_parquet
from elute._util.threads import run_ahead
from elute.progress import Progress, silent
from elute.simulation.world import Floats, SimulatedPages, World

SESSION, QUERY, DOC, POSITION, CONTEXT, SCORE, CLICK = (
    "session_id",
    "query_id",
    "doc_id",
    "position",
    "context",
    "score",
    "click",
)


def truth_path(log: str | Path) -> Path | None:
    """`log.parquet` → `log.truth.parquet`; beside a device or a pipe there is no place for it."""
    path = Path(log)
    return None if is_stream(path) else path.with_name(f"{path.stem}.truth.parquet")


def write(
    path: str | Path, world: World, chunks: Iterable[SimulatedPages], sessions: int, progress: Progress = silent
) -> int:
    """Write pages as they come, a row group each, and then the truth; returns the number of rows."""
    scores = world.policy.scores(world.data).astype(np.float32)
    names = pa.array(world.data.queries), pa.array(world.data.documents)
    rows = pages = 0

    def build() -> Iterator[tuple[pa.Table, int]]:
        first = 0
        for chunk in chunks:
            yield _build_table(chunk, first, names, scores, world), len(chunk.query)
            first += len(chunk.query)

    # Without Arrow's own schema, readers see text and need not unify the row groups' dictionaries.
    with (
        write_atomically(Path(path)) as temporary,
        pq.ParquetWriter(temporary, _build_schema(world), store_schema=False) as writer,
    ):
        for batch, more in run_ahead(build()):
            writer.write_table(batch, row_group_size=max(batch.num_rows, 1))
            rows += batch.num_rows
            pages += more
            progress("simulating", pages, sessions)
        writer.close()
        truth = truth_path(path)
        if truth is not None:
            write_parquet(truth, truth_table(world))
    return rows


def _build_schema(world: World) -> pa.Schema:
    text = pa.dictionary(pa.int32(), pa.string())
    fields = [(SESSION, pa.int64()), (QUERY, text), (DOC, text), (POSITION, pa.int16())]
    fields += [(CONTEXT, pa.int32())] if world.contexts else []
    return pa.schema([*fields, (SCORE, pa.float32()), (CLICK, pa.uint8())])


def _build_table(
    chunk: SimulatedPages, first: int, names: tuple[pa.Array, pa.Array], scores: np.ndarray, world: World
) -> pa.Table:
    """One chunk as rows. Names are dictionary codes: they are written once a row group, not once a row."""
    rows, length = chunk.rankings
    shown = np.arange(rows.shape[1]) < length[:, None]
    whole_pages = bool(shown.all())

    def flatten(values: np.ndarray) -> np.ndarray:
        return values.reshape(-1) if whole_pages else values[shown]

    document = flatten(rows)
    page = np.arange(first, first + len(length))
    places = np.arange(1, rows.shape[1] + 1, dtype=np.int16)
    columns = {
        SESSION: np.repeat(page, length),
        QUERY: pa.DictionaryArray.from_arrays(np.repeat(chunk.query.astype(np.int32), length), names[0]),
        DOC: pa.DictionaryArray.from_arrays(document, names[1]),
        POSITION: flatten(np.broadcast_to(places, rows.shape)),
    }
    if chunk.context is not None:
        columns[CONTEXT] = flatten(chunk.context)
    columns |= {SCORE: scores[document], CLICK: flatten(chunk.clicks)}
    return pa.table(columns, schema=_build_schema(world))


def truth_table(world: World) -> pa.Table:
    """What the log was made from."""
    data = world.data
    columns = {
        "kind": pa.array(["item"] * data.n_documents),
        QUERY: pa.array(data.queries[data.query_of]),
        DOC: pa.array(data.documents),
        "grade": pa.array(data.grades),
        "relevance": pa.array(world.relevance),
    }
    if world.satisfaction is not None:
        columns["satisfaction"] = pa.array(world.satisfaction)
    tables = [pa.table(columns)]
    if world.user.propensities is not None:
        tables.append(_factor_table(world.user.propensities, world.width))
    return pa.concat_tables(tables, promote_options="default")


def _factor_table(propensities: Floats, width: int) -> pa.Table:
    """By position, or by context and position."""
    table = np.atleast_2d(propensities)[:, :width]
    context, place = (index.reshape(-1) for index in np.indices(table.shape))
    columns = {"kind": pa.array(["factor"] * table.size), POSITION: pa.array((place + 1).astype(np.int16))}
    if propensities.ndim == 2:
        columns[CONTEXT] = pa.array(context.astype(np.int32))
    return pa.table(columns | {"propensity": pa.array(table.reshape(-1))})
