"""What formulas determine, against dense elimination over the rationals."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.sparse import csr_array

from elute.cells.formula import BiasFormula, BiasTerm, BiasVariable, tie_factors
from elute.identify.effects import dense as dense_module
from elute.identify.effects import elimination
from elute.identify.effects import span as span_module
from elute.identify.effects.classes import join_classes, number_classes, span_forest
from elute.identify.effects.design import EffectDesign, build_design
from elute.identify.effects.span import find_span
from elute.identify.generic.field import draw_prime
from elute.kernels.forest import connect_cells
from reference.plain_effects import (
    Row,
    code_overcomplete,
    find_differences,
    find_rank,
    lies_in,
    reduce_rows,
    subtract,
)

NAMES = ("a", "b", "c")


def draw_log(rng: np.random.Generator) -> tuple[list[tuple[int, ...]], list[set[int]]]:
    """Factors and, by item, those it was shown under; few of the factors share an item."""
    columns = int(rng.integers(1, 4))
    sizes = rng.integers(1, 5, columns)
    drawn = rng.integers(0, sizes, (int(rng.integers(2, 16)), columns))
    factors = sorted({tuple(int(x) for x in row) for row in drawn})
    most = max(1, int(rng.integers(1, 8)))
    items = [
        set(rng.choice(len(factors), min(len(factors), 1 + int(rng.integers(3))), replace=False)) for _ in range(most)
    ]
    return factors, [{int(t) for t in item} for item in items]


def draw_terms(rng: np.random.Generator, columns: int) -> list[tuple[int, ...]]:
    """Each column in one term at least."""
    every = [some for size in range(1, columns + 1) for some in combinations(range(columns), size)]
    chosen = [term for term in every if rng.random() < 0.4]
    missing = set(range(columns)) - {at for term in chosen for at in term}
    return chosen + [(at,) for at in sorted(missing)]


def to_table(factors: Sequence[tuple[int, ...]]) -> pa.Table:
    return pa.table({NAMES[at]: [row[at] for row in factors] for at in range(len(factors[0]))})


def to_formula(terms: list[tuple[int, ...]]) -> BiasFormula:
    return BiasFormula(tuple(BiasTerm(tuple(BiasVariable(NAMES[at]) for at in term)) for term in terms))


def find_forest(items: list[set[int]], factors: int) -> NDArray[np.int32]:
    offsets = np.cumsum([0, *map(len, items)])
    flat = np.array([t for item in items for t in sorted(item)], np.int32)
    return connect_cells(offsets, flat, factors)


def test_thousand_random_logs_and_formulas_against_dense_rational_arithmetic() -> None:
    rng = np.random.default_rng(22)
    seen = {"one": 0, "several": 0, "beyond components": 0}
    for _ in range(1_000):
        factors, items = draw_log(rng)
        terms = draw_terms(rng, len(factors[0]))
        table, formula = to_table(factors), to_formula(terms)
        rows = code_overcomplete(factors, terms)
        echelon = reduce_rows(find_differences(items, rows))
        design = build_design(table, formula)
        root = find_forest(items, len(factors))
        span = span_forest(design, root)
        assert span.rank == len(echelon) == design.size - span.free.sum()
        found = number_classes(span.key_factors(design))
        for s, t in combinations(range(len(factors)), 2):
            assert (found[s] == found[t]) == lies_in(echelon, subtract(rows[s], rows[t])), (factors, items, terms)
        assert np.array_equal(found, join_classes(root, tie_factors(table, formula)))
        seen["one" if len(set(found)) == 1 else "several"] += 1
        seen["beyond components"] += len(set(found)) < len(set(root))
    assert min(seen.values()) > 50, seen


def test_sparse_elimination_against_dense_rational_arithmetic(monkeypatch: pytest.MonkeyPatch) -> None:
    """As above, without a forest: rows are eliminated as they are, the last columns densely."""
    monkeypatch.setattr(span_module, "FEW", -1)
    rng = np.random.default_rng(23)
    seen = {"one": 0, "several": 0}
    for _ in range(200):
        factors, items = draw_log(rng)
        terms = draw_terms(rng, len(factors[0]))
        rows, design = code_overcomplete(factors, terms), build_design(to_table(factors), to_formula(terms))
        echelon = reduce_rows(find_differences(items, rows))
        span = span_forest(design, find_forest(items, len(factors)))
        assert span.rank == len(echelon) == design.size - span.free.sum()
        found = number_classes(span.key_factors(design))
        for s, t in combinations(range(len(factors)), 2):
            assert (found[s] == found[t]) == lies_in(echelon, subtract(rows[s], rows[t])), (factors, items, terms)
        seen["one" if len(set(found)) == 1 else "several"] += 1
    assert min(seen.values()) > 20, seen


def draw_links(links: int) -> tuple[EffectDesign, NDArray[np.int64], NDArray[np.int64]]:
    """Two large terms, linked at random: what is sparse fills up."""
    rng = np.random.default_rng(links)
    drawn = rng.permutation(8 * 8 * 40)[:1_500]
    factors = [(int(t) % 8, int(t) // 8 % 8, int(t) // 64) for t in drawn]
    left, right = rng.integers(0, len(factors), (2, links))
    return build_design(to_table(factors), to_formula([(0, 2), (1, 2)])), left, right


@pytest.mark.parametrize("links", [300, 600, 1_200])
def test_both_eliminations_agree_where_much_is_left(links: int, monkeypatch: pytest.MonkeyPatch) -> None:
    design, left, right = draw_links(links)
    found = []
    for few in (-1, 10_000):
        monkeypatch.setattr(span_module, "FEW", few)
        span = find_span(design, left, right)
        found.append((span.rank, number_classes(span.key_factors(design)).tolist()))
    assert found[0] == found[1] and found[0][0] > 200


def test_an_elimination_that_takes_too_long_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(span_module, "FEW", -1)
    monkeypatch.setattr(elimination, "WORK", 0)
    monkeypatch.setattr(elimination, "MOST", 0)
    design, left, right = draw_links(600)
    with pytest.raises(span_module.TooManyEffects, match=r"'a:c \+ b:c', of which \d+ effects remain") as caught:
        find_span(design, left, right)
    assert "\n" not in str(caught.value)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 12), st.integers(0, 14), st.integers(0, 2**32 - 1))
def test_values_of_an_echelon_are_null_and_as_free_as_the_rank_says(columns: int, rows: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    p = int(draw_prime(rng))
    dense = rng.integers(-2, 3, (rows, columns)) * (rng.random((rows, columns)) < 0.4)
    found = elimination.eliminate(csr_array(dense % p), p, rng)
    assert found is not None
    exact = find_rank([[Fraction(int(x)) for x in row] for row in dense])
    assert found.find_free(columns).sum() == columns - exact
    drawn = [found.draw(columns, rng, p) for _ in range(columns)]
    for z in drawn:
        assert not (dense.astype(object) @ z.astype(object) % p).any()
    core = np.array(drawn, np.uint32)
    assert len(dense_module.reduce_rows(core, p)) == columns - exact


def test_one_effect_a_combination_gives_the_components() -> None:
    rng = np.random.default_rng(1)
    for _ in range(200):
        factors, items = draw_log(rng)
        whole = tuple(range(len(factors[0])))
        design = build_design(to_table(factors), to_formula([whole]))
        root = find_forest(items, len(factors))
        assert np.array_equal(number_classes(span_forest(design, root).key_factors(design)), root)


def test_effects_that_are_free_leave_the_others_determined() -> None:
    """Without the free columns the differences have the same rank, and it is full."""
    rng = np.random.default_rng(2)
    for _ in range(200):
        factors, items = draw_log(rng)
        design = build_design(to_table(factors), to_formula(draw_terms(rng, len(factors[0]))))
        span = span_forest(design, find_forest(items, len(factors)))
        dense = [[Fraction(int(x)) for x in row] for row in design.matrix.toarray()[:, ~span.free]]
        assert find_rank(find_differences(items, dense)) == span.rank == (~span.free).sum()


def test_effects_equal_to_their_reference_are_those_whose_column_lies_in_the_span() -> None:
    rng = np.random.default_rng(3)
    told = 0
    for _ in range(300):
        factors, items = draw_log(rng)
        design = build_design(to_table(factors), to_formula(draw_terms(rng, len(factors[0]))))
        if not design.size:
            continue
        dense = [[Fraction(int(x)) for x in row] for row in design.matrix.toarray()]
        echelon = reduce_rows(find_differences(items, dense))
        keys = span_forest(design, find_forest(items, len(factors))).key_effects()
        for column in range(design.size):
            unit: Row = [Fraction(int(column == at)) for at in range(design.size)]
            assert (not keys[column].any()) == lies_in(echelon, unit)
            told += not keys[column].any()
    assert told > 100


@pytest.mark.parametrize("kind", ["linear", "spline"])
def test_numbers_are_exact(kind: str) -> None:
    """0.1, 0.2 and 0.3 lie on a line as written; one step along it gives the ratio of any two."""
    heights = [0.1, 0.2, 0.3, 0.7, 1.1, 1.5, 1.9]
    table = pa.table({"height": heights})
    design = build_design(table, BiasFormula.parse(f"{kind}(height)"))
    dense = design.residues(1_000_003)
    assert dense.shape == (7, 1 if kind == "linear" else 4)
    span = find_span(design, np.array([1]), np.array([0]))
    assert span.rank == 1
    assert len(set(number_classes(span.key_factors(design)))) == (1 if kind == "linear" else 6)
    exact = [[Fraction(design.numbers[k - 1]) for k in row] for row in design.place.toarray()]
    pairs = [(0, 1), (1, 2), (2, 3), (3, 4)]
    left, right = (np.array(ends) for ends in zip(*pairs, strict=True))
    span = find_span(design, left, right)
    echelon = reduce_rows([subtract(exact[a], exact[b]) for a, b in pairs])
    assert span.rank == len(echelon)
    found = number_classes(span.key_factors(design))
    for s, t in combinations(range(7), 2):
        assert (found[s] == found[t]) == lies_in(echelon, subtract(exact[s], exact[t]))


def test_contexts_chained_through_positions_against_dense_arithmetic() -> None:
    """Hardly any two effects are plainly equal here, so that cycles of contexts are what is eliminated."""
    rng = np.random.default_rng(4)
    ranks = set()
    for links in (8, 12, 14, 16, 18, 22, 40) * 4:
        factors = [(c, p) for c in range(12) for p in range(6)]
        rows = code_overcomplete(factors, [(0,), (1,)])
        design = build_design(to_table(factors), to_formula([(0,), (1,)]))
        left, right = rng.integers(0, len(factors), (2, links))
        echelon = reduce_rows([subtract(rows[a], rows[b]) for a, b in zip(left, right, strict=True)])
        span = find_span(design, left, right)
        assert span.rank == len(echelon)
        found = number_classes(span.key_factors(design))
        for s, t in rng.integers(0, len(factors), (60, 2)):
            assert (found[s] == found[t]) == lies_in(echelon, subtract(rows[s], rows[t]))
        ranks.add(span.rank)
    assert max(ranks) == 16 and len(ranks) > 4
