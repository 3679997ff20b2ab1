"""From a fit to judgments: which items get a grade, and why the others get none.

In this order, so that each item is counted under the first reason that applies:

- `not_in_fit`, `several_items`: the log shows a query and document that the fit has no item for, or more than one;
- `not_rankable`: the query's items lie in more than one component, whose relevances cannot be compared;
- `no_estimate`: the clicks leave the item's relevance open;
- `imprecise`: its standard error is above 1/`min_precision`;
- `alone_in_query`: with quantiles, an item that has no other of its query to be compared with;
- `place_not_known`: the clicks say less of its place than they leave open (`elute.known.pairs`).

The last two and `not_rankable` are judged all the same where all items are asked for, and marked as not known. Items of
a query are then compared within their component.
"""

from __future__ import annotations

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
from elute.judging.places import KnownPlaces, find_places
from elute.judging.posteriors import ItemPosteriors, read_posteriors

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_OF_PLACES = ("alone_in_query", "place_not_known")
"""Reasons that have to do with what is known of an item's place."""

_ON_REQUEST = ("not_rankable", *_OF_PLACES)
"""Reasons for which an item is withheld unless all are asked for."""


class LeftOut(NamedTuple):
    """Judgments that were not made, and queries that lost their last by it."""

    queries: int
    judgments: int


class Support(NamedTuple):
    """What a judgment rests on, by judgment. `confidence`: the probability of its grade. `known`: whether the place of
    its item is."""

    confidence: Floats
    impressions: Ints
    clicks: Ints
    known: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Judgments:
    """Equally long, in the order of queries and then of documents. `withheld`: judgments that were not made, by reason;
    `left_out`: those of them that have to do with other things than what is known of a place. `clicks_alone`: whether
    the fit had no posteriors, and they come from its clicks."""

    query: list[str]
    doc: list[str]
    grade: Ints
    support: Support
    levels: int
    left_out: dict[str, LeftOut]
    withheld: dict[str, int]
    clicks_alone: bool

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
    all_items: bool = False,
) -> Judgments:
    """Grades of the fit's items. `log`, of which rows that pass `filters` count, is read where these are named by other
    columns than `query` and `doc`. `all_items`: also of items whose place is not known."""
    pairs, row = _find_pairs(fit, query, doc, log, filters)
    posteriors = read_posteriors(fit)
    chosen = _choose(fit, pairs.rename_columns(["query", "doc"]), row, posteriors, rule, min_precision, all_items)
    withheld = {reason: n.judgments for reason, n in chosen.left.items() if n.judgments}
    kept, beside = chosen.kept, np.flatnonzero(chosen.beside)
    if not kept.any():
        why = ", ".join(f"{reason.replace('_', ' ')} {n:,}" for reason, n in withheld.items())
        estimated = not all_items and any(withheld.get(reason) for reason in _ON_REQUEST)
        out = "; `all_items=True` exports what has an estimate, marked" if estimated else ""
        raise EluteError(f"{fit.label} gives no judgments: all {len(row):,} items are withheld ({why}){out}")
    of = row[beside]
    group = chosen.places.group[beside]
    graded = rule.grade(posteriors.shape[of], posteriors.rate[of], group, posteriors.population, kept[beside])
    named = pairs.filter(pa.array(kept))
    order = pc.sort_indices(named, sort_keys=[(query, "ascending"), (doc, "ascending")]).to_numpy()
    rows, at = row[kept][order], np.flatnonzero(kept[beside])[order]
    queries, docs = (column.to_pylist() for column in id_columns(named.take(order), (query, doc)))
    impressions, clicks = (fit.relevance[name].to_numpy()[rows] for name in ("impressions", "clicks"))
    support = Support(graded.confidence[at], impressions, clicks, chosen.known[kept][order])
    left_out = {reason: n for reason, n in chosen.left.items() if n.judgments and reason not in _OF_PLACES}
    grade = graded.grade[at]
    return Judgments(queries, docs, grade, support, rule.levels, left_out, withheld, posteriors.clicks_alone)


def find_known(fit: Fit, query: str | None) -> NDArray[np.bool_] | None:
    """By row of the fit's relevance: whether `judge` exports it by default. None where items are not a query and a
    document."""
    others = [column for column in fit.provenance.item if column != query]
    if query is None or len(others) != 1 or query not in fit.provenance.item:
        return None
    pairs, row = _find_pairs(fit, query, others[0], None, Filters())
    return _choose(
        fit, pairs.rename_columns(["query", "doc"]), row, read_posteriors(fit), Quantiles(), None, False
    ).kept


class _Chosen(NamedTuple):
    """By pair: whether it is judged (`kept`), whether its place is `known`, and whether it stands `beside` one that is
    judged: items are graded against all of their query that have an estimate, judged or not."""

    kept: NDArray[np.bool_]
    known: NDArray[np.bool_]
    beside: NDArray[np.bool_]
    places: KnownPlaces
    left: dict[str, LeftOut]


def _choose(
    fit: Fit,
    pairs: pa.Table,
    row: Ints,
    posteriors: ItemPosteriors,
    rule: Rule,
    min_precision: float | None,
    all_items: bool,
) -> _Chosen:
    left: dict[str, LeftOut] = {}
    code = pairs["query"].cast(pa.string()).combine_chunks().dictionary_encode().indices.to_numpy().astype(np.int64)
    kept = np.ones(len(row), np.bool_)

    def drop(reason: str, bad: NDArray[np.bool_]) -> None:
        nonlocal kept
        after = kept & ~bad
        lost = len(np.unique(code[kept])) - len(np.unique(code[after]))
        left[reason], kept = LeftOut(lost, int((kept & bad).sum())), after

    drop("not_in_fit", row < 0)
    drop("several_items", _find_repeated(pairs))
    component, relevance = (fit.relevance[name].to_numpy()[row] for name in ("component", "relevance"))
    scattered = _find_scattered(code, component.astype(np.int64), kept)
    if not all_items:
        drop("not_rankable", scattered)
    drop("no_estimate", ~(np.isfinite(relevance) & np.isfinite(posteriors.shape[row] + posteriors.rate[row])))
    estimated = kept
    places = find_places(posteriors, row, code, component.astype(np.int64), estimated)
    if min_precision is not None:
        drop("imprecise", ~(_compute_standard_errors(fit)[row] <= 1 / min_precision))
    if isinstance(rule, Thresholds) and len(np.unique(component[kept])) > 1:
        raise EluteError(
            f"{fit.label} has {len(np.unique(component[kept]))} components, each at its own scale, and thresholds "
            "would compare across them; use `grades='quantiles'`, or repair the log with `elute.merge` and fit again"
        )
    alone = places.alone if isinstance(rule, Quantiles) else np.zeros(len(row), np.bool_)
    known = places.known & ~scattered & ~alone
    if not all_items:
        drop("alone_in_query", alone)
        drop("place_not_known", ~known)
    return _Chosen(kept, known, estimated & np.isin(places.group, places.group[kept]), places, left)


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


def _find_repeated(pairs: pa.Table) -> NDArray[np.bool_]:
    """Pairs that stand for more than one item."""
    columns = id_columns(pairs, pairs.column_names)
    first = match(columns, columns)
    return np.bincount(first)[first] > 1


def _find_scattered(code: Ints, component: Ints, kept: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Items of queries whose kept items have several components."""
    n = int(code.max(initial=-1)) + 1
    least, most = np.full(n, np.iinfo(np.int64).max), np.full(n, -1)
    np.minimum.at(least, code[kept], component[kept])
    np.maximum.at(most, code[kept], component[kept])
    differ: NDArray[np.bool_] = least < most
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
