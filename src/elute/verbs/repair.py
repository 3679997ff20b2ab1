"""`elute.merge`, `elute.swap` and `elute.link`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias, Unpack

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute.auditing.labels import TableSource, read_relevance
from elute.cells.roles import ColumnNames
from elute.checking.check import Check
from elute.engines.duckdb.source import DuckDBSource
from elute.errors import EluteError
from elute.estimate.scored.rows import ScoreScale
from elute.known.precision import TARGET
from elute.log import LogOptions, LogSource
from elute.options.takes import takes
from elute.progress import Progress, silent
from elute.repair import given
from elute.repair.given import Given
from elute.repair.merge_plan import plan_merges
from elute.repair.plan import MergePlan, ScorePlan, SwapPlan
from elute.repair.scored.make import plan_score
from elute.repair.spending.objective import Objective
from elute.repair.swap_plan import TARGET_SE, plan_swaps
from elute.repair.swapping.constraints import SHARE, Constraints
from elute.repair.swapping.designs import TOP
from elute.repair.weigh import Preference, weigh_merges
from elute.verbs.source import as_check

Floats = NDArray[np.float64]
Table: TypeAlias = "pa.Table | str | Path"
"""A table, or the file of one."""


@takes()
def merge(
    check: Check | LogSource,
    *,
    bias_features: str | Sequence[str] | Table | None = None,
    weights: Mapping[str, float] | None = None,
    propensity: Given | None = None,
    prefer: Preference = "cost",
    consequence: bool = True,
    date: str | None = None,
    progress: Progress = silent,
    **columns: Unpack[LogOptions],
) -> MergePlan:
    """Plan the merges of least total cost (Algorithm 3): K - 1 pairs of factors for K components.

    `check`: of `elute.check`, or what that takes. The cost of a pair is the distance of its factors' `bias_features`:
    names of bias columns (by default all), or a table of vectors keyed by them; `weights` weighs them (see
    `elute.repair.features`). `propensity`, by factor where it is known from elsewhere, adds what it implies and the
    error bound of Propositions 2 and 4. `date` is kept in the plan as it is given.

    The plan says what it does to relevance (`plan.consequence`), and `plan.flips` when each query's order flips; for
    that the position-based model is fitted under it, unless `consequence` is false. `prefer="distortion"` plans the
    tree whose longest path is shortest in place of the cheapest. Where a formula ties factors a plan is a set of equal
    pairs that determines all ratios: the cheapest, or the one by which they are off least.
    """
    verdict = as_check(check, progress=progress, **columns)
    names, vectors = _features(verdict, bias_features)
    known = None if propensity is None else given.align_propensity(verdict, propensity)
    if consequence:
        plan = weigh_merges(
            verdict,
            features=names,
            vectors=vectors,
            weights=weights,
            propensity=known,
            prefer=prefer,
            date=date,
            progress=progress,
        )
    elif prefer == "cost":
        plan = plan_merges(verdict, features=names, vectors=vectors, weights=weights, propensity=known, date=date)
    else:
        raise EluteError("a plan of least distortion weighs consequences: leave out `consequence=False`")
    made = plan.provenance.with_options(
        bias_features=bias_features,
        weights=weights,
        propensity=_name(propensity),
        prefer=None if prefer == "cost" else prefer,
        date=date,
    )
    return replace(plan, provenance=made)


@takes()
def swap(
    check: Check | LogSource,
    relevance: Given | None = None,
    propensity: Given | None = None,
    *,
    target_se: float = TARGET_SE,
    constraints: Constraints | None = None,
    max_position_change: float | None = None,
    only_positions: Sequence[float] | None = None,
    exclude_items: Table | None = None,
    min_impressions: int = 0,
    fixed: str | Sequence[str] = (),
    movable: str | Sequence[str] = (),
    share: float = SHARE,
    days: float | None = None,
    log_days: float | None = None,
    top: int = TOP,
    budget: int | None = None,
    objective: Objective = "max",
    first: MergePlan | None = None,
    date: str | None = None,
    progress: Progress = silent,
    **columns: Unpack[LogOptions],
) -> SwapPlan:
    """Plan what to show elsewhere so that clicks tie all of the log together, by a spanning tree of least cost
    (Algorithm 2), as a search engine could do it: an item moves within pages of its query, at places that these have.
    Where a formula ties factors: by the links of least cost that leave no ratio open, usually fewer.

    `check`: of `elute.check`, or what that takes. `relevance` by item and `propensity` by factor may come from
    anywhere; without them the position-based model is fitted under `first`, by default the cheapest merge plan. Each
    swap says how many impressions it takes to bring the standard error of the new link's log-propensity ratio under
    `target_se`. What a real system allows is said by `constraints`, or one by one: `fixed` and `movable` bias columns,
    the `share` of a query's pages that may be changed, for how many `days` (with `log_days`, those of the log). With a
    `budget` of impressions the plan also spends what the links leave, where it most reduces the largest (or the mean)
    standard error. `top`: how many results the design shuffles that the plan is compared with.
    """
    if (relevance is None) != (propensity is None):
        raise EluteError("give both `relevance=` and `propensity=`, or neither (then both are fitted)")
    verdict = as_check(check, progress, TARGET, **columns)
    limits = constraints or Constraints(
        max_position_change=max_position_change,
        only_positions=only_positions,
        exclude_items=_table(exclude_items),
        min_impressions=min_impressions,
        fixed=_list_names(fixed),
        movable=_list_names(movable),
        share=share,
        days=days,
        log_days=log_days,
    )
    r = None if relevance is None else given.align_relevance(verdict, relevance)
    o = None if propensity is None else given.align_propensity(verdict, propensity)
    plan = plan_swaps(
        verdict,
        r,
        o,
        target_se=target_se,
        constraints=limits,
        budget=budget,
        objective=objective,
        first=first,
        top=top,
        date=date,
        progress=progress,
    )
    merging = {} if first is None else first.provenance.options
    made = plan.provenance.with_options(
        fixed=list(_list_names(fixed)) or None,
        movable=list(_list_names(movable)) or None,
        share=None if share == SHARE else share,
        days=days,
        log_days=log_days,
        top=None if top == TOP else top,
        bias_features=merging.get("bias_features"),
        weights=merging.get("weights"),
        relevance=_name(relevance),
        propensity=_name(propensity),
        target_se=None if target_se == TARGET_SE else target_se,
        max_position_change=max_position_change,
        only_positions=only_positions,
        exclude_items=exclude_items,
        min_impressions=min_impressions or None,
        budget=budget,
        objective=None if objective == "max" else objective,
        date=date,
    )
    return replace(plan, provenance=made)


@takes()
def link(
    check: Check | LogSource,
    score: ColumnNames,
    *,
    score_scale: ScoreScale = "raw",
    labels: TableSource | None = None,
    date: str | None = None,
    progress: Progress = silent,
    **columns: Unpack[LogOptions],
) -> ScorePlan:
    """Plan to put all components on one scale by the score that results were ranked by.

    `check`: of `elute.check`, or what that takes. `score` (a column, or several) and `score_scale`: as for `elute.fit`
    with the model score-adjusted. Ratios within a component come from items shown under several of its factors, and,
    where these know them too loosely, from the score too, by the precision of each. `plan.assumption` says what rests
    on the score, and whether the log bears that out; `labels` (items and their `grade` or `relevance`) test it further.
    `elute.fit` with the plan combines the two anew.
    """
    verdict = as_check(check, progress=progress, **columns)
    judged = None if labels is None else read_relevance(labels, verdict.log, progress)
    plan = plan_score(verdict, score, score_scale=score_scale, labels=judged, date=date, progress=progress)
    scale = None if score_scale == "raw" else score_scale
    named = labels if isinstance(labels, str | Path) else None
    made = plan.provenance.with_options(score=",".join(plan.score), score_scale=scale, labels=named, date=date)
    return replace(plan, provenance=made)


def _list_names(given: str | Sequence[str]) -> tuple[str, ...]:
    return tuple(name.strip() for name in given.split(",")) if isinstance(given, str) else tuple(given)


def _name(given: Given | None) -> str | Path | None:
    """A column or file; None for what a command cannot repeat."""
    return given if isinstance(given, str | Path) else None


def _features(check: Check, given: str | Sequence[str] | Table | None) -> tuple[list[str] | None, pa.Table | None]:
    """Names of bias columns, or a table."""
    if given is None or isinstance(given, pa.Table | Path):
        return None, _table(given)
    names = [name.strip() for name in given.split(",")] if isinstance(given, str) else list(given)
    if isinstance(given, str) and not all(name in check.log.roles.bias for name in names):
        return None, _table(given)
    return names, None


def _table(source: Table | None) -> pa.Table | None:
    return DuckDBSource(str(source)).read_table() if isinstance(source, str | Path) else source
