"""`elute fit`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from elute.cli.options import NOT_RECOVERABLE, Invocation, reads_log
from elute.progress import Progress

if TYPE_CHECKING:
    from elute.counts import Counts
    from elute.estimate.bootstrap import Bootstrap
    from elute.estimate.pbm import PBM
    from elute.log import ClickLog
    from elute.repair.plan import MergePlan

MODELS = (
    "pbm", "affine", "em", "dla", "two-tower", "harvest", "harvest-pivot", "ipw", "affine-ipw", "naive", "ctr"
)  # fmt: skip
"""As in `elute.estimate.models`, which is slow to import; a test compares the two."""

SESSION_MODELS = ("dctr", "rdctr", "cascade", "dcm", "ccm", "ubm", "sdbn", "dbn", "ncm", "cacm")
"""As in `elute.clicks`, less the pbm that is among the others; they read whole pages and need --session."""

_EPILOG = """\b
Examples:
  elute fit demo/sound.parquet --model pbm --out fit
  elute fit demo/broken.parquet --plan demo/merge.json --out fit
  elute fit demo/sound.parquet --bootstrap 200 --cluster query_id --out fit
  elute fit demo/sound.parquet --model ipw --propensities fit --clip 0.05 --out weighted
  elute fit demo/sound.parquet --model dbn --session session_id --out browsed

\b
Exit code: 0 done, 3 the log is not recoverable (see --plan and --allow-unidentified), 1 it cannot be used.
"""


def _clip(_: click.Context, option: click.Parameter, value: str | None) -> float | str | None:
    if value is None or value == "auto":
        return value
    try:
        return float(value)
    except ValueError:
        raise click.BadParameter(f"'{value}' is neither a number nor auto", param=option) from None


@click.command(epilog=_EPILOG)
@reads_log
@click.option(
    "--model", type=click.Choice((*MODELS, *SESSION_MODELS)), default="pbm", show_default=True, help="What to fit."
)
@click.option("--plan", type=click.Path(dir_okay=False), help="A merge plan: its factors share one propensity.")
@click.option("--out", type=click.Path(file_okay=False), help="Folder to write the fit to.")
@click.option("--seed", type=int, help="Seed of random starts and draws.  [default: 0]")
@click.option("--tolerance", type=click.FloatRange(min=0, min_open=True), help="When to stop.  [default: the model's]")
@click.option("--max-iter", type=click.IntRange(min=1), help="Iterations at most.  [default: the model's]")
@click.option("--prior", type=click.Choice(["smooth"]), help="pbm: neighbouring factors are alike.  [default: none]")
@click.option(
    "--relevance-prior",
    type=click.Choice(["auto", "beta", "none"]),
    help="pbm: a Beta prior fitted to all items.  [default: auto, where items have few clicks]",
)
@click.option("--propensities", type=click.Path(), help="ipw, affine-ipw: the folder of a fit, or its Parquet file.")
@click.option("--clip", metavar="TAU|auto", callback=_clip, help="ipw, affine-ipw: propensities count as at least TAU.")
@click.option("--self-normalised", is_flag=True, default=None, help="ipw, affine-ipw: divide by what clipping leaves.")
@click.option("--policy-aware", is_flag=True, default=None, help="ipw, affine-ipw: average an item's propensities.")
@click.option("--bootstrap", type=click.IntRange(min=2), metavar="B", help="pbm: error bars from B draws of clusters.")
@click.option("--cluster", metavar="COL", help="What --bootstrap draws.  [default: the query]")
@click.option("--allow-unidentified", is_flag=True, help="Go on with several components, each at its own scale.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout, nothing else.")
def fit(
    log: ClickLog,
    call: Invocation,
    progress: Progress,
    model: str,
    plan: str | None,
    out: str | None,
    propensities: str | None,
    bootstrap: int | None,
    cluster: str | None,
    allow_unidentified: bool,
    as_json: bool,
    **options: Any,
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
    from elute.estimate.models import GIVEN, build
    from elute.estimate.pbm import PBM
    from elute.estimate.save import save, summary
    from elute.identify.components import components
    from elute.provenance import provenance
    from elute.repair.plan import MergePlan, load

    if log.roles.click is None:
        raise EluteError(f"{log.engine.label} has no clicks to fit")
    if model in SESSION_MODELS:
        from elute.cli.fit_sessions import fit_sessions

        others = {"plan": plan, "propensities": propensities, "bootstrap": bootstrap, "cluster": cluster, **options}
        fit_sessions(log, call.sources, model, out, progress, as_json=as_json, **others)
        return
    if model == "pbm":
        wanted = options["relevance_prior"] or "auto"
        options["relevance_prior"] = None if wanted == "none" else wanted
    estimator = build(model, **options, propensities=known(propensities), progress=progress)
    if (bootstrap is not None or cluster is not None) and not isinstance(estimator, PBM):
        raise EluteError(f"model '{model}' has no --bootstrap; pbm has")
    if cluster is not None and bootstrap is None:
        raise EluteError("--cluster says what --bootstrap draws: give that too")
    merges = load(plan) if plan is not None else None
    if merges is not None and not isinstance(merges, MergePlan):
        raise EluteError(f"{plan} is a swap plan: show its swaps to users, then fit the log that results")
    by_share = isinstance(estimator, PBM) and estimator.by_share and bootstrap is None
    if not (by_share and log.shares(progress)):
        log.counts(progress)
    parts = len(components(log.connect(progress), log.survey.factors, log.survey.impressions, merges))
    if parts > 1 and not allow_unidentified and model not in GIVEN:
        mend = call.command("repair", "--method", "merge", "--out", "plan.json")
        click.echo(f"elute: not recoverable: {parts:,} components. Mend the log first: {mend}", err=True)
        click.get_current_context().exit(NOT_RECOVERABLE)
    drawn = None
    if bootstrap is not None and isinstance(estimator, PBM):
        drawn = _bootstrapped(estimator, log, log.counts(progress), merges, bootstrap, cluster, progress)
    else:
        estimator.fit(log, merges)
    fields = summary(model, estimator)
    if drawn is not None:
        fields["bootstrap"] = {"cluster": cluster or log.roles.query, **drawn.to_dict()}
    if out is not None:
        save(out, fields, estimator, asdict(provenance(log)), drawn)
    if as_json:
        click.echo(json.dumps(fields))
    else:
        fit_page.show(Console(), model, estimator, out, drawn)
        if out is not None:
            read = [word for source in call.sources for word in ("--log", source)]
            fit_page.next_step(Console(), Invocation((), call.options).command("audit", "--fit", out, *read))


def known(path: str | None) -> Any:
    """Propensities from a fit's folder, or from a file."""
    if path is None:
        return None
    from pathlib import Path

    from elute.engines.sources import Source
    from elute.errors import EluteError

    inside = Path(path) / "propensities.parquet"
    if not inside.exists():
        return Source(path).table()
    if not (Path(path) / "fit.json").exists():
        raise EluteError(f"{path} holds a fit that was not finished: it has no fit.json; fit again with --out {path}")
    return Source(str(inside)).table()


def _bootstrapped(
    model: PBM,
    log: ClickLog,
    counts: Counts,
    plan: MergePlan | None,
    replicates: int,
    cluster: str | None,
    progress: Progress,
) -> Bootstrap:
    """Fit the model and report the bootstrap's errors with it. Where each item has one query, drawing queries is
    drawing items, and the log need not be read again."""
    from elute.errors import EluteError
    from elute.estimate.bootstrap import bootstrap

    column = cluster or log.roles.query
    if column is None:
        raise EluteError("the log has no query column to draw by: name one with --cluster")
    by_query = column == log.roles.query and log.roles.items_within_queries
    clusters = None if by_query else counts.read_clusters(column)
    drawn = bootstrap(model, counts, clusters, plan=plan, replicates=replicates, seed=model.seed, progress=progress)
    model.report_errors(drawn.propensity_log_se, drawn.relevance_log_se)
    return drawn
