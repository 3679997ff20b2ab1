"""What the pages of `elute check` and `elute fit` say of bounds across components."""

from __future__ import annotations

from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from elute.cells.factors import describe
from elute.cli.text import format_count, to_one_line

_SHOWN = 8


def show_bounds(found: dict[str, Any]) -> list[RenderableType]:
    """A sentence, and the scales of the largest components; from the field `bounds` of the JSON."""
    style = "" if found["consistent"] else "bold red"
    out: list[RenderableType] = [Text("Bounds", style="bold"), Text(found["sentence"], style=style)]
    if len(found["components"]) > 1:
        out.append(_tabulate_scales(found["components"]))
    if found["notes"]:
        out.append(Text(f"Of bounds: {'; '.join(found['notes'])}.", style="dim"))
    return out


def _tabulate_scales(components: list[dict[str, Any]]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("reference of a component", overflow="fold")
    for head in ("factors", "seen at least … times as often as the first", "at most"):
        table.add_column(head, justify="right")
    for one in components[:_SHOWN]:
        high = "no bound" if one["high"] is None else f"{one['high']:.3g}"
        name = Text(to_one_line(describe(one["factor"])))
        table.add_row(name, format_count(one["factors"]), f"{one['low']:.3g}", high)
    if len(components) > _SHOWN:
        table.add_row(f"… {format_count(len(components) - _SHOWN)} more in the JSON")
    return table
