"""Every rung, by logs whose rung is plain to see, from Python and from the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from known_worlds import dead_link, dense, list_pages, lone_positions, make_log, seen_six_times, sparse, stray_results

import elute
from conftest import call_elute

RUNGS: dict[str, tuple[Callable[[], pa.Table], str, int]] = {
    "dense": (dense, "known", 0),
    "sparse": (sparse, "loose", 0),
    "seen six times": (seen_six_times, "loose", 0),
    "dead link": (dead_link, "linked", 3),
    "stray results": (stray_results, "apart", 3),
    "lone positions": (lone_positions, "apart", 3),
}


@pytest.mark.parametrize("name", RUNGS)
def test_the_rung_and_the_exit_code(name: str, tmp_path: Path) -> None:
    make, rung, code = RUNGS[name]
    pq.write_table(make(), tmp_path / "log.parquet")
    outcome = call_elute("check", tmp_path / "log.parquet", "--json")
    assert (outcome.json["rung"], outcome.code) == (rung, code)
    assert outcome.json["recoverable"] == (rung != "apart")
    assert outcome.json["estimable"] == (outcome.json["unestimable_factors"] == 0)
    page = call_elute("check", tmp_path / "log.parquet").out
    sign = {"known": "✓", "loose": "≈"}.get(rung, "✗")
    assert page.split()[0] == sign
    assert ("✓" in page) == (rung == "known")


@pytest.mark.parametrize(
    ("name", "codes"),
    [("dense", (0, 0, 0)), ("sparse", (0, 0, 3)), ("dead link", (0, 3, 3)), ("lone positions", (3, 3, 3))],
)
def test_a_bar_for_pipelines(name: str, codes: tuple[int, int, int], tmp_path: Path) -> None:
    pq.write_table(RUNGS[name][0](), tmp_path / "log.parquet")
    for bar, code in zip(("linked", "estimable", "known"), codes, strict=True):
        assert call_elute("check", tmp_path / "log.parquet", "--require", bar, "--json").code == code


def test_the_precision_asked_moves_the_rung() -> None:
    log = elute.read_log(dense())
    assert elute.check(log, target_log_se=1.0).rung == "known"
    strict = elute.check(log, target_log_se=0.001)
    assert strict.rung == "loose" and strict.to_dict()["precision"]["factors_known"] == 0
    with pytest.raises(elute.EluteError, match="target_log_se"):
        elute.check(log, target_log_se=0)


def test_all_fields_are_there() -> None:
    fields = elute.check(elute.read_log(sparse())).to_dict()
    assert set(fields["precision"]) >= {
        "target_log_se",
        "factors_known",
        "impressions_known_share",
        "items_known_share",
        "queries_ordered_share",
        "largest_log_se",
        "median_log_se",
        "clicks_needed",
    }
    assert fields["precision"]["clicks_needed"] > 0 and fields["missing"]["total"] > 0
    assert elute.check(elute.read_log(dense())).to_dict()["precision"]["clicks_needed"] == 0


def test_a_dead_link_is_named_with_what_would_mend_it() -> None:
    check = elute.check(elute.read_log(dead_link()))
    fields = check.to_dict()
    assert fields["unestimable"] == [{"position": 3}, {"position": 4}]
    assert "position 3; position 4" in check.sentence
    (link,) = fields["missing"]["links"]
    assert link["impressions_needed"] > 100 and fields["precision"]["clicks_needed"] is None


def test_a_fit_refuses_what_is_linked_only(tmp_path: Path) -> None:
    log = elute.read_log(dead_link())
    with pytest.raises(elute.NotEstimable, match="position 3; position 4"):
        elute.fit(log)
    assert elute.fit(log, "naive").summary["rung"] == "linked"
    assert elute.fit(log, allow_unidentified=True).summary["rung"] == "linked"
    pq.write_table(dead_link(), tmp_path / "log.parquet")
    outcome = call_elute("fit", tmp_path / "log.parquet")
    assert outcome.code == 3 and outcome.err.startswith("elute: not estimable") and outcome.err.count("\n") == 1


def test_a_factor_that_was_never_clicked_is_not_known() -> None:
    rows = [(query, doc, place, click if place < 5 else 0) for query, doc, place, click in list_pages(10, 300)]
    fields = elute.check(elute.read_log(make_log(rows))).to_dict()
    assert (fields["rung"], fields["estimable"], fields["unclicked_factors"]) == ("loose", True, 1)
    assert fields["precision"]["largest_log_se"] is None
    assert "position 5" in fields["verdict"]


def test_nothing_clicked_and_no_clicks_at_all(tmp_path: Path) -> None:
    silent = make_log([(query, doc, place, 0) for query, doc, place, _ in list_pages(3, 5)])
    check = elute.check(elute.read_log(silent))
    assert (check.rung, check.to_dict()["estimable"]) == ("linked", False)
    assert "nothing was clicked" in check.sentence
    assert (check.look.sign, check.card().tone) == ("✗", "bad")
    (tmp_path / "train.init_list").write_text("q 1 2\nq 2 1\n")
    with elute.read_log(tmp_path) as log:
        bare = elute.check(log)
    assert (bare.rung, bare.precision) == ("linked", None)
    assert bare.look == ("≈", "warn", "Linked")
    assert (bare.card().tone, bare.card().word) == ("warn", "Linked")


def test_one_factor_has_nothing_to_debias() -> None:
    rows = [(query, doc, 1, click) for query, doc, _, click in list_pages(3, 50)]
    check = elute.check(elute.read_log(make_log(rows)))
    assert check.rung == "loose" and "nothing to debias" in check.sentence


def test_lone_factors_are_not_known() -> None:
    found = elute.check(elute.read_log(lone_positions())).to_dict()["precision"]
    assert (found["factors_known"], found["impressions_known_share"]) == (0, 0)
    assert found["largest_log_se"] is found["median_log_se"] is None


def test_the_reference_is_not_a_position_seen_six_times() -> None:
    table = elute.fit(elute.read_log(seen_six_times())).propensities
    assert table is not None
    values = dict(zip(table["position"].to_pylist(), table["propensity"].to_pylist(), strict=True))
    errors = dict(zip(table["position"].to_pylist(), table["log_se"].to_pylist(), strict=True))
    assert (values[1], errors[1]) == (1.0, 0.0)
    assert errors[2] < 0.1 < errors[12]


def test_stray_results_are_named_with_the_filter_that_leaves_them_out(tmp_path: Path) -> None:
    pq.write_table(stray_results(), tmp_path / "log.parquet")
    (one,) = call_elute("check", tmp_path / "log.parquet", "--json").json["suggestions"]
    assert (one["option"], one["value"], one["impressions"]) == ("max_position", 40, 9)
    assert call_elute("check", tmp_path / "log.parquet", "--max-position", 40, "--json").json["rung"] == "known"


def test_a_thin_factor_in_the_middle_takes_the_other_filter() -> None:
    rows = [*list_pages(10, 300), (1_000, 0, 3, 0)]
    odd = make_log(rows).append_column("device", pa.array(["phone"] * (len(rows) - 1) + ["watch"]))
    (one,) = elute.check(elute.read_log(odd, bias="position,device")).to_dict()["suggestions"]
    assert (one["option"], one["value"], one["impressions"]) == ("min_factor_impressions", 2, 1)


def test_coarser_items_are_proposed_where_they_link() -> None:
    rng = np.random.default_rng(0)
    rows = [(query, (query + place) % 7, place, int(rng.random() < 0.3)) for query in range(70) for place in (1, 2, 3)]
    fields = elute.check(elute.read_log(make_log(rows))).to_dict()
    assert fields["rung"] == "apart"
    assert [(one["option"], one["value"], one["components"]) for one in fields["suggestions"]] == [
        ("item", "doc_id", 1)
    ]


@pytest.mark.parametrize("name", RUNGS)
def test_the_order_of_rows_and_names_change_nothing(name: str) -> None:
    log = RUNGS[name][0]()
    order = np.random.default_rng(1).permutation(log.num_rows)
    renamed = log.take(order).set_column(
        1, "doc_id", pa.array([f"d{doc}" for doc in log["doc_id"].take(order).to_pylist()])
    )
    one, other = (elute.check(elute.read_log(table)).to_dict() for table in (log, renamed))
    assert one["rung"] == other["rung"]
    for field in ("largest_log_se", "median_log_se", "items_known_share", "queries_ordered_share", "design_effect"):
        mine, theirs = one["precision"][field], other["precision"][field]
        assert theirs == (None if mine is None else pytest.approx(mine, rel=1e-6)), field
