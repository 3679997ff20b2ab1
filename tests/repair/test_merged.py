"""What a merge plan leaves to debias with, and how it says so."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import elute
from conftest import call_elute
from elute.identify.merged import NEARLY, MergedFactors, measure_merged
from elute.repair.plan import MergePlan, load
from elute.reporting.page import Report

NOTHING = "This plan leaves one propensity for all factors: what follows is raw click rates, no debiasing."


@given(st.lists(st.integers(0, 4), min_size=1, max_size=12), st.data())
def test_against_counting_by_hand(labels: list[int], data: st.DataObject) -> None:
    group = np.unique(labels, return_inverse=True)[1]
    shown = np.array(data.draw(st.lists(st.integers(1, 99), min_size=len(group), max_size=len(group))))
    found = measure_merged(group, shown)
    members = [np.flatnonzero(group == code) for code in np.unique(group)]
    made = [own for own in members if len(own) > 1]
    assert found.propensities_after == len(members)
    assert found.debiases == (len(members) > 1)
    assert found.largest_merged_share == pytest.approx(max((shown[own].sum() for own in made), default=0) / shown.sum())
    if made:
        best = max(shown[own].sum() for own in made)
        assert found.largest_merged_factors in {len(own) for own in made if shown[own].sum() == best}
    assert bool(found.caution) == (bool(made) and (len(members) == 1 or found.largest_merged_share >= NEARLY))


def test_a_plan_that_merges_nothing_needs_no_caution() -> None:
    """Not even where one factor has nearly all impressions, or is the only one."""
    assert measure_merged(np.array([0, 1]), np.array([99, 1])) == MergedFactors(2, 2, 0, 0.0)
    assert measure_merged(np.array([0]), np.array([7])).caution == ""


def nearly_log() -> pa.Table:
    """Positions 1 and 2 share items; 3 and 4, each with its own, have most impressions and are nearest to each other
    and to 2."""
    rows = [("a", 1, 1), ("a", 2, 0), ("b", 1, 0), ("b", 2, 1)]
    rows += [("c", 3, i % 2) for i in range(60)] + [("d", 4, i % 3 == 0) for i in range(60)]
    doc, position, click = zip(*rows, strict=True)
    return pa.table({"query_id": ["q"] * len(rows), "doc_id": doc, "position": position, "click": np.array(click, int)})


def test_one_propensity_for_all_is_named_on_every_page(lone_positions: Path, tmp_path: Path) -> None:
    plan, page = tmp_path / "plan.json", tmp_path / "page.html"
    fields = call_elute("repair", lone_positions, "--method", "merge", "--out", plan, "--json").json
    assert (fields["propensities_after"], fields["debiases"], fields["largest_merged_share"]) == (1, False, 1.0)
    assert fields == json.loads(plan.read_text())
    for command in (("repair", lone_positions, "--method", "merge"), ("check", lone_positions, "--plan", plan)):
        printed = call_elute(*command)
        assert printed.code == 0
        assert printed.out.lstrip()[0] in "!≈"
        assert NOTHING in " ".join(printed.out.split())
        assert "✓" not in printed.out
    assert "! No debiasing:" in call_elute("repair", lone_positions, "--method", "merge").out
    checked = call_elute("check", lone_positions, "--plan", plan, "--json").json
    assert (checked["recoverable"], checked["debiases"], checked["caution"]) == (True, False, NOTHING)
    card = elute.check(lone_positions, plan=plan).card()
    assert (card.tone, card.word) == ("warn", "No debiasing")
    told = call_elute("report", lone_positions, "--plan", plan, "--out", page, "--json").json
    assert (told["tone"], told["headline"]) == ("warn", "With a merge plan: no debiasing")
    assert NOTHING in told["verdict"]
    assert page.read_text().count(NOTHING) == 2  # on the first screen, and with the plan


def test_nearly_one_propensity_says_where() -> None:
    log = elute.read_log(nearly_log())
    check = elute.check(log)
    plan = elute.merge(check)
    assert plan.merged == MergedFactors(4, 2, 3, 122 / 124)
    card = plan.card()
    assert (card.tone, card.word) == ("warn", "Nearly no debiasing")
    assert "3 of 4 factors, with 98.4% of the impressions, share one propensity" in card.sentence
    under = elute.check(log, plan=plan)
    assert under.card().tone == "warn"
    assert "3 of 4 factors" in under.sentence
    found = elute.fit(log, plan=plan)
    assert (found.summary["debiases"], found.card().word) == (True, "Nearly no debiasing")
    verdict = Report(check, plan=plan).verdict
    assert verdict[:2] == ("warn", "With a merge plan: nearly no debiasing")
    assert "3 of 4 factors" in verdict[2]


def test_a_plan_that_debiases_says_nothing_of_it(demo_logs: Path) -> None:
    plan = elute.merge(demo_logs / "broken.parquet")
    assert plan.merged is not None
    assert (plan.merged.propensities_after, plan.merged.debiases) == (9, True)
    assert plan.card().tone == "calm"
    checked = elute.check(demo_logs / "broken.parquet", plan=plan)
    assert checked.to_dict()["caution"] is None
    assert "debiasing" not in checked.card().word


def test_a_file_of_an_older_version_is_measured_when_it_is_applied(lone_positions: Path, tmp_path: Path) -> None:
    plan = elute.merge(lone_positions)
    fields = plan.to_dict()
    assert plan.merged is not None
    for name in plan.merged.to_dict():
        del fields[name]
    (tmp_path / "old.json").write_text(json.dumps(fields))
    old = load(tmp_path / "old.json")
    assert isinstance(old, MergePlan)
    assert old.merged is None
    assert old.to_dict() == fields
    assert elute.check(lone_positions, plan=old).caution == NOTHING


@settings(deadline=None, max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(1, 9)), min_size=1, max_size=30), st.integers(0, 99))
def test_no_cost_is_below_0(cells: list[tuple[int, int]], seed: int) -> None:
    """Also where relevance times propensity is above 1, as fits may have it where an item was never shown."""
    doc, position = zip(*cells, strict=True)
    check = elute.check(pa.table({"doc_id": doc, "position": position, "click": [0] * len(doc)}), item="doc_id")
    rng = np.random.default_rng(seed)
    r, o = rng.uniform(0.1, 3, check.counts.n_items), rng.uniform(0.1, 1, check.counts.n_factors)
    merged, swapped = elute.merge(check), elute.swap(check, r, o)
    costs = [pair.cost for pair in merged.pairs] + [swap.cost for swap in swapped.swaps]
    assert min(costs, default=0.0) >= 0
    assert min(merged.cost, swapped.cost) >= 0
