"""`elute demo`: every verb on logs whose truth is known, by the commands that a user would type."""

from __future__ import annotations

import shlex
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import NamedTuple, cast

import click

_SESSIONS, _QUERIES, _SEED = 20_000, 120, 7

_AUDIT = "Audit: how much of the bias is left? The simulation knows the grades"
_FIT = "Fit: propensities and relevance, beside a model that ignores positions"

_EPILOG = """\b
Example:
  elute demo --out demo
"""


class _Step(NamedTuple):
    """A command. `to`: a file for what it prints. `shown`: whether its page is for the reader."""

    title: str
    words: tuple[str, ...]
    to: Path | None = None
    shown: bool = True

    def __str__(self) -> str:
        return shlex.join(("elute", *self.words)) + (f" > {shlex.quote(str(self.to))}" if self.to is not None else "")


@click.command(epilog=_EPILOG)
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), default="demo", show_default=True, help="Where to write."
)
def demo(out: Path) -> None:
    """Simulate a sound and a broken log, check both, repair the broken one, fit, audit and judge it, and report."""
    from pyarrow.csv import write_csv
    from rich.console import Console

    from elute._util.files import write_atomically, write_parquet
    from elute.cli.progress import Reporter
    from elute.simulation import toy

    console = Console()
    console.rule("Simulate: a sound log, a broken one, and the truth behind them", style="dim")
    with Reporter() as progress:
        for at, name in enumerate(("sound", "broken")):
            progress(f"simulating the {name} log", at, 2)
            table = toy.simulate(_SESSIONS, _QUERIES, broken=name == "broken", seed=_SEED)
            write_parquet(out / f"{name}.parquet", table)
        with write_atomically(out / "truth.csv") as temporary:
            write_csv(toy.draw_truth(_QUERIES, _SEED), temporary)
    title = ""
    for step in _list_steps(out):
        if step.title != title:
            title = step.title
            console.rule(title, style="dim")
        console.print(f"$ {step}", style="bold", soft_wrap=True, highlight=False, markup=False)
        _run_step(step)
    console.print(f"\nOpen {out / 'report.html'} in a browser; then try the commands above on your own log.")


def _list_steps(out: Path) -> list[_Step]:
    """From the logs to the page."""
    names = ("sound.parquet", "broken.parquet", "truth.csv", "merge.json", "judged/ratings.csv", "report.html")
    sound, broken, truth, plan, ratings, page = (str(out / name) for name in names)
    pbm, naive = (str(out / "fits" / name) for name in ("pbm", "naive"))
    audit, fits = out / "audit.json", ("--fit", pbm, "--fit", naive)
    judged = ("audit", *fits, "--log", broken, "--labels", truth, "--policy-scores", truth)
    return [
        _Step("Check the sound log: documents change places all over the page", ("check", sound)),
        _Step("Check the broken log: positions 1–4 and 5–10 share no document", ("check", broken)),
        _Step("Repair: the cheapest plan without new traffic", ("repair", broken, "--method", "merge", "--out", plan)),
        _Step(_FIT, ("fit", broken, "--plan", plan, "--out", pbm)),
        _Step(
            _FIT,
            ("fit", broken, "--plan", plan, "--model", "naive", "--out", naive),
            shown=False,
        ),
        _Step(_AUDIT, judged),
        _Step(_AUDIT, (*judged, "--assumptions", "--json"), audit, False),
        _Step("Judge: ratings for Quepid", ("judge", pbm, "--format", "quepid", "--out", ratings)),
        _Step(
            "Report: all of it on one page",
            ("report", broken, "--plan", plan, *fits, "--audit", str(audit), "--out", page),
        ),
    ]


def _run_step(step: _Step) -> None:
    """Run a verb as the command line does; errors go to whoever runs the demo."""
    from elute._util.files import write_text

    verb, *words = step.words
    context = click.get_current_context()
    command = cast(click.Group, context.find_root().command).get_command(context, verb)
    if command is None:
        raise LookupError(verb)
    if step.shown:
        command.main(words, prog_name=f"elute {verb}", standalone_mode=False)
        return
    printed = StringIO()
    with redirect_stdout(printed):
        command.main(words, prog_name=f"elute {verb}", standalone_mode=False)
    if step.to is not None:
        write_text(step.to, printed.getvalue())
