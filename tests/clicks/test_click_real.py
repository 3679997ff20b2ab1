"""Real clicks: what each model makes of them, on sessions held out."""

from __future__ import annotations

from pathlib import Path

import pytest

from elute_reproduce.clicks import yandex
from elute_reproduce.study import Study


def test_models_that_know_more_predict_better(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given the clicks above, UBM and DBN beat PBM, PBM the click rates; without them PBM beats the click rates."""
    monkeypatch.setattr(yandex, "MODELS", ("dctr", "rdctr", "cascade", "pbm", "ubm", "dbn"))
    result = yandex.run(Study(data))
    assert [claim.holds for claim in result.claims] == [True, True, False, True], result.claims
    found = {(entry.where["model"], entry.where["figure"]): entry.mean for entry in result.compared}
    assert ("cascade", "given clicks above") not in found  # infinite: a second click is impossible there
    assert "| cascade | ∞ |" in result.reading[0]
    given, alone = (
        {name: p for (name, figure), p in found.items() if figure == f} for f in ("given clicks above", "alone")
    )
    assert given["ubm"] < given["dbn"] < given["pbm"] < given["rdctr"] < given["dctr"] < 1.45
    assert alone["pbm"] < alone["ubm"] < alone["rdctr"] < alone["dctr"]
