"""A swap plan as an experimentation system takes it: one row a swap, with where, how much and until when."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

from elute._util.files import write_text
from elute.errors import EluteError
from elute.repair.plan import SwapPlan
from elute.repair.steps import Swap

SUFFIXES = (".json", ".csv")


def export_swaps(plan: SwapPlan, path: str | Path) -> None:
    """Write JSON or CSV, by the name's ending."""
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise EluteError(f"a plan is exported as .json or .csv, not as '{path}'")
    rows = [_list_fields(plan, swap) for swap in plan.swaps]
    if suffix == ".json":
        write_text(path, json.dumps({"swaps": rows}, ensure_ascii=False, indent=1, default=str) + "\n")
        return
    flat = [_flatten(row) for row in rows]
    out = io.StringIO()
    writer = csv.DictWriter(out, list(flat[0]) if flat else ["query", "document", "share", "until_impressions"])
    writer.writeheader()
    writer.writerows(flat)
    write_text(path, out.getvalue())


def _list_fields(plan: SwapPlan, swap: Swap) -> dict[str, Any]:
    item = dict(swap.item)
    query = swap.query
    rest = [value for value in item.values() if value != query] or list(item.values())
    return {
        "query": query,
        "document": rest[0] if len(rest) == 1 else "·".join(map(str, rest)),
        "item": item,
        "from": swap.source,
        "to": swap.target,
        "share": swap.share,
        "until": {
            "impressions": swap.impressions,
            "days": plan.forecast["days"],
            "log_lengths": plan.forecast["log_lengths"],
        },
        "expected_click_rate": swap.click_probability,
        "users_lose": swap.users_lose,
    }


def _flatten(row: dict[str, Any]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, dict):
            out |= {f"{name}_{key}": inner for key, inner in value.items()}
        else:
            out[name] = value
    return out
