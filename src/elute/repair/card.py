"""What a plan shows of itself: what it joins, at what cost, and where it leaves nothing to debias with."""

from __future__ import annotations

from elute._util.text import format_count, format_share
from elute.cells.factors import describe
from elute.identify.merged import MergedFactors
from elute.repair.distortion.fields import STANDARD, Consequence
from elute.repair.files.score_card import describe_score
from elute.repair.swap_card import describe_swaps
from elute.results.base import Fields
from elute.results.card import Bars, Card


def describe_plan(fields: Fields) -> Card:
    """The card of a plan's fields. A plan that connects everything is good only where it leaves something to debias
    with."""
    if fields["method"] == "swap":
        return describe_swaps(fields)
    if fields["method"] == "score":
        return describe_score(fields)
    before, after = int(fields["components_before"]), int(fields["components_after"])
    if before == 1:
        return Card("calm", "Nothing to repair", "Nothing to connect: items link all factors as it is.")
    if after > 1:
        return Card("bad", "Still apart", f"Within these limits the log stays in {format_count(after)} components.")
    n, what, chart = _describe_steps(fields)
    join = "joins" if n == 1 else "join"
    sentence = f"{what} {join} the log's {format_count(before)} components (total cost {fields['cost']:.4g})."
    figures = [
        (format_count(before), "components before"),
        (format_count(after), "after"),
        (f"{fields['cost']:.4g}", "cost"),
    ]
    consequence, merged = Consequence.from_fields(fields), MergedFactors.from_fields(fields)
    if consequence is not None and consequence.safe_share is not None:
        figures.append(
            (format_share(consequence.safe_share), f"of queries in order where pairs differ by {STANDARD:g}")
        )
    if merged is not None:
        figures.append((format_count(merged.propensities_after), "propensities left"))
        if merged.caution:
            return Card("warn", merged.word, f"{sentence} {merged.caution}", figures, chart)
    return Card(
        "calm", f"A plan of {format_count(n)} {fields['method']}{'' if n == 1 else 's'}", sentence, figures, chart
    )


def _describe_steps(fields: Fields) -> tuple[int, str, Bars]:
    """How many steps the plan takes to connect the log, what they are, and their costs."""
    pairs = fields["pairs"]
    names = [f"{describe(pair['a'])} with {describe(pair['b'])}" for pair in pairs]
    n, what = len(pairs), "of factors that share one propensity"
    bars = Bars("Cost of each pair", names, [pair["cost"] for pair in pairs])
    return n, f"{format_count(n)} pair{'' if n == 1 else 's'} {what}", bars
