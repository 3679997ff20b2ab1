"""The embedded engine: a shared hash must not silently merge two items; connectivity stops when it is settled."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import elute
from elute.engines.duckdb import keyed_rows
from elute.engines.id_keys import HashedIds, IdHash, KeyRoom


@pytest.fixture
def weak_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys of two bits for items and queries; factors keep the real hash."""
    strong = IdHash._hash

    def weak(
        self: IdHash, columns: Sequence[pa.Array], outer: int, placed: int, room: KeyRoom | None = None
    ) -> HashedIds:
        return HashedIds(*(hashes % np.uint64(4) for hashes in strong(self, columns, outer, placed)))

    monkeypatch.setattr(IdHash, "_hash", weak)


ISOLATED = pa.table(
    {
        "query_id": [f"q{i}" for i in range(40)],
        "doc_id": [f"d{i}" for i in range(40)],
        "position": list(range(40)),
        "click": [0] * 40,
    }
)


@pytest.mark.usefixtures("weak_hash")
def test_exact_resolves_what_a_weak_hash_merges() -> None:
    wrong = elute.check(elute.read_log(ISOLATED))
    assert wrong.counts.n_items < 40  # the weak hash does collide, so the rest of the test means something
    assert wrong.components < 40
    right = elute.check(elute.read_log(ISOLATED, exact=True))
    assert (right.components, right.counts.n_items, right.to_dict()["queries"]) == (40, 40, 40)
    assert right.counts.collision_bound == 0
    assert np.array_equal(right.log.connect(), np.arange(40))


@pytest.mark.usefixtures("weak_hash")
def test_a_collision_is_noticed_when_names_are_read() -> None:
    with pytest.raises(elute.EluteError, match=r"share a 64-bit hash.*`exact=True`"):
        _ = elute.read_log(ISOLATED).counts().items


def test_the_bound_is_the_birthday_bound(chain: pa.Table) -> None:
    assert elute.check(elute.read_log(chain)).to_dict()["collision_bound"] == pytest.approx(4 * 3 / 2**65)


def test_the_hash_behaves_as_the_bound_assumes() -> None:
    """Truncated to 32 bits, hashes of a million look-alike items collide as often as random ones would:
    n(n − 1) / 2³³ ≈ 116 on average, 4 standard deviations either way."""
    ids = np.arange(1_000_000)
    log = pa.table(
        {"query_id": [f"q{i // 10:07d}" for i in ids], "doc_id": [f"d{i % 1000:09d}{i // 1000}" for i in ids]}
    )
    hashes = IdHash().hash_ids([log[name].combine_chunks() for name in log.column_names]).keys
    expected = len(ids) * (len(ids) - 1) / 2**33
    for half in (hashes >> np.uint64(32), hashes & np.uint64(2**32 - 1)):
        collisions = len(ids) - len(np.unique(half))
        assert abs(collisions - expected) < 4 * expected**0.5


def test_exact_and_hashed_agree(chain: pa.Table) -> None:
    hashed, exact = (elute.check(elute.read_log(chain, exact=e), explore=True).to_dict() for e in (False, True))
    for field in set(hashed) - {"collision_bound"}:
        assert hashed[field] == exact[field], field


def test_factors_that_share_a_hash_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """The survey compares factors by value: on a collision the engine numbers ids instead of hashing them."""
    real = pc.count_distinct
    calls = []

    def collide_once(column: pa.ChunkedArray) -> pa.Scalar:
        calls.append(column)
        return pa.scalar(0) if len(calls) == 1 else real(column)

    monkeypatch.setattr(pc, "count_distinct", collide_once)
    check = elute.check(elute.read_log(ISOLATED))
    assert check.components == 40
    assert check.counts.collision_bound == 0


def test_connect_agrees_with_counts_and_stops_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once all factors are one component the rest of the log is not read."""
    monkeypatch.setattr(keyed_rows, "BATCH_ROWS", 2048)
    n = 200_000
    log = pa.table({"query_id": [0] * n, "doc_id": np.arange(n) // 2, "position": np.arange(n) % 2, "click": [0] * n})
    opened = elute.read_log(log)
    read: list[int] = []
    assert opened.connect(lambda stage, done, total: read.append(done)).tolist() == [0, 0]
    assert max(read) < n // 2
    assert elute.check(opened).components == 1


def test_the_busiest_query_is_that_of_rows_that_count() -> None:
    """Rows without a document are not read, however often they were shown."""
    table = pa.table(
        {
            "query_id": ["f", "g", "g"],
            "doc_id": [1, None, 3],
            "position": [1, 2, 2],
            "impressions": [612, 863, 176],
            "click": [344, 258, 167],
        }
    )
    found = elute.check(table, impressions="impressions").to_dict()
    assert any("query 'f' accounts for 78%" in warning["message"] for warning in found["warnings"])
