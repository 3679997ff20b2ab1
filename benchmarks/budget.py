"""`elute.repair.budget` on 3,000 and 50,000 factors, against the greedy plan that it replaced.

    python -m benchmarks.budget

Ten positions in contexts of which few are common (Zipf), four items a factor, each seen under two or three factors near
its home, a dozen impressions a cell. The budget is 20 impressions a factor. The greedy plan (`tests/reference`, 3,000
factors at most) may show any of 1,000 items anywhere; elute chooses among 300,000 and 500,000 given pairs. `limited`:
where a pair can take 30 impressions at most.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import measure
from elute.kernels.forest import connect_cells
from elute.repair.allowed import FittedCells
from elute.repair.budget import spend
from elute.repair.candidates import Candidates
from elute.repair.swap import SwapArrays, find_minimum_swaps

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from reference import budget_greedy

POSITIONS, A_FACTOR = 10, 20
PAIRS = {3_000: 300_000, 50_000: 500_000}
LIMIT = 30


def draw_cells(n: int, rng: np.random.Generator) -> FittedCells:
    """Cells, with the truth for a fit."""
    contexts, items = n // POSITIONS, 4 * n
    common = 1 / np.arange(1.0, contexts + 1)
    item = np.repeat(np.arange(items), 1 + rng.poisson(1.5, items))
    home, place = rng.choice(contexts, items, p=common / common.sum()), rng.integers(POSITIONS, size=items)
    away = rng.choice(contexts, len(item), p=common / common.sum())
    context = np.where(rng.random(len(item)) < 0.5, home[item], away)
    position = np.clip(place[item] + rng.integers(-1, 2, len(item)), 0, POSITIONS - 1)
    factors, seen = np.unique(context * POSITIONS + position, return_inverse=True)
    item, factor = np.divmod(np.unique(item * len(factors) + seen), len(factors))
    offsets = np.searchsorted(item, np.arange(items + 1))
    codes = factor.astype(np.int32)
    component = np.unique(connect_cells(offsets, codes, len(factors)), return_inverse=True)[1]
    propensity = (1.0 + factors % POSITIONS) ** -0.8 * rng.uniform(0.6, 1, len(factors))
    impressions = rng.geometric(0.08, len(codes)).astype(np.uint32)
    return FittedCells(offsets, codes, impressions, rng.beta(0.6, 3, items), propensity, component)


def draw_pairs(cells: FittedCells, number: int, most: int, rng: np.random.Generator) -> Candidates:
    """Items that were shown often and are likely clicked, each under a factor drawn at random."""
    known = np.add.reduceat(cells.impressions, cells.offsets[:-1]) * cells.relevance
    item = rng.choice(len(known), number, p=known / known.sum())
    source = cells.factor[cells.offsets[item]].astype(np.int64)
    target = rng.integers(len(cells.propensity), size=number)
    kept = np.unique(item * len(cells.propensity) + target, return_index=True)[1]
    return limit(item[kept], source[kept], target[kept], most)


def limit(item: Any, source: Any, target: Any, most: int) -> Candidates:
    return Candidates(item, source, target, np.full(len(item), most), np.zeros(len(item)))


def prepare(name: str, size: str) -> measure.Work:
    """Plan a tiny one first: kernels are compiled or loaded."""

    def work(n: int, pairs: int) -> measure.Work:
        rng = np.random.default_rng(0)
        cells = draw_cells(n, rng)
        budget = A_FACTOR * len(cells.propensity)
        most = LIMIT if name.endswith("limited") else budget
        links, more = find_minimum_swaps(cells).swaps, draw_pairs(cells, pairs, most, rng)
        return lambda: plan(cells, links, more, budget)

    def plan(cells: FittedCells, links: SwapArrays, more: Candidates, budget: int) -> dict[str, Any]:
        if name == "greedy":
            found: Any = budget_greedy.spend(cells, links, budget)
        else:
            found = spend(cells, limit(*links[:3], max(more.most[0], 1)), more, budget)
        return {
            "factors": len(cells.propensity),
            "parts": int(cells.component.max()) + 1,
            "pairs": len(more.item),
            "used": len(found.item),
            "spent": int(found.impressions.sum()),
            "before": (float(np.nanmax(found.se_before)), float(np.nanmean(found.se_before))),
            "after": (float(np.nanmax(found.se_after)), float(np.nanmean(found.se_after))),
        }

    work(1_000, 2_000)()
    return work(int(size), PAIRS[int(size)])


def main() -> None:
    print("| plan | factors | parts | pairs | seconds | GiB | largest se | mean se | pairs used | impressions |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for size, names in ((3_000, ["greedy", "elute", "elute, limited"]), (50_000, ["elute", "elute, limited"])):
        for name, run in measure.compare("benchmarks.budget", names, str(size), 1).items():
            of = run["result"]
            changes = [f"{before:.3f} → {after:.3f}" for before, after in zip(of["before"], of["after"], strict=True)]
            print(
                f"| {name} | {of['factors']:,} | {of['parts']:,} | {of['pairs']:,} | {run['seconds']:.1f} | "
                f"{run['gib']:.2f} | {' | '.join(changes)} | {of['used']:,} | {of['spent']:,} |",
                flush=True,
            )


if __name__ == "__main__":
    measure.main(prepare) if "--child" in sys.argv else main()
