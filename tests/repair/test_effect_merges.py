"""Merges under a formula: against every set of pairs; and fits that they leave."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import elute
from elute.cells.formula import BiasFormula, tie_factors
from elute.errors import EluteError
from elute.estimate.models.pbm import PBM
from elute.estimate.solve.problem import pose
from elute.identify.effects.classes import join_classes
from elute.identify.effects.constraints import constrain, join_factors
from elute.identify.effects.design import build_design, find_design
from elute.identify.effects.independent import keep_independent
from elute.kernels.forest import connect_cells
from elute.repair.distortion import bases
from elute.repair.distortion.bounds import merge_bound
from elute.repair.distortion.paths import distance
from elute.repair.distortion.places import ClassPlaces, find_scales, locate, measure_longest, span_pairs
from elute.repair.merge import find_minimum_merges
from elute.repair.plan import MergePlan
from reference.plain_effects import code_overcomplete, find_differences, find_rank, subtract


def draw_case(rng: np.random.Generator) -> tuple[list[tuple[int, int, int]], list[set[int]]]:
    drawn = {tuple(int(x) for x in row) for row in rng.integers(0, (3, 3, 2), (9, 3))}
    factors = sorted((a, b, c) for a, b, c in drawn)
    items = [set(rng.choice(len(factors), 2, replace=False).tolist()) for _ in range(int(rng.integers(1, 5)))]
    return factors, items


def test_the_cheapest_merges_are_those_of_brute_force() -> None:
    rng = np.random.default_rng(0)
    needed = []
    for _ in range(25):
        factors, items = draw_case(rng)
        table = pa.table({name: [row[at] for row in factors] for at, name in enumerate("abc")})
        tied = tie_factors(table, BiasFormula.add("a", "b", "c"))
        rows = code_overcomplete(factors, [(0,), (1,), (2,)])
        known = find_differences(items, rows)
        whole = find_rank([subtract(row, rows[0]) for row in rows])
        missing = whole - find_rank(known)
        features = rng.uniform(0, 1, (len(factors), 2))
        offsets = np.cumsum([0, *map(len, items)])
        flat = np.array([t for item in items for t in sorted(item)], np.int32)
        root = connect_cells(offsets, flat, len(factors))
        pairs, costs = find_minimum_merges(features, root)
        kept = keep_independent(pairs, root, tied)
        assert kept.sum() == missing
        best = np.inf
        if missing > 3:
            continue
        for some in combinations(combinations(range(len(factors)), 2), missing):
            if find_rank([*known, *(subtract(rows[a], rows[b]) for a, b in some)]) == whole:
                best = min(best, sum(float(np.linalg.norm(features[a] - features[b])) for a, b in some))
        assert costs[kept].sum() == pytest.approx(best)
        needed.append(missing)
    assert len(set(needed)) > 1 and len(needed) > 8


def test_merged_factors_have_equal_rows_and_ranks_fall_by_as_many() -> None:
    rng = np.random.default_rng(1)
    for _ in range(50):
        factors, _ = draw_case(rng)
        table = pa.table({name: [row[at] for row in factors] for at, name in enumerate("abc")})
        design = build_design(table, BiasFormula.parse("a + b + linear(c)"))
        pairs = rng.integers(0, len(factors), (2, 2))
        found = constrain(design, pairs)
        dense = found.matrix.toarray()
        for a, b in pairs:
            np.testing.assert_allclose(dense[a], dense[b])
        np.testing.assert_allclose(design.matrix.toarray() @ found.follow().toarray(), dense)
        plain = [[Fraction(int(x)) for x in row] for row in design.matrix.toarray()]
        left = [[Fraction(x).limit_denominator(1000) for x in row] for row in dense.tolist()]
        lost = find_rank([subtract(plain[a], plain[b]) for a, b in pairs])
        centre = [subtract(row, plain[0]) for row in plain]
        assert find_rank([subtract(row, left[0]) for row in left]) == find_rank(centre) - lost


def log_apart() -> pa.Table:
    """Two devices that no query shares, each with its own positions in turn."""
    rng = np.random.default_rng(2)
    rows = []
    for query in range(300):
        device = query % 2
        for page in range(6):
            for doc in range(3):
                position = (doc + page) % 3
                seen = 0.9 / (1 + position) * (0.6 if device else 1.0)
                rows.append((query, doc, position + 1, device, int(rng.random() < seen * (0.2 + 0.3 * doc))))
    names = ("query_id", "doc_id", "position", "device", "click")
    return pa.table(dict(zip(names, zip(*rows, strict=True), strict=True)))


def test_a_plan_of_one_merge_where_one_comparison_is_missing() -> None:
    """Between devices: positions are shared by the formula, so that one pair joins all six factors."""
    verdict = elute.check(log_apart(), bias="position + device")
    assert verdict.effects is not None and verdict.effects.missing == 1 and verdict.components == 2
    plan = elute.merge(verdict)
    assert len(plan.pairs) == 1 and plan.to_dict()["propensities_after"] == 3
    assert elute.check(log_apart(), bias="position + device", plan=plan).recoverable
    fit = elute.fit(log_apart(), bias="position + device", plan=plan)
    assert fit.propensities is not None
    by = {(row["position"], row["device"]): row["propensity"] for row in fit.propensities.to_pylist()}
    for position in (1, 2, 3):
        assert by[(position, 0)] == pytest.approx(by[(position, 1)], rel=1e-6)
    assert fit.effects is not None
    device = [row for row in fit.effects.to_pylist() if row["term"] == "device"]
    assert all(row["effect"] == pytest.approx(0, abs=1e-9) and row["determined"] for row in device)


def test_a_plan_and_a_smooth_term_are_refused_together() -> None:
    plan = elute.merge(log_apart(), bias="position + device")
    with pytest.raises(EluteError, match="smooth"):
        elute.fit(log_apart(), bias="smooth(position) + device", plan=plan)


def test_a_merge_that_the_formula_implies_counts_once() -> None:
    table = pa.table({"a": [0, 0, 1, 1], "b": [0, 1, 0, 1]})
    tied = tie_factors(table, BiasFormula.add("a", "b"))
    assert len(set(join_factors(tied, np.array([[0, 1]])))) == 2
    assert len(set(join_factors(table, np.array([[0, 1]])))) == 3


def test_the_likelihood_under_a_plan_is_that_of_the_formula_without_the_effect() -> None:
    log = elute.read_log(log_apart(), bias="position + device")
    plan = elute.merge(log)
    merged = PBM(relevance_prior="none").fit(log.counts(), plan)
    without = elute.read_log(log_apart(), bias="position").counts()
    plain = PBM(relevance_prior="none").fit(without)
    assert pose(log.counts(), plan).component.max() == 0
    assert merged.log_likelihood_ == pytest.approx(plain.log_likelihood_, abs=1e-4)


def draw_merged(rng: np.random.Generator, formula: str) -> tuple[pa.Table, np.ndarray, np.ndarray, list[set[int]]]:
    """Factors tied by a formula, the class of each, pairs that leave nothing open, and items."""
    factors, items = draw_case(rng)
    table = pa.table({name: [row[at] for row in factors] for at, name in enumerate("abc")})
    tied = tie_factors(table, BiasFormula.parse(formula))
    offsets = np.cumsum([0, *map(len, items)])
    flat = np.array([t for item in items for t in sorted(item)], np.int32)
    root = connect_cells(offsets, flat, len(factors))
    component = np.unique(join_classes(root, tied), return_inverse=True)[1]
    pairs = find_minimum_merges(rng.uniform(0, 1, (len(factors), 2)), component)[0]
    return tied, component, pairs[keep_independent(pairs, root, tied)], items


@pytest.mark.parametrize("formula", ["a + b + c", "a + b + linear(c)", "a:b + c", "spline(a) + b"])
def test_scales_are_those_of_an_exact_fit_under_the_plan(formula: str) -> None:
    """Against dense least squares for relevance and effects that give the true click probabilities."""
    rng = np.random.default_rng(3)
    for _ in range(30):
        tied, component, pairs, items = draw_merged(rng, formula)
        design = build_design(tied, BiasFormula.parse(formula))
        x, effects = design.matrix.toarray(), rng.normal(0, 0.5, design.size)
        log_o, log_r = x @ effects, rng.normal(0, 0.5, len(component))
        # one item a factor beside those that link, so that each has a relevance to be wrong about
        cells = [(t, t) for t in range(len(x))] + [(len(x) + i, t) for i, item in enumerate(items) for t in item]
        rates = np.append(log_r, rng.normal(0, 0.5, len(items)))
        rows = np.zeros((len(cells) + len(pairs), len(rates) + design.size))
        for at, (item, t) in enumerate(cells):
            rows[at, item] = 1.0
            rows[at, len(rates) :] = x[t]
        for at, (a, b) in enumerate(pairs):
            rows[len(cells) + at, len(rates) :] = x[a] - x[b]
        right = np.append([rates[item] + log_o[t] for item, t in cells], np.zeros(len(pairs)))
        found = np.linalg.lstsq(rows, right, rcond=None)[0]
        np.testing.assert_allclose(rows @ found, right, atol=1e-9)
        wrong = found[: len(x)] - log_r
        spanned = span_pairs(pairs, component, tied)
        assert spanned is not None
        scales = find_scales(pairs, spanned, log_o, 0)[0][component]
        np.testing.assert_allclose(scales - scales[0], wrong - wrong[0], atol=1e-7)
        distances, length = locate(spanned, np.ones(len(pairs))), np.abs(log_o[pairs[:, 0]] - log_o[pairs[:, 1]])
        k = int(component.max()) + 1
        every = [distance(distances, a, b) for a in range(k) for b in range(k)]
        assert measure_longest(spanned, np.ones(len(pairs))) == pytest.approx(max(every), abs=1e-7)
        assert np.ptp(wrong) <= measure_longest(spanned, length) + 1e-7
        bound = merge_bound(pairs, component, np.exp(log_o), 0, spanned)
        assert bound.diameter == pytest.approx(
            np.ptp(np.exp(wrong - wrong[np.flatnonzero(component == 0)[0]])), rel=1e-6
        )


def test_one_effect_a_factor_gives_the_distances_of_the_tree() -> None:
    rng = np.random.default_rng(4)
    for _ in range(20):
        k = int(rng.integers(2, 9))
        component = rng.permutation(np.append(np.arange(k), rng.integers(0, k, 4)))
        plain = pa.table({"a": np.arange(len(component))})
        pairs, costs = find_minimum_merges(rng.uniform(0, 1, (len(component), 2)), component)
        tree, placed = (span_pairs(pairs, component, tie_factors(plain, one)) for one in (None, BiasFormula.add("a")))
        assert isinstance(placed, ClassPlaces) and tree is not None
        for length in (np.ones(len(pairs)), costs):
            assert measure_longest(placed, length) == pytest.approx(measure_longest(tree, length))
            one, other = locate(tree, length), locate(placed, length)
            for a in range(k):
                for b in range(k):
                    assert distance(one, a, b) == pytest.approx(distance(other, a, b), abs=1e-7)


def test_a_plan_says_what_it_does_to_relevance_and_its_file_keeps_it(tmp_path: Path) -> None:
    """One pair, of devices: all that lies between the two is off by as much as they differ."""
    log = log_apart()
    plan = elute.merge(log, bias="position + device", propensity=[1.0, 0.5, 0.6, 0.3, 1 / 3, 0.2])
    found = plan.consequence
    assert found is not None and (found.longest_path, found.queries_across) == (1, 0)
    assert "all queries keep their order" in found.sentence and len(found.alternatives) == 1
    assert found.distortion_known is not None
    plan.save(tmp_path / "plan.json")
    again = MergePlan.load(tmp_path / "plan.json")
    assert isinstance(again, MergePlan) and again.consequence == found
    other = elute.merge(log, bias="position + device", prefer="distortion")  # all pairs enter once: none is better
    assert [(pair.a, pair.b) for pair in other.pairs] == [(pair.a, pair.b) for pair in plan.pairs]


def draw_open(rng: np.random.Generator) -> tuple[pa.Table, np.ndarray, np.ndarray]:
    """Factors that a formula ties, what class each is in, and features."""
    factors, items = draw_case(rng)
    table = pa.table({name: [row[at] for row in factors] for at, name in enumerate("abc")})
    tied = tie_factors(table, BiasFormula.parse("a + linear(b) + c"))
    offsets = np.cumsum([0, *map(len, items)])
    flat = np.array([t for item in items for t in sorted(item)], np.int32)
    root = connect_cells(offsets, flat, len(factors))
    classes = np.unique(join_classes(root, tied), return_inverse=True)[1].astype(np.int32)
    return tied, classes, rng.uniform(0, 1, (len(factors), 2))


def measure_plainly(open_ways: np.ndarray, pairs: np.ndarray, cost: np.ndarray) -> float:
    """The largest distance of two factors, each pair's difference entering as often as the equations say; infinite
    where these leave something open. `open_ways`: by factor, what may be added to its logarithm, one column a way."""
    rows = open_ways[pairs[:, 0]] - open_ways[pairs[:, 1]]
    if abs(np.linalg.det(rows)) < 1e-9:
        return np.inf
    points = open_ways @ np.linalg.inv(rows) * cost
    return float(np.abs(points[:, None] - points[None]).sum(axis=2).max())


def test_the_least_distortion_is_that_of_brute_force(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over all sets of pairs of factors. Found by exchange it may be worse, by no more than is said."""
    rng, better, near, ways = np.random.default_rng(5), 0, 0, set()
    for _ in range(30):
        tied, classes, features = draw_open(rng)
        root = np.unique(classes, return_index=True)[1][classes].astype(np.int32)
        pairs, costs = find_minimum_merges(features, classes)
        kept = keep_independent(pairs, root, tied)
        pairs, costs = pairs[kept], costs[kept]
        if not 0 < len(pairs) < 3:
            continue
        x = find_design(tied).matrix.toarray()  # type: ignore[union-attr]
        _, size, vectors = np.linalg.svd(np.concatenate((x - x[root], np.zeros((x.shape[1], x.shape[1])))))
        moves = x @ vectors[size < 1e-9].T
        moves = moves - moves[0]
        open_ways = (moves @ np.linalg.svd(moves)[2].T)[:, : len(pairs)]
        every = np.array(list(combinations(range(len(classes)), 2)))
        lengths = np.linalg.norm(features[every[:, 0]] - features[every[:, 1]], axis=1)
        sets = [list(some) for some in combinations(range(len(every)), len(pairs))]
        best = min(measure_plainly(open_ways, every[some], lengths[some]) for some in sets)
        spanned = span_pairs(pairs, classes, tied)
        assert isinstance(spanned, ClassPlaces)
        least_cost = measure_longest(spanned, costs)
        assert least_cost == pytest.approx(measure_plainly(open_ways, pairs, costs), rel=1e-6)
        monkeypatch.setattr(bases, "_BASES", 10**9)
        found = bases.find_least_distortion(features, classes, pairs, costs, spanned)
        assert found.gap == 0
        assert measure_longest(found.spanned, found.costs) == pytest.approx(best, rel=1e-6)
        assert measure_plainly(open_ways, found.pairs, found.costs) == pytest.approx(best, rel=1e-6)
        better += best < least_cost * 0.999
        ways.add(len(pairs))
        if len(pairs) > 1:
            monkeypatch.setattr(bases, "_BASES", 0)
            about = bases.find_least_distortion(features, classes, pairs, costs, spanned)
            longest = measure_longest(about.spanned, about.costs)
            assert about.gap is not None and best * (1 - 1e-6) <= longest <= least_cost * (1 + 1e-6)
            assert longest <= best * (1 + about.gap) * (1 + 1e-6)
            near += longest < best * 1.05
    assert better > 3 and near > 3 and ways == {1, 2}


def test_queries_flip_by_how_often_a_pair_enters() -> None:
    """Phones show all one lower: one pair made equal is off once for a step, and four times for four."""
    rng, rows = np.random.default_rng(1), []
    for query in range(40):
        for page in range(30):
            for doc in range(5):
                position = doc + 1 + page % 2
                clicked = int(rng.random() < 0.8 / position * (0.3 + 0.15 * doc))
                rows.append((query, doc, position, ("desk", "phone")[page % 2], clicked))
    names = ("query_id", "doc_id", "position", "device", "click")
    log = pa.table(dict(zip(names, zip(*rows, strict=True), strict=True)))
    plan = elute.merge(log, bias="position + device")
    assert len(plan.pairs) == 1 and plan.consequence is not None and plan.consequence.longest_path == 4
    counts = elute.read_log(log, bias="position + device").counts()
    values = PBM().fit(counts, plan).relevance_values_
    relevance = {(row["query_id"], row["doc_id"]): values[at] for at, row in enumerate(counts.items.to_pylist())}
    for row in plan.flips.to_pylist():
        own = [relevance[row["query_id"], doc] for doc in range(5)]
        gaps = [
            abs(np.log(own[a] / own[b])) / abs(a - b) if own[a] and own[b] else np.inf
            for a in range(5)
            for b in range(a)
        ]
        assert row["flips_at"] == pytest.approx(np.exp(min(gaps)), rel=1e-4)
