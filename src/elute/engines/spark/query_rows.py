"""What a check says about queries, summed by Spark from the rows of partitions' summaries: one a query and tree."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute.cells.rankable import Rankable
from elute.engines.spark.frame import SparkFrame, sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def count_queries(log: SparkFrame, rows: DataFrame) -> tuple[int, int]:
    """Queries, and the impressions of the one that has most."""
    from pyspark.sql import functions as f

    by_query = rows.groupBy("key", "query").agg(f.sum("impressions").alias("shown"))
    queries, most = log.first_row(by_query.agg(f.count(f.lit(1)), f.max("shown")))
    return queries, int(most)


def count_rankable_queries(log: SparkFrame, rows: DataFrame, component: NDArray[np.int32]) -> Rankable:
    """Where `component` is that of every factor, which is sent to Spark."""
    from pyspark.sql import functions as f

    factor = np.arange(len(component), dtype=np.int32)
    known = log.create_frame(pa.table({"root": factor, "component": component}))
    parts = rows.join(f.broadcast(known), "root").groupBy("key", "query", "component").agg(f.sum("items").alias("n"))
    each = parts.groupBy("key", "query").agg(
        f.count(f.lit(1)).alias("parts"),
        f.sum("n").alias("n"),
        sql("sum(n * (n - 1) DIV 2)").alias("comparable"),
    )
    n, ranked, pairs, comparable = log.first_row(
        each.agg(f.count(f.lit(1)), sql("count_if(parts = 1)"), sql("sum(n * (n - 1) DIV 2)"), f.sum("comparable"))
    )
    return Rankable(n, ranked, comparable / pairs if pairs else 1.0)
