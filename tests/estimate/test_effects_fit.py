"""Fits under a formula: against a general regression, where there is no maximum, and with priors."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_array
from worlds import counts_of

from elute.cells.counts import Counts
from elute.cells.formula import BiasFormula, tie_factors
from elute.errors import EluteError
from elute.estimate.models import tied
from elute.estimate.models.pbm import PBM
from elute.estimate.solve import conditional
from elute.estimate.solve.boundary import NOWHERE, find_parts
from elute.estimate.solve.effect_boundary import find_effect_parts
from elute.estimate.solve.effect_errors import inform_effects
from elute.estimate.solve.laplacian import conjugate_columns, diagonal, grounded_laplacian, multiply_columns
from elute.estimate.solve.problem import pose
from elute.identify.effects.design import build_design
from reference.plain_glm import Table, find_covariance, find_highest_likelihood, is_finite

GRID = [(position, device, layout) for position in range(4) for device in range(3) for layout in range(3)]
FACTORS = pa.table(dict(zip(("position", "device", "layout"), map(list, zip(*GRID, strict=True)), strict=True)))


def draw_world(
    seed: int, items: int, mean: float, cells: int = 4, formula: str = "position + device + layout"
) -> tuple[Table, Counts, NDArray[np.float64]]:
    """An additive world: `cells` factors an item."""
    rng = np.random.default_rng(seed)
    design = build_design(FACTORS, BiasFormula.parse(formula)).matrix.toarray()
    log_o = design @ rng.normal(-0.4, 0.4, design.shape[1])
    o = np.exp(log_o - log_o.max())
    table = []
    for item, r in enumerate(rng.uniform(0.1, 0.9, items)):
        for factor in sorted(rng.choice(len(GRID), cells, replace=False).tolist()):
            n = 1 + int(rng.poisson(mean))
            table.append((item, factor, n, int(rng.binomial(n, r * o[factor]))))
    return table, tie(counts_of(table, len(GRID)), formula), o


def tie(counts: Counts, formula: str) -> Counts:
    return replace(counts, factors=tie_factors(FACTORS, BiasFormula.parse(formula)))


@pytest.mark.parametrize(
    "formula", ["position + device + layout", "position + device:layout", "linear(position) + device"]
)
@pytest.mark.parametrize(("seed", "mean"), [(0, 30), (1, 4), (2, 1)])
def test_a_general_optimiser_finds_no_higher_likelihood(formula: str, seed: int, mean: float) -> None:
    table, counts, _ = draw_world(seed, 14, mean)
    model = PBM(relevance_prior="none").fit(tie(counts, formula), allow_unidentified=True)
    design = build_design(FACTORS, BiasFormula.parse(formula)).matrix.toarray()
    best = max(find_highest_likelihood(table, design, start) for start in range(3))
    assert model.log_likelihood_ >= best - 1e-5
    assert model.log_likelihood_ <= best + 2e-3


@pytest.mark.parametrize("formula", ["position + device + layout", "spline(position) + device:layout"])
def test_errors_are_those_of_the_whole_information_matrix(formula: str) -> None:
    table, counts, _ = draw_world(3, 40, 60, formula=formula)
    model = PBM(relevance_prior="none").fit(counts)
    assert model.converged_
    design = build_design(FACTORS, BiasFormula.parse(formula)).matrix.toarray()
    covariance = find_covariance(table, design, model.relevance_values_, model.propensity_)
    items = counts.n_items
    reference = int(np.flatnonzero(model.propensity_ == 1)[0])
    for factor, error in enumerate(model.propensity_log_se_):
        row = np.concatenate((np.zeros(items), design[factor] - design[reference]))
        assert error == pytest.approx(np.sqrt(max(float(row @ covariance @ row), 0.0)), rel=1e-5, abs=1e-7)
    for item, error in enumerate(model.relevance_log_se_):
        row = np.concatenate((np.eye(items)[item], design[reference]))
        assert error == pytest.approx(np.sqrt(row @ covariance @ row), rel=1e-5)


def test_effects_add_up_to_propensities_and_have_the_errors_of_their_contrasts() -> None:
    table, counts, _ = draw_world(4, 60, 40)
    model = PBM(relevance_prior="none").fit(counts)
    effects = model.effects_
    assert effects is not None
    by = {(row["term"], row[row["term"]]): row for row in effects.to_pylist()}
    total = np.array(
        [
            sum(by[(name, value)]["effect"] for name, value in zip(FACTORS.column_names, row, strict=True))
            for row in GRID
        ]
    )
    log_o = np.log(model.propensity_)
    np.testing.assert_allclose(total - total[0], log_o - log_o[0], atol=1e-8)
    design = build_design(FACTORS, BiasFormula.add(*FACTORS.column_names)).matrix.toarray()
    covariance = find_covariance(table, design, model.relevance_values_, model.propensity_)
    ends = GRID.index((0, 0, 0)), GRID.index((3, 0, 0))
    row = np.concatenate((np.zeros(counts.n_items), design[ends[1]] - design[ends[0]]))
    error = np.sqrt(row @ covariance @ row)
    reference, other = by[("position", 0)], by[("position", 3)]
    assert reference["reference"] and reference["effect"] == 0 and reference["log_se"] == 0
    assert other["determined"] and other["log_se"] == pytest.approx(error, rel=1e-5)


def test_one_effect_a_combination_is_the_fit_without_a_formula() -> None:
    """The general way, on a formula that says no more than commas."""
    _, counts, _ = draw_world(5, 80, 20, cells=5)
    plain = replace(counts, factors=FACTORS)
    for prior in ("none", "beta"):
        free = PBM(relevance_prior=prior).fit(plain, allow_unidentified=True)
        tied = PBM(relevance_prior=prior).fit(tie(counts, "position:device:layout"), allow_unidentified=True)
        np.testing.assert_allclose(tied.propensity_, free.propensity_, rtol=1e-4)
        np.testing.assert_allclose(tied.propensity_log_se_, free.propensity_log_se_, rtol=1e-3)
        np.testing.assert_allclose(tied.relevance_log_se_, free.relevance_log_se_, rtol=1e-3)
        assert np.array_equal(tied.component_, free.component_)


def test_parts_are_what_linear_programmes_say() -> None:
    """Of small tables with few clicks; factors without a click too, which effects may still determine."""
    rng = np.random.default_rng(6)
    grid = [(a, b) for a in range(3) for b in range(2)]
    factors = pa.table({"a": [a for a, _ in grid], "b": [b for _, b in grid]})
    seen = {"finite": 0, "not": 0, "without a click": 0}
    for formula, _ in product(("a + b", "a:b", "linear(a) + b"), range(60)):
        table: Table = []
        for item in range(int(rng.integers(2, 6))):
            for factor in sorted(rng.choice(6, int(rng.integers(1, 4)), replace=False).tolist()):
                table.append((item, factor, 3, int(rng.choice([0, 0, 0, 1, 2]))))
        counts = replace(counts_of(table, 6), factors=tie_factors(factors, BiasFormula.parse(formula)))
        design = build_design(factors, BiasFormula.parse(formula))
        of_factor, _, _ = find_effect_parts(pose(counts, None).cells, design)
        clicked = {item for item, _, _, c in table if c}
        informed = [row for row in table if row[0] in clicked]
        if not informed:
            continue
        dense = design.matrix.toarray()
        has_click = {factor for _, factor, _, c in table if c}
        for s, t in combinations(range(6), 2):
            finite = is_finite(informed, dense, s, t)
            if of_factor[s] != NOWHERE and of_factor[t] != NOWHERE:
                assert finite == (of_factor[s] == of_factor[t]), (formula, table, s, t)
                seen["finite" if finite else "not"] += 1
                seen["without a click"] += finite and not {s, t} <= has_click
            elif of_factor[s] != of_factor[t]:
                assert not finite
    assert min(seen.values()) > 20, seen


def test_parts_of_one_effect_a_factor_are_strong_parts() -> None:
    rng = np.random.default_rng(7)
    for _ in range(80):
        table = [
            (item, factor, 2, int(rng.choice([0, 0, 1])))
            for item in range(6)
            for factor in sorted(rng.choice(36, int(rng.integers(1, 4)), replace=False).tolist())
        ]
        counts = counts_of(table, 36)
        cells = pose(counts, None).cells
        of_factor, of_item, _ = find_effect_parts(
            cells, build_design(FACTORS, BiasFormula.parse("position:device:layout"))
        )
        strong, strong_item = find_parts(cells, 36)
        for found, expected in ((of_factor, strong), (of_item, strong_item)):
            assert np.array_equal(found == NOWHERE, expected == NOWHERE)
            inside = np.flatnonzero(found != NOWHERE)
            for a, b in combinations(inside, 2):
                assert (found[a] == found[b]) == (expected[a] == expected[b])


def test_information_in_effects_is_the_design_around_the_laplacian() -> None:
    _, counts, _ = draw_world(8, 30, 10)
    rng = np.random.default_rng(8)
    w = rng.uniform(0, 3, counts.n_cells)
    x = build_design(FACTORS, BiasFormula.parse("position + spline(position):device")).matrix
    laplacian = grounded_laplacian(counts.offsets, counts.factor, w, np.arange(36, dtype=np.int32), 36)
    np.testing.assert_allclose(
        inform_effects(counts.offsets, counts.factor, w, csr_array(x)), x.T @ laplacian @ x.toarray(), atol=1e-9
    )


def test_a_factor_without_a_click_has_the_propensity_that_its_effects_give() -> None:
    _, counts, o = draw_world(9, 400, 200)
    quiet = int(np.argmin(o))
    clicks = np.where(counts.factor == quiet, 0, counts.clicks).astype(np.uint32)
    few = np.where(counts.factor == quiet, 1, counts.impressions).astype(np.uint32)
    model = PBM().fit(replace(counts, clicks=clicks, impressions=few))
    assert model.propensity_[quiet] == pytest.approx(o[quiet], rel=0.1)
    assert 0 < model.propensity_log_se_[quiet] < 0.1


def test_a_level_without_a_click_has_propensity_zero() -> None:
    _, counts, o = draw_world(10, 400, 100)
    last = np.array([position == 3 for position, _, _ in GRID])
    clicks = np.where(last[counts.factor], 0, counts.clicks).astype(np.uint32)
    model = PBM(relevance_prior="none").fit(replace(counts, clicks=clicks))
    assert (model.propensity_[last] == 0).all() and np.isnan(model.propensity_log_se_[last]).all()
    others = ~last
    np.testing.assert_allclose(model.propensity_[others] / o[others] * o[others].max(), 1, atol=0.2)


def test_smooth_terms_are_drawn_together_and_others_are_not() -> None:
    formula = "smooth(position) + device + layout"
    _, counts, _ = draw_world(11, 60, 1)
    rough = PBM().fit(counts, allow_unidentified=True)
    smooth = PBM().fit(tie(counts, formula), allow_unidentified=True)
    assert set(smooth.prior_["smooth"] or {}) == {"position"} and rough.prior_["smooth"] is None
    assert np.isfinite(smooth.propensity_log_se_).all()
    assert np.nanmean(smooth.propensity_log_se_) < np.nanmean(rough.propensity_log_se_)
    with pytest.raises(EluteError, match="smooth"):
        PBM(prior="smooth").fit(tie(counts, formula))


def test_the_posterior_of_smooth_terms_has_the_information_of_clicks_and_prior() -> None:
    """Errors against the inverse of the whole posterior precision over items, effects and the prior's exponent."""
    formula = "smooth(position) + device + layout"
    table, counts, _ = draw_world(12, 50, 20)
    model = PBM(relevance_prior="none").fit(tie(counts, formula))
    strength = (model.prior_["smooth"] or {})["position"]
    design = build_design(FACTORS, BiasFormula.parse(formula)).matrix.toarray()
    items, size = counts.n_items, design.shape[1]
    precision = np.zeros((items + size + 1,) * 2)
    for item, factor, n, _ in table:
        p = model.relevance_values_[item] * model.propensity_[factor]
        row = np.concatenate((np.eye(items)[item], design[factor], [0.0]))
        precision += n * p / (1 - p) * np.outer(row, row)
    levels = [np.concatenate((np.zeros(items), design[GRID.index((k, 0, 0))] - design[0], [0.0])) for k in range(4)]
    for k in range(3):
        row = levels[k + 1] - levels[k]
        row[-1] = np.log((k + 2) / (k + 1))
        precision += strength * np.outer(row, row)
    precision[-1, -1] += 1 / 9
    covariance = np.linalg.pinv(precision, rcond=1e-13)
    reference = int(np.flatnonzero(model.propensity_ == 1)[0])
    for factor, error in enumerate(model.propensity_log_se_):
        row = np.concatenate((np.zeros(items), design[factor] - design[reference], [0.0]))
        assert error == pytest.approx(np.sqrt(max(float(row @ covariance @ row), 0.0)), rel=1e-5, abs=1e-7)


def test_effects_of_curves_slopes_and_joint_levels_are_contrasts_of_propensities() -> None:
    formula = "spline(position) + device:layout"
    _, counts, _ = draw_world(13, 60, 60, formula=formula)
    model = PBM(relevance_prior="none").fit(counts)
    log_o = np.log(model.propensity_)
    effects = model.effects_
    assert effects is not None and effects.num_rows == 4 + 9
    rows = effects.to_pylist()
    home = next(row for row in rows if row["term"] == "device:layout" and row["reference"])
    for row in rows:
        assert row["determined"] and (row["effect"] == 0) == row["reference"]
        if row["term"] == "device:layout":
            here, there = (GRID.index((0, one["device"], one["layout"])) for one in (row, home))
        else:
            here, there = GRID.index((row["position"], 1, 1)), GRID.index((0, 1, 1))
        assert row["effect"] == pytest.approx(log_o[here] - log_o[there], abs=1e-8)
    sloped = PBM(relevance_prior="none").fit(tie(counts, "linear(position) + device")).effects_
    assert sloped is not None
    slope = sloped.to_pylist()[0]
    assert slope["term"] == "linear(position)" and slope["position"] is None and slope["log_se"] > 0


def test_errors_of_effects_that_are_drawn_are_near_those_that_are_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    _, counts, _ = draw_world(4, 60, 40)
    exact = PBM(relevance_prior="none").fit(counts).effects_
    monkeypatch.setattr(tied, "DENSE", 0)
    model = PBM(relevance_prior="none").fit(counts)
    drawn = model.effects_
    assert exact is not None and drawn is not None
    assert drawn.drop(["log_se"]).equals(exact.drop(["log_se"]))
    reference = exact["reference"].to_numpy()
    ratio = drawn["log_se"].to_numpy()[~reference] / exact["log_se"].to_numpy()[~reference]
    assert (drawn["log_se"].to_numpy()[reference] == 0).all()
    assert len(ratio) > 6 and np.abs(np.log(ratio)).max() < 0.2 and np.abs(np.log(ratio)).max() > 1e-6
    np.testing.assert_allclose(drawn["log_se"].to_numpy(), exact["log_se"].to_numpy(), rtol=0.2)


def test_columns_solved_side_by_side_are_solved_as_each_by_itself() -> None:
    """Also where one of them is 0, or has no more than the null space to solve for."""
    _, counts, _ = draw_world(9, 30, 10, cells=3)
    rng = np.random.default_rng(0)
    n, w = counts.n_factors, rng.gamma(1.0, 1.0, counts.n_cells)
    cells = counts.offsets, counts.factor, w
    dense = grounded_laplacian(*cells, np.arange(n, dtype=np.int32), n)
    b = dense @ np.stack([rng.standard_normal(n), np.zeros(n), np.ones(n), rng.standard_normal(n)], axis=1)
    np.testing.assert_allclose(multiply_columns(*cells, b), dense @ b, atol=1e-9)
    found = conjugate_columns(lambda v: multiply_columns(*cells, v), b, diagonal(*cells, n), 1e-14, 1_000)
    np.testing.assert_allclose(dense @ found, b, atol=1e-6)
    assert not found[:, 1].any()


def test_a_step_too_far_for_floating_point_is_no_error_and_not_taken() -> None:
    cells = pose(draw_world(9, 30, 10, cells=3)[1], None).cells
    n = len(GRID)
    for log_o, finite in ((-2_000.0, False), (0.0, True)):
        room = np.empty(len(cells.factor)), np.empty(n), np.empty(n)
        assert np.isfinite(conditional.linearise(*cells, np.full(n, log_o), *room)) == finite
