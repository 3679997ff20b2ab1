"""The simulator as a whole: what is written is what was drawn, from streams that do not touch each other."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import elute
from conftest import call_elute
from elute.cli.verbs.simulate import POLICIES as KNOWN_POLICIES
from elute.cli.verbs.simulate import USERS as KNOWN_USERS
from elute.errors import EluteError
from elute.io.ranking import read_scores
from elute.ranking.data import RankingData
from elute.simulation import log
from elute.simulation.policies import NoisyOracle, Scored, Uniform
from elute.simulation.policies.registry import POLICIES, build_policy
from elute.simulation.users.contextual import ContextualPositionBased, draw_contexts
from elute.simulation.users.dbn import DynamicBayesian
from elute.simulation.users.position import PositionBased
from elute.simulation.users.registry import USERS
from elute.simulation.world import World, draw_pages, spawn_streams


def ranking(queries=4, documents=12, seed=0):
    rng = np.random.default_rng(seed)
    n = queries * documents
    return RankingData(
        rng.random((n, 3), np.float32),
        rng.integers(0, 5, n).astype(np.int32),
        np.arange(0, n + 1, documents),
        np.array([f"q{q}" for q in range(queries)]),
        np.array([f"d{d}" for _ in range(queries) for d in range(documents)]),
    )


def world(policy, user, width=10, contexts=0, **more):
    data = ranking(**more)
    return World(
        data, policy, user, np.random.default_rng(1).uniform(0.1, 0.9, data.n_documents), None, width, contexts
    )


def simulate(made, sessions, seed, path, part=1000):
    log.write(path, made, draw_pages(made, sessions, spawn_streams(seed), part), sessions)
    return pq.read_table(path)


def test_the_log_and_its_truth_have_the_promised_columns(tmp_path):
    made = world(NoisyOracle(), PositionBased())
    table = simulate(made, 2500, 0, tmp_path / "log.parquet")
    assert table.column_names == ["session_id", "query_id", "doc_id", "position", "score", "click"]
    assert table.num_rows == 25_000
    assert pq.ParquetFile(tmp_path / "log.parquet").num_row_groups == 3
    assert np.array_equal(np.bincount(table["session_id"].to_numpy()), np.full(2500, 10))
    truth = pq.read_table(tmp_path / "log.truth.parquet").to_pylist()
    items = {(row["query_id"], row["doc_id"]): row for row in truth if row["kind"] == "item"}
    factors = {row["position"]: row["propensity"] for row in truth if row["kind"] == "factor"}
    assert len(items) == made.data.n_documents
    assert factors[1] == 0.68
    assert factors[10] == 0.06
    first = table.slice(0, 1).to_pylist()[0]
    row = np.flatnonzero(
        (made.data.queries[made.data.query_of] == first["query_id"]) & (made.data.documents == first["doc_id"])
    )[0]
    assert items[first["query_id"], first["doc_id"]]["relevance"] == made.relevance[row]
    assert first["score"] == pytest.approx(made.policy.scores(made.data)[row], rel=1e-6)


def test_click_rates_are_those_of_the_truth(tmp_path):
    table = simulate(world(Uniform(), PositionBased(), queries=2), 60_000, 3, tmp_path / "log.parquet", 7000)
    truth = pq.read_table(tmp_path / "log.truth.parquet").to_pylist()
    r = {(row["query_id"], row["doc_id"]): row["relevance"] for row in truth if row["kind"] == "item"}
    o = {row["position"]: row["propensity"] for row in truth if row["kind"] == "factor"}
    cells = table.group_by(["query_id", "doc_id", "position"]).aggregate([("click", "sum"), ("click", "count")])
    z = []
    for cell in cells.to_pylist():
        p, n = r[cell["query_id"], cell["doc_id"]] * o[cell["position"]], cell["click_count"]
        z.append((cell["click_sum"] - n * p) / np.sqrt(n * p * (1 - p)))
    assert len(z) == 2 * 12 * 10
    assert np.abs(z).max() < 4.5
    assert np.std(z) == pytest.approx(1, abs=0.2)


def test_a_seed_gives_one_log_however_it_is_parted(tmp_path):
    made = world(NoisyOracle(temperature=1.0), DynamicBayesian())
    logs = [simulate(made, 3000, 5, tmp_path / f"{part}.parquet", part).combine_chunks() for part in (3000, 700)]
    assert logs[0].equals(logs[1])
    other = simulate(made, 3000, 6, tmp_path / "other.parquet")
    assert not other.equals(logs[0])


def test_clicks_do_not_follow_the_ranking_noise():
    """Equal documents, shuffled anew each session: a click at a place says nothing about which document stands there,
    nor about the query."""
    data = ranking(queries=3, documents=10)
    made = World(data, Uniform(), PositionBased(np.full(10, 0.5)), np.full(data.n_documents, 0.6))
    (made_pages,) = draw_pages(made, 100_000, spawn_streams(11), 100_000)
    rows, clicks = made_pages.rankings.rows % 10, made_pages.clicks
    for place in range(10):
        correlation = np.corrcoef(rows[:, place], clicks[:, place])[0, 1]
        assert abs(correlation) < 4 / np.sqrt(100_000)
    assert abs(np.corrcoef(made_pages.query, clicks.sum(axis=1))[0, 1]) < 4 / np.sqrt(100_000)
    other = next(draw_pages(made, 100_000, spawn_streams(12), 100_000))
    assert abs(np.corrcoef(clicks.ravel(), other.clicks.ravel())[0, 1]) < 4 / np.sqrt(1_000_000)


def test_contexts_are_logged_and_true(tmp_path):
    user = ContextualPositionBased(*draw_contexts(4, np.random.default_rng(2)))
    table = simulate(world(Uniform(), user, contexts=4), 2000, 0, tmp_path / "log.parquet")
    assert set(table["context"].unique().to_pylist()) == {0, 1, 2, 3}
    truth = pq.read_table(tmp_path / "log.truth.parquet")
    factors = [row for row in truth.to_pylist() if row["kind"] == "factor"]
    assert len(factors) == 40
    assert all(row["propensity"] == user.propensities[row["context"], row["position"] - 1] for row in factors)
    with elute.read_log(tmp_path / "log.parquet", bias="position,context") as opened:
        assert elute.check(opened).to_dict()["factors"] == 40


def test_short_pages_are_logged_whole(tmp_path):
    made = world(Uniform(), PositionBased(), width=10, documents=3)
    table = simulate(made, 100, 0, tmp_path / "log.parquet")
    assert table.num_rows == 300
    assert set(table["position"].to_pylist()) == {1, 2, 3}


LETOR = "\n".join(f"{(q + d) % 3} qid:{q} 1:{d / 10} 2:{(d * 7) % 5}" for q in range(6) for d in range(8)) + "\n"


@pytest.fixture
def letor(tmp_path):
    (tmp_path / "train.txt").write_text(LETOR)
    return tmp_path / "train.txt"


def test_a_swap_plan_shown_repairs_the_log(letor, tmp_path):
    """A fixed ranking shows every document at one place: eight components. The swaps join them."""
    fixed = ("simulate", "--data", letor, "--policy", "weak", "--policy-setting", "share=1", "--sessions", "4000")
    out = tmp_path / "log.parquet"
    assert call_elute(*fixed, "--out", out).code == 0
    found = call_elute("check", out, "--json").json
    assert found["components"] == 8
    plan = tmp_path / "plan.json"
    assert call_elute("repair", out, "--method", "swap", "--out", plan).code == 0
    repaired = tmp_path / "repaired.parquet"
    assert call_elute(*fixed, "--swap", plan, "--out", repaired).code == 0
    after = call_elute("check", repaired, "--json").json
    assert after["recoverable"]
    planned = json.loads(plan.read_text())["swaps"]
    rows = pq.read_table(repaired).to_pylist()
    for swap in planned:
        hits = [row for row in rows if {k: row[k] for k in ("query_id", "doc_id")} == swap["item"]]
        assert sum(row["position"] == swap["to"]["position"] for row in hits) >= swap["impressions_needed"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--user-setting", "gamma=1"), "the user 'pbm' has no setting 'gamma'; it takes: propensities, eta"),
        (("--policy", "scores"), "the policy 'scores' needs --scores, and no other policy takes them"),
        (("--top-grade", "1"), "grades lie outside 0 to 1"),
        (("--width", "20", "--user", "pbm"), None),
        (("--data", "nowhere.txt"), "nowhere.txt"),
    ],
)
def test_bad_input_is_one_line(letor, tmp_path, options, message):
    done = call_elute("simulate", "--data", letor, *options, "--sessions", "10", "--out", tmp_path / "log.parquet")
    if message is None:
        assert done.code == 0
        return
    assert done.code == 1
    assert message in done.err
    assert len(done.err.strip().splitlines()) == 1
    assert not list(tmp_path.glob("*.parquet"))


def test_a_session_count_of_0_is_wrong_usage(letor, tmp_path):
    done = call_elute("simulate", "--data", letor, "--sessions", "0", "--out", tmp_path / "log.parquet")
    assert done.code == 2
    with pytest.raises(EluteError, match="0 sessions make no log"):
        next(draw_pages(world(Uniform(), PositionBased()), 0, spawn_streams(0)))


def test_a_malformed_line_is_named(tmp_path):
    (tmp_path / "bad.txt").write_text("1 qid:1 1:0.5\n2 qid:1 1:zero\n")
    done = call_elute("simulate", "--data", tmp_path / "bad.txt", "--sessions", "10", "--out", tmp_path / "log.parquet")
    assert done.code == 1
    assert "bad.txt" in done.err
    assert "line 2" in done.err


def test_scores_from_a_file(tmp_path):
    data = ranking(queries=2, documents=3)
    names = {"query_id": data.queries[data.query_of], "doc_id": data.documents}
    pq.write_table(pa.table(names | {"score": np.arange(6.0)}), tmp_path / "scores.parquet")
    assert read_scores(tmp_path / "scores.parquet", data).tolist() == [0, 1, 2, 3, 4, 5]
    pq.write_table(pa.table(names | {"score": np.arange(6.0)}).slice(0, 5), tmp_path / "some.parquet")
    with pytest.raises(EluteError, match="no score for query 'q1', document 'd2'"):
        read_scores(tmp_path / "some.parquet", data)
    assert build_policy("scores", data, np.arange(6.0)).scores(data).tolist() == [0, 1, 2, 3, 4, 5]
    assert isinstance(build_policy("scores", data, np.arange(6.0), temperature=1.0), Scored)


def test_the_command_line_knows_every_user_and_policy():
    assert tuple(USERS) == KNOWN_USERS
    assert tuple(POLICIES) == KNOWN_POLICIES
