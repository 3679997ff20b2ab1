"""Known answers on real click logs and on the identifiability paper's own sets."""

from __future__ import annotations

from pathlib import Path

import pytest

import elute
from conftest import call_elute


@pytest.mark.parametrize("components", [1, 2, 3, 4])
def test_the_papers_sets_have_the_components_they_are_named_for(components: int, data: Path) -> None:
    folder = data / "identifiability" / "dataset_fully_simulation" / f"K={components}" / "train"
    fields = call_elute("check", folder, "--item", "doc_id", "--json").json
    assert fields["components"] == components
    assert (fields["impressions"], fields["items"], fields["factors"]) == (11_500, 10_000, 10)
    assert fields["cells"] == (11_100 if components == 4 else 11_000)
    assert fields["clicks"] is None
    sizes = {1: [10], 2: [6, 4], 3: [4, 3, 3], 4: [3, 3, 2, 2]}
    assert fields["component_sizes"] == sizes[components]


def test_the_papers_intervention_connects_its_second_set(data: Path) -> None:
    folder = data / "identifiability" / "dataset_fully_simulation" / "K=2_node_intervention" / "train"
    assert elute.check(elute.read_log(folder, item="doc_id")).recoverable


def test_yandex_by_position(data: Path) -> None:
    outcome = call_elute("check", data / "yandex" / "train.parquet", "--json")
    assert outcome.code == 0
    fields = outcome.json
    expected = {"components": 1, "factors": 10, "items": 1_024, "cells": 2_570, "rankable_queries": 20, "queries": 20}
    assert {name: fields[name] for name in expected} == expected
    assert fields["recoverable"] is True
    assert fields["impressions"] == 350_640


def test_yandex_by_query_and_position(data: Path) -> None:
    outcome = call_elute(
        "check", data / "yandex" / "train.parquet", "--bias", "query_id,position", "--json", "--explore"
    )
    assert outcome.code == 3
    fields = outcome.json
    assert (fields["components"], fields["rankable_queries"], fields["recoverable"]) == (26, 15, False)
    verdicts = {tuple(subset["bias"]): subset["components"] for subset in fields["subsets"]}
    assert verdicts == {("query_id",): 20, ("position",): 1, ("query_id", "position"): 26}
    assert {w["code"] for w in fields["warnings"]} >= {"dominant_query", "items_seen_once", "thin_factors"}
