"""Counting on all cores against a dictionary: any batches, any number of threads, partitions and splits."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elute._util.threads import use_threads
from elute.cells.roles import Roles
from elute.engines import counter as counting
from elute.engines.counted import CountedCells
from elute.engines.counter import Counter, RowBatch
from elute.errors import EluteError
from elute.kernels import rows as layouts

WITHIN = Roles(("query", "doc"), ("position",), "query", "click", None, None)
ACROSS = Roles(("doc",), ("position",), "query", "click", None, None)
ALONE = Roles(("doc",), ("position",), None, "click", None, None)

row = st.tuples(st.integers(0, 5), st.integers(0, 6), st.integers(0, 4), st.integers(0, 1))
batches = st.lists(st.lists(row, max_size=25), min_size=1, max_size=6)


@pytest.fixture(autouse=True)
def _threads() -> Iterator[None]:
    yield
    use_threads(None)


def _key(*values: int) -> int:
    return hash((*values, 17)) & (2**64 - 1)


def _count(
    roles: Roles, rows: list[list[tuple[int, ...]]], factors: int, weight: int | None, **options: Any
) -> CountedCells:
    total = sum(map(len, rows))
    shown = total * (weight or 1)
    counter = Counter(roles, factors, max(total, 1), shown, **options)
    for batch in rows:
        query, doc, factor, click = np.array(batch, np.int64).reshape(-1, 4).T
        pairs = list(zip(query.tolist(), doc.tolist(), strict=True))
        item = [_key(q, d) if roles.items_within_queries else _key(d) for q, d in pairs]
        counter.add(
            RowBatch(
                np.array(item, np.uint64),
                factor.astype(np.int32),
                None if roles.query is None else np.array([_key(q) for q in query], np.uint64),
                click.astype(np.uint8) if weight is None else click * weight,
                None if weight is None else np.full(len(batch), weight, np.int64),
            )
        )
    return counter.finish()


def _compare(roles: Roles, rows: list[list[tuple[int, ...]]], found: CountedCells, weight: int = 1) -> None:
    shown: Tally[tuple[int, int]] = Tally()
    clicked: Tally[tuple[int, int]] = Tally()
    members: Tally[tuple[int, int]] = Tally()
    queries = set()
    for query, doc, factor, click in (one for batch in rows for one in batch):
        item = _key(query, doc) if roles.items_within_queries else _key(doc)
        shown[item, factor] += weight
        clicked[item, factor] += click * weight
        members[item, _key(query)] += weight
        queries.add(query)
    item_of = found.items[np.repeat(np.arange(len(found.items)), np.diff(found.offsets))]
    cells = list(zip(item_of.tolist(), found.factor.tolist(), strict=True))
    assert dict(zip(cells, found.impressions.tolist(), strict=True)) == shown
    assert dict(zip(cells, found.clicks.tolist(), strict=True)) == clicked
    assert len(set(found.items.tolist())) == len(found.items)
    for begin, end in zip(found.offsets[:-1], found.offsets[1:], strict=True):
        assert (np.diff(found.factor[begin:end]) > 0).all()
        assert end > begin
    if roles.query is None:
        assert found.membership is None
        return
    assert found.membership is not None
    assert found.membership.queries == len(queries)
    keys = found.queries[found.membership.query]
    pairs = zip(found.items[found.membership.item].tolist(), keys.tolist(), strict=True)
    assert dict(zip(pairs, found.membership.impressions.tolist(), strict=True)) == members
    assert (np.diff(found.membership.item) >= 0).all()


@settings(deadline=None, max_examples=60)
@given(batches, st.sampled_from([WITHIN, ACROSS, ALONE]), st.sampled_from([1, 2, 3, 7]), st.sampled_from([5, 70_000]))
def test_rows(rows: list[list[tuple[int, ...]]], roles: Roles, threads: int, factors: int) -> None:
    """Small partitions, and splits of them, so that all of it happens."""
    use_threads(threads)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layouts, "ROWS_IN_ONE", 0)
        patch.setattr(layouts, "ROWS_A_PARTITION", 10)
        patch.setattr(counting, "ROWS_A_SPLIT", 7)
        _compare(roles, rows, _count(roles, rows, factors, None))


@settings(deadline=None, max_examples=30)
@given(batches, st.sampled_from([WITHIN, ACROSS, ALONE]), st.sampled_from([1000, 2**33]))
def test_rows_that_are_counts(rows: list[list[tuple[int, ...]]], roles: Roles, weight: int) -> None:
    """Beyond 2³² impressions a count no longer fits in 32 bits."""
    weighted = replace(roles, impressions="shown")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layouts, "ROWS_IN_ONE", 0)
        patch.setattr(layouts, "ROWS_A_PARTITION", 10)
        _compare(weighted, rows, _count(weighted, rows, 5, weight), weight)


@settings(deadline=None, max_examples=40)
@given(batches, st.sampled_from([WITHIN, ALONE]))
def test_components(rows: list[list[tuple[int, ...]]], roles: Roles) -> None:
    total = sum(map(len, rows))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layouts, "ROWS_IN_ONE", 0)
        patch.setattr(layouts, "ROWS_A_PARTITION", 10)
        counter = Counter(ALONE, 5, max(total, 1), total)
        joined = {factor: {factor} for factor in range(5)}
        seen: dict[int, int] = {}
        for batch in rows:
            query, doc, factor, _ = np.array(batch, np.int64).reshape(-1, 4).T
            item = np.array([_key(q, d) for q, d in zip(query, doc, strict=True)], np.uint64)
            counter.add(RowBatch(item, factor.astype(np.int32)))
            for key, one in zip(item.tolist(), factor.tolist(), strict=True):
                both = joined[seen.setdefault(key, one)] | joined[one]
                for member in both:
                    joined[member] = both
        assert counter.connect().tolist() == [min(joined[factor]) for factor in range(5)]


def test_the_number_of_threads_changes_nothing() -> None:
    rng = np.random.default_rng(0)
    rows = [list(zip(*(rng.integers(0, n, 3_000).tolist() for n in (40, 9, 12, 2)), strict=True)) for _ in range(6)]
    found = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layouts, "ROWS_IN_ONE", 0)
        patch.setattr(layouts, "ROWS_A_PARTITION", 500)
        patch.setattr(counting, "ROWS_A_SPLIT", 700)
        for threads in (1, 2, 3, 7):
            use_threads(threads)
            found.append(_count(WITHIN, rows, 12, None, keep_queries=False))
    for other in found[1:]:
        assert other.membership is not None
        assert found[0].membership is not None
        for one, same in zip(found[0][:4], other[:4], strict=True):
            assert (one == same).all()
        assert (found[0].membership.query == other.membership.query).all()


def test_rows_that_nobody_expected() -> None:
    """Rows in places of their own come from threads: no array can grow then."""
    counter = Counter(ALONE, 2, 3, 3)
    batch = RowBatch(np.arange(9, dtype=np.uint64), np.zeros(9, np.int32))
    with pytest.raises(EluteError, match="more rows came"):
        counter.add(batch, (0, 0))
    with pytest.raises(EluteError, match="a new factor"):
        Counter(ALONE, 2, 9, 9).add(batch._replace(factor=np.full(9, -1, np.int32)))
