"""`elute judge`: a fit in the format of whoever uses it, and a summary of what was written and what was not."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from elute.errors import EluteError
from elute.io.features import read_features
from elute.judge import opensearch, quepid, ranklib, trec
from elute.judge.fit import Fitted, read_fit
from elute.judge.grades import rule
from elute.judge.judgments import judge
from elute.roles import DEFAULT_CLICK, DEFAULT_DOC, DEFAULT_QUERY

BUNDLES = ("lightgbm", "xgboost")
FORMATS = ("quepid", "opensearch", "ranklib", "trec", *BUNDLES)


@dataclass(frozen=True)
class Wanted:
    """What the user says beside the fit, the format and the place to write to."""

    query: str = DEFAULT_QUERY
    doc: str = DEFAULT_DOC
    click: str = DEFAULT_CLICK
    session: str | None = None
    log: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    grades: str | None = None
    levels: int | None = None
    min_precision: float | None = None

    @property
    def source(self) -> str | list[str] | None:
        """The log in the form that readers take."""
        return None if not self.log else self.log[0] if len(self.log) == 1 else list(self.log)


def export(folder: str | Path, form: str, out: str | Path, wanted: Wanted) -> dict[str, Any]:
    """Write `out` and return the fields of `elute judge --json`."""
    fit, target = read_fit(folder), Path(out)
    write = _bundle if form in BUNDLES else _judgments
    fields = {
        "format": form,
        "out": str(out),
        "fit": str(folder),
        "model": fit.model,
        **write(fit, form, target, wanted),
    }
    if not fit.summary.get("converged", True):
        fields["warnings"].append(f"the fit did not converge ({fit.summary.get('reason')}); its figures may be far off")
    return fields


def _judgments(fit: Fitted, form: str, out: Path, wanted: Wanted) -> dict[str, Any]:
    if out.is_dir():
        raise EluteError(f"'{out}' is a folder; {form} is one file: name a file with --out")
    if wanted.features and form != "ranklib":
        raise EluteError(f"format '{form}' has no use for --features; ranklib, lightgbm and xgboost have")
    chosen = rule(wanted.grades, wanted.levels)
    made = judge(fit, wanted.query, wanted.doc, chosen, wanted.min_precision, wanted.source)
    if form == "ranklib":
        features = read_features(wanted.features, (wanted.query, wanted.doc)) if wanted.features else None
        warnings = ranklib.write(out, made, features)
    else:
        warnings = {"quepid": quepid.write, "opensearch": opensearch.write, "trec": trec.write}[form](out, made)
    return {
        "files": [out.name],
        "queries": made.queries,
        "judgments": len(made.doc),
        "grades": dict(enumerate(np.bincount(made.grade, minlength=made.levels).tolist())),
        "rule": chosen.says,
        "min_precision": wanted.min_precision,
        "left_out": {reason: n._asdict() for reason, n in made.left_out.items()},
        "warnings": warnings,
        "next": _next(form, out, trained=bool(wanted.features)),
    }


def _bundle(fit: Fitted, form: str, out: Path, wanted: Wanted) -> dict[str, Any]:
    from elute.judge import bundle  # slow to import, and most formats need no log
    from elute.log import read_log

    if out.exists() and not out.is_dir():
        raise EluteError(f"'{out}' is a file; {form} takes a folder: name one with --out")
    for option, value in (
        ("grades", wanted.grades),
        ("levels", wanted.levels),
        ("min-precision", wanted.min_precision),
    ):
        if value is not None:
            raise EluteError(f"format '{form}' has no --{option}: its labels are clicks, weighted by propensities")
    source = wanted.source
    if source is None or not wanted.features:
        lacks = (
            "--log, the clicks to learn from" if source is None else "--features, a table of the documents' features"
        )
        raise EluteError(f"format '{form}' needs {lacks}")
    features = read_features(wanted.features, (wanted.query, wanted.doc))
    with read_log(
        source,
        query=wanted.query,
        doc=wanted.doc,
        item=fit.item,
        bias=fit.bias,
        click=wanted.click,
        session=wanted.session,
    ) as log:
        fields = bundle.write(form, out, fit, log, source, features)
    return {
        **fields,
        "rule": "weighted: a group a click, weighing 1/propensity of where it was made; positions: a group a page",
        "warnings": [],
        "next": f"train on weighted rows or on positions, never on both; docs/judge.md has the lines for {form}",
    }


def _next(form: str, out: Path, trained: bool) -> str:
    """What to do with the file."""
    file = shlex.quote(str(out))
    if form == "ranklib":
        train = f"java -jar RankLib.jar -train {file} -ranker 6 -metric2t NDCG@10"
        return train if trained else "add --features to make it something to train on"
    return {
        "quepid": f"in a Quepid case, Import, ratings as CSV: {file}",
        "opensearch": "curl -X PUT https://HOST:9200/_plugins/_search_relevance/judgments "
        f"-H 'Content-Type: application/json' --data-binary @{file}",
        "trec": f"ir_measures {file} RUN nDCG@10",
    }[form]
