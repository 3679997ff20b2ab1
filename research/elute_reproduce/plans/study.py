"""Does a plan bring what it promises? Carried out in worlds whose truth is known, beside other ways to the same."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.cells.counts import Cells, Counts
from elute.cells.factors import index_rows, row_key, to_rows
from elute.checking.check import Check, check
from elute.estimate.models.pbm import PBM
from elute.estimate.priors.gamma import fit_population, weigh_cells
from elute.known.covariance import find_covariance
from elute.log import read_log
from elute.repair.plan import SwapPlan
from elute.repair.steps import Swap
from elute.repair.swap import find_minimum_swaps
from elute.repair.swap_plan import TARGET_SE, plan_swaps
from elute.repair.swapping.constraints import Constraints
from elute.repair.swapping.designs import NAMES, draw_up
from elute.repair.swapping.exchange import show_exchanged
from elute.repair.swapping.expected import Outlook, expect, to_fitted_cells
from elute.repair.swapping.forecast import Errors, Forecast
from elute.repair.swapping.movable import Movable, find_movable
from elute.repair.swapping.traffic import Traffic, find_traffic
from elute.simulation.world import SimulatedPages, World, spawn_streams
from elute_reproduce.plans.worlds import FOLD, WORLDS, ApartWorld, carry_out, draw_log, experiment, to_table, truth_of
from elute_reproduce.result import Claim, ComparedValue, Reproduction
from elute_reproduce.study import Study

Floats = NDArray[np.float64]

_LOGS = 2
"""Logs of a world for every seed."""

_SHARE = 0.2
_PLAN, _PAPER, _RANDOM = "plan", "the paper's plan", "random swaps"
_WAYS = (_PLAN, _PAPER, _RANDOM, "top 10 shuffled", "FairPairs", "RandPair")


class Tried(NamedTuple):
    """One way on one log. `off`: of every factor but the reference, the error of its log propensity over the standard
    error that was promised. `promised`, `reached`: the largest standard error before, and as the log that came has it.
    `lost_promised`, `lost`: clicks. `moved`: impressions shown elsewhere; `lengths`: time, in that of the log."""

    off: Floats
    promised: float
    reached: float
    lost_promised: float
    lost: float
    moved: float
    lengths: float


class Promise(NamedTuple):
    """What is said before anything is shown."""

    errors: Errors
    lost: float
    moved: float
    lengths: float


def run(study: Study) -> Reproduction:
    """Every world, every way."""
    found: defaultdict[tuple[str, str], list[Tried]] = defaultdict(list)
    logs = [(name, [number, at]) for at, name in enumerate(WORLDS) for number in range(study.seeds * _LOGS)]
    tries = study.map("logs", _try_log, [(WORLDS[name], seed) for name, seed in logs])
    for (name, _), ways in zip(logs, tries, strict=True):
        for way, tried in ways.items():
            found[name, way].append(tried)
    summed = {key: _sum_up(tries) for key, tries in found.items()}
    compared = [
        ComparedValue({"world": world, "way": way, "figure": figure}, (value,))
        for (world, way), figures in summed.items()
        for figure, value in figures.items()
        if np.isfinite(value)
    ]
    return Reproduction(
        name="plans",
        title="Do plans bring what they promise?",
        source="`elute repair --method swap`, carried out as `elute simulate --swap` does",
        settings=(
            f"{study.seeds * _LOGS} logs from each of {len(WORLDS)} worlds: pages of ten results in blocks that "
            "documents never cross, a ranker that knows relevance roughly (Beta(1.2, 4)), positions seen as 1/k^0.8.",
            f"Plans may change {_SHARE:.0%} of a query's pages, for as long as the log took. Each is made from the log "
            "alone, its pages are drawn, and propensities are fitted to the log with these pages.",
            "Error over promise: the root mean square, over logs and factors, of the error that the fit makes in log "
            "propensities (relative to the plan's reference) over the standard error that the plan promised. 1: as "
            "promised.",
            "Other ways: the paper's plan (Algorithm 2: any item under any factor, no traffic), as many random swaps "
            "as the plan has, and standard experiments for as long as they are said to take.",
            "Clicks lost: expected over clicks, by the true relevance; promised: what was said before.",
        ),
        compared=compared,
        claims=_judge(summed),
        reading=_READING,
    )


_READING = (
    "Errors come out below the promise: it takes in the log's design effect, 1.1 to 1.3 in these logs, which is "
    "estimated so that it is rather too large than too small, where clicks here are independent. All factors of a "
    "block share the error of its link, so a ratio over 20 logs is itself known to about ± 15%.",
    "Before anything is shown, how parts compare is a guess: propensities are taken to fall between parts as they do "
    f"within them (`elute.repair.swapping.scale`). '{FOLD}' breaks it. What comes is measured by "
    "`elute repair --continue`, and the plan made anew.",
    "The paper's plan may show any item under any factor; its swaps are carried out here within pages of the item's "
    "query all the same. What users lose by it, and by random swaps, is not known before.",
)


def _try_log(kind: ApartWorld, seed: list[int]) -> dict[str, Tried]:
    world = kind.build(np.random.default_rng(seed))
    chance = spawn_streams(seed[0] * 100 + seed[1])
    pages = draw_log(world, kind.pages, chance)
    columns: dict[str, Any] = {"bias": kind.bias, "session": "session_id"} if kind.contexts else {"bias": kind.bias}
    out = {}
    with read_log(to_table(world, pages), **columns) as log:
        verdict = check(log)
        movable = find_movable(verdict)
        expected, traffic = expect(verdict, alike=list(movable.columns)), find_traffic(verdict)
        plan = plan_swaps(verdict, constraints=Constraints(share=_SHARE))
        plans = {
            _PLAN: plan,
            _PAPER: _plan_as_paper(verdict, expected, plan),
            _RANDOM: _plan_at_random(verdict, expected, traffic, plan, np.random.default_rng([*seed, 1])),
        }
        for way, one in plans.items():
            shown = carry_out(world, one, chance)
            promise = _promise(verdict, expected, traffic, movable, one)
            out[way] = _measure(world, verdict, pages + shown.pages, columns, promise, shown.lost)
        position = verdict.counts.factors["position"].to_numpy().astype(np.float64)
        for name, row in zip(NAMES, plan.designs, strict=True):
            design = draw_up(name, traffic, expected, movable.kind, position)
            scale = row["log_lengths"] * _SHARE
            scaled = design.shown._replace(impressions=design.shown.impressions * scale)
            errors = Forecast(verdict, expected, scaled).measure()
            promise = Promise(errors, row["users_lose"], row["impressions"], row["log_lengths"])
            shown = experiment(world, name, round(scale * kind.pages), chance)
            out[str(row["name"])] = _measure(world, verdict, pages + shown.pages, columns, promise, shown.lost)
    return out


def _promise(verdict: Check, expected: Outlook, traffic: Traffic, movable: Movable, plan: SwapPlan) -> Promise:
    items = index_rows(verdict.counts.items)
    factors = index_rows(verdict.counts.factors)
    item = np.array([items[row_key(swap.item)] for swap in plan.swaps], np.int64)
    target = np.array([factors[row_key(swap.target)] for swap in plan.swaps], np.int64)
    shown = np.array([float(swap.impressions) for swap in plan.swaps])
    query = np.repeat(np.arange(len(traffic.offsets) - 1), np.diff(traffic.offsets))
    of_item = np.zeros(verdict.counts.n_items, np.int64)
    of_item[traffic.item] = query
    errors = Forecast(verdict, expected, show_exchanged(traffic, movable, item, target, of_item[item], shown)).measure()
    return Promise(errors, plan.forecast["users_lose"], float(shown.sum()), plan.forecast["log_lengths"])


def _measure(
    world: World,
    before: Check,
    pages: list[SimulatedPages],
    columns: dict[str, Any],
    promise: Promise,
    lost: float,
) -> Tried:
    """Fit the log with what was shown, and look how far off it is."""
    errors = promise.errors
    with read_log(to_table(world, pages), **columns) as log:
        counts = log.counts()
        fitted = PBM(relevance_prior="beta").fit(counts).propensity_
        known, reached = index_rows(counts.factors), _find_largest(counts, fitted)
    names = to_rows(before.counts.factors, range(before.counts.n_factors))
    code = np.array([known[row_key(name)] for name in names])
    off = np.log(fitted[code]) - np.log(truth_of(world, before.counts.factors))
    free = (errors.reference != np.arange(len(names))) & (errors.log_se > 0) & np.isfinite(off)
    away = (off - off[errors.reference])[free] / errors.log_se[free]
    return Tried(away, errors.largest or np.nan, reached, promise.lost, lost, promise.moved, promise.lengths)


def _find_largest(counts: Counts, propensity: Floats) -> float:
    """The largest standard error, as `elute check` finds it for independent clicks."""
    cells = Cells(counts.offsets, counts.factor, counts.impressions, counts.clicks)
    one = np.zeros(counts.n_factors, np.int32)
    o = np.nan_to_num(propensity)
    w = weigh_cells(cells, o, fit_population(cells, o, np.zeros(len(o)), one)).expected
    return float(np.sqrt(np.nanmax(find_covariance(cells, w, o, one).variance)))


def _plan_as_paper(verdict: Check, expected: Outlook, plan: SwapPlan) -> SwapPlan:
    """Algorithm 2 as it is: any item under any factor, one for each link, as often as the target needs."""
    found = find_minimum_swaps(to_fitted_cells(verdict.counts, expected)._replace(relevance=expected.relevance)).swaps
    p = expected.probability(found.item, found.target)
    known = expected.known[found.item]
    most = np.maximum((1 / p - 1) / np.maximum(TARGET_SE**2 - 1 / known, TARGET_SE**2 / 4), 1.0)
    return _write(verdict, plan, found.item, found.source, found.target, np.ceil(most))


def _plan_at_random(
    verdict: Check, expected: Outlook, traffic: Traffic, plan: SwapPlan, rng: np.random.Generator
) -> SwapPlan:
    """As many swaps, of any item that a query shows to a place of another part."""
    wanted = max(len(plan.swaps), expected.parts - 1)
    rows: list[tuple[int, int, int]] = []
    owner = np.repeat(np.arange(len(traffic.offsets) - 1), np.diff(traffic.offsets))
    while len(rows) < wanted:
        a = int(rng.integers(len(owner)))
        others = np.arange(traffic.offsets[owner[a]], traffic.offsets[owner[a] + 1])
        b = int(rng.choice(others))
        if expected.part[traffic.factor[a]] != expected.part[traffic.factor[b]]:
            rows.append((int(traffic.item[a]), int(traffic.factor[a]), int(traffic.factor[b])))
    item, source, target = (np.array(column) for column in zip(*rows, strict=True))
    each = np.ceil(sum(swap.impressions for swap in plan.swaps) / wanted)
    return _write(verdict, plan, item, source, target, np.full(wanted, each))


def _write(
    verdict: Check, plan: SwapPlan, item: np.ndarray, source: np.ndarray, target: np.ndarray, shown: Floats
) -> SwapPlan:
    counts = verdict.counts
    rows = zip(
        to_rows(counts.items, item),
        to_rows(counts.factors, source),
        to_rows(counts.factors, target),
        shown,
        strict=True,
    )
    swaps = tuple(Swap(x, s, t, 0.0, int(n), 0.0, 0.0, 0.0) for x, s, t, n in rows)
    return replace(plan, swaps=swaps)


def _sum_up(tries: list[Tried]) -> dict[str, float]:
    off = np.concatenate([one.off for one in tries])
    promised, lost = (sum(getattr(one, name) for one in tries) for name in ("lost_promised", "lost"))
    return {
        "error over promise": float(np.sqrt(np.mean(off**2))),
        "largest se promised": float(np.nanmean([one.promised for one in tries])),
        "largest se reached": float(np.nanmean([one.reached for one in tries])),
        "clicks lost, promised": promised / len(tries),
        "clicks lost": lost / len(tries),
        "impressions moved": float(np.mean([one.moved for one in tries])),
        "× the log's time": float(np.mean([one.lengths for one in tries])),
    }


def _judge(summed: dict[tuple[str, str], dict[str, float]]) -> tuple[Claim, ...]:
    own = {world: figures for (world, way), figures in summed.items() if way == _PLAN}
    folded = own.pop(FOLD)
    return (
        Claim(
            "What fits are off by is what a plan promises (± 15%).",
            all(abs(figures["error over promise"] - 1) <= 0.15 for figures in own.values()),
            "; ".join(f"{world}: {figures['error over promise']:.2f}" for world, figures in own.items()),
        ),
        Claim(
            "What fits are off by is at most what a plan promises, and 15% more.",
            all(figures["error over promise"] <= 1.15 for figures in own.values()),
            "; ".join(f"{world}: {figures['error over promise']:.2f}" for world, figures in own.items()),
        ),
        Claim(
            "The log that comes has the largest standard error that was promised (± 15%).",
            all(
                abs(figures["largest se reached"] / figures["largest se promised"] - 1) <= 0.15
                for figures in own.values()
            ),
            "; ".join(
                f"{world}: {figures['largest se promised']:.3f} promised, {figures['largest se reached']:.3f} reached"
                for world, figures in own.items()
            ),
        ),
        Claim(
            "Users lose what a plan says they will: clicks within 25%, or one click.",
            all(
                abs(figures["clicks lost"] - figures["clicks lost, promised"])
                <= max(1.0, 0.25 * figures["clicks lost, promised"])
                for figures in own.values()
            ),
            "; ".join(
                f"{world}: {figures['clicks lost, promised']:.1f} promised, {figures['clicks lost']:.1f} lost"
                for world, figures in own.items()
            ),
        ),
        Claim(
            "Examination that drops by half just where pages are cut, which no log can tell, costs no more than half "
            "as much error again.",
            folded["error over promise"] <= 1.5,
            f"{FOLD}: {folded['error over promise']:.2f}; {folded['clicks lost, promised']:.1f} clicks promised, "
            f"{folded['clicks lost']:.1f} lost",
        ),
        Claim(
            "No way to the same precision moves fewer impressions within what queries' pages allow.",
            all(
                summed[world, _PLAN]["impressions moved"] <= figures["impressions moved"]
                for (world, way), figures in summed.items()
                if way not in (_PLAN, _PAPER, _RANDOM)
            ),
            "; ".join(
                f"{world}, {way}: {figures['impressions moved']:,.0f}"
                for (world, way), figures in summed.items()
                if way not in (_PAPER, _RANDOM)
            ),
        ),
    )
