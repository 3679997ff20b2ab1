"""The posteriors of relevance that a fit holds, or that can be had from its clicks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute.fits.fit import Fit
from elute.known.clicks_alone import infer_posteriors

Floats = NDArray[np.float64]

CLICKS_ALONE = (
    "the fit holds no posteriors, so they were made from its items' clicks and exposure alone: they leave out the "
    "uncertainty of the model's other parameters, and places look surer than they are"
)


_OWN = ("shape", "rate", "evidence")
"""Columns of a fit that holds posteriors."""


class ItemPosteriors(NamedTuple):
    """Gamma distributions: of each row of a fit's relevance, NaN where there is none, and of all relevances.
    `evidence`: the share of each that is the item's own (`elute.estimate.priors.gamma`). `clicks_alone`: whether the
    fit had none of its own."""

    shape: Floats
    rate: Floats
    evidence: Floats
    population: tuple[float, float]
    clicks_alone: bool


def read_posteriors(fit: Fit) -> ItemPosteriors:
    """Of the fit itself where it has them, else of its clicks."""
    table, population = fit.relevance, fit.summary.get("posterior")
    if population is not None and set(_OWN) <= set(table.column_names):
        shape, rate, evidence = (_read_column(table, name) for name in _OWN)
        return ItemPosteriors(shape, rate, evidence, (float(population["shape"]), float(population["rate"])), False)
    shape, rate, (a, b) = infer_posteriors(
        *(_read_column(table, name) for name in ("clicks", "relevance", "impressions"))
    )
    exposure = rate - b
    return ItemPosteriors(
        shape, rate, exposure / (exposure + min(max(a, 1.0), 3.0) * b / a), (float(a), float(b)), True
    )


def _read_column(table: pa.Table, name: str) -> Floats:
    return np.asarray(table[name].cast(pa.float64()).to_numpy(), np.float64)
