"""Merges with their consequence: from a log, on the page, in the report, through a file."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import elute
from conftest import call_elute
from elute.checking.check import Check
from elute.errors import EluteError
from elute.estimate.models.pbm import PBM
from elute.repair.distortion.fields import Consequence
from elute.repair.plan import MergePlan, load
from elute.repair.weigh import weigh_merges
from elute.simulation import toy
from reference.plain_distortion import component_tree, flips_by_all_pairs

DELTAS = (1.1, 1.25, 1.5, 2.0)


def load_merges(path: Path) -> MergePlan:
    plan = load(path)
    assert isinstance(plan, MergePlan)
    return plan


def consequence_of(plan: MergePlan) -> Consequence:
    assert plan.consequence is not None
    return plan.consequence


def find_flips_plainly(check: Check, plan: MergePlan) -> dict[str, float]:
    """By query, from a fit and over all pairs of items."""
    counts, pairs = check.counts, plan.pairs_of(check.counts.factors)
    relevance = PBM().fit(counts, plan).relevance_values_
    component = check.found.of_factor[counts.factor[counts.offsets[:-1]]]
    names, query = np.unique(counts.items["query_id"].to_numpy(zero_copy_only=False), return_inverse=True)
    tree = component_tree(pairs, check.found.of_factor)
    return dict(zip(names.tolist(), flips_by_all_pairs(tree, query, component, relevance).tolist(), strict=True))


def compare_with_plain(check: Check, plan: MergePlan) -> dict[str, float]:
    expected = find_flips_plainly(check, plan)
    found = dict(zip(*(column.to_pylist() for column in plan.flips.columns), strict=True))
    assert found == pytest.approx(expected, rel=1e-12)
    fields = plan.to_dict()
    for row in fields["distortion"]:
        assert row["queries_safe_share"] == np.mean(np.array(list(expected.values())) > row["delta"])
        assert row["largest"] == pytest.approx(row["delta"] ** fields["longest_path"])
    assert tuple(row["delta"] for row in fields["distortion"]) == DELTAS
    return expected


def test_the_demos_broken_log(demo_logs: Path, tmp_path: Path) -> None:
    log, out, queries = demo_logs / "broken.parquet", tmp_path / "plan.json", tmp_path / "queries.parquet"
    words = ("repair", log, "--method", "merge", "--out", out, "--queries", queries)
    fields = call_elute(*words, "--json").json
    check = elute.check(log)
    plan = elute.merge(check)
    expected = compare_with_plain(check, plan)
    assert check.ranking is not None
    assert fields["queries_across"] == check.ranking.queries - check.ranking.rankable
    assert sum(np.isfinite(list(expected.values()))) == fields["queries_across"]
    written = pq.read_table(queries)
    assert written.column_names == ["query_id", "flips_at"]
    assert written.equals(plan.flips)
    assert load(out) == plan
    with pytest.raises(EluteError, match="does not know its queries"):
        _ = load_merges(out).flips

    at = fields["distortion"][1]
    page = " ".join(call_elute(*words).out.split())
    assert (
        "If the two factors of each merged pair differ by a factor of 1.25 in how often they are seen, ratios of "
        f"relevances are off by up to 1.25, and {at['queries_safe_share']:.1%} of the queries keep their order." in page
    )
    assert "Proposition 4" not in page
    told = tmp_path / "report.html"
    assert call_elute("report", log, "--plan", out, "--out", told).code == 0
    assert "of the queries keep their order" in told.read_text()
    assert "Queries that keep their order" in told.read_text()


@pytest.fixture
def five(tmp_path: Path) -> Path:
    """Five components in a chain, two positions each; across every pair the propensity `o` halves."""
    rng = np.random.default_rng(0)
    o = np.repeat(0.5 ** np.arange(5), 2)
    query, part, _ = (axis.ravel() for axis in np.indices((30, 5, 30)))
    position = 2 * part + rng.integers(0, 2, len(part))
    click = rng.random(len(part)) < rng.uniform(0.3, 0.9, (30, 5))[query, part] * o[position]
    table = {"query_id": query, "doc_id": part, "position": position + 1, "click": click.astype(int), "o": o[position]}
    pq.write_table(pa.table(table), tmp_path / "five.parquet")
    return tmp_path / "five.parquet"


def test_a_chain_of_five_components(five: Path) -> None:
    """The page said: at most 2.67 (Proposition 4). Estimated over true relevance runs over a factor of 16."""
    check = elute.check(five)
    plan = elute.merge(check, propensity="o")
    fields = plan.to_dict()
    compare_with_plain(check, plan)
    assert (fields["longest_path"], fields["longest_distance"]) == (4, 4)
    assert [row["largest"] for row in fields["distortion"]] == pytest.approx([d**4 for d in DELTAS])
    known = fields["distortion_known"]
    assert known["ratio"] == pytest.approx(16)
    assert known["largest"] - known["smallest"] == pytest.approx(fields["bound"])
    assert [pair["log_ratio"] for pair in fields["pairs"]] == pytest.approx([np.log(2)] * 4)
    page = " ".join(call_elute("repair", five, "--method", "merge", "--propensity", "o").out.split())
    assert "off by up to 1.25^4 = 2.44" in page
    assert "ratios of relevances are off by up to 16." in page
    assert "2.67" not in page


def test_propensities_of_the_plans_own_fit_say_nothing(five: Path, tmp_path: Path) -> None:
    fit = elute.fit(five, plan=elute.merge(five))
    plan = elute.merge(five, propensity=fit)
    known = consequence_of(plan).distortion_known
    assert known is not None
    assert known.ratio == 1.0
    fit.save(tmp_path / "fit")
    page = call_elute(
        "repair", five, "--method", "merge", "--propensity", tmp_path / "fit" / "propensities.parquet"
    ).out
    assert "by construction" in " ".join(page.split())
    assert "Proposition 4" not in page


def test_no_bound_where_a_propensity_is_0(five: Path) -> None:
    check = elute.check(five)
    propensity = np.ones(10)
    propensity[0] = 0  # not merged
    assert elute.merge(check, propensity=propensity).bound == 0
    propensity[2] = 0
    with pytest.raises(EluteError, match="not for position 3: give others, or plan without"):
        elute.merge(check, propensity=propensity)


@pytest.fixture
def ring() -> pa.Table:
    """Twelve contexts on a ring, each with five factors around it: the cheapest tree goes around, the best across."""
    rng = np.random.default_rng(1)
    angle = 2 * np.pi * np.arange(12) / 12
    factors = 10 * np.column_stack((np.cos(angle), np.sin(angle)))[:, None] + rng.normal(0, 0.3, (12, 5, 2))
    query, part, _ = (axis.ravel() for axis in np.indices((40, 12, 12)))
    which = rng.integers(0, 5, len(part))
    x, y = np.moveaxis(factors[part, which], -1, 0)
    click = rng.random(len(part)) < rng.uniform(0.1, 0.9, (40, 12))[query, part]
    return pa.table({"query_id": query % 20, "doc_id": part, "x": x, "y": y, "click": click.astype(int)})


def test_the_tree_of_least_distortion(ring: pa.Table, tmp_path: Path) -> None:
    log = tmp_path / "ring.parquet"
    pq.write_table(ring, log)
    check = elute.check(log, bias="x,y")
    assert check.components == 12
    words = ("repair", log, "--bias", "x,y", "--method", "merge")
    fields = call_elute(*words, "--json").json
    named = {row["name"]: row for row in fields["alternatives"]}
    cheap, flat = named["least cost"], named["least distortion"]
    assert (cheap["chosen"], flat["chosen"], flat["exact"]) == (True, False, True)
    assert fields["cost"] == cheap["cost"] < flat["cost"]
    assert flat["longest_distance"] < cheap["longest_distance"]
    assert cheap["unit"] == flat["unit"] == max(pair["cost"] for pair in fields["pairs"])
    for one in (cheap, flat):
        for row in one["distortion"]:
            assert row["largest"] == pytest.approx(row["delta"] ** (one["longest_distance"] / one["unit"]))
    shares = [row["distortion"][1]["queries_safe_share"] for row in fields["alternatives"]]
    assert shares == sorted(shares, reverse=True)

    out = tmp_path / "plan.json"
    other = call_elute(*words, "--prefer", "distortion", "--out", out, "--json").json
    assert other == json.loads(out.read_text())
    assert other["cost"] == sum(pair["cost"] for pair in other["pairs"]) == pytest.approx(flat["cost"])
    assert [row["name"] for row in other["alternatives"]] == [row["name"] for row in fields["alternatives"]]
    assert {row["name"] for row in other["alternatives"] if row["chosen"]} == {"least distortion"}
    assert other["provenance"]["options"] == {"prefer": "distortion"}
    assert call_elute("check", log, "--bias", "x,y", "--plan", out, "--json").json["components"] == 1
    compare_with_plain(check, elute.merge(check, prefer="distortion"))
    page = " ".join(call_elute(*words).out.split())
    assert "Another tree of pairs joins the components too (--prefer distortion)." in page
    assert call_elute("report", log, "--bias", "x,y", "--plan", out, "--out", tmp_path / "page.html").code == 0
    assert "(--prefer cost)" in (tmp_path / "page.html").read_text()
    with pytest.raises(EluteError, match="there are: cost, distortion"):
        weigh_merges(check, prefer="beauty")  # type: ignore[arg-type]


def test_the_plan_of_least_cost_is_what_it_was(ring: pa.Table) -> None:
    check = elute.check(elute.read_log(ring, bias="x,y"))
    with_it, without = elute.merge(check), elute.merge(check, consequence=False)
    assert (with_it.pairs, with_it.cost) == (without.pairs, without.cost)
    assert (without.consequence, "longest_path" in without.to_dict()) == (None, False)
    with pytest.raises(EluteError, match="leave out `consequence=False`"):
        elute.merge(check, consequence=False, prefer="distortion")


def test_lone_positions_are_one_propensity_whatever_the_tree(lone_positions: Path) -> None:
    """A chain and a star merge the same factors: one fit, and so one alternative. The caution stays first."""
    outcome = call_elute("repair", lone_positions, "--method", "merge")
    assert "! No debiasing:" in outcome.out
    assert "1.25^4 = 2.44" in outcome.out
    fields = elute.merge(lone_positions).to_dict()
    assert (fields["longest_path"], fields["propensities_after"], len(fields["alternatives"])) == (4, 1, 1)
    assert elute.merge(lone_positions, prefer="distortion").pairs == elute.merge(lone_positions).pairs


def sparse_log(clicks: bool = True) -> pa.Table:
    """Most items have one impression, most have no click; few link positions 1–3, or 4–6, and none these two."""
    rng = np.random.default_rng(4)
    n = 900
    query, half = rng.integers(0, 120, n), rng.integers(0, 2, n)
    doc = np.where(rng.random(n) < 0.9, np.arange(n) + 100, half * 10 + rng.integers(0, 3, n))
    position = 1 + 3 * half + rng.integers(0, 3, n)
    click = (rng.random(n) < 0.3 / position) & clicks
    return pa.table({"query_id": query.astype(str), "doc_id": doc, "position": position, "click": click.astype(int)})


def test_a_sparse_log() -> None:
    check = elute.check(sparse_log())
    plan = elute.merge(check)
    assert check.counts.item_impressions.mean() < 1.5
    expected = compare_with_plain(check, plan)
    finite = [at for at in expected.values() if np.isfinite(at)]
    assert min(finite) >= 1
    assert 0 < len(finite) == consequence_of(plan).queries_across


def test_without_clicks_or_queries_only_ratios_are_told() -> None:
    silent = elute.merge(sparse_log(clicks=False))
    told = consequence_of(silent)
    assert {row.queries_safe_share for row in told.distortion} == {None}
    assert told.queries_across is not None
    assert (told.queries_safe_curve, told.queries_across > 0) == (None, True)
    assert told.sentence.endswith("off by up to 1.25^3 = 1.95.")
    alone = elute.merge(sparse_log().drop_columns("query_id"), item="doc_id")
    assert consequence_of(alone).queries_across is None
    with pytest.raises(EluteError, match="a log that has clicks and queries"):
        _ = alone.flips
    assert json.loads(alone.to_json())["distortion"][0]["queries_safe_share"] is None


def test_queries_within_components_are_safe_without_a_fit(chain: pa.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PBM, "fit", None)
    plan = elute.merge(chain)
    told = consequence_of(plan)
    assert told.queries_across == 0
    assert {row.queries_safe_share for row in told.distortion} == {1.0}
    assert np.isinf(plan.flips["flips_at"].to_numpy()).all()
    assert "all queries keep their order" in told.sentence


def test_queries_that_items_do_not_name(tmp_path: Path) -> None:
    """Shares need no names; a file of queries does."""
    log = tmp_path / "log.parquet"
    pq.write_table(toy.simulate(2000, 30, broken=True, seed=1), log)
    words = ("repair", log, "--item", "doc_id", "--method", "merge")
    fields = call_elute(*words, "--json").json
    if fields["components_before"] > 1:
        assert fields["distortion"][0]["queries_safe_share"] is not None
    outcome = call_elute(*words, "--queries", tmp_path / "queries.parquet")
    assert outcome.code == 1
    assert "queries go by the names that items have" in outcome.err
    assert not (tmp_path / "queries.parquet").exists()


def test_a_log_in_one_piece_loses_nothing(demo_logs: Path) -> None:
    fields = elute.merge(demo_logs / "sound.parquet").to_dict()
    assert (fields["longest_path"], fields["queries_across"], fields["pairs"]) == (0, 0, [])
    assert {(row["largest"], row["queries_safe_share"]) for row in fields["distortion"]} == {(1.0, 1.0)}
    assert "1.25" not in call_elute("repair", demo_logs / "sound.parquet", "--method", "merge").out


def test_files_of_older_versions_are_read(demo_logs: Path, tmp_path: Path) -> None:
    fields = elute.merge(demo_logs / "broken.parquet").to_dict()
    new = ("longest_path", "longest_distance", "queries_across", "distortion", "queries_safe_curve", "alternatives")
    old = {name: value for name, value in fields.items() if name not in (*new, "distortion_known", "bound_scale")}
    old["pairs"] = [{name: pair[name] for name in ("a", "b", "cost", "bound", "bound_share")} for pair in old["pairs"]]
    (tmp_path / "plan.json").write_text(json.dumps(old))
    plan = load_merges(tmp_path / "plan.json")
    assert plan.consequence is None
    assert (
        call_elute(
            "report", demo_logs / "broken.parquet", "--plan", tmp_path / "plan.json", "--out", tmp_path / "p.html"
        ).code
        == 0
    )
