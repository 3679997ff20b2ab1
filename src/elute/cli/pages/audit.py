"""The page `elute audit` prints: which model to take, the figures side by side, and a sentence for each model."""

from __future__ import annotations

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from elute.auditing.comparison import Comparison, ModelAudit
from elute.auditing.judged import RankingQuality
from elute.auditing.paired import Interval
from elute.cli.spelling import spell
from elute.cli.text import format_count, to_one_line

_MARKS = {"pass": ("✓", "green"), "unknown": ("?", "yellow"), "fail": ("✗", "red")}


def show(console: Console, audit: Comparison, following: tuple[str, str] | None) -> None:
    """Print the page; `following`: the next command, and why."""
    text = Text("Take none. " if audit.selected is None else f"Take {to_one_line(audit.selected)}. ", style="bold")
    text.append(to_one_line(audit.selection.sentence, 200), style="not bold")
    console.print(Padding(text, (1, 2)))
    console.print(Padding(_tabulate_figures(audit), (0, 2, 1, 2)))
    if any(model.ranked is not None for model in audit.models):
        console.print(Padding(_tabulate_rankings(audit), (0, 2, 1, 2)))
        console.print(Padding(_tabulate_gains(audit), (0, 2, 1, 2)))
    shared = set.intersection(*(set(model.notes) for model in audit.models))
    for model in audit.models:
        console.print(Padding(_write_sentence(model, [note for note in model.notes if note not in shared]), (0, 2)))
    for note in audit.models[0].notes:
        if note in shared:
            console.print(Padding(Text(f"- {to_one_line(note, 240)}", style="dim"), (0, 2)))
    if following is None:
        return
    console.print(Text.assemble(("\n  Next: ", "bold"), following[0], (f"   # {following[1]}", "dim")), soft_wrap=True)


def _tabulate_figures(audit: Comparison) -> Table:
    """A row a model, and below what to compare with."""
    shifted = any(model.shifted is not None for model in audit.models)
    browsing = any(model.conditional.mean != model.perplexity.mean for model in audit.models)
    heads = ["perplexity", *(["given above"] if browsing else []), *(["shifted log"] if shifted else [])]
    heads += ["CMIP", "excess [95%]", "p", "power"] if audit.judged else ["log-likelihood [95%]"]
    table = _make_table(["fit", "model", *heads, ""])
    for model in audit.models:
        mark, style = _MARKS[model.verdict.word]
        figures = [_format_figure(model.perplexity.mean, 4) + ("*" if model.in_sample else "")]
        figures += [_format_figure(model.conditional.mean, 4)] if browsing else []
        figures += [_format_figure(None if model.shifted is None else model.shifted.mean, 4)] if shifted else []
        figures += _format_bias(model) if audit.judged else [_format_likelihood(model)]
        table.add_row(
            Text(to_one_line(model.name)), model.model, *figures, Text(f"{mark} {model.verdict.word}", style=style)
        )
    table.caption = f"Perplexity of the click rate by position: {_format_figure(audit.by_rank, 4)}"
    if browsing:
        table.caption += "\nGiven above: of each click given the clicks above it on the page, as log-likelihood is"
    if any(model.in_sample for model in audit.models):
        table.caption += "\n* in-sample: on the log that the model was fitted to"
    if audit.judged:
        table.caption += (
            f"\nCMIP on {format_count(audit.judged)} judged items, in nats; excess: of its monotone part, over noise"
        )
    return table


def _format_bias(model: ModelAudit) -> list[str]:
    cmip, excess, power = model.cmip, model.evidence.excess, model.evidence.power
    return [
        "–" if cmip is None else f"{cmip.estimate:.3f}",
        "–" if excess is None else f"{excess.estimate:.3f} [{excess.low:.3f}, {excess.high:.3f}]",
        "–" if excess is None else f"{excess.p_value:.2g}",
        "–" if power is None else f"{power.value:.0%}",
    ]


def _format_likelihood(model: ModelAudit) -> str:
    """Of an impression."""
    mean, low, high = (_format_figure(value, 3) for value in model.log_likelihood)
    return f"{mean} [{low}, {high}]"


def _tabulate_rankings(audit: Comparison) -> Table:
    """How each model's relevance ranks the judged items of a query, and last how the logging policy and clicks do."""
    table = _make_table(["fit", "nDCG [95%]", "ERR", "MRR"])
    for model in audit.models:
        table.add_row(Text(to_one_line(model.name)), *_format_ranking(model.ranked))
    for name, ranked in (("logging policy", audit.policy), ("click rates", audit.click_rate)):
        if ranked is not None:
            table.add_row(Text(name, style="dim"), *_format_ranking(ranked))
    return table


def _tabulate_gains(audit: Comparison) -> Table:
    """How much better than these each model ranks, query by query."""
    table = _make_table(["fit", "nDCG less the policy's [95%]", "less that of click rates [95%]"])
    for model in audit.models:
        gains = (_format_interval(found) for found in (model.less_policy, model.less_click_rate))
        table.add_row(Text(to_one_line(model.name)), *gains)
    return table


def _format_interval(found: Interval | None) -> str:
    return "–" if found is None else "{:+.3f} [{:+.3f}, {:+.3f}]".format(*found)


def _make_table(heads: list[str]) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="dim", caption_justify="left")
    for head in heads:
        table.add_column(head, justify="left" if head in ("fit", "model", "") else "right", no_wrap=head != "fit")
    return table


def _write_sentence(model: ModelAudit, notes: list[str]) -> Text:
    mark, style = _MARKS[model.verdict.word]
    text = Text.assemble(
        (f"{mark} {to_one_line(model.name)}: ", style), to_one_line(spell(model.verdict.sentence), 600)
    )
    for note in notes:
        text.append(f"\n- {to_one_line(note, 240)}", style="dim")
    return text


def _format_ranking(ranked: RankingQuality | None) -> list[str]:
    if ranked is None:
        return ["–"] * 3
    mean, low, high = (_format_figure(value, 3) for value in ranked.ndcg)
    return [f"{mean} [{low}, {high}]", _format_figure(ranked.err, 3), _format_figure(ranked.mrr, 3)]


def _format_figure(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:.{digits}f}"
