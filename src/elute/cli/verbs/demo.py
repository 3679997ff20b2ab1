"""`elute demo`: every verb on logs whose truth is known, by the commands that a user would type."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import partial
from io import StringIO
from pathlib import Path
from typing import NamedTuple, cast

import click

from elute.cli.types import PathType

_SESSIONS, _QUERIES, _SEED = 20_000, 120, 7
_LAYOUT_PAGES, _PHONE_PAGES = 20_000, 5_000

_AUDIT = "Audit: how much of the bias is left? The simulation knows the grades"
_SEVERAL = "Several biases at once: every combination by itself, and effects that multiply"
_MISSING = "Phones show all results one lower: one comparison is missing, and swaps that make it"
_FIT = "Fit: propensities and relevance, beside a model that ignores positions"
_SHOW = "Show these swaps to users: 20,000 pages as before, and those of the plan"

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
    first: Callable[[], None] | None = None
    """What the world does before it."""

    def __str__(self) -> str:
        return shlex.join(("elute", *self.words)) + (f" > {shlex.quote(str(self.to))}" if self.to is not None else "")


@click.command(epilog=_EPILOG)
@click.option(
    "--out", type=PathType(file_okay=False, path_type=Path), default="demo", show_default=True, help="Where to write."
)
def demo(out: Path) -> None:
    """Simulate a sound and a broken log, check both, repair the broken one by a merge and by swaps that are shown, fit,
    audit and judge, and report.

    A third log has three bias columns at once, for which a formula does what combinations of their values cannot; a
    fourth lacks one comparison under a formula, which a few swaps make."""
    from pyarrow.csv import write_csv
    from rich.console import Console

    from elute._util.atomic import write_atomically
    from elute._util.files import write_parquet
    from elute.cli.progress import Reporter
    from elute.simulation import toy
    from elute.simulation.layouts import simulate_layouts, simulate_phones

    console = Console()
    console.rule("Simulate: a sound log, a broken one, and the truth behind them", style="dim")
    with Reporter() as progress:
        for at, name in enumerate(("sound", "broken")):
            progress(f"simulating the {name} log", at, 2)
            table = toy.simulate(_SESSIONS, _QUERIES, broken=name == "broken", seed=_SEED)
            write_parquet(out / f"{name}.parquet", table)
        write_parquet(out / "layouts.parquet", simulate_layouts(_LAYOUT_PAGES, _QUERIES, _SEED))
        write_parquet(out / "phones.parquet", simulate_phones(_PHONE_PAGES, _QUERIES, _SEED))
        with write_atomically(out / "truth.csv") as temporary:
            write_csv(toy.draw_truth(_QUERIES, _SEED), temporary)
    title = ""
    for step in _list_steps(out):
        if step.title != title:
            title = step.title
            console.rule(title, style="dim")
        if step.first is not None:
            step.first()
        console.print(f"$ {step}", style="bold", soft_wrap=True, highlight=False, markup=False)
        _run_step(step)
    console.print(f"\nOpen {out / 'report.html'} in a browser; then try the commands above on your own log.")


def _list_steps(out: Path) -> list[_Step]:
    """From the logs to the page."""
    sound, broken, swapped = (str(out / f"{name}.parquet") for name in ("sound", "broken", "swapped"))
    layouts, phones = (str(out / f"{name}.parquet") for name in ("layouts", "phones"))
    truth, merge, swap = (str(out / name) for name in ("truth.csv", "merge.json", "swap.json"))
    merged, mended, naive = (str(out / "fits" / name) for name in ("merged", "pbm", "naive"))
    ratings, page, audit = str(out / "judged" / "ratings.csv"), str(out / "report.html"), out / "audit.json"
    fits = ("--fit", mended, "--fit", merged, "--fit", naive)
    judged = ("audit", *fits, "--log", swapped, "--labels", truth, "--policy-scores", truth)
    return [
        _Step("Check the sound log: documents change places all over the page", ("check", sound)),
        _Step("Check the broken log: positions 1–4 and 5–10 share no document", ("check", broken)),
        _Step(
            "Repair without new traffic: a merge, and what it distorts",
            ("repair", broken, "--method", "merge", "--out", merge),
        ),
        _Step(_FIT, ("fit", broken, "--plan", merge, "--out", merged), shown=False),
        _Step(
            "Repair with a little traffic: documents to show elsewhere",
            ("repair", broken, "--method", "swap", "--out", swap),
        ),
        _Step(_SHOW, ("check", swapped), first=partial(_carry_out, out)),
        _Step(_FIT, ("fit", swapped, "--out", mended)),
        _Step(_FIT, ("fit", swapped, "--model", "naive", "--out", naive), shown=False),
        _Step(_AUDIT, judged),
        _Step(_AUDIT, (*judged, "--assumptions", "--json"), audit, False),
        _Step("Judge: ratings for Quepid", ("judge", mended, "--format", "quepid", "--out", ratings)),
        _Step(_SEVERAL, ("check", layouts, "--bias", "position,device,layout")),
        _Step(_SEVERAL, ("check", layouts, "--bias", "position + device + layout")),
        _Step(_MISSING, ("repair", phones, "--bias", "position + device", "--method", "swap")),
        _Step(
            "Report: all of it on one page",
            ("report", broken, "--plan", swap, *fits, "--audit", str(audit), "--out", page),
        ),
    ]


def _carry_out(out: Path) -> None:
    """The log of the broken world once its swaps have been shown, and the pages that showed them (`shown.parquet`)."""
    import pyarrow.compute as pc

    from elute._util.files import write_parquet
    from elute.repair.plan import SwapPlan
    from elute.simulation import toy

    plan = SwapPlan.load(out / "swap.json")
    if isinstance(plan, SwapPlan):
        log = toy.simulate(_SESSIONS, _QUERIES, True, _SEED, plan)
        write_parquet(out / "swapped.parquet", log)
        write_parquet(out / "shown.parquet", log.filter(pc.field("session_id") >= _SESSIONS))


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
