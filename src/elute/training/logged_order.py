"""The order in which a log shows graded documents: what a ranker is to be better than."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute._util.matching import match
from elute.engines.duckdb.filtering import prepare_rows
from elute.engines.duckdb.source import DuckDBSource
from elute.engines.sql import quoting
from elute.ranking.data import RankingData
from elute.training.pages import PageColumns, cast_to_number

Floats = NDArray[np.float64]


def read_logged_order(
    source: object, asked: PageColumns, key: tuple[str, str], judged: Mapping[str, RankingData]
) -> dict[str, Floats]:
    """By set and document, its mean position in the log under its query; infinite where it was never shown.

    Nothing for a log without the columns `key`, of queries and documents."""
    if not judged:
        return {}
    opened = DuckDBSource(source)
    try:
        if not all(column in opened.types for column in key):
            return {}
        prepare_rows(opened, (*asked.roles.columns, *key, asked.position), asked.filters, asked.roles)
        ids = [f"log.{quoting.name(column)}::VARCHAR" for column in key]
        position = cast_to_number(opened, asked.position)
        opened.connection.register("elute_judged", _list_queries(judged))
        with opened.translate_errors():
            found = opened.connection.sql(
                f"SELECT {ids[0]} AS query, {ids[1]} AS document, avg({position}) AS position "
                f"FROM {opened.relation} AS log SEMI JOIN elute_judged ON {ids[0]} = elute_judged.query "
                "GROUP BY ALL HAVING query IS NOT NULL AND document IS NOT NULL"
            ).to_arrow_table()
    finally:
        opened.close()
    shown = [found[name].combine_chunks() for name in ("query", "document")]
    mean = np.append(found["position"].to_numpy().astype(np.float64), np.inf)
    return {
        name: mean[match([pa.array(data.queries[data.query_of]), pa.array(data.documents)], shown)]
        for name, data in judged.items()
    }


def _list_queries(judged: Mapping[str, RankingData]) -> pa.Table:
    return pa.table({"query": np.unique(np.concatenate([data.queries for data in judged.values()]))})
