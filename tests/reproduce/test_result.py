"""Verdicts, and the page made of them."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest

from elute.errors import EluteError
from elute.reporting.charts import specs
from elute_reproduce import page
from elute_reproduce.result import Claim, ComparedValue, Published, Reproduction, StudyFigure
from elute_reproduce.studies import STUDIES, module_name, reproduce
from elute_reproduce.study import Study


def value(measured, published=None, metric="MCC", **more):
    return ComparedValue({"method": "DLA", "metric": metric}, measured, published, **more)


def test_without_spread_only_rounding_is_forgiven():
    assert value((0.5211, 0.5209), Published(0.521)).passed
    assert not value((0.525, 0.525), Published(0.521)).passed


def test_with_spread_two_standard_errors_of_the_difference_are():
    near = value((0.6, 0.8, 0.7, 0.9), Published(0.80, 0.1, runs=10))
    assert near.tolerance == pytest.approx(2 * (0.1**2 / 10 + near.sd**2 / 4) ** 0.5)
    assert near.passed
    assert not value((0.6, 0.8, 0.7, 0.9), Published(0.95, 0.1, runs=10)).passed


def test_a_bound_and_an_unpublished_value():
    assert value((1e-9,), Published(1e-8), at_most=True).passed
    assert value((2e-8,), Published(1e-8), at_most=True).passed is False
    assert value((0.3,)).passed is None
    assert value((), Published(0.3)).passed is None


@pytest.fixture
def result():
    rows = [{"position": 1, "curve": "a", "o": 1.0, "low": 0.9, "high": 1.1}, {"position": 2, "curve": "b", "o": 0.5}]
    figures = (
        StudyFigure("lines", "Lines", specs.lines(rows, x="position", y="o", series="curve", low="low", high="high")),
        StudyFigure("boxes", "Boxes", specs.boxes(rows, x="position", y="o", series="curve", log_y=True)),
        StudyFigure("both", "Both", specs.place_side_by_side(*[specs.bars(rows, x="curve", y="o")] * 2)),
    )
    compared = [
        value((0.521,), Published(0.521)),
        value((0.9,), Published(0.82), "nDCG"),
        value((0.4, 0.6), metric="other"),
        value((), Published(0.7, 0.01), "elsewhere"),
    ]
    claims = [Claim("It holds.", True, "1 > 0"), Claim("It does not.", False, "0 > 1")]
    return Reproduction(
        "toy", "A toy", "Nobody, 2024", ["one run"], compared, claims, figures, ["So it is."], "elute x"
    )


def test_the_page_shows_both_values_and_every_verdict(result, tmp_path):
    text = page.write(tmp_path, result).read_text()
    assert "| DLA | 0.521<br>0.521 ✓ | 0.900<br>0.820 ✗ | 0.500 ± 0.100 | 0.700 ± 0.010 |" in text
    assert "| It holds. | 1 > 0 | ✓ |" in text
    assert "| It does not. | 0 > 1 | ✗ |" in text
    for figure in result.figures:
        assert f"img/toy-{figure.name}.svg" in text
        drawn = ElementTree.parse(tmp_path / "img" / f"toy-{figure.name}.svg")  # noqa: S314 - written just now
        assert sum(1 for _ in drawn.iter("{http://www.w3.org/2000/svg}path")) > 3


def test_json_counts_verdicts(result):
    fields = json.loads(json.dumps(result.to_dict()))
    assert (fields["passed"], fields["failed"]) == (2, 2)
    assert [entry["passed"] for entry in fields["compared"]] == [True, False, None, None]
    assert (fields["compared"][3]["measured"], fields["compared"][3]["published"]) == (None, 0.7)


def test_unknown_names_and_missing_data_are_refused(tmp_path):
    with pytest.raises(EluteError, match="no reproduction 'table9'; there are: identifiability-table1"):
        reproduce("table9", Study())
    with pytest.raises(EluteError, match="pass `data=`, the folder"):
        reproduce("identifiability-figure6", Study())
    with pytest.raises(EluteError, match="no set 'K=2' below"):
        reproduce("identifiability-table1", Study(tmp_path))


@pytest.mark.parametrize("name", STUDIES)
def test_every_study_has_its_module(name):
    from importlib import import_module

    assert callable(import_module(module_name(name)).run)
