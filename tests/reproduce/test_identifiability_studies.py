"""Small runs of the identifiability paper's fully simulated studies, and their parts against plain counts."""

from __future__ import annotations

from collections import Counter

import numpy as np

from elute.estimate.models.pbm import PBM
from elute_reproduce.identifiability import figure3, figure4ab, table1
from elute_reproduce.identifiability.figure4ab import draw_swap
from elute_reproduce.identifiability.paper_sets import PaperSet, load
from elute_reproduce.identifiability.synthetic import CLICKS
from elute_reproduce.page import to_markdown
from elute_reproduce.result import PUBLIC_CODE
from elute_reproduce.study import Study


def test_every_swap_is_as_likely():
    """Of a small set: every (document, position it was shown at, position of the other component) in equal shares."""
    doc, position = np.array([0, 0, 1, 2, 3, 3]), np.array([0, 1, 2, 5, 7, 7])
    world = PaperSet(doc, position, np.zeros(6, np.int64), 0)
    triples = [
        (d, other)
        for d, p in set(zip(doc.tolist(), position.tolist(), strict=True))
        for other in range(10)
        if (p < 4) != (other < 4)
    ]
    draws = 3_000
    rng = np.random.default_rng(0)
    found = Counter(draw_swap(world, rng) for _ in range(draws))
    expected = {pair: count * draws / len(triples) for pair, count in Counter(triples).items()}
    assert found.keys() == expected.keys()
    assert sum((found[pair] - wanted) ** 2 / wanted for pair, wanted in expected.items()) < 60  # 19 degrees of freedom


def test_half_of_the_papers_swaps_come_from_either_component(data):
    world, rng = load(data, "K=2"), np.random.default_rng(0)
    to_upper = np.mean([draw_swap(world, rng)[1] < 4 for _ in range(150)])
    assert 0.38 < to_upper < 0.62


def test_all_learners_count_for_intervention_and_merging(data, monkeypatch):
    kept = {name: table1._METHODS[name] for name in ("DLA", "PBM (elute)")}
    monkeypatch.setattr(table1, "_METHODS", kept)
    result = table1.run(Study(data, seeds=1))
    exactness = [claim for claim in result.claims if "more exactly" in claim.sentence]
    assert [claim.holds for claim in exactness] == [True, True]
    assert all(name in exactness[0].evidence for name in kept)
    worse = table1._claim_repairs("all", {"a": 0.99, "b": 0.97}, {"a": 0.975, "b": 0.975})
    assert [claim.holds for claim in worse] == [True, False]


def test_swaps_are_fitted_twice_and_the_public_codes_values_are_not_published(data, monkeypatch):
    """With PBM in DLA's place for the swaps: DLA takes its time."""
    monkeypatch.setattr(figure4ab, "_CLICKS", (10**6,))
    monkeypatch.setattr(figure4ab, "_build_model", lambda fit, seed: PBM(seed=seed, relevance_prior="none"))
    result = figure4ab.run(Study(data, seeds=1))
    assert not any(entry.published for entry in result.compared)
    assert f"| strategy | fit | 1,000,000 clicks | {PUBLIC_CODE} |" in to_markdown(result)
    found = {tuple(entry.where.values()): entry.mean for entry in result.compared}
    assert found["swap, random cost", "PBM", "1,000,000 clicks"] > 0.995
    assert found["merge 3 & 4", "DLA", PUBLIC_CODE] == 0.975
    assert result.claims[-1].holds


def test_the_claims_of_figure_3_by_hand():
    alone, merged = [1.0, 0.7, 0.6, 0.55], [1.0, 0.97, 0.96, 0.70]
    declines, from_one, by_step = figure3._claim_rates(alone, merged)
    assert (declines.holds, from_one.holds, by_step.holds) == (True, True, False)
    assert "K = 3 to 4 −0.260 against −0.050" in by_step.evidence

    def scores(mean: float) -> list[dict[str, float]]:
        return [{"nDCG@10": mean + step} for step in (-0.02, 0.0, 0.02)]

    near = {(k, CLICKS): scores(0.87 + 0.005 * k) for k in (2, 3, 4)}
    assert figure3._claim_alike(near).holds
    assert not figure3._claim_alike(near | {(4, CLICKS): scores(0.5)}).holds
