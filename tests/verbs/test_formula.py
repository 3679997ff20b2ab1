"""A formula for `bias=`: how it is read, the verbs under it, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.table import Table

import elute
from elute.auditing.assumptions.tied.additivity import assess_additivity
from elute.cells.counts import Counts, Membership
from elute.cells.formula import BiasFormula, tie_factors
from elute.cells.roles import resolve_roles
from elute.checking import structures
from elute.checking.check import check as check_structure
from elute.cli.pages.structures import show_structures
from elute.errors import EluteError
from elute.identify.effects.span import TooManyEffects
from elute.known import additivity
from elute.log import as_log
from elute.reporting.sections.assumptions import draw_evidence
from elute.simulation.layouts import DEVICE_EFFECTS, simulate_layouts

ADDITIVE = "position + device + layout"


@pytest.fixture(scope="module")
def layouts() -> pa.Table:
    return simulate_layouts(12_000, 120, 3)


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("position + device", ["position", "device"]),
        ("position+device", ["position", "device"]),
        ("position + device + position:layout", ["position", "device", "position:layout"]),
        ("position * device + layout", ["position", "device", "position:device", "layout"]),
        ("smooth(position) + linear(height)", ["smooth(position)", "linear(height)"]),
        ("device:spline( height )", ["device:spline(height)"]),
        ("a + b + b:a + a:b + a", ["a", "b", "b:a"]),
        ("`odd + name` + b", ["`odd + name`", "b"]),
    ],
)
def test_terms_of_a_formula(text: str, terms: list[str]) -> None:
    found = BiasFormula.parse(text)
    assert [str(term) for term in found.terms] == terms
    assert BiasFormula.parse(str(found)) == found


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("position +", "missing at its end"),
        ("+ position", r"missing before '\+'"),
        ("position + : device", "missing before ':'"),
        ("log(position)", r"no 'log\(…\)'; there are: smooth, linear, spline"),
        ("linear(position", r"'linear\(position' needs one column"),
        ("position + device, layout", "',' has no meaning"),
        ("smooth(position):device", "stands alone"),
        ("linear(a):spline(b)", "two numbers"),
        ("smooth(position) + position", "smooth and something else"),
        ("position device)", r"'\)' is not expected"),
    ],
)
def test_what_is_no_formula_is_refused_in_one_line(text: str, says: str) -> None:
    with pytest.raises(EluteError, match=says) as caught:
        BiasFormula.parse(text)
    assert "\n" not in str(caught.value) and str(caught.value).startswith("`bias=` is")


@pytest.mark.parametrize(
    ("bias", "columns", "formula"),
    [
        ("position,device", ("position", "device"), None),
        ("position * device", ("position", "device"), None),
        ("position*device", ("position", "device"), None),
        ("position + device + position:device", ("position", "device"), None),
        ("position:device", ("position", "device"), None),
        ("p*", ("position",), None),
        ("a+b", ("a+b",), None),
        ("a+b,position", ("a+b", "position"), None),
        (["position", "device"], ("position", "device"), None),
        ("device + position", ("device", "position"), "device + position"),
        (BiasFormula.add("position", "device"), ("position", "device"), "position + device"),
        ("smooth(position)", ("position",), "smooth(position)"),
    ],
)
def test_a_list_of_names_is_no_formula_and_a_product_is_a_list(
    bias: str | list[str] | BiasFormula, columns: tuple[str, ...], formula: str | None
) -> None:
    roles, problems = resolve_roles(["query_id", "doc_id", "position", "device", "a+b", "click"], bias=bias)
    assert not problems and roles.bias == columns
    assert (None if roles.formula is None else str(roles.formula)) == formula


def test_columns_that_are_not_there_are_named(layouts: pa.Table) -> None:
    with pytest.raises(EluteError, match=r"no column 'devise' \(closest: device\)"):
        elute.check(layouts, bias="position + devise")
    with pytest.raises(EluteError, match="'device' holds 'desktop', which is no number"):
        elute.check(layouts, bias="position + linear(device)")


def test_apart_as_a_product_known_as_a_sum(layouts: pa.Table) -> None:
    product, additive = (elute.check(layouts, bias=bias) for bias in ("position,device,layout", ADDITIVE))
    assert product.rung == "apart" and product.components == 10
    assert additive.rung == "known" and additive.components == 1
    fields = additive.to_dict()
    assert fields["effects"]["rank"] == 9 + 2 + 7 == fields["effects"]["rank_possible"]
    assert fields["effects"]["product_components"] == 10 and fields["columns"]["formula"] == ADDITIVE
    assert "effects" not in product.to_dict() and "formula" not in product.to_dict()["columns"]


def test_effects_are_found_saved_and_read_back(layouts: pa.Table, tmp_path: Path) -> None:
    fit = elute.fit(layouts, bias=ADDITIVE)
    fit.save(tmp_path / "fit")
    effects = pq.read_table(tmp_path / "fit" / "effects.parquet")
    assert effects.column_names == [
        "term", "position", "device", "layout", "effect", "log_se", "reference", "determined",
    ]  # fmt: skip
    rows = {(row["term"], row[row["term"]]): row for row in effects.to_pylist()}
    for at, device in enumerate(("desktop", "phone", "tablet")):
        truth = DEVICE_EFFECTS[at] - DEVICE_EFFECTS[0]
        assert abs(rows[("device", device)]["effect"] - truth) <= 4 * rows[("device", device)]["log_se"] + 1e-12
    errors = [row["log_se"] for row in rows.values() if not row["reference"]]
    assert len(rows) == 10 + 3 + 8 and min(errors) > 0.005 and max(errors) < 0.1
    again = elute.Fit.load(tmp_path / "fit")
    assert again.provenance.formula == ADDITIVE and again.effects is not None and again.effects.equals(fit.effects)
    assert elute.judge(tmp_path / "fit").to_dict()["judgments"] > 0


def test_out_of_core_the_fit_and_the_check_are_the_same(layouts: pa.Table, tmp_path: Path) -> None:
    pq.write_table(layouts, tmp_path / "log.parquet")
    inside = elute.fit(str(tmp_path / "log.parquet"), bias=ADDITIVE)
    outside = elute.fit(str(tmp_path / "log.parquet"), bias=ADDITIVE, memory=600_000_000)
    for name in ("propensity", "log_se"):
        one, other = (fit.propensities[name].to_numpy() for fit in (inside, outside) if fit.propensities is not None)
        np.testing.assert_allclose(one, other, rtol=2e-3, atol=1e-5)
    assert inside.effects is not None and outside.effects is not None
    for name in ("effect", "log_se"):
        one, other = (fit.effects[name].to_numpy() for fit in (inside, outside) if fit.effects is not None)
        np.testing.assert_allclose(one, other, rtol=2e-3, atol=1e-4)
    verdict = elute.check(str(tmp_path / "log.parquet"), bias=ADDITIVE, memory=600_000_000)
    assert verdict.rung == "known" and verdict.components == 1


def test_counts_remember_the_formula_and_take_another(layouts: pa.Table, tmp_path: Path) -> None:
    pq.write_table(layouts, tmp_path / "log.parquet")
    elute.count(str(tmp_path / "log.parquet"), tmp_path / "counts", bias="layout + device + position")
    folder = str(tmp_path / "counts")
    assert elute.check(folder).components == 1
    assert elute.check(folder, bias=ADDITIVE).components == 1
    assert elute.check(folder, bias="layout,device,position").components == 10


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda log: elute.fit(log, "em", bias=ADDITIVE), "only pbm fits"),
        (lambda log: elute.fit(log, bias=ADDITIVE, prior="smooth"), r"write smooth\(…\) there"),
        (lambda log: elute.check(log, bias=ADDITIVE, bounds=True), "`bounds=` takes every combination"),
        (lambda log: elute.check(log, bias=ADDITIVE, model="affine"), "`model=` takes every combination"),
        (lambda log: elute.check(log, bias=ADDITIVE, curve=True), "`curve=` takes every combination"),
    ],
)
def test_what_a_formula_does_not_go_with_is_said_at_the_door(
    layouts: pa.Table, call: Callable[[pa.Table], object], says: str
) -> None:
    with pytest.raises(EluteError, match=says) as caught:
        call(layouts)
    assert "\n" not in str(caught.value)


def test_structures_from_the_richest_and_the_one_that_is_proposed(layouts: pa.Table) -> None:
    verdict = elute.check(layouts, bias="position,device,layout", explore=True).to_dict()
    found = {one["formula"]: one for one in verdict["structures"]}
    sizes = [one["effects"] for one in verdict["structures"]]
    assert sizes == sorted(sizes, reverse=True)
    assert (
        not found["position,device,layout"]["recoverable"] and found["position,device,layout"]["contradicted"] is None
    )
    assert found[ADDITIVE]["recoverable"] and found[ADDITIVE]["contradicted"] is False
    for left in ("position + device", "position + layout", "device + layout"):
        assert found[left]["contradicted"]
    assert verdict["proposal"] is not None and found[verdict["proposal"]]["recoverable"]


def test_an_interaction_is_found_where_there_is_one_and_named() -> None:
    steeper = np.zeros((10, 3))
    steeper[:, 1] = -0.5 * np.log(np.arange(1, 11))
    table = simulate_layouts(12_000, 120, 4, steeper)
    verdict = elute.check(table, bias=ADDITIVE, explore=True).to_dict()
    found = {one["formula"]: one for one in verdict["structures"]}
    assert found[ADDITIVE]["contradicted"]
    worst = min(found[ADDITIVE]["tests"], key=lambda test: test["p_value"])
    assert worst["columns"] == ["position", "device"] and worst["distortion"] > 0.05
    assert found[ADDITIVE + " + position:device"]["contradicted"] is False
    phone = [cell for cell in worst["cells"] if "phone" in cell["device"]]
    assert phone and max(abs(cell["log_ratio"]) for cell in phone) > 0.1


def draw_counts(rng: np.random.Generator) -> Counts:
    """A small log with queries; columns that a product of theirs tells apart."""
    items, factors = int(rng.integers(2, 9)), int(rng.integers(2, 8))
    grid = rng.permutation(12)[:factors]
    shown = rng.random((items, factors)) < 0.08
    shown[np.arange(items), rng.integers(factors, size=items)] = True
    shown[rng.integers(items, size=factors), np.arange(factors)] = True
    item, factor = np.nonzero(shown)
    n = rng.integers(1, 20, len(item)).astype(np.uint32)
    c = rng.binomial(n, 0.3).astype(np.uint32)
    table = pa.table({"position": grid // 3, "device": grid % 3})
    query = rng.integers(0, 3, items).astype(np.int32)
    total = np.bincount(item, n, items).astype(np.int64)
    members = Membership(3, query, np.arange(items, dtype=np.int32), total)
    names = pa.table({"query_id": query, "doc_id": np.arange(items)})
    offsets = np.searchsorted(item, np.arange(items + 1)).astype(np.int64)
    return Counts(offsets, factor.astype(np.int32), n, c, table, members, 0.0, lambda: names)


def drop_formula(fields: dict[str, Any]) -> dict[str, Any]:
    """Without what says that there is one."""
    fields = {name: value for name, value in fields.items() if name != "effects"}
    fields["columns"] = {name: value for name, value in fields["columns"].items() if name != "formula"}
    fields["verdict"] = fields["verdict"].replace(" under position:device", "")
    fields["verdict"] = fields["verdict"].replace("that nothing compares", "that no item links")
    return fields


def test_one_effect_a_combination_is_the_check_without_a_formula_field_for_field() -> None:
    """A thousand random logs through the general way."""
    rng = np.random.default_rng(5)
    several = 0
    for _ in range(1_000):
        counts = draw_counts(rng)
        tied = replace(counts, factors=tie_factors(counts.factors, BiasFormula.parse("position:device")))
        plain, formula = (check_structure(as_log(one), target_log_se=None).to_dict() for one in (counts, tied))
        assert drop_formula(formula) == plain
        several += plain["components"] > 1
    assert 100 < several < 900


def test_with_clicks_too_figures_are_those_without_a_formula() -> None:
    rng = np.random.default_rng(6)
    for _ in range(40):
        counts = draw_counts(rng)
        tied = replace(counts, factors=tie_factors(counts.factors, BiasFormula.parse("position:device")))
        plain, formula = (elute.check(one).to_dict() for one in (counts, tied))
        assert formula["rung"] == plain["rung"] and formula["unestimable"] == plain["unestimable"]
        for name, value in plain["precision"].items():
            if isinstance(value, float):
                assert formula["precision"][name] == pytest.approx(value, rel=5e-3, abs=1e-6), name


def test_the_audit_tests_the_formula(layouts: pa.Table) -> None:
    fit = elute.fit(layouts, bias=ADDITIVE)
    found = {
        one["name"]: one for one in elute.audit(fit, layouts, assumptions=True, bias=ADDITIVE).to_dict()["assumptions"]
    }
    assert found["additivity"]["verdict"] == "holds" and found["additivity"]["evidence"]
    assert found["unique fit"]["verdict"] == "holds"


def test_charts_show_the_cells_that_break_additivity() -> None:
    steeper = np.zeros((10, 3))
    steeper[:, 1] = -0.5 * np.log(np.arange(1, 11))
    counts = elute.read_log(simulate_layouts(6_000, 120, 4, steeper), bias=ADDITIVE).counts()
    finding = assess_additivity(counts, BiasFormula.parse(ADDITIVE))
    assert finding.verdict == "rejected" and "position and device" in finding.sentence
    assert "position + device + layout + position:device" in finding.next
    (chart,) = draw_evidence([finding])
    drawn = chart.spec["data"]["values"]
    assert any("device phone" in row["cell"] and row["verdict"] == "off" for row in drawn)


def test_tied_counts_do_not_read_items_again(layouts: pa.Table, tmp_path: Path) -> None:
    """The log that they were read from may be closed by then."""
    pq.write_table(layouts.slice(0, 2_000), tmp_path / "log.parquet")
    with elute.read_log(str(tmp_path / "log.parquet"), bias=ADDITIVE) as log:
        counts = log.counts()
        names = counts.items
    assert counts.tie(None).items is names
    assert counts.tie(BiasFormula.parse(ADDITIVE)) is counts


def test_a_test_of_many_effects_is_that_of_few(layouts: pa.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """Step by step in place of one dense matrix: the same questions, and the same answers."""
    counts = elute.read_log(layouts, bias=ADDITIVE).counts()
    few = assess_additivity(counts, BiasFormula.parse(ADDITIVE))
    monkeypatch.setattr(additivity, "_DENSE", 0)
    many = assess_additivity(counts, BiasFormula.parse(ADDITIVE))
    assert many.verdict == few.verdict and many.p_value == pytest.approx(few.p_value, rel=1e-4)
    for one, other in zip(few.evidence, many.evidence, strict=True):
        assert other["p_value"] == pytest.approx(one["p_value"], rel=1e-4)
        assert {**one, "p_value": None} == {**other, "p_value": None}


def test_a_structure_that_takes_too_long_is_named_and_left_out(
    layouts: pa.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise TooManyEffects("too many effects remain to be told apart")

    monkeypatch.setattr(structures, "join_classes", refuse)
    verdict = elute.check(layouts, bias=ADDITIVE, explore=True)
    found = verdict.to_dict()
    assert {one["note"] for one in found["structures"]} == {"too many effects remain to be told apart"}
    assert found["proposal"] is None and not any(one["recoverable"] for one in found["structures"])
    table = show_structures(verdict.structures or [])[0]
    assert isinstance(table, Table)
    assert {str(cell) for cell in table.columns[-1].cells} == {"not compared: too many effects"}


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
@pytest.mark.usefixtures("spark")
def test_in_spark_the_fit_and_the_check_are_the_same(layouts: pa.Table, tmp_path: Path) -> None:
    path = str(tmp_path / "log.parquet")
    pq.write_table(layouts, path)
    inside, outside = (elute.fit(path, bias=ADDITIVE, engine=engine) for engine in ("duckdb", "spark"))
    assert inside.effects is not None and outside.effects is not None
    for name in ("effect", "log_se"):
        one, other = (fit.effects[name].to_numpy() for fit in (inside, outside) if fit.effects is not None)
        np.testing.assert_allclose(one, other, rtol=2e-3, atol=1e-4)
    own, others = (elute.check(path, bias=ADDITIVE, engine=engine).to_dict() for engine in ("duckdb", "spark"))
    for name in ("effects", "components", "rung", "rankable_queries", "recoverable"):
        assert own[name] == others[name]
