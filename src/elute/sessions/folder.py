"""What a fit of a session click model has beside the files of every fit: `model.npz`, the parameters, and
`queries.parquet`, the queries in the order of their numbers. Documents are numbered as the rows of `relevance.parquet`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from elute._util.files import write_parquet
from elute.door.fields import Damaged
from elute.door.tables import Ids, read_table, refusing
from elute.errors import EluteError
from elute.io.sessions import APART, Vocabulary
from elute.sessions.fit import SessionFit, build_model

if TYPE_CHECKING:
    from elute.clicks.base.model import ClickModel

MODEL, QUERIES = "model.npz", "queries.parquet"
_AGAIN = "fit again and save it there"


def relevance_table(fit: SessionFit, item: list[str]) -> pa.Table:
    """By item, with the columns of every fit; there are no standard errors. `item`: the query and document columns."""
    n = len(fit.vocabulary.documents)
    query, doc = split_items(fit.vocabulary.documents)
    return pa.table(
        {
            item[0]: query,
            item[1]: doc,
            "component": pa.array(np.zeros(n, np.int32)),
            "relevance": pa.array(fit.model.relevance_values_[:n]),
            "log_se": pa.nulls(n, pa.float64()),
            "impressions": pa.array(fit.shown[:n]),
            "clicks": pa.array(fit.clicks[:n]),
        }
    )


def write_model(folder: Path, fit: SessionFit, query: str) -> None:
    """The parameters, and the queries under this column's name."""
    write_parquet(folder / QUERIES, pa.table({query: fit.vocabulary.queries}))
    fit.model.save(folder / MODEL)


def read_model(
    folder: Path, summary: Mapping[str, Any], items: tuple[pa.Array, ...]
) -> tuple[ClickModel[Any], Vocabulary]:
    """A model that was saved, and its vocabulary. `items`: queries and documents of `relevance.parquet`."""
    if "ranks" not in summary or len(items) != 2:
        raise EluteError(f"{folder / 'fit.json'} is not of a session click model, as {MODEL} beside it is; {_AGAIN}")
    texts = [item.cast(pa.string()) for item in items]
    vocabulary = Vocabulary(pc.binary_join_element_wise(*texts, APART), _read_queries(folder / QUERIES))
    model = build_model(summary["model"], vocabulary.n_documents, summary["ranks"], vocabulary.n_queries)
    return model.load(folder / MODEL), vocabulary


def _read_queries(path: Path) -> pa.Array:
    """In the order of their numbers."""
    table = read_table(path, {}, _AGAIN)
    with refusing(path, _AGAIN):
        if table.num_columns != 1:
            raise Damaged(f"it has {table.num_columns:,} columns, not one")
        Ids().check(table.column_names[0], table[0])
    queries = table[0].combine_chunks()
    return queries.chunk(0) if isinstance(queries, pa.ChunkedArray) else queries


def split_items(documents: pa.Array) -> tuple[pa.Array, pa.Array]:
    """A vocabulary's documents as queries and documents."""
    if (pc.count_substring(documents, APART).to_numpy() != 1).any():
        raise EluteError(
            "a query or document id contains a tab, which session click models use as a separator; replace it"
        )
    parts = pc.split_pattern(documents, APART)
    return pc.list_element(parts, 0), pc.list_element(parts, 1)
