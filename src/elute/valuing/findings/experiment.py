"""An A/B test that would see the difference, and what the counterfactual evidence saves of it.

With so many pages in each arm, the difference of clicks a page has variance 2·σ²/n, σ² that of the clicks on a page. To
see a difference Δ at 5%, with probability 80%, it must be Δ²/(z₀.₉₇₅ + z₀.₈)². Evidence at hand with standard error s
is worth 2·σ²/s² pages in each arm; independent of the test, it leaves n = 2·σ²·((z₀.₉₇₅ + z₀.₈)²/Δ² - 1/s²).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from elute.cells.counts import Amounts
from elute.kernels.jit import jit
from elute.valuing.worth.contrasts import ValueInterval
from elute.valuing.worth.find import Setting

Floats = NDArray[np.float64]

LEVEL, POWER = 0.05, 0.8
_NEEDED = float(ndtri(1 - LEVEL / 2) + ndtri(POWER)) ** 2


def plan_test(difference: ValueInterval, variance: float) -> dict[str, Any]:
    """The field `switch` of a ranking; `variance`: of the clicks on a page."""
    delta, se = difference.value, difference.se
    needed = 2 * variance * _NEEDED / delta**2 if delta else math.inf
    worth = 2 * variance / se**2 if se > 0 else math.inf
    left = max(needed - worth, 0.0) if math.isfinite(needed) else math.inf
    return {
        "level": LEVEL,
        "power": POWER,
        "page_variance": float(f"{variance:.6g}"),
        "pages_each_arm": _whole(needed),
        "evidence_pages": _whole(worth),
        "pages_left": _whole(left),
        "pages_saved": _whole(needed - left) if math.isfinite(needed) else None,
    }


def vary_clicks(setting: Setting, queries: NDArray[np.bool_]) -> float:
    """Of the clicks on a page: independent ones, more where clicks vary more, and as queries differ."""
    traffic, posterior = setting.traffic, setting.posterior
    n = traffic.pages[queries].sum()
    rates = np.where(queries, traffic.clicks / traffic.pages, 0.0)[queries]
    mean = traffic.clicks[queries].sum() / n
    cells = traffic.cells
    within = _sum_variance(*cells, traffic.query, queries, setting.seen.usable, _relevance(setting))
    between = traffic.pages[queries] @ (rates - mean) ** 2
    noise = 0.0 if posterior is None else within / n * len(rates)
    return float(setting.dispersion * within / n + max(between - noise, 0.0) / n)


def _relevance(setting: Setting) -> Floats:
    """By item; none where clicks alone must do."""
    return np.empty(0) if setting.posterior is None else np.nan_to_num(setting.posterior.mean)


def _whole(value: float) -> int | None:
    return math.ceil(value) if math.isfinite(value) else None


@jit
def _sum_variance(
    offsets: NDArray[np.int64],
    factor: NDArray[np.int32],
    impressions: Amounts,
    clicks: Amounts,
    query: NDArray[np.int32],
    queries: NDArray[np.bool_],
    alpha: Floats,
    relevance: Floats,
) -> float:
    """Σ n·p(1-p) over the cells of some queries; p by the model, or by the cell's own clicks."""
    out = 0.0
    for item in range(offsets.shape[0] - 1):
        if queries[query[item]]:
            for cell in range(offsets[item], offsets[item + 1]):
                n = float(impressions[cell])
                own = clicks[cell] / n
                p = min(alpha[factor[cell]] * relevance[item], 1.0) if relevance.shape[0] > 0 else own
                out += n * p * (1.0 - p)
    return out
