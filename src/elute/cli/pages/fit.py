"""The page `elute fit` prints: how the fit ended, and the propensities with their error bars."""

from __future__ import annotations

import math

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from elute.cells.factors import describe, to_rows
from elute.cli.text import format_count, to_one_line
from elute.estimate.models.base import Estimator
from elute.estimate.models.pbm import PBM, Priors
from elute.fits.fit import Fit

_SHOWN = 40
_WIDTH = 32


def show(console: Console, fit: Fit, out: str | None) -> None:
    """Print the page."""
    estimator = fit.estimator
    if estimator is None:
        console.print(_describe_sessions(fit, out), soft_wrap=True, highlight=False, markup=False)
        return
    components = int(fit.summary["components"])
    console.print(Padding(_write_sentence(fit, estimator), (1, 2)))
    console.print(Padding(_tabulate_curve(estimator, components), (0, 2, 1, 2)))
    if fit.bootstrap is not None:
        console.print(f"  Error bars: {fit.bootstrap.sentence}", soft_wrap=True)
    if isinstance(estimator, PBM) and any(estimator.prior_.values()):
        console.print(f"  Priors: {_describe_priors(estimator.prior_)}", soft_wrap=True)
    if out is not None:
        console.print(f"  Written to {out}: propensities.parquet, relevance.parquet, fit.json", soft_wrap=True)


def show_next_step(console: Console, command: str) -> None:
    """Print what to run on the fit."""
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
    if out is not None:
        lines.append(f"  Written to {out}: relevance.parquet, model.npz, queries.parquet, fit.json")
    return "\n" + "\n".join(lines)


def _write_sentence(fit: Fit, estimator: Estimator) -> Text:
    n, components = estimator.iterations_, int(fit.summary["components"])
    ended = "converged" if estimator.converged_ else "NOT converged"
    how = f"{fit.model}: {ended} after {format_count(n)} iteration{'' if n == 1 else 's'}"
    text = Text(f"{how} ({estimator.seconds_:.2f} s), log-likelihood {estimator.log_likelihood_:,.1f}.", style="bold")
    if estimator.reason_:
        text.append(f"\n{to_one_line(estimator.reason_, 400)}", style="red")
    if components > 1:
        text.append(
            f"\n{format_count(components)} components, each at its own scale: do not compare across them.", style="red"
        )
    return text


def _describe_priors(chosen: Priors) -> str:
    """The priors in use, in words."""
    words = []
    if chosen["smooth"]:
        strengths = ", ".join(f"{name} {value:.3g}" for name, value in chosen["smooth"].items())
        words.append(f"smooth propensities (strength {strengths})")
    if chosen["relevance"]:
        words.append("relevance from Beta({a:.3g}, {b:.3g})".format(**chosen["relevance"]))
    return "; ".join(words)


def _tabulate_curve(fit: Estimator, components: int) -> Table:
    """A bar for each factor, up to its propensity; ├ and ┤ mark plus and minus two standard errors."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("factor")
    if components > 1:
        table.add_column("component", justify="right")
    table.add_column("propensity")
    table.add_column("", justify="right")
    table.add_column("± 2 se of log", justify="right")
    errors = fit.propensity_log_se_
    for code, factor in enumerate(to_rows(fit.factors_, range(min(len(errors), _SHOWN)))):
        value, error = float(fit.propensity_[code]), float(errors[code])
        part = (str(int(fit.component_[code])),) if components > 1 else ()
        shown = "–" if math.isnan(value) else f"{value:.3f}"
        spread = "–" if math.isnan(error) else ("reference" if error == 0 else f"{2 * error:.3f}")
        table.add_row(Text(to_one_line(describe(factor))), *part, _draw_bar(value, error), shown, spread)
    if len(errors) > _SHOWN:
        table.add_row(f"… {format_count(len(errors) - _SHOWN)} more in propensities.parquet")
    return table


def _draw_bar(value: float, error: float) -> str:
    if math.isnan(value):
        return ""
    cells = ["█" if i < round(value * _WIDTH) else " " for i in range(_WIDTH)]
    if error > 0:
        for sign, mark in ((-2, "├"), (2, "┤")):
            at = round(value * math.exp(sign * error) * _WIDTH)
            if 0 <= at < _WIDTH:
                cells[at] = mark
    return "".join(cells)
