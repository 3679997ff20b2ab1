"""Beyond the papers: a budget of impressions, spent by effective resistance, at random, or on the links alone."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from elute.cells.counts import Counts
from elute.checking.check import Check, check
from elute.estimate.models.pbm import PBM
from elute.estimate.solve.problem import Floats, pose
from elute.estimate.solve.standard_errors import log_errors
from elute.kernels.merge import add_cells
from elute.log import read_log
from elute.repair.swap_plan import plan_swaps
from elute.repair.swapping.constraints import Constraints
from elute.reporting.charts import specs
from elute_reproduce.result import Claim, ComparedValue, Reproduction, StudyFigure
from elute_reproduce.study import Study

_FACTORS, _PARTS, _ITEMS = 10, ((0, 1, 2, 3), (4, 5, 6), (7, 8, 9)), 60
_BUDGETS = (1_000, 5_000, 25_000)
_RANDOM_SWAPS = 20
_TRAFFIC = Constraints(share=1.0, log_days=1.0, days=100.0)
"""As much as any budget asks for."""

_GREEDY, _MEAN, _RANDOM, _LINKS = "budget, largest", "budget, mean", "random swaps", "all on the links"
_STRATEGIES = (_GREEDY, _MEAN, _RANDOM, _LINKS)


class _World(NamedTuple):
    relevance: Floats
    propensity: Floats
    table: pa.Table


def run(study: Study) -> Reproduction:
    """Plans are made from the log alone; the truth only draws the clicks that follow and judges the outcome."""
    largest: dict[tuple[str, int], list[float]] = {}
    missed: dict[tuple[str, int], list[float]] = {}
    done = 0
    for world_rng, plan_rng, click_rng in study.generators(3):
        world = _draw_world(world_rng)
        with read_log(world.table, item="item", impressions="shown") as log:
            verdict = check(log)
            for budget in _BUDGETS:
                for strategy in _STRATEGIES:
                    counts = _show(verdict.counts, world, _plan(verdict, strategy, budget, plan_rng), click_rng)
                    problem = pose(counts, None)
                    errors = log_errors(problem, world.propensity, world.relevance)[0]
                    fitted = PBM(relevance_prior="none").fit(counts).propensity_
                    off = np.log(fitted / fitted[0]) - np.log(world.propensity / world.propensity[0])
                    largest.setdefault((strategy, budget), []).append(float(np.nanmax(errors)))
                    missed.setdefault((strategy, budget), []).append(float(np.abs(off).max()))
            done += 1
            study.progress("worlds", done, study.seeds)
    compared = [
        ComparedValue({"strategy": strategy, "figure": what, "budget": f"{budget:,} impressions"}, tuple(values))
        for what, found in (("largest standard error", largest), ("largest error made", missed))
        for (strategy, budget), values in found.items()
    ]
    return Reproduction(
        name="repair-budget",
        title="Spending a traffic budget",
        source="Beyond the papers: `elute repair --method swap --budget N`",
        settings=(
            f"{study.seeds} worlds of {_FACTORS} positions in {len(_PARTS)} components and {_ITEMS} items, a third of "
            "them seen at two positions, 20 to 400 impressions each.",
            "Each strategy plans from the same log and spends the same budget; clicks on what it shows are then drawn "
            "from the truth, and PBM is fitted to old and new clicks together.",
            f"Budget: the connecting swaps, then where the largest (or the mean) standard error falls most. Random: "
            f"{_RANDOM_SWAPS} random swaps that connect the graph, in equal parts. Links: the swaps of the plan "
            "without a budget, in equal parts.",
            "Standard error: of a log propensity against the largest one, from the information at the true values. "
            "Error made: the largest difference of a fitted log propensity ratio from the true one.",
        ),
        compared=compared,
        claims=_claims(largest, missed),
        figures=_figures(largest),
        reading=_READING,
    )


_READING = (
    "Items are picked by where and how often they were shown, not by their clicks (see `plans-budget`). Here, where "
    "every item has hundreds of impressions, that costs: twenty random swaps hold some very relevant items, and with "
    "a small budget they may come out as well.",
)


def _draw_world(rng: np.random.Generator) -> _World:
    relevance, propensity = rng.uniform(0.05, 0.7, _ITEMS), np.sort(rng.uniform(0.1, 0.9, _FACTORS))[::-1]
    rows = []
    for item in range(_ITEMS):
        own = _PARTS[next(i for i, part in enumerate(_PARTS) if item % _FACTORS in part)]
        first = item % _FACTORS
        following = own[(own.index(first) + 1) % len(own)]
        twice = item < _FACTORS or rng.random() < 0.3
        rows += [(item, position) for position in ((first, following) if twice else (first,))]
    item, position = np.array(rows).T
    shown = rng.integers(20, 400, len(item))
    clicks = rng.binomial(shown, relevance[item] * propensity[position])
    return _World(
        relevance, propensity, pa.table({"item": item, "position": position, "shown": shown, "click": clicks})
    )


def _plan(verdict: Check, strategy: str, budget: int, rng: np.random.Generator) -> list[tuple[int, int, int]]:
    """(item, position, impressions) by name."""
    if strategy == _RANDOM:
        return _plan_at_random(rng, budget)
    if strategy == _LINKS:
        swaps = plan_swaps(verdict, constraints=_TRAFFIC).swaps
        return [(s.item["item"], s.target["position"], budget // len(swaps)) for s in swaps]
    plan = plan_swaps(verdict, constraints=_TRAFFIC, budget=budget, objective="max" if strategy == _GREEDY else "mean")
    return [(s.item["item"], s.target["position"], s.impressions) for s in plan.swaps]


def _plan_at_random(rng: np.random.Generator, budget: int) -> list[tuple[int, int, int]]:
    part = {position: i for i, own in enumerate(_PARTS) for position in own}
    while True:
        items, targets = rng.integers(_ITEMS, size=_RANDOM_SWAPS), rng.integers(_FACTORS, size=_RANDOM_SWAPS)
        joined = {
            frozenset((part[i % _FACTORS], part[t])) for i, t in zip(items.tolist(), targets.tolist(), strict=True)
        }
        if len({pair for pair in joined if len(pair) == 2}) >= len(_PARTS) - 1:
            return [(i, t, budget // _RANDOM_SWAPS) for i, t in zip(items.tolist(), targets.tolist(), strict=True)]


def _show(counts: Counts, world: _World, planned: list[tuple[int, int, int]], rng: np.random.Generator) -> Counts:
    """The log with what was planned, clicked as the truth has it; items and positions in order of their names."""
    cells = np.repeat(counts.items["item"].to_numpy(), np.diff(counts.offsets)), counts.factor
    rows = np.array(planned, np.int64).reshape(-1, 3)
    clicks = rng.binomial(rows[:, 2], world.relevance[rows[:, 0]] * world.propensity[rows[:, 1]])
    position = counts.factors["position"].to_numpy()
    old = np.stack((cells[0], position[cells[1]], counts.impressions, counts.clicks)).astype(np.int64)
    every = np.concatenate((old, np.stack((rows[:, 0], rows[:, 1], rows[:, 2], clicks))), axis=1)
    empty = (np.zeros(_ITEMS + 1, np.int64), np.empty(0, np.int32), np.empty(0, np.uint32), np.empty(0, np.uint32))
    factors = pa.table({"position": np.arange(_FACTORS)})
    items = pa.table({"item": np.arange(_ITEMS)})
    return Counts(*add_cells(empty, *every), factors, None, 0.0, lambda: items)


def _claims(
    largest: dict[tuple[str, int], list[float]], missed: dict[tuple[str, int], list[float]]
) -> tuple[Claim, ...]:
    found = []
    for rival, words in ((_RANDOM, "random swaps"), (_LINKS, "the paper's plan with the same budget")):
        wins = [float(np.mean(np.array(largest[_GREEDY, b]) < np.array(largest[rival, b]))) for b in _BUDGETS]
        errors = [(float(np.mean(missed[_GREEDY, b])), float(np.mean(missed[rival, b]))) for b in _BUDGETS]
        found.append(
            Claim(
                f"Spending by effective resistance beats {words}.",
                all(share > 0.5 for share in wins) and all(ours < theirs for ours, theirs in errors),
                f"smaller largest standard error in {', '.join(f'{share:.0%}' for share in wins)} of worlds; largest "
                f"error made {', '.join(f'{ours:.3f} against {theirs:.3f}' for ours, theirs in errors)} "
                f"(budgets {', '.join(f'{b:,}' for b in _BUDGETS)})",
            )
        )
    return tuple(found)


def _figures(largest: dict[tuple[str, int], list[float]]) -> tuple[StudyFigure, ...]:
    rows = [
        {"budget": f"{budget:,} impressions", "strategy": strategy, "largest standard error": value}
        for (strategy, budget), values in largest.items()
        for value in values
    ]
    chart = specs.boxes(rows, x="budget", y="largest standard error", series="strategy", log_y=True, size=(520, 260))
    return (
        StudyFigure("errors", "Largest standard error of a log propensity after the budget is spent, by world", chart),
    )
