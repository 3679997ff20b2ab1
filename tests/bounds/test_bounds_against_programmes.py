"""Intervals and contradictions against linear programmes, on random small logs of every kind."""

from __future__ import annotations

import warnings
from math import exp

import numpy as np
import pyarrow as pa

from elute.bounds.assumptions import Assumptions
from elute.bounds.bounds import Bounds, find_bounds
from elute.bounds.cross import order_pairs
from elute.cells.counts import Counts
from elute.known.precision import measure
from elute.known.sample import sample_counts
from reference.plain_bounds import Cell, Programme

LOGS = 500


def draw(rng: np.random.Generator) -> tuple[list[Cell], int, int]:
    """A few items under a few factors, several components as often as not; clicks from none to many."""
    factors, items = int(rng.integers(2, 6)), int(rng.integers(2, 8))
    group = rng.integers(0, 3, factors)
    o, r = rng.random(factors), rng.random(items) * rng.choice([0.05, 1.0])
    size = int(rng.choice([3, 40, 2_000, 100_000]))
    cells: list[Cell] = []
    for x in range(items):
        home = rng.choice(factors)
        own = [f for f in range(factors) if f == home or (group[f] == group[home] and rng.random() < 0.6)]
        for f in own:
            n = int(rng.integers(1, size))
            cells.append((x, f, n, int(rng.binomial(n, o[f] * r[x]))))
    return cells, factors, items


def count(cells: list[Cell], factors: int, items: int) -> Counts:
    x, f, n, c = (np.array(column) for column in zip(*cells, strict=True))
    offsets = np.searchsorted(x, np.arange(items + 1)).astype(np.int64)
    table = pa.table({"position": np.arange(factors)})
    amounts = n.astype(np.uint32), c.astype(np.uint32)
    return Counts(offsets, f.astype(np.int32), *amounts, table, None, 0.0, lambda: pa.table({"item": range(items)}))


def assume(rng: np.random.Generator, factors: int) -> Assumptions:
    pick = rng.integers(0, 5)
    if pick == 1:
        return Assumptions(monotone=("position",))
    if pick == 2:
        a, b = rng.choice(factors, 2, replace=False)
        return Assumptions(at_most=(f"position={a} <= position={b}",))
    if pick == 3:
        some = rng.permutation(factors)[: int(rng.integers(1, factors + 1))]
        given = pa.table({"position": some, "propensity": rng.random(len(some)), "log_se": rng.random(len(some)) * 0.3})
        return Assumptions(propensities=given)
    return Assumptions()


def programme(found: Bounds, cells: list[Cell], factors: int, items: int, assumed: Assumptions) -> Programme:
    known, given = found.precision, assumed.propensities
    rows = [] if given is None else given.to_pylist()
    clusters = None if known.dependence is None or known.dependence.clusters < 2 else known.dependence.clusters
    out = Programme(
        cells,
        factors,
        items,
        log_o=found.scales.ratio.tolist(),
        log_se=_read_errors(found),
        dispersion=known.population.dispersion,
        effect=[1.0] * factors if known.dependence is None else known.dependence.effect.tolist(),
        clusters=clusters,
        given=[(row["position"], np.log(row["propensity"]), row["log_se"]) for row in rows],
    )
    if assumed.monotone:
        out.order((f + 1, f) for f in range(factors - 1))
    for said in assumed.at_most:
        out.order([tuple(int(side.split("=")[1]) for side in said.split("<="))])  # type: ignore[list-item]
    return out


def _read_errors(found: Bounds) -> list[float]:
    """As they were measured: those of parts that had to be measured anew are in no other place."""
    from elute.bounds import scales

    parts = found.scales
    component = int(found.precision.sample.problem.component.max()) + 1
    again = found.precision if len(parts.component) == component else scales._measure_parts(found.precision, parts.part)
    return np.nan_to_num(scales._read_errors(found.precision, again)[1], nan=0.0).tolist()


def compare(seed: int) -> tuple[str, int]:
    rng = np.random.default_rng(seed)
    cells, factors, items = draw(rng)
    assumed = assume(rng, factors)
    counts = count(cells, factors, items)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = find_bounds(measure(sample_counts(counts, None)), assumed)
    plain = programme(found, cells, factors, items, assumed)
    a, b = rng.choice(factors, 2, replace=False).tolist()
    largest = plain.largest(a, b)
    assert found.consistent == (largest is not None), seed
    if largest is None:
        return "contradiction", len(found.scales.component)
    assert _same(found.relate(np.array([a]), b)[1][0], largest), (seed, largest)
    assert _same(found.relate(np.array([b]), a)[0][0], -largest), (seed, largest)
    part = found.scales.item_group
    x, y = rng.choice(items, 2, replace=False).tolist()
    both = found.precision.sample.position[[x, y]]  # items are numbered anew where they are measured
    crossed = order_pairs((both, np.zeros(2, np.int64)), part, found.found.items, found.found.arrows, found.highest)
    ordered = 0
    if part[both[0]] != part[both[1]]:
        ends = plain.largest(factors + x, factors + y), plain.largest(factors + y, factors + x)
        ordered = int(min(end for end in ends if end is not None) < 0)
        assert (crossed.pairs, crossed.ordered) == (1, ordered), (seed, ends)
    else:
        assert crossed.pairs == 0
    return ("ordered" if ordered else "open"), len(found.scales.component)


def _same(ratio: float, largest: float) -> bool:
    return bool(np.isclose(ratio, exp(largest), rtol=1e-6))


def test_every_interval_and_every_contradiction_is_that_of_a_linear_programme() -> None:
    """And the logs are of every kind: with a contradiction, with pairs in order, in one part and in several."""
    tried = [compare(seed) for seed in range(LOGS)]
    kinds, parts = zip(*tried, strict=True)
    assert min(kinds.count(kind) for kind in ("contradiction", "ordered", "open")) >= 20
    assert min(parts.count(1), parts.count(2), sum(n > 2 for n in parts)) >= 50
