"""Errors without the delta method: draws of the log, each fitted and valued anew.

Where clicks are independent, a draw has each cell's impressions as often as a Poisson variable of their number says,
and clicks of them as likely as the fit has it. (To draw the log's own clicks would not do: most cells have few, and a
draw that repeats them takes chance for certain.) Otherwise whole clusters are drawn: queries, sessions, users.
Propensities are refitted to each draw, from the fit on and by its kind of likelihood; pages, slots and relevance follow
from the draw. The spread of the draws is the standard error.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elute.cells.counts import Cells, Clustered, Counts
from elute.errors import EluteError
from elute.estimate.models.pbm import PBM
from elute.estimate.priors.strength import drop_unshown
from elute.estimate.solve.problem import Problem
from elute.kernels.merge import merge_cells
from elute.progress import Progress, silent
from elute.valuing.inputs.examination import Examination
from elute.valuing.inputs.exposure import find_item_components, plan_exposure
from elute.valuing.inputs.traffic import collect_slots
from elute.valuing.worth.contrasts import Contrasts, to_number
from elute.valuing.worth.estimators import find_posterior
from elute.valuing.worth.find import Setting, find_worth

Floats = NDArray[np.float64]

_WIDE = 1.959964


def resample(
    name: str,
    setting: Setting,
    counts: Counts,
    found: Contrasts,
    replicates: int,
    clustered: Clustered | None,
    seed: int,
    progress: Progress = silent,
) -> list[dict[str, Any]]:
    """The field `bootstrap` of each ranking: the interval of its difference by so many draws, beside the delta method's
    standard error. `clustered`: cells by cluster; None: impressions are drawn."""
    if setting.seen.affine or setting.seen.errors != "this log":
        raise EluteError("`bootstrap=` refits propensities: it needs a fit of pbm to this log")
    rng, drawn = np.random.default_rng(seed), []
    for number in range(replicates):
        progress("bootstrap", number + 1, replicates)
        cells = _draw_impressions(setting, rng) if clustered is None else _draw_clusters(setting, clustered, rng)
        drawn.append(_value(name, setting, counts, cells))
    values = np.stack(drawn)
    out = []
    for column, one in zip(values.T, found.differences, strict=True):
        known = column[np.isfinite(column)]
        se = float(known.std(ddof=1)) if len(known) > 1 else math.nan
        fields = {"low": one.value - _WIDE * se, "high": one.value + _WIDE * se, "se": se, "delta_se": one.se}
        out.append({"replicates": len(known)} | {key: to_number(float(value)) for key, value in fields.items()})
    return out


def _draw_impressions(setting: Setting, rng: np.random.Generator) -> Cells:
    cells, seen, posterior = setting.traffic.cells, setting.seen, setting.posterior
    if posterior is None:
        raise ValueError("clicks are drawn from posteriors")
    r = np.repeat(np.nan_to_num(np.mean([one.mean for one in setting.told], axis=0)), np.diff(cells.offsets))
    shown = rng.poisson(cells.impressions)
    clicks = rng.binomial(shown, np.clip(r * seen.usable[cells.factor], 0.0, 1.0))
    return Cells(cells.offsets, cells.factor, shown.astype(np.uint64), clicks.astype(np.uint64))


def _draw_clusters(setting: Setting, rows: Clustered, rng: np.random.Generator) -> Cells:
    cells, factors = setting.traffic.cells, len(setting.seen.alpha)
    key = np.repeat(np.arange(setting.traffic.n_items), np.diff(cells.offsets)) * factors + cells.factor
    cell = np.searchsorted(key, np.asarray(rows.item, np.int64) * factors + np.asarray(rows.factor, np.int64))
    number = int(rows.cluster.max()) + 1
    times = np.bincount(rng.integers(number, size=number), minlength=number)[rows.cluster]
    shown, clicks = (np.bincount(cell, times * amounts, len(key)).astype(np.uint64) for amounts in rows[3:5])
    return Cells(cells.offsets, cells.factor, shown, clicks)


def _value(name: str, setting: Setting, counts: Counts, cells: Cells) -> Floats:
    """The differences by one draw, over the queries that it values."""
    seen, traffic = setting.seen, setting.traffic
    kept = drop_unshown(cells)
    o = _refit(kept, seen, counts)
    component = np.where(o > 0, seen.component, -1).astype(np.int32)
    again = Examination(
        np.where(component >= 0, o, np.nan), seen.beta, seen.log_se, component, seen.group, "none", seen.binomial, False
    )
    drawn = collect_slots(kept, traffic.query, traffic.n_queries, traffic.place)
    of_item = np.where(np.diff(kept.offsets) > 0, find_item_components(drawn, again), -1).astype(np.int32)
    exposures = [plan_exposure(drawn, one.ranking, again, of_item) for one in setting.exposures]
    queries = np.logical_and.reduce([one.valued for one in exposures]) & (drawn.pages > 0)
    queries &= np.logical_and.reduce([one.valued for one in setting.exposures])
    if not queries.any():
        return np.full(len(exposures), np.nan)
    posterior = find_posterior(kept, again) if name in ("model", "dr") else None
    worth = find_worth(name, Setting(drawn, again, exposures, posterior, 1.0, setting.clip), queries)
    return np.array([worth.value[row] - worth.value[base] for row, base in enumerate(worth.base, 1)])


def _refit(cells: Cells, seen: Examination, counts: Counts) -> Floats:
    """Propensities of a draw, by factor of the log; 0 where it does not tell."""
    merged = seen.group
    kept = Cells(*merge_cells(np.unique(cells.offsets), *cells[1:], merged))
    groups = int(merged.max()) + 1
    first = np.unique(merged, return_index=True)[1]
    model = PBM(relevance_prior="none" if seen.binomial else "beta", start=np.where(seen.usable > 0, seen.usable, 1.0))
    found = model.fit_factors(Problem(kept, merged, np.maximum(seen.component[first], 0), counts.factors))
    o = np.where(found.apart, 0.0, found.o)[:groups]
    return np.asarray(o[merged])
