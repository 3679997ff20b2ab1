"""A reproduction as a Markdown page with its pictures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from elute._util.files import write_text
from elute.reporting.charts.render import render_svg
from elute_reproduce.result import ComparedValue, Reproduction

_PASS, _FAIL = "✓", "✗"


def write(folder: str | Path, result: Reproduction) -> Path:
    """Write `NAME.md` and `img/NAME-FIGURE.svg` for every figure; returns the page's path."""
    target = Path(folder)
    for figure in result.figures:
        write_text(target / "img" / f"{result.name}-{figure.name}.svg", render_svg(figure.spec))
    page = target / f"{result.name}.md"
    write_text(page, to_markdown(result))
    return page


def to_markdown(result: Reproduction) -> str:
    """The page's text. Rows are the first heading of the values compared, columns the last."""
    parts = [f"# {result.title}", f"{result.source}. Made by", f"```sh\n{result.command}\n```"]
    parts.append(f"in {result.seconds:.0f} s.")
    parts.append("\n".join(f"- {line}" for line in result.settings))
    if result.compared:
        parts += ["## Published and measured", _format_table(result.compared)]
        parts.append(
            f"Measured: mean ± standard deviation over runs; published below it. {_PASS} agrees: within rounding, or "
            f"within two standard errors of the difference where runs vary. {_FAIL} does not."
            if any(entry.passed is not None for entry in result.compared)
            else "Mean ± standard deviation over runs. Rows marked as published are the paper's, on data that is not "
            "here."
            if any(entry.published for entry in result.compared)
            else "Mean ± standard deviation over runs. Nothing is published for this data."
        )
    if result.claims:
        parts.append("## Claims")
        lines = [f"| {c.sentence} | {c.evidence} | {_PASS if c.holds else _FAIL} |" for c in result.claims]
        parts.append("\n".join(["| claim | measured | holds |", "|---|---|---|", *lines]))
    for figure in result.figures:
        parts.append(f"![{figure.caption}](img/{result.name}-{figure.name}.svg)\n\n*{figure.caption}*")
    if result.reading:
        parts.append("## Reading")
        parts += list(result.reading)
    return "\n\n".join(parts) + "\n"


def _format_table(compared: Sequence[ComparedValue]) -> str:
    *heads, last = compared[0].where
    columns = list(dict.fromkeys(entry.where[last] for entry in compared))
    cells: dict[tuple[str, ...], dict[str, str]] = {}
    for entry in compared:
        cells.setdefault(tuple(entry.where[head] for head in heads), {})[entry.where[last]] = _format_cell(entry)
    lines = [f"| {' | '.join([*heads, *columns])} |", "|" + "---|" * (len(heads) + len(columns))]
    lines += [f"| {' | '.join([*row, *(found.get(c, '') for c in columns)])} |" for row, found in cells.items()]
    return "\n".join(lines)


def _format_cell(entry: ComparedValue) -> str:
    if not entry.measured:
        return format_published(entry)
    text = (
        format_number(entry.mean)
        if entry.sd == 0 or entry.at_most
        else f"{format_number(entry.mean)} ± {format_number(entry.sd)}"
    )
    text += entry.mark
    if entry.published is None:
        return text
    return f"{text}<br>{format_published(entry)} {_PASS if entry.passed else _FAIL}"


def format_published(entry: ComparedValue) -> str:
    """The published value as a paper prints it; nothing where there is none."""
    if entry.published is None:
        return ""
    spread = f" ± {format_number(entry.published.sd)}" if entry.published.sd else ""
    return f"{'< ' if entry.at_most else ''}{format_number(entry.published.mean)}{spread}"


def format_number(value: float) -> str:
    """Three decimals, none for counts, or a power of ten for what would vanish in them."""
    if value == round(value) and abs(value) > 1:
        return f"{value:,.0f}"
    if value != 0 and abs(value) < 5e-4:
        return f"{value:.0e}"
    return f"{value:,.3f}" if abs(value) < 1000 else f"{value:,.0f}"
