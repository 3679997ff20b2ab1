"""The training loop: exact resuming, early stopping, fused steps, host batches, recovery of propensities."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from neural_worlds import BIAS, FEATURES, KEY, POSITIONS, graded, linear_world, quick
from neural_worlds import compiled_with_little_optimisation as compiled_with_little_optimisation

from elute.errors import EluteError
from elute.neural import checkpoint, export
from elute.neural.host import Host
from elute.neural.learners.dla import DLA
from elute.neural.learners.naive import Naive
from elute.neural.learners.upe import UPE, Stages
from elute.neural.learners.vectorization import Vectorization
from elute.neural.metrics import list_candidates, ndcg, to_graded_documents
from elute.neural.networks import LINEAR, Network
from elute.neural.optimise import Optimiser
from elute.neural.sources import BatchSource, Offline, Online, build_logged_source, build_simulated_lists, rank_lists
from elute.neural.train import Settings, train

TINY = Network(hidden=(4,), dropout=0.2)
ADAM = Optimiser(name="adam", rate=0.01)
POINTWISE = Naive(network=TINY, objective="sigmoid")
"""Listwise losses leave the last bias free: its gradient is rounding, which AdaGrad blows up to a step."""


def online() -> Online:
    data = graded()
    rows, scores = rank_lists(jnp.zeros(data.n_documents), jnp.asarray(list_candidates(data)), 3)
    shown = build_simulated_lists(data.features, rows, scores, (data.grades + 1) / 5, BIAS[:3])
    return Online(shown, jnp.asarray(list_candidates(data)), 20)


def some_lists(positions: int = 3) -> tuple[np.ndarray, ...]:
    """Features, lists of any length from 1, clicks and logging scores."""
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 30, (20, positions)).astype(np.int32)
    rows[np.arange(positions) >= rng.integers(1, positions + 1, 20)[:, None]] = -1
    clicks = ((rng.random(rows.shape) < 0.5) & (rows >= 0)).astype(np.float32)
    return rng.normal(size=(30, FEATURES)).astype(np.float32), rows, clicks, rng.normal(size=rows.shape).astype("f4")


def host_log() -> Host:
    return Host(*some_lists())


def assert_same(one: Any, other: Any) -> None:
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("learner", "source"),
    [
        (UPE(network=TINY, optimiser=ADAM, stages=Stages(10, 20, 50)), online()),
        (DLA(network=TINY), host_log()),
    ],
    ids=["upe online", "dla from the host"],
)
def test_resumed_training_is_uninterrupted_training_bit_for_bit(
    learner: Any, source: BatchSource, tmp_path: Path
) -> None:
    whole, halves = (
        Settings(steps=60, batch=8, fused=10, every=30),
        [Settings(steps=steps, batch=8, fused=10, every=30) for steps in (30, 60)],
    )
    held = graded()
    at_once = train(learner, source, whole, seed=3, validation=held, checkpoint=tmp_path / "once.npz")
    for part in halves:
        resumed = train(learner, source, part, seed=3, validation=held, checkpoint=tmp_path / "twice.npz")
    assert_same(at_once.state, resumed.state)
    assert [moment.step for moment in resumed.history] == [30, 60]
    assert_same(at_once.history, resumed.history)
    once, twice = (np.load(tmp_path / name, allow_pickle=False) for name in ("once.npz", "twice.npz"))
    assert once.files == twice.files
    for name in once.files:
        np.testing.assert_array_equal(once[name], twice[name])
    other = train(learner, source, whole, seed=4, validation=held)
    assert any(
        (np.asarray(a) != b).any() for a, b in zip(*map(jax.tree.leaves, (other.state, at_once.state)), strict=True)
    )


def test_online_lists_follow_the_ranker() -> None:
    source, model = online(), Naive(network=TINY)
    state = model.init(KEY, FEATURES, 3)
    assert source.refresh(model, state, 30) is source
    after = source.refresh(model, state, 40).changing_arrays()
    scores = np.asarray(model.scores(state, source.data.features))
    for shown, rows, logging in zip(*map(np.asarray, (source.candidates, *after.values())), strict=True):
        best = sorted(shown[shown >= 0], key=lambda row: -scores[row])[:3]
        np.testing.assert_array_equal(rows, best)
        np.testing.assert_allclose(logging, scores[best], rtol=1e-6)


@dataclass(frozen=True, eq=False)
class Turning(Offline):
    """A log that becomes another after some steps."""

    later: Any
    after: int

    def advance(self, learner: Any, state: Any, steps: int, size: int) -> Any:
        now = self.data if int(state.step) < self.after else self.later
        return Offline(now).advance(learner, state, steps, size)


def test_early_stopping_restores_the_best_state() -> None:
    """Clicks that follow grades at first, and their opposite from the third validation on."""
    data = graded(60)
    rows = list_candidates(data)[:, :3]
    good = (data.grades[rows] / 4).astype(np.float32)
    source = Turning(
        build_logged_source(data.features, rows, good).data, build_logged_source(data.features, rows, 1 - good).data, 20
    )
    told: list[tuple[str, int, int]] = []
    settings = Settings(steps=200, batch=16, fused=10, every=10, patience=3)
    done = train(
        Naive(network=LINEAR, optimiser=Optimiser(rate=0.3)),
        source,
        settings,
        validation=data,
        progress=lambda *it: told.append(it),
    )
    values = [moment.ndcg for moment in done.history]
    best = int(np.argmax(values))
    assert best < 3
    assert len(values) == best + 1 + 3
    assert int(done.state.step) == 10 * (best + 1)
    held = to_graded_documents(data)
    assert float(ndcg(jnp.asarray(done.scores(data.features)), held)) == pytest.approx(values[best], abs=1e-6)
    assert values[best] > values[-1] + 0.05
    assert told[best] == (f"training: nDCG@10 {values[best]:.4f}", 10 * (best + 1), 200)
    again = train(
        Naive(network=LINEAR, optimiser=Optimiser(rate=0.3)),
        source,
        Settings(steps=10 * (best + 1), batch=16, fused=10, every=10),
    )
    assert_same(again.state, done.state)


def test_fused_steps_are_single_steps() -> None:
    truth, _ = linear_world(20)
    model = POINTWISE
    state = quick(lambda: model.init(KEY, FEATURES, POSITIONS))()
    fused, _ = Offline(truth).advance(model, state, 6, 8)
    step = quick(lambda state, batch: model.step(state, truth.features, batch)[0])
    draw = quick(lambda key: truth.draw(key, 8))
    for number in range(6):
        key = jax.random.fold_in(jax.random.fold_in(state.key, number), 0)
        state = step(state, draw(key))
    for a, b in zip(jax.tree.leaves(fused), jax.tree.leaves(state), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)


def test_a_log_on_the_host_trains_as_the_same_log_on_the_device(tmp_path: Path) -> None:
    """From arrays and from mapped files, whatever the lengths of lists: the same batches in the same order."""
    arrays = some_lists()
    np.save(tmp_path / "features.npy", arrays[0])
    mapped = np.load(tmp_path / "features.npy", mmap_mode="r")
    settings = Settings(steps=23, batch=5, fused=5, every=10)
    sources: list[BatchSource] = [build_logged_source(*arrays), Host(*arrays), Host(mapped, *arrays[1:])]
    done = [train(POINTWISE, source, settings, seed=2) for source in sources]
    assert_same(done[1].state, done[2].state)
    for a, b in zip(jax.tree.leaves(done[0].state), jax.tree.leaves(done[1].state), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)
    for a, b in zip(done[0].history, done[1].history, strict=True):
        assert a.loss == pytest.approx(b.loss, rel=1e-5)
    assert np.ptp([moment.loss for moment in done[0].history]) > 1e-3


def test_dla_recovers_propensities_where_order_is_random() -> None:
    truth, log_relevance = linear_world(400)
    model = DLA(network=LINEAR)
    done = train(model, Offline(truth), Settings(steps=2_000, batch=256, fused=500, every=1_000))
    np.testing.assert_allclose(done.propensities(), BIAS / BIAS[0], rtol=0.12)
    assert np.corrcoef(done.scores(truth.features), log_relevance)[0, 1] > 0.97
    np.testing.assert_allclose(done.propensities(5), done.propensities() / done.propensities()[4], rtol=1e-5)


@pytest.mark.parametrize(
    "model",
    [
        Naive(network=Network(hidden=(7, 5), dropout=0.1)),
        Naive(network=LINEAR),
        Vectorization(network=TINY, dimensions=3),
    ],
)
def test_the_exported_network_scores_in_numpy(model: Any, tmp_path: Path) -> None:
    state = quick(lambda: model.init(KEY, FEATURES, POSITIONS))()
    x = 3 * np.random.default_rng(0).normal(size=(50, FEATURES)).astype(np.float32)
    export.save(tmp_path / "network.npz", export.to_arrays(model, state))
    arrays = dict(np.load(tmp_path / "network.npz", allow_pickle=False))
    np.testing.assert_allclose(
        export.numpy_scores(arrays, x), model.scores(state, jnp.asarray(x)), rtol=1e-5, atol=1e-6
    )


def test_a_checkpoint_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    tree = {"a": jnp.ones(3), "b": [jnp.arange(2)]}
    checkpoint.save(path, tree)
    assert_same(checkpoint.load(path, tree), tree)
    assert not list(tmp_path.glob(".*.tmp"))
    with pytest.raises(EluteError, match="another learner"):
        checkpoint.load(path, {"a": jnp.ones(3)})
    with pytest.raises(EluteError, match=r"has \(3,\) for \['a'\], where this learner has \(4,\)"):
        checkpoint.load(path, {"a": jnp.ones(4), "b": [jnp.arange(2)]})
    path.write_bytes(b"not a checkpoint")
    with pytest.raises(EluteError, match="not a readable checkpoint"):
        checkpoint.load(path, tree)
    np.savez(path, a=np.array([{}], dtype=object))
    with pytest.raises(EluteError, match="not a readable checkpoint"):
        checkpoint.load(path, tree)


def test_wrong_settings_are_named() -> None:
    with pytest.raises(EluteError, match="the setting 'steps' is 0; give a whole number from 1"):
        Settings(steps=0)
    source = Offline(linear_world(4)[0])
    for settings, message in (
        (Settings(fused=30), r"every \(500\) must be a multiple of fused \(30\)"),
        (Settings(patience=2), "patience .* needs validation"),
    ):
        with pytest.raises(EluteError, match=message):
            train(Naive(network=TINY), source, settings)
    with pytest.raises(EluteError, match="are renewed every 20 steps"):
        train(Naive(network=TINY), online(), Settings(fused=50))
    with pytest.raises(EluteError, match="validation documents have 8 features, training documents 2"):
        train(Naive(network=TINY), build_logged_source(np.ones((2, 2)), [[0, 1]], [[0, 1]]), validation=graded())
    with pytest.raises(EluteError, match="set 'over' to 'batch'"):
        train(UPE(network=TINY, over="log"), host_log(), Settings(steps=10, batch=2, fused=5, every=5))
    with pytest.raises(EluteError, match="no optimiser 'sgd'"):
        train(Naive(network=TINY, optimiser=Optimiser(name="sgd")), source)  # type: ignore[arg-type]


def test_a_diverging_loss_is_an_error() -> None:
    model = DLA(network=LINEAR, optimiser=Optimiser(name="adam", rate=1e4, clip=1e9))
    with pytest.raises(EluteError, match=r"the loss is no longer finite at step .*; lower the learning rate \(10000\)"):
        train(model, Offline(linear_world(20)[0]), Settings(steps=100, batch=16, fused=10, every=10))
