"""`elute fit` with a session click model: a model of whole result pages instead of counts."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import click

from elute.cli.text import count
from elute.errors import EluteError
from elute.log import ClickLog
from elute.progress import Progress
from elute.provenance import provenance
from elute.sessions.fit import fit_log
from elute.sessions.folder import save


def fit_sessions(
    log: ClickLog,
    sources: tuple[str, ...],
    model: str,
    out: str | None,
    progress: Progress,
    *,
    as_json: bool,
    seed: int | None,
    max_iter: int | None,
    **refused: object,
) -> None:
    """Fit, write the folder, and print how it went. `refused`: options of other models, which must not be given."""
    for option, value in refused.items():
        if value not in (None, False):
            raise EluteError(f"model '{model}' has no --{option.replace('_', '-')}")
    fit = fit_log(log, sources, model, seed=seed or 0, max_iter=max_iter, progress=progress)
    if out is not None:
        save(out, fit, {**asdict(provenance(log)), "session": log.roles.session})
    click.echo(json.dumps(fit.summary) if as_json else _page(fit.summary, len(fit.vocabulary.documents), out))


def _page(fields: dict[str, Any], items: int, out: str | None) -> str:
    ended = "converged" if fields["converged"] else f"NOT converged ({fields['reason']})"
    likelihood = "0" if fields["log_likelihood"] is None else f"{fields['log_likelihood']:,.1f}"
    what = "log-likelihood" if fields["log_likelihood"] is not None else f"likelihood ({fields['reason']})"
    lines = [
        f"  {fields['model']}: {ended} after {count(fields['iterations'])} iterations ({fields['seconds']:.2f} s), "
        f"{what} {likelihood}.",
        f"  {count(fields['sessions'])} pages of up to {fields['ranks']} results, {count(items)} items.",
    ]
    if out is not None:
        lines.append(f"  Written to {out}: relevance.parquet, model.npz, queries.parquet, fit.json")
        lines.append(f"  Next: elute audit --fit {out} --log LOG --labels labels.parquet")
    return "\n" + "\n".join(lines)
