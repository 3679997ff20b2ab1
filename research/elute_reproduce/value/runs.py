"""One log of a world, valued by every estimator, by raw clicks, and compared with the truth."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.cells.counts import Counts
from elute.estimate.models.affine import Affine
from elute.estimate.models.pbm import PBM
from elute.estimate.solve.problem import find_scales, pose, total_by_item
from elute.valuing.evaluate import list_estimators, settle
from elute.valuing.findings.limits import bound_unknown
from elute.valuing.findings.queries import find_effects
from elute.valuing.inputs.examination import Examination
from elute.valuing.inputs.rankings import Ranking
from elute.valuing.inputs.traffic import read_traffic
from elute.valuing.worth.contrasts import contrast, judge
from elute.valuing.worth.find import Setting, find_worth
from elute.valuing.worth.influence import find_covariance
from elute_reproduce.value.worlds import DOCS, PLACES, Truth, ValueWorld, count

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_FEW_CLICKS = 5
"""As `elute.fit` chooses its likelihood."""


class ValueOutcome(NamedTuple):
    """By one estimator, on one log: errors of the value and of the difference, whether their intervals hold the truth,
    and the verdict as +1, -1 or 0."""

    value_error: float
    value_inside: bool
    error: float
    se: float
    inside: bool
    verdict: int


class LogOutcome(NamedTuple):
    """Of one log: the true `difference` over the valued queries, `valued` share of pages, outcomes by estimator, errors
    of raw clicks, whether bounds hold over all pages, queries `named` as winners or
    losers and how many `wrongly`, and the variance of the clicks on a page."""

    difference: float
    valued: float
    by: dict[str, ValueOutcome]
    raw: dict[str, float]
    bounded: bool
    named: int
    wrongly: int
    page_variance: float


_truths: dict[tuple[ValueWorld, int], Truth] = {}


def find_truth(world: ValueWorld, seed: int) -> Truth:
    """Made once in a process."""
    if (world, seed) not in _truths:
        _truths[world, seed] = Truth(world, seed)
    return _truths[world, seed]


def try_logs(world: ValueWorld, seed: int, first: int, runs: int) -> list[LogOutcome]:
    """Some logs of a world, by their numbers."""
    truth = find_truth(world, seed)
    return [try_log(truth, np.random.default_rng([seed, 2, number])) for number in range(first, first + runs)]


def try_log(truth: Truth, rng: np.random.Generator) -> LogOutcome:
    drawn = truth.draw(rng)
    counts, item, queries = count(drawn)
    setting = pose_setting(truth, counts, item, queries)
    valued = setting.exposures[0].valued
    new, logged = truth.new[queries], truth.logged[queries]
    target, base = float(new[valued].mean()), float(logged[valued].mean())
    found = {}
    for name in list_estimators(setting.seen):
        one = contrast(find_worth(name, setting, valued))
        value, difference = one.values[1], one.differences[0]
        verdict = {"better": 1, "worse": -1, "cannot tell": 0}[judge(difference, name)]
        found[name] = ValueOutcome(
            value.value - target,
            value.low <= target <= value.high,
            difference.value - (target - base),
            difference.se,
            difference.low <= target - base <= difference.high,
            verdict,
        )
    effects = find_effects(find_worth("snips", setting, valued), 1, setting, valued)
    apart = new - logged
    named = effects.winners | effects.losers
    wrongly = (effects.winners & (apart < 0)) | (effects.losers & (apart > 0))
    return LogOutcome(
        target - base,
        float(setting.traffic.pages[valued].sum() / setting.traffic.pages.sum()),
        found,
        _use_raw_clicks(setting, item, queries, truth, target - base),
        _holds(setting, float(new.mean() - logged.mean())),
        int(named.sum()),
        int(wrongly.sum()),
        float(drawn.clicks.sum(axis=1).var()),
    )


def pose_setting(truth: Truth, counts: Counts, item: Ints, queries: Ints) -> Setting:
    """The log with the world's other ranking, and propensities fitted as `elute.fit` does."""
    code = np.full(truth.world.queries * DOCS, -1)
    code[item] = np.arange(len(item))
    documents = code[queries[:, None] * DOCS + truth.ranking[queries]].ravel()
    ends = np.arange(len(queries) + 1) * PLACES
    ranking = Ranking("new", ends, documents, np.arange(len(documents)), np.zeros(len(queries), np.bool_), [])
    seen = _fit_affine(counts) if truth.world.fit == "affine" else _fit_pbm(counts)
    return settle(read_traffic(counts), seen, [ranking])


def _fit_pbm(counts: Counts) -> Examination:
    problem = pose(counts, None)
    few = float(np.median(total_by_item(counts.offsets, counts.clicks))) < _FEW_CLICKS
    found = PBM(relevance_prior="beta" if few else "none").fit_factors(problem)
    o = np.where(found.apart, 0.0, found.o)
    o = o / find_scales(o, problem.component, problem.reliable)[problem.component]
    known = o > 0
    seen = Examination(
        alpha=np.where(known, o, np.nan),
        beta=np.zeros(PLACES),
        log_se=np.where(o == 1.0, 0.0, 1e-9),
        component=np.where(known, problem.component, -1).astype(np.int32),
        group=np.arange(PLACES, dtype=np.int32),
        errors="this log",
        binomial=not few,
        affine=False,
    )
    r = np.divide(
        *(
            np.bincount(np.repeat(np.arange(counts.n_items), np.diff(counts.offsets)), part, counts.n_items)
            for part in (counts.clicks, counts.impressions * o[counts.factor])
        )
    )
    errors = np.sqrt(np.diagonal(find_covariance(np.maximum(r, 1e-6), problem.cells, seen)))
    return Examination(**{**vars(seen), "log_se": errors})


def _fit_affine(counts: Counts) -> Examination:
    model = Affine().fit(counts, allow_unidentified=True)
    known = (model.propensity_ > 0) & np.isfinite(model.propensity_log_se_)
    return Examination(
        alpha=np.where(known, model.propensity_, np.nan),
        beta=model.offset_,
        log_se=model.propensity_log_se_,
        component=np.where(known, model.component_, -1).astype(np.int32),
        group=np.arange(PLACES, dtype=np.int32),
        errors="this log",
        binomial=True,
        affine=True,
    )


def _use_raw_clicks(setting: Setting, item: Ints, queries: Ints, truth: Truth, target: float) -> dict[str, float]:
    """Errors of what is done without propensities. `click rates`: a document earns its click rate wherever it stands.
    `replay`: the clicks that the document got at that very place, over the slots where it stood there."""
    traffic, one = setting.traffic, setting.exposures[0]
    cells, valued = traffic.cells, one.valued[one.query]
    base = traffic.clicks[one.valued].sum() / traffic.pages[one.valued].sum()
    of_item = np.repeat(np.arange(traffic.n_items), np.diff(cells.offsets))
    clicks, shown = (np.bincount(of_item, part, traffic.n_items) for part in (cells.clicks, cells.impressions))
    at = (one.item >= 0) & valued
    n = traffic.pages[one.valued].sum()
    rates = float((traffic.shown[at] * (clicks / shown)[one.item[at]]).sum() / n)
    key = of_item * PLACES + cells.factor
    wanted = one.item[at] * PLACES + traffic.factor[at]
    place = np.minimum(np.searchsorted(key, wanted), len(key) - 1)
    there = key[place] == wanted
    amount = traffic.shown[at]
    mean = (cells.clicks[place] / cells.impressions[place])[there]
    replay = float((amount[there] * mean).sum() / amount[there].sum() * amount.sum() / n)
    return {"click rates": rates - base - target, "replay": replay - base - target}


def _holds(setting: Setting, target: float) -> bool:
    """Whether the worst and best over all pages hold the true difference there."""
    worth = find_worth("snips", setting, np.ones(setting.traffic.n_queries, np.bool_))
    apart = contrast(worth).differences[0]
    limits = bound_unknown(setting.exposures[0], setting.seen, worth.relevance[0].value, None)
    return apart.low + limits.low <= target <= apart.high + limits.high
