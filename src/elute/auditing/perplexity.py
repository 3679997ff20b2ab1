"""How well click probabilities fit clicks: log-likelihood and perplexity (Eq. 2 and 3 of the CMIP paper).

Impressions come flat with their `ranks` (from 1), or as pages × ranks with a `mask` that is true where a document was
shown. Perplexity is not the mean of its batches: over a test set read in parts, add up `Losses` and finish once.
A model that is certain and wrong has an infinite perplexity; that is not hidden here.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import xlog1py, xlogy

from elute.errors import EluteError

Floats = NDArray[np.float64]
Ranks = NDArray[np.int64]


class Losses(NamedTuple):
    """By rank, from rank 1: the sum of -log2 P(what happened), and the impressions it is over."""

    bits: Floats
    impressions: Ranks

    def add(self, other: Losses) -> Losses:
        """Both together; one may have more ranks."""
        width = max(len(self.bits), len(other.bits))
        bits, impressions = np.zeros(width), np.zeros(width, np.int64)
        for part in (self, other):
            bits[: len(part.bits)] += part.bits
            impressions[: len(part.bits)] += part.impressions
        return Losses(bits, impressions)


class Perplexity(NamedTuple):
    """PPL@k by rank from 1 (Eq. 2; NaN at a rank never shown) and PPL, its mean over the ranks shown (Eq. 3)."""

    at_rank: Floats
    mean: float


def compute_losses(
    probabilities: ArrayLike, clicks: ArrayLike, *, ranks: ArrayLike | None = None, mask: ArrayLike | None = None
) -> Losses:
    """What perplexity adds up, for one part of a test set."""
    p, c, rank = _check_impressions(probabilities, clicks, ranks, mask)
    bits = -(xlogy(c, p) + xlog1py(1 - c, -p)) / np.log(2)
    width = int(rank.max(initial=0))
    return Losses(
        np.bincount(rank - 1, bits, width).astype(np.float64), np.bincount(rank - 1, minlength=width).astype(np.int64)
    )


def finish(total: Losses) -> Perplexity:
    """Perplexity from the losses of a whole test set."""
    shown = total.impressions > 0
    at_rank = np.full(len(shown), np.nan)
    at_rank[shown] = np.exp2(total.bits[shown] / total.impressions[shown])
    return Perplexity(at_rank, float(at_rank[shown].mean()) if shown.any() else float("nan"))


def perplexity(
    probabilities: ArrayLike, clicks: ArrayLike, *, ranks: ArrayLike | None = None, mask: ArrayLike | None = None
) -> Perplexity:
    """2 to the mean -log2 P(click or no click), at each rank and averaged over ranks: 1 is perfect, 2 a coin.

    `probabilities` must be P(click | page), without knowledge of the page's clicks: the Eq. 2 of the paper.
    """
    return finish(compute_losses(probabilities, clicks, ranks=ranks, mask=mask))


def conditional_perplexity(
    probabilities: ArrayLike, clicks: ArrayLike, *, ranks: ArrayLike | None = None, mask: ArrayLike | None = None
) -> Perplexity:
    """The same of P(click | page, the page's clicks at higher ranks).

    Models of sessions (UBM, DBN, neural ones) predict better when told the earlier clicks, so the two must not be
    compared with each other; that is why this one has a name of its own. Hand in the conditional probabilities.
    """
    return finish(compute_losses(probabilities, clicks, ranks=ranks, mask=mask))


def log_likelihood(probabilities: ArrayLike, clicks: ArrayLike, *, mask: ArrayLike | None = None) -> float:
    """Σ log P(click or no click) over impressions, natural logarithm; -inf where a certain prediction was wrong."""
    p, c, _ = _check_impressions(
        probabilities, clicks, None if np.ndim(probabilities) == 2 else np.ones_like(clicks), mask
    )
    return float((xlogy(c, p) + xlog1py(1 - c, -p)).sum())


def _check_impressions(
    probabilities: ArrayLike, clicks: ArrayLike, ranks: ArrayLike | None, mask: ArrayLike | None
) -> tuple[Floats, Floats, Ranks]:
    """Flat arrays of what was shown, checked."""
    p, c = np.asarray(probabilities, np.float64), np.asarray(clicks, np.float64)
    if p.shape != c.shape or p.ndim not in (1, 2):
        raise EluteError(
            f"probabilities and clicks must have one shape, flat or pages × ranks; {p.shape} and {c.shape}"
        )
    if p.ndim == 2:
        if ranks is not None:
            raise EluteError("pages × ranks take their ranks from their columns; pass ranks= with flat arrays only")
        rank = np.broadcast_to(np.arange(1, p.shape[1] + 1), p.shape)
    elif ranks is None:
        raise EluteError("flat probabilities need ranks=, the rank from 1 of every impression")
    else:
        rank = np.asarray(ranks)
    if rank.shape != p.shape:
        raise EluteError(f"there must be one rank for each of {p.size:,} impressions; there are {rank.size:,}")
    if mask is not None:
        shown = np.asarray(mask, np.bool_)
        if shown.shape != p.shape:
            raise EluteError(f"the mask must have the shape of the probabilities, {p.shape}; it has {shown.shape}")
        p, c, rank = p[shown], c[shown], rank[shown]
    p, c, rank = p.ravel(), c.ravel(), rank.ravel().astype(np.int64)
    if not ((p >= 0) & (p <= 1)).all():
        raise EluteError("click probabilities must lie in [0, 1]; hand in probabilities, not logits")
    if not ((c >= 0) & (c <= 1)).all():
        raise EluteError("clicks must lie in [0, 1]")
    if (rank < 1).any():
        raise EluteError("ranks count from 1; add 1 to ranks that count from 0")
    return p, c, rank
