"""Fits of session click models on disk, the pages of a log they read, and what they predict.

Beside the files that every fit has there are `model.npz`, the parameters, and `queries.parquet`, the queries in the
order of their numbers; documents are numbered as the rows of `relevance.parquet`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from elute.audit.clicks import Losses, losses
from elute.audit.fits import Fit, Predicted
from elute.engines import sql, values
from elute.engines.sources import Source
from elute.errors import EluteError
from elute.files import write_parquet, write_text
from elute.io.sessions import Columns, SessionParts, Vocabulary, read_sessions, read_vocabulary
from elute.log import ClickLog
from elute.roles import Roles

if TYPE_CHECKING:
    from elute.clicks.model import ClickModel
    from elute.clicks.sessions import Sessions

_AT_ONCE = 20_000_000
"""Rows; a longer log is read in parts, each time it is gone through."""

_APART = "\t"
"""What stands between query and document in a vocabulary."""


@contextmanager
def pages_of(log: ClickLog, sources: Sequence[str], session: str | None) -> Iterator[tuple[Path, Columns]]:
    """A log's pages as a Parquet file. One that is such a file is read where it is; others are copied by DuckDB, in
    the order of pages."""
    columns = _columns(log, session)
    if len(sources) == 1 and _readable(Path(sources[0]), columns):
        yield Path(sources[0]), columns
        return
    with TemporaryDirectory(prefix="elute-") as scratch:
        path = Path(scratch) / "pages.parquet"
        _copy(list(sources), path, columns, log.roles)
        yield path, columns


def _columns(log: ClickLog, session: str | None) -> Columns:
    """What session models ask of a log's columns, or what is wrong with them."""
    roles, label = log.roles, log.engine.label
    if session is None:
        raise EluteError(f"session click models need the pages of {label}; name the column of their ids with --session")
    if session not in log.engine.columns:
        raise EluteError(f"{label} has no column '{session}' of pages; name one with --session")
    if roles.click is None or roles.impressions is not None:
        raise EluteError(f"session click models need every impression of {label} as a row, clicked or not, no counts")
    if len(roles.bias) != 1 or len(roles.item) != 2 or roles.item[0] != roles.query:
        raise EluteError("session click models have a query and a document as item and one bias column, the position")
    if log.survey.nulls:
        column, rows = next(iter(log.survey.nulls.items()))
        raise EluteError(f"{label}: '{column}' is null in {rows:,} rows; session click models need whole pages")
    return Columns(doc=roles.item[1], click=roles.click, query=roles.item[0], session=session, position=roles.bias[0])


def _readable(path: Path, columns: Columns) -> bool:
    """Whether a path is a Parquet file whose positions and clicks need no conversion."""
    if not path.is_file() or path.suffix.lower() not in (".parquet", ".pq"):
        return False
    schema = pq.read_schema(path)
    click, position = schema.field(columns.click).type, schema.field(columns.position).type
    return bool(pa.types.is_integer(position) and (pa.types.is_integer(click) or pa.types.is_boolean(click)))


def _copy(sources: list[str], path: Path, columns: Columns, roles: Roles) -> None:
    source = Source(sources)
    try:
        source.prepare(columns)
        place, click = sql.name(columns.position), sql.name(columns.click)
        with source.reading():
            source.connection.execute(
                f"COPY (SELECT {sql.names((columns.session, columns.query, columns.doc))}, {place}::BIGINT AS {place}, "
                f"{values.clicks(roles, source.types)} AS {click} FROM {source.relation} "
                f"ORDER BY {sql.name(columns.session)}, {place}) TO {sql.text(str(path))} (FORMAT parquet)"
            )
    finally:
        source.close()


def read_pages(
    path: Path, columns: Columns, vocabulary: Vocabulary | None = None
) -> tuple[Sessions | SessionParts, Vocabulary]:
    """All sessions of a file, at once or, where they are many, in parts."""
    if pq.read_metadata(path).num_rows <= _AT_ONCE:
        return read_sessions(path, columns, vocabulary)
    known = vocabulary or read_vocabulary(path, columns)
    return SessionParts(path, known, columns), known


def build(name: str, documents: int, ranks: int, queries: int) -> ClickModel[Any]:
    """An unfitted model; only NCM asks for queries."""
    from elute.clicks import model_of

    given: dict[str, Any] = {"queries": queries} if name == "ncm" else {}
    return model_of(name)(documents, ranks, **given)


def save(
    folder: str | Path,
    fields: dict[str, Any],
    provenance: dict[str, Any],
    model: ClickModel[Any],
    vocabulary: Vocabulary,
    shown: NDArray[np.int64],
    clicks: NDArray[np.int64],
) -> None:
    """Write a fit; `shown` and `clicks` are by document. `fit.json` comes last: a folder with it is complete."""
    target = Path(folder)
    (target / "fit.json").unlink(missing_ok=True)
    n = len(vocabulary.documents)
    query, doc = split_items(vocabulary.documents)
    columns = {
        provenance["item"][0]: query,
        provenance["item"][1]: doc,
        "component": pa.array(np.zeros(n, np.int32)),
        "relevance": pa.array(model.relevance()[:n]),
        "log_se": pa.nulls(n, pa.float64()),
        "impressions": pa.array(shown[:n]),
        "clicks": pa.array(clicks[:n]),
    }
    write_parquet(target / "relevance.parquet", pa.table(columns))
    write_parquet(target / "queries.parquet", pa.table({provenance["item"][0]: vocabulary.queries}))
    model.save(target / "model.npz")
    write_text(target / "fit.json", json.dumps({**fields, "provenance": provenance}, indent=1) + "\n")


def split_items(documents: pa.Array) -> tuple[pa.Array, pa.Array]:
    """A vocabulary's documents as queries and documents."""
    if (pc.count_substring(documents, _APART).to_numpy() != 1).any():
        raise EluteError("an id of a query or a document holds a tab; session click models cannot tell its parts")
    parts = pc.split_pattern(documents, _APART)
    return pc.list_element(parts, 0), pc.list_element(parts, 1)


def session_losses(fit: Fit, log: ClickLog, sources: Sequence[str]) -> Predicted:
    """Of a session model on a log's pages, from P(click) whatever else is clicked (Eq. 2)."""
    queries = pq.read_table(fit.folder / "queries.parquet")[0].combine_chunks()
    queries = queries.chunk(0) if isinstance(queries, pa.ChunkedArray) else queries
    vocabulary = Vocabulary(pc.binary_join_element_wise(*fit.items, _APART), queries)
    model = build(fit.model, vocabulary.n_documents, int(fit.summary["ranks"]), vocabulary.n_queries)
    model.load(fit.folder / "model.npz")
    total, unseen, shown = Losses(np.zeros(0), np.zeros(0, np.int64)), 0, 0
    with pages_of(log, sources, log.roles.session or fit.session) as (path, columns):
        for sessions in parts_of(read_pages(path, columns, vocabulary)[0]):
            mask = sessions.mask
            p = np.clip(model.predict_clicks(sessions), 0.0, 1.0)
            total = total.plus(losses(p, sessions.clicked, mask=mask))
            unseen += int((sessions.doc[mask] == len(vocabulary.documents)).sum())
            shown += int(mask.sum())
    return Predicted(total, unseen / max(shown, 1), 0.0, 0.0)


def parts_of(source: Sessions | SessionParts) -> Iterable[Sessions]:
    """Sessions, part by part."""
    return source if isinstance(source, SessionParts) else (source,)
