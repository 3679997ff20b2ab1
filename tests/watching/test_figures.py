"""Figures of periods against loops over cells; what they do not depend on."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elute.watching.figures import measure_figures, to_figure, to_ratio
from elute.watching.observed import Observed, count_even, count_links, score, share_known
from reference import plain_watch
from reference.plain_watch import Row

ROWS = st.lists(
    st.builds(
        lambda d, i, k, n, c: Row(d, i, k, n, min(c, n)),
        st.integers(0, 3),
        st.integers(0, 5),
        st.integers(0, 2),
        st.integers(1, 4),
        st.integers(0, 4),
    ),
    min_size=1,
    max_size=40,
)


def observe(rows: list[Row], periods: int = 4, factors: int = 3) -> Observed:
    """Rows as periods have them; a cell may come twice, as where an item is shown for several queries."""
    rows = sorted(rows)
    columns = np.array(rows, np.int64).reshape(-1, 5).T
    starts = np.searchsorted(columns[0], np.arange(periods + 1))
    return Observed(
        starts, columns[1].astype(np.int32), columns[2].astype(np.int32), columns[3], columns[4], 6, factors
    )


@settings(max_examples=60)
@given(ROWS, st.tuples(*[st.floats(0.05, 1)] * 3))
def test_scores_links_and_even_counts_are_those_of_loops(rows: list[Row], o: tuple[float, ...]) -> None:
    seen, every = observe(rows), np.arange(3, dtype=np.int32)
    found = score(seen, np.array(o), every, 3)
    for mine, plain in zip(found, plain_watch.score(rows, np.array(o), 4), strict=True):
        np.testing.assert_allclose(mine, plain, atol=1e-9)
    for mine, plain in zip(count_links(seen, every, 3), plain_watch.count_links(rows, 4, 3), strict=True):
        np.testing.assert_array_equal(mine, plain)
    cells, even = count_even(seen)
    for period in range(4):
        own = [row for row in rows if row.period == period]
        assert cells[period] == len(own)
        assert even[period] == sum(row.impressions % 2 == 0 and row.clicks % 2 == 0 for row in own)
        known = sum(r.impressions for r in own if any(q.item == r.item and q.period != period for q in rows))
        assert share_known(seen)[period] == pytest.approx(known / max(sum(r.impressions for r in own), 1))


@settings(max_examples=30)
@given(ROWS)
def test_groups_of_factors_add_up(rows: list[Row]) -> None:
    """A group scores as its factors together; the information is that of their sum."""
    seen, o = observe(rows), np.array([1.0, 0.5, 0.25])
    apart = score(seen, o, np.arange(3, dtype=np.int32), 3)
    joined = score(seen, o, np.array([0, 1, 1], np.int32), 2)
    into = np.array([[1, 0], [0, 1], [0, 1]], np.float64)
    np.testing.assert_allclose(joined.observed, apart.observed @ into)
    np.testing.assert_allclose(joined.expected, apart.expected @ into, atol=1e-9)
    np.testing.assert_allclose(joined.information, into.T @ apart.information @ into, atol=1e-9)


def test_an_item_that_was_shown_once_tells_nothing() -> None:
    rows = [Row(0, 0, 0, 50, 10), Row(0, 1, 1, 50, 10), Row(1, 2, 0, 50, 20), Row(1, 3, 1, 50, 1)]
    found = score(observe(rows, 2, 2), np.array([1.0, 0.5]), np.arange(2, dtype=np.int32), 2)
    np.testing.assert_allclose(found.information, 0, atol=1e-12)
    np.testing.assert_allclose(found.observed, found.expected)
    figures = measure_figures(observe(rows, 2, 2), np.array([1.0, 0.5]), np.arange(2, dtype=np.int32), 2)
    assert (figures.curve.variance > 1).all()
    assert (figures.level.variance > 1).all()


def mix(rates: tuple[float, float], amounts: list[tuple[int, int]], o: tuple[float, float]) -> Observed:
    """Two items under two factors, each period with amounts of its own; clicks are as expected, without chance."""
    rows = [
        Row(day, item, factor, 1000 * amount[item], round(1000 * amount[item] * rates[item] * o[factor]))
        for day, amount in enumerate(amounts)
        for item in (0, 1)
        for factor in (0, 1)
    ]
    return observe(rows, len(amounts), 2)


def test_a_changed_mix_of_items_is_no_change() -> None:
    """Click rates triple, as good items take the place of bad ones; at fixed items nothing happened."""
    seen = mix((0.1, 0.6), [(9, 1), (9, 1), (1, 9)], (1.0, 0.5))
    crude = seen.tabulate(seen.clicks).sum(1) / seen.tabulate(seen.impressions).sum(1)
    assert crude[2] > 3 * crude[0]
    figures = measure_figures(seen, np.array([1.0, 0.5]), np.arange(2, dtype=np.int32), 2)
    np.testing.assert_allclose(figures.level.y, 0, atol=1e-6)
    np.testing.assert_allclose(figures.curve.y, 0, atol=1e-6)


@pytest.mark.parametrize("factor", [0, 1])
def test_a_changed_propensity_is_found_where_it_is(factor: int) -> None:
    seen = mix((0.1, 0.3), [(2, 2)] * 30, (1.0, 0.5))
    clicks = seen.clicks.copy()
    late = (seen.period == 29) & (seen.factor == factor)
    clicks[late] = clicks[late] // 2
    figures = measure_figures(seen._replace(clicks=clicks), np.array([1.0, 0.5]), np.arange(2, dtype=np.int32), 2)
    level, beside = (to_ratio(part.y[29]) / to_ratio(part.y[0]) for part in (figures.level, figures.curve))
    assert level < 0.9
    assert beside[factor] < 0.85
    assert beside[1 - factor] > 1.05
    whole = to_ratio((figures.curve.y + figures.level.y[:, None])[[0, 29]])  # of each factor, not beside the others
    assert whole[1, factor] / whole[0, factor] == pytest.approx(0.5, abs=0.03)
    assert whole[1, 1 - factor] / whole[0, 1 - factor] == pytest.approx(1, abs=0.03)


@given(st.floats(0, 50))
def test_a_figure_and_its_ratio(ratio: float) -> None:
    figure = to_figure(np.array([ratio]), np.array([0.1]))
    assert float(to_ratio(figure.y)[0]) == pytest.approx(ratio, rel=1e-9, abs=1e-9)


def test_a_figure_of_poisson_counts_has_no_skew() -> None:
    """Of a mean of 20, beside a logarithm and the count itself."""
    counts = np.random.default_rng(1).poisson(20, 200_000)

    def skew(values: np.ndarray) -> float:
        off = values - values.mean()
        return float((off**3).mean() / (off**2).mean() ** 1.5)

    figure = to_figure(counts / 20, np.full(len(counts), 0.05))
    assert abs(skew(figure.y)) < 0.03
    assert skew(counts.astype(float)) > 0.2
    assert figure.y.var() == pytest.approx(1 / 20, rel=0.05)


def test_a_day_loaded_twice_shows_in_even_counts_however_few_there_are() -> None:
    """30 days of 50 cells with one impression, of which hardly any count is even."""
    rng = np.random.default_rng(4)
    rows = [Row(day, item, 0, 1 + (rng.random() < 0.02), 0) for day in range(30) for item in range(50)]
    once = observe(rows, 30, 1)._replace(items=50)
    twice = once._replace(impressions=once.impressions * np.where(once.period == 29, 2, 1))
    for seen, far in ((once, False), (twice, True)):
        figure = measure_figures(seen, np.zeros(1), np.zeros(1, np.int32), 1).even
        off = (figure.y - figure.y[:29].mean()) / np.sqrt(figure.variance)
        assert (abs(off[:29]) < 3.5).all()
        assert (off[29] > 8) == far
