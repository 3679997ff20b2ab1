"""Bounds of whole logs: what they say on every rung, that they hold, and that wrong assumptions are noticed."""

from __future__ import annotations

import json
from collections.abc import Sequence
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
from elute.bounds.assumptions import Assumptions
from elute.bounds.bounds import find_bounds
from elute.known.precision import measure
from elute.known.sample import sample_counts
from elute.reporting.parts import Figure
from elute_reproduce.plans.bounds_coverage import WORLDS, build_pages, draw_clicks, measure_coverage


def make_log(rows: Sequence[tuple[object, object, int, int, int]]) -> pa.Table:
    """Query, document, position, impressions, clicks."""
    names = ("query_id", "doc_id", "position", "shown", "click")
    return pa.table(dict(zip(names, zip(*rows, strict=True), strict=True)))


def bound(log: pa.Table, **assumed: Any) -> dict[str, Any]:
    return elute.check(log, impressions="shown", bounds=True, **assumed).to_dict()["bounds"]


HALVES = [
    ("q", "a", 1, 100_000, 90_000),
    ("q", "b", 1, 100_000, 30_000),
    ("q", "b", 2, 100_000, 15_000),
    ("q", "c", 3, 100_000, 40_000),
    ("q", "d", 4, 100_000, 5_000),
    ("q", "d", 3, 100_000, 10_000),
]
"""Positions 1 and 2 share an item, 3 and 4 another: o2/o1 = o4/o3 = ½. o1 ≥ .9, o3 ≥ .4."""


def test_scales_are_bounded_by_r_and_o_as_probabilities() -> None:
    first, other = bound(make_log(HALVES))["components"]
    assert (first["factor"], other["factor"]) == ({"position": 1}, {"position": 3})
    assert (first["low"], first["high"]) == (1.0, 1.0)
    assert first["propensity_low"] == pytest.approx(0.9, rel=0.01)
    assert other["low"] == pytest.approx(0.4, rel=0.02)
    assert other["high"] == pytest.approx(1 / 0.9, rel=0.02)
    assert other["low"] < 0.4 < 1 / 0.9 < other["high"]


def test_pairs_are_ordered_where_no_scale_turns_them_round() -> None:
    """Relevance of a is within [.9, 1], b has a third of it, c is within [.4, 1], d has a quarter of that: all pairs
    across are in order but a and c."""
    found = bound(make_log(HALVES))
    assert found["consistent"] and found["contradiction"] is None
    assert found["cross_pairs"] == 4
    assert found["ordered_pairs_share"] == 0.75
    assert (found["rankable_queries_with_bounds"], found["rankable_share_with_bounds"]) == (0, 0.0)
    assert found["sentence"].startswith("Bounds put 75.0% of the 4 pairs across components in order")


def test_assumptions_order_more() -> None:
    """With o3 ≤ o2 = ½ o1, the relevance of c is at least .8: nearly that of a. With o3 = .42 o1 it is above it."""
    log = make_log(HALVES)
    falling = bound(log, monotone="position")
    assert falling["components"][1]["high"] == pytest.approx(0.5, rel=0.03)
    assert falling["components"][1]["low"] == pytest.approx(0.4, rel=0.02)
    assert {"what": "--monotone position: pairs of factors", "count": 3} in falling["constraints"]
    said = bound(log, at_most=["position=3 <= position=2", "position=4 <= position=3"])
    assert said["components"] == falling["components"]
    known = bound(log, propensities=pa.table({"position": [1, 3], "propensity": [1.0, 0.42]}))
    assert known["components"][1]["low"] == known["components"][1]["high"] == pytest.approx(0.42)
    assert known["ordered_pairs_share"] == 1.0
    assert known["rankable_queries_with_bounds"] == 1
    wide = bound(log, propensities=pa.table({"position": [1, 3], "propensity": [1.0, 0.42], "log_se": [0.0, 0.02]}))
    assert wide["components"][1]["low"] < 0.42 < wide["components"][1]["high"] < 0.5


CONTRADICTIONS: list[tuple[dict[str, Any], str]] = [
    (
        {"at_most": "position=1 <= position=2"},
        "Position 1 is seen at least 2 times as often as position 2 by the clicks of component 1, against "
        "--at-most 'position=1 <= position=2'.",
    ),
    ({"at_most": "position=1 <= position=4"}, "--at-most 'position=1 <= position=4'."),
    (
        {"propensities": pa.table({"position": [1, 2], "propensity": [0.5, 1.0]})},
        "component 1, against --propensities (position 2 is seen at least 2 times as often as position 1).",
    ),
    (
        {"at_most": "position=1 <= position=3; position=3 <= position=2"},
        "against --at-most 'position=3 <= position=2' and --at-most 'position=1 <= position=3'.",
    ),
]


@pytest.mark.parametrize(("assumed", "said"), CONTRADICTIONS)
def test_what_contradicts_the_log_is_named(assumed: dict[str, Any], said: str) -> None:
    found = bound(make_log(HALVES), **assumed)
    assert not found["consistent"]
    assert found["contradiction"].endswith(said)
    assert found["components"] == []
    assert found["ordered_pairs_share"] is None
    assert found["sentence"].startswith("The constraints contradict the log")


def test_probabilities_alone_may_contradict_the_model() -> None:
    """An item always clicked at 2, where another says that 2 is seen half as often as 1: not r·o."""
    log = make_log([("q", "a", 2, 10_000, 9_900), ("q", "b", 1, 50_000, 40_000), ("q", "b", 2, 50_000, 20_000)])
    found = bound(log)
    assert not found["consistent"]
    assert "position 1 is seen no more than always" in found["contradiction"]
    assert "position 2 is seen at least 0.99 of the time by those of one item" in found["contradiction"]


def test_single_clicks_are_no_constraints() -> None:
    """One click in one impression low on the page, many times over, with positions above seen ten times as often."""
    rows = [("q", "link", 1, 5_000, 2_500), ("q", "link", 9, 5_000, 250)]
    found = bound(make_log([*rows, *(("p", f"d{k}", 9, 1, 1) for k in range(3)), ("p", "z", 1, 1, 0)]))
    assert found["consistent"]


def test_the_verdict_stays_what_it_is(tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    pq.write_table(make_log(HALVES), path)
    plain = call_elute("check", path, "--impressions", "shown", "--json")
    bounded = call_elute("check", path, "--impressions", "shown", "--monotone", "position", "--json")
    assert plain.code == bounded.code == 3
    assert {name: value for name, value in bounded.json.items() if name != "bounds"} == plain.json
    page = call_elute("check", path, "--impressions", "shown", "--bounds").out
    assert "Bounds put 75.0% of the 4 pairs" in " ".join(page.split())


def test_a_log_without_clicks_or_without_queries(tmp_path: Path) -> None:
    log = make_log(HALVES)
    (tmp_path / "train.init_list").write_text("q1 5 7\nq2 8 9\n")
    with pytest.raises(elute.EluteError, match="no clicks, which `bounds=True` needs"):
        elute.check(tmp_path, bounds=True)
    nameless = elute.check(log.drop_columns("query_id"), impressions="shown", item="doc_id", bounds=True)
    found = nameless.to_dict()["bounds"]
    assert found["cross_pairs"] is None
    assert len(found["components"]) == 2
    assert "no queries" in found["notes"][-1]


def test_a_log_that_nobody_clicked() -> None:
    found = bound(make_log([("q", "a", 1, 100, 0), ("q", "b", 2, 100, 0)]), monotone="position")
    assert found["consistent"]
    assert found["ordered_pairs_share"] == 0.0
    assert [(one["low"], one["high"]) for one in found["components"]] == [(1.0, 1.0), (0.0, 1.0)]


def test_a_factor_without_clicks_has_an_upper_limit() -> None:
    rows = [("q", f"d{k}", place, 1_000, clicks) for k in range(20) for place, clicks in ((1, 300), (2, 0))]
    log = elute.check(make_log(rows), impressions="shown", bounds=True)
    found = log.bounds
    assert found is not None and found.consistent
    low, high = found.relate(np.array([1]), 0)
    assert low[0] == 0
    assert 0 < high[0] < 0.003  # no click where 6,000·o were to be expected
    assert "1 factors have no ratio" in found.notes[0]


def test_parts_that_clicks_do_not_tie_have_scales_of_their_own() -> None:
    """Linked by an item that nobody clicked: each side is bounded by itself, and within itself as sharply as ever."""
    dead = [*HALVES, ("q", "e", 2, 1_000, 0), ("q", "e", 3, 1_000, 0)]
    found = elute.check(make_log(dead), impressions="shown", bounds=True)
    assert found.rung == "linked"
    fields = found.to_dict()["bounds"]
    first, other = fields["components"]
    assert other["low"] == pytest.approx(0.4, rel=0.02)
    assert other["high"] == pytest.approx(1 / 0.9, rel=0.02)
    assert fields["cross_pairs"] == 6
    assert "falls into parts" in fields["notes"][0]
    assert first["factors"] == other["factors"] == 2


def test_fits_keep_bounds(tmp_path: Path) -> None:
    path, out = tmp_path / "log.parquet", tmp_path / "fit"
    pq.write_table(make_log(HALVES), path)
    done = call_elute("fit", path, "--impressions", "shown", "--monotone", "position", "--out", out)
    assert done.code == 0, done.err
    assert "bounds.parquet" in done.out
    assert "beyond what bounds say" in " ".join(done.out.split())
    table = pq.read_table(out / "bounds.parquet")
    assert table.column_names == ["component", "position", "low", "high"]
    rows = table.to_pylist()
    assert [(row["component"], row["position"]) for row in rows] == [(0, 1), (1, 3)]
    assert 0.39 < rows[1]["low"] < 0.4 < 0.5 < rows[1]["high"] < 0.515
    summary = json.loads((out / "fit.json").read_text())
    assert summary["bounds"]["ordered_pairs_share"] == 0.75
    assert summary["provenance"]["options"]["monotone"] == "position"
    kept = elute.Fit.load(out).bounds
    assert kept is not None
    assert kept.equals(table)
    elute.fit(make_log(HALVES), impressions="shown", allow_unidentified=True).save(out)
    assert not (out / "bounds.parquet").exists()


def test_fits_refuse_what_has_no_bounds() -> None:
    log = make_log(HALVES)
    with pytest.raises(elute.EluteError, match="model 'naive' has no `bounds=`"):
        elute.fit(log, "naive", impressions="shown", bounds=True)
    with pytest.raises(elute.EluteError, match="model 'dbn' has no `monotone=`"):
        elute.fit(log, "dbn", impressions="shown", monotone="position")


def test_the_report_draws_the_scales(tmp_path: Path) -> None:
    log, out = make_log(HALVES), tmp_path / "report.html"
    plain = elute.report(log, out, impressions="shown")
    assert "bounds" in plain.to_dict()["sections"]
    assert "75.0% of the 4 pairs across components" in out.read_text(encoding="utf-8")
    fitted = elute.fit(log, impressions="shown", monotone="position")
    section = next(one for one in elute.report(log, fits=fitted, impressions="shown").sections if one.key == "bounds")
    chart = next(block for block in section.blocks if isinstance(block, Figure) and block.key == "bounds")
    assert [row["label"] for row in chart.spec["data"]["values"]] == ["position 1", "position 3"]
    assert chart.spec["data"]["values"][1]["high"] == pytest.approx(0.5, rel=0.03)


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1))
def test_assumptions_never_widen_an_interval_and_true_ones_hold(seed: int) -> None:
    rng = np.random.default_rng(seed)
    world = build_pages(rng, 6, int(rng.integers(1, 40)), [[0], [1, 2], [3, 4]], np.arange(1.0, 6.0) ** -1)
    known = measure(sample_counts(draw_clicks(world, rng), None))
    plain, falling = (find_bounds(known, Assumptions(monotone=some)) for some in ((), ("position",)))
    if plain.consistent and falling.consistent:
        for base in range(5):
            one, other = plain.relate(np.arange(5), base), falling.relate(np.arange(5), base)
            assert (other[0] >= one[0] * (1 - 1e-9)).all() and (other[1] <= one[1] * (1 + 1e-9)).all()
        assert plain.crossed is not None and falling.crossed is not None
        assert falling.crossed.ordered >= plain.crossed.ordered
        assert falling.crossed.rankable >= plain.crossed.rankable


@pytest.mark.parametrize("name", ["two blocks, few pages", "every position alone", "hardly a click"])
def test_the_region_holds_the_truth(name: str) -> None:
    """At least 95% of logs: with 30 draws, four failures or more would be rarer than 1 in 15 if it held 95%."""
    rng = np.random.default_rng([3, len(name)])
    found = measure_coverage(WORLDS[name](rng), 30, rng)
    assert found.held >= 27
    assert found.held_monotone >= 27
    assert found.contradicted == 0
    assert found.wrong == 0


def test_a_world_that_breaks_an_assumption_is_noticed() -> None:
    rng = np.random.default_rng(5)
    found = measure_coverage(WORLDS["position 3 seen more than position 2"](rng), 5, rng)
    assert (found.held, found.contradicted, found.wrong) == (5, 5, 0)
    assert found.example is not None
    assert "Position 3 is seen at least 1." in found.example
    assert found.example.endswith("against --monotone position.")
