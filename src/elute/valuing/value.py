"""What `elute.value` gives: which ranking would earn how much, in words, figures and a table by query."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

import pyarrow as pa

from elute._util.files import write_parquet, write_text
from elute._util.folders import write_folder
from elute._util.text import format_count, format_share
from elute.door.json_file import read_json
from elute.door.tables import open_parquet, refusing
from elute.errors import EluteError
from elute.results.base import Fields, Recorded
from elute.results.card import Bars, Card, Tone
from elute.valuing.kinds import value_kind

SUMMARY, QUERIES = "value.json", "queries.parquet"

_TONES: dict[str, Tone] = {"better": "good", "worse": "bad", "cannot tell": "warn"}


class Value(Recorded):
    """Expected clicks a page of what was shown and of other rankings, with intervals. Fields are attributes."""

    def __init__(self, fields: dict[str, Any], by_query: pa.Table | None = None) -> None:
        super().__init__(fields)
        self._by_query = by_query

    @property
    def by_query(self) -> pa.Table:
        """By query: `pages, clicks, valued`, and of each ranking the difference of clicks a page, its standard error
        and q-value."""
        if self._by_query is None:
            raise EluteError("only the summary was saved; value the rankings again, or load the folder")
        return self._by_query

    def save(self, path: str | Path) -> None:
        """Write a folder: `value.json`, and `queries.parquet` by query."""
        by_query = self.by_query
        with write_folder(path, SUMMARY, (QUERIES,)) as new:
            write_parquet(new / QUERIES, by_query)
            write_text(new / SUMMARY, self.to_json() + "\n")

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """What `save` wrote."""
        folder = Path(path)
        if not (folder / SUMMARY).exists():
            raise EluteError(f"'{path}' has no {SUMMARY}; write it with `elute.value` and save it there")
        found = cls(read_json(folder / SUMMARY, value_kind, "what `elute.value` writes", "value the rankings again"))
        if (folder / QUERIES).exists():
            with refusing(folder / QUERIES, "value the rankings again"):
                found._by_query = open_parquet(folder / QUERIES).read()
        return found

    @classmethod
    def describe(cls, fields: Fields) -> Card:
        logged, *others = fields["rankings"]
        best = max(others, key=lambda one: -1e9 if one["difference"] is None else one["difference"])
        sentence = " ".join(describe_ranking(one, fields) for one in others)
        names = [one["name"] for one in fields["rankings"]]
        numbers = [[_or_nan(one[key]) for one in fields["rankings"]] for key in ("value", "low", "high")]
        figures = [
            (format_share(fields["valued_share"]), "of the pages valued"),
            (format_count(fields["pages"]), "pages"),
            (format_number(logged["value"]), "clicks a page, as shown"),
        ]
        chart = Bars("Expected clicks a page", names, *numbers)
        notes = [f"By {fields['estimator']}, if {fields['assumption']}.", *fields["notes"]]
        return Card(_TONES[best["verdict"]], best["verdict"].capitalize(), sentence, figures, chart, notes)


def describe_ranking(row: Fields, fields: Fields) -> str:
    """One ranking in a sentence."""
    logged = fields["rankings"][0]
    where = (
        ""
        if fields["valued_share"] == 1
        else f" on the {format_share(fields['valued_share'])} of pages that can be valued"
    )
    if row["value"] is None:
        return f"{row['name']} cannot be valued: no query of the log has all that it would show on one scale."
    share = f" ({row['difference'] / logged['value']:+.1%})" if logged["value"] else ""
    ends = f"{row['difference_low']:+.4g} to {row['difference_high']:+.4g}"
    verdict = {
        "better": f"{row['name']} is better than what was shown{where}",
        "worse": f"{row['name']} is worse than what was shown{where}",
        "cannot tell": f"Whether {row['name']} is better than what was shown cannot be told{where}",
    }[row["verdict"]]
    whole = ""
    if fields["valued_share"] < 1:
        reach = f"{row['difference_worst']:+.4g} to {row['difference_best']:+.4g}"
        whole = f" Over all pages the difference is within {reach}: {row['verdict_all']}."
    return (
        f"{verdict}: {format_number(row['value'])} clicks a page against {format_number(logged['value'])}, "
        f"{row['difference']:+.4g}{share}, 95% interval {ends}.{whole}"
    )


def format_number(value: float | None) -> str:
    """Four digits, or a dash."""
    return "–" if value is None else f"{value:.4g}"


def _or_nan(value: float | None) -> float:
    return float("nan") if value is None else value
