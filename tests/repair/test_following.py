"""A swap plan followed from look to look, by the command and from Python."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import elute
from conftest import call_elute
from elute.repair.plan import load
from elute.simulation import toy
from elute.simulation.grades import PROPENSITIES

TRUTH = toy.draw_truth(120, 7)
RELEVANCE = dict(zip(TRUTH["doc_id"].to_pylist(), TRUTH["relevance"].to_pylist(), strict=True))


def load_swaps(path: Path) -> elute.SwapPlan:
    plan = load(path)
    assert isinstance(plan, elute.SwapPlan)
    return plan


def show(plan: Path, pages: int, seed: int) -> pa.Table:
    """Every item of the plan on so many pages under its new factor, and on as many where it is known from; a user
    sees two of them."""
    rng, rows = np.random.default_rng(seed), []
    for swap in load_swaps(plan).swaps:
        for factor in (swap.source, swap.target):
            p = RELEVANCE[swap.item["doc_id"]] * PROPENSITIES[factor["position"] - 1]
            for page, click in enumerate(rng.random(pages) < p):
                rows.append({**swap.item, **factor, "click": bool(click), "session_id": 10**6 * seed + page // 2})
    return pa.Table.from_pylist(rows)


@pytest.fixture
def broken(demo_logs: Path) -> Path:
    return demo_logs / "broken.parquet"


@pytest.fixture(scope="module")
def made(demo_logs: Path) -> elute.SwapPlan:
    """One item, as often as its link needs if it rests on this item alone."""
    plan = elute.swap(demo_logs / "broken.parquet")
    clicked = max(plan.swaps, key=lambda swap: swap.click_probability)
    return replace(plan, swaps=(replace(clicked, impressions_needed=200),))


@pytest.fixture
def plan(made: elute.SwapPlan, tmp_path: Path) -> Path:
    made.save(tmp_path / "plan.json")
    return tmp_path / "plan.json"


def log_of(plan: Path, pages: int, seed: int, name: str = "new") -> Path:
    path = plan.parent / f"{name}{seed}.parquet"
    pq.write_table(show(plan, pages, seed), path)
    return path


def test_a_plan_is_followed_until_its_link_is_known(plan: Path) -> None:
    swap = load_swaps(plan).swaps[0]
    true = np.log(PROPENSITIES[swap.source["position"] - 1] / PROPENSITIES[swap.target["position"] - 1])
    widths = []
    for look in range(1, 12):
        new, rest = log_of(plan, 200, look), plan.parent / f"plan{look}.json"
        outcome = call_elute(
            "repair", "--continue", plan, "--log", new, "--out", rest, "--date", f"day {look}", "--json"
        )
        assert outcome.code == 0, outcome.err
        fields, plan = outcome.json, rest
        found = fields["swaps"][0]
        widths.append(found["half_width"])
        assert fields["looks"] == look == len(fields["history"])
        assert (found["impressions_seen"], fields["links"]) == (200, 1)
        assert found["low"] < true < found["high"]
        assert found["done"] == fields["stop"] == (found["half_width"] <= fields["target_half_width"])
        if fields["stop"]:
            break
        assert load_swaps(rest).swaps[0].impressions_needed == found["impressions_left"]
        assert found["impressions_left"] + found["impressions_left_at_source"] > 0
    assert fields["stop"]
    assert look > 2
    assert widths == sorted(widths, reverse=True)
    assert fields["links_done"] == 1
    assert fields["joined"]
    assert fields["impressions_left"] == 0
    assert "no need to show more" in fields["reason"]
    assert [entry["date"] for entry in fields["history"]] == [f"day {number}" for number in range(1, look + 1)]
    assert load_swaps(rest).swaps == ()
    done = call_elute("repair", "--continue", rest, "--log", log_of(plan.parent / "plan.json", 5, 99))
    assert done.code == 1
    assert "no swaps left" in done.err


def test_all_at_once_says_the_same_as_look_by_look(plan: Path) -> None:
    """The first plan with everything since, or the plan that a look left with what came after: the same link."""
    one, two = log_of(plan, 150, 1), log_of(plan, 300, 2)
    step = elute.follow(plan, one)
    step.rest.save(plan.parent / "rest.json")
    late = elute.follow(plan.parent / "rest.json", two).swaps[0]
    together = elute.follow(plan, [one, two]).swaps[0]
    assert (late.log_ratio, late.half_width) == pytest.approx((together.log_ratio, together.half_width))
    assert (late.impressions_left, late.impressions_left_at_source) == (
        together.impressions_left,
        together.impressions_left_at_source,
    )
    assert (late.impressions_seen, together.impressions_seen) == (300, 450)


def test_both_ways(plan: Path, broken: Path) -> None:
    new = log_of(plan, 80, 3)
    words = ("repair", "--continue", plan, "--log", new, "--session", "session_id")
    found = elute.follow(plan, new, session="session_id", date="d")
    for asked in ((*words, "--date", "d"), ("repair", broken, *words[1:], "--date", "d")):
        assert call_elute(*asked, "--json").json == json.loads(found.to_json())
    assert found.clusters == ("query_id", "session_id")
    page = call_elute(*words).out
    assert "Go on" in page
    assert "single look at the end" in " ".join(page.split())
    saved = elute.Following.load(_save(found, plan.parent / "look.json"))
    assert saved.sentence == found.sentence == found.reason
    assert found.reason in repr(found)


def _save(found: elute.Following, path: Path) -> Path:
    found.save(path)
    return path


def test_tables_in_memory(plan: Path, broken: Path) -> None:
    table, path = show(plan, 60, 4), log_of(plan, 60, 4)
    from_table, from_file = elute.follow(plan, table.to_pandas()), elute.follow(plan, path, elute.read_log(broken))
    assert [swap.to_dict() for swap in from_table.swaps] == [swap.to_dict() for swap in from_file.swaps]
    assert from_table.rest.history[0]["log"] is None
    with pytest.raises(elute.EluteError, match="look 1 read a table in memory"):
        elute.follow(from_table.rest, path)


def test_new_items_and_new_factors(plan: Path) -> None:
    """What the old log lacks is taken in, and leaves the link as it is; types of columns may differ."""
    table, path = show(plan, 100, 5), plan.parent / "wider.parquet"
    other = {"query_id": "new", "doc_id": "new", "position": 77, "click": True, "session_id": 1}
    pq.write_table(pa.concat_tables([table, pa.Table.from_pylist([other, {**other, "position": 76}])]), path)
    wider, found = elute.follow(plan, path), elute.follow(plan, table)
    assert wider.swaps[0].log_ratio == pytest.approx(found.swaps[0].log_ratio, abs=1e-3)
    assert wider.swaps[0].half_width == pytest.approx(found.swaps[0].half_width, rel=0.02)


@pytest.mark.parametrize("clicked", [False, True])
def test_few_impressions_leave_the_link_open(plan: Path, clicked: bool) -> None:
    """None at the new place; shown there, never clicked; a log that has nothing of the plan."""
    swap = load_swaps(plan).swaps[0]
    rows = [{**swap.item, **swap.source, "click": True}]
    if clicked:
        rows += [{**swap.item, **swap.target, "click": False}] * 3
    found = elute.follow(plan, pa.Table.from_pylist(rows))
    one = found.swaps[0]
    assert (one.log_ratio, one.half_width, one.low, one.high) == (None,) * 4
    assert (found.joined, found.stop, found.largest_half_width) == (False, False, None)
    assert one.impressions_left > 50
    assert (one.impressions_seen, one.clicks_seen) == (3 * clicked, 0)
    assert "too few clicks" in found.reason
    stranger = elute.follow(plan, pa.Table.from_pylist([{**swap.item, **swap.source, "doc_id": "x", "click": True}]))
    assert stranger.swaps[0].impressions_seen == 0


def test_a_budget_ends(broken: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    elute.swap(broken, budget=300, target_se=0.02).save(plan)
    planned = [swap.impressions_planned or 0 for swap in load_swaps(plan).swaps]
    assert sum(planned) == 300
    pages = max(min(planned) // 2, 1)
    part = elute.follow(plan, log_of(plan, pages, 1))
    assert not part.stop
    left = sum(swap.impressions_planned or 0 for swap in part.rest.swaps)
    assert left <= 300 - len(planned) * pages + len(planned)
    over = elute.follow(plan, log_of(plan, max(planned), 2))
    assert over.stop
    assert over.links_done < over.links
    assert over.card().tone == "warn"
    assert "impressions planned have been shown" in over.reason
    assert over.target_half_width == pytest.approx(1.96 * 0.02, rel=1e-3)


def test_filters_and_columns_are_the_plans(broken: Path, tmp_path: Path) -> None:
    table = pq.read_table(broken)
    renamed = table.rename_columns(["session_id", "query_id", "d", "rank", "click"])
    pq.write_table(renamed, tmp_path / "log.parquet")
    elute.swap(tmp_path / "log.parquet", item="query_id,d", bias="rank", where="rank <= 6").save(tmp_path / "plan.json")
    elute.swap(broken, max_position=6).save(tmp_path / "same.json")
    new = show(tmp_path / "same.json", 50, 6)
    found = elute.follow(tmp_path / "plan.json", new.rename_columns(["query_id", "d", "rank", "click", "session_id"]))
    same = elute.follow(tmp_path / "same.json", new, broken)
    assert found.swaps[0].log_ratio == pytest.approx(same.swaps[0].log_ratio)


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("--continue", "plan.json"), 2, "--continue needs --log"),
        (("broken", "--method", "swap", "--log", "new1.parquet"), 2, "--log goes with --continue"),
        (("broken",), 2, "Missing option '--method'"),
        (("--method", "swap"), 2, "Missing argument 'LOG...'"),
        (("--continue", "merge.json", "--log", "new1.parquet"), 1, "nothing to continue"),
        (("--continue", "none.json", "--log", "new1.parquet"), 1, "there is no plan 'none.json'"),
        (("--continue", "plan.json", "--log", "none.parquet"), 1, "no file 'none.parquet'"),
        (("--continue", "rest.json", "--log", "new*.parquet"), 1, "new*.parquet was read before"),
        (("--continue", "plan.json", "--log", "broken"), 1, "was read before"),
        (("--continue", "lost.json", "--log", "new1.parquet"), 1, "was made for 'lost.parquet', which is not found"),
        (("counts", "--continue", "plan.json", "--log", "new1.parquet"), 1, "counts, which are not read together"),
        (("new1.parquet", "--continue", "plan.json", "--log", "new2.parquet"), 1, "is this the log it was made for?"),
    ],
)
def test_what_is_refused(broken: Path, plan: Path, words: tuple[str, ...], code: int, message: str) -> None:
    folder = plan.parent
    log_of(plan, 5, 1)
    pq.write_table(
        pa.table({"query_id": ["q"], "doc_id": ["d"], "position": [1], "click": [1]}), folder / "new2.parquet"
    )
    elute.merge(broken).save(folder / "merge.json")
    elute.follow(plan, folder / "new1.parquet").rest.save(folder / "rest.json")
    lost: dict[str, Any] = json.loads(plan.read_text())
    lost["provenance"]["log"] = "lost.parquet"
    (folder / "lost.json").write_text(json.dumps(lost))
    if words[0] == "counts":
        elute.count(broken, folder / "counts")
    if words[0] == "new1.parquet":
        pq.write_table(
            pa.table({"query_id": ["q"], "doc_id": ["d"], "position": [1], "click": [1]}), folder / "new1.parquet"
        )
    outcome = call_elute("repair", *(str(broken) if word == "broken" else word for word in words), cwd=folder)
    assert outcome.code == code, outcome.out + outcome.err
    assert message in " ".join(outcome.err.split())
