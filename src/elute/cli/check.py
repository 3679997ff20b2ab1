"""`elute check`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from elute.cli.options import NOT_RECOVERABLE, Invocation, reads_log
from elute.progress import Progress

if TYPE_CHECKING:
    from elute.log import ClickLog

_LISTED = 20
"""Undetermined factors named in the JSON."""

_EPILOG = """\b
Examples:
  elute check demo/broken.parquet
  elute check 'demo/*.parquet' --bias position,session_id --explore
  elute check demo/sound.parquet --precision
  elute check demo/sound.parquet --item doc_id --json

\b
Exit code: 0 recoverable, 3 not recoverable, 1 the log cannot be used, 2 wrong usage.
"""


@click.command(epilog=_EPILOG)
@reads_log
@click.option("--plan", type=click.Path(dir_okay=False), help="As if this repair plan had been carried out.")
@click.option("--explore", is_flag=True, help="Also check every subset of the bias columns.")
@click.option("--curve", is_flag=True, help="Also check random samples of the log, from 1% to all of it.")
@click.option("--precision", is_flag=True, help="Also how precisely propensities are determined, and by what.")
@click.option("--model", metavar="MODEL", help="Also for affine (trust bias) or vector:D clicks, not only r·o.")
@click.option("--seed", default=0, show_default=True, help="Seed of what --curve and --model draw.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout, nothing else.")
def check(
    log: ClickLog,
    call: Invocation,
    progress: Progress,
    plan: str | None,
    explore: bool,
    curve: bool,
    precision: bool,
    model: str | None,
    seed: int,
    as_json: bool,
) -> None:
    """Can relevance be recovered from this log, and for which queries?

    LOG is one or more paths, globs or folders of Parquet, CSV or NDJSON files (gzip too), a table
    (duckdb://file.db#table, postgres://user@host/db#schema.table), or Parquet at s3:// or https://. Each row is an
    impression: a result shown to a user, clicked or not.
    """
    import json

    from rich.console import Console

    from elute.cli import check_page, generic_page
    from elute.errors import EluteError
    from elute.identify.check import check as run
    from elute.repair.plan import MergePlan, load

    links = load(plan) if plan is not None else None
    verdict = run(log, plan=links, explore=explore, curve=curve, seed=seed, progress=progress)
    certificate = None
    if precision:
        from elute.estimate.certificate import certify

        if log.roles.click is None:
            raise EluteError(f"{log.engine.label} has no clicks, which --precision needs")
        if isinstance(links, MergePlan):
            certificate = certify(verdict.counts, links, progress)
        else:
            certificate = certify(verdict.counts if links is None else links.apply(verdict.counts), None, progress)
    generic = None
    if model is not None:
        from elute.factors import describe, rows
        from elute.identify.generic import of_cells

        counts = verdict.counts if links is None else links.apply(verdict.counts)
        named = [describe(factor) for factor in rows(counts.factors, range(counts.n_factors))]
        generic = of_cells(counts.offsets, counts.factor, named, model, seed=seed)
    if as_json:
        fields = verdict.to_dict() | ({} if certificate is None else {"certificate": certificate.to_dict()})
        if generic is not None:
            fields["generic"] = {**generic.to_dict(), "undetermined": list(generic.undetermined[:_LISTED])}
        click.echo(json.dumps(fields, ensure_ascii=False, allow_nan=False))
    else:
        check_page.show(Console(), verdict, call, certificate)
        if generic is not None:
            generic_page.show(Console(), generic)
    if not verdict.recoverable:
        click.get_current_context().exit(NOT_RECOVERABLE)
