"""`elute fit`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from elute.cli.options import NOT_RECOVERABLE, Invocation, reads_log
from elute.progress import Progress

if TYPE_CHECKING:
    from elute.log import ClickLog

MODELS = ("pbm", "affine", "em", "dla", "two-tower", "naive", "ctr")
"""As in `elute.estimate.models`, which is slow to import; a test compares the two."""

_EPILOG = """\b
Examples:
  elute fit demo/sound.parquet --model pbm --out fit
  elute fit demo/broken.parquet --plan merge.json --out fit

\b
Exit code: 0 done, 3 the log is not recoverable (see --plan and --allow-unidentified), 1 it cannot be used.
"""


@click.command(epilog=_EPILOG)
@reads_log
@click.option("--model", type=click.Choice(MODELS), default="pbm", show_default=True, help="What to fit.")
@click.option("--plan", type=click.Path(dir_okay=False), help="A merge plan: its factors share one propensity.")
@click.option("--out", type=click.Path(file_okay=False), help="Folder to write the fit to.")
@click.option("--seed", default=0, show_default=True, help="Seed of random starts.")
@click.option("--tolerance", type=click.FloatRange(min=0, min_open=True), help="When to stop.  [default: the model's]")
@click.option("--max-iter", type=click.IntRange(min=1), help="Iterations at most.  [default: the model's]")
@click.option("--allow-unidentified", is_flag=True, help="Go on with several components, each at its own scale.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout, nothing else.")
def fit(
    log: ClickLog,
    call: Invocation,
    progress: Progress,
    model: str,
    plan: str | None,
    out: str | None,
    seed: int,
    allow_unidentified: bool,
    as_json: bool,
    **limits: Any,
) -> None:
    """Propensities of factors and relevance of items, with standard errors.

    Within a component the largest propensity is 1, and relevance is at that scale. A log that is not
    recoverable is refused unless a merge plan mends it: across components nothing can be compared.
    """
    import json
    from dataclasses import asdict

    from rich.console import Console

    from elute.cli import fit_page
    from elute.errors import EluteError
    from elute.estimate.models import MODELS as ESTIMATORS
    from elute.estimate.save import save, summary
    from elute.identify.components import components
    from elute.provenance import provenance
    from elute.repair.plan import MergePlan, load

    if log.roles.click is None:
        raise EluteError(f"{log.engine.label} has no clicks to fit")
    merges = load(plan) if plan is not None else None
    if merges is not None and not isinstance(merges, MergePlan):
        raise EluteError(f"{plan} is a swap plan: show its swaps to users, then fit the log that results")
    counts = log.counts(progress)
    parts = len(components(counts, log.survey.impressions, merges))
    if parts > 1 and not allow_unidentified:
        mend = call.command("repair", "--method", "merge", "--out", "plan.json")
        click.echo(f"elute: not recoverable: {parts:,} components. Mend the log first: {mend}", err=True)
        click.get_current_context().exit(NOT_RECOVERABLE)
    settings = {name: value for name, value in limits.items() if value is not None}
    fitted = ESTIMATORS[model](seed=seed, progress=progress, **settings).fit(counts, merges)
    if out is not None:
        save(out, model, fitted, asdict(provenance(log)))
    if as_json:
        click.echo(json.dumps(summary(model, fitted)))
    else:
        fit_page.show(Console(), model, fitted, out)
