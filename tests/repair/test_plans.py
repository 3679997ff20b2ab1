"""Plans from a log, through a file, back onto a log."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import elute
from conftest import call_elute
from elute.cells.factors import index_rows, row_key
from elute.cells.structure import structure_from_counts
from elute.estimate.models.pbm import PBM
from elute.repair import given as known
from elute.repair.plan import load
from elute.repair.swapping.expected import expect

rows = st.lists(st.tuples(st.integers(0, 6), st.integers(1, 9), st.sampled_from("xyz")), min_size=1, max_size=30)


def log_of(cells: list[tuple[int, int, str]]) -> pa.Table:
    doc, position, device = zip(*cells, strict=True)
    n = len(cells)
    return pa.table(
        {
            "query_id": ["q"] * n,
            "doc_id": [f"{doc}{device}" for doc, device in zip(doc, device, strict=True)],
            "position": position,
            "device": device,
            "click": [i % 2 for i in range(n)],
        }
    )


@settings(deadline=None, max_examples=40)
@given(rows)
def test_a_merge_plan_always_leaves_one_component(cells: list[tuple[int, int, str]]) -> None:
    """Before and after a file, by links and by merging cells; chains of merges end in one group."""
    check = elute.check(elute.read_log(log_of(cells), bias="position,device"))
    plan = elute.merge(check)
    assert len(plan.pairs) == check.components - 1
    assert elute.check(check.log, plan=plan).recoverable
    merged = plan.apply(check.counts)
    assert merged.n_factors == check.counts.n_factors - len(plan.pairs)
    assert int(merged.impressions.sum()) == len(cells)

    assert not structure_from_counts(merged).root.any()  # all in the component of factor 0


@settings(deadline=None, max_examples=30)
@given(rows)
def test_a_swap_plan_leaves_one_component_where_items_may_go_anywhere(cells: list[tuple[int, int, str]]) -> None:
    """No queries, one kind of place, and all the pages: nothing stands in the way."""
    table = log_of(cells).drop_columns(["query_id"]).append_column("n", pa.array([100] * len(cells)))
    check = elute.check(elute.read_log(table, item="doc_id", impressions="n"))
    rng = np.random.default_rng(0)
    r, o = rng.uniform(0.1, 0.9, check.counts.n_items), rng.uniform(0.1, 0.9, check.counts.n_factors)
    plan = elute.swap(check, r, o, share=1.0)
    assert (len(plan.swaps), plan.parts_after, plan.infeasible) == (plan.parts_before - 1, 1, ())
    assert plan.components_after == 1
    assert elute.check(check.log, plan=plan).recoverable
    shown = plan.apply(check.counts)
    assert int(shown.impressions.sum()) == 100 * len(cells) + sum(swap.impressions for swap in plan.swaps)

    assert not structure_from_counts(shown).root.any()


@pytest.fixture
def path(chain: pa.Table, tmp_path: Path) -> Path:
    table = chain.append_column("r", pa.array([0.5, 0.5, 0.4, 0.3, 0.3, 0.2]))
    pq.write_table(table.append_column("o", pa.array([0.9, 0.8, 0.9, 0.6, 0.5, 0.4])), tmp_path / "log.parquet")
    return tmp_path / "log.parquet"


def test_merge_from_the_command_line(path: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    outcome = call_elute("repair", path, "--method", "merge", "--out", plan, "--date", "2026-01-02", "--json")
    assert outcome.code == 0
    fields = outcome.json
    assert fields == json.loads(plan.read_text())
    assert (fields["method"], fields["components_before"], fields["components_after"], fields["cost"]) == (
        "merge",
        3,
        1,
        2,
    )
    assert [(p["a"], p["b"], p["cost"]) for p in fields["pairs"]] == [
        ({"position": 2}, {"position": 3}, 1),
        ({"position": 4}, {"position": 5}, 1),
    ]
    assert fields["provenance"]["date"] == "2026-01-02"
    assert fields["provenance"]["bias"] == ["position"]
    after = call_elute("check", path, "--plan", plan, "--require", "linked", "--json")
    assert after.code == 0  # one component; its few clicks do not settle more
    assert (after.json["components"], after.json["plan"]) == (1, "merge")


def test_a_bound_where_propensities_are_known(path: Path) -> None:
    """Positions 2–3 (.8, .6) and 4–5 (.5, .4). Most was shown at 1 and 2, where relevance is exact: r'/r = o/o' is 1
    there, .6/.8 at 3 and 4, and .6/.8·.4/.5 at 5."""
    fields = call_elute("repair", path, "--method", "merge", "--propensity", "o", "--json").json
    weights = [0.25, 0.75 * 0.2]
    assert [pair["bound"] for pair in fields["pairs"]] == pytest.approx(weights)
    assert fields["bound"] == pytest.approx(sum(weights))  # the three components are a path
    assert sum(pair["bound_share"] for pair in fields["pairs"]) == pytest.approx(1)
    assert [pair["log_ratio"] for pair in fields["pairs"]] == pytest.approx(np.log([0.8 / 0.6, 0.5 / 0.4]))
    known = fields["distortion_known"]
    assert (known["smallest"], known["largest"], known["ratio"]) == pytest.approx((0.6, 1, 1 / 0.6))
    assert known["scale"] == fields["bound_scale"] == {"position": 1}


def test_swap_from_columns_of_the_log(path: Path, tmp_path: Path) -> None:
    """(q1, a) known at position 1 (o = .9, r = .5) costs least wherever it goes: (1/.9 + 1/o)/.5 - 2."""
    table, log = pq.read_table(path), tmp_path / "anywhere.parquet"
    pq.write_table(table.drop_columns(["query_id"]).append_column("n", pa.array([1000] * 6)), log)
    options = ("--item", "doc_id", "--impressions", "n", "--relevance", "r", "--propensity", "o", "--target-se", "0.5")
    outcome = call_elute("repair", log, "--method", "swap", *options, "--out", tmp_path / "plan.json", "--json")
    assert outcome.code == 0
    swaps = outcome.json["swaps"]
    assert [(s["item"], s["from"], s["to"]) for s in swaps] == [
        ({"doc_id": "a"}, {"position": 1}, {"position": 3}),
        ({"doc_id": "a"}, {"position": 1}, {"position": 5}),
    ]
    assert [s["cost"] for s in swaps] == pytest.approx([(1 / 0.9 + 1 / o) / 0.5 - 2 for o in (0.6, 0.4)])
    assert outcome.json["cost"] == pytest.approx(sum(s["cost"] for s in swaps))
    # a is known by w = 1000·p/(1-p) at positions 1 and 2, which adds 1/w to the variance (1/p - 1)/n at its new place
    known = sum(1000 * p / (1 - p) for p in (0.45, 0.4))
    needed = [(1 / p - 1) / (0.25 - 1 / known) for p in (0.3, 0.2)]
    assert [s["impressions_needed"] for s in swaps] == [int(np.ceil(n)) for n in needed]
    checked = call_elute("check", log, *options[:4], "--plan", tmp_path / "plan.json", "--require", "linked")
    assert checked.code == 0


def test_a_file_knows_what_a_column_knows(path: Path, tmp_path: Path) -> None:
    table = pq.read_table(path)
    csv = tmp_path / "log.csv"
    table.to_pandas().to_csv(csv, index=False)
    items = (
        table.group_by(["query_id", "doc_id"])
        .aggregate([("r", "mean")])
        .rename_columns(["query_id", "doc_id", "relevance"])
    )
    factors = table.group_by(["position"]).aggregate([("o", "mean")]).rename_columns(["position", "propensity"])
    pq.write_table(items, tmp_path / "r.parquet")
    pq.write_table(factors, tmp_path / "o.parquet")
    for log in (path, csv):
        check = elute.check(elute.read_log(log))
        by_file = (
            known.align_relevance(check, str(tmp_path / "r.parquet")),
            known.align_propensity(check, str(tmp_path / "o.parquet")),
        )
        by_column = known.align_relevance(check, "r"), known.align_propensity(check, "o")
        np.testing.assert_allclose(by_file[0], by_column[0])
        np.testing.assert_allclose(by_file[1], by_column[1])
        assert by_column[1].tolist() == pytest.approx([0.9, 0.8, 0.6, 0.5, 0.4])


def test_unknown_factors_in_a_file_are_listed(path: Path, tmp_path: Path) -> None:
    pq.write_table(pa.table({"position": [1, 2], "propensity": [1.0, 0.5]}), tmp_path / "o.parquet")
    outcome = call_elute("repair", path, "--method", "merge", "--propensity", tmp_path / "o.parquet")
    assert outcome.code == 1
    assert "no propensity for 3 factors: position 3; position 4; position 5" in outcome.err


def test_limits_that_leave_components_apart(path: Path, tmp_path: Path) -> None:
    log = tmp_path / "anywhere.parquet"
    pq.write_table(pq.read_table(path).drop_columns(["query_id"]).append_column("n", pa.array([50] * 6)), log)
    options = (
        "--item",
        "doc_id",
        "--impressions",
        "n",
        "--method",
        "swap",
        "--relevance",
        "r",
        "--propensity",
        "o",
        "--json",
    )
    outcome = call_elute(
        "repair", log, "--method", "swap", *options, "--max-position-change", "1", "--only-positions", "1,2"
    )
    assert outcome.code == 3
    assert outcome.json["components_after"] == 2
    assert outcome.json["infeasible"][0]["factor"] == {"position": 5}
    assert "limits on positions" in outcome.json["infeasible"][0]["reason"]
    check = elute.check(elute.read_log(log, item="doc_id", impressions="n"))
    r, o = np.full(4, 0.5), np.full(5, 0.5)
    kept = elute.swap(check, r, o, exclude_items=pa.table({"doc_id": ["a", "b", "d"]}))
    assert {swap.item["doc_id"] for swap in kept.swaps} == {"c"}
    assert kept.components_after == 1


def test_a_budget_is_spent_and_lowers_the_predicted_errors(demo_logs: Path) -> None:
    """As far as the pages of queries go: half of 20,000 are enough, a hundredth is not."""
    options = ("--method", "swap", "--budget", "3000", "--json")
    few = call_elute("repair", demo_logs / "broken.parquet", *options, "--share", 0.01).json
    spent = sum(swap["impressions_planned"] for swap in few["swaps"])
    assert 50 < spent <= 200
    assert f"{3000 - spent:,} impressions of the budget could not be used" in few["notes"][-1]
    fields = call_elute("repair", demo_logs / "broken.parquet", *options, "--share", 0.5).json
    assert sum(swap["impressions_planned"] for swap in fields["swaps"]) == 3000
    largest = [max(row[when] for row in fields["precision"]) for when in ("se_before", "se_after")]
    assert largest[1] < largest[0]
    assert len(fields["precision"]) == 10


def test_plans_for_other_logs_are_refused(path: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    call_elute("repair", path, "--method", "merge", "--out", plan)
    other = call_elute("check", path, "--bias", "position,click", "--plan", plan)
    assert other.code == 1
    assert "made for bias position; this log has position, click" in other.err
    pq.write_table(pq.read_table(path).slice(0, 3), tmp_path / "part.parquet")
    lacking = call_elute("check", tmp_path / "part.parquet", "--plan", plan)
    assert lacking.code == 1
    assert "names factors that this log lacks: position 3; position 4; position 5" in lacking.err
    plan.write_text('{"method": "merge"}')
    broken = call_elute("check", path, "--plan", plan)
    assert (broken.code, "is not a plan that elute wrote" in broken.err) == (1, True)
    assert "no plan" in call_elute("check", path, "--plan", tmp_path / "nowhere.json").err


def test_plans_survive_their_files(tmp_path: Path, chain: pa.Table) -> None:
    check = elute.check(elute.read_log(chain))
    for plan in (elute.merge(check, date="today"), elute.swap(check, np.full(4, 0.5), np.full(5, 0.5))):
        plan.save(tmp_path / "plan.json")
        assert load(tmp_path / "plan.json") == plan


def test_a_recoverable_log_needs_no_repair(chain: pa.Table, tmp_path: Path) -> None:
    pq.write_table(chain.slice(0, 3), tmp_path / "log.parquet")
    outcome = call_elute("repair", tmp_path / "log.parquet", "--method", "merge")
    assert outcome.code == 0
    assert "Nothing to connect" in outcome.out


@pytest.mark.parametrize(
    ("components", "expected"), [(2, [(3, 4)]), (3, [(3, 4), (6, 7)]), (4, [(2, 3), (5, 6), (7, 8)])]
)
def test_the_papers_sets_are_merged_as_in_the_paper(
    components: int, expected: list[tuple[int, int]], data: Path
) -> None:
    folder = data / "identifiability" / "dataset_fully_simulation" / f"K={components}" / "train"
    fields = call_elute("repair", folder, "--item", "doc_id", "--method", "merge", "--json").json
    assert [(pair["a"]["position"], pair["b"]["position"]) for pair in fields["pairs"]] == expected
    assert fields["cost"] == len(expected)


def test_swap_fits_first_where_nothing_is_given(demo_logs: Path) -> None:
    """By default relevance and propensities come from the position-based model under the cheapest merge, and items are
    drawn towards the prior."""
    check = elute.check(elute.read_log(demo_logs / "broken.parquet"))
    by_default = elute.swap(check)
    plain = PBM(relevance_prior="none").fit(check.counts, elute.merge(check))
    found = expect(check, first=elute.merge(check))
    np.testing.assert_allclose(found.propensity, plain.propensity_, rtol=0.05)
    assert np.corrcoef(found.relevance, plain.relevance_values_)[0, 1] > 0.97
    assert found.relevance.std() < plain.relevance_values_.std()
    found = expect(check)  # without a plan, parts are put where their positions suggest
    items, factors = index_rows(check.counts.items), index_rows(check.counts.factors)
    for swap in by_default.swaps:
        p = found.relevance[items[row_key(swap.item)]] * found.propensity[factors[row_key(swap.target)]]
        assert swap.click_probability == pytest.approx(p)
    again = elute.swap(check, found.typical, found.propensity)  # items are picked by what is typical, not by clicks
    assert [swap.item for swap in by_default.swaps] == [swap.item for swap in again.swaps]
    assert elute.check(check.log, plan=by_default).recoverable
