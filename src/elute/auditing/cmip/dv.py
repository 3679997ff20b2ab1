"""The paper's estimator (section 4.3): a classifier tells the log from a shuffled one, and so gives the density ratio.

Samples of the independent distribution q come from exchanging policy scores between documents of a grade: with grades,
that is what nearest neighbours in relevance amount to (4.3.1). The Donsker–Varadhan bound (Eq. 13) then needs
P(m = 1) from a calibrated classifier on documents that it has not seen. So, other than in the published package,
documents go in five folds: trees are fitted on three, their log odds calibrated on the fourth by logistic regression,
and the bound is computed on the fifth, each in turn; all draws come from the seed.

Only a perfect classifier reaches the bound: expect a value below the truth, more so with few documents. How far below
is not known, so it has no interval: one from the spread of documents missed the truth in 8 of 8 draws.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
from scipy.special import expit, logit

from elute.auditing.cmip.strata import Floats, Ints, Stratum
from elute.errors import MissingExtra

FOLDS = 5
REPETITIONS = 5
TREES = 100
CLIP = float(logit(0.99))
"""P(m = 1) is kept in [0.01, 0.99] (4.3.2)."""


def dv(strata: list[Stratum], rng: np.random.Generator) -> float:
    """The mean bound over repetitions."""
    lightgbm = _import_lightgbm()
    grade = np.repeat(np.arange(len(strata)), [s.n for s in strata])
    x = np.concatenate([(s.x + 0.5) / s.n for s in strata])
    y = np.concatenate([(s.y + 0.5) / s.n for s in strata])
    return float(np.mean([bound(*_estimate_log_odds(lightgbm, x, y, grade, rng)) for _ in range(REPETITIONS)]))


def bound(p: Floats, q: Floats) -> float:
    """Eq. 13 from the log odds of m = 1 of samples of p and of q."""
    return float(p.mean() - np.log(np.exp(q).mean()))


def _estimate_log_odds(
    lightgbm: ModuleType, x: Floats, y: Floats, grade: Ints, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Calibrated, of every document as it is and of every document with another's policy score."""
    fold = rng.integers(0, FOLDS, len(x))
    # From the same fold, so that no score is seen in fitting and again in the bound. Drawn with replacement (as in
    # 4.3.1): a permutation would leave both margins the same to the last document, and no first split has any gain.
    block = fold * (grade.max() + 1) + grade
    size = np.bincount(block)
    first = np.cumsum(size) - size
    order = np.argsort(block, kind="stable")
    other = y[order[first[block] + rng.integers(0, size[block])]]
    joint, independent = np.column_stack((x, y, grade)), np.column_stack((x, other, grade))
    p, q = np.empty(len(x)), np.empty(len(x))
    parameters = {
        "objective": "binary",
        "learning_rate": 0.05,
        "num_leaves": 31,
        "min_data_in_leaf": 100,
        "verbosity": -1,
        "deterministic": True,
        "force_row_wise": True,
        "num_threads": 1,
        "seed": int(rng.integers(2**31)),
    }
    for f in range(FOLDS):
        held, calibrating = fold == f, fold == (f + 1) % FOLDS
        seen = ~held & ~calibrating
        rows = np.concatenate((joint[seen], independent[seen]))
        data = lightgbm.Dataset(rows, np.repeat([1, 0], seen.sum()), categorical_feature=[2])
        trees = lightgbm.train(parameters, data, TREES)
        intercept, slope = _calibrate(
            _predict_raw(trees, joint[calibrating]), _predict_raw(trees, independent[calibrating])
        )
        for out, sample in ((p, joint), (q, independent)):
            out[held] = np.clip(intercept + slope * _predict_raw(trees, sample[held]), -CLIP, CLIP)
    return p, q


def _predict_raw(trees: Any, rows: Floats) -> Floats:
    return np.asarray(trees.predict(rows, raw_score=True), np.float64)


def _calibrate(p: Floats, q: Floats) -> tuple[float, float]:
    """Intercept and slope of a logistic regression of m on log odds, by Newton; a slope below 0 is none."""
    design = np.column_stack((np.ones(len(p) + len(q)), np.concatenate((p, q))))
    label = np.repeat([1.0, 0.0], [len(p), len(q)])
    beta = np.array([0.0, 1.0])
    for _ in range(25):
        chance = expit(design @ beta)
        curvature = design.T @ (design * (chance * (1 - chance))[:, None]) + 1e-9 * np.eye(2)
        step = np.linalg.solve(curvature, design.T @ (label - chance))
        beta += step
        if np.abs(step).max() < 1e-9:
            break
    return (float(beta[0]), float(beta[1])) if beta[1] > 0 else (0.0, 0.0)


def _import_lightgbm() -> ModuleType:
    try:
        import lightgbm
    except ImportError:
        raise MissingExtra("the estimator 'dv'", "LightGBM", "trees") from None
    return lightgbm
