"""Fewer documents for each query."""

from __future__ import annotations

from collections import Counter
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elute.errors import EluteError
from elute.ranking.data import RankingData
from elute.ranking.truncate import keep_stratified, keep_top

sets = st.lists(st.lists(st.integers(0, 4), max_size=15), min_size=1, max_size=6)


def data_of(grades: list[list[int]]) -> RankingData:
    sizes = [len(g) for g in grades]
    n = sum(sizes)
    features = np.arange(n, dtype=np.float32).reshape(-1, 1)
    flat = np.array([grade for query in grades for grade in query], np.int32)
    names = np.array([f"{q}/{i}" for q, size in enumerate(sizes) for i in range(size)], np.str_)
    offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    return RankingData(features, flat, offsets, np.array([f"q{i}" for i in range(len(sizes))]), names)


def by_query(data: RankingData) -> dict[str, list[tuple[str, int, float]]]:
    return {
        str(query): list(
            zip(
                data.documents[start:end].tolist(),
                data.grades[start:end].tolist(),
                data.features[start:end, 0].tolist(),
                strict=True,
            )
        )
        for query, start, end in zip(data.queries, data.offsets[:-1], data.offsets[1:], strict=True)
    }


def test_top_keeps_the_best_in_their_order() -> None:
    data = data_of([[0, 1, 2], [3], [4, 0, 1, 2]])
    kept = keep_top(data, np.array([0.1, 0.9, 0.5, -3.0, 1.0, 2.0, 2.0, 1.5]), 2)
    assert kept.documents.tolist() == ["0/1", "0/2", "1/0", "2/1", "2/2"]
    assert kept.grades.tolist() == [1, 2, 3, 0, 1]
    assert kept.features[:, 0].tolist() == [1, 2, 3, 5, 6]
    assert kept.offsets.tolist() == [0, 2, 3, 5]


@settings(deadline=None)
@given(grades=sets, k=st.integers(1, 12), seed=st.integers(0, 99))
def test_top_is_what_sorting_gives(grades: list[list[int]], k: int, seed: int) -> None:
    data = data_of(grades)
    scores = np.random.default_rng(seed).integers(0, 4, data.n_documents).astype(float)
    kept = by_query(keep_top(data, scores, k))
    whole, start = by_query(data), 0
    for name, documents in whole.items():
        here = scores[start : start + len(documents)]
        best = sorted(sorted(range(len(documents)), key=lambda i: (-here[i], i))[:k])
        assert kept.get(name, []) == [documents[i] for i in best]
        start += len(documents)
    assert set(kept) == {name for name, documents in whole.items() if documents}


@settings(deadline=None)
@given(grades=sets, k=st.integers(1, 12), seed=st.integers(0, 99))
def test_strata_get_their_share_to_within_one(grades: list[list[int]], k: int, seed: int) -> None:
    data = data_of(grades)
    kept = by_query(keep_stratified(data, k, seed))
    whole = by_query(data)
    assert set(kept) == {name for name, documents in whole.items() if len(documents) >= k}
    for name, documents in kept.items():
        assert len(documents) == k
        assert documents == [d for d in whole[name] if d in documents]
        before, after = Counter(d[1] for d in whole[name]), Counter(d[1] for d in documents)
        for grade, count in before.items():
            assert abs(after[grade] - k * count / len(whole[name])) < 1
    again = keep_stratified(data, k, seed)
    assert by_query(again) == kept


def test_documents_of_a_stratum_are_equally_likely() -> None:
    """Eight 0s and four 2s to six: four and two; each subset of the 0s is as likely as any other."""
    data = data_of([[0] * 8 + [2] * 4] * 7000)
    kept = keep_stratified(data, 6, seed=1)
    places = np.array([name.split("/")[1] for name in kept.documents.tolist()], int).reshape(-1, 6)
    assert (places[:, :4] < 8).all()
    assert (places[:, 4:] >= 8).all()
    counts = np.array(list(Counter(map(tuple, places[:, :4].tolist())).values()))
    mean = 7000 / comb(8, 4)
    assert len(counts) == comb(8, 4)
    assert ((counts - mean) ** 2 / mean).sum() < 69 + 5 * np.sqrt(2 * 69)


def test_what_cannot_be_done_is_named() -> None:
    data = data_of([[0, 1]])
    for step in (lambda: keep_top(data, np.zeros(2), 0), lambda: keep_stratified(data, 0, 1)):
        with pytest.raises(EluteError, match="cannot keep 0 documents"):
            step()
    with pytest.raises(EluteError, match="2 documents, but scores of shape"):
        keep_top(data, np.zeros(3), 1)
