"""What a swap plan shows of itself. A plan is no knowledge: it is never marked as good."""

from __future__ import annotations

from elute._util.text import format_count
from elute.cells.factors import describe
from elute.results.base import Fields
from elute.results.card import Bars, Card


def describe_swaps(fields: Fields) -> Card:
    """The card of a swap plan's fields."""
    before, after = int(fields["parts_before"]), int(fields["parts_after"])
    if before == 1 and not fields["swaps"]:
        return Card("calm", "Nothing to repair", "Nothing to connect: clicks tie all factors as it is.")
    swaps = fields["swaps"]
    queries = len({str(swap["query"]) for swap in swaps})
    figures = [
        (format_count(before), "parts before"),
        (format_count(after), "after"),
        (format_count(int(fields["impressions"])), "impressions"),
        (format_loss(fields["users_lose"], fields), "clicks that users lose"),
    ]
    names = ["·".join(map(str, swap["item"].values())) + f" under {describe(swap['to'])}" for swap in swaps]
    shown = [float(swap["impressions_needed"]) for swap in swaps]
    chart = Bars("Impressions of each swap", names, shown)
    if not swaps:
        return Card("bad", "Still apart", f"No swap within these limits joins any of its {before:,} parts.", figures)
    what = (
        f"{_count(len(swaps), 'swap')} on pages of {_count(queries, 'query', 'queries')}, "
        f"{_count(int(fields['impressions']), 'impression')} in all"
    )
    loss = f"Users lose about {fields['users_lose']:.3g} clicks by it; it"
    price = f"{'It' if fields.get('guessed') else loss} takes {describe_time(fields)}."
    if after > 1:
        words = f"Within these limits {what}, leave {format_count(after)} of {format_count(before)} parts apart."
        return Card("bad", "Still apart", f"{words} {price}", figures, chart)
    if fields.get("guessed"):
        words = f"{what}, tie the log's {format_count(before)} parts together by clicks if all places are seen equally."
        words += " Nothing is known of propensities yet: what users lose, and how certain this is, clicks will tell."
    elif before == 1:
        words = f"{what}, make propensities more certain: the largest standard error goes to {_error(fields)}."
    else:
        words = f"{what}, tie the log's {format_count(before)} parts together by clicks."
        words += f" The largest standard error is then {_error(fields)}."
    return Card("calm", f"A plan of {_count(len(swaps), 'swap')}", f"{words} {price}", figures, chart)


def format_loss(clicks: float, fields: Fields) -> str:
    """Clicks that users lose; a question mark where nothing is known of propensities."""
    return "?" if fields.get("guessed") else f"{clicks:.3g}"


def list_designs(fields: Fields) -> list[tuple[str, ...]]:
    """The plan and standard experiments: name, impressions, time, what users lose, largest error."""
    own = {**fields, "name": "this plan", "reaches_target": fields["parts_after"] == 1}
    time = "log_lengths" if fields["log_days"] is None else "days"
    return [
        (
            str(row["name"]),
            format_count(int(row["impressions"])),
            f"{'' if row['reaches_target'] else '> '}{row[time]:.2g}",
            format_loss(row["users_lose"], fields),
            f"{row['parts_after']:,} parts apart" if row["largest_log_se"] is None else _error(row),
        )
        for row in (own, *fields["designs"])
    ]


def describe_time(fields: Fields) -> str:
    """How long it takes, in days where the log's are known."""
    share = f"on {fields['share']:.0%} of these pages" if "share" in fields else ""
    if fields["days"] is not None:
        return f"{fields['days']:.3g} days {share}".strip()
    return f"{fields['log_lengths']:.2g} × the time of the log {share}".strip()


def _error(fields: Fields) -> str:
    value = fields["largest_log_se"]
    return "unknown" if value is None else f"{value:.2g}"


def _count(n: int, word: str, words: str | None = None) -> str:
    return f"{format_count(n)} {word if n == 1 else words or word + 's'}"
