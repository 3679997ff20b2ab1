"""The page `elute fit` prints: how the fit ended, and the propensities with their error bars beside raw click rates."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from rich.console import Console, Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from elute.cells.factors import describe, to_rows
from elute.checking.rung import LOOKS
from elute.cli.pages.bounds import show_bounds
from elute.cli.pages.structures import tabulate_fitted
from elute.cli.text import format_count, to_one_line
from elute.estimate.models.base import Estimator
from elute.estimate.models.found import Priors
from elute.estimate.models.pbm import PBM
from elute.fits.fit import Fit
from elute.identify.information import find_references
from elute.results.invocation import Invocation
from elute.results.knowledge import describe_knowledge

_SHOWN = 40
_WIDTH, _NARROW = 20, 14
"""Of a bar; beside a column more."""


_DOUBTS = {"contradicted": ("✗", "red"), "untestable": ("!", "yellow")}
"""Of what a score is trusted to be."""

_STYLES = {"apart": "red", "linked": "red", "loose": "yellow", "known": "green"}


def show(console: Console, fit: Fit, call: Invocation, out: str | None) -> None:
    """Print the page."""
    estimator = fit.estimator
    if estimator is None:
        console.print(_describe_sessions(fit, out), soft_wrap=True, highlight=False, markup=False)
        return
    console.print(Padding(_write_sentence(fit, estimator), (1, 2)))
    curve = _tabulate_curve(fit, estimator) if fit.effects is None else tabulate_fitted(fit.effects)
    console.print(Padding(curve, (0, 2, 1, 2)))
    if "bounds" in fit.summary:
        console.print(Padding(Group(*show_bounds(fit.summary["bounds"])), (0, 2, 1, 2)))
    if fit.summary.get("assumptions") is not None:
        console.print(_describe_assumptions(fit.summary["assumptions"], call), soft_wrap=True)
    if fit.bootstrap is not None:
        console.print(f"  Error bars: {fit.bootstrap.sentence}", soft_wrap=True)
    elif fit.propensities is not None and "log_se_clusters" in fit.propensities.column_names:
        console.print(_describe_dependence(fit.summary["precision"]), soft_wrap=True, highlight=False)
    if isinstance(estimator, PBM) and any(estimator.prior_.values()):
        console.print(f"  Priors: {_describe_priors(estimator.prior_)}", soft_wrap=True)
    if fit.summary.get("holdout"):
        console.print(f"  {fit.summary['holdout']['sentence']}", soft_wrap=True, highlight=False)
    if out is not None:
        more = "" if fit.effects is None else " effects.parquet,"
        more += "" if fit.bounds is None else " bounds.parquet,"
        console.print(f"  Written to {out}: propensities.parquet, relevance.parquet,{more} fit.json", soft_wrap=True)


def show_next_step(console: Console, call: Invocation, out: str) -> None:
    """Print what to run on the fit."""
    command = _audit(call, "--fit", out)
    line = Text.assemble(("  Next: ", "bold"), command, ("   # is it debiased? better with --labels", "dim"))
    console.print(line, soft_wrap=True)


def _describe_sessions(fit: Fit, out: str | None) -> str:
    """How a session click model ended."""
    fields = fit.summary
    ended = "converged" if fields["converged"] else f"NOT converged ({fields['reason']})"
    likelihood = "0" if fields["log_likelihood"] is None else f"{fields['log_likelihood']:,.1f}"
    what = "log-likelihood" if fields["log_likelihood"] is not None else f"likelihood ({fields['reason']})"
    lines = [
        f"  {fit.model}: {ended} after {format_count(fields['iterations'])} iterations ({fields['seconds']:.2f} s), "
        f"{what} {likelihood}.",
        f"  {format_count(fields['sessions'])} pages of up to {fields['ranks']} results, "
        f"{format_count(fit.relevance.num_rows)} items.",
    ]
    if fields.get("at_boundary"):
        lines.append(f"  ! {fields['at_boundary']['sentence']}")
    if fields.get("holdout"):
        lines.append(f"  {fields['holdout']['sentence']}")
    if out is not None:
        lines.append(f"  Written to {out}: relevance.parquet, model.npz, queries.parquet, fit.json")
    return "\n" + "\n".join(lines)


def say_likelihood(value: float) -> str:
    """Infinite where the log has a click that the fit gives no chance, or none that it is sure of; 0 and not -0."""
    if math.isinf(value):
        return "likelihood 0: the log has what it takes for impossible"
    return f"log-likelihood {round(value, 1) + 0.0:,.1f}"


def _write_sentence(fit: Fit, estimator: Estimator) -> Text:
    n, components = estimator.iterations_, int(fit.summary["components"])
    ended = "converged" if estimator.converged_ else "NOT converged"
    how = f"{fit.model}: {ended} after {format_count(n)} iteration{'' if n == 1 else 's'}"
    text, knowledge = Text(), describe_knowledge(fit.summary)
    if knowledge and not fit.summary["baseline"]:
        sign, style = LOOKS[fit.summary["rung"]].sign, _STYLES[fit.summary["rung"]]
        if "score" in fit.summary:
            sign, style = _DOUBTS.get(fit.summary["score"]["verdict"], (sign, style))
        text.append(f"{sign if estimator.converged_ else '!'} {knowledge}\n", style=style)
    text.append(f"{how} ({estimator.seconds_:.2f} s), {say_likelihood(estimator.log_likelihood_)}.", style="bold")
    if estimator.reason_:
        text.append(f"\n{to_one_line(estimator.reason_, 400)}", style="red")
    if fit.summary["baseline"]:
        text.append(f"\n{fit.summary['caution']}", style="yellow")
        return text
    if fit.summary["caution"]:
        text.append(f"\n! {fit.summary['caution']}", style="yellow")
    if components > 1:
        beyond = ", beyond what bounds say" if "bounds" in fit.summary else ""
        text.append(
            f"\n{format_count(components)} components, each at its own scale: do not compare across them{beyond}.",
            style="red",
        )
    return text


def _describe_assumptions(found: dict[str, Any], call: Invocation) -> Text:
    """One line: which assumptions the log rejects, or why that is not known, and what tells more."""
    more = (f"   # {_audit(call, '--assumptions')}", "dim")
    if not found["run"]:
        return Text.assemble(("  Assumptions: ", "bold"), f"not tested, {found['reason']}", more)
    rest = f"; {found['reason']}" if found["reason"] else ""
    if found["rejected"]:
        named = ", ".join(found["rejected"])
        return Text.assemble(("  ! Assumptions: ", "bold yellow"), (f"the log rejects {named}{rest}", "yellow"), more)
    return Text.assemble(("  Assumptions: ", "bold"), f"none is rejected{rest}", more)


def _audit(call: Invocation, *words: str) -> str:
    """`elute audit` on the same log."""
    read = [word for source in call.sources for word in ("--log", source)]
    return Invocation((), call.options).command("audit", *words, *read)


def _describe_priors(chosen: Priors) -> str:
    """The priors in use, in words."""
    words = []
    if chosen["smooth"]:
        strengths = ", ".join(f"{name} {value:.3g}" for name, value in chosen["smooth"].items())
        words.append(f"smooth propensities (strength {strengths})")
    if chosen["relevance"]:
        words.append("relevance from Beta({a:.3g}, {b:.3g})".format(**chosen["relevance"]))
    return "; ".join(words)


def _describe_dependence(known: dict[str, Any]) -> str:
    """What the error bars take in."""
    times, clusters = known["design_effect"] ** 0.5, known["clusters"]
    number = f"{format_count(clusters['number'])} cluster{'' if clusters['number'] == 1 else 's'} by {clusters['by']}"
    more = f"{times:.2g} times those of independent clicks" if times > 1.005 else "those of independent clicks"
    return f"  Error bars: {more} ({number}{'' if clusters['tell'] else ', which cannot tell'})"


def _tabulate_curve(fit: Fit, estimator: Estimator) -> Table:
    """A bar for each factor, up to its propensity; ├ and ┤ mark plus and minus two standard errors. Click rates stand
    beside them, also relative to the reference's: what debiasing changed is the difference to the propensity."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("factor")
    baseline = bool(fit.summary["baseline"])
    scale = np.zeros_like(estimator.component_) if baseline else estimator.component_
    several, width = (True, _NARROW) if scale.any() else (False, _WIDTH)
    if several:
        table.add_column("component", justify="right")
    table.add_column("propensity", no_wrap=True, min_width=width)
    for head in ("", "± 2 se\nof log", "click\nrate", "relative\nrate"):
        table.add_column(head, justify="right")
    errors, rates = fit.propensity_errors, fit.click_rates
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = rates / rates[find_references(estimator.propensity_, scale)]
    for code, factor in enumerate(to_rows(estimator.factors_, range(min(len(errors), _SHOWN)))):
        value, error = float(estimator.propensity_[code]), float(errors[code])
        part = (str(int(scale[code])),) if several else ()
        spread = "–" if baseline or math.isnan(error) else ("reference" if error == 0 else f"{2 * error:.3f}")
        figures = (_format(value), spread, f"{rates[code]:.1%}", _format(float(relative[code])))
        table.add_row(Text(to_one_line(describe(factor))), *part, _draw_bar(value, error, width), *figures)
    if len(errors) > _SHOWN:
        table.add_row(f"… {format_count(len(errors) - _SHOWN)} more in propensities.parquet")
    return table


def _format(value: float) -> str:
    return f"{value:.3f}" if math.isfinite(value) else "–"


def _draw_bar(value: float, error: float, width: int) -> str:
    if math.isnan(value):
        return ""
    cells = ["█" if i < round(value * width) else " " for i in range(width)]
    if error > 0:
        for sign, mark in ((-2, "├"), (2, "┤")):
            at = round(value * math.exp(sign * error) * width)
            if 0 <= at < width:
                cells[at] = mark
    return "".join(cells)
