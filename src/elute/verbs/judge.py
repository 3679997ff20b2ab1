"""`elute.judge`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from elute._util.text import format_count
from elute.auditing.labels import TableSource
from elute.cells.roles import DEFAULT_CLICK, DEFAULT_DOC, DEFAULT_QUERY
from elute.errors import EluteError
from elute.fits.fit import Fit
from elute.judging.agreement import describe_agreement
from elute.judging.export import Wanted, export, tabulate, write_judgments
from elute.judging.judgments import Judgments
from elute.log import LogSource
from elute.options.takes import takes
from elute.results.base import Fields, Recorded
from elute.results.card import Bars, Card
from elute.verbs.source import as_paths


def count_known(fields: Fields) -> str:
    """How many judgments there are, and how many of them can be stood behind."""
    judgments, queries, known = (format_count(fields[name]) for name in ("judgments", "queries", "known"))
    every = "can be stood behind" if known == judgments else f"are exported, of which {known} can be stood behind"
    return f"{judgments} judgments of {queries} {'query' if queries == '1' else 'queries'} {every}"


class Judged(Recorded):
    """Judgments, or click data to train a ranker on, and what was left out. Fields are attributes."""

    def __init__(
        self, fields: dict[str, Any], judgments: Judgments | None = None, wanted: Wanted | None = None
    ) -> None:
        super().__init__(fields)
        self._judgments, self._wanted = judgments, wanted or Wanted()

    @property
    def table(self) -> pa.Table:
        """The query and document columns, `grade, confidence, impressions, clicks`, one row a judgment; with
        `all_items` also `known`."""
        return tabulate(self._made(), self._wanted)

    def export(self, path: str | Path, format: str | None = None) -> list[str]:
        """Write the judgments in a format, by default the one they were asked for, and beside them what they rest on;
        gives what their reader should know."""
        return write_judgments(format or str(self.format), Path(path), self._made(), self._wanted)

    def _made(self) -> Judgments:
        if self._judgments is None:
            raise EluteError("there are no judgments in memory: judge the fit anew, in a format that has grades")
        return self._judgments

    @classmethod
    def describe(cls, fields: Fields) -> Card:
        to = "" if fields["out"] is None else f", written to {fields['out']}"
        if "judgments" not in fields:
            clicks, pages = format_count(fields["clicks"]), format_count(fields["pages"])
            sentence = f"{clicks} clicks on {pages} pages for {fields['format']}{to}."
            return Card("calm", "Click data", sentence, notes=fields["warnings"])
        lost = sum(fields["withheld"].values())
        kept_back = f"; {format_count(lost)} items are withheld" if lost else ""
        sentence = f"{count_known(fields)}{kept_back}{to}."
        names, sizes = [f"grade {grade}" for grade in fields["grades"]], list(fields["grades"].values())
        notes = [f"withheld, {reason}: {format_count(n)}" for reason, n in fields["withheld"].items()]
        if fields["agreement"] is not None:
            notes.append(describe_agreement(fields["agreement"]))
        chart = Bars("Judgments by grade", names, sizes)
        return Card("calm", "Judgments", sentence, (), chart, [*fields["warnings"], f"Rule: {fields['rule']}.", *notes])


@takes()
def judge(
    fit: Fit | str | Path,
    format: str = "quepid",
    out: str | Path | None = None,
    *,
    grades: str | None = None,
    levels: int | None = None,
    min_precision: float | None = None,
    all_items: bool = False,
    labels: TableSource | None = None,
    features: str | Path | Sequence[str | Path] | None = None,
    log: LogSource | None = None,
    query: str = DEFAULT_QUERY,
    doc: str = DEFAULT_DOC,
    click: str = DEFAULT_CLICK,
    session: str | None = None,
    where: str | None = None,
    max_position: int | None = None,
    min_factor_impressions: int | None = None,
) -> Judged:
    """Judgments with grades, or click data to train a ranker on, in the format of whoever uses it.

    `fit`: of `elute.fit`, or its folder. `format`: quepid, opensearch, ranklib, trec; lightgbm and xgboost make a
    folder to train on from clicks and need `log`, `features` and `out`. Without `out` the judgments are in `table`, to
    be written by `export`; beside a file stands `OUT.evidence.parquet`, with what each judgment rests on.

    Items whose place in their query is not known are withheld, by reason in `withheld`; `all_items`: export them too,
    marked. `grades`: quantiles, or thresholds such as "0.1,0.3,0.6"; `levels`: grades that quantiles make.
    `min_precision`: leave out items whose relevance has a standard error above 1/`min_precision`. `labels`: queries,
    documents and their `grade` by people, to compare with. `log` is also read where items are not a query and a
    document; `where`, `max_position` and `min_factor_impressions` as for `elute.read_log`.
    """
    wanted = Wanted(
        query=query,
        doc=doc,
        click=click,
        session=session,
        log=log,
        features=as_paths(features),
        grades=grades,
        levels=levels,
        min_precision=min_precision,
        where=where,
        max_position=max_position,
        min_factor_impressions=min_factor_impressions,
        all_items=all_items,
        labels=labels,
    )
    fields, made = export(fit if isinstance(fit, Fit) else Fit.load(fit), format, out, wanted)
    return Judged(fields, made, wanted)
