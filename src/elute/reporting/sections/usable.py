"""The first section: what of this log can be used, before anything that rests on it."""

from __future__ import annotations

from elute._util.text import format_count, format_share, to_one_line
from elute.cells.factors import describe
from elute.checking.check import Check
from elute.fits.fit import Fit
from elute.judging.judgments import find_known
from elute.reporting.parts import Block, Grid, Note, Section

_SHOWN = 8


def usable_section(check: Check, fit: Fit | None) -> Section | None:
    """How much is known, and what is missing; None where the log has no clicks."""
    found = check.precision
    if found is None:
        return None
    fields = found.to_dict()
    shares = found.shares
    rows = [
        ("propensities", f"{format_share(fields['impressions_known_share'])} of the impressions", _write_errors(check)),
        ("items", f"{format_share(shares.items_known)} of the items", "whose place in their query is known"),
    ]
    if shares.queries_ordered is not None and shares.pairs_right is not None:
        right = f"certain at 95%; {shares.pairs_right:.0%} of all pairs are expected in the right order"
        rows.append(("order in queries", f"{format_share(shares.queries_ordered)} of the pairs", right))
    if fit is not None:
        rows.append(("judgments", *_count_judgments(check, fit)))
    grid = Grid(("what", "known", ""), rows, caption=_write_caption(check))
    blocks: list[Block] = [grid]
    missing = check.to_dict()["missing"]
    if missing is not None and (missing["factors"] or missing["links"]):
        blocks.append(_tabulate_missing(missing))
    blocks += [Note(f"Approximate: {note}.") for note in found.notes]
    return Section("usable", "What can be used", _write_lead(check), blocks)


def _write_lead(check: Check) -> str:
    return {
        "apart": "Only what lies within one component can be compared: see what would join them.",
        "linked": "Items link all factors, but clicks do not determine their propensities: no debiasing yet.",
        "loose": "Debiasing is possible, with wide error bars: use what is known below, and no more.",
        "known": "Propensities are known to the precision asked. Relevance is known for the items below.",
    }[check.rung]


def _write_errors(check: Check) -> str:
    found = check.precision
    if found is None or found.median_log_se is None:
        return "no two factors that can be compared"
    largest = "no bound for some" if found.largest_log_se is None else f"largest {found.largest_log_se:.2g}"
    return f"to a standard error of {found.target:g} of their logarithm (median {found.median_log_se:.2g}, {largest})"


def _write_caption(check: Check) -> str:
    found = check.precision
    if found is None or found.dependence is None:
        return "Errors are those of independent clicks: the log names no clusters."
    times, by = found.design_effect**0.5, to_one_line(found.dependence.by)
    if not found.dependence.tells:
        return (
            f"Errors are those of independent clicks: clusters by {by} cannot tell whether clicks depend on each other."
        )
    if times < 1.005:
        return f"Errors are those of independent clicks: no sign that clicks of one {by} depend on each other."
    return f"Errors take in that clicks depend on each other: {times:.2g} times those of independent clicks, by {by}."


def _count_judgments(check: Check, fit: Fit) -> tuple[str, str]:
    """How many items of a fit have a place that `elute judge` exports."""
    known = find_known(fit, check.log.roles.query)
    if known is None:
        return "–", "items are not a query and a document"
    return format_count(int(known.sum())), f"of {format_count(len(known))} items can be stood behind (fit {fit.name})"


def _tabulate_missing(missing: dict[str, list[dict[str, object]]]) -> Grid:
    rows = [
        (
            f"an item shown at both {to_one_line(_name(link['a']))} and {to_one_line(_name(link['b']))}",
            "",
            "",
            _count(link),
        )
        for link in missing["links"][:_SHOWN]
    ]
    for one in missing["factors"][:_SHOWN]:
        error = "–" if one["log_se"] is None else f"{one['log_se']:.2g}"
        rows.append((_name(one["factor"]), _count(one, "impressions"), error, _count(one)))
    head = ("what is missing", "impressions", "standard error", "further impressions")
    return Grid(head, rows, numeric=head[1:])


def _name(factor: object) -> str:
    return to_one_line(describe(factor) if isinstance(factor, dict) else factor)


def _count(row: dict[str, object], field: str = "impressions_needed") -> str:
    return format_count(int(str(row[field])))
