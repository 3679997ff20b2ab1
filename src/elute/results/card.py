"""A result at a glance: a verdict, some figures and a small chart, as HTML that needs nothing around it.

The look is the report's. Notebooks show cards by `_repr_html_`; styles are inline, so that a card survives where style
sheets are removed, and colours follow the notebook from light to dark.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal

from elute._util.text import to_one_line

Tone = Literal["good", "warn", "bad", "calm"]

_TONES = {"good": "#2e7d5b", "warn": "#9a6200", "bad": "#b3402e", "calm": "#2a6f97"}
_BAR, _ERROR = "#2a6f97", "#c8553d"
_SANS = "system-ui, -apple-system, 'Segoe UI', Roboto, Arial, sans-serif"
_SERIF = "'Iowan Old Style', 'Palatino Linotype', Palatino, Georgia, serif"

_MOST_BARS, _MOST_FIGURES = 20, 8
_LONGEST = 600
_LETTERS = 32
"""Of a label, so that it fits beside its bar."""

_ROW, _LABEL, _PLOT, _VALUE = 18, 210, 260, 90


@dataclass(frozen=True)
class Bars:
    """A value for each label, drawn to the largest; `low` and `high` are ends of intervals, NaN where there is none."""

    title: str
    labels: Sequence[str]
    values: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()


@dataclass(frozen=True)
class Card:
    """What a result shows of itself. `word`: the verdict in a few words. `figures`: values, each with what it is."""

    tone: Tone
    word: str
    sentence: str
    figures: Sequence[tuple[str, str]] = ()
    chart: Bars | None = None
    notes: Sequence[str] = ()

    def html(self) -> str:
        """The card as HTML; whatever comes from a log is escaped."""
        colour = _TONES[self.tone]
        parts = [
            f'<div style="font: 600 20px {_SERIF}; color: {colour}; margin: 0 0 4px">{_escape_text(self.word)}</div>',
            f'<div style="max-width: 46em">{_escape_text(self.sentence)}</div>',
        ]
        if self.figures:
            tiles = "".join(_draw_tile(value, word) for value, word in self.figures[:_MOST_FIGURES])
            parts.append(f'<div style="display: flex; flex-wrap: wrap; gap: 4px 28px; margin: 10px 0 0">{tiles}</div>')
        if self.chart is not None and self.chart.labels:
            parts.append(draw_bars(self.chart))
        parts += [f'<div style="opacity: .7; margin-top: 6px">{_escape_text(note)}</div>' for note in self.notes]
        frame = f"border-left: 3px solid {colour}; padding: 6px 0 8px 16px; margin: 6px 0; font: 14px/1.5 {_SANS}"
        return f'<div style="{frame}">{"".join(parts)}</div>'


def draw_bars(bars: Bars) -> str:
    """Horizontal bars as inline SVG."""
    shown = min(len(bars.labels), _MOST_BARS)
    ends = [v for v in (*bars.values[:shown], *bars.high[:shown]) if math.isfinite(v)]
    most = min(max(ends, default=0.0), 1.5 * max((v for v in bars.values[:shown] if math.isfinite(v)), default=0.0))
    scale = _PLOT / most if most > 0 else 0.0
    rows = []
    for at in range(shown):
        value, y = bars.values[at], at * _ROW
        rows.append(
            f'<text x="{_LABEL - 8}" y="{y + 13}" text-anchor="end">{_escape_text(bars.labels[at], _LETTERS)}</text>'
        )
        if math.isfinite(value):
            rows.append(f'<rect x="{_LABEL}" y="{y + 4}" width="{value * scale:.1f}" height="10" fill="{_BAR}"/>')
        rows.append(_draw_whisker(bars, at, y, scale, most))
        rows.append(f'<text x="{_LABEL + _PLOT + 10}" y="{y + 13}">{_format_number(value)}</text>')
    more = f"{bars.title}, first {shown} of {len(bars.labels):,}" if len(bars.labels) > shown else bars.title
    width, height = _LABEL + _PLOT + _VALUE, shown * _ROW + 4
    return (
        f'<div style="margin-top: 12px; opacity: .8; font-size: 13px">{_escape_text(more)}</div>'
        f'<svg role="img" aria-label="{_escape_text(more)}" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" '
        f'style="font: 12px {_SANS}; max-width: 100%" fill="currentColor">{"".join(rows)}</svg>'
    )


def _draw_whisker(bars: Bars, at: int, y: int, scale: float, most: float) -> str:
    """The interval as a line, cut where the plot ends."""
    if not bars.low or not (math.isfinite(bars.low[at]) and math.isfinite(bars.high[at])):
        return ""
    begin, end = (_LABEL + min(max(v, 0.0), most) * scale for v in (bars.low[at], bars.high[at]))
    return f'<path d="M{begin:.1f} {y + 9}H{end:.1f}" stroke="{_ERROR}" stroke-width="2"/>'


def _draw_tile(value: str, word: str) -> str:
    number = f'<div style="font-size: 18px; font-weight: 600">{_escape_text(value)}</div>'
    return f'<div>{number}<div style="opacity: .7; font-size: 12.5px">{_escape_text(word)}</div></div>'


def _format_number(value: float) -> str:
    return "–" if not math.isfinite(value) else f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _escape_text(value: object, width: int = _LONGEST) -> str:
    return escape(to_one_line(value, width), quote=True)
