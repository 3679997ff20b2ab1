"""What a log says of a plan's links: against closed forms, a plain Laplacian, and clicks copied within clusters."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elute.cells.counts import Clustered, Counts, Membership
from elute.known import covariance
from elute.repair.looks.cells import SeenCells, look_up, part_items
from elute.repair.looks.left import SwapEnds, find_fewest, find_left
from elute.repair.looks.links import measure_links


def make_counts(shown: Any, clicked: Any, query: list[int] | None = None) -> Counts:
    """From matrices of impressions and clicks, item by factor; every item was shown."""
    shown, clicked = np.asarray(shown), np.asarray(clicked)
    item, factor = np.nonzero(shown)
    members = None
    if query is not None:
        codes = np.array(query, np.int32)
        members = Membership(int(codes.max()) + 1, codes, np.arange(len(shown), dtype=np.int32), shown.sum(axis=1))
    return Counts(
        offsets=np.concatenate(([0], np.cumsum((shown > 0).sum(axis=1)))).astype(np.int64),
        factor=factor.astype(np.int32),
        impressions=shown[item, factor].astype(np.uint32),
        clicks=clicked[item, factor].astype(np.uint32),
        factors=pa.table({"position": np.arange(1, shown.shape[1] + 1)}),
        membership=members,
        collision_bound=0.0,
        read_items=lambda: pa.table({"doc_id": np.arange(len(shown))}),
    )


def measure(counts: Counts, pairs: list[tuple[int, int]], **options: Any) -> Any:
    source, target = (np.array(end) for end in zip(*pairs, strict=True))
    return measure_links(counts, source, target, np.array([0]), **options)


def test_one_item_links_two_factors_by_its_click_rates() -> None:
    """Items with many clicks are hardly shrunk, so that Proposition 1 is the variance."""
    n, c = np.array([[4_000, 9_000], [3_000, 0], [0, 5_000]]), np.array([[1_600, 900], [900, 0], [0, 300]])
    found = measure(make_counts(n, c), [(0, 1), (1, 0)])
    p = c[0] / n[0]
    assert found.log_ratio == pytest.approx(np.log(p[0] / p[1]) * np.array([1, -1]), abs=1e-4)
    assert found.variance == pytest.approx(((1 / p - 1) / n[0]).sum(), rel=0.01)
    assert found.tied.all()
    assert found.effect.tolist() == [1.0, 1.0]


def test_many_paths_conduct_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    """Against the pseudo-inverse of a Laplacian that is summed up item by item; by conjugate gradients too."""
    rng = np.random.default_rng(0)
    o, r = np.array([1.0, 0.6, 0.4, 0.3, 0.2]), rng.uniform(0.2, 0.8, 12)
    n = rng.integers(800, 3_000, (12, 5)) * (rng.random((12, 5)) < 0.5)
    n[np.arange(12), np.arange(12) % 5] = 1_000
    n[0] = 2_000
    c = rng.binomial(n, r[:, None] * o)
    pairs = [(0, 1), (2, 4), (4, 1)]
    w = n * (r[:, None] * o) / (1 - r[:, None] * o)
    plain = sum(np.diag(row) - np.outer(row, row) / row.sum() for row in w)
    inverse = np.linalg.pinv(plain)
    expected = [inverse[s, s] + inverse[t, t] - 2 * inverse[s, t] for s, t in pairs]
    found = measure(make_counts(n, c), pairs)
    assert found.variance == pytest.approx(expected, rel=0.08)
    assert np.abs(found.log_ratio - [np.log(o[s] / o[t]) for s, t in pairs]).max() < 4 * max(expected) ** 0.5
    monkeypatch.setattr(covariance, "DENSE", 0)
    assert measure(make_counts(n, c), pairs).variance == pytest.approx(found.variance, rel=1e-6)


@pytest.mark.parametrize(
    ("n", "c"),
    [
        ([[50, 0], [0, 50]], [[9, 0], [0, 5]]),  # no item under both
        ([[50, 40], [0, 50]], [[9, 0], [0, 5]]),  # shown, not yet clicked
        ([[50, 40], [0, 50]], [[9, 0], [0, 0]]),  # a factor without a click
        ([[50, 40], [0, 50]], [[0, 0], [0, 0]]),  # a log without a click
        ([[1, 1], [1, 0]], [[0, 1], [1, 0]]),  # one impression each
    ],
)
def test_links_that_no_clicks_tie_have_no_estimate(n: Any, c: Any) -> None:
    found = measure(make_counts(n, c), [(0, 1)])
    assert not found.tied[0]
    assert np.isnan(found.log_ratio[0])
    assert found.variance[0] == np.inf


def test_parts_beside_the_link_do_not_matter() -> None:
    """A part of the log that is tied to nothing, and a factor without a click, leave the link as it is."""
    n, c = np.array([[400, 900, 0, 0, 0], [0, 0, 80, 70, 9]]), np.array([[160, 90, 0, 0, 0], [0, 0, 9, 5, 0]])
    whole = measure(make_counts(n, c), [(0, 1), (2, 3), (0, 2), (2, 4)])
    alone = measure(make_counts(n[:1, :2], c[:1, :2]), [(0, 1)])
    assert whole.tied.tolist() == [True, True, False, False]
    assert whole.log_ratio[0] == pytest.approx(alone.log_ratio[0])
    assert whole.variance[0] == pytest.approx(alone.variance[0], rel=0.05)


@pytest.mark.parametrize("copies", [1, 4])
def test_clicks_copied_within_clusters_count_once(copies: int) -> None:
    """If every click comes `copies` times in one cluster, the variance is so many times that of independent ones."""
    rng = np.random.default_rng(3)
    n, p = np.array([3_000, 5_000]), np.array([0.4, 0.15])
    click = np.concatenate([rng.random(m) < q for m, q in zip(n, p, strict=True)]).repeat(copies)
    factor = np.repeat([0, 1], n * copies)
    cluster = np.arange(n.sum()).repeat(copies)
    rows = Clustered(cluster, np.zeros(len(click), int), factor, np.ones(len(click), int), click.astype(int))
    counts = make_counts([n * copies], [np.bincount(factor, click)])
    found = measure(counts, [(0, 1)], clusters=[("session", lambda: rows)])
    assert found.effect[0] == pytest.approx(copies, rel=0.06)
    once = measure(make_counts([n], [np.bincount(factor, click) / copies]), [(0, 1)])
    assert found.variance[0] == pytest.approx(once.variance[0], rel=0.06)
    assert found.clusters == ("session",)


def test_what_queries_share_is_taken_from_the_other_items() -> None:
    """A link through one item is one query. The other items, whose clicks move with their query, tell how much that
    matters; without tastes it matters little."""
    effects = []
    for spread in (0.0, 0.7):
        rng = np.random.default_rng(5)
        query = np.repeat(np.arange(150), 3)
        o = np.array([1.0, 0.5, 0.3]) * np.exp(spread * rng.normal(size=(150, 3)) - spread**2 / 2)
        n = np.full((450, 3), 60)
        n[0] = 2_000
        c = rng.binomial(n, np.minimum(rng.uniform(0.1, 0.4, 450)[:, None] * o[query], 1))
        found = measure(make_counts(n, c, query.tolist()), [(0, 2)], query="query_id")
        effects.append(found.effect[0])
        assert found.clusters == ("query_id",)
    assert effects[0] < 1.5 < 3 < effects[1]


SHOWN = st.floats(-1.0, 9.0).map(lambda power: float(np.floor(np.exp(power))))
ODDS = st.floats(-4.0, 6.0).map(lambda power: float(np.exp(power)))


@given(q_s=ODDS, q_t=ODDS, n_s=SHOWN, n_t=SHOWN, wanted=st.floats(1e-3, 0.05))
def test_the_fewest_impressions(q_s: float, q_t: float, n_s: float, n_t: float, wanted: float) -> None:
    """Against a search over the impressions at one end."""
    arrays = (np.array([value]) for value in (q_s, q_t, n_s, n_t, wanted))
    more_s, more_t = (float(need[0]) - n for need, n in zip(find_fewest(*arrays), (n_s, n_t), strict=True))
    assert min(more_s, more_t) >= 0
    if n_s and n_t and q_s / n_s + q_t / n_t <= wanted:
        assert more_s + more_t == pytest.approx(0.0)
        return
    assert q_s / (n_s + more_s) + q_t / (n_t + more_t) == pytest.approx(wanted, rel=1e-6)
    tried = np.maximum(n_s, q_s / wanted * (1 + np.geomspace(1e-7, 1e7, 40_000)))
    for _ in range(2):  # and once more around the best
        totals = tried - n_s + np.maximum(q_t / (wanted - q_s / tried) - n_t, 0.0)
        best = int(totals.argmin())
        tried = np.linspace(tried[max(best - 1, 0)], tried[min(best + 1, len(tried) - 1)], 10_000)
    assert totals.min() * (1 - 2e-3) - 1e-6 <= more_s + more_t <= 2 * totals.min() + 1e-6


def left(n: Any, c: Any, variance: float, goal: float = 0.004, shared: int = 1) -> Any:
    source, target = (SeenCells(np.array([n[end]]), np.array([c[end]])) for end in (0, 1))
    ends = SwapEnds(source, target, np.array([0.5]), np.array([0.1]))
    return [int(part[0]) for part in find_left(ends, np.array([variance]), goal, np.array([float(shared)]))]


def test_what_is_left_of_a_swap() -> None:
    n, c = (100_000, 500), (50_000, 50)
    variance = 1 / 100_000 + 9 / 500
    target, source = left(n, c, variance)
    assert source == 0
    assert 9 / (500 + target) + 1 / 100_000 == pytest.approx(0.004, rel=0.02)
    assert left(n, c, 0.0039) == [0, 0]
    assert left(n, c, variance, shared=2)[0] < target
    assert left((100_000, 0), (50_000, 0), np.inf)[0] == pytest.approx(9 / 0.004, rel=0.02)
    both = left((0, 0), (0, 0), np.inf)
    assert 1 / both[1] + 9 / both[0] == pytest.approx(0.004, rel=0.02)


def test_cells_are_looked_up_by_item_and_factor() -> None:
    counts = make_counts([[4, 0, 2], [0, 5, 0]], [[1, 0, 2], [0, 3, 0]])
    found = look_up(counts, np.array([0, 0, 1, -1, 1]), np.array([2, 1, 1, 0, -1]))
    assert found.impressions.tolist() == [2, 0, 5, 0, 0]
    assert found.clicks.tolist() == [2, 0, 3, 0, 0]


def test_a_planned_item_is_another_item_since_the_plan() -> None:
    """Sums stay what they are, other items too; the later item has what came since, by names of factors."""
    counts = make_counts([[9, 4, 2], [0, 5, 0], [3, 0, 0]], [[4, 1, 2], [0, 3, 0], [1, 0, 0]], [0, 0, 1])
    since = make_counts([[1, 0, 2], [0, 1, 0]], [[1, 0, 2], [0, 0, 0]])
    since = replace(since, factors=pa.table({"position": [3, 2, 1]}))
    parted = part_items(counts, since, np.array([0, 2]), np.array([0, -1]))
    owner = np.repeat(np.arange(parted.counts.n_items), np.diff(parted.counts.offsets))
    shown, clicked = np.zeros((4, 3), int), np.zeros((4, 3), int)
    shown[owner, parted.counts.factor] = parted.counts.impressions
    clicked[owner, parted.counts.factor] = parted.counts.clicks
    assert shown.tolist() == [[7, 4, 1], [0, 5, 0], [3, 0, 0], [2, 0, 1]]
    assert clicked.tolist() == [[2, 1, 1], [0, 3, 0], [1, 0, 0], [2, 0, 1]]
    assert (parted.counts.impressions > 0).all()
    assert parted.again.tolist() == [3, -1]
    assert parted.counts.membership is not None
    assert parted.counts.membership.query.tolist() == [0, 0, 1, 0]


def test_an_item_that_was_never_shown_before_the_plan_is_there_once() -> None:
    counts = make_counts([[2, 3], [5, 0]], [[1, 1], [2, 0]])
    parted = part_items(counts, make_counts([[2, 3]], [[1, 1]]), np.array([0]), np.array([0]))
    assert parted.counts.n_items == 2
    assert parted.again.tolist() == [1]
    assert parted.code.tolist() == [-1, 0]


def test_clusters_of_a_planned_item_are_those_since_the_plan() -> None:
    counts, since = make_counts([[2, 1], [1, 0]], [[1, 1], [0, 0]]), make_counts([[1, 1]], [[0, 1]])
    parted = part_items(counts, since, np.array([0]), np.array([0]))
    of_all = Clustered(*(np.array(part) for part in ([0, 0, 1, 1], [0, 1, 0, 0], [0, 0, 0, 1], [1] * 4, [1, 0, 0, 1])))
    later = Clustered(*(np.array(part) for part in ([0, 0], [0, 0], [0, 1], [1, 1], [0, 1])))
    rows = parted.part_clusters(of_all, later)
    assert np.stack(rows[:5]).T.tolist() == [[0, 1, 0, 1, 0], [2, 2, 0, 1, 0], [2, 2, 1, 1, 1]]


@pytest.mark.parametrize("parting", [False, True])
def test_clicks_that_picked_an_item_do_not_flatter_its_link(parting: bool) -> None:
    """Of 300 items alike the best clicked is planned; since then it is clicked as all are."""
    rng, off = np.random.default_rng(8), []
    for _ in range(30):
        old = np.zeros((300, 2), int)
        old[:, 0] = rng.binomial(2_000, 0.2, 300)
        best, new = old[:, 0].argmax(), rng.binomial(2_000, [0.2, 0.1])
        n, c = np.zeros((300, 2), int), old.copy()
        n[:, 0] = 2_000
        n[best] += 2_000
        c[best] += new
        counts = make_counts(n, c)
        if parting:
            parted = part_items(counts, make_counts([[2_000] * 2], [new]), np.array([best]), np.array([0]))
            counts = parted.counts
        found = measure(counts, [(0, 1)])
        off.append((found.log_ratio[0] - np.log(2)) / found.variance[0] ** 0.5)
    assert abs(np.mean(off)) < 0.6 if parting else np.mean(off) > 0.8
