"""Errors of propensities, design effects and posteriors, each against something else that knows them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from known_worlds import dense, list_pages, make_log, sparse
from scipy.special import digamma as scipy_digamma
from scipy.special import polygamma

import elute
from elute.cells.counts import Cells, Counts, Membership
from elute.estimate.partitioned.items import select_items
from elute.estimate.priors import gamma
from elute.estimate.priors import polygamma as own
from elute.estimate.solve.problem import pose
from elute.known import covariance, shares
from elute.known.pairs import sort_usable
from elute.known.precision import Precision, measure
from elute.known.sample import sample_counts


def measure_table(table: pa.Table, **options: object) -> Precision:
    with elute.read_log(table) as log:
        return measure(sample_counts(log.counts(), None), query="query_id", **options)  # type: ignore[arg-type]


def test_errors_of_independent_clicks_are_those_of_maximum_likelihood() -> None:
    counts = elute.read_log(dense()).counts()
    found = measure(sample_counts(counts, None))
    fit = elute.PBM(relevance_prior="none").fit(counts)
    assert found.plain_se == pytest.approx(fit.propensity_log_se_, rel=0.05)
    assert found.propensity == pytest.approx(fit.propensity_, rel=0.05)


def test_draws_have_the_errors_of_the_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = measure_table(dense())
    monkeypatch.setattr(covariance, "DENSE", 0)
    monkeypatch.setattr(covariance, "DRAWS", 400)
    drawn = measure_table(dense())
    assert drawn.plain_se == pytest.approx(exact.plain_se, rel=0.12)
    assert any("drawn" in note for note in drawn.notes) and not exact.notes


def test_a_sample_of_queries_has_the_errors_of_all() -> None:
    table = make_log(list_pages(400, 30))
    counts = elute.read_log(table).counts()
    whole = measure(sample_counts(counts, None), query="query_id")
    part = sample_counts(counts, None, cells=len(counts.factor) // 4)
    assert 0.15 < part.share < 0.4
    some = measure(part, query="query_id")
    assert some.plain_se == pytest.approx(whole.plain_se, rel=0.15)
    assert whole.shares.items_known - 0.2 < some.shares.items_known < whole.shares.items_known + 0.05
    assert "items" in some.notes[0]


def test_thin_factors_are_kept_in_a_sample() -> None:
    rows = [
        *list_pages(400, 30),
        *((query, 0, 9, 1) for query in range(30)),
        *((query, 0, 9, 0) for query in range(30)),
    ]
    counts = elute.read_log(make_log(rows)).counts()
    whole, some = (measure(sample_counts(counts, None, cells=cells)) for cells in (10**9, len(counts.factor) // 4))
    assert some.log_se[-1] == pytest.approx(whole.log_se[-1], rel=0.2)


def test_in_partitions_as_in_memory(tmp_path: Path) -> None:
    pq.write_table(make_log(list_pages(400, 30)), tmp_path / "log.parquet")
    with elute.read_log(tmp_path / "log.parquet") as log, elute.read_log(tmp_path / "log.parquet", memory=2**29) as cut:
        assert cut.partitions() is not None
        whole, parts = (elute.check(one).to_dict() for one in (log, cut))
    assert parts["rung"] == whole["rung"]
    for field in ("largest_log_se", "median_log_se"):
        assert parts["precision"][field] == pytest.approx(whole["precision"][field], rel=0.25)


def test_where_a_log_was_counted_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Items and queries in another order, also where errors are drawn and queries sampled: the same to the last bit."""
    monkeypatch.setattr(covariance, "DENSE", 0)
    monkeypatch.setattr(shares, "QUERIES", 20)
    counts = elute.read_log(make_log(list_pages(80, 4))).counts()
    rng, members = np.random.default_rng(0), counts.membership
    assert members is not None
    order, renamed = rng.permutation(counts.n_items), rng.permutation(members.queries).astype(np.int32)
    place = np.argsort(order).astype(np.int32)
    cells = select_items(Cells(counts.offsets, counts.factor, counts.impressions, counts.clicks), order)
    moved = Membership(members.queries, renamed[members.query], place[members.item], members.impressions)
    other = replace(counts, **cells._asdict(), membership=moved)
    for size in (10**9, counts.n_cells // 2):
        one, two = (measure(sample_counts(some, None, size), query="query_id") for some in (counts, other))
        assert one.sample.problem.n_items == two.sample.problem.n_items
        np.testing.assert_array_equal(one.log_se, two.log_se)
        assert one.to_dict() == two.to_dict()


def test_factors_of_one_query_each_do_not_tell_how_clicks_of_a_query_depend() -> None:
    rows = list_pages(12, 60)
    with elute.read_log(make_log(rows), bias="query_id,position") as log:
        nested = elute.check(log).precision
    assert nested is not None and nested.dependence is not None
    assert (nested.dependence.clusters, nested.dependence.tells) == (12, False)
    np.testing.assert_array_equal(nested.log_se, nested.plain_se)
    found = measure_table(make_log(rows))
    assert found.dependence is not None and found.dependence.tells


def test_rows_without_a_session_are_left_out_of_what_sessions_tell() -> None:
    table = dense()
    page = pa.array(np.arange(table.num_rows) // 5)
    some = pa.array([None if at < 500 else at // 5 for at in range(table.num_rows)], pa.int64())
    with elute.read_log(table.append_column("page", page), session="page") as log:
        whole = elute.check(log).precision
    with elute.read_log(table.append_column("page", some), session="page") as log:
        part = elute.check(log).precision
        with pytest.raises(elute.EluteError, match="'page' is null in some rows"):
            elute.fit(log, bootstrap=5, cluster="page")
    assert whole is not None and part is not None
    assert part.log_se == pytest.approx(whole.log_se, rel=0.1)


@pytest.mark.parametrize("copies", [4, 9])
def test_clicks_that_only_repeat_each_other_add_nothing(copies: int) -> None:
    """Every impression logged several times: errors by query stay as they were, those of independent clicks do not."""
    once = make_log(list_pages(150, 6, relevance=(0.05, 0.3)))
    again = pa.concat_tables([once] * copies)
    first, second = measure_table(once), measure_table(again)
    assert second.plain_se[1:] == pytest.approx(first.plain_se[1:] / copies**0.5, rel=0.15)
    assert 0.8 * copies < second.design_effect < 1.8 * copies
    assert second.log_se[1:] == pytest.approx(first.log_se[1:], rel=0.25)


def test_sessions_that_click_all_or_nothing() -> None:
    """A user's pages are alike: errors by user hold the spread over logs, those of independent clicks do not."""
    estimates, errors, plain = [], [], []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        users, pages, places = 40, 25, 4
        r = np.linspace(0.1, 0.5, 20)
        doc = rng.integers(20, size=(users, pages, places))
        skew = np.exp(0.8 * rng.normal(size=(users, places)))  # each user looks at places in a way of their own
        p = np.minimum(r[doc] * np.array([1.0, 0.5, 0.4, 0.3]) * 0.6 * skew[:, None, :], 1)
        click = rng.random(doc.shape) < p
        table = pa.table(
            {
                "query_id": np.zeros(doc.size, np.int64),
                "doc_id": doc.ravel(),
                "position": np.tile(np.arange(places), users * pages),
                "click": click.ravel().astype(np.int8),
                "user_id": np.repeat(np.arange(users), pages * places),
            }
        )
        with elute.read_log(table, session="user_id") as log:
            found = elute.check(log).precision
        assert found is not None and found.dependence is not None and found.dependence.by == "user_id"
        to_first = found.propensity / found.propensity[0]
        estimates.append(np.log(to_first[1:]))
        errors.append(found.log_se[1:])
        plain.append(found.plain_se[1:])
    spread = np.std(estimates, axis=0, ddof=1)
    assert np.mean(plain) < 0.6 * spread.mean()
    assert np.mean(errors) == pytest.approx(spread.mean(), rel=0.4)


@pytest.mark.parametrize("x", [0.03, 0.5, 1.0, 3.0, 5.9, 6.0, 50.0, 1e5])
def test_derivatives_of_the_gamma_function(x: float) -> None:
    assert own.digamma(x) == pytest.approx(scipy_digamma(x), abs=1e-8)
    assert own.trigamma(x) == pytest.approx(polygamma(1, x), rel=1e-8)
    assert own.invert_trigamma(own.trigamma(x)) == pytest.approx(x, rel=1e-8)


@pytest.mark.parametrize("shape", [0.7, 2.0, 8.0])
def test_the_population_is_found_whatever_its_shape(shape: float) -> None:
    counts = draw_items(shape, 6_000, 40)
    found = gamma.fit_population(pose(counts, None).cells, np.array([1.0, 0.4]), np.zeros(2), np.zeros(2, np.int32))
    assert found.shape == pytest.approx(shape, rel=0.2)
    assert found.mean == pytest.approx([0.1, 0.1], rel=0.1)
    assert found.dispersion == pytest.approx(1, abs=0.1)


def test_items_shown_once_say_nothing_of_the_shape() -> None:
    counts = draw_items(0.3, 3_000, 1)
    found = gamma.fit_population(pose(counts, None).cells, np.array([1.0, 0.4]), np.zeros(2), np.zeros(2, np.int32))
    assert 0.3 < found.shape < 10


def draw_items(shape: float, items: int, shown: int) -> Counts:
    """Items of Gamma relevance with mean .1, under two factors of propensity 1 and .4."""
    rng = np.random.default_rng(1)
    r = np.minimum(rng.gamma(shape, 0.1 / shape, items), 1.0)
    o = np.array([1.0, 0.4])
    factor = np.tile(np.arange(2, dtype=np.int32), items)
    clicks = rng.binomial(shown, r.repeat(2) * o[factor]).astype(np.uint32)
    names = pa.table({"position": [1, 2]})
    offsets = np.arange(0, 2 * items + 1, 2)
    amounts = np.full(2 * items, shown, np.uint32), clicks
    return Counts(offsets, factor, *amounts, names, None, 0.0, lambda: pa.table({"item": np.arange(items)}))


@pytest.mark.parametrize(
    ("shown", "clicked"), [((30, 30), (6, 1)), ((100, 0), (60, 0)), ((5, 20), (0, 0)), ((1, 1), (1, 0))]
)
def test_a_posterior_is_that_of_the_binomial(shown: tuple[int, int], clicked: tuple[int, int]) -> None:
    """Mean and spread of r, by numerical integration of the binomial likelihood under the same prior."""
    o, a, mu = np.array([1.0, 0.4]), 1.5, 0.2
    kept = [at for at in range(2) if shown[at]]
    counts = Counts(
        np.array([0, len(kept)]),
        np.array(kept, np.int32),
        np.array([shown[at] for at in kept], np.uint32),
        np.array([clicked[at] for at in kept], np.uint32),
        pa.table({"position": [1, 2]}),
        None,
        0.0,
        lambda: pa.table({"item": [0]}),
    )
    know = gamma.know_items(pose(counts, None).cells, o, np.zeros(2), gamma.Population(a, np.full(2, mu), 1.0))
    r = np.linspace(1e-6, 1 - 1e-6, 200_001)
    density = (a - 1) * np.log(r) - a / mu * r
    for n, c, seen in zip(shown, clicked, o, strict=True):
        density += c * np.log(r * seen) + (n - c) * np.log1p(-r * seen)
    weight = np.exp(density - density.max())
    mean = float((weight * r).sum() / weight.sum())
    spread = float(np.sqrt((weight * (r - mean) ** 2).sum() / weight.sum()))
    assert know.shape[0] / know.rate[0] == pytest.approx(mean, rel=0.12)
    assert np.sqrt(know.shape[0]) / know.rate[0] == pytest.approx(spread, rel=0.2)


def test_errors_of_propensities_widen_a_posterior_and_keep_its_centre() -> None:
    cells = pose(draw_items(1.0, 50, 100), None).cells
    o, population = np.array([1.0, 0.4]), gamma.Population(1.0, np.full(2, 0.1), 1.0)
    sure, unsure = (gamma.know_items(cells, o, np.array([0.0, error]), population) for error in (0.0, 0.5))
    for one, other in zip(zip(*sure[:2], strict=True), zip(*unsure[:2], strict=True), strict=True):
        assert polygamma(1, other[0]) > polygamma(1, one[0])
        centre, moved = (scipy_digamma(shape) - np.log(rate) for shape, rate in (one, other))
        assert moved == pytest.approx(centre, abs=1e-6)
    assert (unsure.evidence == sure.evidence).all()


def test_what_nobody_saw_does_not_look_average() -> None:
    """Unclicked items at the bottom come from a worse population than those at the top."""
    rng = np.random.default_rng(0)
    rows = []
    for query in range(200):
        docs = rng.permutation(5)
        for _ in range(8):
            order = docs if rng.random() < 0.7 else rng.permutation(docs)
            for at, doc in enumerate(order):
                good = 0.6 if doc == docs[0] else 0.05
                rows.append((query, int(doc), at + 1, int(rng.random() < good / (at + 1))))
    fit = elute.fit(elute.read_log(make_log(rows)))
    table = fit.relevance.to_pandas()
    table["mean"] = table["shape"] / table["rate"]
    assert table.loc[table.clicks == 0, "mean"].mean() < 0.65 * table["mean"].mean()


def test_precision_costs_no_more_than_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many queries and items are looked at as is stated, at most."""
    monkeypatch.setattr(shares, "QUERIES", 20)
    found = measure_table(sparse()).shares
    assert found.queries_sampled <= 20 and found.items_sampled <= 100


def test_items_that_nothing_is_known_of_have_no_place() -> None:
    """Neither clicks nor anything to measure them by, or no posterior."""
    shape, rate = np.array([2.0, 0.0, 1.0, np.nan]), np.array([1.0, 0.0, 1.0, 1.0])
    assert sort_usable(shape, rate).tolist() == [2, 0]
