"""Structural twins: the structure that was asked for, the published graph, and studies that run on them."""

from __future__ import annotations

import numpy as np
import pytest

from elute_reproduce.identifiability import figure4cd, figure7, table2, table4, twins
from elute_reproduce.identifiability import semi_synthetic as semi
from elute_reproduce.identifiability.semi_synthetic import ISTELLA, POSITIONS, YAHOO
from elute_reproduce.identifiability.twins import TwinShape, make_twin
from elute_reproduce.study import Study

SMALL = {YAHOO: TwinShape(300, 60, 80, 0), ISTELLA: TwinShape(300, 0, 30, 12)}


@pytest.mark.parametrize("name", SMALL)
def test_vectors_repeat_as_the_shape_says(name, monkeypatch):
    monkeypatch.setattr(twins, "SHAPES", SMALL)
    shape, twin = SMALL[name], make_twin(name)
    padding = (twin.train.features == 0).all(axis=1)
    item = semi.identify_items(twin.train.features)
    times = np.bincount(np.bincount(item[~padding]))
    assert times[2] == shape.pairs
    assert times[1] == (~padding).sum() - 2 * shape.pairs - shape.often
    assert times[3:].tolist() == ([0] * (shape.often - 3) + [1] if shape.often else [])
    lengths = (~padding).reshape(-1, POSITIONS).sum(axis=1)
    assert (lengths < POSITIONS).sum() == shape.short and lengths.min() >= 2
    assert twin.pages is not None
    shown = twin.pages.row.reshape(-1, POSITIONS)
    assert (np.sort(shown, axis=1) == np.arange(300 * POSITIONS).reshape(-1, POSITIONS)).all()
    assert (np.diff(padding[shown].astype(int), axis=1) >= 0).all()  # padding last


@pytest.mark.parametrize(("name", "nodes", "components"), [(YAHOO, 48_894, 28_958), (ISTELLA, 48_919, 47_976)])
def test_the_graph_is_the_published_one(name, nodes, components):
    twin = make_twin(name)
    assert twin.pages is not None
    item = semi.identify_items(twin.train.features[twin.pages.row])
    factor = twin.pages.position * 5_000 + np.random.default_rng(1).integers(5_000, size=len(item))
    assert len(np.unique(factor)) == pytest.approx(nodes, rel=2e-3)
    assert semi.count_components(item, factor) == pytest.approx(components, rel=5e-3)
    assert semi.count_components(item, twin.pages.position) == 1


def test_studies_mark_them_and_compare_them_with_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(twins, "SHAPES", SMALL)
    monkeypatch.setattr(semi, "CONTEXTS", 30)
    monkeypatch.setattr(semi, "load_datasets", lambda data: [])
    for module in (table2, table4, figure4cd, figure7):
        result = module.run(Study(seeds=1))
        shown = {entry.where["data"] for entry in result.compared if entry.measured}
        assert shown == {"Yahoo! twin", "Istella-S twin"}, module
        assert all(entry.published is None for entry in result.compared if entry.measured)
        assert any("Twins are generated sets" in sentence for sentence in result.settings)
    assert not any("test nDCG" in claim.sentence for claim in table2.run(Study(seeds=1)).claims)
