"""Swaps under a formula: against every set of them, dense errors, plans carried out; logs of every kind."""

from __future__ import annotations

import csv
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import elute
from conftest import call_elute
from elute.estimate.solve import resistance
from elute.identify.effects.classes import join_pairs, root_classes
from elute.identify.effects.design import find_design
from elute.repair import budget
from elute.repair.allowed import Allowed
from elute.repair.swapping.exchange import show_exchanged
from elute.repair.swapping.expected import expect
from elute.repair.swapping.feasible import list_swaps
from elute.repair.swapping.forecast import Forecast, ShownAnew
from elute.repair.swapping.links import find_links, price
from elute.repair.swapping.movable import find_movable
from elute.repair.swapping.parts import find_parts
from elute.repair.swapping.traffic import find_traffic
from reference.plain_effect_swaps import PlainSwap, choose_cheapest, compare, count_classes
from reference.plain_effects import Row, code_overcomplete, find_differences, reduce_rows, subtract

ADDITIVE = "position + device"
FORMULAS = {
    ADDITIVE: ((0,), (1,)),
    "position + device + size": ((0,), (1,), (2,)),
    "position + device:size": ((0,), (1, 2)),
    "linear(position) + device + size": (None, (1,), (2,)),
}

cells = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(1, 4), st.sampled_from("xy"), st.integers(0, 1)),
    min_size=3,
    max_size=14,
)


def log_of(rows: list[tuple[int, int, int, str, int]]) -> pa.Table:
    """Documents of one query each; every row is clicked now and then."""
    query, doc, position, device, size = zip(*rows, strict=True)
    return pa.table(
        {
            "query_id": [f"q{q}" for q in query],
            "doc_id": [f"q{q}d{d}" for q, d in zip(query, doc, strict=True)],
            "position": position,
            "device": device,
            "size": size,
            "shown": [20] * len(rows),
            "click": [5] * len(rows),
        }
    )


def read(table: pa.Table, formula: str) -> elute.Check:
    return elute.check(elute.read_log(table, bias=formula, impressions="shown"))


def code(check: elute.Check, formula: str) -> list[Row]:
    """The factors' rows, without any reference."""
    names = ("position", "device", "size")
    columns = [[row.get(name) for name in names] for row in check.counts.factors.to_pylist()]
    plain = code_overcomplete(columns, [term for term in FORMULAS[formula] if term is not None])
    if None in FORMULAS[formula]:
        return [[Fraction(int(values[0])), *row] for values, row in zip(columns, plain, strict=True)]
    return plain


def find_shown(check: elute.Check) -> list[set[int]]:
    counts = check.counts
    return [set(counts.factor[a:b].tolist()) for a, b in zip(counts.offsets, counts.offsets[1:], strict=False)]


@pytest.mark.slow
@settings(deadline=None, max_examples=20)
@given(cells, st.sampled_from(sorted(FORMULAS)), st.sampled_from([(), ("device",), ("device", "size")]))
def test_the_cheapest_links_are_those_of_brute_force_and_join_all_that_any_swaps_do(
    rows: list[tuple[int, int, int, str, int]], formula: str, movable_columns: tuple[str, ...]
) -> None:
    check = read(log_of(rows), formula)
    counts, rng = check.counts, np.random.default_rng(len(rows))
    r, o = rng.uniform(0.1, 0.9, counts.n_items), rng.uniform(0.2, 1.0, counts.n_factors)
    movable = find_movable(check, movable=[c for c in movable_columns if c in counts.factors.column_names])
    expected, traffic = expect(check, r, o), find_traffic(check)
    coded, shown = code(check, formula), find_shown(check)
    differences = find_differences(shown, coded)
    assert expected.parts == count_classes(coded, differences) == check.components

    candidates = list_swaps(traffic, expected, movable.kind, movable.place, 1.0, Allowed(), True)
    links = find_links(candidates, expected, np.full(len(traffic.offsets) - 1, 10**6), 1e-9, counts.factors)
    first = np.unique(expected.part, return_index=True)[1]
    costs = price(candidates, expected)
    plain = [
        PlainSwap(int(q), int(first[expected.home[x]]), int(t), float(strength), float(cost))
        for q, x, t, strength, cost in zip(
            candidates.query, candidates.item, candidates.target, candidates.strength, costs, strict=True
        )
    ]
    swaps = [swap for link in links for swap in link.swaps.pairs.tolist()]
    joined = join_pairs(expected.part, np.array(swaps, np.int64).reshape(-1, 2), counts.factors)
    feasible = [subtract(coded[swap.source], coded[swap.target]) for swap in plain]
    assert joined.max() + 1 == count_classes(coded, [*differences, *feasible])
    least = choose_cheapest(coded, differences, plain)
    if least is None:
        assert joined.max() > 0
        return
    known = reduce_rows(differences)
    groups = [{compare(known, coded[s], coded[t]).direction for s, t in link.swaps.pairs.tolist()} for link in links]
    assert all(len(group) == 1 for group in groups)
    chosen = {next(iter(group)) for group in groups}
    own = [swap for swap in plain if compare(known, coded[swap.source], coded[swap.target]).direction in chosen]
    assert choose_cheapest(coded, differences, own) == pytest.approx(least)
    assert check.effects is not None
    assert len(chosen) == len(links) == check.effects.missing


@pytest.mark.slow
@settings(deadline=None, max_examples=6)
@given(cells, st.sampled_from(sorted(FORMULAS)), st.sampled_from([0.1, 0.5, 1.0]))
def test_a_plan_that_leaves_one_part_leaves_all_determined(
    rows: list[tuple[int, int, int, str, int]], formula: str, share: float
) -> None:
    table = log_of(rows)
    check = read(table, formula)
    plan = elute.swap(check, share=share, movable="device")
    assert plan.parts_after == plan.components_after
    assert (plan.parts_after == 1) == (plan.infeasible == ())
    after = elute.check(elute.read_log(table, bias=formula, impressions="shown"), plan=plan)
    assert after.components == plan.components_after
    assert after.recoverable == (plan.parts_after == 1)
    assert plan.parts_after == 1 or all(row["reason"] for row in plan.infeasible)


def shift_pages(queries: int, pages: int, seed: int, first: int = 0, positions: int = 5) -> list[tuple[Any, ...]]:
    """On phones an advertisement comes first: all results are one lower. So the effect of a device and that of one
    position more look the same."""
    rng, rows = np.random.default_rng(seed), []
    relevance = np.random.default_rng(0).beta(2, 2, (queries, positions))
    for query in range(queries):
        for page in range(pages):
            phone = page % 2
            for doc in range(positions):
                position, session = doc + 1 + phone, first + (query * pages + page)
                p = relevance[query, doc] * position**-0.7 * (0.8 if phone else 1.0)
                rows.append((session, query, doc, position, "phone" if phone else "desk", int(rng.random() < p)))
    return rows


def to_table(rows: list[tuple[Any, ...]]) -> pa.Table:
    names = ("session_id", "query_id", "doc_id", "position", "device", "click")
    return pa.table(dict(zip(names, zip(*rows, strict=True), strict=True)))


@pytest.fixture(scope="module")
def shifted() -> pa.Table:
    return to_table(shift_pages(80, 60, 1))


@pytest.fixture(scope="module")
def plan(shifted: pa.Table) -> elute.SwapPlan:
    return elute.swap(shifted, bias=ADDITIVE, share=0.3)


def carry_out(table: pa.Table, plan: elute.SwapPlan, seed: int) -> pa.Table:
    """Pages on which the item of a swap changes places with what stands there."""
    rng, relevance = np.random.default_rng(seed), np.random.default_rng(0).beta(2, 2, (80, 5))
    rows, session = [], 10**6
    for swap in plan.swaps:
        query, item, phone = swap.item["query_id"], swap.item["doc_id"], int(swap.target["device"] == "phone")
        for _ in range(swap.impressions):
            order = list(range(5))
            at = swap.target["position"] - 1 - phone
            order[order.index(item)], order[at] = order[at], item
            for place, doc in enumerate(order):
                position = place + 1 + phone
                p = relevance[query, doc] * position**-0.7 * (0.8 if phone else 1.0)
                rows.append((session, query, doc, position, swap.target["device"], int(rng.random() < p)))
            session += 1
    return pa.concat_tables([table, to_table(rows)])


def test_one_comparison_is_missing_and_the_longest_swaps_make_it(shifted: pa.Table, plan: elute.SwapPlan) -> None:
    """What one position more does is known up to what a phone does: the farther a result moves, the more it tells."""
    check = elute.check(shifted, bias=ADDITIVE)
    assert check.effects is not None and check.effects.missing == 1 and check.components == 5
    assert (plan.parts_before, plan.parts_after, plan.components_after) == (5, 1, 1)
    moved = {abs(swap.source["position"] - swap.target["position"]) for swap in plan.swaps}
    assert max(moved) == 4 and min(moved) > 1
    assert {swap.source["device"] == swap.target["device"] for swap in plan.swaps} == {True}
    product = elute.swap(shifted, bias="position,device", share=0.3)
    assert plan.forecast["impressions"] < product.forecast["impressions"]


def test_a_plan_carried_out_leaves_the_log_determined_and_as_precise_as_forecast(
    shifted: pa.Table, plan: elute.SwapPlan
) -> None:
    after = carry_out(shifted, plan, 3)
    verdict = elute.check(after, bias=ADDITIVE)
    assert verdict.recoverable and verdict.rung in ("loose", "known")
    assert verdict.precision is not None and verdict.precision.largest_log_se is not None
    promised = plan.forecast["largest_log_se"]
    assert verdict.precision.largest_log_se == pytest.approx(promised, rel=0.35)
    fit = elute.fit(after, bias=ADDITIVE)
    assert fit.effects is not None
    rows = {(row["term"], row["position"], row["device"]): row for row in fit.effects.to_pylist()}
    base = next(row["position"] for row in rows.values() if row["term"] == "position" and row["reference"])
    for position in range(1, 7):
        row = rows["position", position, None]
        truth = -0.7 * np.log(position / base)
        assert row["determined"] and abs(row["effect"] - truth) <= 4 * row["log_se"] + 1e-9


def test_the_forecast_is_the_inverse_of_the_information_about_effects(shifted: pa.Table) -> None:
    """Against dense matrices, summed up item by item."""
    check = elute.check(shifted, bias=ADDITIVE)
    expected, rng = expect(check), np.random.default_rng(0)
    counts, n = check.counts, check.counts.n_factors
    item, factor = rng.integers(0, counts.n_items, 40), rng.integers(0, n, 40)
    found = Forecast(check, expected, ShownAnew(item, factor, np.full(40, 9.0))).measure(2.0)
    shown = np.zeros((counts.n_items, n))
    every = np.repeat(np.arange(counts.n_items), np.diff(counts.offsets))
    shown[every, counts.factor] = counts.impressions
    home = expected.part[None, :] == expected.home[:, None]
    new = np.zeros_like(shown)
    np.add.at(new, (item, factor), 18.0)
    shown = np.where(home | (new > 0), shown, 0.0) + new
    p = np.minimum(expected.typical[:, None] * expected.propensity, 0.95)
    w = shown * p / (1 - p)
    plain = sum(np.diag(row) - np.outer(row, row) / row.sum() for row in w if row.sum() > 0)
    design = find_design(counts.factors)
    assert design is not None and found.parts == 1
    x = design.matrix.toarray()
    covariance = x @ np.linalg.pinv(x.T @ plain @ x) @ x.T
    ref = int(found.reference[0])
    variance = np.diag(covariance) + covariance[ref, ref] - 2 * covariance[:, ref]
    effect = 1.0 if check.precision is None else check.precision.design_effect
    assert found.log_se == pytest.approx(np.sqrt(np.maximum(variance, 0) * effect), abs=1e-8)


def test_a_budget_is_spent_where_effects_need_it(shifted: pa.Table) -> None:
    check = elute.check(shifted, bias=ADDITIVE)
    plans = {n: elute.swap(check, share=0.3, budget=n) for n in (300, 900)}
    for number, made in plans.items():
        assert sum(swap.impressions for swap in made.swaps) == number and made.parts_after == 1
    few, many = (plans[n].forecast["largest_log_se"] for n in (300, 900))
    assert many < few
    random = elute.swap(check, share=0.3, budget=900, objective="mean")
    assert many <= random.forecast["largest_log_se"] * 1.02


def test_a_budget_of_many_factors_is_spent_about_as_well(shifted: pa.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """In rounds, from draws, as where factors are too many for a matrix of all."""
    check = elute.check(shifted, bias=ADDITIVE)
    few = elute.swap(check, share=0.3, budget=900)
    monkeypatch.setattr(budget, "MOST_TIED", 0)
    for effects in (resistance.DENSE_EFFECTS, 0):
        monkeypatch.setattr(resistance, "DENSE_EFFECTS", effects)
        many = elute.swap(check, share=0.3, budget=900)
        assert sum(swap.impressions for swap in many.swaps) == 900 and many.parts_after == 1
        assert many.forecast["largest_log_se"] < 1.15 * few.forecast["largest_log_se"]


def test_names_and_the_order_of_rows_change_nothing(shifted: pa.Table, plan: elute.SwapPlan) -> None:
    rng, docs = np.random.default_rng(5), np.array([3, 0, 4, 1, 2])
    renamed = shifted.set_column(2, "doc_id", [docs[shifted["doc_id"].to_numpy()]])
    other = elute.swap(renamed.take(rng.permutation(len(renamed))), bias=ADDITIVE, share=0.3)
    rows = [(swap.item, swap.source, swap.target, swap.impressions) for swap in other.swaps]
    assert rows == [
        ({**swap.item, "doc_id": int(docs[swap.item["doc_id"]])}, swap.source, swap.target, swap.impressions)
        for swap in plan.swaps
    ]
    names = {"phone": "a phone", "desk": "the desk"}  # in another order, so that of equal swaps others come first
    turned = shifted.set_column(4, "device", [[names[value] for value in shifted["device"].to_pylist()]])
    other = elute.swap(turned, bias="device + position", share=0.3)

    def describe(made: elute.SwapPlan) -> list[tuple[int, int, int]]:
        ends = [(swap.source["position"], swap.target["position"], swap.impressions) for swap in made.swaps]
        return sorted(ends)

    assert describe(other) == describe(plan)
    assert other.forecast["largest_log_se"] == pytest.approx(plan.forecast["largest_log_se"], rel=1e-4)


def draw_sparse(seed: int) -> pa.Table:
    """Most items are shown once; users come again."""
    rng, rows = np.random.default_rng(seed), []
    for page in range(1500):
        query = int(rng.zipf(1.6)) % 900
        device, start = ("phone", "desk")[page % 2], int(rng.integers(0, 2))
        for place in range(4):
            position = place + 1
            doc = (place + 2 * start) if query < 3 else place + 10 * int(rng.integers(0, 40))
            rows.append((page // 3, query, doc, position, device, int(rng.random() < 0.5 / position)))
    return to_table(rows)


@pytest.mark.parametrize("formula", [ADDITIVE, "smooth(position) + device", "spline(position) + device"])
def test_a_sparse_log_is_planned_for_or_it_is_said_why_not(formula: str) -> None:
    table = draw_sparse(1)
    plan = elute.swap(table, bias=formula, share=0.5)
    after = elute.check(table, bias=formula, plan=plan)
    assert after.components == plan.components_after
    assert len(plan.infeasible) == plan.parts_after - 1
    if plan.parts_after == 1:
        assert plan.swaps == () or plan.forecast["largest_log_se"] is not None


def test_lone_positions_are_tied_along_what_swaps_can_move() -> None:
    """Each document at one place of its own, on both devices: devices are known, positions are not."""
    rng, rows = np.random.default_rng(3), []
    for query in range(40):
        for page in range(40):
            device = ("phone", "desk")[page % 2]
            for doc in range(4):
                seen = 0.9 / (1 + doc) * (0.6 if page % 2 else 1.0)
                rows.append((page, query, doc, doc + 1, device, int(rng.random() < seen * 0.6)))
    table = to_table(rows)
    plan = elute.swap(table, bias=ADDITIVE, share=0.5)
    assert (plan.parts_before, plan.parts_after) == (4, 1)
    assert elute.check(table, bias=ADDITIVE, plan=plan).recoverable
    near = elute.swap(table, bias=ADDITIVE, share=0.5, max_position_change=1)
    assert near.parts_after == 1
    assert {abs(swap.source["position"] - swap.target["position"]) for swap in near.swaps} == {1}
    some = elute.swap(table, bias=ADDITIVE, share=0.5, only_positions=[1])
    assert some.parts_after == 1 and {swap.target["position"] for swap in some.swaps} == {1}


def test_devices_that_no_query_shares_stay_apart_and_it_is_said_why() -> None:
    rng, rows = np.random.default_rng(2), []
    for query in range(60):
        for page in range(6):
            for doc in range(3):
                position = (doc + page) % 3 + 1
                device = ("phone", "desk")[query % 2]
                rows.append((100 * query + page, query, doc, position, device, int(rng.random() < 0.5 / position)))
    plan = elute.swap(to_table(rows), bias=ADDITIVE, session="session_id")
    assert plan.swaps == () and plan.parts_after == 2
    assert "device is fixed (it never varies within a page" in plan.infeasible[0]["reason"]


def test_a_level_without_a_click_leaves_the_others_to_be_tied() -> None:
    """Position 3 was never clicked: it counts to the main part, and does not make two devices one."""
    rows = [
        (0, 0, doc, position, device, int(position < 3 and n % 3 == 0))
        for device, start in (("phone", 0), ("desk", 10))
        for doc in (start, start + 1)
        for position in (1, 2, 3)
        for n in range(30)
    ]
    check = elute.check(to_table(rows), bias=ADDITIVE)
    part = find_parts(check.counts, check.found.of_factor)
    device = np.array([row["device"] for row in check.counts.factors.to_pylist()])
    assert len(np.unique(part)) == 2
    assert all(len(np.unique(part[device == one])) == 1 for one in ("phone", "desk"))
    assert root_classes(part).tolist() == [int(np.flatnonzero(part == one)[0]) for one in part]


@pytest.mark.parametrize("formula", [ADDITIVE, "linear(position) + device"])
def test_a_log_without_queries_has_one_pool_of_pages(formula: str) -> None:
    table = to_table(shift_pages(30, 20, 4)).drop_columns(["query_id", "session_id"])
    docs = pa.array([f"{row // 100}-{doc}" for row, doc in enumerate(table["doc_id"].to_pylist())])
    table = table.set_column(0, "doc_id", docs)
    check = elute.check(table, bias=formula, item="doc_id")
    plan = elute.swap(check, share=0.3, movable="device")
    assert check.components > 1 and plan.parts_after == 1
    assert elute.check(table, bias=formula, item="doc_id", plan=plan).recoverable


def test_a_plan_is_followed_as_clicks_come(shifted: pa.Table, plan: elute.SwapPlan) -> None:
    shown = carry_out(shifted, plan, 11).slice(len(shifted))
    found = elute.follow(plan, shown, shifted)
    assert found.joined
    off = []
    for swap in found.swaps:
        truth = -0.7 * np.log(swap.source["position"] / swap.target["position"])
        assert swap.low is not None and swap.high is not None and swap.log_ratio is not None
        assert swap.low <= truth <= swap.high
        off.append(swap.log_ratio - truth)
    assert np.abs(off).max() < 0.5


def test_what_a_swap_shows_ties_parts_in_the_forecast(shifted: pa.Table, plan: elute.SwapPlan) -> None:
    """The one that stood there goes where the item was, and tells of the link too."""
    check = elute.check(shifted, bias=ADDITIVE)
    expected, movable, traffic = expect(check), find_movable(check), find_traffic(check)
    candidates = list_swaps(traffic, expected, movable.kind, movable.place, 0.3, Allowed(), True).take(np.arange(1))
    shown = show_exchanged(traffic, movable, candidates.item, candidates.target, candidates.query, candidates.most)
    assert len(shown.item) > 1
    first = ShownAnew(shown.item[:1], shown.factor[:1], shown.impressions[:1])
    both, alone = Forecast(check, expected, shown), Forecast(check, expected, first)
    assert both.measure(0.0).parts == 5 and alone.measure().parts == both.measure().parts == 1
    one, two = both.measure().largest, alone.measure().largest
    assert one is not None and two is not None and one < two


def test_the_command_writes_the_same_files_as_without_a_formula(
    shifted: pa.Table, plan: elute.SwapPlan, tmp_path: Path
) -> None:
    log, out, table = tmp_path / "log.parquet", tmp_path / "swap.json", tmp_path / "swap.csv"
    pq.write_table(shifted, log)
    words = ("--bias", ADDITIVE, "--method", "swap", "--share", "0.3")
    done = call_elute("repair", log, *words, "--out", out, "--export", table, "--json")
    assert done.code == 0, done.err
    assert done.json["swaps"] == plan.to_dict()["swaps"]
    assert json.loads(out.read_text())["provenance"]["formula"] == ADDITIVE
    with table.open() as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == len(plan.swaps) and {"query", "document", "from_position", "to_device"} <= set(lines[0])
    checked = call_elute("check", log, "--bias", ADDITIVE, "--plan", out)
    said = " ".join(checked.out.split())
    assert checked.code == 0 and "one component under position + device under this swap plan" in said
    page = call_elute("repair", log, *words)
    assert page.code == 0 and "tie the log's 5 parts together" in " ".join(page.out.split())


def test_the_counts_of_a_plan_keep_the_formula(shifted: pa.Table, plan: elute.SwapPlan) -> None:
    """`check --plan` looks at these: as many impressions as planned."""
    counts = elute.check(shifted, bias=ADDITIVE).counts
    after = plan.apply(counts)
    assert int(after.impressions.sum() - counts.impressions.sum()) == plan.forecast["impressions"]
    assert find_design(after.factors) is not None
