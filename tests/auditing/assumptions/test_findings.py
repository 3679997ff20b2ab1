"""Verdicts on worlds with known answers, and what must not change them."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from worlds import counts_of
from worlds import draw as draw_table

from elute.auditing.assumptions import Groups, assess_assumptions
from elute.auditing.assumptions.examination import deviance
from elute.auditing.assumptions.finding import exceedance, holm
from elute.auditing.assumptions.groups import assess_groups
from elute.auditing.assumptions.labels import assess_labels, fit_bend
from elute.auditing.assumptions.null import Drawing, fit_null
from elute.auditing.assumptions.pairwise import Equality, measure_violation
from elute.cells.counts import Clustered
from elute.errors import EluteError
from elute.estimate.models.pbm import PBM
from elute_reproduce.limits import repeated, study
from elute_reproduce.limits.numbers import check_worked_numbers
from elute_reproduce.limits.worlds import draw
from elute_reproduce.study import Study


def audit(world: str, size: int, seed: int = 0, **given):
    log = draw(world, size, np.random.default_rng(seed))
    fit = PBM(relevance_prior="none").fit(log.counts, allow_unidentified=True)
    found = assess_assumptions(log.counts, fit, groups=log.groups, labels=log.relevance, replicates=99, **given)
    return {finding.name: finding for finding in found}


def test_position_bias_is_let_pass_and_pairwise_debiasing_is_not():
    found = audit("pbm", 600)
    assert {name: f.verdict for name, f in found.items()} == {
        "unique fit": "holds",
        "examination": "holds",
        "groups": "holds",
        "linear": "holds",
        "affine": "holds",
        "linear in labels": "holds",
        "pairwise debiasing": "rejected",
    }
    assert "implies no bias" in found["pairwise debiasing"].sentence


def test_a_trusting_user_is_affine_not_linear():
    found = audit("trust", 600)
    assert (found["linear"].verdict, found["affine"].verdict) == ("rejected", "holds")
    assert found["linear in labels"].verdict == "holds"
    assert "--model affine" in found["linear"].next
    assert "position 1" in found["linear"].sentence


def test_a_device_that_matters_is_named():
    finding = audit("contextual pbm", 600)["groups"]
    assert finding.verdict == "rejected"
    assert finding.sentence.startswith("The effect of position differs between device phone and desktop (p = 0.01)")
    assert "assumes that within each device clicks are relevance times propensity" in finding.sentence
    assert finding.next.startswith("Fit with --bias position,device: then clicks agree with relevance times propensity")
    top = finding.evidence[0]
    assert {top["first"], top["second"]} == {"phone", "desktop"}
    assert finding.effect == abs(top["difference"])


def test_a_remedy_that_does_not_mend_is_not_praised():
    """Devices seem to differ in a trusting user's log, whose clicks are not r·o with the device either."""
    found = [audit("trust", 600, seed)["groups"] for seed in range(6)]
    rejected = [finding.next for finding in found if finding.verdict == "rejected"]
    assert rejected
    assert all("even then clicks are not relevance times propensity" in following for following in rejected)


def test_choice_is_not_affine():
    found = audit("plackett-luce", 600)
    assert found["affine"].verdict == found["linear in labels"].verdict == "rejected"
    assert "Theorem 5.5" in found["affine"].next


def test_findings_are_json_and_repeat_with_their_seed():
    one, two = ([f.to_dict() for f in audit("pbm", 60, seed=3).values()] for _ in range(2))
    assert json.dumps(one) == json.dumps(two)
    fields = {"name", "verdict", "p_value", "effect", "sentence", "next", "evidence", "factors"}
    assert set(one[0]) == fields | {"cluster", "design_effect", "note"}


def test_size_at_few_clicks_an_item():
    """Sparse cells: 1 to 12 impressions, about 3 clicks an item. 60 logs: more than 8 rejections have p < 0.005."""
    rejected = 0
    for seed in range(60):
        base = fit_null(counts_of(draw_table(seed, 150, 6, 0.4, 6, (0.02, 0.3))[0]))
        drawn = np.array([deviance(base, base.score(cells)) for cells in base.draw(Drawing(seed, 39), "")])
        rejected += exceedance(deviance(base, base.score(base.cells)), drawn) <= 0.05
    assert rejected <= 8


def test_group_differences_are_estimated():
    """Two groups of items, ratio of propensities 0.5 and 0.25: the log ratio differs by log 2."""
    rng = np.random.default_rng(5)
    group = np.repeat([0, 1], 40)
    r = rng.uniform(0.2, 0.9, 80)
    p = np.stack((r, r * np.where(group == 0, 0.5, 0.25)), axis=1)
    clicks = rng.binomial(2_000, p)
    counts = counts_of([(x, t, 2_000, clicks[x, t]) for x in range(80) for t in range(2)])
    by_item = assess_groups(counts, Groups("device", group, ("phone", "desktop")), Drawing(0, 39))
    (row,) = by_item.evidence
    assert abs(row["difference"] + np.log(2)) < 4 * row["se"]
    assert 0.001 < row["se"] < 0.05
    codes = np.repeat(group, 2), np.repeat(np.arange(80), 2), np.tile([0, 1], 80), np.full(160, 2_000), clicks.ravel()
    by_cell = assess_groups(counts, Groups("device", Clustered(*codes), ("phone", "desktop")), Drawing(0, 39))
    assert by_cell.to_dict() == by_item.to_dict()


def test_no_cycles_cannot_be_tested():
    counts = counts_of([(0, 0, 900, 300), (0, 1, 900, 200), (1, 1, 900, 400), (1, 2, 900, 100)])
    found = {
        f.name: f
        for f in assess_assumptions(
            counts,
            PBM(relevance_prior="none").fit(counts, allow_unidentified=True),
            labels=np.array([0.5, 0.4]),
            replicates=19,
        )
    }
    names = ("examination", "linear", "affine", "linear in labels")
    assert [found[name].verdict for name in names] == ["untestable"] * 4
    assert all(found[name].p_value is None and found[name].next for name in names)
    assert found["unique fit"].verdict == "holds"


def test_two_components_are_said_to_hang_loose():
    counts = counts_of([(x, 2 * (x % 2) + t, 90, 30 + x) for x in range(8) for t in range(2)])
    found = {
        f.name: f
        for f in assess_assumptions(
            counts, PBM(relevance_prior="none").fit(counts, allow_unidentified=True), replicates=19
        )
    }
    assert (found["unique fit"].verdict, found["unique fit"].effect) == ("rejected", 0.5)


def test_a_log_without_clicks_is_untestable():
    counts = counts_of([(x, t, 90, 0) for x in range(4) for t in range(3)])
    found = assess_assumptions(counts, PBM(relevance_prior="none").fit(counts, allow_unidentified=True), replicates=19)
    assert {f.verdict for f in found if f.name != "unique fit"} == {"untestable"}


def test_labels_in_steps():
    """A line is let pass though items differ beyond their label; a bend is not."""
    rng = np.random.default_rng(2)
    x = np.repeat([0.1, 0.3, 0.5, 0.9], 50)
    n = np.full(200, 500.0)
    for size, rejected in ((0.0, False), (0.5, True)):
        y = 0.1 + 0.4 * x + size * (x > 0.2) * (0.9 - x) + rng.normal(0, 0.1, 200)
        bend = fit_bend(x, n)
        assert bend is not None
        assert (bend.p_values(y[:, None])[0] < 0.01) == rejected


def test_labels_reject_as_often_as_they_should():
    """Also where errors shrink towards the ends of the line, as those of click rates near 0 and 1 do."""
    rng = np.random.default_rng(0)
    r = np.sort(rng.uniform(0.02, 0.98, 24))
    rejected = 0
    for seed in range(600):
        clicks = rng.binomial(200, r)
        counts = counts_of([(x, 0, 200, c) for x, c in enumerate(clicks)])
        rejected += assess_labels(counts, r, Drawing(seed, 39)).verdict == "rejected"
    assert 0.03 <= rejected / 600 <= 0.07


def test_the_papers_pair_of_items():
    """Theorem 7.2 at examination 0.5: t⁻ = 5.5 at R = 0.9, 1.125 at R = 0.2; no error where there is no bias."""
    counts = counts_of([(0, 0, 10, 1), (1, 0, 10, 1)])
    found = measure_violation(counts, np.array([0.9, 0.2]), np.array([0.5]))
    assert found is not None
    assert (found.least, found.most) == pytest.approx((1.125, 5.5))
    unbiased = measure_violation(counts, np.array([0.9, 0.2]), np.array([1.0]))
    assert unbiased is not None
    assert unbiased.error == pytest.approx(0)


def test_the_papers_numbers():
    assert all(claim.holds for claim in check_worked_numbers()), [
        claim for claim in check_worked_numbers() if not claim.holds
    ]


@given(st.lists(st.floats(1e-6, 1), min_size=1, max_size=12))
def test_holm_by_its_definition(values):
    p = np.array(values)
    order = sorted(range(len(p)), key=lambda i: p[i])
    for rank, i in enumerate(order):
        steps = [(len(p) - j) * p[order[j]] for j in range(rank + 1)]
        assert holm(p)[i] == pytest.approx(min(1.0, max(steps)))


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000))
def test_relabelling_changes_nothing(seed):
    """Items and factors in another order: the same statistics."""
    table, _, _ = draw_table(seed, 15, 4, 0.7, 60)
    rng = np.random.default_rng(seed)
    x, t = rng.permutation(15), rng.permutation(4)
    one, two = counts_of(table, 4), counts_of([(x[a], t[b], n, c) for a, b, n, c in table], 4)
    first, second = fit_null(one), fit_null(two)
    found = (deviance(null, null.score(null.cells)) for null in (first, second))
    assert next(found) == pytest.approx(next(found), rel=1e-3, abs=1e-3)
    assert Equality(one).measure(one.clicks) == pytest.approx(Equality(two).measure(two.clicks))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda c, f: assess_assumptions(counts_of([(0, 0, 9, 1)]), f), "the fit has 15 items"),
        (lambda c, f: assess_labels(c, np.ones(3)), "3 labels for 15 items"),
        (lambda c, f: assess_groups(c, Groups("device", np.zeros(3, int))), "device has 3 groups for 15 items"),
        (lambda c, f: assess_groups(c, Groups("device", np.full(15, -1))), "coded 0, 1, 2"),
    ],
)
def test_what_does_not_fit_is_refused(call, message):
    counts = counts_of(draw_table(0, 15, 4, 0.7, 60)[0])
    with pytest.raises(EluteError, match=message):
        call(counts, PBM(relevance_prior="none").fit(counts, allow_unidentified=True))


def test_a_small_run_of_the_study(monkeypatch):
    for module in (study, repeated):
        monkeypatch.setattr(module, "WORLDS_A_SEED", 2)
        monkeypatch.setattr(module, "MORE", 1)
        monkeypatch.setattr(module, "REPLICATES", 19)
    result = study.run(Study(seeds=1))
    assert {entry.where["test"] for entry in result.compared} == set(study.TESTS)
    share = {tuple(entry.where.values()): entry.mean for entry in result.compared}
    assert share["own tastes, clicks taken for independent", "about 125", "examination"] == 1
    assert share["trust", "600", "linear"] == share["contextual pbm", "600", "groups"] == 1
    assert [figure.name for figure in result.figures] == ["figure1"]
