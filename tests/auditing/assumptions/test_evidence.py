"""What findings rest on: lines against a general optimiser, names of groups and flat directions, shapes, charts."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import least_squares
from worlds import counts_of
from worlds import draw as draw_table

import elute
from elute.auditing.assumptions import assess_assumptions
from elute.auditing.assumptions import linear as linear_module
from elute.auditing.assumptions.affine import assess_affine
from elute.auditing.assumptions.groups import Groups, assess_groups, read_groups
from elute.auditing.assumptions.labels import assess_labels
from elute.auditing.assumptions.linear import assess_linear, find_offsets
from elute.auditing.assumptions.lines import fit_best_line
from elute.auditing.assumptions.null import Drawing, fit_null
from elute.auditing.assumptions.ratios import find_differences
from elute.auditing.assumptions.shape import classify_shape, list_factors
from elute.auditing.assumptions.unique import assess_unique
from elute.cells.counts import Clustered
from elute.estimate.models.pbm import PBM
from elute.reporting.charts.render import render_svg
from elute.reporting.sections.assumptions import draw_evidence
from elute.simulation.users import trust_bias
from elute_reproduce.limits.worlds import draw

FAST = Drawing(0, 19)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.floats(-2, 4), st.floats(-0.5, 0.5))
def test_the_best_line_is_that_of_a_general_optimiser(seed, slope, intercept):
    """All coordinates of all points as parameters, and the standard error from its Jacobian."""
    rng = np.random.default_rng(seed)
    sx, sy = rng.uniform(0.01, 0.05, (2, 12))
    true = np.linspace(0, 1, 12)
    x, y = true + sx * rng.normal(size=12), intercept + slope * true + sy * rng.normal(size=12)

    def residuals(z):
        return np.concatenate(((x - z[2:]) / sx, (y - z[0] - z[1] * z[2:]) / sy))

    best = least_squares(residuals, np.concatenate(([intercept, slope], x)), xtol=1e-14, ftol=1e-14, gtol=1e-14)
    found = fit_best_line(x, y, sx**2, sy**2)
    assert (found.intercept, found.slope) == pytest.approx(tuple(best.x[:2]), abs=2e-5)
    assert found.se == pytest.approx(np.sqrt(np.linalg.inv(best.jac.T @ best.jac)[0, 0]), rel=0.02)


def test_the_offset_of_trust_is_estimated():
    """Position 1 against the others: the intercept of the true lines is β₁ - α₁/α_t·β_t."""
    log = draw("trust", 6_000, np.random.default_rng(1))
    alpha, beta = trust_bias()
    seen = [at for at in find_offsets(fit_null(log.counts)) if at.a == 0]
    assert len(seen) == 5
    for at in seen:
        truth = beta[0] - alpha[0] / alpha[at.b] * beta[at.b]
        assert abs(at.line.intercept - truth) < 4 * at.line.se + 0.01
        assert at.p_value < 0.001


def test_groups_go_by_their_values_in_a_fixed_order():
    rng = np.random.default_rng(0)
    n = 4_000
    device = rng.choice(["tablet", "phone", "desktop"], n, p=[0.2, 0.4, 0.4])
    position = rng.integers(1, 3, n)
    o = np.where(position == 1, 1.0, np.where(device == "phone", 0.2, 0.8))
    table = pa.table(
        {
            "query_id": rng.integers(0, 5, n),
            "doc_id": rng.integers(0, 3, n),
            "position": position,
            "device": device,
            "click": (rng.random(n) < 0.8 * o).astype(np.int8),
        }
    )
    with elute.read_log(table) as log:
        counts = log.counts()
        groups = read_groups(counts, "device")
        finding = assess_groups(counts, groups, Drawing(0, 39))
    assert groups.names == ["desktop", "phone", "tablet"]
    assert isinstance(groups.codes, Clustered)
    shown = np.bincount(groups.codes.cluster, groups.codes.impressions)
    assert shown.tolist() == [np.sum(device == name) for name in groups.names]
    assert finding.verdict == "rejected"
    assert "device desktop, phone and tablet" in finding.sentence
    assert "phone" in (finding.evidence[0]["first"], finding.evidence[0]["second"])


def test_factors_that_a_group_does_not_link_are_not_compared():
    """Group 0 links factors 0–1 and 2–3 apart: a ratio of 0 to 2 is known to group 1 alone."""
    table = [(x, 2 * (x % 2) + t, 900, 300 + 40 * t + x) for x in range(12) for t in range(2)]
    table += [(12 + x, t, 900, 300 + 50 * t + x) for x in range(12) for t in range(4)]
    base = fit_null(counts_of(table))
    found = find_differences(base, (base.items >= 12).astype(np.int64))
    assert {(d.a, d.b) for d in found} == {(0, 1), (2, 3)}


def test_only_the_most_clicked_of_very_many_factors_are_tested(monkeypatch):
    counts = counts_of(draw_table(2, 80, 9, 0.7, 300)[0])
    monkeypatch.setattr(linear_module, "LARGEST", 4)
    base = fit_null(counts)
    clicks = np.bincount(base.cells.factor, base.cells.clicks)
    most = {f"position {t}" for t in np.argsort(-clicks)[:4]}
    finding = assess_linear(base, counts.factors, FAST)
    assert finding.verdict in ("holds", "rejected")
    assert "among the 4 most clicked of 9 factors" in finding.sentence
    assert {row["factor"] for row in finding.factors} == most - {finding.factors[0]["against"]}


def test_flat_directions_by_name():
    """Section 6.1 of the paper: C and D, ranks 3 and 4, up to one scale."""
    table = [(0, 0, 9_000), (1, 1, 6_400), (2, 2, 4_000), (3, 3, 500), (1, 0, 8_000), (0, 1, 7_200)]
    table += [(3, 2, 2_000), (2, 3, 1_000)]
    counts = counts_of([(x, t, 10_000, c) for x, t, c in table])
    fit = PBM(tolerance=1e-10, relevance_prior="none").fit(counts, allow_unidentified=True)
    finding = assess_unique(counts, fit.relevance_values_, fit.propensity_)
    (row,) = finding.evidence
    assert row["example_items"] == [{"doc_id": 2}, {"doc_id": 3}]
    assert row["example_factors"] == [{"position": 2}, {"position": 3}]
    assert "doc_id 2 from 0.4 to 1; doc_id 3 from 0.2 to 0.5" in row["sentence"]
    assert "position 2 from 0.4 to 1; position 3 from 0.1 to 0.25" in row["sentence"]
    linked = counts_of([(x, t, 10_000, c) for x, t, c in [*table, (2, 1, 3_200)]])
    fit = PBM(relevance_prior="none").fit(linked, allow_unidentified=True)
    assert assess_unique(linked, fit.relevance_values_, fit.propensity_).verdict == "holds"


@pytest.mark.parametrize(("world", "overall", "first"), [("pbm", "linear", "linear"), ("trust", "affine", "affine")])
def test_shapes(world, overall, first):
    log = draw(world, 600, np.random.default_rng(0))
    base = fit_null(log.counts)
    found = classify_shape([assess_linear(base, log.counts.factors, FAST), assess_affine(log.counts, base.o, FAST)])
    assert (found.overall, found.factors["position 1"]) == (overall, first)
    assert len(found.factors) == 6
    assert f"{first} under positions 1 to" in found.sentence


def test_factors_are_listed_as_runs():
    of = [f"position {number}" for number in (9, 1, 3, 4, 5, 12)]
    assert list_factors(of) == "positions 1, 3 to 5, 9, 12"
    assert list_factors(["position 4"]) == "position 4"
    assert list_factors([f"grid {number}" for number in range(1, 30, 2)]) == "grid 1, 3, 5, 7, 9 and 10 more"
    assert list_factors([f"position {number}, device tv" for number in range(7)]).endswith("4, device tv and 2 more")
    assert list_factors([]) == ""


def test_a_choice_has_no_shape_that_can_be_corrected():
    log = draw("plackett-luce", 2_000, np.random.default_rng(0))
    base = fit_null(log.counts)
    found = classify_shape([assess_linear(base, log.counts.factors, FAST), assess_affine(log.counts, base.o, FAST)])
    assert found.overall == "neither"
    assert "neither" in found.factors.values()


def test_grades_are_told_from_probabilities():
    counts = counts_of([(x, 0, 900, 60 + 40 * 2 ** (x % 4) + x) for x in range(40)])
    grades = assess_labels(counts, np.arange(40) % 4)
    assert grades.verdict == "rejected"
    assert grades.next.startswith("These labels are grades")
    assert "Theorem 5.5" in assess_labels(counts, np.arange(40) % 4 / 3).next
    assert assess_labels(counts, 2.0 ** (np.arange(40) % 4)).verdict == "holds"


def test_points_of_a_panel_are_click_rates():
    counts = counts_of([(x, t, 100, 10 + x + 20 * t) for x in range(12) for t in range(2)])
    (panel,) = assess_linear(fit_null(counts), counts.factors, FAST).panels
    assert panel.title == "position 0 against position 1"
    rates = sorted((point["x"], point["y"]) for point in panel.points)
    assert rates == [((30 + x) / 100, (10 + x) / 100) for x in range(12)]
    assert panel.points[0]["impressions"] == 200


def test_charts_of_all_the_evidence():
    log = draw("plackett-luce", 600, np.random.default_rng(0))
    found = assess_assumptions(
        log.counts,
        PBM(relevance_prior="none").fit(log.counts, allow_unidentified=True),
        groups=log.groups,
        labels=log.relevance,
        replicates=19,
    )
    charts = draw_evidence(found)
    assert len({chart.title for chart in charts}) == len(charts) == 6
    for chart in charts:
        assert chart.caption
        assert chart.reading
        json.dumps(chart.spec, allow_nan=False)
    pytest.importorskip("vl_convert")
    for chart in charts:
        assert render_svg(chart.spec).startswith("<svg")
    assert render_svg(charts[-1].spec).count('aria-roledescription="circle"') >= 10


def test_no_evidence_no_charts():
    counts = counts_of([(x, t, 90, 0) for x in range(4) for t in range(3)])
    assert (
        draw_evidence(
            assess_assumptions(counts, PBM(relevance_prior="none").fit(counts, allow_unidentified=True), replicates=19)
        )
        == []
    )


def test_groups_without_names_go_by_code():
    assert Groups("device", np.zeros(3, np.int64)).name(2) == "2"
