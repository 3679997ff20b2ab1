"""Every learner's loss and gradient against plain numpy, in double precision; padding; unbiasedness by enumeration."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache, partial
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from neural_worlds import FEATURES, KEY, POSITIONS, Small, batch_of, quick, small
from neural_worlds import compiled_with_little_optimisation as compiled_with_little_optimisation

from elute.errors import EluteError
from elute.neural.data import Batch, look_up
from elute.neural.learner import Learner
from elute.neural.learners import LEARNERS, build_learner
from elute.neural.learners.gradient_reversal import GradientReversal
from elute.neural.learners.ipw import IPW
from elute.neural.learners.multr import MULTR
from elute.neural.learners.naive import Naive
from elute.neural.learners.observation_dropout import ObservationDropout
from elute.neural.learners.pairwise_debias import PairwiseDebias
from elute.neural.learners.rem import RegressionEM
from elute.neural.learners.upe import UPE, Stages
from elute.neural.learners.vectorization import Vectorization
from elute.neural.networks import Network
from reference import neural_plain as plain

NET = Network(hidden=(6, 4), dropout=0.1)
RELATIVE = np.array([1, 0.8, 0.6, 0.3, 0.2])
MEMORY = {
    "propensities": np.array([0.9, 0.7, 0.5, 0.4, 0.2]),
    "clicked": np.array([1, 0.8, 0.5, 0.4, 0.3]),
    "unclicked": np.array([1, 1.2, 1.1, 0.9, 1.3]),
    "log_propensities": np.log(RELATIVE),
}
Plain = Callable[..., float]

rem_plain = partial(plain.rem, theta=MEMORY["propensities"])
pairs_plain = partial(plain.pairwise_debias, plus=MEMORY["clicked"], minus=MEMORY["unclicked"])
public_plain = partial(plain.upe, target="clicks", frozen=False, average="probability")
given_plain = partial(plain.upe, propensities=np.exp(MEMORY["log_propensities"]))
stages = Stages(3, 2, 10)

CASES: dict[str, tuple[Learner, Plain, int]] = {
    **{f"naive {o}": (Naive(network=NET, objective=o), partial(plain.naive, objective=o), 0) for o in plain.OBJECTIVES},
    **{
        f"ipw {o}": (
            IPW(network=NET, objective=o, given=tuple(RELATIVE)),
            partial(plain.ipw, objective=o, given=RELATIVE),
            0,
        )
        for o in plain.OBJECTIVES
    },
    "dla": (build_learner("dla", network=NET), plain.dla, 0),
    "rem": (RegressionEM(network=NET), rem_plain, 0),
    "pairwise-debias": (PairwiseDebias(network=NET), pairs_plain, 0),
    "vectorization": (Vectorization(network=NET, dimensions=3), plain.vectorization, 0),
    "multr": (MULTR(network=NET, pretraining=3, orders=2), plain.multr, 3),
    "multr, in advance": (MULTR(network=NET, pretraining=3, orders=2), partial(plain.multr, early=True), 2),
    "two-tower": (ObservationDropout(network=NET), partial(plain.two_tower, objective="sigmoid"), 0),
    "two-tower softmax": (
        ObservationDropout(network=NET, objective="softmax"),
        partial(plain.two_tower, objective="softmax"),
        0,
    ),
    "grad-reversal": (GradientReversal(network=NET, reversal=0.7), partial(plain.gradient_reversal, strength=0.7), 0),
    "upe": (UPE(network=NET), plain.upe, 0),
    "upe exponential, probability": (
        UPE(network=NET, average="exponential", target="probability"),
        partial(plain.upe, average="exponential", target="probability"),
        0,
    ),
    "upe probability, ratio": (
        UPE(network=NET, average="probability", target="ratio"),
        partial(plain.upe, average="probability", target="ratio"),
        0,
    ),
    "upe after the public code": (build_learner("upe", network=NET), public_plain, 0),
    "upe over the log": (UPE(network=NET, over="log"), given_plain, 0),
    "upe, stages done": (UPE(network=NET, stages=stages), plain.upe, 15),
    "upe-mrr": (build_learner("upe-mrr", network=NET), partial(public_plain, confounding="mrr"), 0),
    "upe-dcg": (build_learner("upe-dcg", network=NET), partial(public_plain, confounding="dcg"), 0),
    "upe-n": (
        build_learner("upe-n", network=NET),
        partial(plain.upe, confounding="none", target="clicks", frozen=False),
        0,
    ),
}


@cache
def evaluate(name: str) -> Callable[..., Any]:
    """The learner's loss, memory and gradient, compiled once."""
    model, _, step = CASES[name]

    def run(params: Any, memory: Any, features: Any, batch: Batch) -> Any:
        def loss(params: Any) -> Any:
            return model.loss(params, memory, look_up(features, batch), None, jnp.int32(step))

        return jax.value_and_grad(loss, has_aux=True)(params)

    return quick(run)


def start(model: Learner, seed: int) -> tuple[Any, Any]:
    """Parameters and memory in general position."""
    rng = np.random.default_rng(seed)
    shape = jax.eval_shape(lambda: model.init(KEY, FEATURES, POSITIONS))
    params = jax.tree.map(lambda leaf: rng.normal(size=leaf.shape) * 0.4, shape.params)
    return params, {name: MEMORY.get(name, np.ones(value.shape)) for name, value in shape.memory.items()}


def nudged(tree: Any, direction: Any, by: float) -> Any:
    return jax.tree.map(lambda leaf, slope: leaf + by * slope, tree, direction)


@pytest.mark.parametrize("name", CASES)
def test_loss_and_gradient_are_those_of_plain_numpy(name: str) -> None:
    model, reference, _ = CASES[name]
    rng = np.random.default_rng(5)
    lists: Small = small(3)
    with jax.enable_x64(True):
        params, memory = start(model, 1)
        (loss, _), gradient = evaluate(name)(params, memory, lists.features, lists.batch)
        gradient = jax.tree.map(np.asarray, gradient)
    assert float(loss) == pytest.approx(reference(params, params, lists.pages), rel=1e-9)
    for group, value in params.items():
        direction = jax.tree.map(lambda leaf: rng.normal(size=leaf.shape), value)
        ends = [reference({**params, group: nudged(value, direction, by)}, params, lists.pages) for by in (1e-5, -1e-5)]
        slope = sum(
            float((a * b).sum()) for a, b in zip(*map(jax.tree.leaves, (gradient[group], direction)), strict=True)
        )
        assert slope == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-5, abs=1e-8), group


def test_early_stages_weigh_by_the_dual_problem() -> None:
    model, lists = UPE(network=NET, stages=stages), small(3)
    with jax.enable_x64(True):
        params, memory = start(model, 1)
        loss = quick(
            lambda features: model.loss(params, memory, look_up(features, lists.batch), None, jnp.int32(14))[0]
        )
        found = float(loss(lists.features))
    expected = plain.upe(params, params, lists.pages, propensities=np.exp(plain.elu(params["dual"])))
    assert found == pytest.approx(expected, rel=1e-9)


def test_stages_train_one_group_after_the_other() -> None:
    model, lists = UPE(network=NET, stages=stages), small(3)
    features = jnp.asarray(lists.features, jnp.float32)
    step = quick(model.step)
    state, moved = quick(lambda: model.init(KEY, FEATURES, POSITIONS))(), []
    for _ in range(11):
        after, _ = step(state, features, lists.batch)
        same = jax.tree.map(lambda a, b: np.array_equal(np.asarray(a), np.asarray(b)), state.params, after.params)
        moved.append({group for group, leaves in same.items() if not all(jax.tree.leaves(leaves))})
        state = after
    first, second, third = {"ranker", "dual", "document"}, {"ranker", "dual", "position"}, {"ranker"}
    assert moved == [first] * 3 + [second] * 2 + [third] * 5 + [first]


@pytest.mark.parametrize(("name", "group"), [("upe", "document"), ("upe after the public code", "document")])
def test_freezing_keeps_the_joint_loss_from_the_confounder(name: str, group: str) -> None:
    """With no confounding target left, only an unfrozen model has a gradient for encoder and network."""
    frozen = CASES[name][0].frozen  # type: ignore[attr-defined]
    model, lists = UPE(network=NET, confounding="none", target="clicks", frozen=frozen), small(3)
    params, memory = start(model, 1)

    def loss(params: Any) -> Any:
        return model.loss(params, memory, look_up(jnp.float32(lists.features), lists.batch), None, jnp.int32(0))[0]

    gradient = quick(jax.grad(loss))(jax.tree.map(np.float32, params))
    assert all((np.asarray(leaf) == 0).all() == frozen for leaf in jax.tree.leaves(gradient[group]))


@pytest.mark.parametrize("average", ["logit", "exponential", "probability"])
def test_backdoor_over_the_log_is_that_over_one_large_batch(average: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Six lists in parts of four."""
    monkeypatch.setattr("elute.neural.learners.upe._LISTS", 4)
    lists, model = small(4), UPE(network=NET, over="log", average=average)

    @quick
    def adjusted(features: Any) -> Any:
        return model.adjust_over_log(model.init(KEY, FEATURES, POSITIONS), features, lists.batch.documents)

    state = adjusted(np.float32(lists.features))
    params = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), state.params)
    expected = plain.backdoor(params, lists.pages, average)
    np.testing.assert_allclose(model.propensities(state), expected / expected[0], rtol=1e-4)
    np.testing.assert_allclose(model.propensities(state, 5), expected / expected[4], rtol=1e-4)


def test_memory_of_regression_em_and_of_pairwise_debiasing() -> None:
    lists = small(3)
    with jax.enable_x64(True):
        params, memory = start(CASES["rem"][0], 1)
        (_, after), _ = evaluate("rem")(params, memory, lists.features, lists.batch)
        expected = plain.rem_memory(params, lists.pages, MEMORY["propensities"], 0.05)
        np.testing.assert_allclose(after["propensities"], expected, rtol=1e-9)
        params, memory = start(CASES["pairwise-debias"][0], 1)
        (_, after), _ = evaluate("pairwise-debias")(params, memory, lists.features, lists.batch)
    plus, minus = plain.pairwise_memory(params, lists.pages, MEMORY["clicked"], MEMORY["unclicked"], 0.05, 0.5)
    np.testing.assert_allclose(after["clicked"], plus, rtol=1e-9)
    np.testing.assert_allclose(after["unclicked"], minus, rtol=1e-9)


@pytest.mark.parametrize("name", CASES)
@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 1000), lengths=st.tuples(*[st.integers(0, POSITIONS - 1)] * 4))
@example(seed=635, lengths=(0, 0, 0, 0))
def test_what_stands_where_no_document_is_changes_nothing(name: str, seed: int, lengths: tuple[int, ...]) -> None:
    """Clicks and scores behind a list's end, and lists without any document."""
    lists, rng = small(seed, (5, *lengths, 5)), np.random.default_rng(seed)
    documents, clicks, logging = map(np.asarray, lists.batch)
    empty = documents < 0
    noise = 50 * rng.normal(size=empty.shape)
    batch = batch_of(documents, np.where(empty, 1.0, clicks), np.where(empty, noise, logging))
    with jax.enable_x64(True):
        params, memory = start(CASES[name][0], 1)
        clean = evaluate(name)(params, memory, lists.features, lists.batch)
        dirty = evaluate(name)(params, memory, lists.features, batch)
        pages = [page for page in lists.pages if len(page.clicks)]
        assert float(dirty[0][0]) == pytest.approx(CASES[name][1](params, params, pages), rel=1e-9)
    for a, b in zip(jax.tree.leaves(clean), jax.tree.leaves(dirty), strict=True):
        assert np.isfinite(a).all()
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("objective", plain.OBJECTIVES)
def test_ipw_with_true_propensities_is_unbiased(objective: Any) -> None:
    """The expected loss over all 2³ clicks is the loss with relevance (times p₁) for clicks; naive's is not."""
    relevance, bias = np.array([0.3, 0.9, 0.5]), np.array([0.75, 0.5, 0.25])
    features = np.random.default_rng(0).normal(size=(3, FEATURES))
    rows = np.arange(3, dtype=np.int32)[None]
    with jax.enable_x64(True):
        models = IPW(network=NET, objective=objective, given=tuple(bias)), Naive(network=NET, objective=objective)
        params, _ = start(models[1], 1)

        @quick
        def losses(clicks: Any) -> Any:
            seen = look_up(jnp.asarray(features), Batch(jnp.asarray(rows), clicks))
            return [model.loss(params, model.init_memory(FEATURES, 3), seen, None, jnp.int32(0))[0] for model in models]

        mean = np.zeros(2)
        for clicks in product((0.0, 1.0), repeat=3):
            chance = np.prod(np.where(clicks, bias * relevance, 1 - bias * relevance))
            mean += chance * np.array(losses(np.array([clicks])))
        wanted = float(losses(np.array([relevance * bias[0]]))[1])
    assert mean[0] == pytest.approx(wanted, rel=1e-6)
    assert abs(mean[1] - wanted) > 0.01


def test_dropout_keeps_the_mean_and_is_off_without_a_key() -> None:
    net = Network(hidden=(64,), dropout=0.3)
    x = jnp.asarray(np.random.default_rng(0).normal(size=(1, FEATURES)), jnp.float32)
    layers = quick(lambda: net.init(KEY, FEATURES))()
    draws = quick(jax.vmap(lambda key: net.scores(layers, x, key)[0]))(jax.random.split(KEY, 20_000))
    still = float(net.scores(layers, x)[0])
    assert abs(float(draws.mean()) - still) < 4 * float(draws.std()) / 20_000**0.5
    hidden = plain.elu(np.asarray(x[0] @ layers[0]["weight"] + layers[0]["bias"]))
    spread = np.sqrt((0.3 / 0.7) * ((hidden * np.asarray(layers[1]["weight"])[:, 0]) ** 2).sum())
    assert float(draws.std()) == pytest.approx(spread, rel=0.03)


def test_learners_print_their_settings_and_take_them_by_name_only() -> None:
    """A learner is its settings and nothing else: what is learnt lies in a state, so there is nothing to be fitted."""
    assert repr(IPW(given=(1.0, 0.5))) == (
        "IPW(network=Network(hidden=(512, 256, 128), dropout=0.1), "
        "optimiser=Optimiser(name='adagrad', rate=0.05, clip=5.0, start=0.1), objective='softmax', given=(1.0, 0.5))"
    )
    for name, build in LEARNERS.items():
        if name != "ipw-random":  # a function of random pages
            parameters = inspect.signature(build).parameters.values()
            assert {parameter.kind for parameter in parameters} == {inspect.Parameter.KEYWORD_ONLY}, name


def test_errors_say_what_to_do() -> None:
    with pytest.raises(EluteError, match="no learner 'dual'; there are: naive, "):
        build_learner("dual")
    with pytest.raises(EluteError, match="the setting 'average' is 'mean'; give logit, exponential or probability"):
        UPE(average="mean")  # type: ignore[arg-type]
    with pytest.raises(EluteError, match="3 propensities for lists of 5"):
        IPW(given=(1, 0.5, 0.2)).init_memory(FEATURES, 5)
    with pytest.raises(EluteError, match="above 0"):
        IPW(given=(1, 0.5, 0)).init_memory(FEATURES, 3)
    lists, state = small(0), jax.eval_shape(lambda: UPE(network=NET).init(KEY, FEATURES, POSITIONS))
    with pytest.raises(EluteError, match="logging policy's scores"):
        jax.eval_shape(UPE(network=NET).step, state, lists.features, Batch(*lists.batch[:2]))
    with pytest.raises(EluteError, match="no position 6"):
        jax.eval_shape(lambda: UPE(network=NET).propensities(UPE(network=NET).init(KEY, FEATURES, POSITIONS), 6))
    assert len(LEARNERS) == 14
