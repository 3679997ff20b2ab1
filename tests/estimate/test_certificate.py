"""The certificate against dense resistances, and where a graph hangs by a thread."""

from __future__ import annotations

import json

import numpy as np
import pytest
from worlds import Merge, counts_of, draw

from conftest import call_elute
from elute.estimate.inference.certificate import certify
from elute.estimate.models.pbm import PBM
from elute.identify.information import information
from reference.dense_resistance import laplacian, pseudo_inverse


def two_groups(seed=0, bridge=40):
    """Positions 0 to 3 and 4 to 7, each group seen by many items; one item alone was shown in both."""
    rng = np.random.default_rng(seed)
    rows = []
    for item in range(80):
        own = range(4) if item % 2 else range(4, 8)
        for position in own:
            n = 200
            rows.append((item, position, n, rng.binomial(n, 0.5 / (1 + 0.3 * position))))
    return [*rows, (0, 3, bridge, bridge // 4)]


def test_the_one_item_that_holds_a_graph_together_is_the_weakest_link():
    counts = counts_of(two_groups())
    found = certify(counts)
    assert found.estimable
    weakest = found.links[0]
    assert {weakest.a["position"], weakest.b["position"]} & {3}
    assert weakest.a["position"] < 4 <= weakest.b["position"]
    assert weakest.items == 1
    assert weakest.resistance > 5 * found.links[1].resistance
    assert len(found.links) == 7


@pytest.mark.parametrize("seed", range(3))
def test_resistances_are_those_of_the_dense_inverse(seed):
    counts = counts_of(draw(seed, 60, 8, 0.3, 60)[0])
    fit = PBM(relevance_prior="none").fit(counts)
    p = fit.relevance_values_[np.repeat(np.arange(counts.n_items), np.diff(counts.offsets))]
    w = information(counts.impressions, p * fit.propensity_[counts.factor])
    inverse = pseudo_inverse(laplacian(counts.offsets, counts.factor, w, counts.n_factors), np.zeros(8, np.int64))
    found = certify(counts)
    assert found.log_se == pytest.approx(fit.propensity_log_se_, nan_ok=True)
    assert len(found.links) == 7
    for link in found.links:
        s, t = link.a["position"], link.b["position"]
        assert link.resistance == pytest.approx(inverse[s, s] + inverse[t, t] - 2 * inverse[s, t], rel=1e-4)
        shared = {i for i in range(counts.n_items) if {s, t} <= set(_factors_with_clicks(counts, w, i))}
        assert link.items == len(shared)


def _factors_with_clicks(counts, w, item):
    own = slice(counts.offsets[item], counts.offsets[item + 1])
    return counts.factor[own][w[own] > 0].tolist()


def test_more_impressions_on_the_bridge_strengthen_it():
    few, many = (certify(counts_of(two_groups(bridge=bridge))).links[0].resistance for bridge in (40, 4000))
    assert many < few / 5


def test_without_the_bridge_there_is_no_link_across_and_a_merge_plan_makes_one():
    counts = counts_of(two_groups()[:-1])
    apart = certify(counts)
    assert {link.a["position"] // 4 == link.b["position"] // 4 for link in apart.links} == {True}
    assert len(apart.links) == 6
    merged = certify(counts, Merge((3, 4)))
    assert merged.component.max() == 0
    assert np.isfinite(merged.log_se).all()


def test_the_command_line(demo_logs, tmp_path):
    done = call_elute("check", demo_logs / "sound.parquet", "--precision", "--json")
    certificate = done.json["certificate"]
    assert done.code == 0
    assert [factor["position"] for factor in certificate["factors"]] == list(range(1, 11))
    assert certificate["factors"][0]["log_propensity_se"] == 0
    assert all(0 < factor["log_propensity_se"] < 0.2 for factor in certificate["factors"][1:])
    links = certificate["weakest_links"]
    assert len(links) == 9
    assert set(links[0]) == {"a", "b", "items", "resistance"}
    assert [link["resistance"] for link in links] == sorted((link["resistance"] for link in links), reverse=True)
    page = call_elute("check", demo_logs / "sound.parquet", "--precision")
    assert "weakest links" in page.out
    broken = call_elute("check", demo_logs / "broken.parquet", "--precision", "--json")
    assert broken.code == 3
    assert {factor["component"] for factor in json.loads(broken.out)["certificate"]["factors"]} == {0, 1}
    for method in ("merge", "swap"):
        plan = tmp_path / f"{method}.json"
        assert call_elute("repair", demo_logs / "broken.parquet", "--method", method, "--out", plan).code == 0
        options = ("--plan", plan, "--precision", "--model", "affine", "--json")
        mended = call_elute("check", demo_logs / "broken.parquet", *options)
        assert mended.code == 0
        assert all(factor["log_propensity_se"] < 1 for factor in mended.json["certificate"]["factors"])
        assert mended.json["generic"]["components"] == 1
