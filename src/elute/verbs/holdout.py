"""`elute.fit` with `holdout`: a part of the log that the fit does not see, and how well it predicts that part.

The parts are made by SQL over the rows, so that every model reads them as it reads any log. A page (or a query) is held
out where a hash of its id is small; by time, the last of them are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from elute._util.matching import id_columns, match
from elute.auditing.predictions import Subject, ranks_of
from elute.cells.counts import Counts
from elute.engines.duckdb.source import DuckDBSource
from elute.engines.sql import quoting
from elute.errors import EluteError
from elute.fits.fit import Fit
from elute.log import ClickLog, read_log
from elute.progress import Progress
from elute.sessions.scores import HeldOutFigure, PageScores, compare, lose_bits, measure_mean, measure_perplexity

By = Literal["session", "query", "time"]
TIME = "timestamp"
"""The column that says when a page was shown."""

_PARTS = 1_000_000
Floats = NDArray[np.float64]


def split_log(log: ClickLog, share: float, by: By, time: str, seed: int) -> tuple[ClickLog, ClickLog]:
    """The log without its held-out part, and that part."""
    if not 0.0 < share < 1.0:
        raise EluteError(f"`holdout=` is {share}; give a share of the log between 0 and 1, such as 0.2")
    if "where" not in log.options or log.options.get("engine") != "duckdb":
        raise EluteError(f"{log.engine.label} cannot be split: `holdout=` needs the rows of a log, read by duckdb")
    held = _write_condition(log, share, by, time, seed)
    where = log.options["where"]
    both = [f"({where}) AND {part}" if where else part for part in (f"NOT ({held})", f"({held})")]
    train, rest = (read_log(log.source, **{**log.options, "where": part}) for part in both)
    return train, rest


def find_held_out(fits: Sequence[Fit], log: ClickLog) -> tuple[ClickLog, str] | None:
    """The part of a log that none of the fits has seen, and what it is, where all of them were made from this log with
    the same part held out."""
    made = [fit.provenance for fit in fits]
    splits: list[dict[str, Any]] = [
        {name: one.options.get(name) for name in ("holdout", "by", "time", "seed")} for one in made
    ]
    first, known = splits[0], {one.log for one in made} == {log.engine.label} and not log.filters
    if first["holdout"] is None or not known or any(one != first for one in splits):
        return None
    share, by = float(first["holdout"]), cast(By, first["by"] or "session")
    held = split_log(log, share, by, first["time"] or TIME, first["seed"] or 0)[1]
    return held, f"predicted are the {share:.0%} of the log that were held out by {by}: no fit has seen them"


def _write_condition(log: ClickLog, share: float, by: By, time: str, seed: int) -> str:
    columns = {"session": log.roles.session, "query": log.roles.query, "time": time}
    column = columns[by]
    if column is None or column not in log.engine.columns:
        option = {"session": "session", "query": "query", "time": "time"}[by]
        raise EluteError(
            f"{log.engine.label} has no column to hold out by {by}; name it with `{option}=`, or hold out by another"
        )
    named = quoting.name(column)
    if by != "time":
        return f"hash({named}::VARCHAR || '#{seed}') % {_PARTS} < {round(share * _PARTS)}"
    source = DuckDBSource(log.source)
    try:
        with source.translate_errors():
            found = source.connection.execute(
                f"SELECT quantile_disc({named}, {1.0 - share})::VARCHAR FROM {source.relation}"
            ).fetchone()
    finally:
        source.close()
    if found is None or found[0] is None:
        raise EluteError(f"{log.engine.label}: '{column}' has no values to hold out by")
    return f"{named} > {quoting.text(found[0])}"


def score_fit(fit: Fit, train: ClickLog, held: ClickLog, progress: Progress) -> dict[str, Any]:
    """The fields of `holdout`: how well a fit to `train` predicts `held`, beside the click rate of each rank."""
    scored = _score_sessions(fit, train, held) if fit.propensities is None else _score_cells(fit, train, held, progress)
    scores, by_rank, about = scored
    against = compare(scores.conditional_perplexity, by_rank)
    return {
        **about,
        **scores.to_dict(),
        "rank_perplexity": by_rank.to_dict(),
        "against_rank": against.to_dict(),
        "sentence": _write_sentence(scores, by_rank, against.low, against.high),
    }


def _write_sentence(scores: PageScores, by_rank: HeldOutFigure, low: float, high: float) -> str:
    given = scores.conditional_perplexity.to_dict()
    told = "cannot be told from" if not (high < 0 or low > 0) else "better than" if high < 0 else "WORSE than"
    ends = "" if given["low"] is None else f" ({given['low']:.4f} to {given['high']:.4f})"
    return (
        f"Held-out perplexity given the clicks above {given['estimate']:.4f}{ends}, "
        f"{told} the click rate of each rank ({by_rank.estimate:.4f})."
    )


Scored = tuple[PageScores, HeldOutFigure, dict[str, Any]]


def _score_sessions(fit: Fit, train: ClickLog, held: ClickLog) -> Scored:
    from elute.io.sessions import read_sessions
    from elute.sessions.log import open_pages

    found = fit.click_model()
    if found is None:
        raise EluteError(f"{fit.label} is not a session click model")
    model, vocabulary = found
    session = held.roles.session or fit.provenance.session
    with open_pages(held, session) as (path, columns):
        pages = read_sessions(path, columns, vocabulary)[0]
        own, names = read_sessions(path, columns)
    if pages.longest > model.ranks:
        raise EluteError(
            f"a held-out page shows {pages.longest} results, the longest fitted one {model.ranks}; use `max_position=`"
        )
    with open_pages(train, session) as (path, columns):
        rates = _rate_ranks(*_count_ranks(read_sessions(path, columns)[0], model.ranks))
    mask, clicked, query, queries = pages.mask, pages.clicked, own.query, len(names.queries)
    place = np.broadcast_to(np.arange(pages.width), mask.shape)[mask]
    of_query = np.repeat(query, pages.length)

    def measure(p: Floats) -> HeldOutFigure:
        return measure_perplexity(lose_bits(p[mask], clicked[mask]), np.ones(mask.sum()), place, of_query, queries)

    alone, given = model.predict_clicks(pages), model.predict_conditional_clicks(pages)
    likelihood = model.log_likelihood(pages)
    scores = PageScores(measure(alone), measure(given), measure_mean(likelihood, query, queries))
    by_rank = measure(np.broadcast_to(rates[: pages.width], mask.shape))
    unseen = float((pages.doc[mask] == len(vocabulary.documents)).mean())
    about = {"pages": len(pages), "queries": queries, "impressions": int(mask.sum()), "unseen_items": unseen}
    return scores, by_rank, about


def _count_ranks(pages: Any, ranks: int) -> tuple[Floats, Floats]:
    shown, clicks = np.zeros(ranks), np.zeros(ranks)
    width = min(ranks, pages.width)
    shown[:width], clicks[:width] = pages.mask.sum(axis=0)[:width], pages.clicked.sum(axis=0)[:width]
    return shown, clicks


def _rate_ranks(shown: Floats, clicks: Floats) -> Floats:
    return (clicks + 0.5) / (shown + 1.0)


def _score_cells(fit: Fit, train: ClickLog, held: ClickLog, progress: Progress) -> Scored:
    """Of a count model, which predicts a click from its cell alone; it knows the clicks above if the factors do."""
    counts, learnt = held.counts(progress), train.counts(progress)
    p, unseen = _predict_cells(fit, counts, held)
    query, queries = _number_queries(counts, held)
    item = np.repeat(np.arange(counts.n_items), np.diff(counts.offsets))
    rank = ranks_of(counts.factors)[0][counts.factor] - 1
    shown, clicks = counts.impressions.astype(np.float64), counts.clicks.astype(np.float64)

    def measure(q: Floats) -> HeldOutFigure:
        hit, miss = (lose_bits(q, np.full(len(q), what)) for what in (True, False))
        bits = clicks * hit + (shown - clicks) * miss
        return measure_perplexity(bits, shown, rank, query[item], queries)

    of_train = ranks_of(learnt.factors)[0][learnt.factor] - 1
    amount = int(max(rank.max(initial=0), of_train.max(initial=0))) + 1
    both = (learnt.impressions.astype(np.float64), learnt.clicks.astype(np.float64))
    totals = [np.asarray(np.bincount(of_train, x, amount), np.float64) for x in both]
    figure = measure(p)
    about = {
        "pages": None,
        "queries": queries,
        "impressions": int(shown.sum()),
        "unseen_items": float(shown[unseen[item]].sum() / shown.sum()),
    }
    return PageScores(figure, figure, None), measure(_rate_ranks(totals[0], totals[1])[rank]), about


def _predict_cells(fit: Fit, counts: Counts, held: ClickLog) -> tuple[Floats, NDArray[np.bool_]]:
    """P(click) by cell, by the rules of `elute.auditing.predictions`; and by item, whether the fit knows it not."""
    subject, table = Subject.from_fit(fit, held.roles), fit.propensities
    if table is None:
        raise EluteError(f"{fit.label} has no propensities to predict with")
    names = counts.factors.column_names
    alpha = np.asarray(table["propensity"].to_numpy(), np.float64)
    offset = "offset" in table.column_names
    beta = np.asarray(table["offset"].to_numpy(), np.float64) if offset else np.zeros_like(alpha)
    factor = match(id_columns(counts.factors, names), id_columns(table, names))
    item = match(id_columns(counts.items, counts.items.column_names), subject.items)
    good_items, good_factors = np.isfinite(subject.relevance), np.isfinite(alpha + beta)
    typical = np.average(subject.relevance[good_items], weights=subject.impressions[good_items])
    seen_item, seen_factor = (item >= 0) & good_items[item], (factor >= 0) & good_factors[factor]
    relevance = np.where(seen_item, subject.relevance[item], typical)
    of_item = np.repeat(np.arange(counts.n_items), np.diff(counts.offsets))
    a, b = (np.where(seen_factor, v[factor], v[good_factors].mean())[counts.factor] for v in (alpha, beta))
    least = 0.5 / (np.where(item >= 0, subject.impressions[item], 0.0) + 1)[of_item]
    return np.clip(a * relevance[of_item] + b, least, 1.0 - least), ~seen_item


def _number_queries(counts: Counts, log: ClickLog) -> tuple[NDArray[np.int64], int]:
    """The query of every item, by number; where items have none, each is its own."""
    name = log.roles.query
    if name is None or name not in counts.items.column_names:
        return np.arange(counts.n_items), counts.n_items
    column = counts.items[name].combine_chunks()
    codes = column.dictionary_encode() if not hasattr(column, "indices") else column
    return codes.indices.to_numpy().astype(np.int64), len(codes.dictionary)
