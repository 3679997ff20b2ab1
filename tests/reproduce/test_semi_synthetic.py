"""The semi-synthetic reproductions: every step against a plain version, and small runs of each study."""

from __future__ import annotations

from itertools import combinations
from types import ModuleType

import networkx as nx
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elute.checking.check import check
from elute.errors import EluteError
from elute.estimate.models.dla import DLA
from elute.estimate.models.naive import Naive
from elute.log import read_log
from elute.ranking.data import RankingData
from elute.repair.merge_plan import plan_merges
from elute.simulation.grades import PROPENSITIES
from elute.simulation.policies.ranking_svm import RankingSVM
from elute_reproduce.identifiability import figure4cd, figure7, twins
from elute_reproduce.identifiability import semi_synthetic as semi
from elute_reproduce.identifiability import table2 as identifiability_table2
from elute_reproduce.identifiability import table4 as identifiability_table4
from elute_reproduce.page import to_markdown
from elute_reproduce.study import Study

STUDIES = (identifiability_table2, identifiability_table4, figure4cd, figure7)


def _lines(rng, queries, documents=12, features=5, values=4):
    """Documents with few values a feature, so that feature vectors repeat; grades follow from the first feature."""
    for query in range(queries):
        for _ in range(documents):
            x = rng.integers(values, size=features)
            yield f"{int(x[0]) % 3} qid:{query} " + " ".join(f"{j + 1}:{v}" for j, v in enumerate(x))


def _write(folder, seed=0, **shape):
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    for split, queries in (("train", 12), ("test", 5)):
        (folder / f"{split}.txt").write_text("\n".join(_lines(rng, queries, **shape)) + "\n", encoding="utf-8")
    return folder


@pytest.fixture
def small(tmp_path):
    """Vectors that repeat."""
    return semi.load_datasets(_write(tmp_path / "small"))[0]


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(semi, "TREES", 2)
    monkeypatch.setattr(semi, "CONTEXTS", 30)
    monkeypatch.setattr(twins, "SHAPES", {})


# Data


def test_a_folder_is_one_set_and_folders_below_are_several(tmp_path):
    for name in ("b", "a"):
        _write(tmp_path / name)
    (tmp_path / "other").mkdir()
    assert [dataset.name for dataset in semi.load_datasets(tmp_path)] == ["a", "b"]
    assert [dataset.name for dataset in semi.load_datasets(tmp_path / "b")] == ["b"]


def test_without_data_the_next_step_is_named(tmp_path):
    with pytest.raises(EluteError, match="pass `data=`, "):
        semi.load_datasets(None)
    with pytest.raises(EluteError, match=r"expected train\.txt"):
        semi.load_datasets(tmp_path)


@pytest.mark.parametrize(
    ("folder", "file", "known"),
    [
        ("Yahoo-C14", "train.txt", semi.YAHOO),
        ("ltrc", "set1.train.txt", semi.YAHOO),
        ("istella-s", "train.txt", semi.ISTELLA),
        ("dataset1", "train.txt", None),
        ("set10", "train.txt", None),
        ("mq2008", "train.txt", None),
    ],
)
def test_the_papers_sets_are_known_by_name(tmp_path, folder, file, known):
    written = _write(tmp_path / folder)
    (written / "train.txt").rename(written / file)
    found = semi.load_datasets(written)[0]
    assert (found.name, found.known) == (folder, known)


def test_splits_agree_in_width_and_lose_queries_that_cannot_be_ranked(tmp_path):
    (tmp_path / "train.txt").write_text("1 qid:1 1:1\n0 qid:1 1:2\n1 qid:2 1:1\n0 qid:3 1:1\n0 qid:3 1:2\n")
    (tmp_path / "test.txt").write_text("0 qid:1 3:1\n2 qid:1 1:2\n")
    found = semi.load_datasets(tmp_path)[0]
    assert found.train.queries.tolist() == ["1"]
    assert found.train.features.shape[1] == found.test.features.shape[1] == 3
    assert found.test.features.tolist() == [[0, 0, 1], [2, 0, 0]]


# Steps


def test_pages_are_the_first_ten_in_the_order_of_the_weak_ranker(small):
    pages = semi.rank_weakly(small.train, seed=3)
    scores = RankingSVM(seed=3).fit(small.train).scores(small.train)
    for query in range(small.train.n_queries):
        shown = pages.row[pages.lists[query] : pages.lists[query + 1]]
        own = np.arange(small.train.offsets[query], small.train.offsets[query + 1])
        assert set(shown) <= set(own)
        assert scores[shown].tolist() == sorted(scores[own], reverse=True)[:10]
        assert pages.position[pages.lists[query] : pages.lists[query + 1]].tolist() == list(range(10))


@settings(deadline=None)
@given(st.lists(st.lists(st.sampled_from([0.0, -0.0, 1.0, 2.5, -1.0]), min_size=3, max_size=3), min_size=1))
def test_items_are_equal_feature_rows(rows):
    features = np.array(rows, np.float32)
    for columns in (None, np.array([2, 0]), np.array([1])):
        chosen = features if columns is None else features[:, columns]
        item = semi.identify_items(features, columns)
        same = (chosen[:, None] == chosen[None]).all(axis=2)
        assert ((item[:, None] == item[None]) == same).all()
        assert set(item.tolist()) == set(range(item.max() + 1))


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 12)), min_size=1, max_size=40))
def test_components_and_edges_are_those_of_the_plain_graph(pairs):
    item, factor = np.array(pairs).T
    graph = nx.Graph()
    graph.add_nodes_from(factor.tolist())
    for x in set(item.tolist()):
        graph.add_edges_from(combinations(sorted({t for i, t in pairs if i == x}), 2))
    assert semi.count_components(np.unique(item, return_inverse=True)[1], factor) == nx.number_connected_components(
        graph
    )
    table = pa.table({"item": item, "position": factor, "click": np.zeros(len(pairs), int)})
    with read_log(table, item="item") as log:
        assert identifiability_table4.count_edges(log.counts()) == graph.number_of_edges()


def test_a_world_is_what_appendix_c2_says(small):
    pages = semi.rank_weakly(small.train, 0)
    world = semi.draw(small.train, pages, 7, np.random.default_rng(0))
    assert set(world.context.tolist()) == set(range(7))
    again = np.random.default_rng(0)
    w = again.uniform(-1, 1, 10)
    vectors = again.normal(0, 0.35, (7, 10))
    for i in range(0, len(world.item), 17):
        power = max(float(w @ vectors[world.context[i]]) + 1, 0)
        assert world.propensity[i] == pytest.approx(PROPENSITIES[world.position[i]] ** power)
        # Here the grade follows from the features, so that it belongs to the item: Eq. C.1 with top grade 2.
        assert world.relevance[world.item[i]] == pytest.approx(0.1 + 0.9 * (2 ** world.grade[i] - 1) / 3)
        assert world.features[world.item[i]].tolist() == small.train.features[pages.row[i]].tolist()


def test_an_items_relevance_is_the_mean_of_its_documents():
    features = np.array([[1, 5], [1, 6], [2, 5]], np.float32)
    names = np.array(["a", "b", "c"])
    train = RankingData(features, np.array([0, 2, 1], np.int32), np.array([0, 3]), np.array(["q"]), names)
    pages = semi.RankedPages(np.array([2, 0, 1]), np.arange(3), np.array([0, 3]))
    world = semi.draw(train, pages, 1, np.random.default_rng(0), np.array([0]))
    assert world.item[1] == world.item[2] != world.item[0]
    assert world.relevance[world.item].tolist() == pytest.approx([0.4, 0.55, 0.55])
    assert world.features[world.item].tolist() == [[2], [1], [1]]


def test_merging_connects_and_costs_context_and_ten_times_position(small):
    pages = semi.rank_weakly(small.train, 0)
    world = semi.draw(small.train, pages, 30, np.random.default_rng(1))
    with world.draw_log(np.random.default_rng(2)) as log:
        verdict = check(log)
        factor = world.position * 30 + world.context
        assert verdict.components == semi.count_components(world.item, factor) > 1
        plan = plan_merges(verdict, vectors=world.bias_features)
        assert check(log, plan=plan).recoverable
    for pair in plan.pairs:
        apart = world.vectors[pair.a["context"]] - world.vectors[pair.b["context"]]
        steps = 10 * (pair.a["position"] - pair.b["position"])
        assert pair.cost == pytest.approx(float(np.sqrt(apart @ apart + steps**2)))


# Metrics


def _two_documents() -> semi.SemiSyntheticWorld:
    """One list: a poor document on top of a good one, seen three times as often."""
    return semi.SemiSyntheticWorld(
        item=np.array([0, 1]),
        position=np.array([0, 1]),
        context=np.array([0, 0]),
        grade=np.array([0, 1]),
        propensity=np.array([0.9, 0.3]),
        lists=np.array([0, 2]),
        relevance=np.array([0.2, 0.3]),
        features=np.zeros((2, 1), np.float32),
        vectors=np.zeros((1, 10)),
    )


def test_training_scores_by_hand():
    world = _two_documents()
    with world.draw_log(np.random.default_rng(0)) as log:
        found = semi.score_training(world, log.counts(), Naive().fit(log, allow_unidentified=True))
    # Click rates .18 and .09 put them the wrong way round.
    assert found["MCC"] == pytest.approx(-1)
    assert found["nDCG@5"] == found["nDCG@10"] == pytest.approx(1 / np.log2(3))
    assert found["click MSE"] == 0


def test_a_connected_world_is_recovered(small):
    pages = semi.rank_weakly(small.train, 0)
    world = semi.draw(small.train, pages, 1, np.random.default_rng(0), np.array([0]))
    with world.draw_log(np.random.default_rng(1)) as log:
        assert check(log).recoverable
        found = semi.score_training(world, log.counts(), DLA(start=1.0).fit(log))
        biased = semi.score_training(world, log.counts(), Naive().fit(log))
    assert found["MCC"] > 0.999
    assert found["nDCG@10"] == pytest.approx(1)
    assert found["click MSE"] < 1e-6 < biased["click MSE"]


def test_trees_learn_a_relevance_and_rank_whole_lists_by_it():
    rng = np.random.default_rng(0)
    features = rng.random((1_000, 2)).astype(np.float32)
    relevance = np.where(features[:, 0] > 0.5, 0.9, 0.1)
    rows = rng.random((30, 2)).astype(np.float32)
    grades = (rows[:, 0] > 0.5).astype(np.int32)
    test = RankingData(rows, grades, np.array([0, 15, 30]), np.array(["a", "b"]), np.arange(30).astype(str))
    assert semi.score_held_out(features, relevance, test)["test nDCG@10"] == pytest.approx(1)
    assert semi.score_held_out(features, 1 - relevance, test)["test nDCG@10"] < 0.7


# Studies


@pytest.mark.parametrize("module", STUDIES, ids=lambda module: module.__name__.rsplit(".", 1)[1])
@pytest.mark.parametrize("sparse", [False, True], ids=["vectors repeat", "vectors do not"])
def test_each_study_runs_and_fits_its_page(tmp_path, quick, module: ModuleType, sparse: bool):
    shape = {"features": 12, "values": 50} if sparse else {"features": 5, "values": 3}
    result = module.run(Study(_write(tmp_path / "tiny", **shape), seeds=2))
    assert result.name == "-".join(module.__name__.split(".")[1:])
    assert result.claims
    assert all(entry.published is None for entry in result.compared if entry.measured)
    alone = {entry.where["data"] for entry in result.compared if not entry.measured}
    tables = (identifiability_table2, identifiability_table4)
    assert alone == ({"Yahoo!, published", "Istella-S, published"} if module in tables else set())
    assert all(np.isfinite(entry.measured).all() for entry in result.compared)
    assert not any("|" in claim.sentence + claim.evidence for claim in result.claims)
    # Sets in which vectors do not repeat are also looked at with few features.
    assert ("3 features" in to_markdown(result)) == (sparse and module is not identifiability_table4)


@pytest.mark.parametrize("folder", ["yahoo", "istella"])
def test_published_values_stand_beside_the_papers_sets(tmp_path, quick, folder):
    study = Study(_write(tmp_path / folder, features=5, values=3), seeds=1)
    table4 = {e.where["statistic"]: e for e in identifiability_table4.run(study).compared if e.measured}
    components = table4["components"].published
    assert components is not None and components.mean == {"yahoo": 28_958, "istella": 47_976}[folder]
    table2 = [entry for entry in identifiability_table2.run(study).compared if entry.measured]
    assert {entry.where["metric"] for entry in table2 if entry.published is None} == {"click MSE"}
    published = {(entry.where["method"], entry.where["metric"]): entry.published for entry in table2}
    best = published["DLA, random start + node merging", "test nDCG@10"]
    assert best is not None and (best.mean, best.sd) == {"yahoo": (0.746, 0.001), "istella": (0.686, 0.001)}[folder]
    # Beside what is claimed of any set: how many contexts disconnect it, how large a sample must be.
    for module, said in (
        (figure4cd, "disconnect it"),
        (figure7, "sure to be connected"),
    ):
        assert said in module.run(study).claims[-1].sentence


def test_contexts_and_features_cost_identifiability_where_vectors_repeat(tmp_path, quick):
    study = Study(_write(tmp_path / "tiny", features=4, values=2), seeds=3)
    contexts = figure4cd.run(study)
    assert [claim.holds for claim in contexts.claims] == [True, True], [claim.evidence for claim in contexts.claims]
    size = figure7.run(study).claims[0]
    assert size.holds, size.evidence


def test_on_real_documents_no_context_is_needed_to_be_unidentifiable(data, quick):
    found = {dataset.name: dataset for dataset in semi.load_datasets(data)}
    assert {"mq2008", "mslr5k"} <= set(found)
    for name in ("mq2008", "mslr5k"):
        train = found[name].train
        assert not semi.is_connected_by_position(train, semi.rank_weakly(train, 0))
