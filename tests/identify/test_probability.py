"""The curve and the estimates against closed forms, simulation, and the paper's formula in long arithmetic."""

from __future__ import annotations

import re
from decimal import Decimal, getcontext
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

import elute
from elute.cells.counts import Cells
from elute.cells.partitions import Partition
from elute.checking.probability import SAMPLES, SHARES, CurveTask, estimate, estimate_paper

DOCS = Path(__file__).parents[2] / "docs" / "check.md"


def by_the_formula(impressions: int, items: int, factors: int) -> float:
    """Example 2 as printed, with 80 digits."""
    getcontext().prec = 80
    d, cells, t = Decimal(impressions), Decimal(items) * factors, Decimal(factors)
    f = cells * (2 - (-d / cells).exp()).ln()
    return float(max(Decimal(0), 1 - t * (-d + f).exp()))


@pytest.mark.parametrize(
    ("impressions", "items", "factors"),
    [(50, 20, 5), (200, 40, 10), (3_000, 500, 100), (10**5, 10**4, 1_000), (10**7, 10**6, 10**4), (10**9, 10**8, 10)],
)
def test_papers_estimate_is_the_papers_formula(impressions: int, items: int, factors: int) -> None:
    expected = by_the_formula(impressions, items, factors)
    assert estimate_paper(impressions, items, factors) == pytest.approx(expected, abs=1e-9)


def test_papers_estimate_survives_large_sizes() -> None:
    """Written as printed, f and |D| are equal to the last bit here and their difference is noise."""
    assert estimate_paper(10**12, 10**11, 10**6) == pytest.approx(by_the_formula(10**12, 10**11, 10**6), abs=1e-9)


@pytest.mark.parametrize("of", [estimate, estimate_paper])
def test_estimates_are_probabilities_that_grow_with_the_log(of) -> None:
    values = [of(d, 1_000, 50) for d in (10, 100, 1_000, 3_000, 10_000, 10**6)]
    assert values == sorted(values)
    assert values[0] == pytest.approx(0.0, abs=1e-12)
    assert values[-1] == 1.0
    assert of(10**15, 3, 2) == 1.0
    assert of(1, 10**9, 10**9) == 0.0
    assert of(10, 10, 1) == 1.0


@given(st.floats(0, 1e15), st.floats(1, 10), st.integers(1, 10**9), st.integers(1, 10**9))
def test_more_impressions_never_lower_an_estimate(impressions: float, more: float, items: int, factors: int) -> None:
    for of in (estimate, estimate_paper):
        assert 0 <= of(impressions, items, factors) <= of(more * impressions, items, factors) <= 1


def read_table() -> list[tuple[int, int, int, float, float, float]]:
    """The table of the page on `check`: items, factors, impressions; simulated, `estimate`, `estimate_paper`."""
    rows = re.findall(r"^\|" + r" ([\d,]+) \|" * 3 + r" (\d\.\d\d) \|" * 3 + "$", DOCS.read_text(), re.MULTILINE)
    sizes = [[int(number.replace(",", "")) for number in row[:3]] for row in rows]
    shares = [[float(number) for number in row[3:]] for row in rows]
    return [(x, t, d, truth, ours, paper) for (x, t, d), (truth, ours, paper) in zip(sizes, shares, strict=True)]


def test_table_of_the_docs_holds_the_estimates() -> None:
    rows = read_table()
    assert len(rows) == 23
    for items, factors, impressions, truth, ours, papers in rows:
        assert estimate(impressions, items, factors) == pytest.approx(ours, abs=0.0051)
        assert estimate_paper(impressions, items, factors) == pytest.approx(papers, abs=0.0051)
        assert abs(ours - truth) <= (0.185 if factors < 40 else 0.045)


def simulate(items: int, factors: int, impressions: int, logs: int, rng: np.random.Generator) -> float:
    """The share of random logs in which all factors are in one component, by another algorithm."""
    connected = 0
    for _ in range(logs):
        item, factor = rng.integers(items, size=impressions), rng.integers(factors, size=impressions)
        edges = coo_array((np.ones(impressions), (factor, factors + item)), shape=(factors + items,) * 2)
        connected += len(np.unique(connected_components(edges, directed=False)[1][:factors])) == 1
    return connected / logs


def test_table_of_the_docs_holds_the_truth() -> None:
    """The rows whose logs are small, simulated anew; one of them is where the paper's form goes most astray."""
    rng, logs = np.random.default_rng(4), 400
    for items, factors, impressions, truth, *_ in read_table():
        if impressions < 600:
            error = 4 * (max(truth * (1 - truth), 0.02) * (1 / logs + 1 / 1000)) ** 0.5
            assert abs(simulate(items, factors, impressions, logs, rng) - truth) < error


def test_a_sample_keeps_an_impression_with_its_share() -> None:
    """One item under two factors with 3 and 5 impressions: recoverable unless both cells survive apart;
    with one bridge the chance that both survive is (1 − 0.7³)(1 − 0.7⁵)."""
    offsets, factor, shown = (
        np.array([0, 2, 3, 4]),
        np.array([0, 1, 0, 1], np.int32),
        np.array([3, 5, 900, 900], np.uint32),
    )
    cells = Cells(offsets, factor, shown, shown)
    sampling = CurveTask(np.full(20_000, 0.3), np.arange(20_000, dtype=np.uint64), 2)
    draws = np.array(sampling(Partition(0, cells)).outcomes())
    linked = float(np.mean(draws[:, 0] == 1))
    expected = (1 - 0.7**3) * (1 - 0.7**5)
    assert (draws[:, 1] == 2).all()
    others = np.array(sampling(Partition(7, cells)).outcomes())
    assert (draws != others).any()  # another share of the items draws for itself
    assert abs(linked - expected) < 4 * (expected * (1 - expected) / len(draws)) ** 0.5


def test_curve_ends_at_the_check_and_rises() -> None:
    rng = np.random.default_rng(3)
    n = 4_000
    log = pa.table(
        {
            "query_id": np.zeros(n, int),
            "doc_id": rng.integers(400, size=n),
            "position": rng.integers(60, size=n),
            "click": np.zeros(n, int),
        }
    )
    check = elute.check(elute.read_log(log), curve=True, seed=5)
    assert check.curve is not None
    assert [point.share for point in check.curve] == list(SHARES)
    assert [point.samples for point in check.curve] == [SAMPLES] * (len(SHARES) - 1) + [1]
    probabilities = [point.probability for point in check.curve]
    assert probabilities[0] < 0.5
    assert probabilities[-1] == float(check.recoverable) == 1.0
    assert probabilities == sorted(probabilities)
    again = elute.check(check.log, curve=True, seed=5)
    other = elute.check(check.log, curve=True, seed=6)
    assert check.curve == again.curve
    assert check.curve != other.curve


def make_log(doc: np.ndarray, position: np.ndarray) -> elute.ClickLog:
    return elute.read_log(
        pa.table({"doc_id": doc, "position": position, "click": np.zeros(len(doc), int)}), item="doc_id"
    )


def test_lone_positions_never_show_above_0() -> None:
    """A sample that is left with one of ten components is one component, and still not the log."""
    place = np.repeat(np.arange(10), 7)
    check = elute.check(make_log(place, place), curve=True)
    assert check.curve is not None
    assert [point.probability for point in check.curve] == [0.0] * len(SHARES)
    assert check.curve[0].factors < 10


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 4)), min_size=2, max_size=60), st.integers(0, 99))
def test_more_impressions_never_lower_the_probability(shown: list[tuple[int, int]], seed: int) -> None:
    """Neither a larger share of a log, nor the same log with every impression three times."""
    doc, position = np.array(shown).T
    once, often = (
        [point.probability for point in elute.check(make_log(*rows), curve=True, seed=seed).curve or ()]
        for rows in ((doc, position), (np.repeat(doc, 3), np.repeat(position, 3)))
    )
    assert once == sorted(once)
    assert all(few <= many for few, many in zip(once, often, strict=True))


def test_estimate_agrees_with_sampling_where_its_assumption_holds() -> None:
    """Shares of a large log in which items and factors meet at random: what `--curve` shows beside each other."""
    rng = np.random.default_rng(11)
    items, factors, impressions = 3_000, 40, 20_000
    cells = elute.read_log(
        pa.table(
            {
                "doc_id": rng.integers(items, size=impressions),
                "position": rng.integers(factors, size=impressions),
                "click": np.zeros(impressions, int),
            }
        ),
        item="doc_id",
    ).counts()
    share, samples = 800 / impressions, 2_000
    task = CurveTask(np.full(samples, share), np.arange(samples, dtype=np.uint64), factors)
    found = np.array(task(Partition(0, Cells(cells.offsets, cells.factor, cells.impressions, cells.clicks))).outcomes())
    linked = float(np.mean((found == [1, factors]).all(axis=1)))
    assert abs(linked - estimate(800, items, factors)) < 0.06
