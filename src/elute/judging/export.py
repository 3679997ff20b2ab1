"""`elute judge`: a fit in the format of whoever uses it, and a summary of what was written and what was not."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from elute._util.atomic import is_stream
from elute._util.files import write_parquet
from elute._util.paths import refuse_harm
from elute._util.text import to_one_line
from elute.cells.filters import Filters
from elute.cells.roles import DEFAULT_CLICK, DEFAULT_DOC, DEFAULT_QUERY
from elute.errors import EluteError
from elute.fits.fit import Fit
from elute.io.features import read_features
from elute.judging import opensearch, quepid, ranklib, trec
from elute.judging.agreement import compare_with_labels
from elute.judging.grades import parse_rule
from elute.judging.judgments import Judgments, judge
from elute.judging.posteriors import CLICKS_ALONE
from elute.results.knowledge import describe_knowledge

BUNDLES = ("lightgbm", "xgboost")
FORMATS = ("quepid", "opensearch", "ranklib", "trec", *BUNDLES)


@dataclass(frozen=True)
class Wanted:
    """What the user says beside the fit, the format and the place to write to."""

    query: str = DEFAULT_QUERY
    doc: str = DEFAULT_DOC
    click: str = DEFAULT_CLICK
    session: str | None = None
    log: object = None
    features: tuple[str, ...] = ()
    grades: str | None = None
    levels: int | None = None
    min_precision: float | None = None
    all_items: bool = False
    labels: object = None
    where: str | None = None
    max_position: int | None = None
    min_factor_impressions: int | None = None

    @property
    def filters(self) -> Filters:
        """Of the log."""
        return Filters.from_options(vars(self))


def export(fit: Fit, form: str, out: str | Path | None, wanted: Wanted) -> tuple[dict[str, Any], Judgments | None]:
    """Write `out`, where one is named; gives the fields of `elute judge --json`, and the judgments where the format has
    any."""
    if form not in FORMATS:
        raise EluteError(f"no format '{form}'; there are: {', '.join(FORMATS)}")
    if wanted.filters and wanted.log is None:
        raise EluteError("`where=`, `max_position=` and `min_factor_impressions=` filter a log: give `log=` too")
    target = None if out is None else Path(out)
    _refuse_harm(fit, form, target, wanted)
    written, made = (
        _export_bundle(fit, form, target, wanted) if form in BUNDLES else _export_judgments(fit, form, target, wanted)
    )
    fields = {
        "format": form,
        "out": None if out is None else str(out),
        "fit": None if fit.folder is None else str(fit.folder),
        "model": fit.model,
        **written,
    }
    if fit.summary.get("debiases") is False:
        fields["warnings"].append(f"these are click rates, not debiased ({to_one_line(fit.summary['caution'], 200)})")
    elif knowledge := describe_knowledge(fit.summary):
        fields["knowledge"] = knowledge
    if not fit.converged:
        fields["warnings"].append(f"the fit did not converge ({fit.reason}); its figures may be far off")
    return fields, made


def _refuse_harm(fit: Fit, form: str, out: Path | None, wanted: Wanted) -> None:
    """Nothing that is read is written over, also not by what stands beside judgments."""
    for target in (out, None if out is None else name_evidence(out)):
        refuse_harm(target, [fit.folder, wanted.log, wanted.features, wanted.labels], folder=form in BUNDLES)


def _export_judgments(fit: Fit, form: str, out: Path | None, wanted: Wanted) -> tuple[dict[str, Any], Judgments]:
    if out is not None and out.is_dir():
        raise EluteError(f"'{out}' is a folder, but {form} is a single file; name a file with `out=`")
    if wanted.features and form != "ranklib":
        raise EluteError(f"format '{form}' does not use `features=`; ranklib, lightgbm and xgboost do")
    chosen = parse_rule(wanted.grades, wanted.levels)
    made = judge(
        fit, wanted.query, wanted.doc, chosen, wanted.min_precision, wanted.log, wanted.filters, wanted.all_items
    )
    agreement = None if wanted.labels is None else compare_with_labels(made, wanted.labels, wanted.query, wanted.doc)
    warnings = [] if out is None else write_judgments(form, out, made, wanted)
    if made.clicks_alone:
        warnings.append(CLICKS_ALONE)
    known = int(made.support.known.sum())
    if wanted.all_items:
        warnings.append(
            f"{len(made.doc) - known:,} of {len(made.doc):,} judgments are of items whose place is not known; "
            "column `known` tells which"
        )
    fields = {
        "files": [] if out is None else [path.name for path in (out, name_evidence(out)) if path is not None],
        "queries": made.queries,
        "judgments": len(made.doc),
        "known": known,
        "grades": dict(enumerate(np.bincount(made.grade, minlength=made.levels).tolist())),
        "rule": chosen.description,
        "min_precision": wanted.min_precision,
        "withheld": made.withheld,
        "left_out": {reason: n._asdict() for reason, n in made.left_out.items()},
        "agreement": None if agreement is None else agreement._asdict(),
        "warnings": warnings,
        "next": "name a file to write to" if out is None else _suggest_next(form, out, trained=bool(wanted.features)),
    }
    return fields, made


def tabulate(made: Judgments, wanted: Wanted) -> pa.Table:
    """A row a judgment: its query, document and grade, and what it rests on. `known` is among it where not all are."""
    support = made.support._asdict()
    if not wanted.all_items:
        del support["known"]
    return pa.table({wanted.query: made.query, wanted.doc: made.doc, "grade": made.grade, **support})


def name_evidence(out: Path) -> Path | None:
    """The file beside judgments that says what each of them rests on: no format has room for it. Beside a device or a
    pipe there is no place for it."""
    return None if is_stream(out) else out.with_name(f"{out.name}.evidence.parquet")


def write_judgments(form: str, out: Path, made: Judgments, wanted: Wanted) -> list[str]:
    """Write judgments in a format, and beside them what they rest on; gives what their reader should know."""
    if form == "ranklib":
        features = read_features(wanted.features, (wanted.query, wanted.doc)) if wanted.features else None
        warnings = ranklib.write(out, made, features)
    else:
        warnings = {"quepid": quepid.write, "opensearch": opensearch.write, "trec": trec.write}[form](out, made)
    evidence = name_evidence(out)
    if evidence is not None:
        write_parquet(evidence, tabulate(made, wanted))
    return warnings


def _export_bundle(fit: Fit, form: str, out: Path | None, wanted: Wanted) -> tuple[dict[str, Any], None]:
    from elute.judging import bundle  # slow to import, and most formats need no log
    from elute.log import read_log

    if out is None or (out.exists() and not out.is_dir()):
        raise EluteError(
            f"'{out}' is a file, but {form} takes a folder; name one with `out=`"
            if out
            else f"format '{form}' needs `out=`, a folder"
        )
    for option, value in (
        ("grades", wanted.grades),
        ("levels", wanted.levels),
        ("min_precision", wanted.min_precision),
        ("all_items", wanted.all_items or None),
        ("labels", wanted.labels),
    ):
        if value is not None:
            raise EluteError(f"format '{form}' has no `{option}=`: its labels are clicks, weighted by propensities")
    source = wanted.log
    if source is None or not wanted.features:
        lacks = (
            "`log=`, the clicks to learn from" if source is None else "`features=`, a table of the documents' features"
        )
        raise EluteError(f"format '{form}' needs {lacks}")
    features = read_features(wanted.features, (wanted.query, wanted.doc))
    with read_log(
        source,
        query=wanted.query,
        doc=wanted.doc,
        item=fit.provenance.item,
        bias=fit.provenance.bias,
        click=wanted.click,
        session=wanted.session,
        where=wanted.where,
        max_position=wanted.max_position,
        min_factor_impressions=wanted.min_factor_impressions,
    ) as log:
        fields = bundle.write(form, out, fit, log, source, features)
    return {
        **fields,
        "rule": "weighted: a group for each click, with weight 1/propensity of where it was made; positions: a group "
        "for each page",
        "warnings": [],
        "next": f"train on weighted rows or on positions, never on both; docs/judge.md has the code for {form}",
    }, None


def _suggest_next(form: str, out: Path, trained: bool) -> str:
    """What to do with the file."""
    file = shlex.quote(str(out))
    if form == "ranklib":
        train = f"java -jar RankLib.jar -train {file} -ranker 6 -metric2t NDCG@10"
        return train if trained else "add the documents' features to make it something to train on"
    return {
        "quepid": f"in a Quepid case, Import, ratings as CSV: {file}",
        "opensearch": "curl -X PUT https://HOST:9200/_plugins/_search_relevance/judgments "
        f"-H 'Content-Type: application/json' --data-binary @{file}",
        "trec": f"ir_measures {file} RUN nDCG@10",
    }[form]
