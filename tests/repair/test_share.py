"""A round's impressions: within limits, to whoever they are worth most."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from elute.repair.spending.share import Offers, share_out, top_up


def draw(seed, n=30, targets=6, most=20):
    rng = np.random.default_rng(seed)
    return Offers(
        rng.integers(targets, size=n),
        np.where(rng.random(n) < 0.1, 0.0, np.exp(3 * rng.normal(size=n))),
        np.exp(rng.normal(size=n)),
        rng.uniform(0.02, 1, n),
        rng.integers(0, most, n),
    )


def worth_of_one_more(offers, given, power):
    """Of every candidate, with the information that better ones of its target have brought, and its own."""
    out = np.zeros(len(given))
    for i in range(len(given)):
        better = (offers.target == offers.target[i]) & (offers.worth >= offers.worth[i])
        reached = (given * offers.odds)[better].sum()
        out[i] = offers.worth[i] / (1 + reached * offers.resistance[i]) ** (1 + power / 2)
    return np.where(given < offers.left, out, 0.0)


@given(st.integers(0, 2**32), st.integers(0, 400), st.sampled_from([1.0, 2.0, 16.0]))
@settings(max_examples=80, deadline=None)
def test_nobody_is_passed_over_who_would_use_an_impression_better(seed, budget, power):
    offers = draw(seed)
    given = share_out(offers, budget, power)
    assert (given >= 0).all()
    assert (given <= offers.left).all()
    assert given.sum() <= budget
    assert (given[offers.worth == 0] == 0).all()
    before_last = worth_of_one_more(offers._replace(left=offers.left + 1), np.maximum(given - 1, 0), power)
    if given.any():
        price = before_last[given > 0].min()
        assert worth_of_one_more(offers, given, power).max() <= price * (1 + 1e-6)


@given(st.integers(0, 2**32), st.integers(0, 400))
@settings(max_examples=40, deadline=None)
def test_a_budget_is_used_up_from_the_most_worthy_on(seed, budget):
    offers = draw(seed)
    given = top_up(offers.worth, offers.left, budget)
    room = int(offers.left[offers.worth > 0].sum())
    assert given.sum() == min(budget, room)
    assert (given <= offers.left).all()
    last = np.flatnonzero(given)
    if len(last):
        better = offers.worth > offers.worth[last].min()
        assert (given[better] == offers.left[better]).all()


def test_high_powers_level():
    """Two targets of which one's error is twice as large: at a high power it takes what brings both to one level."""
    variance = np.array([4.0, 1.0])
    for power, ratio in ((30.0, 1.0), (2.0, 1.6)):
        gradient = (variance / 4) ** (power / 2 - 1)
        offers = Offers(np.arange(2), gradient * variance**2, variance, np.full(2, 0.01), np.full(2, 10**6))
        given = share_out(offers, 2_000, power)
        after = variance / (1 + 0.01 * given * variance)
        assert after[0] / after[1] < ratio * 1.05
