"""Published answers, limiting cases, and what users refuse."""

from __future__ import annotations

import numpy as np
import pytest

from elute.errors import EluteError
from elute.simulation.grades import PROPENSITIES, reciprocal_propensities, relevance_of_grades
from elute.simulation.shown import ShownPages
from elute.simulation.users import (
    Carousel,
    CascadeUser,
    ContextualPositionBased,
    DependentClick,
    DynamicBayesian,
    MixtureDBN,
    PlackettLuceChoice,
    PositionBased,
    Trust,
    UserBrowsing,
    build_user,
    draw_contexts,
    settings_of,
    trust_bias,
)


def one(relevance: list[float]) -> ShownPages:
    return ShownPages(np.array([relevance]), np.array([len(relevance)]))


def test_plackett_luce_choice_is_not_affine_in_relevance() -> None:
    """Figure 1 of the limits paper: the others' relevance sums to .01. The best affine fit explains 29%."""

    def p(r: float) -> float:
        return float(PlackettLuceChoice().probabilities(one([r, 0.004, 0.006]))[0, 0])

    assert [round(p(r), 3) for r in (0.01, 0.1, 0.5, 1.0)] == [0.5, 0.909, 0.98, 0.99]
    grid = np.linspace(0.001, 1, 1000)
    assert np.corrcoef(grid, [p(r) for r in grid])[0, 1] ** 2 == pytest.approx(0.29, abs=0.001)


def test_cascade_is_affine_in_relevance() -> None:
    """Figure 1 of the limits paper: α = .7, whatever the result's own relevance."""
    for r in (0.0, 0.2, 0.9, 1.0):
        assert CascadeUser().probabilities(one([0.3, r]))[0, 1] == pytest.approx(0.7 * r, abs=1e-15)


def test_trusted_clicks_overstate_relevance_unless_corrected() -> None:
    """α = .5, β = .2, R = .4: inverse propensity gives .8, the affine estimator (Eq. 6) .4."""
    p = Trust(0.5, 0.2).probabilities(one([0.4]))[0, 0]
    assert p == pytest.approx(0.4)
    assert p / 0.5 == pytest.approx(0.8)
    assert (p - 0.2) / 0.5 == pytest.approx(0.4)


def test_matrix_of_click_probabilities_has_rank_one_or_two() -> None:
    """Items by positions: rank 1 under r·o, 2 under the affine model (limits paper)."""
    items = np.linspace(0.05, 0.95, 12)
    shown = ShownPages(np.repeat(items[:, None], 10, axis=1), np.full(12, 10))
    assert np.linalg.matrix_rank(PositionBased().probabilities(shown)) == 1
    assert np.linalg.matrix_rank(build_user("trust").probabilities(shown)) == 2


def test_trust_without_trust_is_position_based() -> None:
    shown = one([0.3, 0.9, 0.1])
    affine = trust_bias(minus=np.zeros(10))
    assert (affine.beta == 0).all()
    np.testing.assert_allclose(Trust(*affine).probabilities(shown), PositionBased().probabilities(shown))


def test_limits_of_the_chain_users() -> None:
    """DCM with λ = 0, and a DBN that never tires and is always satisfied, are the cascade."""
    relevance = np.random.default_rng(0).uniform(0, 1, (50, 8))
    length = np.full(50, 8)
    cascade = CascadeUser().probabilities(ShownPages(relevance, length))
    np.testing.assert_allclose(DependentClick(0.0).probabilities(ShownPages(relevance, length)), cascade)
    sure = ShownPages(relevance, length, np.ones_like(relevance))
    np.testing.assert_allclose(DynamicBayesian(1.0).probabilities(sure), cascade)
    never = ShownPages(relevance, length, np.zeros_like(relevance))
    np.testing.assert_allclose(DynamicBayesian(1.0).probabilities(never), relevance)
    down = MixtureDBN(0.7, 1.0).probabilities(sure)
    np.testing.assert_allclose(down, DynamicBayesian(0.7).probabilities(sure))
    up = MixtureDBN(0.7, 0.0).probabilities(ShownPages(relevance[:, ::-1].copy(), length, sure.satisfaction))
    np.testing.assert_allclose(up[:, ::-1], down)
    np.testing.assert_allclose(Carousel(8, [1.0], 0.7).probabilities(sure), down)


def test_carousel_picks_rows_by_bias_and_mean_relevance() -> None:
    """A page of 25: alike in relevance, first places are clicked in proportion to the rows' bias, k^-1/2."""
    p = Carousel().probabilities(one([0.4] * 25))[0].reshape(5, 5)
    np.testing.assert_allclose(p[:, 0] / p[0, 0], np.arange(1, 6) ** -0.5)
    assert p[:, 0].sum() == pytest.approx(0.4)
    twice = one([0.2] * 5 + [0.4] * 5)
    p = Carousel(row_bias=[1, 1]).probabilities(twice)[0]
    assert p[0] == pytest.approx(0.2 / 3) and p[5] == pytest.approx(0.4 * 2 / 3)


def test_carousel_clicks_lie_in_one_row() -> None:
    shown = ShownPages(np.full((5_000, 25), 0.8), np.full(5_000, 25))
    by_row = Carousel().draw_clicks(shown, np.random.default_rng(0)).reshape(-1, 5, 5).any(axis=2)
    assert by_row.sum(axis=1).max() == 1
    assert by_row.any(axis=0).all()


def test_choice_is_one_click_a_page() -> None:
    rng = np.random.default_rng(0)
    shown = ShownPages(rng.uniform(0, 1, (5_000, 10)), rng.integers(1, 11, 5_000))
    assert (PlackettLuceChoice().draw_clicks(shown, rng).sum(axis=1) == 1).all()
    nothing = one([0.0, 0.0])
    assert PlackettLuceChoice().draw_clicks(nothing, rng).sum() == 0
    assert PlackettLuceChoice().log_probability(nothing, [[0, 0]])[0] == 0.0


def test_a_row_without_bias_is_picked_only_when_no_row_has_weight() -> None:
    """Sampler and formula agree on the corner: the first row, though its bias is 0."""
    user = Carousel(1, [0.0, 1.0])
    shown = one([1.0, 0.0])
    np.testing.assert_array_equal(user.probabilities(shown), [[1.0, 0.0]])
    np.testing.assert_array_equal(user.draw_clicks(shown, np.random.default_rng(0)), [[1, 0]])


def test_contexts_are_drawn_as_the_paper_says() -> None:
    vectors, weights = draw_contexts(5_000, np.random.default_rng(0))
    assert vectors.shape == (5_000, 10) and weights.shape == (10,)
    assert abs(vectors.std() - 0.35) < 4 * 0.35 / np.sqrt(2 * vectors.size)
    assert abs(vectors.mean()) < 4 * 0.35 / np.sqrt(vectors.size)
    assert (np.abs(weights) <= 1).all() and len(set(weights)) == 10
    table = ContextualPositionBased(vectors, weights).propensities
    assert table.shape == (5_000, 10)
    t = 77
    np.testing.assert_allclose(table[t], np.array(PROPENSITIES) ** max(vectors[t] @ weights + 1, 0))
    blind = ContextualPositionBased([[-2.0]], [1.0]).propensities
    assert (blind == 1).all()  # the exponent is cut off at 0


def test_propensities_are_known_where_clicks_factorise() -> None:
    np.testing.assert_allclose(PositionBased(eta=2).propensities, np.array(PROPENSITIES) ** 2)
    assert CascadeUser().propensities is None
    assert build_user("trust").propensities is None


def test_relevance_of_grades() -> None:
    """.1 .16 .28 .52 1 for grades 0 to 4; with a top grade of 5, grade 4 is .535 (the papers' sets)."""
    np.testing.assert_allclose(relevance_of_grades([0, 1, 2, 3, 4], 4), [0.1, 0.16, 0.28, 0.52, 1.0])
    assert relevance_of_grades([4], 5)[0] == pytest.approx(0.1 + 0.9 * 15 / 31)
    np.testing.assert_allclose(relevance_of_grades([[0, 2]], 2, noise=0.0), [[0.0, 1.0]])
    np.testing.assert_allclose(reciprocal_propensities(3), [1, 1 / 2, 1 / 3])


FULL = ShownPages(np.full((2, 12), 0.5), np.array([3, 12]))


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: relevance_of_grades([0, 5, 1], 4), "1 of 3 grades lie outside 0 to 4 .the first is 5"),
        (lambda: relevance_of_grades([np.nan], 4), "outside 0 to 4"),
        (lambda: relevance_of_grades([-1], 4), "outside 0 to 4"),
        (lambda: relevance_of_grades([0], 0), "top grade is 0"),
        (lambda: relevance_of_grades([0], 4, noise=2), "noise is 2"),
        (lambda: PositionBased([0.5, 1.2]), "1.2 is not a probability"),
        (lambda: PositionBased([]), "give a list"),
        (lambda: PositionBased(eta=-1), "'eta' is -1; give a number from 0"),
        (lambda: PositionBased(eta=float("nan")), "'eta' is nan"),
        (lambda: PositionBased().draw_clicks(FULL, np.random.default_rng(0)), "shows 12 results.*10 ranks"),
        (lambda: PositionBased().probabilities(FULL), "shows 12 results.*10 ranks"),
        (lambda: PositionBased(reciprocal_propensities(12)).log_probability(FULL, np.zeros((2, 5))), "shape .2, 5."),
        (lambda: DependentClick([0.5] * 11).probabilities(FULL), "12 results.*11 ranks"),
        (lambda: DependentClick(1.5), "1.5 is not a probability"),
        (lambda: DynamicBayesian(1.5), "'continuation' is 1.5; give a number from 0 to 1"),
        (lambda: MixtureDBN(top_down=-0.1), "'top_down' is -0.1"),
        (lambda: UserBrowsing([[0.5, 0.5]]), "shape .1, 2."),
        (lambda: UserBrowsing([[1.5]]), "outside 0 to 1"),
        (lambda: UserBrowsing([[0.5]]).probabilities(FULL), "12 results.*1 ranks"),
        (lambda: Carousel(row_length=0), "'row_length' is 0; give a whole number from 1"),
        (lambda: Carousel(2).probabilities(FULL), "12 results.*10 ranks"),
        (lambda: Trust([0.5], [0.6]), "above 1 at rank 1"),
        (lambda: Trust([0.5, 0.5], [0.1]), "2 values of alpha and 1 of beta"),
        (lambda: trust_bias(plus=[1.0]), "10 propensities, 1 values of plus"),
        (lambda: draw_contexts(0, np.random.default_rng(0)), "0 contexts"),
        (lambda: ContextualPositionBased([[1.0]], [1.0, 2.0]), "do not match"),
        (lambda: build_user("cpbm").probabilities(one([0.5])), "the pages have none"),
        (
            lambda: build_user("cpbm", contexts=3).draw_clicks(
                ShownPages(np.ones((1, 2)), np.array([2]), None, np.array([[0, 3]], np.int32)), np.random.default_rng(0)
            ),
            "page 0 has a context id outside 0 to 2",
        ),
        (lambda: build_user("bpm"), "no user 'bpm'; there are: pbm, cpbm"),
        (lambda: build_user("dbn", eta=1), "no setting 'eta'; it takes: continuation"),
        (lambda: build_user("cascade", eta=1), "it takes none"),
        (lambda: ShownPages(np.ones((2, 3)), np.array([1])), "one row and one length a page"),
        (lambda: ShownPages(np.ones((1, 3)), np.array([4])), "between 0 and 3"),
        (lambda: ShownPages(np.ones((1, 3)), np.array([-1])), "between 0 and 3"),
        (lambda: ShownPages(np.ones((1, 3)), np.array([3]), np.ones((1, 2))), "satisfaction has shape"),
        (lambda: ShownPages(np.array([[0.5], [np.nan]]), np.array([1, 1])), "relevance on page 1"),
        (lambda: ShownPages(np.ones((1, 1)), np.array([1]), np.array([[1.1]])), "satisfaction on page 0"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(call, says: str) -> None:
    with pytest.raises(EluteError, match=says) as error:
        call()
    assert "\n" not in str(error.value)


def test_settings_by_name() -> None:
    assert settings_of("pbm") == ("propensities", "eta")
    mixture = build_user("mixture-dbn", continuation=0.5, top_down=1.0)
    assert isinstance(mixture, MixtureDBN)
    assert mixture.continuation == 0.5
    table, again, other = (build_user("cpbm", contexts=4, seed=seed).propensities for seed in (1, 1, 2))
    assert table is not None and again is not None and other is not None
    np.testing.assert_array_equal(table, again)
    assert not np.array_equal(table, other)
