"""Null dimensions against exact ranks of the whole Jacobian, against counts, and what must always hold."""

from __future__ import annotations

from functools import cache
from itertools import combinations_with_replacement, permutations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elute.errors import EluteError
from elute.identify.generic.equations import pose_equations
from elute.identify.generic.field import draw_prime, draw_residues, solve
from elute.identify.generic.identifiability import generic_identifiability, parse_model
from elute.identify.generic.nullspace import find_null_directions
from elute.identify.generic.supports import Supports, group_supports, sort_cells
from reference.plain_jacobian import (
    Cells,
    affine_rank_by_counting,
    null_dimension_by_schur,
    null_dimensions,
)

MODELS = ("pbm", "affine", "vector:1", "vector:2", "vector:3")

EXAMPLE = [("A", 1), ("B", 2), ("C", 3), ("D", 4), ("B", 1), ("A", 2), ("D", 3), ("C", 4)]
"""The two rankings of Section 6.1 of the limits paper."""

some_cells = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 5)), min_size=1, max_size=30)


def judge(cells, model):
    return generic_identifiability([x for x, _ in cells], [t for _, t in cells], model)


@cache
def all_small_graphs(items: int, factors: int) -> list[Cells]:
    """One of every kind: at most so many items, any non-empty supports, up to renaming."""
    found: dict[tuple[int, ...], tuple[int, ...]] = {}
    for n in range(1, items + 1):
        for supports in combinations_with_replacement(range(1, 1 << factors), n):
            renamed = (
                tuple(sorted(sum(1 << order[t] for t in range(factors) if s >> t & 1) for s in supports))
                for order in permutations(range(factors))
            )
            found.setdefault(min(renamed), supports)
    return [[(x, t) for x, s in enumerate(graph) for t in range(factors) if s >> t & 1] for graph in found.values()]


def chain(positions: int, items_a_link: int) -> Cells:
    return [
        (link * items_a_link + i, t)
        for link in range(positions - 1)
        for i in range(items_a_link)
        for t in (link, link + 1)
    ]


@pytest.mark.parametrize("model", MODELS)
def test_every_small_graph_has_its_exact_null_dimension(model: str) -> None:
    graphs = all_small_graphs(4, 4)
    assert len(graphs) > 200
    for cells in graphs:
        found = judge(cells, model)
        assert (found.null_dimension, found.item_null_dimension) == null_dimensions(cells, model), cells
        assert sum(part.null_dimension for part in found.parts) == found.null_dimension


@settings(max_examples=60, deadline=None)
@given(some_cells, st.sampled_from(["affine", "vector:2", "vector:3"]))
def test_larger_graphs_against_exact_ranks(cells: Cells, model: str) -> None:
    found = judge(cells, model)
    assert (found.null_dimension, found.item_null_dimension) == null_dimensions(cells, model)


def test_affine_ranks_are_those_of_the_count() -> None:
    for cells in all_small_graphs(3, 3):
        items, factors = len({x for x, _ in cells}), len({t for _, t in cells})
        assert judge(cells, "affine").null_dimension == items + 2 * factors - affine_rank_by_counting(cells), cells


def test_floating_point_agrees_where_it_can() -> None:
    rng = np.random.default_rng(0)
    for density in (0.15, 0.3, 0.5):
        x, t = np.nonzero(rng.random((25, 9)) < density)
        cells = list(zip(x.tolist(), t.tolist(), strict=True))
        for model in MODELS:
            assert judge(cells, model).null_dimension == null_dimension_by_schur(cells, model)


@pytest.mark.parametrize(
    ("items_a_link", "model", "null"),
    [(1, "pbm", 1), (1, "affine", 11), (2, "affine", 2), (3, "affine", 2), (1, "vector:2", 20), (5, "vector:2", 20)],
)
def test_chain_of_ten_positions(items_a_link: int, model: str, null: int) -> None:
    found = judge(chain(10, items_a_link), model)
    assert found.null_dimension == null
    assert found.identifiable == (null == found.gauge)
    assert found.error_bound == 0


def test_the_limits_papers_example() -> None:
    affine = judge(EXAMPLE, "affine")
    assert (affine.null_dimension, affine.gauge, affine.identifiable) == (4, 2, False)
    assert [(part.factors, part.items, part.null_dimension) for part in affine.parts] == [
        ([1, 2], 2, 2),
        ([3, 4], 2, 2),
    ]
    assert judge(EXAMPLE, "pbm").null_dimension == 2
    one_more = [*EXAMPLE, ("C", 2)]
    assert judge(one_more, "pbm").identifiable
    assert judge(one_more, "affine").null_dimension == 3
    assert judge([*one_more, ("D", 2)], "affine").identifiable


def test_gauges() -> None:
    full = [(x, t) for x in range(5) for t in range(6)]
    for model, gauge in zip(MODELS, (1, 2, 1, 4, 9), strict=True):
        found = judge(full, model)
        assert (found.null_dimension, found.gauge, found.identifiable, found.undetermined) == (gauge, gauge, True, [])


def test_factors_beyond_the_well_linked_are_named() -> None:
    tied = [(x, t) for x in range(4) for t in "abcdef"]
    loose = [*tied, ("one", "f"), ("one", "g"), ("two", "g"), ("two", "h")]
    found = judge(loose, "affine")
    assert found.null_dimension == 4
    assert found.undetermined == ["g", "h"]
    vector = [*tied, ("one", "e"), ("one", "f"), ("one", "g"), ("two", "f"), ("two", "h")]
    found = judge(vector, "vector:2")
    assert found.null_dimension == 4 + 1 + 2
    assert found.undetermined == ["g", "h"]
    assert found.loose_items == 0
    assert "2 factors are not tied" in found.sentence


def test_undetermined_factors_are_those_that_null_vectors_move() -> None:
    """Against a plain criterion: with the gauge fixed at two well-linked factors, which others can still move?"""
    cells = [
        *[(x, t) for x in range(3) for t in range(4)],
        (3, 3),
        (3, 4),
        (4, 4),
        (4, 5),
        (5, 4),
        (5, 5),
        (6, 2),
        (6, 6),
    ]
    tied = null_dimensions(cells, "affine")[0]
    together = {t for t in range(7) if null_dimensions([*cells, (8, 0), (8, t), (9, 0), (9, t)], "affine")[0] == tied}
    assert set(range(7)) - together == set(judge(cells, "affine").undetermined) == {4, 5, 6}


def test_pbm_is_connectivity() -> None:
    rng = np.random.default_rng(1)
    for n_cells in (40, 100, 200, 400):
        item, factor = rng.integers(0, 90, n_cells), rng.integers(0, 70, n_cells)
        graph = nx.Graph(zip(("x" + str(x) for x in item), factor.tolist(), strict=True))
        found = generic_identifiability(item, factor, "pbm")
        assert found.null_dimension == len(found.parts) == nx.number_connected_components(graph)
        assert found.error_bound == 0


@settings(max_examples=40, deadline=None)
@given(some_cells, st.tuples(st.integers(0, 6), st.integers(0, 5)), st.sampled_from(MODELS))
def test_a_cell_more_never_frees_old_factors(cells: Cells, cell: tuple[int, int], model: str) -> None:
    before, after = judge(cells, model), judge([*cells, cell], model)
    new = cell[1] not in {t for _, t in cells}
    width = 2 if model == "affine" else int(model.partition(":")[2] or 1)
    assert before.null_dimension - width <= after.null_dimension <= before.null_dimension + width * new


@settings(max_examples=40, deadline=None)
@given(some_cells, st.randoms(use_true_random=False), st.sampled_from(MODELS), st.integers(0, 99))
def test_names_order_repeats_and_seeds_do_not_matter(cells: Cells, random, model: str, seed: int) -> None:
    shuffled = [*cells, *random.choices(cells, k=5)]
    random.shuffle(shuffled)
    name_x, name_t = random.sample(range(100), 7), random.sample("abcdefgh", 6)
    one = judge(cells, model)
    renamed = [(name_x[x], name_t[t]) for x, t in shuffled]
    two = generic_identifiability([x for x, _ in renamed], [t for _, t in renamed], model, seed=seed)
    three = generic_identifiability(np.array([x for x, _ in renamed]), np.array([t for _, t in renamed]), model)
    for other in (two, three):
        assert (one.null_dimension, one.identifiable) == (other.null_dimension, other.identifiable)
        assert sorted(len(part.factors) for part in one.parts) == sorted(len(part.factors) for part in other.parts)


@settings(max_examples=30, deadline=None)
@given(some_cells, st.sampled_from(MODELS), st.integers(1, 3))
def test_more_items_of_a_support_than_are_looked_at(cells: Cells, model: str, more: int) -> None:
    """Every item D + `more` times: with the cap the answer is the exact one without it."""
    width = 2 if model == "affine" else int(model.partition(":")[2] or 1)
    few = sorted(set(cells))[:12]
    many = [((x, copy), t) for x, t in few for copy in range(width + more)]
    coded = {x: i for i, x in enumerate(sorted({x for x, _ in many}))}
    assert judge(many, model).null_dimension == null_dimensions([(coded[x], t) for x, t in many], model)[0]


@given(some_cells)
def test_supports_are_grouped(cells: Cells) -> None:
    item, factor = np.array(cells).T
    item = np.unique(item, return_inverse=True)[1]
    offsets, of_cells = sort_cells(item, factor, item.max() + 1, 6)
    plain: dict[frozenset[int], int] = {}
    for x in range(item.max() + 1):
        support = frozenset(factor[item == x].tolist())
        plain[support] = plain.get(support, 0) + 1
    found = group_supports(offsets, of_cells)
    rows = [found.factor[a:b].tolist() for a, b in zip(found.offsets[:-1], found.offsets[1:], strict=True)]
    assert all(row == sorted(row) for row in rows)
    assert {frozenset(row): n for row, n in zip(rows, found.items.tolist(), strict=True)} == plain
    assert len(rows) == len(plain)


def test_field() -> None:
    rng = np.random.default_rng(3)
    for _ in range(5):
        p = draw_prime(rng)
        assert 2**28 < p < 2**29
        assert all(p % d for d in range(2, int(float(p) ** 0.5) + 1))
        matrix, right = (draw_residues(rng, (5, n), p).astype(np.uint64) for n in (5, 3))
        solution = right.copy()
        assert solve(matrix.copy(), solution, p)
        product = np.array(matrix.tolist(), object) @ np.array(solution.tolist(), object)
        assert (product % int(p) == np.array(right.tolist(), object)).all()
        matrix[4] = (matrix[0] + 7 * matrix[2]) % p
        assert not solve(matrix, right.copy(), p)


def test_thin_graphs_of_many_factors() -> None:
    rng = np.random.default_rng(5)
    pairs = [(x, int(t)) for x in range(220) for t in rng.choice(110, 2, replace=False)]
    assert judge(pairs, "affine").null_dimension == null_dimension_by_schur(pairs, "affine")
    triples = [(x, int(t)) for x in range(130) for t in rng.choice(60, 3, replace=False)]
    assert judge(triples, "vector:2").null_dimension == null_dimension_by_schur(triples, "vector:2")


def test_five_thousand_factors() -> None:
    item, factor = np.array(chain(5_000, 2)).T
    assert generic_identifiability(item, factor, "affine").identifiable
    cut = item != 5_000
    broken = generic_identifiability(item[cut], factor[cut], "affine")
    assert (broken.null_dimension, broken.error_bound) == (3, 0)
    assert len(broken.undetermined) == 2_499


@pytest.mark.parametrize(("model", "size", "items"), [("affine", 2, 225), ("vector:2", 3, 230), ("vector:3", 5, 172)])
def test_a_bad_order_gives_the_same_and_directions_are_null(model: str, size: int, items: int) -> None:
    """Factors in random order: many parameters open at a time, relations among them, columns dropped on the way."""
    rng = np.random.default_rng(6)
    factor = np.sort([rng.choice(120, size, replace=False) for _ in range(items)])
    supports = Supports(np.arange(items + 1) * size, factor.ravel().astype(np.int32), np.ones(items, np.int64))
    chosen, p = parse_model(model), draw_prime(rng)
    vectors = draw_residues(rng, (120, chosen.width), p)
    system = pose_equations(supports, supports.items, rng.permutation(120), chosen, vectors, p, rng)
    draws = draw_residues(rng, (120 * chosen.width,), p)
    null, direction = find_null_directions(system, 0, 120, chosen.base, chosen.width, p, draws)
    judged = generic_identifiability(np.repeat(np.arange(items), size), factor.ravel(), model)
    unseen = 120 - len(np.unique(factor))
    assert null == judged.null_dimension + unseen * chosen.width > judged.gauge
    h, u, c = (part.astype(object) for part in (direction, system.u, system.coefficient))
    assert direction.any(axis=0).all()
    for x in range(items):
        at = range(x * size, (x + 1) * size)
        seen = [h[system.place[cell]] @ u[x] for cell in at]
        for cell, value in zip(at[chosen.base :], seen[chosen.base :], strict=True):
            assert (value - c[cell] @ seen[: chosen.base]) % int(p) == 0


def test_uncertain_verdicts_say_so() -> None:
    """Twice as many items as one factor pair can use: dependent equations, and a factor that hangs by one item."""
    cells = [(x, t) for x in range(5) for t in (0, 1, 2)] + [(9, 2), (9, 3), (10, 3), (10, 4), (11, 4), (11, 2)]
    found = judge(cells, "affine")
    assert found.null_dimension == null_dimensions(cells, "affine")[0] == 3
    assert 0 <= found.error_bound <= 1e-9
    overlap = [*cells, (12, 0), (12, 1)]
    assert 0 < judge(overlap, "affine").error_bound <= 1e-9


def test_ids_of_any_kind() -> None:
    assert len(generic_identifiability([1, "1", (1, 2)], ["a", "a", None]).parts) == 2
    assert len(generic_identifiability(np.array(["x", "x"]), np.array([3.5, 4.5])).parts[0].factors) == 2


@pytest.mark.parametrize(
    ("items", "factors", "model", "message"),
    [
        ([1, 2], [1], "pbm", "2 items but 1 factors"),
        ([], [], "pbm", "no observed cells"),
        ([1], [1], "vector:0", "no model 'vector:0'; there are: pbm, affine, vector:D"),
        ([1], [1], "cascade", "no model 'cascade'"),
        ([[1]], [1], "pbm", "cannot be hashed"),
        (np.ones((2, 2)), np.ones(2), "pbm", "2 dimensions"),
    ],
)
def test_what_cannot_be_used_is_refused(items, factors, model: str, message: str) -> None:
    with pytest.raises(EluteError, match=message):
        generic_identifiability(items, factors, model)
