"""The paradigms of the UPE paper: who is shown what, who clicks, and the documentation's way to run them."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from neural_worlds import BIAS, graded
from neural_worlds import compiled_with_little_optimisation as compiled_with_little_optimisation

from elute.errors import EluteError
from elute.neural.paradigms import build_paradigm
from elute.neural.sources import Online, SimulatedLists

ROOT = Path(__file__).parent.parent.parent


def test_lists_are_ranked_by_the_scores_and_clicked_by_grades() -> None:
    data = graded(30)
    scores = np.random.default_rng(0).normal(size=data.n_documents)
    for name in ("off", "ond"):
        source = build_paradigm(name, data, scores, BIAS[:3], noise=0.2, every=40)
        assert isinstance(source.data, SimulatedLists)
        for query, shown in enumerate(np.asarray(source.data.documents)):
            rows = np.arange(data.offsets[query], data.offsets[query + 1])
            np.testing.assert_array_equal(shown, rows[np.argsort(-scores[rows])][:3])
        chances = [0.2 + 0.8 * (2**y - 1) / (2 ** data.grades.max() - 1) for y in data.grades]
        np.testing.assert_allclose(source.data.relevance, chances, rtol=1e-6)
        assert (source.every if isinstance(source, Online) else None) == (40 if name == "ond" else None)


def test_what_cannot_be_shown() -> None:
    data = graded(30)
    with pytest.raises(EluteError, match="no paradigm 'on'; there are: off, ond"):
        build_paradigm("on", data, data.features[:, 0], BIAS)  # type: ignore[arg-type]
    with pytest.raises(EluteError, match="for 9 positions, but no query has more than 7 documents"):
        build_paradigm("off", data, data.features[:, 0], [0.5] * 9)
    with pytest.raises(EluteError, match="scores must have the shape"):
        build_paradigm("off", data, data.features[:3, 0], BIAS)


def test_the_documentation_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs/train.md").read_text(encoding="utf-8"), re.DOTALL)
    scope: dict[str, object] = {}
    exec(block, scope)  # noqa: S102
    assert scope["propensities"].shape == (5,)  # type: ignore[attr-defined]
