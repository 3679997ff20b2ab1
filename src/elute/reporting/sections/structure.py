"""Sections on what a log's structure allows: its graph, its components, what can be ranked, and its weak links."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from elute._util.text import format_count, format_share, list_rows, to_one_line
from elute.cells.factors import describe, to_rows
from elute.checking.check import Check
from elute.estimate.inference.certificate import Certificate
from elute.repair.plan import Plan
from elute.reporting.charts import graph_figure
from elute.reporting.charts.graph import build_stars, find_strongest
from elute.reporting.charts.looks import draw_bars
from elute.reporting.parts import Block, Figure, Grid, Note, Section
from elute.reporting.sections.shares import share_bars

_LINKS = 10
_EXAMPLES = 5
_EACH = 12
"""Components that get a bar of their own."""


def graph_section(check: Check, plan: Plan | None) -> Section:
    """The graph itself."""
    n, factors = check.components, len(check.found.of_factor)
    lead = (
        f"All {format_count(factors)} factors are connected."
        if n == 1
        else f"{format_count(factors)} factors fall into {format_count(n)} components that no item links."
    )
    if factors == 1:
        lead = "There is one factor: nothing needs linking."
    return Section("graph", "What links the factors", lead, [graph_figure.draw_graph(check, plan)])


def size_section(check: Check) -> Section:
    """How large the components are, and examples of each."""
    found = check.found
    sizes = found.factors
    largest, total = format_count(int(sizes[0])), format_count(int(sizes.sum()))
    lead = f"The largest of {format_count(len(sizes))} components has {largest} of {total} factors"
    lead += f" and {format_share(check.to_dict()['impressions_in_largest_share'])} of the impressions."
    figure = _draw_each(check) if len(sizes) <= _EACH else _draw_histogram(check)
    table = Grid(
        ("component", "factors", "items", "impressions", "its factors", "example items"),
        [
            (
                str(part),
                format_count(one.factors),
                format_count(one.items),
                format_count(one.impressions),
                list_rows(one.example_factors, 4),
                list_rows(one.example_items, 2),
            )
            for part, one in enumerate(check.component_details[:_EACH], start=1)
        ],
        numeric=("component", "factors", "items", "impressions"),
        caption=f"The {_EACH} largest components." if len(sizes) > _EACH else "",
    )
    blocks: list[Block] = [figure, table]
    if check.isolated_factors:
        words = "; ".join(to_one_line(one.reason, 200) for one in check.isolated[:3])
        more = format_count(check.isolated_factors)
        blocks.append(Note(f"{more} {_conjugate_stand('factor', check.isolated_factors)} alone. {words}.", "warn"))
    return Section("components", "Component sizes", lead, blocks)


def _conjugate_stand(word: str, n: int) -> str:
    return f"{word} stands" if n == 1 else f"{word}s stand"


def _draw_each(check: Check) -> Figure:
    bars = [
        {"label": f"component {part}", "value": int(size), "text": format_count(int(size))}
        for part, size in enumerate(check.found.factors, start=1)
    ]
    return Figure(
        "components",
        "Factors in each component",
        draw_bars(bars, "factors"),
        "A bar for each component; its length is the number of its factors.",
        "One long bar and a few short ones: most of the log can be used, the short ones are cut off. Bars of similar "
        "length: the log is in pieces.",
    )


def _draw_histogram(check: Check) -> Figure:
    return Figure(
        "components",
        "Components by size",
        draw_bars(_bin_by_power(check.found.factors, "factor"), "components"),
        "How many components have how many factors.",
        "Many components of one factor mean bias columns too fine for the log: contexts that share no item with "
        "others.",
    )


def _bin_by_power(sizes: NDArray[np.int64], word: str) -> list[dict[str, Any]]:
    """Bars for sizes by powers of two: any number of them is a few bars."""
    power = np.floor(np.log2(sizes)).astype(np.int64)
    bars = []
    for p in range(int(power.min()), int(power.max()) + 1):
        n, low, high = int((power == p).sum()), 2**p, 2 ** (p + 1) - 1
        label = f"1 {word}" if p == 0 else f"{format_count(low)} to {format_count(high)} {word}s"
        bars.append({"label": label, "value": n, "text": format_count(n)})
    return bars


def rankable_section(check: Check) -> Section:
    """What can be ranked."""
    ranking = check.ranking
    if ranking is None:
        lead = "The log names no queries, so rankings cannot be counted."
    else:
        rankable, queries = format_count(ranking.rankable), format_count(ranking.queries)
        share = format_share(ranking.share)
        lead = f"{rankable} of {queries} queries ({share}) are linked: enough clicks would rank them."
    figure = Figure(
        "rankable",
        "What can be compared",
        draw_bars(share_bars(check), "share", most=1.0, share=True),
        "The share of queries that are linked, of pairs of items within a query that are, and of impressions in the "
        "largest component.",
        "A query is linked where all its items lie in one component: enough clicks then rank it. Where few queries are "
        "but many pairs, queries straddle components: repairing the log pays off.",
    )
    return Section("rankable", "Rankable queries", lead, [figure])


def links_section(check: Check, certificate: Certificate | None) -> Section:
    """The links that hold the graph together by least: by their error where it is known, else by their items."""
    if len(check.found) == len(check.found.of_factor):
        return Section("links", "Weak links", "No item was shown under two factors: there are no links.", [])
    return _links_by_items(check) if certificate is None else _links_by_error(certificate)


def _links_by_error(certificate: Certificate) -> Section:
    bars = [
        {
            "label": f"{_name_end(link.a)} – {_name_end(link.b)}",
            "value": float(link.resistance**0.5),
            "text": f"{link.resistance**0.5:.3f}  ({_count_items(link.items)})",
        }
        for link in certificate.links[:_LINKS]
        if np.isfinite(link.resistance)
    ]
    blocks: list[Block] = []
    if certificate.reason:
        blocks.append(Note(f"Not estimable as a whole: {to_one_line(certificate.reason, 400)}", "bad"))
    lead = "No two linked factors have a ratio that clicks determine."
    if bars:
        worst = f"{bars[0]['value']:.3f}"
        lead = (
            f"Of two linked factors, the least certain ratio has a standard error of {worst} of its logarithm, were "
            "clicks independent."
        )
        figure = Figure(
            "links",
            "Standard error of log ratios",
            draw_bars(bars, "standard error of the log ratio"),
            f"Pairs of factors ({_name_columns(certificate.links[0].a)}) that hold the graph together, worst first: "
            "the standard error of the log of their propensity ratio, by all paths through the graph, and the items "
            "that link the two directly.",
            "0.1 means a ratio known to about 10%, 0.7 to a factor of two. A long bar with few items is a bridge "
            "on which part of the log depends: more impressions of these items help most.",
        )
        blocks.append(figure)
    return Section("links", "Weak links", lead, blocks)


def _links_by_items(check: Check) -> Section:
    tree = find_strongest(build_stars(check.counts)).tocoo()
    items = tree.data.astype(np.int64)
    thin = int((items == 1).sum())
    links = format_count(len(items))
    lead = f"{format_count(thin)} of the {links} links that hold the graph together rest on a single item."
    figure = Figure(
        "links",
        "Items behind the links",
        draw_bars(_bin_by_power(items, "item"), "links"),
        "The links of a spanning tree of the strongest ones, by the number of items that make them: each item from the "
        "factor it was shown under most to its others.",
        "A link of one or two items may be the bridge on which part of the log depends, whatever its size: show "
        "these items more, or choose coarser bias columns.",
    )
    chosen = np.argsort(items, kind="stable")[:_EXAMPLES]
    ends = [to_rows(check.log.survey.factors, [int(tree.row[at]), int(tree.col[at])]) for at in chosen]
    lines = [
        (_name_factor(a), _name_factor(b), format_count(int(items[at])))
        for at, (a, b) in zip(chosen, ends, strict=True)
    ]
    table = Grid(("factor", "and", "items"), lines, numeric=("items",), caption="Some of the weakest.")
    return Section("links", "Weak links", lead, [figure, table])


def _count_items(items: int) -> str:
    return f"{format_count(items)} {'item' if items == 1 else 'items'}"


def _name_end(factor: dict[str, object]) -> str:
    return "·".join(to_one_line(value, 16) for value in factor.values())


def _name_factor(factor: dict[str, object]) -> str:
    return to_one_line(describe(factor), 80)


def _name_columns(factor: dict[str, object]) -> str:
    return ", ".join(to_one_line(column) for column in factor)


def health_section(check: Check) -> Section:
    """The warnings of the check."""
    if not check.warnings:
        return Section("health", "Data health", "No warnings.", [])
    n = len(check.warnings)
    rows_ = [(one.code, one.message, format_count(one.count)) for one in check.warnings]
    grid = Grid(("code", "what", "count"), rows_, numeric=("count",), marks=["warn"] * n)
    return Section("health", "Data health", f"{n} {'warning' if n == 1 else 'warnings'} to read before use.", [grid])


def subsets_section(check: Check) -> Section | None:
    """Which bias column breaks the log, where several were tried."""
    if check.subsets is None:
        return None
    whole = [subset for subset in check.subsets if subset.recoverable]
    lead = (
        f"With {', '.join(whole[-1].bias)} as bias the log is recoverable."
        if whole
        else "No choice of columns repairs it."
    )
    grid = Grid(
        ("bias columns", "factors", "components", "rankable", "recoverable"),
        [
            (
                ", ".join(one.bias),
                format_count(one.factors),
                format_count(one.components),
                format_share(one.rankable_share),
                "yes" if one.recoverable else "no",
            )
            for one in check.subsets
        ],
        numeric=("factors", "components", "rankable"),
        marks=["good" if one.recoverable else "bad" for one in check.subsets],
        caption="Fewer columns link more factors but leave more bias uncontrolled.",
    )
    return Section("subsets", "Which bias column breaks it", lead, [grid])
