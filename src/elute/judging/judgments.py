"""From a fit to judgments: which items get a grade, and why the others get none.

In this order, so that each item is counted under the first reason that applies:

- `not_in_fit`, `several_items`: the log shows a query and document that the fit has no item for, or more than one;
- `not_rankable`: the query's items lie in more than one component, whose relevances cannot be compared;
- `no_estimate`: the clicks leave the item's relevance open;
- `imprecise`: its standard error is above 1/`min_precision`;
- `all_alike`: with quantiles, a query whose items all have the same relevance, or that has one item only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from elute._util.matching import id_columns, match
from elute.cells.filters import Filters
from elute.cells.roles import Roles
from elute.engines.duckdb.filtering import prepare_rows
from elute.engines.duckdb.source import DuckDBSource
from elute.engines.sql import quoting
from elute.errors import EluteError
from elute.fits.fit import Fit
from elute.judging.grades import Quantiles, Rule, Thresholds

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class LeftOut(NamedTuple):
    """Judgments that were not made, and queries that lost their last by it."""

    queries: int
    judgments: int


@dataclass(frozen=True, eq=False)
class Judgments:
    """Equally long, in the order of queries and then of documents."""

    query: list[str]
    doc: list[str]
    grade: Ints
    levels: int
    left_out: dict[str, LeftOut]

    @property
    def queries(self) -> int:
        return len(set(self.query))


def judge(
    fit: Fit,
    query: str,
    doc: str,
    rule: Rule,
    min_precision: float | None = None,
    log: object | None = None,
    filters: Filters = Filters(),  # noqa: B008 (it cannot change)
) -> Judgments:
    """Grades of the fit's items. `log`, of which rows that pass `filters` count, is read where these are named by other
    columns than `query` and `doc`."""
    pairs, row = _find_pairs(fit, query, doc, log, filters)
    left: dict[str, LeftOut] = {}
    code = pairs[query].cast(pa.string()).combine_chunks().dictionary_encode().indices.to_numpy().astype(np.int64)
    kept = np.ones(len(row), np.bool_)

    def drop(reason: str, bad: NDArray[np.bool_]) -> None:
        nonlocal kept
        after = kept & ~bad
        lost = len(np.unique(code[kept])) - len(np.unique(code[after]))
        left[reason], kept = LeftOut(lost, int((kept & bad).sum())), after

    drop("not_in_fit", row < 0)
    drop("several_items", _find_repeated(pairs, query, doc))
    component, relevance = (fit.relevance[name].to_numpy()[row] for name in ("component", "relevance"))
    drop("not_rankable", _find_scattered(code, component.astype(np.int64), kept))
    drop("no_estimate", ~np.isfinite(relevance))
    if min_precision is not None:
        drop("imprecise", ~(_compute_standard_errors(fit)[row] <= 1 / min_precision))
    if isinstance(rule, Quantiles):
        drop("all_alike", _find_alike(code, relevance, kept))
    elif isinstance(rule, Thresholds) and len(np.unique(component[kept])) > 1:
        raise EluteError(
            f"{fit.label} has {len(np.unique(component[kept]))} components, each at its own scale, and thresholds "
            "would compare across them; use `grades='quantiles'`, or repair the log with `elute.merge` and fit again"
        )
    if not kept.any():
        why = ", ".join(f"{reason} {n.judgments:,}" for reason, n in left.items() if n.judgments)
        raise EluteError(f"{fit.label} gives no judgments: all {len(row):,} items are left out ({why})")
    chosen = pairs.filter(pa.array(kept))
    order = pc.sort_indices(chosen, sort_keys=[(query, "ascending"), (doc, "ascending")])
    grade = rule.grades(relevance[kept], np.unique(code[kept], return_inverse=True)[1])[order.to_numpy()]
    queries, docs = (column.to_pylist() for column in id_columns(chosen.take(order), (query, doc)))
    return Judgments(queries, docs, grade, rule.levels, {reason: n for reason, n in left.items() if n.judgments})


def _find_pairs(fit: Fit, query: str, doc: str, log: object | None, filters: Filters) -> tuple[pa.Table, Ints]:
    """Queries and documents, and the fit's row for each; -1 where it has none."""
    if query == doc:
        raise EluteError(f"`query=` and `doc=` are both '{query}'; name two columns")
    if {query, doc} == set(fit.provenance.item):
        return _decode(fit.relevance.select([query, doc])), np.arange(fit.relevance.num_rows)
    item = fit.provenance.item
    named = ", ".join(item)
    if log is None:
        same = (
            f"; if these are the query and the document, pass `query='{item[0]}'` and `doc='{item[1]}'`"
            if len(item) == 2
            else ""
        )
        raise EluteError(
            f"{fit.label} has items named by {named}, not by {query} and {doc}{same}; or add `log=`, in which each "
            "item's queries and documents are found"
        )
    source = DuckDBSource(log)
    try:
        columns = tuple(dict.fromkeys((query, doc, *item)))
        for column in columns:
            if column not in source.types:
                raise EluteError(f"{source.label} has no column '{column}'; items are found by {named}, {query}, {doc}")
        made = fit.provenance
        roles = Roles(tuple(made.item), tuple(made.bias), None, None, made.impressions, None)
        prepare_rows(source, columns, filters, roles)
        whole = quoting.where_clause(f"{quoting.name(column)} IS NOT NULL" for column in columns)
        with source.translate_errors():
            found = source.connection.sql(f"SELECT DISTINCT {quoting.names(columns)} FROM {source.relation} {whole}")
            table = _decode(found.to_arrow_table())
    finally:
        source.close()
    if not table.num_rows:
        raise EluteError(f"{source.label} has no row with all of {', '.join(columns)}")
    return table.select([query, doc]), match(id_columns(table, item), id_columns(fit.relevance, item))


def _decode(table: pa.Table) -> pa.Table:
    """Without dictionaries, which cannot be sorted."""
    for at, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            table = table.set_column(at, field.name, table[at].cast(field.type.value_type))
    return table


def _find_repeated(pairs: pa.Table, query: str, doc: str) -> NDArray[np.bool_]:
    """Pairs that stand for more than one item."""
    columns = id_columns(pairs, (query, doc))
    first = match(columns, columns)
    return np.bincount(first)[first] > 1


def _find_scattered(code: Ints, component: Ints, kept: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Items of queries with several components."""
    return _find_different(code, component.astype(np.float64), kept)


def _find_alike(code: Ints, relevance: Floats, kept: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Items of queries in which all have the same relevance."""
    return ~_find_different(code, relevance, kept)


def _find_different(code: Ints, value: Floats, kept: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """By item, whether the kept items of its query have different values."""
    n = int(code.max(initial=-1)) + 1

    def reduce_by_query(best: Callable[[Floats, Ints, Floats], None], start: float) -> Floats:
        out = np.full(n, start)
        best(out, code[kept], value[kept])
        return out

    differ: NDArray[np.bool_] = reduce_by_query(np.minimum.at, np.inf) < reduce_by_query(np.maximum.at, -np.inf)
    return differ[code]


def _compute_standard_errors(fit: Fit) -> Floats:
    """Of each relevance at its component's scale: relevance · log_se.

    Where a relevance is 0, for want of clicks, this is unknown. One click would have made it at most 1/(n · o), with n
    impressions all at the least propensity o of its component: that is taken as its error.
    """
    relevance, log_se, n = (
        np.asarray(fit.relevance[name].cast(pa.float64()).to_numpy()) for name in ("relevance", "log_se", "impressions")
    )
    if not np.isfinite(log_se).any():
        raise EluteError(f"{fit.label} (model {fit.model}) has no error bars for `min_precision=`; fit with pbm")
    error = np.where(relevance > 0, relevance * log_se, np.nan)
    if fit.propensities is not None:
        component, propensity = (fit.propensities[name].to_numpy() for name in ("component", "propensity"))
        least = np.full(int(max(component.max(), fit.relevance["component"].to_numpy().max())) + 1, np.inf)
        seen = propensity > 0
        np.minimum.at(least, component[seen], propensity[seen])
        bound = 1 / (n * least[fit.relevance["component"].to_numpy()])
        error = np.where((relevance == 0) & (bound > 0), bound, error)
    return error
