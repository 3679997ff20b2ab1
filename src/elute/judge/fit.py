"""A fit's folder, as far as judgments need it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from elute.errors import EluteError
from elute.estimate.saved import read_part


@dataclass(frozen=True, eq=False)
class Fitted:
    """What `elute fit` left in a folder."""

    folder: Path
    summary: dict[str, Any]
    item: tuple[str, ...]
    bias: tuple[str, ...]
    relevance: pa.Table
    """The item columns, `component, relevance, log_se, impressions, clicks`."""
    propensities: pa.Table | None
    """None for a session click model, which has no propensities of factors."""

    @property
    def model(self) -> str:
        return str(self.summary["model"])


def read_fit(folder: str | Path) -> Fitted:
    """Read a fit, and refuse a folder that is none or is not complete."""
    place = Path(folder)
    if not (place / "fit.json").is_file():
        raise EluteError(f"'{folder}' is no fit: it has no fit.json; write one with 'elute fit LOG --out {folder}'")
    try:
        summary = json.loads((place / "fit.json").read_text(encoding="utf-8"))
        item, bias = (tuple(map(str, summary["provenance"][name])) for name in ("item", "bias"))
        str(summary["model"])
    except (KeyError, TypeError, ValueError) as problem:
        raise EluteError(f"{place / 'fit.json'} is not what 'elute fit' writes ({problem!r}); fit again") from None
    relevance = read_part(place / "relevance.parquet", (*item, "component", "relevance", "log_se", "impressions"))
    path = place / "propensities.parquet"
    propensities = read_part(path, (*bias, "component", "propensity")) if path.exists() else None
    return Fitted(place, summary, item, bias, relevance, propensities)
