"""Swaps that can happen: by trying everything, and on logs that break what planners like to assume."""

from __future__ import annotations

import csv
import json
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
from elute.repair.allowed import Allowed
from elute.repair.swapping.expected import MOST, expect
from elute.repair.swapping.feasible import list_swaps
from elute.repair.swapping.links import inform, share_impressions
from elute.repair.swapping.movable import find_movable
from elute.repair.swapping.traffic import count_pages, find_traffic
from reference.plain_swaps import Impressions, join, list_feasible, lose, pages_by_place

rows = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(1, 5), st.sampled_from("xy"), st.integers(1, 40)),
    min_size=2,
    max_size=25,
)


def log_of(cells: list[tuple[int, int, int, str, int]]) -> pa.Table:
    """Documents of one query each; a third of the rows is clicked."""
    query, doc, position, device, shown = zip(*cells, strict=True)
    return pa.table(
        {
            "query_id": [f"q{q}" for q in query],
            "doc_id": [f"q{q}d{d}" for q, d in zip(query, doc, strict=True)],
            "position": position,
            "device": device,
            "shown": shown,
            "click": [n // 3 if i % 3 else 0 for i, n in enumerate(shown)],
        }
    )


def read(table: pa.Table, **options: Any) -> elute.Check:
    return elute.check(elute.read_log(table, bias="position,device", impressions="shown", **options))


@settings(deadline=None, max_examples=60)
@given(rows, st.sampled_from([0.05, 0.3, 1.0]), st.booleans())
def test_every_candidate_is_feasible_and_the_strongest_of_its_place(
    cells: list[tuple[int, int, int, str, int]], pages: float, linking: bool
) -> None:
    check = read(log_of(cells))
    counts, rng = check.counts, np.random.default_rng(len(cells))
    r, o = rng.uniform(0.05, 0.9, counts.n_items), rng.uniform(0.1, 1.0, counts.n_factors)
    expected, traffic = expect(check, r, o), find_traffic(check)
    movable = find_movable(check)
    assert set(movable.fixed) == {"device"}
    owner = np.repeat(np.arange(len(traffic.offsets) - 1), np.diff(traffic.offsets))
    plain = [Impressions(*map(int, row)) for row in zip(owner, *traffic[1:4], strict=True)]
    found = list_swaps(traffic, expected, movable.kind, movable.place, pages, Allowed(), linking)

    def part(t: int) -> int:
        return int(expected.part[t])

    def kind(t: int) -> int:
        return int(movable.kind[t])

    feasible = list_feasible(plain, part, kind, pages, linking)
    if linking:
        feasible = {one for one in feasible if part(one[2]) == expected.home[one[1]]}
    best: dict[tuple[int, int, int], float] = {}
    places = pages_by_place(plain)
    for query, x, _, t in feasible:
        gain = np.floor(pages * places[query, t]) * (p := min(r[x] * o[t], MOST)) / (1 - p)
        assert isinstance(query, int)
        key = query, t, int(expected.home[x]) if linking else 0
        best[key] = max(best.get(key, 0.0), gain * expected.known[x] / (gain + expected.known[x]))
    got = {
        (int(q), int(t), int(expected.home[x]) if linking else 0): value
        for q, t, x, value in zip(found.query, found.target, found.item, found.strength, strict=True)
    }
    assert got == pytest.approx(best)
    for q, x, s, t in zip(found.query, found.item, found.source, found.target, strict=True):
        assert (int(q), int(x), int(s), int(t)) in feasible


@settings(deadline=None, max_examples=40)
@given(rows)
def test_loss_is_that_of_exchanging_two_results(cells: list[tuple[int, int, int, str, int]]) -> None:
    table = log_of([(*cell[:3], "x", cell[4]) for cell in cells])
    check = elute.check(elute.read_log(table, impressions="shown"))
    rng = np.random.default_rng(len(cells))
    r = rng.uniform(0.05, 0.9, check.counts.n_items)
    o = rng.uniform(0.1, 1.0, check.counts.n_factors)
    traffic = find_traffic(check)
    owner = np.repeat(np.arange(len(traffic.offsets) - 1), np.diff(traffic.offsets))
    plain = [Impressions(*map(int, row)) for row in zip(owner, *traffic[1:4], strict=True)]
    kind = np.zeros(check.counts.n_factors, np.int64)
    found = list_swaps(traffic, expect(check, r, o), kind, np.arange(len(kind)), 1.0, Allowed(), False)
    for q, x, t, loss in zip(found.query, found.item, found.target, found.loss, strict=True):
        assert max(loss, 0.0) == pytest.approx(
            lose(plain, int(x), int(q), int(t), r.__getitem__, o.__getitem__), abs=1e-12
        )


@settings(deadline=None, max_examples=40)
@given(rows, st.sampled_from([0.1, 0.5, 1.0]))
def test_a_plan_joins_what_can_be_joined_and_no_more(cells: list[tuple[int, int, int, str, int]], share: float) -> None:
    check = read(log_of(cells))
    rng = np.random.default_rng(len(cells))
    r, o = rng.uniform(0.05, 0.9, check.counts.n_items), rng.uniform(0.1, 1.0, check.counts.n_factors)
    plan = elute.swap(check, r, o, share=share)
    expected, traffic, movable = expect(check, r, o), find_traffic(check), find_movable(check)
    swaps = list_swaps(traffic, expected, movable.kind, movable.place, share, Allowed(), True)
    pairs = list(zip(expected.home[swaps.item].tolist(), expected.part[swaps.target].tolist(), strict=True))
    assert plan.parts_before == expected.parts
    assert plan.parts_after >= join(range(expected.parts), pairs)
    assert len(plan.infeasible) == plan.parts_after - 1
    assert plan.cost >= 0
    shown: dict[object, int] = {}
    for swap in plan.swaps:
        assert swap.source["device"] == swap.target["device"]
        assert swap.item["query_id"] == swap.query
        assert 0 < swap.click_probability < 1 and swap.users_lose >= 0 and swap.cost >= 0
        shown[swap.query] = shown.get(swap.query, 0) + swap.impressions
    pages, names = count_pages(traffic, movable.kind, movable.place), check.counts.items["query_id"].to_pylist()
    of_query = {names[traffic.item[row]]: code for code, row in enumerate(traffic.offsets[:-1])}
    for query, impressions in shown.items():
        assert impressions <= np.floor(share * pages[of_query[query]])


@pytest.mark.parametrize("budget", [None, 4_000])
@pytest.mark.parametrize("queries", [True, False])
def test_rows_in_another_order_make_the_same_plan(queries: bool, budget: int | None) -> None:
    """Many queries of equal pages: which item is taken must not hang on which row came first."""
    rng = np.random.default_rng(5)
    rows = [(q, f"{q}-{part}{n}", 3 * part + n + 1) for q in range(12) for part in (0, 1) for n in range(3)] * 60
    rows += [
        (q, f"{q}-{part}{n}", 3 * part + (n + 1) % 3 + 1) for q in range(12) for part in (0, 1) for n in range(3)
    ] * 60
    query, doc, position = (list(column) for column in zip(*rows, strict=True))
    table = pa.table({"query_id": query, "doc_id": doc, "position": position, "click": rng.random(len(rows)) < 0.3})
    table = table if queries else table.drop_columns("query_id")

    def plan(rows: pa.Table) -> list[tuple[object, ...]]:
        swaps = elute.swap(rows, budget=budget, item="query_id,doc_id" if queries else "doc_id").swaps
        return [(swap.item, swap.source, swap.target, swap.impressions) for swap in swaps]

    plain = plan(table)
    assert plain
    for _ in range(3):
        assert plan(table.take(rng.permutation(len(rows)))) == plain


@settings(deadline=None, max_examples=100)
@given(st.data())
def test_the_fewest_impressions_that_are_enough(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 5))
    numbers = st.floats(0.05, 5.0)
    odds, known = (np.array(data.draw(st.lists(numbers, min_size=n, max_size=n))) for _ in range(2))
    known = known * 50
    most = np.array(data.draw(st.lists(st.integers(1, 60), min_size=n, max_size=n)))
    reach = inform(most, odds, known).sum()
    needed = data.draw(st.floats(0.05, 0.95)) * reach
    shown = share_impressions(odds, known, most, needed)
    assert (shown <= most).all() and (shown >= 0).all()
    assert inform(shown, odds, known).sum() >= needed - 1e-9
    # no better by moving an impression from one to another, beyond what whole numbers cost
    fewest, at = np.zeros(n, np.int64), 0
    while inform(fewest, odds, known).sum() < needed:
        gain = np.where(fewest < most, inform(fewest + 1, odds, known) - inform(fewest, odds, known), -1.0)
        fewest[int(gain.argmax())] += 1
        at += 1
    assert shown.sum() <= fewest.sum() + n


def test_what_cannot_be_joined_says_why(tmp_path: Path) -> None:
    """A query that is part of the factor, a device that never varies on a page, queries that share no page."""
    table = pa.table(
        {
            "session_id": [1, 1, 2, 2, 3, 3, 4, 4],
            "query_id": ["a", "a", "a", "a", "b", "b", "b", "b"],
            "doc_id": ["d1", "d2", "d2", "d1", "e1", "e2", "e2", "e1"],
            "position": [1, 2, 1, 2, 3, 4, 3, 4],
            "device": ["desk", "desk", "phone", "phone", "desk", "desk", "phone", "phone"],
            "click": [1, 0, 1, 1, 1, 1, 0, 1],
        }
    )
    pq.write_table(table, tmp_path / "log.parquet")
    bias = {
        "query_id,position": "no other part has its query_id, and query_id is fixed (it is part of the item)",
        "position": "no query has pages with places of this part and of another",
    }
    for columns, reason in bias.items():
        outcome = call_elute(
            "repair", tmp_path / "log.parquet", "--bias", columns, "--method", "swap", "--share", 1, "--json"
        )
        assert outcome.code == 3
        fields = outcome.json
        assert not [swap for swap in fields["swaps"] if swap["item"]["query_id"] != swap["query"]]
        assert {part["reason"] for part in fields["infeasible"]} == {reason}
    check = elute.check(elute.read_log(str(tmp_path / "log.parquet"), bias="position,device"))
    assert find_movable(check).fixed == {"device": "it never varies within a page (session_id)"}
    assert find_movable(check, movable=["device"]).columns == ("position", "device")
    with pytest.raises(elute.EluteError, match="'click' is not a bias column"):
        find_movable(check, fixed=["click"])


def test_a_column_that_varies_within_a_page_is_movable() -> None:
    table = pa.table(
        {
            "session_id": [1, 1, 2, 2],
            "query_id": ["a"] * 4,
            "doc_id": ["d1", "d2", "d2", "d1"],
            "position": [1, 2, 1, 2],
            "kind": ["text", "image", "text", "text"],
            "click": [1, 0, 1, 1],
        }
    )
    log = elute.read_log(table, bias="position,kind")
    assert find_movable(elute.check(log)).columns == ("position", "kind")
    alone = elute.read_log(table.drop_columns(["session_id"]), bias="position,kind")
    assert "no column names the page" in find_movable(elute.check(alone)).fixed["kind"]


def test_one_click_in_one_impression_is_no_relevance_of_one() -> None:
    """On a log of items shown once, nothing promises a click rate of 100%."""
    rng = np.random.default_rng(3)
    n = 4_000
    table = pa.table(
        {
            "query_id": [f"q{i % 20}" for i in range(n)],
            "doc_id": [f"d{i}" if i % 5 else f"s{i % 100}" for i in range(n)],
            "position": rng.integers(1, 5, n) + 4 * (np.arange(n) % 20 >= 10) * (np.arange(n) % 2),
            "click": rng.random(n) < 0.15,
        }
    )
    plan = elute.swap(elute.check(elute.read_log(table, item="query_id,doc_id")), share=0.5)
    assert max((swap.click_probability for swap in plan.swaps), default=0.0) < 0.6


def test_a_link_that_was_never_clicked_is_mended(tmp_path: Path) -> None:
    """Rung linked: two pairs of positions, joined by one item that nobody clicked."""
    shown = [
        *(("a", p, 400, 100 // p) for p in (1, 2)),
        *(("b", p, 400, 120 // p) for p in (3, 4)),
        *(("dead", p, 200, 0) for p in (2, 3)),
    ]
    doc, position, impressions, clicks = zip(*shown, strict=True)
    table = {"query_id": ["q"] * 6, "doc_id": doc, "position": position, "n": impressions, "click": clicks}
    log = tmp_path / "log.parquet"
    pq.write_table(pa.table(table), log)
    assert call_elute("check", log, "--impressions", "n", "--json").json["rung"] == "linked"
    outcome = call_elute("repair", log, "--impressions", "n", "--method", "swap", "--json", "--share", 0.5)
    assert outcome.code == 0
    fields = outcome.json
    assert (fields["components_before"], fields["parts_before"], fields["parts_after"]) == (1, 2, 1)
    assert {swap["item"]["doc_id"] for swap in fields["swaps"]} <= {"a", "b"}
    assert fields["largest_log_se"] > fields["target_se"] or not fields["notes"]


def test_an_experiment_can_be_exported(demo_logs: Path, tmp_path: Path) -> None:
    for name in ("plan.json", "plan.csv"):
        log = demo_logs / "broken.parquet"
        outcome = call_elute("repair", log, "--method", "swap", "--log-days", 7, "--export", tmp_path / name, "--json")
        assert outcome.code == 0
    swaps = outcome.json["swaps"]
    rows = json.loads((tmp_path / "plan.json").read_text())["swaps"]
    assert [(row["query"], row["document"], row["from"], row["to"]) for row in rows] == [
        (swap["query"], swap["item"]["doc_id"], swap["from"], swap["to"]) for swap in swaps
    ]
    assert all(0 < row["share"] <= 0.1 + 1e-9 and row["until"]["impressions"] >= 1 for row in rows)
    with (tmp_path / "plan.csv").open() as file:
        flat = list(csv.DictReader(file))
    assert [int(row["until_impressions"]) for row in flat] == [row["until"]["impressions"] for row in rows]
    wrong = call_elute("repair", log, "--method", "swap", "--export", tmp_path / "plan.xlsx")
    assert (wrong.code, "as .json or .csv" in wrong.err) == (1, True)
    merged = call_elute("repair", log, "--method", "merge", "--export", tmp_path / "plan.csv")
    assert (merged.code, "this plan changes a fit" in merged.err) == (1, True)


def test_time_is_in_days_where_the_log_has_them(demo_logs: Path) -> None:
    log = demo_logs / "broken.parquet"
    fields = call_elute("repair", log, "--method", "swap", "--log-days", 10, "--json").json
    assert fields["days"] == pytest.approx(10 * fields["log_lengths"], rel=1e-4)
    longer = call_elute("repair", log, "--method", "swap", "--log-days", 10, "--days", 40, "--json").json
    assert len(longer["swaps"]) <= len(fields["swaps"])
    lacking = call_elute("repair", log, "--method", "swap", "--days", 10)
    assert (lacking.code, "how many days the log covers" in lacking.err) == (1, True)


def test_a_budget_beyond_the_traffic_still_joins(tmp_path: Path) -> None:
    """Links come first where a query's pages do not suffice for all that a budget could do."""
    rows = [
        (q, f"d{q}{part}{n}", 3 * part + 1 + (n + shown) % 3)
        for q in (1, 2)
        for part in (0, 1)
        for n in range(3)
        for shown in range(40)
    ]
    query, doc, position = zip(*rows, strict=True)
    rng = np.random.default_rng(0)
    table = pa.table({"query_id": query, "doc_id": doc, "position": position, "click": rng.random(len(rows)) < 0.4})
    plain, rich = elute.swap(table), elute.swap(table, budget=100_000)
    assert (plain.parts_after, rich.parts_after, rich.components_after) == (1, 1, 1)
    assert sum(swap.impressions for swap in rich.swaps) <= 0.1 * 2 * 40
