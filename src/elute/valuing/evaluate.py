"""From a log, a fit and rankings to what each would earn: the fields of `elute value --json`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute.cells.counts import Counts, sum_by_item
from elute.estimate.models.pbm import FEW_CLICKS
from elute.estimate.priors.dispersion import measure_dispersion
from elute.estimate.solve.problem import total_by_factor
from elute.fits.fit import Fit
from elute.log import ClickLog
from elute.progress import Progress, silent
from elute.results.knowledge import describe_knowledge
from elute.valuing.describe import describe_between, describe_effects, describe_logged, describe_ranking, share_pages
from elute.valuing.findings.behaviour import value_under
from elute.valuing.findings.experiment import plan_test, vary_clicks
from elute.valuing.findings.limits import bound_unknown
from elute.valuing.findings.metrics import measure_metrics
from elute.valuing.findings.queries import QueryEffects, find_effects
from elute.valuing.inputs.examination import Examination, read_examination
from elute.valuing.inputs.exposure import find_item_components, plan_exposure
from elute.valuing.inputs.rankings import Names, Ranking, RankingSource
from elute.valuing.inputs.traffic import PageTraffic
from elute.valuing.worth.clusters import ClickClusters, spread_by_query, widen_by_clusters
from elute.valuing.worth.contrasts import Contrasts, contrast
from elute.valuing.worth.estimators import ASSUMPTIONS, OF_AFFINE, OF_ITEMS, TOO_SMALL, Clip, find_posterior
from elute.valuing.worth.features import value_by_features
from elute.valuing.worth.find import Setting, Worth, find_worth
from elute.valuing.worth.resample import resample

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

DEFAULT = "snips"
DEFAULT_AT = 10

_ROUGH = 0.3
"""Standard error of a log propensity from which the delta method is rough."""


@dataclass(frozen=True, eq=False)
class ValueOptions:
    """What to find out. `estimator`: whose figures come first. `clusters`: what clicks depend within; None: pages.
    `scores`: of a trained ranker, for documents never shown. `under`: fits of session models. `bootstrap`: draws, with
    their `seed`. `at`: places that metrics look at. `switch`: also plan a test."""

    estimator: str = DEFAULT
    clip: Clip = None
    clusters: ClickClusters | None = None
    scores: RankingSource | None = None
    under: tuple[Fit, ...] = ()
    bootstrap: int | None = None
    seed: int = 0
    at: int = DEFAULT_AT
    switch: bool = False


@dataclass(frozen=True, eq=False)
class ValueInputs:
    """What it is found out from."""

    log: ClickLog
    counts: Counts
    fit: Fit
    traffic: PageTraffic
    names: Names
    rankings: list[Ranking]

    @property
    def by_query(self) -> str:
        """The name of the query column."""
        return str(self.log.roles.query)


class Found(NamedTuple):
    """The fields of `elute value --json`, and a table by query."""

    fields: dict[str, Any]
    by_query: pa.Table


def evaluate(given: ValueInputs, wanted: ValueOptions, progress: Progress = silent) -> Found:
    """Value each ranking by every estimator."""
    progress("valuing", 0, 0)
    counts, traffic, fit = given.counts, given.traffic, given.fit
    shown, clicked = (
        total_by_factor(counts.factor, amounts, counts.n_factors) for amounts in (counts.impressions, counts.clicks)
    )
    seen = read_examination(fit, counts.factors, shown, clicked)
    setting = settle(traffic, seen, given.rankings, wanted.clip)
    queries = np.logical_and.reduce([one.valued for one in setting.exposures])
    notes = [note for ranking in given.rankings for note in ranking.notes]
    drawn = wanted.clusters
    if drawn is not None and queries.any() and drawn.column != given.by_query:
        more = widen_by_clusters(drawn, find_worth(wanted.estimator, setting, queries), setting)
        setting = replace(setting, dispersion=max(setting.dispersion, more))
    by_query = drawn is not None and drawn.column == given.by_query
    few = drawn.few if drawn is not None and by_query else None

    def find(name: str, over: Flags) -> Worth:
        worth = find_worth(name, setting, over)
        return worth._replace(covariance=spread_by_query(worth, setting, over)) if by_query else worth

    worths = {name: find(name, queries) for name in (list_estimators(seen) if queries.any() else ())}
    contrasts = {name: contrast(one, few) for name, one in worths.items()}
    if wanted.scores is not None:
        by_features = value_by_features(wanted.scores, setting, given.names, given.log.roles, given.log.engine.label)
        contrasts["dm-features"] = contrast(by_features.to_worth(), few)
        share = share_pages(by_features.queries, traffic)
        notes.append(f"dm-features values {share:.1%} of the pages, if {ASSUMPTIONS['dm-features']}")
    main = worths.get(wanted.estimator)
    all_of = np.ones_like(queries)
    over_all = main if main is not None and queries.all() else find(wanted.estimator, all_of)
    losses = wanted.estimator not in TOO_SMALL
    effects = [
        None if main is None else find_effects(main, row + 1, setting, queries, losses)
        for row in range(len(given.rankings))
    ]
    fields: dict[str, Any] = {
        "rankings": _describe_rankings(given, setting, wanted, contrasts, contrast(over_all, few), over_all, effects),
        "between": describe_between(contrasts.get(wanted.estimator), given.rankings, wanted.estimator),
        "valued_share": share_pages(queries, traffic),
        "pages": int(traffic.pages.sum()),
        "queries": traffic.n_queries,
        "queries_valued": int(queries.sum()),
        "estimator": wanted.estimator,
        "assumption": ASSUMPTIONS[wanted.estimator],
        "metrics_at": wanted.at,
        "cluster": None if drawn is None else drawn.column,
        "model": fit.model,
        "rung": fit.summary.get("rung"),
        "knowledge": describe_knowledge(fit.summary) or None,
        "under": [value_under(one, given.log, setting, given.names, queries) for one in wanted.under],
        "notes": [*notes, *_caution(fit, seen, setting)],
    }
    if queries.any() and setting.posterior is not None:
        measured = measure_metrics(setting, setting.told, queries, wanted.at, worths[DEFAULT])
        for row, metrics in zip(fields["rankings"], measured, strict=True):
            row["metrics"] = metrics
    if queries.any():
        _add_findings(fields["rankings"], given, setting, wanted, contrasts[wanted.estimator], queries, progress)
    return Found(fields, tabulate(effects, queries, given))


def _describe_rankings(
    given: ValueInputs,
    setting: Setting,
    wanted: ValueOptions,
    contrasts: dict[str, Contrasts],
    whole: Contrasts,
    over_all: Worth,
    effects: list[QueryEffects | None],
) -> list[dict[str, Any]]:
    """What was shown, then each ranking."""
    rows = [describe_logged(wanted.estimator, contrasts, whole)]
    for number, (one, effect) in enumerate(zip(setting.exposures, effects, strict=True)):
        limits = bound_unknown(one, setting.seen, over_all.relevance[0].value, given.fit.bounds)
        rows.append(describe_ranking(number, one, wanted.estimator, contrasts, whole, limits))
        rows[-1] |= describe_effects(effect, setting.traffic, given.names)
    return rows


def _add_findings(
    rows: list[dict[str, Any]],
    given: ValueInputs,
    setting: Setting,
    wanted: ValueOptions,
    main: Contrasts,
    queries: Flags,
    progress: Progress,
) -> None:
    """Where they are wanted, draws of the log and the test that would be needed."""
    if wanted.bootstrap is not None:
        clusters = wanted.clusters
        rows_of = None if clusters is None else clusters.list_rows(given.counts)
        drawn = resample(
            wanted.estimator, setting, given.counts, main, wanted.bootstrap, rows_of, wanted.seed, progress
        )
        for row, fields in zip(rows[1:], drawn, strict=True):
            row["bootstrap"] = fields
    if wanted.switch:
        variance = vary_clicks(setting, queries)
        for row, difference in zip(rows[1:], main.differences, strict=True):
            row["switch"] = plan_test(difference, variance)


def settle(traffic: PageTraffic, seen: Examination, rankings: list[Ranking], clip: Clip = None) -> Setting:
    """What all estimators share."""
    component = find_item_components(traffic, seen)
    exposures = [plan_exposure(traffic, ranking, seen, component) for ranking in rankings]
    posterior = None if seen.affine else find_posterior(traffic.cells, seen)
    dispersion = 1.0 if seen.affine else measure_dispersion(*traffic.cells, seen.usable)
    return Setting(traffic, seen, exposures, posterior, dispersion, clip)


def list_estimators(seen: Examination) -> tuple[str, ...]:
    """Those that the fit allows."""
    return OF_AFFINE if seen.affine else OF_ITEMS


def _caution(fit: Fit, seen: Examination, setting: Setting) -> list[str]:
    """What the errors leave out."""
    notes = []
    if fit.reason:
        notes.append(f"{fit.label}: {fit.reason}")
    if fit.summary.get("caution"):
        notes.append(str(fit.summary["caution"]))
    rejected = (fit.summary.get("assumptions") or {}).get("rejected")
    if rejected:
        notes.append(
            f"the log contradicts what the fit assumes of clicks ({', '.join(rejected)}): intervals do not know of it; "
            "see what session models make of the rankings (`under=`)"
        )
    if seen.errors == "another log":
        notes.append("the fit is of another log: errors of its propensities are taken as independent of each other")
    if seen.errors == "none":
        notes.append("propensities are given, and taken as known exactly")
    cells = setting.traffic.cells
    if setting.posterior is not None and np.median(sum_by_item(cells.offsets, cells.clicks)) < FEW_CLICKS:
        notes.append(
            f"half of the documents or more have fewer than {FEW_CLICKS} clicks: model, dr and the best order that "
            "ndcg divides by lean on the prior, and their intervals do not hold; go by snips and dcg"
        )
    loose = seen.known & (np.nan_to_num(seen.log_se) > _ROUGH)
    if loose.any() and seen.errors == "this log":
        share = setting.traffic.shown[loose[setting.traffic.factor]].sum() / setting.traffic.shown.sum()
        notes.append(
            f"propensities of {int(loose.sum()):,} factors ({share:.1%} of the impressions) have a standard error "
            f"above {_ROUGH:g}: intervals are rough, compare with `bootstrap=`"
        )
    return notes


def tabulate(effects: list[QueryEffects | None], queries: Flags, given: ValueInputs) -> pa.Table:
    """By query: its pages, clicks, whether it is valued; by ranking the difference, its error and q-value."""
    traffic = given.traffic
    columns: dict[str, Any] = {
        given.by_query: given.names.queries,
        "pages": pa.array(traffic.pages.astype(np.int64)),
        "clicks": pa.array(traffic.clicks.astype(np.int64)),
        "valued": pa.array(queries),
    }
    for ranking, effect in zip(given.rankings, effects, strict=True):
        for part in ("difference", "se", "q_value"):
            values = np.full(traffic.n_queries, np.nan) if effect is None else getattr(effect, part)
            columns[f"{part}: {ranking.name}"] = pa.array(values)
    return pa.table(columns)
