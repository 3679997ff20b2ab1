"""Fits of session click models on disk.

Beside the files that every fit has there are `model.npz`, the parameters, and `queries.parquet`, the queries in the
order of their numbers; documents are numbered as the rows of `relevance.parquet`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from elute.errors import EluteError
from elute.files import write_parquet, write_text
from elute.io.sessions import APART, Vocabulary
from elute.sessions.fit import SessionFit, build

if TYPE_CHECKING:
    from elute.clicks.model import ClickModel


def save(folder: str | Path, fit: SessionFit, provenance: dict[str, Any]) -> None:
    """Write a fit. `fit.json` comes last: a folder with it is complete."""
    target, documents = Path(folder), fit.vocabulary.documents
    (target / "fit.json").unlink(missing_ok=True)
    n = len(documents)
    query, doc = split_items(documents)
    columns = {
        provenance["item"][0]: query,
        provenance["item"][1]: doc,
        "component": pa.array(np.zeros(n, np.int32)),
        "relevance": pa.array(fit.model.relevance()[:n]),
        "log_se": pa.nulls(n, pa.float64()),
        "impressions": pa.array(fit.shown[:n]),
        "clicks": pa.array(fit.clicks[:n]),
    }
    write_parquet(target / "relevance.parquet", pa.table(columns))
    write_parquet(target / "queries.parquet", pa.table({provenance["item"][0]: fit.vocabulary.queries}))
    fit.model.save(target / "model.npz")
    write_text(target / "fit.json", json.dumps({**fit.summary, "provenance": provenance}, indent=1) + "\n")


def split_items(documents: pa.Array) -> tuple[pa.Array, pa.Array]:
    """A vocabulary's documents as queries and documents."""
    if (pc.count_substring(documents, APART).to_numpy() != 1).any():
        raise EluteError("an id of a query or a document holds a tab; session click models cannot tell its parts")
    parts = pc.split_pattern(documents, APART)
    return pc.list_element(parts, 0), pc.list_element(parts, 1)


def load(
    folder: str | Path, name: str, items: tuple[pa.Array, pa.Array], ranks: int
) -> tuple[ClickModel[Any], Vocabulary]:
    """A model that was saved, and its vocabulary. `items`: queries and documents of `relevance.parquet`."""
    queries = pq.read_table(Path(folder) / "queries.parquet")[0].combine_chunks()
    queries = queries.chunk(0) if isinstance(queries, pa.ChunkedArray) else queries
    vocabulary = Vocabulary(pc.binary_join_element_wise(*items, APART), queries)
    model = build(name, vocabulary.n_documents, ranks, vocabulary.n_queries)
    return model.load(Path(folder) / "model.npz"), vocabulary
