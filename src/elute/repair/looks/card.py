"""What a look at a plan shows of itself."""

from __future__ import annotations

import math

from elute._util.text import format_count
from elute.cells.factors import describe
from elute.results.base import Fields
from elute.results.card import Bars, Card, Tone


def describe_following(fields: Fields) -> Card:
    """The card of a look's fields."""
    done, links, stop = int(fields["links_done"]), int(fields["links"]), bool(fields["stop"])
    tone: Tone = "good" if done == links else "warn"
    word = "Stop: all links are known" if done == links else "Stop: what was planned is shown"
    if not stop:
        tone, word = "calm", "Go on"
    swaps = fields["swaps"]
    figures = [
        (f"{done:,} of {links:,}", "links known"),
        (format_count(fields["looks"]), "look" if fields["looks"] == 1 else "looks"),
        (format_count(sum(swap["impressions_seen"] for swap in swaps)), "impressions since the last"),
        (format_count(fields["impressions_left"]), "left"),
        (f"±{fields['target_half_width']:.3g}", "wanted"),
    ]
    names = [f"{describe(swap['from'])} over {describe(swap['to'])}" for swap in swaps]
    widths = [math.nan if swap["half_width"] is None else swap["half_width"] for swap in swaps]
    chart = Bars("Half-width of each log-propensity ratio", names, widths)
    return Card(tone, word, fields["reason"], figures, chart, [write_price(fields), *fields["notes"]])


def write_price(fields: Fields) -> str:
    """What looking at any time costs, and what is taken for dependence."""
    price = (
        f"Intervals hold for all links and all looks together, however many: that takes "
        f"{fields['information_factor']:.2g} times the information of a single look at the end."
    )
    if not fields["clusters"]:
        return price
    by, effect = " and ".join(fields["clusters"]), fields["design_effect"]
    return (
        f"{price} How clicks of one {by} depend on each other is taken in: variances are {effect:.3g} times as large."
    )
