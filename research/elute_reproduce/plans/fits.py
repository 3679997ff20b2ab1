"""A whole plan followed as clicks come: a sparse log in two parts, the plan that elute makes for it, the fit at every
look."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from elute.cells.counts import Clustered, Counts
from elute.cells.factors import find_rows
from elute.repair.looks.cells import part_items
from elute.repair.looks.links import MeasuredLinks, measure_links
from elute.repair.looks.sequence import plan_sequence
from elute.verbs.repair import swap
from elute_reproduce.plans.links import TARGET_SE, Looks, sum_up
from elute_reproduce.study import Study

POSITIONS = 6
_BLOCK = 3
_ITEMS = 150
_O = 1.0 / np.arange(1, POSITIONS + 1)


_VISITS = 5
"""Impressions in a row that are one user's."""

Rows = list[np.ndarray]
"""Item, position (from 0), user and click of every impression."""


def watch_plan(study: Study, runs: int, looks: int, seed: int = 0, tastes: float = 0.0) -> Looks:
    """A plan followed in so many runs."""
    sequence = plan_sequence(TARGET_SE, 1)
    found = study.map("runs", watch_run, [(run, looks, seed, tastes) for run in range(runs)])
    errors, variances, shown = (np.array(column) for column in zip(*found, strict=True))
    return sum_up(errors, variances, shown.sum(axis=0) // runs, sequence)


def watch_run(run: int, looks: int, seed: int, tastes: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The error, its variance and the impressions of the new pair at every look.

    Positions 1 to 3 and 4 to 6 share no item; the median item was shown a handful of times. The plan is made from
    the log, so that the item it picks is one that looked good there. `tastes`: half of the users click more by its
    root, half less; a user sees several results, and is known by a session column."""
    sequence = plan_sequence(TARGET_SE, 1)
    errors, variances, shown = np.zeros(looks), np.full(looks, np.inf), np.zeros(looks, np.int64)
    rng = np.random.default_rng([seed, run])
    r = rng.beta(1.0, 3.0, _ITEMS) / (1 + np.sqrt(tastes))
    old = _draw_log(rng, r, tastes)
    chosen = swap(_count(old), target_se=TARGET_SE).swaps[0]
    item, source, target = chosen.item["doc_id"], chosen.source["position"] - 1, chosen.target["position"] - 1
    needed = (1 / (r[item] * _O[[source, target]]) - 1) / (sequence.goal / 2)
    steps = np.ceil((1.5 + 2 * tastes) * needed / looks).astype(int)
    since = [part[:0] for part in old]
    for look in range(looks):
        fresh = [_show(rng, r, item, *pair, tastes) for pair in zip((source, target), steps.tolist(), strict=True)]
        since = [np.concatenate(parts) for parts in zip(since, *fresh, strict=True)]
        found = _measure(old, since, item, source, target, tastes > 0)
        if found.tied[0]:
            errors[look] = found.log_ratio[0] - np.log(_O[source] / _O[target])
            variances[look] = found.variance[0]
        shown[look] = steps[1] * (look + 1)
    return errors, variances, shown


def _draw_log(rng: np.random.Generator, r: np.ndarray, tastes: float) -> Rows:
    """The log before the plan: every item within its block, some far more often than most."""
    often = np.exp(rng.normal(1.0, 1.5, (_ITEMS, _BLOCK)))
    shown = rng.poisson(often)
    shown[:, 0] += shown.sum(axis=1) == 0
    item, place = (part.repeat(shown.ravel()) for part in np.indices(shown.shape).reshape(2, -1))
    order = rng.permutation(len(item))
    return _click(rng, r, item[order], (place + _BLOCK * (item % 2))[order], tastes)


def _show(rng: np.random.Generator, r: np.ndarray, item: int, factor: int, n: int, tastes: float) -> Rows:
    return _click(rng, r, np.full(n, item), np.full(n, factor), tastes)


def _click(rng: np.random.Generator, r: np.ndarray, item: np.ndarray, factor: np.ndarray, tastes: float) -> Rows:
    user = np.arange(len(item)) // _VISITS
    level = 1 + np.sqrt(tastes) * rng.choice([-1, 1], len(user))
    p = r[item] * _O[factor] * level[user]
    return [item, factor, user + rng.integers(1 << 40), rng.random(len(item)) < p]


def _measure(old: Rows, since: Rows, item: int, source: int, target: int, with_clusters: bool) -> MeasuredLinks:
    """The link, as `follow_plan` learns it."""
    counts, later = _count([np.concatenate(parts) for parts in zip(old, since, strict=True)]), _count(since)
    named = {"doc_id": item}
    parted = part_items(counts, later, find_rows(counts.items, [named]), find_rows(later.items, [named]))
    clusters = []
    if with_clusters:
        clusters = [("user", lambda: parted.part_clusters(counts.read_clusters("user"), later.read_clusters("user")))]
    return measure_links(parted.counts, np.array([source]), np.array([target]), parted.again, clusters=clusters)


def _count(rows: Rows) -> Counts:
    """The counts of a log whose items are docs and whose factors are positions."""
    item, factor, user, click = rows
    cell, at = np.unique(item * POSITIONS + factor, return_inverse=True)
    names, of_cell = np.unique(cell // POSITIONS, return_inverse=True)
    offsets = np.concatenate(([0], np.cumsum(np.bincount(of_cell)))).astype(np.int64)
    code, every = np.unique(user, return_inverse=True)[1], np.searchsorted(names, item)
    clustered = Clustered(code, every, factor, np.ones(len(item), np.int64), click.astype(np.int64))
    return Counts(
        offsets=offsets,
        factor=(cell % POSITIONS).astype(np.int32),
        impressions=np.bincount(at).astype(np.uint32),
        clicks=np.bincount(at, click).astype(np.uint32),
        factors=pa.table({"position": np.arange(1, POSITIONS + 1)}),
        membership=None,
        collision_bound=0.0,
        read_items=lambda: pa.table({"doc_id": names}),
        read_clusters=lambda _: clustered,
    )
