"""Steps a second of every learner against the floor: a bare jitted forward and backward pass of the same networks.

The floor has one fixed batch: no clicks drawn, no features looked up, no weights, no optimiser. Its networks are those
that the learner trains: the ranker; for MULTR also its click simulator; for UPE also its propensity network, once for
each loss that trains a part of it (Eq. 10 and 13), and without the averages over all positions (Eq. 14), which are
UPE's own. "Fused" is stricter: all its steps are one call of the device, each with a plain gradient step, as a call's
own cost is most of a step on a GPU.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np

from elute.neural import joint, simulator
from elute.neural.learner import Learner
from elute.neural.learners import build_learner
from elute.neural.losses import softmax_loss
from elute.neural.networks import PAPER
from elute.neural.sources import Offline, SimulatedLists, build_simulated_lists

POSITIONS, BATCH = 10, 256
BIAS = np.array([0.68, 0.61, 0.48, 0.34, 0.28, 0.20, 0.11, 0.10, 0.08, 0.06])
NAMES = (
    "naive", "ipw", "dla", "rem", "pairwise-debias", "vectorization", "multr", "grad-reversal", "observation-dropout",
    "upe", "upe-mrr", "upe-dcg", "upe-n",
)  # fmt: skip
PEERS = Path(__file__).parent.parent / ".benchmarks" / "peers" / "bin" / "python"


def some_world(features: int, lists: int = 500) -> SimulatedLists:
    """Lists of 10 documents, as many as do not all stay in a processor's cache."""
    rng = np.random.default_rng(0)
    rows = np.arange(lists * POSITIONS).reshape(lists, POSITIONS)
    x = rng.standard_normal((rows.size, features), np.float32)
    return build_simulated_lists(x, rows, rng.standard_normal(rows.shape), rng.uniform(0.1, 1, rows.size), BIAS)


def floor_of(name: str) -> str:
    """Which floor a learner has."""
    return "floor of upe" if name.startswith("upe") else "floor of multr" if name == "multr" else "floor"


def bare(name: str, truth: SimulatedLists, steps: int) -> dict[str, Callable[[], Any]]:
    """A floor, call by call and fused."""
    batch = truth.draw(jax.random.PRNGKey(0), BATCH)
    x, mask, clicks = truth.features[batch.documents], batch.documents >= 0, batch.clicks
    assert batch.logging is not None
    wanted = jax.nn.softmax(batch.logging)
    model = build_learner("upe" if name == "floor of upe" else "multr" if name == "floor of multr" else "naive")
    params = model.init(jax.random.PRNGKey(0), x.shape[2], POSITIONS).params
    keys = jax.random.split(jax.random.PRNGKey(1), steps)
    listed = list(keys)

    def loss(params: Any, x: Any, key: Any) -> Any:
        total = softmax_loss(PAPER.scores(params["ranker"], x, key), clicks, mask)
        if name == "floor of multr":
            return total + simulator.loss(params["simulator"], x, mask, clicks)
        if name == "floor of upe":
            encoded = joint.encode(params["document"], x)
            total += softmax_loss(joint.score(params["document"], encoded), wanted, mask)
            document, encoded = jax.lax.stop_gradient((params["document"], encoded))
            total += softmax_loss(joint.score(document, encoded + params["position"]), wanted, mask)
        return total

    once = jax.jit(jax.value_and_grad(loss))

    def call_by_call() -> Any:
        for key in listed:
            out = once(params, x, key)
        return jax.block_until_ready(out)

    @jax.jit
    def fused(params: Any, x: Any, keys: Any) -> Any:
        def step(params: Any, key: Any) -> tuple[Any, Any]:
            value, slope = jax.value_and_grad(loss)(params, x, key)
            return jax.tree.map(lambda a, b: a - 1e-3 * b, params, slope), value

        return jax.lax.scan(step, params, keys)

    return {name: call_by_call, f"{name}, fused": lambda: jax.block_until_ready(fused(params, x, keys))}


def trained(name: str, truth: SimulatedLists, steps: int) -> Callable[[], Any]:
    """A learner's own steps."""
    given = {"given": tuple(BIAS)} if name == "ipw" else {}
    model: Learner = build_learner(name, **given)
    first = model.init(jax.random.PRNGKey(0), truth.features.shape[1], POSITIONS)
    return lambda: jax.block_until_ready(Offline(truth).advance(model, first, steps, BATCH))


def speed(features: int, steps: int, repeats: int, names: tuple[str, ...] = NAMES) -> dict[str, Any]:
    """Median steps a second, turn by turn so that a slow spell hits all alike; on a CPU the ratio to the floor also by
    processor time, which other work on the machine disturbs less."""
    truth = some_world(features)
    work: dict[str, Callable[[], Any]] = {}
    for name in dict.fromkeys(floor_of(name) for name in names):
        work |= bare(name, truth, steps)
    work |= {name: trained(name, truth, steps) for name in names}
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in work}
    for turn in range(repeats + 1):
        for name, run in work.items():
            began, used = time.perf_counter(), time.process_time()
            run()
            if turn:
                taken[name].append((time.perf_counter() - began, time.process_time() - used))
    wall, processor = (
        {name: steps / float(np.median(runs, axis=0)[i]) for name, runs in taken.items()} for i in (0, 1)
    )
    out: dict[str, Any] = {
        "steps_per_second": _round(wall, 1),
        "of_the_floor": _relative(wall, names),
        "of_the_fused_floor": _relative(wall, names, ", fused"),
    }
    if jax.default_backend() == "cpu":
        out["of_the_floor_by_processor_time"] = _relative(processor, names)
    return out


def torch_loop(features: int, steps: int, repeats: int) -> dict[str, Any] | str:
    """The same step of DLA as a plain loop in PyTorch, in the peers' environment; why not, where there is none."""
    if not PEERS.exists():
        return f"no {PEERS}; python -m benchmarks.clicks makes it, torch comes with it"
    script = Path(__file__).parent / "torch_dla.py"
    command = [str(PEERS), str(script), str(features), str(steps), str(repeats), "cpu"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        return f"failed: {done.stderr.strip().splitlines()[-1][:200]}"
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _relative(rates: dict[str, float], names: tuple[str, ...], how: str = "") -> dict[str, float]:
    return _round({name: rates[name] / rates[floor_of(name) + how] for name in names}, 3)


def _round(values: dict[str, float], digits: int) -> dict[str, float]:
    return {name: round(value, digits) for name, value in values.items()}
