"""The readings of UPE that its other pages leave out: their learners against plain numpy and exact solutions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from elute.errors import EluteError
from elute.neural import dual
from elute.neural.data import Batch, View, look_up
from elute.neural.networks import LINEAR
from elute.neural.sources import Offline, SimulatedLists, build_simulated_lists
from elute.simulation.grades import PROPENSITIES
from elute_reproduce.page import to_markdown
from elute_reproduce.study import Study
from elute_reproduce.upe import readings
from elute_reproduce.upe.exact import ShownLists
from elute_reproduce.upe.exact import adjust as solve_adjusted
from elute_reproduce.upe.experiment.worlds import STRONG, make_synthetic_set, set_up
from elute_reproduce.upe.untried import grid as untried_grid
from elute_reproduce.upe.untried import public_versions, trainings
from elute_reproduce.upe.untried.grid import CELLS, ReadingCell, collect, key_of
from elute_reproduce.upe.untried.public_versions import PublicUPE, run_block
from elute_reproduce.upe.untried.separate import SeparateUPE
from elute_reproduce.upe.untried.steered import Steered, set_rate
from elute_reproduce.upe.untried.trainings import (
    FIRST,
    RANDOM_START,
    SEPARATE,
    TARGET,
    FoundReading,
    Size,
    advance,
    build_reading,
    build_source,
    measure_reached,
    solve_reading,
)

pytestmark = pytest.mark.usefixtures("quick_compiling")

KEPT = Path(__file__).parents[2] / "docs" / "reproductions"
TRUTH = np.array(PROPENSITIES)


def _softmax(x: np.ndarray) -> np.ndarray:
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


def _leaky(x: np.ndarray) -> np.ndarray:
    return np.where(x > 0, x, 0.01 * x)


def _dense(layer: Any, x: np.ndarray) -> np.ndarray:
    return np.asarray(x @ np.asarray(layer["weight"]) + np.asarray(layer["bias"]))


def _normed(x: np.ndarray) -> np.ndarray:
    return np.asarray((x - x.mean(axis=-1, keepdims=True)) / x.std(axis=-1, keepdims=True))


def test_a_layer_of_the_transformer_is_attention_head_by_head() -> None:
    block = public_versions._init_block(jax.random.PRNGKey(0))
    x = np.random.default_rng(0).normal(size=(2, 4, 64)).astype(np.float32)
    mask = np.array([[True] * 4, [True, True, True, False]])
    found = np.asarray(run_block(block, jnp.asarray(x), jnp.asarray(mask), None))
    for number in range(2):
        n = int(mask[number].sum())
        own = x[number, :n]
        heard = []
        for head in range(8):
            part = slice(8 * head, 8 * head + 8)
            q, k, v = (_dense(block[name], own)[:, part] for name in ("query", "key", "value"))
            heard.append(_softmax(q @ k.T / np.sqrt(8)) @ v)
        middle = _normed(own + _dense(block["out"], np.concatenate(heard, axis=1)))
        wanted = _normed(middle + _dense(block["second"], _leaky(_dense(block["first"], middle))))
        np.testing.assert_allclose(found[number, :n], wanted, atol=2e-4)


def test_the_adjustment_is_the_mean_softmax_over_lists_in_other_orders() -> None:
    model = PublicUPE(network=LINEAR, encoder="linear")
    params = model.init_parameters(jax.random.PRNGKey(1), 5, 3)
    encoded = np.random.default_rng(1).normal(size=(2, 3, 64)).astype(np.float32)
    mask = jnp.ones((2, 3), bool)
    found = public_versions.adjust(params["document"], jnp.asarray(encoded), params["position"], mask, None)
    hidden, out = params["document"]["network"]
    total = np.zeros(3)
    for shift in range(3):
        for page in np.roll(encoded, -shift, axis=1):
            placed = page + np.asarray(params["position"])
            total += _softmax(_dense(out, _leaky(_dense(hidden, placed)))[:, 0])
    np.testing.assert_allclose(np.exp(found), total, rtol=1e-4)


def test_the_three_losses_of_the_public_code() -> None:
    rng = np.random.default_rng(2)
    x, rows = rng.normal(size=(6, 5)).astype(np.float32), np.array([[0, 1, 2], [3, 4, 5]])
    clicks, logging = np.array([[1.0, 0, 1], [0, 1, 0]]), rng.normal(size=(2, 3)).astype(np.float32)
    seen: View = look_up(jnp.asarray(x), Batch(jnp.asarray(rows), jnp.asarray(clicks), jnp.asarray(logging)))
    model = PublicUPE(network=LINEAR)
    params = model.init_parameters(jax.random.PRNGKey(3), 5, 3)
    loss, memory = model.loss(params, model.init_memory(5, 3), seen, None, jnp.int32(0))
    document = params["document"]
    encoded = model.encode(document, seen.x, seen.mask, None)
    bare, placed = (np.asarray(public_versions.score(document, e)) for e in (encoded, encoded + params["position"]))
    p, total = np.exp(np.asarray(memory["log_propensities"])), 0.0
    for i in range(2):
        f = _softmax(_dense(params["ranker"][0], x[rows[i]])[:, 0])
        total -= float((_softmax(logging[i]) * np.log(_softmax(bare[i]))).sum())
        total -= float((clicks[i] * f[0] / f * np.log(_softmax(placed[i]))).sum())
        total -= float((clicks[i] * p[0] / p * np.log(f)).sum())
    assert float(loss) == pytest.approx(total / 2, rel=1e-4)
    with pytest.raises(EluteError, match="logging policy's scores"):
        model.loss(params, {}, seen._replace(logging=None), None, jnp.int32(0))


@pytest.mark.parametrize("anew", [True, False])
def test_an_optimiser_made_anew_moves_every_weight_by_the_whole_rate(anew: bool) -> None:
    rule = Steered(anew=anew, start=0.0).transformation()
    params = {"a": jnp.array([1.0, 2.0, 3.0])}
    state = set_rate({"a": rule.init(params["a"])}, 0.02)["a"]
    moved = []
    for gradient in ([0.5, -0.1, 0.0], [0.5, -0.3, 0.0]):
        updates, state = rule.update(jnp.array(gradient), state, params["a"])
        moved.append(np.asarray(updates))
    np.testing.assert_allclose(moved[0], [-0.02, 0.02, 0], atol=1e-6)
    second = [-0.02, 0.02, 0] if anew else [-0.02 / np.sqrt(2), 0.02 * 0.3 / np.sqrt(0.1), 0]
    np.testing.assert_allclose(moved[1], second, atol=1e-6)


@pytest.fixture(scope="module")
def graded() -> Any:
    return make_synthetic_set(28)


def test_a_separate_target_stays_and_what_is_trained_obeys_the_law(graded: Any) -> None:
    """Documents where they stand get the target back. Where the network adds positions without a bend, the average over
    all positions is the solved optimum."""
    given = tuple(np.log(TRUTH / TRUTH[0]).tolist())
    size = Size(steps=240, batch=16, fused=80, hidden=())
    source = build_source(graded, set_up(graded, STRONG, 1), 0, size, STRONG)
    model = build_reading(SEPARATE, size, given)
    assert isinstance(model, SeparateUPE)
    state = model.init(jax.random.PRNGKey(0), *source.shape)
    first, last = state.params["document"]["network"]
    straight = {**state.params["document"], "network": [{**first, "bias": first["bias"] + 50.0}, last]}
    state = state._replace(params={**state.params, "document": straight})
    for _ in range(0, size.steps, size.fused):
        state, _ = source.advance(model, state, size.fused, size.batch)
    lists = source.data
    assert isinstance(lists, SimulatedLists)
    np.testing.assert_allclose(state.params["dual"], given, rtol=1e-6)
    y = np.asarray(dual.logits(jnp.array(given)))
    target, exact, own = solve_reading(model, state, lists)
    assert target == pytest.approx(float(np.exp(y[0] - y[-1])), rel=1e-5)
    shown = ShownLists(np.asarray(lists.logging, np.float64), np.ones(lists.logging.shape))
    assert exact == pytest.approx(float(np.exp(solve_adjusted(shown, y, 1.0)[0])), rel=1e-6)
    assert measure_reached(model, state, lists) == pytest.approx(target, rel=0.05)
    trained = np.asarray(model.log_propensities(state))
    assert float(np.exp(trained[0] - trained[-1])) == pytest.approx(own, rel=0.05)
    assert own < 0.8 * target


def test_the_target_of_the_public_code_is_the_truth_where_the_ranker_is_right() -> None:
    """Expected clicks × inverse relevance: with the true relevance as the ranker its ratios are the propensities'."""
    rng = np.random.default_rng(0)
    log_r = np.minimum(rng.normal(-1.0, 0.5, size=(40, 10)), 0)
    rows = np.arange(400).reshape(40, 10)
    lists = build_simulated_lists(log_r.reshape(-1, 1), rows, log_r, np.exp(log_r).ravel(), TRUTH)
    model = PublicUPE(network=LINEAR, encoder="linear")
    state = model.init(jax.random.PRNGKey(0), 1, 10)
    ranker = [{"weight": jnp.ones((1, 1)), "bias": jnp.zeros(1)}]
    state = state._replace(params={**state.params, "ranker": ranker})
    # f₁ r_k / f_k is r₁ of the list: the same for all its positions, so that each adds o_k alone.
    target, _, _ = solve_reading(model, state, lists)
    assert target == pytest.approx(TRUTH[0] / TRUTH[-1], rel=1e-4)


def test_online_from_random_scores_and_renewed(graded: Any) -> None:
    size = Size(steps=4, batch=8, renewed=2, stage=1, fused=2, hidden=())
    world = set_up(graded, RANDOM_START, 1)
    source = build_source(graded, world, 0, size, RANDOM_START)
    first = np.asarray(source.data.documents)
    assert (first != world.documents[0]).any()
    model = build_reading(TARGET, size)
    _, lists = advance(model, source, 0.05, 0, size)
    assert (np.asarray(lists.documents) != first).any()
    assert not isinstance(build_source(graded, world, 0, size, STRONG), type(source))
    assert isinstance(source, Offline)


def test_trainings_are_kept_and_fit_the_page(tmp_path: Path, graded: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Any, ...]] = []

    def trained(graded: Any, paradigm: str, name: str, rate: float, seed: int, size: Size) -> FoundReading:
        asked.append((paradigm, name, rate))
        return FoundReading(
            trained=11.3 if name == FIRST else 4.0,
            target=20.0,
            exact=4.1,
            own=4.1,
            reached=20.0,
            ndcg=0.8,
            validation=rate,
        )

    monkeypatch.setattr(untried_grid, "train_reading", trained)
    monkeypatch.setattr(readings, "make_synthetic_set", lambda queries: graded)
    study = Study(out=tmp_path)
    result = readings.run(study)
    assert asked == list(CELLS)
    readings.run(study)
    assert len(asked) == len(CELLS)
    readings.run(study, replace(trainings.SMALL, steps=2))
    assert len(asked) == 2 * len(CELLS)
    text = to_markdown(result)
    assert "Yes, in every training: `public code, first version`." in text
    holds = {
        claim.sentence.split(":")[0]: claim.holds for claim in result.claims if "the truth, 11.33" in claim.sentence
    }
    assert holds == {name: name == FIRST for name in readings.READINGS}
    assert "`dla`, off, strong: 0.05" in text
    (tmp_path / "data" / "upe-readings.parquet").write_text("no table")
    with pytest.raises(EluteError, match="delete it to train anew"):
        collect(study, graded, 1)


def test_the_pages_trainings_of_readings_are_those_of_this_code() -> None:
    """After a change of a reading, raise `_VERSION` and train anew."""
    graded = make_synthetic_set(readings.QUERIES)
    runs = untried_grid._load(KEPT / "data" / "upe-readings.parquet")
    wanted = {key_of(graded, cell, seed, trainings.SMALL) for cell in CELLS for seed in range(readings.SEEDS)}
    assert {run.key for run in runs} == wanted
    assert {ReadingCell(run.paradigm, run.reading, run.rate) for run in runs} == set(CELLS)
