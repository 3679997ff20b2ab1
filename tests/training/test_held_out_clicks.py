"""Validation by held-out clicks: the measure by hand and in expectation, and rankers that are chosen by it."""

from __future__ import annotations

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
from elute.errors import EluteError
from elute.io.features import Features
from elute.training.held_out import HeldOutClicks, hold_out
from elute.training.pages import TrainingPages
from elute.training.weights import Weighing
from elute.verbs.holdout import split_log

LETOR = "docs/data/letor.txt"
POSITIONS = 12


pytestmark = pytest.mark.usefixtures("quick_compiling")


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("log") / "clicks.parquet"
    elute.simulate(LETOR, path, sessions=400, seed=3)
    return path


def make_held(seed: int, propensity: np.ndarray | None, clicks: np.ndarray | None = None) -> HeldOutClicks:
    """Twenty pages of 1 to 12 of forty documents, four of a query; the only feature is the document's number."""
    rng = np.random.default_rng(seed)
    documents = np.array([rng.choice(4, 1) * 10 + rng.permutation(10) for _ in range(20)], np.int32)
    documents = np.pad(documents, ((0, 0), (0, POSITIONS - 10)), constant_values=-1)
    documents[np.arange(POSITIONS) >= rng.integers(1, 11, 20)[:, None]] = -1
    shown = documents >= 0
    if clicks is None:
        clicks = (rng.random(documents.shape) < 0.4) * shown
        clicks[0, 0] = 1
    factors = pa.table({"position": np.arange(1, POSITIONS + 1)})
    weighing = None if propensity is None else Weighing(factors, propensity, None, "")
    factor = np.where(shown, np.arange(POSITIONS), 0).astype(np.int32)
    key = pa.table({"query_id": np.arange(40) // 10, "doc_id": np.arange(40)})
    features = Features(key, ("number",), np.arange(40, dtype=np.float32)[:, None], "x")
    pages = TrainingPages(documents, (clicks * shown).astype(np.float32), factor, None)
    return hold_out(pages, factors, features, weighing, POSITIONS)


def by_hand(held: HeldOutClicks, scores: np.ndarray, propensity: np.ndarray) -> tuple[list[float], list[float]]:
    """By page: Σ click · 1/propensity · mean discount over the ranks that its ties may have, and Σ click/propensity."""
    totals, weights = [], []
    for first, last in zip(held.offsets[:-1], held.offsets[1:], strict=True):
        own = scores[held.rows[held.document[first:last]]]
        total = weight = 0.0
        for i in range(first, last):
            above, tied = (own > own[i - first]).sum(), (own == own[i - first]).sum()
            ranks = range(above + 1, above + tied + 1)
            discount = np.mean([1 / np.log2(rank + 1) if rank <= 10 else 0.0 for rank in ranks])
            click = float(held.gain[i] > 0)
            total += click * discount / propensity[held.place[i]]
            weight += click / propensity[held.place[i]]
        totals.append(total)
        weights.append(weight)
    return totals, weights


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), kinds=st.sampled_from([2, 5, 40]), scale=st.sampled_from([1.0, 0.01]))
def test_the_measure_is_the_one_by_hand(seed: int, kinds: int, scale: float) -> None:
    """With weights known before, or learnt on the way and on any scale; and with ties."""
    rng = np.random.default_rng(seed)
    propensity, scores = rng.uniform(0.1, 1, POSITIONS), rng.integers(0, kinds, 40).astype(float)

    def score(features: np.ndarray) -> np.ndarray:
        return scores[features[:, 0].astype(int)]

    known, learnt = make_held(seed, propensity), make_held(seed, None)
    totals, weights = map(np.array, by_hand(known, scores, propensity))
    wanted = totals.sum() / weights.sum()
    assert known.compare(score) == pytest.approx(wanted)
    assert learnt.compare(score, (scale * propensity).astype(np.float32)) == pytest.approx(wanted, rel=1e-5)
    found = known.describe(score)
    assert found["dcg@10"]["estimate"] == pytest.approx(wanted)
    off = [sum((totals - wanted * weights)[known.cluster == query]) for query in np.unique(known.cluster)]
    n = len(off)
    assert found["over"] == "queries"
    if n > 1:
        assert found["dcg@10"]["se"] == pytest.approx(np.sqrt(np.sum(np.square(off)) * n / (n - 1)) / weights.sum())
    more = found["dcg@10"]["estimate"] - found["as_shown"]["estimate"]
    assert found["against_shown"]["estimate"] == pytest.approx(more, abs=1e-12)


def test_expected_clicks_give_the_dcg_of_relevance_wherever_documents_were_shown() -> None:
    """P(click) = examination × relevance in place of clicks: weighted rightly, the measure does not know positions, and
    the order by relevance is the best there is; weighted 1 each, the order shown looks better than it is."""
    propensity = 1 / np.arange(1.0, POSITIONS + 1)
    relevance = np.random.default_rng(0).uniform(0.1, 1, 40)
    documents = make_held(1, propensity, np.ones((20, POSITIONS)))
    place = np.zeros((20, POSITIONS))
    lengths = np.diff(documents.offsets)
    for page, (first, length) in enumerate(zip(documents.offsets, lengths, strict=False)):
        rows = documents.rows[documents.document[first : first + length]]
        place[page, :length] = relevance[rows] * propensity[:length]

    def rank(values: np.ndarray) -> Any:
        return lambda features: values[features[:, 0].astype(int)]

    held, plain = make_held(1, propensity, place), make_held(1, np.ones(POSITIONS), place)
    pages = zip(held.offsets[:-1], held.offsets[1:], strict=True)
    lists = [np.sort(relevance[held.rows[held.document[a:b]]])[::-1] for a, b in pages]
    ideal = sum((one / np.log2(np.arange(len(one)) + 2)).sum() for one in lists) / sum(one.sum() for one in lists)
    assert held.compare(rank(relevance)) == pytest.approx(ideal, rel=1e-6)
    found = held.describe(rank(relevance))
    assert found["against_shown"]["estimate"] > 0.02
    assert plain.describe(rank(relevance))["against_shown"]["estimate"] < 0
    assert "1 each" not in found["sentence"]


def test_clicks_whose_factors_are_never_learnt_from_are_left_out() -> None:
    held = make_held(2, None)
    some = held._replace(place=np.where(held.place == 0, 3, held.place))
    assert some.compare(lambda x: x[:, 0], np.ones(4, np.float32)) < 1
    pages = TrainingPages(
        np.array([[0, 1], [1, 0]], np.int32), np.eye(2, dtype=np.float32), np.array([[0, 1]] * 2, np.int32), None
    )
    features = Features(pa.table({"doc_id": [0, 1]}), ("x",), np.array([[1.0], [0.0]], np.float32), "x")
    factors, seen = pa.table({"position": ["1", "2"]}), pa.table({"position": [1]})
    found = hold_out(pages, factors, features, Weighing(seen, np.ones(1), None, ""), 1)
    assert (found.pages, found.clicks, found.unweighted, found.by_query) == (2, 2, 1, False)
    assert "1 left out" in found.describe(lambda x: x[:, 0])["sentence"]
    assert found.compare(lambda x: x[:, 0]) == 1.0
    lone = Weighing(pa.table({"position": [7]}), np.ones(1), None, "")
    with pytest.raises(EluteError, match="no held-out page has a click"):
        hold_out(pages, factors, features, lone, 1)


def test_held_out_pages_are_not_learnt_from_and_choose_the_ranker(log: Path, tmp_path: Path) -> None:
    """As trained on the other part alone; and the best moment is the one that is kept."""
    how: dict[str, Any] = {"learner": "dla", "model": "linear", "steps": 50, "batch": 32}
    found = elute.train(log, LETOR, tmp_path / "held", **how, holdout=0.25, seed=1)
    parts = split_log(elute.read_log(log, session="session_id"), 0.25, "session", "", 1)
    with parts[0] as rest, parts[1]:
        alone = elute.train(rest, LETOR, tmp_path / "alone", **how, seed=1)
    assert (found.pages, found.loss, found.holdout["pages"]) == (alone.pages, alone.loss, 400 - alone.pages)
    for name, array in np.load(tmp_path / "alone" / "ranker.npz").items():
        np.testing.assert_array_equal(array, np.load(tmp_path / "held" / "ranker.npz")[name])
    assert found.history[-1]["click_dcg"] == pytest.approx(found.holdout["dcg@10"]["estimate"], abs=1e-5)
    assert (found.ndcg, found.holdout["chose_ranker"], alone.holdout) == (None, True, None)
    assert elute.Trained.load(tmp_path / "held").to_dict() == json.loads(found.to_json())
    with pytest.raises(EluteError, match="other holdout"):
        elute.train(log, LETOR, tmp_path / "held", **how, holdout=0.25, by="query", seed=1, resume=True)


def test_trees_stop_where_held_out_clicks_are_best(log: Path, tmp_path: Path) -> None:
    pytest.importorskip("lightgbm")
    how: dict[str, Any] = {"learner": "naive", "model": "lightgbm", "steps": 30, "patience": 3}
    found = elute.train(log, LETOR, tmp_path / "trees", **how, holdout=0.3)
    values = [moment["click_dcg"] for moment in found.history]
    best = int(np.argmax(values))
    assert (found.trees, len(values)) == (best + 1, min(best + 4, 30))
    assert found.holdout["dcg@10"]["estimate"] == pytest.approx(values[best])
    assert "1 each, which favours what was shown high" in found.holdout["sentence"]
    graded = elute.train(log, LETOR, tmp_path / "graded", **how, holdout=0.3, validation=LETOR)
    assert (graded.holdout["chose_ranker"], graded.ndcg is not None) == (False, True)


def test_a_position_that_only_held_out_pages_show(tmp_path: Path) -> None:
    """The last hour shows a position that was not there before: its click weighs nothing, and is counted."""
    documents = [("q1", f"d{i}") for i in range(3)]
    features = pa.table(
        {"query_id": [q for q, _ in documents], "doc_id": [d for _, d in documents], "x": [0.0, 1.0, 2.0]}
    )
    pq.write_table(features, tmp_path / "features.parquet")
    rows = [
        {"session_id": page, "query_id": "q1", "doc_id": f"d{(page + i) % 3}", "position": i + 1, "timestamp": page,
         "click": int((page + i) % 3 == 2)}
        for page in range(30)
        for i in range(3 if page >= 27 else 2)
    ]  # fmt: skip
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "log.parquet")
    given: tuple[Any, ...] = (tmp_path / "log.parquet", tmp_path / "features.parquet", tmp_path / "out")
    how: dict[str, Any] = {"model": "linear", "steps": 5, "batch": 8, "holdout": 0.2, "by": "time"}
    found = elute.train(*given, learner="dla", **how)
    assert (found.holdout["unweighted_clicks"], found.positions) == (1, 2)


def test_what_does_not_go_together_is_refused(log: Path, tmp_path: Path) -> None:
    with pytest.raises(EluteError, match="say what `holdout=` holds out"):
        elute.train(log, LETOR, tmp_path / "a", by="query")
    with pytest.raises(EluteError, match="or `holdout=` to validate by clicks"):
        elute.train(log, LETOR, tmp_path / "a", patience=3)
    with pytest.raises(EluteError, match="`holdout=` is 1"):
        elute.train(log, LETOR, tmp_path / "a", holdout=1.0)
