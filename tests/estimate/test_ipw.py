"""Relevance from given propensities: expectations in full, the limits paper's answers, and what must always hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from worlds import Merge, counts_of, draw

from elute.errors import EluteError
from elute.estimate.models.affine import Affine
from elute.estimate.models.ipw import IPW, AffineIPW
from elute.estimate.models.naive import Naive
from elute.estimate.models.pbm import PBM
from reference.plain_ipw import outcomes, relevance

MANY = 10**6
ALPHA = np.array([0.8, 0.5, 0.06])
BETA = np.array([0.1, 0.05, 0.02])
OPTIONS: list[dict[str, Any]] = [
    {},
    {"policy_aware": True},
    {"self_normalised": True},
    {"clip": 0.3, "self_normalised": True},
]
CLIPPED = [{"clip": 0.3}, {"clip": 0.3, "policy_aware": True}]


def distribution(model, shown, r, alpha, beta):
    """Every outcome's estimate of one item, and its probability."""
    rows = []
    for clicks, chance in outcomes(shown, alpha * r + beta):
        cells = [(0, t, n, c) for t, (n, c) in enumerate(zip(shown, clicks, strict=True))]
        rows.append((model.fit(counts_of(cells)).relevance_values_[0], chance))
    values, chances = np.array(rows).T
    assert chances.sum() == pytest.approx(1)
    return values, chances


@pytest.mark.parametrize("options", OPTIONS)
def test_the_expectation_is_the_truth(options):
    for model, beta in (
        (IPW(propensities=ALPHA, **options), np.zeros(3)),
        (AffineIPW(propensities=ALPHA, offsets=BETA, **options), BETA),
    ):
        values, chances = distribution(model, (3, 2, 4), 0.7, ALPHA, beta)
        assert values @ chances == pytest.approx(0.7, rel=1e-12)


@pytest.mark.parametrize("options", [*OPTIONS, *CLIPPED])
def test_the_error_is_the_binomial_one(options):
    """At clicks equal to their expectation; the estimate is linear, so one more click moves it by its weight."""
    shown, alpha, beta = np.array([20, 20, 50]), np.array([0.8, 0.5, 0.2]), np.array([0.05, 0.1, 0.0])
    p = alpha * 0.5 + beta
    cells = [(0, t, n, round(n * q)) for t, (n, q) in enumerate(zip(shown, p, strict=True))]

    def fit(cells):
        return AffineIPW(propensities=alpha, offsets=beta, **options).fit(counts_of(cells))

    (found,) = fit(cells).relevance_values_
    weight = [fit(one_more(cells, t)).relevance_values_[0] - found for t in range(3)]
    variance = np.square(weight) @ (shown * p * (1 - p))
    assert fit(cells).relevance_log_se_ == pytest.approx([np.sqrt(variance) / found], rel=1e-9)
    assert fit(cells).propensity_log_se_.tolist() == [0, 0, 0]


def one_more(cells, t):
    """The same cells with one more click under factor t."""
    return [(x, u, n, c + (u == t)) for x, u, n, c in cells]


@pytest.mark.parametrize("policy_aware", [False, True])
@pytest.mark.parametrize("clip", [0.0, 0.2])
def test_against_every_impression(policy_aware, clip):
    table, _, o = draw(0, 20, 5, 0.6, 8)
    beta = np.linspace(0.1, 0, 5)
    found = AffineIPW(propensities=o, offsets=beta, clip=clip, policy_aware=policy_aware).fit(counts_of(table))
    plain = [relevance(table, item, o, beta, clip, policy_aware) for item in range(20)]
    assert found.relevance_values_ == pytest.approx(plain)
    without = IPW(propensities=o, clip=clip, policy_aware=policy_aware).fit(counts_of(table))
    plain = [relevance(table, item, o, 0 * o, clip, policy_aware) for item in range(20)]
    assert without.relevance_values_ == pytest.approx(plain)


def test_the_limits_papers_answers():
    """α = .5, β = .2, R = .4: inverse propensity gives .8, the affine estimator .4."""
    counts = counts_of([(0, 0, MANY, round(MANY * (0.5 * 0.4 + 0.2)))])
    assert IPW(propensities=[0.5]).fit(counts).relevance_values_ == pytest.approx([0.8])
    assert AffineIPW(propensities=[0.5], offsets=[0.2]).fit(counts).relevance_values_ == pytest.approx([0.4])


def test_what_clipping_leaves():
    """A fixed τ = .1 at α = .06 leaves .6 R for ever; τ ∝ 1/√N vanishes; self-normalised, either gives R."""
    for n in (50, 10**4, 10**8):
        counts = counts_of([(0, 0, n, round(n * 0.06 * 0.5))])
        share = min(0.06 * np.sqrt(n), 1)
        truth = counts.clicks[0] / n / 0.06
        assert IPW(propensities=[0.06], clip=0.1).fit(counts).relevance_values_ == pytest.approx([0.6 * truth])
        assert IPW(propensities=[0.06], clip="auto").fit(counts).relevance_values_ == pytest.approx([share * truth])
        for clip in (0.1, "auto", None):
            fit = IPW(propensities=[0.06], clip=clip, self_normalised=True).fit(counts)
            assert fit.relevance_values_ == pytest.approx([truth])
    assert share == 1
    assert truth == pytest.approx(0.5)


def test_the_automatic_clip_is_of_the_item():
    few, many = [(0, 0, 25, 1)], [(1, 0, 10**6, 3 * 10**4)]
    both = IPW(propensities=[0.06], clip="auto").fit(counts_of(few + many)).relevance_values_
    assert both == pytest.approx([1 / 25 / 0.2, 0.03 / 0.06])


def test_self_normalisation_joins_the_two():
    """Unclipped it is inverse propensity; at a clip above all propensities, policy-aware."""
    table, _, o = draw(1, 30, 5, 0.6, 20)
    counts = counts_of(table)

    def found(**options):
        return IPW(propensities=o, **options).fit(counts).relevance_values_

    assert found(self_normalised=True) == pytest.approx(found())
    assert found(self_normalised=True, clip=2.0) == pytest.approx(found(policy_aware=True))
    item, factor, n, c = np.array(table).T
    ratio = np.bincount(item, c) / np.bincount(item, n * o[factor])
    assert found(policy_aware=True) == pytest.approx(ratio)
    assert found(policy_aware=True, self_normalised=True, clip=0.9) == pytest.approx(ratio)


def test_variances_by_simulation():
    """log_se against many draws, and the claim that clipping with normalisation narrows the estimate."""
    rng = np.random.default_rng(0)
    o, n, r, draws = np.array([1.0, 0.3, 0.05]), np.array([300, 300, 300]), 0.6, 4_000
    clicks = rng.binomial(n, r * o, (draws, 3))
    cells = [(x, t, n[t], clicks[x, t]) for x in range(draws) for t in range(3)]
    counts, spread = counts_of(cells), {}
    for name, options in {"plain": OPTIONS[0], "clipped": OPTIONS[3], "aware": OPTIONS[1]}.items():
        fit = IPW(propensities=o, **options).fit(counts)
        spread[name] = fit.relevance_values_.std()
        assert fit.relevance_values_.mean() == pytest.approx(r, abs=4 * spread[name] / np.sqrt(draws))
        predicted = np.sqrt(np.mean((fit.relevance_log_se_ * fit.relevance_values_) ** 2))
        assert predicted == pytest.approx(spread[name], rel=0.05)
    assert spread["aware"] < spread["clipped"] < 0.7 * spread["plain"]


def test_policy_awareness_takes_factors_that_nobody_sees():
    cells = [(0, 0, 100, 40), (0, 1, 300, 0), (1, 1, 50, 0)]
    fit = IPW(propensities=[1.0, 0.0], policy_aware=True).fit(counts_of(cells))
    assert fit.relevance_values_[0] == pytest.approx(0.4)
    assert np.isnan(fit.relevance_values_[1])
    assert not fit.converged_
    assert "1 items" in fit.reason_
    with pytest.raises(EluteError, match=r"0 for 1 factors: position 1; .*policy_aware"):
        IPW(propensities=[1.0, 0.0]).fit(counts_of(cells))


def test_propensities_of_one_give_the_click_rate():
    table, _, _ = draw(2, 30, 4, 0.5, 9)
    plain, naive = IPW(propensities=np.ones(4)).fit(counts_of(table)), Naive().fit(counts_of(table))
    assert plain.relevance_values_ == pytest.approx(naive.relevance_values_)
    assert plain.log_likelihood_ == pytest.approx(naive.log_likelihood_)
    clicked = naive.relevance_values_ > 0
    below = clicked & (naive.relevance_values_ < 0.9)
    assert plain.relevance_log_se_[below] == pytest.approx(naive.relevance_log_se_[below])
    assert np.isnan(plain.relevance_log_se_[~clicked]).all()
    assert not clicked.all()


def test_the_scale_is_the_given_one_across_components():
    cells = [(0, 0, 100, 20), (1, 1, 100, 20)]
    fit = IPW(propensities=[0.5, 0.25]).fit(counts_of(cells))
    assert fit.component_.tolist() == [0, 1]
    assert fit.propensity_.tolist() == [0.5, 0.25]
    assert fit.relevance_["relevance"].to_pylist() == pytest.approx([0.4, 0.8])
    assert fit.propensities_.column_names == ["position", "component", "propensity", "log_se"]
    assert fit.propensities_["propensity"].to_pylist() == [0.5, 0.25]


def test_an_estimate_beyond_probabilities_is_kept_and_unlikely():
    assert IPW(propensities=[0.1]).fit(counts_of([(0, 0, 10, 5)])).relevance_values_.tolist() == [5]
    fit = IPW(propensities=[0.1, 1.0]).fit(counts_of([(0, 0, 10, 5), (0, 1, 10, 5)]))
    assert fit.log_likelihood_ == -np.inf
    below = AffineIPW(propensities=[0.5], offsets=[0.3]).fit(counts_of([(0, 0, 10, 1)]))
    assert below.relevance_values_ == pytest.approx([-0.4])
    assert np.isnan(below.relevance_log_se_).all()
    assert below.log_likelihood_ == pytest.approx(np.log(0.1) + 9 * np.log(0.9))


def test_a_fits_table_is_matched_by_its_columns():
    table, r, _ = draw(3, 60, 5, 0.6, 4_000, relevance=(0.1, 0.8))
    counts = counts_of(table)
    pbm = PBM(relevance_prior="none").fit(counts)
    shuffled = pbm.propensities_.take([3, 0, 4, 1, 2]).set_column(0, "position", pa.array([3, 0, 4, 1, 2], pa.int16()))
    extra = pa.table({"position": pa.array([99], pa.int16()), "propensity": [0.1]})
    joined = pa.concat_tables([shuffled.select(["position", "propensity"]), extra])
    fit = IPW(propensities=joined).fit(counts)
    assert fit.propensity_ == pytest.approx(pbm.propensity_)
    assert fit.relevance_values_ == pytest.approx(r, abs=0.05)
    assert IPW(propensities=joined, policy_aware=True).fit(counts).relevance_values_ == pytest.approx(
        pbm.relevance_values_, rel=0.05
    )


def test_an_affine_fits_table_brings_back_its_clicks():
    rng = np.random.default_rng(5)
    r, alpha, beta = rng.choice([0.2, 0.4, 0.6, 0.8], 40), np.array([0.6, 0.5, 0.3]), np.array([0.2, 0.1, 0.0])
    cells = [(x, t, MANY, round(MANY * (alpha[t] * r[x] + beta[t]))) for x in range(40) for t in range(3)]
    counts = counts_of(cells)
    fitted = Affine(tolerance=1e-6).fit(counts)
    found = AffineIPW(propensities=fitted.propensities_).fit(counts)
    assert found.offset_ == pytest.approx(fitted.offset_)
    assert found.relevance_values_ == pytest.approx(fitted.relevance_values_, rel=1e-3)
    assert found.propensities_.column_names == ["position", "component", "propensity", "log_se", "offset"]


def table_of(positions, values):
    return pa.table({"position": positions, "propensity": values})


@pytest.mark.parametrize(
    ("propensities", "message"),
    [
        ([1.0], r"shape \(1,\) for 2 factors"),
        ([1.0, np.nan], "the propensity is not a number for 1 factors: position 1"),
        ([1.0, -0.5], "below 0 for 1 factors: position 1"),
        ([0.0, 1.0], "is 0 for 1 factors: position 0"),
        (table_of([0], [1.0]), "no propensity for 1 factors: position 1"),
        (table_of([0, 1, 1], [1.0, 0.5, 0.4]), "more than one row for 1 factors: position 1"),
        (table_of([0, 1], [1.0, None]), "the propensity is not a number for 1 factors: position 1"),
        (table_of(["a", "b"], [1.0, 0.5]), "do not match"),
        (pa.table({"rank": [0, 1], "propensity": [1.0, 0.5]}), "no column 'position'"),
        (pa.table({"position": [0, 1]}), "no column 'propensity'"),
    ],
)
def test_propensities_that_cannot_be_used(propensities, message):
    with pytest.raises(EluteError, match=message) as error:
        IPW(propensities=propensities).fit(counts_of([(0, 0, 9, 4), (0, 1, 9, 2)]))
    assert "\n" not in str(error.value)


def test_other_mistakes_are_named():
    counts = counts_of([(0, 0, 9, 4), (0, 1, 9, 2)])
    for clip in (-0.1, "some", np.inf, np.nan):
        with pytest.raises(EluteError, match="`clip=` is"):
            IPW(propensities=[1.0, 0.5], clip=clip).fit(counts)  # type: ignore[arg-type]  # a text that means nothing
    with pytest.raises(EluteError, match="merge plan"):
        IPW(propensities=[1.0, 0.5]).fit(counts, plan=Merge((0, 1)))
    with pytest.raises(EluteError, match="no offsets"):
        AffineIPW(propensities=[1.0, 0.5]).fit(counts)
    with pytest.raises(EluteError, match="no column 'offset'"):
        AffineIPW(propensities=table_of([0, 1], [1.0, 0.5])).fit(counts)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([*OPTIONS, *CLIPPED, {"clip": "auto"}]))
def test_names_and_units_do_not_matter(seed, options):
    """Relabelling permutes the result; an item's estimate depends on no other item."""
    rng = np.random.default_rng(seed)
    table, _, o = draw(seed, 12, 4, 0.5, 5)
    beta = rng.uniform(0, 0.2, 4)
    items, factors = rng.permutation(12), rng.permutation(4)
    plain = AffineIPW(propensities=o, offsets=beta, **options).fit(counts_of(table))
    renamed = [(items[x], factors[t], n, c) for x, t, n, c in table]
    back = np.argsort(factors)
    other = AffineIPW(propensities=o[back], offsets=beta[back], **options).fit(counts_of(renamed))
    assert other.relevance_values_[items] == pytest.approx(plain.relevance_values_)
    assert other.relevance_log_se_[items] == pytest.approx(plain.relevance_log_se_, nan_ok=True)
    alone = AffineIPW(propensities=o, offsets=beta, **options).fit(
        counts_of([(0, *row[1:]) for row in table if row[0] == 3], factors=4)
    )
    assert alone.relevance_values_[0] == pytest.approx(plain.relevance_values_[3])
