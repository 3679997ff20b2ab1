"""Standard experiments: what they show by enumerating every page, and what a forecast says by a plain inverse."""

from __future__ import annotations

from collections import defaultdict
from itertools import permutations, product

import numpy as np
import pyarrow as pa
import pytest

import elute
from elute.checking.check import check as check_log
from elute.repair.swapping.designs import Name, draw_up
from elute.repair.swapping.expected import expect
from elute.repair.swapping.forecast import Forecast, ShownAnew
from elute.repair.swapping.traffic import Traffic, find_traffic


def enumerate_pages(name: str, places: int, top: int) -> list[tuple[float, tuple[int, ...]]]:
    """Every way to show a page, with its probability: who stands at each place, by where he stood."""
    own = tuple(range(places))
    if name == "top k":
        k = min(top, places)
        orders = list(permutations(own[:k]))
        return [(1 / len(orders), order + own[k:]) for order in orders]
    if name == "RandPair":
        ways = []
        for first in range(places - 1):
            page = list(own)
            page[first], page[first + 1] = page[first + 1], page[first]
            ways.append((1 / (places - 1), tuple(page)))
        return ways
    ways = []
    for begin in (0, 1):
        pairs = list(range(begin, places - 1, 2))
        for swaps in product((False, True), repeat=len(pairs)):
            page = list(own)
            for first, swapped in zip(pairs, swaps, strict=True):
                if swapped:
                    page[first], page[first + 1] = page[first + 1], page[first]
            ways.append((0.5 / 2 ** len(pairs), tuple(page)))
    return ways


@pytest.mark.parametrize("name", ["top k", "FairPairs", "RandPair"])
@pytest.mark.parametrize("places", [2, 3, 5, 6])
def test_what_a_design_shows(name: Name, places: int) -> None:
    """One query, two layouts of 10 and 7 pages: at every place an item of its own."""
    rng = np.random.default_rng(places)
    table = pa.table(
        {
            "query_id": ["q"] * (2 * places),
            "doc_id": [f"d{d}" for d in range(places)] * 2,
            "position": list(range(1, places + 1)) + list(range(places, 0, -1)),
            "n": [10] * places + [7] * places,
            "click": [3] * (2 * places),
        }
    )
    check = elute.check(elute.read_log(table, impressions="n"))
    r, o = rng.uniform(0.1, 0.9, places), rng.uniform(0.2, 1.0, places)
    expected = expect(check, r, o)
    position = check.counts.factors["position"].to_numpy().astype(float)
    kind = np.zeros(places, np.int64)
    design = draw_up(name, find_traffic(check), expected, kind, position, top=4)
    doc = [int(str(d)[1:]) for d in check.counts.items["doc_id"].to_pylist()]

    wanted: defaultdict[tuple[int, int], float] = defaultdict(float)
    moved = before = after = 0.0
    for pages, order in ((10, range(places)), (7, range(places - 1, -1, -1))):
        standing = list(order)
        for chance, page in enumerate_pages(name, places, 4):
            for place, was in enumerate(page):
                if name == "top k" and place >= 4:
                    continue
                wanted[standing[was], place] += pages * chance
                moved += pages * chance * (place != was)
                after += pages * chance * r[doc.index(standing[was])] * o[position.tolist().index(place + 1)]
        for place, d in enumerate(standing):
            if name != "top k" or place < 4:
                before += pages * r[doc.index(d)] * o[position.tolist().index(place + 1)]
    got: defaultdict[tuple[int, int], float] = defaultdict(float)
    for x, t, n in zip(*design.shown, strict=True):
        got[doc[int(x)], int(position[int(t)]) - 1] += float(n)
    assert dict(got) == pytest.approx({key: value for key, value in wanted.items() if value})
    assert design.moved == pytest.approx(moved)
    assert design.users_lose == pytest.approx(max(0.0, before - after))


def test_kinds_of_pages_stay_apart() -> None:
    traffic = Traffic(np.array([0, 4]), np.arange(4), np.arange(4), np.full(4, 5), None)
    table = pa.table(
        {
            "query_id": ["q"] * 4,
            "doc_id": ["a", "b", "c", "d"],
            "position": [1, 2, 1, 2],
            "device": ["x", "x", "y", "y"],
            "n": [5] * 4,
            "click": [1] * 4,
        }
    )
    check = elute.check(elute.read_log(table, bias="position,device", impressions="n"))
    expected = expect(check, np.full(4, 0.5), np.ones(4))
    kind = np.array([0, 0, 1, 1])
    design = draw_up("top k", traffic, expected, kind, np.array([1.0, 2.0, 1.0, 2.0]))
    assert {(int(x) // 2, int(t) // 2) for x, t in zip(design.shown.item, design.shown.factor, strict=True)} == {
        (0, 0),
        (1, 1),
    }


def test_a_forecast_is_the_inverse_of_the_information() -> None:
    """L from dense matrices, items profiled out, with what is shown anew."""
    rng = np.random.default_rng(2)
    rows = [(q, d, p, int(rng.integers(20, 60))) for q in range(4) for d in range(3) for p in rng.choice(4, 2, False)]
    table = pa.table(
        {
            "query_id": [f"q{row[0]}" for row in rows],
            "doc_id": [f"d{row[1]}" for row in rows],
            "position": [int(row[2]) + 1 for row in rows],
            "n": [row[3] for row in rows],
            "click": [row[3] // 4 for row in rows],
        }
    )
    check = check_log(elute.read_log(table, impressions="n"), target_log_se=None)
    counts = check.counts
    r, o = rng.uniform(0.2, 0.6, counts.n_items), np.array([1.0, 0.7, 0.5, 0.3])
    expected = expect(check, r, o)
    item, factor, shown = np.array([0, 3, 5]), np.array([3, 0, 2]), np.array([40.0, 15.0, 8.0])
    found = Forecast(check, expected, ShownAnew(item, factor, shown)).measure(2.0)

    w = np.zeros((counts.n_items, 4))
    every = np.repeat(np.arange(counts.n_items), np.diff(counts.offsets))
    n = np.zeros_like(w)
    n[every, counts.factor] = counts.impressions
    np.add.at(n, (item, factor), 2.0 * shown)
    p = r[:, None] * o[None, :]
    w = n * p / (1 - p)
    laplacian = np.diag(w.sum(axis=0)) - w.T @ (w / w.sum(axis=1, keepdims=True))
    covariance = np.linalg.inv(laplacian[1:, 1:])  # position 1 is the reference
    np.testing.assert_allclose(found.log_se[1:], np.sqrt(np.diag(covariance)), rtol=1e-6)
    assert (found.parts, found.log_se[0]) == (1, 0.0)
    assert found.largest == pytest.approx(np.sqrt(np.diag(covariance)).max(), rel=1e-4)
