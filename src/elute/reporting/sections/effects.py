"""A formula's effects as a chart: what every level multiplies propensities by, with its error."""

from __future__ import annotations

import math

import pyarrow as pa

from elute.reporting.charts import specs
from elute.reporting.parts import Figure

_SHOWN = 60


def draw_effects(effects: pa.Table, key: str) -> Figure:
    """The levels of all terms, the first ones of each where they are many."""
    terms = list(dict.fromkeys(effects["term"].to_pylist()))
    each = max(2, _SHOWN // len(terms))
    rows = [row for term in terms for row in _list_rows(effects, term)[:each]]
    chart = specs.intervals(rows, label="level", x="times", low="low", high="high", series="term", values=terms, at=1.0)
    shows = "What every level of a bias column multiplies propensities by, relative to its reference."
    reads = "A point at 1 changes nothing; whiskers are 95% intervals for independent clicks."
    return Figure(key, "Effects of the bias columns", chart, shows, reads)


def _list_rows(effects: pa.Table, term: str) -> list[dict[str, object]]:
    names, out = effects.column_names[1:-4], []
    for row in effects.to_pylist():
        if row["term"] != term or not math.isfinite(row["effect"]) or not math.isfinite(row["log_se"]):
            continue
        level = " · ".join(str(row[name]) for name in names if row[name] is not None)
        ends = (math.exp(row["effect"] + sign * 1.96 * row["log_se"]) for sign in (-1, 1))
        times = {"times": math.exp(row["effect"]), **dict(zip(("low", "high"), ends, strict=True))}
        out.append({"level": f"{term} {level}".strip(), "term": term, **times})
    return out
