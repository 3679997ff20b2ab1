"""What `elute check` prints of several bias columns: a formula's effects, and the structures that `--explore` tries."""

from __future__ import annotations

import math

import pyarrow as pa
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from elute.checking.structures import BiasStructure, propose
from elute.cli.text import format_count, format_share, list_rows, to_one_line
from elute.identify.effects.details import Effects

_LEVELS = 20
_LEFT = ("level", "term", "structure", "not determined", "", "contradicted by")


def tabulate_effects(effects: Effects) -> Table:
    """What is determined of each term."""
    title = (
        f"Effects of {effects.formula}: {effects.rank:,} of {effects.rank_possible:,} comparisons determined; one "
        f"propensity a combination would leave {effects.product_components:,} components"
    )
    table = _make_table(to_one_line(title, 300), "term", "levels", "classes", "not determined")
    for one in effects.terms:
        named = f"{format_count(one.undetermined)}: {list_rows(one.open, 3)}" if one.open else str(one.undetermined)
        lost = Text("") if not one.undetermined else Text(to_one_line(named, 80), style="red")
        table.add_row(Text(one.term), format_count(one.levels), format_count(one.classes), lost)
    return table


def tabulate_fitted(effects: pa.Table) -> Table:
    """What every level multiplies propensities by, with its standard error; of each term the first ones."""
    table = _make_table("What multiplies propensities", "term", "level", "times", "± 2 se of log", "")
    shown: dict[str, int] = {}
    for row in effects.to_pylist():
        shown[row["term"]] = shown.get(row["term"], 0) + 1
        if shown[row["term"]] > _LEVELS:
            continue
        level = " · ".join(str(row[name]) for name in effects.column_names[1:-4] if row[name] is not None)
        known = row["effect"] == row["effect"]
        value, width = (f"{math.exp(row['effect']):.3f}", f"{2 * row['log_se']:.3f}") if known else ("–", "–")
        mark = (
            Text("reference", style="dim") if row["reference"] else Text("" if known else "not determined", style="red")
        )
        first = shown[row["term"]] == 1
        table.add_row(Text(row["term"] if first else ""), Text(to_one_line(level)), value, width, mark)
    if any(count > _LEVELS for count in shown.values()):
        table.add_row("… more in effects.parquet")
    return table


def show_structures(structures: list[BiasStructure]) -> list[RenderableType]:
    """From the richest to the poorest, and the one that is proposed."""
    table = _make_table(
        "How the bias columns may act together", "structure", "effects", "components", "rankable", "median error", "",
        "contradicted by",
    )  # fmt: skip
    for one in structures:
        if one.components is None:
            table.add_row(
                Text(one.formula), format_count(one.effects), "", "", "", "", Text("not compared: too many effects")
            )
            continue
        mark = Text(one.rung or "linked") if one.recoverable else Text("apart", style="red")
        error = "" if one.median_log_se is None else f"{one.median_log_se:.2g}"
        figures = format_count(one.effects), format_count(one.components), format_share(one.rankable_share), error
        table.add_row(Text(one.formula), *figures, mark, _describe_tests(one))
    chosen = propose(structures)
    words = (
        f"Proposed, the richest that is recoverable and not contradicted: --bias '{chosen}'"
        if chosen
        else ("None of these is recoverable and not contradicted.")
    )
    return [table, Text(words, style="bold")]


def _describe_tests(one: BiasStructure) -> Text:
    if one.contradicted is None:
        return Text("not tested", style="dim")
    if not one.contradicted:
        return Text(f"nothing (p = {one.p_value:.2g})")
    told = [test for test in one.tests if test.p_value is not None]
    worst = min(told, key=lambda test: test.p_value if test.p_value is not None else 1.0)
    return Text(f"{' × '.join(worst.columns)} (p = {one.p_value:.2g}, off by {worst.distortion:.0%})", style="yellow")


def _make_table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=None, padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column, justify="left" if column in _LEFT else "right", header_style="dim", overflow="fold")
    return table
