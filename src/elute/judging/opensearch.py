"""The body of an OpenSearch Search Relevance request that imports judgments; ratings are strings there."""

from __future__ import annotations

import json
from itertools import groupby
from pathlib import Path

from elute._util.atomic import write_atomically
from elute.judging.judgments import Judgments

NAME = "Judgments from clicks (elute)"


def write(path: str | Path, judgments: Judgments) -> list[str]:
    """Write the body, a query at a time."""
    head = {"name": NAME, "description": "Relevance from clicks, freed of bias", "type": "IMPORT_JUDGMENT"}
    rows = zip(judgments.query, judgments.doc, judgments.grade.tolist(), strict=True)
    with write_atomically(Path(path)) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        file.write(json.dumps(head)[:-1] + ', "judgmentRatings": [')
        before = "\n"
        for query, judged in groupby(rows, key=lambda row: row[0]):
            ratings = [{"docId": doc, "rating": str(grade)} for _, doc, grade in judged]
            file.write(before + json.dumps({"query": query, "ratings": ratings}, ensure_ascii=False))
            before = ",\n"
        file.write("\n]}\n")
    return []
