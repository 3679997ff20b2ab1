"""Sections as one HTML document: scripts, styles and data inside, nothing asked of the network.

The page forbids itself every request, and every script but its own two, whose hashes it names
(Content-Security-Policy); so text from a log that got through unescaped would still do nothing. Charts are
interpreted, not compiled (Vega's `ast` mode), because compiled ones would need leave to evaluate strings.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from importlib.metadata import version
from importlib.resources import files

from elute.errors import MissingExtra
from elute.reporting.markup import Safe, join, script_json, tag
from elute.reporting.parts import Block, Commands, Figure, Grid, Note, Section
from elute.results.card import Tone


def render_document(
    log: str,
    verdict: tuple[Tone, str, str],
    figures: Sequence[tuple[str, str]],
    following: Sequence[tuple[str, str]],
    sections: Sequence[Section],
    question: str = "Can relevance be recovered from these clicks, and how much of it is known?",
) -> str:
    """The page: the question and its verdict, figures and what to do next on the first screen, then the sections."""
    drawn = [block for section in sections for block in section.blocks if isinstance(block, Figure)]
    data = {figure.key: {"spec": figure.spec, "details": figure.details} for figure in drawn}
    libraries, own = load_library(), _read_asset("page.js")
    body = tag(
        "body",
        _render_masthead(log, question, verdict, figures, following),
        _render_contents(sections),
        tag("main", *(_render_section(section) for section in sections)),
        tag("footer", f"Written by elute {version('elute')}. All data of this page is in this file."),
        tag("script", script_json(data), id="charts", type="application/json"),
        tag("script", Safe(libraries)),
        tag("script", Safe(own)),
    )
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_security_policy(libraries, own)),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"elute: {verdict[1]}: {log}"),
        tag("style", Safe(_read_asset("page.css"))),
    )
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


@cache
def load_library() -> str:
    """Vega, Vega-Lite and Vega-Embed in one script, from the package that also draws pictures."""
    try:
        import vl_convert
    except ImportError:
        raise MissingExtra("a report", "vl-convert-python", "report") from None
    return str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"))


def _security_policy(*scripts: str) -> str:
    hashes = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    allowed = " ".join(f"'sha256-{digest}'" for digest in hashes)
    return f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:"


def _read_asset(name: str) -> str:
    return (files("elute.reporting") / name).read_text(encoding="utf-8")


def _render_masthead(
    log: str,
    question: str,
    verdict: tuple[Tone, str, str],
    figures: Sequence[tuple[str, str]],
    following: Sequence[tuple[str, str]],
) -> Safe:
    tone, word, sentence = verdict
    tiles = [tag("div", tag("dd", value), tag("dt", name)) for value, name in figures]
    return tag(
        "header",
        tag(
            "div",
            tag("span", "elute", class_="brand"),
            tag("span", log, class_="log"),
            tag("button", "Dark", id="theme", type="button", title="Light or dark"),
            class_="bar",
        ),
        tag("p", question, class_="question"),
        tag("h1", word, class_=tone),
        tag("p", sentence, class_="sentence"),
        tag("dl", *tiles, class_="figures"),
        *(tag("p", f"Next, {why}: ", tag("code", line), class_="next") for line, why in following),
    )


def _render_contents(sections: Sequence[Section]) -> Safe:
    links = (tag("a", section.title, href=f"#{section.key}") for section in sections)
    return tag("nav", *links, aria_label="Contents")


def _render_section(section: Section) -> Safe:
    heading = tag("h2", section.title)
    return tag(
        "section", heading, tag("p", section.lead, class_="lead"), *map(_render_block, section.blocks), id=section.key
    )


def _render_block(block: Block) -> Safe:
    if isinstance(block, Figure):
        return _render_figure(block)
    if isinstance(block, Grid):
        return _render_grid(block)
    if isinstance(block, Note):
        return tag("p", block.text, class_=f"note {block.tone}")
    return _render_commands(block)


def _render_figure(figure: Figure) -> Safe:
    answer = tag("div", "Click on a dot.", class_="details", aria_live="polite") if figure.details else ""
    place = tag("div", class_="chart", data_chart=figure.key, role="img", aria_label=f"{figure.title}. {figure.shows}")
    caption = tag(
        "figcaption",
        tag("p", tag("b", "What it shows."), " ", figure.shows),
        tag("p", tag("b", "How to read it."), " ", figure.reads),
    )
    return tag("figure", tag("h3", figure.title), place, answer, caption)


def _render_grid(grid: Grid) -> Safe:
    def render_cell(kind: str, column: str, value: str) -> Safe:
        return tag(kind, value, class_="number" if column in grid.numeric else None)

    head = tag("tr", *(render_cell("th", column, column) for column in grid.head))
    marks: Sequence[Tone | None] = grid.marks or [None] * len(grid.rows)
    lines = [
        tag(
            "tr", *(render_cell("td", column, value) for column, value in zip(grid.head, row, strict=True)), class_=mark
        )
        for row, mark in zip(grid.rows, marks, strict=True)
    ]
    table = tag("div", tag("table", tag("thead", head), tag("tbody", *lines)), class_="scroll", tabindex="0")
    return join(table, tag("p", grid.caption, class_="caption") if grid.caption else "")


def _render_commands(block: Commands) -> Safe:
    lines = (tag("li", tag("code", line), tag("span", why)) for line, why in block.lines)
    return tag("ol", *lines, class_="commands")
