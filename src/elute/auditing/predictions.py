"""The click probabilities that fits predict.

A count model predicts α(t)·r(x) + β(t), with β = 0 unless the fit has offsets. What it cannot know follows three rules,
the same for every model, so that figures compare:

- an item that the fit has not seen (or has no number for) has the mean relevance of its items, by impressions;
- a factor that the fit has not seen has the mean propensity of its factors;
- a probability of 0 or 1, or beyond, is one half click away from it: 1/(2(n + 1)), with n the item's impressions in
  the fit. Otherwise a single click on an item that never had one would make a perplexity infinite.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute._util.matching import id_columns, match
from elute.auditing.perplexity import Losses
from elute.cells.counts import Counts
from elute.cells.factors import is_position
from elute.cells.roles import Roles
from elute.errors import EluteError
from elute.fits.fit import Fit

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Predicted(NamedTuple):
    """What perplexity adds up, alone and given the clicks above; the log-likelihood by query; and which share of
    impressions each rule above was used for."""

    losses: Losses
    conditional: Losses
    by_query: Floats
    unseen_items: float
    unseen_factors: float
    certain: float


@dataclass(frozen=True, eq=False)
class Queries:
    """The clusters that a log's impressions come in: its queries, or its items where these are not of one query each.
    `of_item`: by item of the counts. `names`: of queries, None for items."""

    of_item: Ints
    impressions: Floats
    names: pa.Array | None

    @classmethod
    def of(cls, counts: Counts, column: str | None) -> Queries:
        code, names = np.arange(counts.n_items), None
        if column is not None and column in counts.items.column_names:
            coded = id_columns(counts.items, [column])[0].dictionary_encode()
            code, names = coded.indices.to_numpy().astype(np.int64), coded.dictionary
        return cls(code, np.bincount(code, counts.item_impressions).astype(np.float64), names)

    @property
    def n(self) -> int:
        return len(self.impressions)

    def find(self, names: pa.Array) -> Ints:
        """The number of each of some queries."""
        if self.names is None:
            raise EluteError("the log has no query column that tells its items apart")
        return match([names.cast(pa.string())], [self.names])


@dataclass(frozen=True, eq=False)
class Subject:
    """A fit under audit, in the log's order of columns. `relevance` by item, NaN where the fit has none."""

    fit: Fit
    items: list[pa.Array]
    relevance: Floats
    impressions: Floats

    @classmethod
    def from_fit(cls, fit: Fit, roles: Roles) -> Subject:
        """Make sure that a fit speaks of the log's items and factors."""
        fit.require_columns(roles)
        values = [np.asarray(fit.relevance[name].to_numpy(), np.float64) for name in ("relevance", "impressions")]
        return cls(fit, id_columns(fit.relevance, roles.item), values[0], values[1])


def ranks_of(factors: pa.Table) -> tuple[Ints, list[Any] | None]:
    """The rank, from 1, of every factor, and the position that each rank stands for.

    Ranks are the distinct positions in rising order; where no bias column is a position, all factors share one.
    """
    column = next((name for name in factors.column_names if is_position(factors, name)), None)
    if column is None:
        return np.ones(factors.num_rows, np.int64), None
    positions, code = np.unique(factors[column].to_numpy(), return_inverse=True)
    return code.astype(np.int64) + 1, positions.tolist()


def predict_cells(subject: Subject, counts: Counts, queries: Queries) -> Predicted:
    """Of a count model on a log's cells (Eq. 2 of the CMIP paper, its sums over impressions taken by cell)."""
    names = counts.factors.column_names
    table = subject.fit.propensities
    if table is None:
        raise EluteError(f"{subject.fit.label} is a session click model, which predicts pages, not cells")
    alpha = np.asarray(table["propensity"].to_numpy(), np.float64)
    beta = (
        np.asarray(table["offset"].to_numpy(), np.float64) if "offset" in table.column_names else np.zeros_like(alpha)
    )
    factor = match(id_columns(counts.factors, names), id_columns(table, names))
    item = match(id_columns(counts.items, counts.items.column_names), subject.items)
    known_items, known_factors = np.isfinite(subject.relevance), np.isfinite(alpha + beta)
    if not known_items.any() or not known_factors.any():
        raise EluteError(f"{subject.fit.label} has no relevance or no propensity to predict with; fit again")
    typical = np.average(subject.relevance[known_items], weights=subject.impressions[known_items])
    seen_item = (item >= 0) & known_items[item]
    seen_factor = (factor >= 0) & known_factors[factor]
    relevance = np.where(seen_item, subject.relevance[item], typical)
    of_item = np.repeat(np.arange(counts.n_items), np.diff(counts.offsets))
    a, b = (np.where(seen_factor, v[factor], v[known_factors].mean())[counts.factor] for v in (alpha, beta))
    least = 0.5 / (np.where(item >= 0, subject.impressions[item], 0.0) + 1)[of_item]
    p = a * relevance[of_item] + b
    certain = (p <= 0) | (p >= 1)
    p = np.where(p <= 0, least, np.where(p >= 1, 1 - least, p))
    shown = counts.impressions.astype(np.float64)
    shares = (~seen_item[of_item], ~seen_factor[counts.factor], certain)
    losses, clicks = compute_cell_losses(p, counts), counts.clicks.astype(np.float64)
    likely = clicks * np.log(p) + (shown - clicks) * np.log1p(-p)
    by_query = np.bincount(queries.of_item[of_item], likely, queries.n).astype(np.float64)
    used = [float(shown[where].sum() / shown.sum()) for where in shares]
    # Clicks of a page are independent to a count model: those above tell it nothing.
    return Predicted(losses, losses, by_query, used[0], used[1], used[2])


def compute_cell_losses(probabilities: Floats, counts: Counts) -> Losses:
    """Of click probabilities by cell, all strictly between 0 and 1."""
    rank = ranks_of(counts.factors)[0][counts.factor] - 1
    shown, clicks = counts.impressions.astype(np.float64), counts.clicks.astype(np.float64)
    bits = -(clicks * np.log2(probabilities) + (shown - clicks) * np.log2(1 - probabilities))
    return Losses(np.bincount(rank, bits).astype(np.float64), np.bincount(rank, shown).astype(np.int64))


def compute_rank_losses(counts: Counts) -> Losses:
    """The losses of a reader who knows the log's click rate at each rank and nothing of items: what a model of items
    must beat. The rate has half a click and half a skip added, so that it is never 0 or 1."""
    rank = ranks_of(counts.factors)[0][counts.factor] - 1
    shown, clicks = (np.bincount(rank, amounts.astype(np.float64)) for amounts in (counts.impressions, counts.clicks))
    return compute_cell_losses(((clicks + 0.5) / (shown + 1))[rank], counts)


def list_notes(in_sample: bool, predicted: Predicted, elsewhere: Predicted | None) -> tuple[str, ...]:
    """What a reader of predictions should know."""
    notes = []
    if in_sample:
        notes.append("in-sample: perplexity is on the log that the model was fitted to, and no model is chosen by it")
    for of, part in (("the log", predicted), ("the shifted log", elsewhere)):
        if part is None:
            continue
        for share, what in (
            (part.unseen_items, "are of items that the fit does not know: predicted as typical ones"),
            (part.unseen_factors, "are of factors that the fit does not know: predicted as typical ones"),
            (part.certain, "had a prediction of 0 or 1, or beyond: moved half a click away"),
        ):
            if share > 0:
                notes.append(f"{share:.2%} of the impressions of {of} {what}")
    return tuple(notes)
