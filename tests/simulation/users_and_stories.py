"""Every user beside its plain story, on small random pages."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

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
    trust_bias,
)
from reference import plain_users as plain

_rng = np.random.default_rng(20)
RANKS = 8
O = np.sort(_rng.uniform(0.2, 0.95, RANKS))[::-1].copy()  # noqa: E741
PLUS, MINUS = np.linspace(1.0, 0.7, RANKS), np.linspace(0.5, 0.0, RANKS)
TABLE = np.tril(_rng.uniform(0.1, 1.0, (RANKS, RANKS)))
LAMBDA = _rng.uniform(0.1, 0.9, RANKS)
VECTORS, WEIGHTS = _rng.normal(0, 1, (6, 3)), np.array([0.8, -0.9, 0.5])
ROWS = np.array([1.0, 0.6, 0.5, 0.3])


@dataclass(frozen=True)
class Page:
    """One page's results, as plain lists."""

    relevance: list[float]
    satisfaction: list[float] | None
    context: list[int]

    @property
    def satisfied(self) -> list[float]:
        return [r / 2 for r in self.relevance] if self.satisfaction is None else self.satisfaction


CASES = {
    "pbm": (PositionBased(O), lambda p: plain.position_based(p.relevance, O, 1)),
    "pbm-eta": (PositionBased(O, eta=1.7), lambda p: plain.position_based(p.relevance, O, 1.7)),
    "cpbm": (
        ContextualPositionBased(VECTORS, WEIGHTS, O),
        lambda p: plain.contextual(p.relevance, p.context, VECTORS, WEIGHTS, O),
    ),
    "cascade": (CascadeUser(), lambda p: plain.cascade(p.relevance)),
    "dcm": (DependentClick(LAMBDA), lambda p: plain.dependent_click(p.relevance, LAMBDA)),
    "dcm-flat": (DependentClick(0.3), lambda p: plain.dependent_click(p.relevance, [0.3] * RANKS)),
    "ubm": (UserBrowsing(TABLE), lambda p: plain.browsing(p.relevance, TABLE)),
    "dbn": (DynamicBayesian(0.8), lambda p: plain.dynamic_bayesian(p.relevance, p.satisfied, 0.8)),
    "mixture-dbn": (MixtureDBN(0.7, 0.6), lambda p: plain.mixture_dbn(p.relevance, p.satisfied, 0.7, 0.6)),
    "carousel": (Carousel(2, ROWS, 0.75), lambda p: plain.carousel(p.relevance, p.satisfied, 2, ROWS, 0.75)),
    "trust": (Trust(*trust_bias(O, PLUS, MINUS)), lambda p: plain.trust(p.relevance, O, PLUS, MINUS)),
    "pl-choice": (PlackettLuceChoice(), lambda p: plain.choice(p.relevance)),
}


def shown_of(pages: list[Page], width: int, filler: float = np.nan) -> ShownPages:
    """Pages as arrays, with `filler` for padding. All pages have satisfaction, or none has."""
    relevance = np.full((len(pages), width), filler)
    context = np.full(relevance.shape, -1, np.int32)
    satisfaction = np.full(relevance.shape, filler)
    for i, page in enumerate(pages):
        n = len(page.relevance)
        relevance[i, :n], context[i, :n] = page.relevance, page.context
        if page.satisfaction is not None:
            satisfaction[i, :n] = page.satisfaction
    given = any(page.satisfaction is not None for page in pages)
    length = np.array([len(page.relevance) for page in pages], np.int64)
    return ShownPages(relevance, length, satisfaction if given else None, context)


def draw_pages(seed: int, lengths: list[int], satisfaction: bool) -> list[Page]:
    """Random pages; some results are surely, some surely not, relevant."""
    rng = np.random.default_rng(seed)
    pages = []
    for n in lengths:
        relevance = rng.uniform(0, 1, n)
        relevance[rng.random(n) < 0.1] = 0.0
        relevance[rng.random(n) < 0.1] = 1.0
        given = rng.uniform(0, 1, n).tolist() if satisfaction else None
        pages.append(Page(relevance.tolist(), given, rng.integers(len(VECTORS), size=n).tolist()))
    return pages
