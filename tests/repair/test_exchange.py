"""What a swap shows, by going through every page; and how parts are put at one scale."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pyarrow as pa
import pytest
from scipy.sparse import csr_array

import elute
from elute.repair.swapping.exchange import show_exchanged
from elute.repair.swapping.movable import find_movable
from elute.repair.swapping.scale import align_parts, find_ways
from elute.repair.swapping.traffic import count_pages, find_traffic

PAGES = 40


def test_both_results_of_an_exchange_are_counted():
    """Two queries whose pages show four of five documents, one of two contexts at each place."""
    rng = np.random.default_rng(3)
    rows, pages = [], defaultdict(list)
    for query in ("a", "b"):
        for number in range(PAGES):
            page = [(f"{query}{d}", place + 1, int(rng.integers(2))) for place, d in enumerate(rng.permutation(5)[:4])]
            pages[query].append(page)
            rows += [(query, f"{query}-{number}", *shown) for shown in page]
    names = ("query_id", "session_id", "doc_id", "position", "context")
    table = pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))
    table = table.append_column("click", pa.array(rng.random(len(rows)) < 0.3))
    check = elute.check(table, bias="position,context", session="session_id")
    counts, movable, traffic = check.counts, find_movable(check), find_traffic(check)
    assert movable.columns == ("position", "context")
    assert count_pages(traffic, movable.kind, movable.place).tolist() == [PAGES, PAGES]

    doc = {name: code for code, name in enumerate(counts.items["doc_id"].to_pylist())}
    factor = {tuple(row.values()): code for code, row in enumerate(counts.factors.to_pylist())}
    of_query = np.zeros(counts.n_items, np.int64)
    of_query[traffic.item] = np.repeat(np.arange(2), np.diff(traffic.offsets))
    x, target = doc["a0"], (2, 1)
    found = show_exchanged(
        traffic, movable, np.array([x]), np.array([factor[target]]), of_query[[x]], np.array([PAGES * 1.0])
    )
    got: defaultdict[tuple[int, int], float] = defaultdict(float)
    for item, t, n in zip(*found, strict=True):
        got[int(item), int(t)] += n

    standing = [page[1] for page in pages["a"] if page[1][2] == 1]  # who stands at the target, on pages that have it
    wanted: defaultdict[tuple[int, int], float] = defaultdict(float)
    wanted[x, factor[target]] = PAGES
    for page in pages["a"]:
        for name, place, context in page:
            if name == "a0" and (place, context) != target:
                for other, *_ in standing:
                    if other != "a0":
                        wanted[doc[other], factor[place, context]] += 1 / len(standing)
    assert dict(got) == pytest.approx(dict(wanted))


def ways(part: np.ndarray) -> csr_array:
    return find_ways(part, pa.table({"factor": np.arange(len(part))}))


@pytest.mark.parametrize("shape", ["power", "exponential", "logarithm"])
def test_parts_are_put_where_their_positions_suggest(shape: str) -> None:
    position = np.arange(1.0, 11.0)
    truth = {
        "power": position**-0.8,
        "exponential": np.exp(-0.3 * (position - 1)),
        "logarithm": 1 / np.log2(1 + position),
    }[shape]
    part = (position > 4).astype(np.int64)
    apart = truth * np.where(part, 3.0, 1.0)
    found = align_parts(apart, np.full(10, 1e6), ways(part), np.zeros(10, np.int64), position)
    assert found == pytest.approx(truth, rel=0.03)
    two = np.tile(truth, 2) * np.repeat([1.0, 0.4], 10)
    devices = align_parts(
        two, np.full(20, 1e6), ways(np.repeat([0, 1], 10)), np.repeat([0, 1], 10), np.tile(position, 2)
    )
    assert devices == pytest.approx(np.tile(truth, 2), rel=1e-6)  # at the same positions, parts are alike


def test_lone_positions_say_nothing_of_a_slope():
    o = align_parts(
        np.array([1.0, 0.2, 0.5, 0.0]), np.full(4, 50.0), ways(np.arange(4)), np.zeros(4, np.int64), np.arange(1.0, 5)
    )
    assert o == pytest.approx([1.0, 1.0, 1.0, 0.0])
