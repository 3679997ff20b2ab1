"""A fit made again on other clicks: what its relevance would be, had the same impressions been clicked otherwise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute._util.matching import id_columns, match
from elute.auditing.cmip.population import ClickLaw
from elute.auditing.predictions import Subject
from elute.cells.counts import Counts, sum_by_item
from elute.cells.formula import BiasFormula
from elute.errors import EluteError
from elute.estimate.models.base import Estimator
from elute.estimate.models.ipw import IPW
from elute.estimate.models.pbm import PBM
from elute.estimate.models.registry import GIVEN, build
from elute.fits.fit import Fit
from elute.log import ClickLog, read_log
from elute.progress import Progress, silent

Floats = NDArray[np.float64]

_SAME_MAXIMUM = ("em", "two-tower")
"""They climb the likelihood that pbm maximises, with relevance up to 1, in thousands of steps; redrawn clicks are
fitted by pbm, and relevance above 1 is cut."""
_OF_MODELS = ("seed", "tolerance", "max_iter", "prior", "relevance_prior", "clip", "self_normalised", "policy_aware")


@dataclass(frozen=True, eq=False)
class Refit:
    """`law`: how the fit says that clicks come about. `again`: relevance by item from other clicks on these cells."""

    counts: Counts
    law: ClickLaw
    again: Callable[[NDArray[np.uint64]], Floats]


class _AsFitted:
    """The merging of a fit, read off its propensities: merged factors have one."""

    method = "merge"

    def __init__(self, table: pa.Table) -> None:
        values = np.stack([table[name].to_numpy().astype(np.float64) for name in ("component", "propensity")])
        self._code = np.unique(np.nan_to_num(values, nan=-1.0), axis=1, return_inverse=True)[1].ravel()
        self._table = table

    def pairs_of(self, factors: pa.Table) -> NDArray[np.integer]:
        names = factors.column_names
        code = self._code[match(id_columns(factors, names), id_columns(self._table, names))]
        order = np.argsort(code, kind="stable")
        same = code[order][1:] == code[order][:-1]
        return np.stack((order[:-1][same], order[1:][same]), axis=1)


def is_in_sample(subject: Subject, log: ClickLog, progress: Progress = silent) -> bool:
    """Whether the fit was made from this very log, or from some of its rows: it goes by its name, with the same filters
    or none, or has the same impressions and clicks of every item. A table in memory has no name to go by."""
    filters = log.filters.to_dict() if log.filters else None
    named = subject.fit.provenance.log == log.engine.label and filters in (None, subject.fit.provenance.filters)
    if named and isinstance(log.source, str | Path):
        return True
    return has_same_clicks(subject.fit, log.counts(progress))


def has_same_clicks(fit: Fit, counts: Counts) -> bool:
    """Item by item."""
    table, names = fit.relevance, counts.items.column_names
    if table.num_rows != counts.n_items:
        return False
    at = match(id_columns(counts.items, names), id_columns(table, names))
    if (at < 0).any():
        return False
    return all(
        bool((np.asarray(table[name].to_numpy())[at] == sum_by_item(counts.offsets, part)).all())
        for name, part in (("impressions", counts.impressions), ("clicks", counts.clicks))
    )


@contextmanager
def open_fitted(subject: Subject, log: ClickLog, progress: Progress = silent) -> Iterator[ClickLog | None]:
    """The log that a fit was made from: `log`, or the one that it names; None where that is gone."""
    if has_same_clicks(subject.fit, log.counts(progress)):
        yield log
        return
    made = subject.fit.provenance
    options = {**log.options, "where": None, "max_position": None, "min_factor_impressions": None}
    options |= {name: value for name, value in (made.filters or {}).items() if name in options}
    try:
        opened = read_log(made.log, **options)
        same = has_same_clicks(subject.fit, opened.counts(progress))
    except EluteError:
        yield None
        return
    with opened:
        yield opened if same else None


def prepare_refit(fit: Fit, counts: Counts) -> Refit:
    """How to fit a count model again."""
    table = fit.propensities
    if table is None:
        raise EluteError(f"{fit.label} is a session click model; it is fitted again to pages, not to cells")
    names = counts.factors.column_names
    at = match(id_columns(counts.factors, names), id_columns(table, names))
    if (at < 0).any():
        raise EluteError(f"{fit.label} lacks propensities of some factors of the log it names; fit again")
    alpha = np.nan_to_num(table["propensity"].to_numpy().astype(np.float64)[at])
    beta = np.zeros_like(alpha)
    if "offset" in table.column_names:
        beta = np.nan_to_num(table["offset"].to_numpy().astype(np.float64)[at])
    plan, made = _AsFitted(table) if fit.provenance.options.get("plan") else None, fit.provenance.formula
    counts = counts.tie(None if made is None else BiasFormula.parse(made))
    model = _rebuild(fit, alpha, beta)
    if isinstance(model, PBM):
        model = model.fit(counts, plan, allow_unidentified=True).copy_for_refit()

    def again(clicks: NDArray[np.uint64]) -> Floats:
        drawn = replace(counts, clicks=clicks)
        found = np.asarray(model.fit(drawn, plan, allow_unidentified=True).relevance_values_, np.float64)
        return np.minimum(found, 1.0) if fit.model in _SAME_MAXIMUM else found

    return Refit(counts, ClickLaw(alpha, beta), again)


def _rebuild(fit: Fit, alpha: Floats, beta: Floats) -> Estimator:
    """The model, unfitted, with what it was given."""
    if fit.model in _SAME_MAXIMUM:
        return PBM(relevance_prior="none")
    if fit.model == "score-adjusted":  # the log's scores are not at hand: its propensities are as given
        return IPW(propensities=alpha, policy_aware=True)
    given: dict[str, Any] = {name: fit.provenance.options.get(name) for name in _OF_MODELS}
    if fit.model in GIVEN:
        given["propensities"] = alpha
    if fit.model == "affine-ipw":
        given["offsets"] = beta
    if fit.model in ("dla", "affine"):
        given["start"] = np.clip(alpha, 1e-3, 1.0)
    return build(fit.model, **given)
