"""Losses of the neural learners written out in plain numpy, list by list and document by document.

Independent of JAX: `live` parameters are those a gradient flows to, `held` ones those it must not reach. With both
the same the value is the learner's loss; its finite differences in `live` alone are the learner's gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Params = dict[str, Any]
Objective = Literal["softmax", "sigmoid", "pairwise"]


@dataclass
class Shown:
    """One list: only what is a document."""

    x: Floats
    clicks: Floats
    logging: Floats


def elu(x: Any) -> Any:
    return np.where(np.asarray(x) > 0, x, np.exp(np.minimum(x, 0)) - 1)


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-np.asarray(x)))


def softplus(x: Any) -> Any:
    return np.log(1 + np.exp(x))


def softmax(x: Any) -> Any:
    powers = np.exp(np.asarray(x) - np.max(x))
    return powers / powers.sum()


def network(layers: list[dict[str, Floats]], x: Floats) -> Floats:
    """The outputs for one document."""
    for layer in layers[:-1]:
        x = elu(x @ layer["weight"] + layer["bias"])
    return x @ layers[-1]["weight"] + layers[-1]["bias"]


def scores(params: Params, page: Shown) -> Floats:
    return np.array([network(params["ranker"], x)[0] for x in page.x])


def listwise(f: Floats, targets: Floats) -> float:
    """Softmax loss of one list."""
    return -sum(t * np.log(p) for t, p in zip(targets, softmax(f), strict=True))


def pointwise(f: Floats, targets: Floats) -> float:
    """Sigmoid loss of one list."""
    return -sum(t * np.log(sigmoid(s)) + (1 - t) * np.log(sigmoid(-s)) for s, t in zip(f, targets, strict=True))


def pairwise(f: Floats, targets: Floats) -> float:
    """Pairwise loss of one list."""
    n = len(f)
    return sum(targets[i] * np.log(1 + np.exp(f[j] - f[i])) for i in range(n) for j in range(n) if i != j)


OBJECTIVES: dict[Objective, Callable[[Floats, Floats], float]] = {
    "softmax": listwise,
    "sigmoid": pointwise,
    "pairwise": pairwise,
}


def naive(live: Params, held: Params, pages: list[Shown], objective: Objective) -> float:
    return float(np.mean([OBJECTIVES[objective](scores(live, page), page.clicks) for page in pages]))


def ipw(live: Params, held: Params, pages: list[Shown], objective: Objective, given: Floats) -> float:
    losses = []
    for page in pages:
        weights = given[0] / given[: len(page.clicks)]
        losses.append(OBJECTIVES[objective](scores(live, page), page.clicks * weights))
    return float(np.mean(losses))


def dual(live: Params, held: Params, page: Shown) -> float:
    """Eq. 3b for one list."""
    f, n = softmax(scores(held, page)), len(page.clicks)
    return listwise(elu(live["dual"])[:n], page.clicks * f[0] / f)


def dla(live: Params, held: Params, pages: list[Shown]) -> float:
    propensity, losses = softmax(elu(held["dual"])), []
    for page in pages:
        weights = propensity[0] / propensity[: len(page.clicks)]
        losses.append(listwise(scores(live, page), page.clicks * weights) + dual(live, held, page))
    return float(np.mean(losses))


def rem(live: Params, held: Params, pages: list[Shown], theta: Floats) -> float:
    losses = []
    for page in pages:
        targets = [
            1.0 if c else r * (1 - o) / (1 - r * o)
            for r, o, c in zip(sigmoid(scores(held, page)), theta, page.clicks, strict=False)
        ]
        losses.append(pointwise(scores(live, page), np.array(targets)))
    return float(np.mean(losses))


def rem_memory(held: Params, pages: list[Shown], theta: Floats, rate: float) -> Floats:
    after = theta.copy()
    for k in range(len(theta)):
        examined = []
        for page in pages:
            if k < len(page.clicks):
                r = sigmoid(scores(held, page)[k])
                examined.append(1.0 if page.clicks[k] else theta[k] * (1 - r) / (1 - theta[k] * r))
        if examined:
            after[k] = (1 - rate) * theta[k] + rate * np.mean(examined)
    return after


def pairwise_debias(live: Params, held: Params, pages: list[Shown], plus: Floats, minus: Floats) -> float:
    total = 0.0
    for page in pages:
        f = scores(live, page)
        for i in np.flatnonzero(page.clicks):
            for j in np.flatnonzero(page.clicks == 0):
                total += np.log(1 + np.exp(f[j] - f[i])) / (plus[i] * minus[j])
    return total / len(pages)


def pairwise_memory(
    held: Params, pages: list[Shown], plus: Floats, minus: Floats, rate: float, power: float
) -> tuple[Floats, Floats]:
    over, under = np.zeros_like(plus), np.zeros_like(minus)
    for page in pages:
        f = scores(held, page)
        for i in np.flatnonzero(page.clicks):
            for j in np.flatnonzero(page.clicks == 0):
                cost = np.log(1 + np.exp(f[j] - f[i]))
                over[i] += cost / minus[j]
                under[j] += cost / plus[i]
    return (
        (1 - rate) * plus + rate * (over / over[0]) ** power,
        (1 - rate) * minus + rate * (under / under[0]) ** power,
    )


def vectorization(live: Params, held: Params, pages: list[Shown]) -> float:
    losses = []
    for page in pages:
        products = []
        for x, o in zip(page.x, live["observation"], strict=False):
            products.append(softplus(network(live["ranker"], x)) @ softplus(o))
        share = np.array(products) / np.sum(products)
        losses.append(-(page.clicks * np.log(share)).sum())
    return float(np.mean(losses))


def towers(params: Params, page: Shown) -> Floats:
    """f + g of one list."""
    observation = params["observation"]
    g = elu(observation["embedding"]) @ observation["out"]["weight"] + observation["out"]["bias"]
    return scores(params, page) + g[: len(page.clicks), 0]


def two_tower(live: Params, held: Params, pages: list[Shown], objective: Objective) -> float:
    return float(np.mean([OBJECTIVES[objective](towers(live, page), page.clicks) for page in pages]))


def gradient_reversal(live: Params, held: Params, pages: list[Shown], strength: float) -> float:
    at, moved = (elu(params["observation"]["embedding"]) for params in (held, live))
    representation = at - strength * (moved - at)
    losses = []
    for page in pages:
        n = len(page.clicks)
        foretold = (representation @ live["adversary"]["weight"] + live["adversary"]["bias"])[:n, 0]
        losses.append(pointwise(foretold, sigmoid(scores(held, page))))
    return two_tower(live, held, pages, "sigmoid") + float(np.mean(losses))


def joint(document: Params, position: Floats | None, x: Floats) -> float:
    """The joint network for one document, at one position or at none."""
    m = elu(x @ document["encoder"]["weight"] + document["encoder"]["bias"])
    return float(network(document["network"], m if position is None else m + position)[0])


def gru(cell: Params, state: Floats, inputs: Floats) -> Floats:
    """The next state of a gated recurrent unit (Cho et al. 2014), gate by gate."""
    n = len(state)
    given = inputs @ cell["input"] + cell["input_bias"]
    held = state @ cell["state"] + cell["bias"]
    reset, update = (sigmoid(given[i * n : (i + 1) * n] + held[i * n : (i + 1) * n]) for i in range(2))
    new = np.tanh(given[2 * n :] + reset * held[2 * n :])
    return np.asarray((1 - update) * new + update * state)


def simulate(user: Params, documents: Floats, clicks: Floats | None) -> tuple[list[float], list[float]]:
    """Log odds down a page and its clicks: those given, or, without any, what is more likely than not."""
    size = len(user["out"]["weight"])
    vectors = [elu(x @ user["document"]["weight"] + user["document"]["bias"]) for x in documents]
    context = np.zeros(size)
    for vector in vectors:
        context = gru(user["context"], context, vector)
    cell, state, above = user["page"], np.zeros(size), 0.0
    odds: list[float] = []
    found: list[float] = []
    for k, vector in enumerate(vectors):
        told = np.concatenate((context, vector, user["position"][k]))
        own = {**cell, "input_bias": cell["input_bias"] + above * user["click"]}
        state = gru(own, state, told)
        odds.append(float((state @ user["out"]["weight"] + user["out"]["bias"])[0]))
        above = float(odds[-1] > 0) if clicks is None else float(clicks[k])
        found.append(above)
    return odds, found


def multr(live: Params, held: Params, pages: list[Shown], early: bool = False) -> float:
    """Random orders are the reverse one; early, dual learning and the simulator's likelihood."""
    relative, losses = np.exp(elu(held["dual"]) - elu(held["dual"])[0]), []
    for page in pages:
        n = len(page.clicks)
        f, weights = scores(live, page), 1 / relative[:n]
        if early:
            odds, _ = simulate(live["simulator"], page.x, page.clicks)
            rest = pointwise(np.array(odds), page.clicks) + listwise(f, weights * page.clicks)
        else:
            pseudo = np.array(simulate(held["simulator"], page.x, None)[1])
            elsewhere = np.array(simulate(held["simulator"], page.x[::-1], None)[1])[::-1]
            rest = listwise(f, weights * page.clicks) - listwise(f, weights * pseudo) + listwise(f, elsewhere)
        losses.append(rest + dual(live, held, page))
    return float(np.mean(losses))


def backdoor(params: Params, pages: list[Shown], average: str) -> Floats:
    """Propensities by position, up to scale: Eq. 6d, document by document."""
    rows = []
    for page in pages:
        for x in page.x:
            logits = np.array([joint(params["document"], p, x) for p in params["position"]])
            rows.append({"logit": logits, "exponential": np.exp(logits), "probability": softmax(logits)}[average])
    mean = np.mean(rows, axis=0)
    return np.exp(mean) if average == "logit" else mean


def upe(
    live: Params,
    held: Params,
    pages: list[Shown],
    *,
    average: str = "logit",
    target: str = "logit",
    confounding: str = "scores",
    frozen: bool = True,
    propensities: Floats | None = None,
) -> float:
    """`propensities`: those that weigh the ranker's clicks, where they are not the batch's own."""
    p = backdoor(held, pages, average) if propensities is None else propensities
    g, losses = elu(held["dual"]), []
    for page in pages:
        n = len(page.clicks)
        loss = listwise(scores(live, page), page.clicks * p[0] / p[:n])
        ranks = np.arange(1, n + 1)
        wanted = {"scores": page.logging, "mrr": 1 / ranks, "dcg": 1 / np.log2(ranks + 1)}.get(confounding)
        if wanted is not None:
            fitted = np.array([joint(live["document"], None, x) for x in page.x])
            loss += listwise(fitted, softmax(wanted))
        document = held["document"] if frozen else live["document"]
        fitted = np.array([joint(document, live["position"][k], page.x[k]) for k in range(n)])
        if target == "clicks":
            f = softmax(scores(held, page))
            loss += listwise(fitted, page.clicks * f[0] / f)
        else:
            y = {"logit": g, "probability": softmax(g), "ratio": np.exp(g - g[-1])}[target]
            loss += listwise(fitted, softmax(y[:n])) + dual(live, held, page)
        losses.append(loss)
    return float(np.mean(losses))
