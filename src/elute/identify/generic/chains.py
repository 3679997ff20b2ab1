"""What pages can determine of a chain: a user who reads from the top and, after each document, goes on or stops.

Given that the last click was at place j (0: none), the next is at k with

    f_jk = on_j·Π_{j<i<k} (1 - a_i)·γ · a_k,      on_0 = 1,

and these are all that the clicks of a page can tell. With d = derivative of the logarithm, f_0k has

    d a_k = -(k - 1)·dγ + Σ_{i<k} a_i/(1 - a_i)·d a_i:      once γ is known, a page tells all its attractions,

so that items drop out: `d a_k` is a multiple c_k·dγ. An item on several pages must have one direction, and every two of
its c that differ put an equation on γ. From f_jk nothing follows but d on_j = -c_{j+1}·dγ, which says what the page
tells of going on after a click: of γ(1 - S) in the DBN (an item's own, again one for all its pages), of
α₂(1 - R) + α₃R in the CCM. The null dimension is that of these equations in the rates that all items share, at a random
point.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ids = NDArray[np.integer]

SHARED = {
    "cascade": (),
    "sdbn": (),
    "dcm": (),
    "dbn": ("continuation",),
    "ccm": ("continuation after no click", "after an irrelevant click", "after a relevant click"),
}
"""Rates that all items share and that pages may leave open. (Those of the DCM are told by any page that is long enough:
d λ_j = 0.)"""

_SMALL = 1e-9
"""Of a singular value, relative to the largest: the rank is numerical."""

_POINTS = 3


class ChainNull(NamedTuple):
    """Dimensions that pages leave to the shared rates, those rates that take part, and items whose satisfaction no page
    can show: they were never shown above another."""

    dimension: int
    open: list[str]
    loose: int


def count_chain_null(model: str, doc: Ids, length: Ids, seed: int) -> ChainNull:
    """Of pages: item ids by (page, place), padded on the right. The least of a few random points: a rank at a point is
    at most the generic one."""
    shared, rng = SHARED[model], np.random.default_rng(seed)
    items, code = np.unique(doc, return_inverse=True)
    code = code.reshape(doc.shape)
    mask = np.arange(doc.shape[1]) < length[:, None]
    has_next = np.arange(doc.shape[1]) + 1 < length[:, None]
    above = np.bincount(code[has_next], minlength=len(items)) > 0
    shown = np.bincount(code[mask], minlength=len(items)) > 0
    loose = int((shown & ~above).sum()) if model in ("sdbn", "dbn") else 0
    if not shared:
        return ChainNull(0, [], loose)
    found: list[Floats] = []
    for _ in range(_POINTS):
        a = rng.uniform(0.1, 0.9, len(items))[code]
        rows = _pose(model, a, code, mask, has_next, len(items), rng)
        scale = np.abs(rows).max(initial=0.0)
        _, sizes, directions = np.linalg.svd(np.concatenate((rows, np.zeros((len(shared), len(shared))))))
        null = directions[sizes <= _SMALL * max(scale, 1.0)]
        if not found or len(null) < len(found[-1]):
            found.append(null)
    free = found[-1]
    taking_part = np.abs(free).max(axis=0, initial=0.0) > 1e-6
    return ChainNull(len(free), [name for name, some in zip(shared, taking_part, strict=True) if some], loose)


def _pose(
    model: str,
    a: Floats,
    item: Ids,
    mask: NDArray[np.bool_],
    has_next: NDArray[np.bool_],
    items: int,
    rng: np.random.Generator,
) -> Floats:
    """The equations as rows over the shared rates, summed up as a square root of their normal matrix."""
    c = np.zeros_like(a)
    total = np.zeros(len(a))
    for k in range(a.shape[1]):
        c[:, k] = total - k
        total = total + a[:, k] / (1.0 - a[:, k]) * c[:, k]
    following = np.concatenate((c[:, 1:], np.zeros((len(c), 1))), axis=1)
    if model == "dbn":
        rows = np.concatenate((_spread(c, item, mask, items), _spread(following, item, has_next, items)))
        return np.array([[np.linalg.norm(rows)]]) if len(rows) else np.zeros((1, 1))
    alpha = rng.uniform(0.1, 0.9, 2)
    r, c_here, c_next = a[has_next], c[has_next], following[has_next]
    on = alpha[0] * (1.0 - r) + alpha[1] * r
    by_item = (alpha[1] - alpha[0]) * r / on * c_here
    rows = np.stack((by_item + c_next, alpha[0] * (1.0 - r) / on, alpha[1] * r / on), axis=1)
    of_items = _spread(c, item, mask, items)
    own = np.stack((of_items, np.zeros_like(of_items), np.zeros_like(of_items)), axis=1)
    return np.asarray(np.linalg.qr(np.concatenate((rows, own, np.zeros((3, 3)))), mode="r"))


def _spread(c: Floats, item: Ids, where: NDArray[np.bool_], items: int) -> Floats:
    """How far each c lies from the first of its item: what must be 0 or put an equation."""
    code, values = item[where], c[where]
    first = np.zeros(items)
    first[code[::-1]] = values[::-1]
    return values - first[code]
