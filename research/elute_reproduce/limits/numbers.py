"""The limits paper's worked numbers, each recomputed here by the code that users run."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from elute.auditing.assumptions.pairwise import measure_violation
from elute.cells.counts import Counts
from elute.estimate.models.pbm import PBM
from elute.estimate.solve.problem import Floats
from elute.identify.consistency import check_consistency
from elute.simulation.shown import ShownPages
from elute.simulation.users import PlackettLuceChoice
from elute_reproduce.result import Claim

OTHERS = 0.01
"""What the other relevances of Figure 1 sum up to."""

CASCADE = 0.7
"""α of the cascade in Figure 1."""

_SHOWN = 10_000
_EXAMPLE = ("A1 .9", "B2 .64", "C3 .4", "D4 .05", "B1 .8", "A2 .72", "D3 .2", "C4 .1")
"""Section 6.1: item, rank and click probability."""


def plackett_luce(r: Floats) -> Floats:
    """P(click) by relevance on the page of Figure 1 (Eq. 29)."""
    pages = np.stack((r, np.full_like(r, OTHERS)), axis=1)
    return PlackettLuceChoice().probabilities(ShownPages(pages, np.full(len(r), 2)))[:, 0]


def check_worked_numbers() -> tuple[Claim, ...]:
    """Figures 1, Section 3.1 to 3.3, Section 6.1 and Theorem 7.2."""
    return (*_claim_figure1(), _claim_affine(), _claim_clipping(), *_claim_consistency(), _claim_pairwise())


def _claim_figure1() -> tuple[Claim, Claim]:
    at = plackett_luce(np.array([0.01, 0.1, 0.5, 1.0]))
    r = np.linspace(0.001, 1.0, 1_000)
    straight = [float(np.corrcoef(r, y)[0, 1] ** 2) for y in (plackett_luce(r), CASCADE * r)]
    return (
        Claim(
            "Plackett–Luce choice beside 0.01: P(click) = .5, .909, .980, .990 at R = .01, .1, .5, 1.",
            bool(np.allclose(at, [0.5, 0.909, 0.980, 0.990], atol=6e-4)),
            ", ".join(f"{value:.3f}" for value in at),
        ),
        Claim(
            "The best affine fit to it over R = .001, .002, …, 1 has R² .29; a cascade with α = .7 is exactly affine.",
            abs(straight[0] - 0.29) <= 0.005 and straight[1] > 1 - 1e-9,
            f"R² {straight[0]:.3f} and {straight[1]:.3f}",
        ),
    )


def _claim_affine() -> Claim:
    alpha, beta, r = 0.5, 0.2, 0.4
    rate = alpha * r + beta
    weighted, corrected = rate / alpha, (rate - beta) / alpha
    return Claim(
        "α = .5, β = .2, R = .4: inverse propensities give .8, the affine estimator (Eq. 6) .4.",
        bool(np.isclose(weighted, 0.8) and np.isclose(corrected, 0.4)),
        f"{weighted:.3g} and {corrected:.3g}",
    )


def _claim_clipping() -> Claim:
    alpha = 0.06
    fixed = alpha / max(alpha, 0.1)
    falling = [alpha / max(alpha, 1 / np.sqrt(n)) for n in (100, 300)]
    return Claim(
        "Clipping at τ = .1 leaves .6·R at α = .06 for ever; τ = 1/√N leaves R from N = 1/α² on.",
        bool(np.isclose(fixed, 0.6) and falling[0] < 1 and falling[1] == 1),
        f"{fixed:.2g}·R; {falling[0]:.2g}·R at N = 100, {falling[1]:.2g}·R at 300",
    )


def _make_example(*extra: str) -> Counts:
    cells = sorted((ord(word[0]) - ord("A"), int(word[1]) - 1, float(word[2:])) for word in (*_EXAMPLE, *extra))
    item, rank, p = (np.array(column) for column in zip(*cells, strict=True))
    clicks = np.round(_SHOWN * p).astype(np.uint32)
    return Counts(
        np.searchsorted(item, np.arange(5)).astype(np.int64),
        rank.astype(np.int32),
        np.full(len(p), _SHOWN, np.uint32),
        clicks,
        pa.table({"position": np.arange(1, 5)}),
        None,
        0.0,
        lambda: pa.table({"doc_id": list("ABCD")}),
    )


def _claim_consistency() -> tuple[Claim, Claim]:
    counts = _make_example()
    fit = PBM(tolerance=1e-10, relevance_prior="none").fit(counts, allow_unidentified=True)
    o, r = fit.propensity_, fit.relevance_values_
    found = check_consistency(counts, r, o, reference=0)
    ranges = np.concatenate([np.array(flat.relevance_range + flat.propensity_range) for flat in found.flat], axis=0)
    ratios = np.array([o[1], r[0], r[1], r[2] / r[3], o[2] / o[3]])
    more = PBM(relevance_prior="none").fit(linked := _make_example("C2 .4"), allow_unidentified=True)
    after = check_consistency(linked, more.relevance_values_, more.propensity_, reference=0)
    return (
        Claim(
            "Section 6.1: α₂ = .8, R_A = .9, R_B = .8; R_C = 2 R_D and α₃ = 4 α₄ only (rank 6 of 7).",
            bool(np.allclose(ratios, [0.8, 0.9, 0.8, 2, 4], atol=1e-4)) and (found.rank, found.parameters) == (6, 7),
            ", ".join(f"{value:.3g}" for value in ratios) + f"; rank {found.rank} of {found.parameters}",
        ),
        Claim(
            "R_C in [.4, 1], R_D in [.2, .5], α₃ in [.4, 1], α₄ in [.1, .25]; C at rank 2 as well determines all.",
            bool(np.allclose(ranges, [[0.4, 0.2], [1, 0.5], [0.4, 0.1], [1, 0.25]], atol=1e-3)) and after.consistent,
            "; ".join(f"{low:.2g} to {high:.2g}" for pair in (ranges[:2], ranges[2:]) for low, high in pair.T)
            + f"; then rank {after.rank} of {after.parameters}",
        ),
    )


def _claim_pairwise() -> Claim:
    """Two items at one rank examined half the time."""
    counts = Counts(
        np.array([0, 1, 2]),
        np.zeros(2, np.int32),
        np.full(2, 10, np.uint32),
        np.zeros(2, np.uint32),
        pa.table({"position": [1]}),
        None,
        0.0,
        lambda: pa.table({"doc_id": ["a", "b"]}),
    )
    found = measure_violation(counts, np.array([0.9, 0.2]), np.array([0.5]))
    least, most = (0.0, 0.0) if found is None else (found.least, found.most)
    return Claim(
        "Pairwise debiasing: examination .5 asks for t⁻ = 5.5 at R = .9 and 1.125 at R = .2 (Theorem 7.2).",
        bool(np.allclose([least, most], [1.125, 5.5])),
        f"{most:.4g} and {least:.4g}",
    )
