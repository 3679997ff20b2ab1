"""Priors: against dense Gaussian algebra, general optimisers and quadrature, and on worlds where they hold."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import simpson
from scipy.optimize import LinearConstraint, minimize
from scipy.special import betaln, polygamma
from worlds import Merge, counts_of, draw

from elute.cells.counts import Cells
from elute.errors import EluteError
from elute.estimate.models.pbm import PBM
from elute.estimate.priors.beta import Beta, fit_beta, posterior
from elute.estimate.priors.strength import split_halves
from elute.estimate.solve import standard_errors
from elute.estimate.solve.conditional import score
from elute.estimate.solve.problem import pose


def scattered(values, strength):
    return (values[:, None] == values[None, :]) / strength


def walk(values, strength):
    return np.minimum(values[:, None], values[None, :]) / strength


def free_level(covariance):
    """The precision of a Gaussian with that covariance once nothing is known of its level."""
    p = np.linalg.inv(covariance)
    return p - np.outer(p.sum(0), p.sum(0)) / p.sum()


def power_law(values):
    """What a normal exponent with standard deviation 3 adds."""
    fall = np.log(values + 1)
    return 9 * np.outer(fall, fall)


POSITION, DEVICE = np.arange(12) // 3, np.arange(12) % 3
KINDS = {
    "positions": (
        {"position": np.arange(12)},
        lambda s: free_level(walk(np.arange(12), s["position"]) + power_law(np.arange(12)) + 1e-9 * np.eye(12) + 1.0),
    ),
    "codes": ({"context": np.arange(12)}, lambda s: free_level(np.eye(12) / s["context"])),
    "both": (
        {"position": POSITION, "device": [f"d{d}" for d in DEVICE]},
        lambda s: free_level(
            walk(POSITION, s["position"])
            + power_law(POSITION)
            + scattered(DEVICE, s["device"])
            + np.eye(12) / s["position × device"]
        ),
    ),
    "two orders": (
        {"position": POSITION, "size": DEVICE / 2},
        lambda s: free_level(
            walk(POSITION, s["position"])
            + power_law(POSITION)
            + walk(DEVICE, s["size"])
            + np.eye(12) / s["position × size"]
        ),
    ),
    "no order": (
        {"a": [f"a{v}" for v in POSITION], "b": [f"b{v}" for v in DEVICE]},
        lambda s: free_level(scattered(POSITION, s["a"]) + scattered(DEVICE, s["b"]) + np.eye(12) / s["a × b"]),
    ),
}


def small(kind, seed=0, mean=4):
    table, _, _ = draw(seed, 25, 12, 0.3, mean)
    return replace(counts_of(table, 12), factors=pa.table(KINDS[kind][0])), np.array(table)


def penalised(table, n_factors, prior):
    """log o with mean 0 at the maximum of the log-likelihood - ½ φᵀPφ, by a general optimiser; items profiled too."""
    clicked = np.bincount(table[:, 0], table[:, 3]) > 0
    item, factor, n, c = table[clicked[table[:, 0]]].T
    item = np.unique(item, return_inverse=True)[1]
    items = item.max() + 1
    x = np.zeros((len(item), items + n_factors))
    x[np.arange(len(item)), item] = x[np.arange(len(item)), items + factor] = 1

    def loss(u):
        eta = np.minimum(x @ u, -1e-9)
        p = np.exp(eta)
        pull = prior @ u[items:]
        gradient = x.T @ (c - (n - c) * p / (1 - p))
        gradient[items:] -= pull
        return -(c @ eta + (n - c) @ np.log1p(-p) - u[items:] @ pull / 2), -gradient

    def hessian(u):
        p = np.exp(np.minimum(x @ u, -1e-9))
        out = x.T @ (((n - c) * p / (1 - p) ** 2)[:, None] * x)
        out[items:, items:] += prior
        return out

    start = np.full(items + n_factors, -1.0)
    bounds = LinearConstraint(x, -30, -1e-6)
    start = minimize(loss, start, jac=True, method="SLSQP", constraints=[bounds], options={"maxiter": 2000}).x
    found = minimize(loss, start, jac=True, hess=hessian, method="trust-exact", options={"gtol": 1e-8})
    return found.x[items:] - found.x[items:].mean()


@pytest.mark.parametrize("kind", KINDS)
def test_the_maximum_and_its_errors_are_those_of_the_gaussian_prior(kind):
    """At the chosen strengths. Cells clicked every time are left out: the plain optimiser knows no bounds."""
    counts, table = small(kind, mean=8)
    table = table[table[:, 3] < table[:, 2]]
    counts = replace(counts_of(table, 12), factors=counts.factors)
    model = PBM(prior="smooth", tolerance=1e-7, relevance_prior="none").fit(counts)
    assert model.converged_
    prior = KINDS[kind][1](model.prior_["smooth"])
    log_o = np.log(model.propensity_)
    assert log_o - log_o.mean() == pytest.approx(penalised(table, 12, prior), abs=1e-5)
    item, factor, n, _ = table.T
    p = model.relevance_values_[item] * model.propensity_[factor]
    items = item.max() + 1
    x = np.zeros((len(table), items + 12))
    x[np.arange(len(table)), item] = x[np.arange(len(table)), items + factor] = 1
    information = x.T @ ((n * p / (1 - p))[:, None] * x)
    information[items:, items:] += prior
    reference = model.propensity_.argmax()
    keep = np.flatnonzero((np.diag(information) > 0) & (np.arange(items + 12) != items + reference))
    errors = np.zeros(items + 12)
    errors[keep] = np.sqrt(np.diag(np.linalg.inv(information[np.ix_(keep, keep)])))
    assert model.propensity_log_se_ == pytest.approx(errors[items:], rel=1e-5)
    clicked = model.relevance_values_ > 0
    assert model.relevance_log_se_[clicked] == pytest.approx(errors[:items][clicked], rel=1e-5)


def test_merged_factors_are_drawn_to_their_members_mean():
    """Positions 3 and 7 as one: its neighbours are 2, 4, 6 and 8."""
    counts, table = small("positions", mean=8)
    table = table[table[:, 3] < table[:, 2]]
    counts = counts_of(table, 12)
    model = PBM(prior="smooth", tolerance=1e-7, relevance_prior="none").fit(counts, Merge((3, 7)))
    merged = np.array([0, 1, 2, 3, 4, 5, 6, 3, 7, 8, 9, 10])
    rows = np.zeros((12, 12))
    rows[np.arange(11), merged[:-1]] -= 1
    rows[np.arange(11), merged[1:]] += 1
    rows[np.arange(11), 11] = np.log(np.arange(2, 13) / np.arange(1, 12))
    strengths = model.prior_["smooth"]
    assert strengths is not None
    rows *= strengths["position"] ** 0.5
    rows[11, 11] = 1 / 3
    whole = rows.T @ rows
    prior = whole[:11, :11] - np.outer(whole[:11, 11], whole[11, :11]) / whole[11, 11]
    table = np.stack((table[:, 0], merged[table[:, 1]], *table[:, 2:].T), axis=1)
    expected = penalised(table, 11, prior)[merged]
    log_o = np.log(model.propensity_)
    assert log_o - log_o[0] == pytest.approx(expected - expected[0], abs=1e-5)


def test_sampled_posterior_errors_are_near_the_exact_ones(monkeypatch):
    counts, _ = small("both")
    exact, sampled = (
        PBM(prior="smooth", relevance_prior="none").fit(counts),
        PBM(prior="smooth", relevance_prior="none").fit(counts),
    )
    free = exact.propensity_log_se_ > 0
    assert free.sum() == 11
    monkeypatch.setattr(standard_errors, "DENSE", 0)
    assert sampled.propensity_log_se_[free] == pytest.approx(exact.propensity_log_se_[free], rel=0.2)
    assert sampled.relevance_log_se_ == pytest.approx(exact.relevance_log_se_, rel=0.2, nan_ok=True)


def contexts(seed, sd, factors=200, groups=10, items=6_000, bridges=0.01, mean=3):
    """Groups of contexts that few items join."""
    rng = np.random.default_rng(seed)
    phi = sd * rng.standard_normal(factors)
    o, r = np.exp(phi - phi.max()), rng.uniform(0.3, 0.9, items)
    size = factors // groups
    shown = rng.integers(groups, size=items)[:, None] * size + rng.integers(size, size=(items, 4))
    crossing = rng.random(items) < bridges
    shown[crossing, 0] = rng.integers(factors, size=crossing.sum())
    cells = np.unique(np.stack((np.repeat(np.arange(items), 4), shown.ravel()), axis=1), axis=0)
    n = 1 + rng.poisson(mean, len(cells))
    c = rng.binomial(n, r[cells[:, 0]] * o[cells[:, 1]])
    counts = counts_of(np.column_stack((cells, n, c)), factors)
    return replace(counts, factors=pa.table({"context": [f"c{t}" for t in range(factors)]})), phi


def centred_error(model, phi):
    error = np.log(model.propensity_) - phi
    return float(np.std(error))


@pytest.mark.parametrize("seed", range(3))
def test_a_weakly_joined_log_is_better_off_with_it(seed):
    counts, phi = contexts(seed, 0.3)
    plain, smooth = PBM(relevance_prior="none").fit(counts), PBM(prior="smooth", relevance_prior="none").fit(counts)
    assert plain.converged_
    assert smooth.converged_
    assert centred_error(smooth, phi) < 0.75 * centred_error(plain, phi)


@pytest.mark.parametrize("sd", [0.1, 0.3, 1.0])
def test_strength_is_what_the_world_was_drawn_with(sd):
    counts, _ = contexts(5, sd, bridges=0.5, mean=10)
    found = PBM(prior="smooth", relevance_prior="none").fit(counts).prior_["smooth"]
    assert found is not None
    assert 0.25 < found["context"] * sd**2 < 4


def walk_log(rng, phi, items=150, mean=3):
    """Few clicks: an item under three neighbouring positions."""
    factors = len(phi)
    first = rng.integers(factors - 2, size=items)
    item, factor = np.repeat(np.arange(items), 3), (first[:, None] + np.arange(3)).ravel()
    n = 1 + rng.poisson(mean, len(item))
    c = rng.binomial(n, rng.uniform(0.2, 0.9, items)[item] * np.exp(phi - phi.max())[factor])
    return counts_of(np.stack((item, factor, n, c), axis=1), factors)


def coverage(curve, draws):
    covered = []
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        phi = curve(rng)
        model = PBM(prior="smooth", relevance_prior="none").fit(walk_log(rng, phi))
        assert model.converged_
        error = np.log(model.propensity_) - phi
        error -= error[model.propensity_.argmax()]
        free = model.propensity_log_se_ > 0
        covered.append((np.abs(error) <= 1.96 * model.propensity_log_se_)[free].mean())
    return np.mean(covered)


POWER_LAW = -0.7 * np.log(np.arange(1, 21))


def test_errors_cover_walks_drawn_from_the_prior():
    share = coverage(lambda rng: POWER_LAW + 0.15 * rng.standard_normal(20).cumsum(), 60)
    assert 0.90 < share < 0.98


def test_errors_cover_a_fixed_smooth_curve():
    """A bend that no power law has: 1 / (1 + (k / 8)²). Short of 95%: a smooth estimate is drawn off a bend."""
    share = coverage(lambda _: -np.log1p((np.arange(1, 21) / 8) ** 2), 60)
    assert share > 0.85


def test_components_stay_apart():
    """0–1 and 2–3 are two components; 4 is known from an item without clicks; no click ties 1's share to 5."""
    table = [(0, 0, 40, 20), (0, 1, 40, 10), (1, 2, 40, 6), (1, 3, 40, 12), (2, 0, 9, 0), (2, 4, 9, 0), (0, 5, 9, 0)]
    plain, model = (
        PBM(relevance_prior="none").fit(counts_of(table), allow_unidentified=True),
        PBM(prior="smooth", relevance_prior="none").fit(counts_of(table), allow_unidentified=True),
    )
    assert model.component_.tolist() == plain.component_.tolist()
    assert [model.propensity_[model.component_ == k].max() for k in (0, 1)] == [1, 1]
    assert model.converged_
    assert (model.propensity_ > 0).all()
    assert plain.propensity_[5] == 0
    assert np.isnan(model.propensity_log_se_).tolist() == [False] * 4 + [True, False]
    assert (model.propensity_log_se_ == 0).tolist() == [True, False, False, True, False, False]


def test_the_same_seed_gives_the_same_fit():
    counts, _ = small("both")
    assert (
        PBM(prior="smooth", relevance_prior="none").fit(counts).propensity_
        == PBM(prior="smooth", relevance_prior="none").fit(counts).propensity_
    ).all()


def test_one_factor_needs_no_prior():
    model = PBM(prior="smooth", relevance_prior="none").fit(counts_of([(0, 0, 10, 5), (1, 0, 10, 1)]))
    assert model.prior_ == {"smooth": None, "relevance": None}
    assert model.relevance_values_ == pytest.approx([0.5, 0.1])


@pytest.mark.parametrize("relevance_prior", ["none", "beta"])
def test_a_log_without_clicks(relevance_prior):
    model = PBM(prior="smooth", relevance_prior=relevance_prior).fit(counts_of([(0, 0, 5, 0), (0, 1, 5, 0)]))
    assert model.prior_["relevance"] is None
    assert model.relevance_values_.tolist() == [0]
    assert np.isnan(model.relevance_log_se_).all()


def test_halves_make_the_whole():
    cells = pose(counts_of([(x, t, 1000, 400) for x in range(5) for t in range(4)]), None).cells
    one, other = split_halves(cells, np.random.default_rng(0))
    assert (one.impressions + other.impressions).tolist() == [1000] * 20
    assert (one.clicks + other.clicks).tolist() == [400] * 20
    assert np.abs(one.clicks.astype(float) - 200).max() < 5 * 10
    assert len(np.unique(one.clicks)) > 1


def test_unknown_priors_are_named():
    counts = counts_of([(0, 0, 5, 1)])
    with pytest.raises(EluteError, match="give smooth"):
        PBM(prior="flat", relevance_prior="none").fit(counts)  # type: ignore[arg-type]
    with pytest.raises(EluteError, match="auto, beta"):
        PBM(relevance_prior="gamma").fit(counts)  # type: ignore[arg-type]


def one_item(n, c) -> Cells:
    return Cells(
        np.array([0, len(n)]), np.arange(len(n), dtype=np.int32), np.array(n, np.uint32), np.array(c, np.uint32)
    )


@given(
    st.lists(st.tuples(st.integers(1, 60), st.floats(0, 1), st.floats(0.02, 1)), min_size=1, max_size=4),
    st.floats(0.2, 5),
    st.floats(0.2, 5),
)
@settings(max_examples=25, deadline=None)
def test_posterior_is_what_quadrature_says(cells, a, b):
    n = np.array([row[0] for row in cells])
    c = np.rint(n * [row[1] for row in cells]).astype(int)
    o = np.array([row[2] for row in cells])
    found = posterior(Cells(*one_item(n, c)), o, Beta(a, b), np.array([0]))

    u = np.linspace(-140, 140, 50_001)
    log_r = -np.logaddexp(0, -u)
    log_skip = [np.log1p(-t * np.exp(log_r)) if t < 1 else log_r - u for t in o]
    height = a * log_r + b * (log_r - u) + c.sum() * log_r + c @ np.log(o) + (n - c) @ np.array(log_skip)
    top = height.max()
    moments = [simpson(f * np.exp(height - top), x=u) for f in (np.ones_like(u), np.exp(log_r), log_r, log_r**2)]
    mean_log = moments[2] / moments[0]
    assert found.mean[0] == pytest.approx(moments[1] / moments[0], rel=1e-6)
    assert found.log_variance[0] == pytest.approx(moments[3] / moments[0] - mean_log**2, rel=1e-4)
    assert found.evidence[0] == pytest.approx(np.log(moments[0]) + top - betaln(a, b), abs=1e-6)


@pytest.mark.parametrize(("n", "c"), [(1, 0), (5, 2), (1000, 1000), (10**8, 10**5)])
def test_posterior_in_closed_form_where_all_is_seen(n, c):
    a, b = 0.7, 2.5
    found = posterior(Cells(*one_item([n], [c])), np.ones(1), Beta(a, b), np.array([0]))
    assert found.mean[0] == pytest.approx((a + c) / (a + b + n), rel=1e-7)
    assert found.log_variance[0] == pytest.approx(polygamma(1, a + c) - polygamma(1, a + b + n), rel=1e-4)
    assert found.evidence[0] == pytest.approx(betaln(a + c, b + n - c) - betaln(a, b), rel=1e-7)


def sparse(seed, items, shows=5, a=0.8, b=3.2, factors=10):
    """Every item shown a few times, relevant ones higher up."""
    rng = np.random.default_rng(seed)
    o, r = np.arange(1, factors + 1) ** -0.7, rng.beta(a, b, items)
    place = np.clip(rng.normal(factors * (0.6 - r)[:, None], 3.5, (items, shows)).astype(int), 0, factors - 1)
    click = rng.random((items, shows)) < r[:, None] * o[place]
    code, back = np.unique((np.arange(items)[:, None] * factors + place).ravel(), return_inverse=True)
    n, c = np.bincount(back), np.bincount(back, click.ravel()).astype(int)
    return counts_of(np.stack((code // factors, code % factors, n, c), axis=1), factors), r, o


@pytest.mark.parametrize(("a", "b"), [(0.8, 3.2), (2, 2)])
def test_the_fitted_prior_is_the_one_items_were_drawn_from(a, b):
    counts, _, o = sparse(1, 4_000, shows=30, a=a, b=b)
    found = fit_beta(pose(counts, None).cells, o, np.arange(counts.n_items))
    assert found == pytest.approx((a, b), rel=0.15)


def test_sparse_items_are_better_known_and_propensities_less_biased():
    """Five impressions an item: what maximum likelihood of everything at once makes of it, and what is done instead."""
    of_items, of_factors = [], []
    for seed in range(6):
        counts, r, o = sparse(seed, 8_000)
        pair = PBM(relevance_prior="none").fit(counts), PBM(relevance_prior="beta").fit(counts)
        assert all(model.converged_ for model in pair)
        prior = pair[1].prior_["relevance"]
        assert prior is not None and prior.keys() == {"a", "b"}
        of_items.append([((model.relevance_values_ - r) ** 2).mean() for model in pair] + [r.var()])
        log_o = [np.log(model.propensity_ / o) for model in pair]
        of_factors.append([error - error.mean() for error in log_o])
        assert (pair[1].relevance_values_ < 1).all()
        assert (pair[1].relevance_values_ > 0).all()
    plain, beta, spread = np.mean(of_items, axis=0)
    assert beta < 0.4 * plain
    assert beta < spread
    rmse = np.sqrt(np.mean(np.square(of_factors), axis=(0, 2)))
    assert rmse[1] < rmse[0]
    bias = np.mean(of_factors, axis=0)[:, 0]
    assert bias[0] > 0.05
    assert abs(bias[1]) < 0.05


def test_errors_of_sparse_propensities_cover():
    """Conservative by construction: clicks vary less than the Poisson clicks they are taken for."""
    covered, items = [], []
    for seed in range(10):
        counts, r, o = sparse(seed, 1_500)
        model = PBM(relevance_prior="beta").fit(counts)
        error = np.log(model.propensity_ / o)
        error -= error[model.propensity_.argmax()]
        free = model.propensity_log_se_ > 0
        covered.append((np.abs(error) <= 1.96 * model.propensity_log_se_)[free].mean())
        items.append((np.abs(np.log(model.relevance_values_ / r)) <= 1.96 * model.relevance_log_se_).mean())
    assert np.mean(covered) > 0.92
    assert 0.88 < np.mean(items) < 0.98


@pytest.mark.parametrize("seed", range(3))
def test_conditional_propensities_are_the_maximum(seed):
    table, _, _ = draw(seed, 40, 6, 0.5, 2)
    counts = counts_of(table)
    model = PBM(relevance_prior="beta", tolerance=1e-7).fit(counts)
    shown, clicked = np.zeros((2, 40, 6))
    for item, factor, n, c in table:
        shown[item, factor], clicked[item, factor] = n, c
    kept = clicked.sum(axis=1) > 0

    def loss(phi):
        share = shown[kept] * np.exp(phi)
        total = clicked[kept].sum(axis=1)
        return -(clicked[kept] @ phi).sum() + total @ np.log(share.sum(axis=1))

    best = minimize(loss, np.zeros(6), method="BFGS", options={"gtol": 1e-7}).x
    log_o = np.log(model.propensity_)
    assert log_o - log_o.max() == pytest.approx(best - best.max(), abs=1e-5)
    cells = pose(counts_of([row for row in table if kept[row[0]]], 6), None).cells if kept.all() else None
    if cells is not None:
        assert score(cells, model.propensity_) == pytest.approx(-loss(log_o))


def test_auto_looks_at_the_median_item():
    rare = counts_of([(x, t, 10, 2) for x in range(5) for t in range(2)])
    often = counts_of([(x, t, 10, 3) for x in range(5) for t in range(2)])
    assert PBM(relevance_prior="auto").fit(rare).prior_["relevance"] is not None
    fitted = PBM(relevance_prior="auto").fit(often)
    assert fitted.prior_["relevance"] is None
    assert (fitted.relevance_values_ == PBM(relevance_prior="none").fit(often).relevance_values_).all()


def test_items_beyond_the_clicks_stay_unknown():
    """As without a prior: factor 2 has no finite ratio to 0 and 1, so neither has its item 1."""
    table = [(0, 0, 10, 5), (0, 1, 10, 4), (0, 2, 10, 0), (1, 2, 10, 3), (2, 0, 8, 0), (2, 1, 8, 1)]
    model = PBM(relevance_prior="beta").fit(counts_of(table))
    assert np.isnan(model.propensity_).tolist() == [False, False, True]
    assert np.isnan(model.relevance_values_).tolist() == [False, True, False]
    assert np.isnan(model.relevance_log_se_).tolist() == [False, True, False]
