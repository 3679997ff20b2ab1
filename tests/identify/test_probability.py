"""The curve and the estimate against closed forms and against the paper's formula in long arithmetic."""

from __future__ import annotations

from decimal import Decimal, getcontext

import numpy as np
import pyarrow as pa
import pytest

import elute
from elute.cells.counts import Cells
from elute.cells.partitions import Partition
from elute.checking.probability import SAMPLES, SHARES, CurveTask, estimate


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
def test_estimate_is_the_papers_formula(impressions: int, items: int, factors: int) -> None:
    assert estimate(impressions, items, factors) == pytest.approx(by_the_formula(impressions, items, factors), abs=1e-9)


def test_estimate_survives_large_sizes() -> None:
    """Written as printed, f and |D| are equal to the last bit here and their difference is noise."""
    assert estimate(10**12, 10**11, 10**6) == pytest.approx(by_the_formula(10**12, 10**11, 10**6), abs=1e-9)
    assert estimate(10**15, 3, 2) == 1.0
    assert estimate(1, 10**9, 10**9) == 0.0
    assert estimate(10, 10, 1) == 1.0


def test_estimate_is_a_probability_that_grows_with_the_log() -> None:
    values = [estimate(d, 1_000, 50) for d in (10, 100, 1_000, 3_000, 10_000, 10**6)]
    assert values == sorted(values)
    assert values[0] == 0.0
    assert values[-1] == 1.0


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


def test_estimate_agrees_with_sampling_where_its_assumption_holds() -> None:
    """Items and factors drawn independently and uniformly, as Example 2 assumes, sizes where it is neither 0 nor 1."""
    rng = np.random.default_rng(11)
    items, factors, impressions = 3_000, 40, 900
    connected = 0
    for _ in range(300):
        pairs = pa.table(
            {"doc_id": rng.integers(items, size=impressions), "position": rng.integers(factors, size=impressions)}
        )
        counts = pairs.append_column("click", pa.array([0] * impressions))
        check = elute.read_log(counts, item="doc_id")
        connected += len(np.unique(check.connect())) == 1
    assert abs(connected / 300 - estimate(impressions, items, factors)) < 0.12
