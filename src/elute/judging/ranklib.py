"""RankLib's and LETOR's text: `grade qid:number 1:value … # docid = document query = query`, an item a line.

Queries are numbered from 1 in the order of the file: readers want whole numbers there. The comment has the names. In it
white space, control characters, `#` and `%` are percent-encoded, so that a name stays one word on one line.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute._util.atomic import write_atomically
from elute._util.matching import id_columns, match
from elute.errors import EluteError
from elute.io.features import Features
from elute.judging.judgments import Judgments
from elute.judging.numerals import format_shortest


def write(path: str | Path, judgments: Judgments, features: Features | None = None) -> list[str]:
    """Write the file. With features, every judged document must have them."""
    rows = np.full(len(judgments.doc), -1) if features is None else _find_rows(judgments, features)
    number = 1
    with write_atomically(Path(path)) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        for at, (row, grade) in enumerate(zip(rows.tolist(), judgments.grade.tolist(), strict=True)):
            number += at > 0 and judgments.query[at] != judgments.query[at - 1]
            values = () if features is None else format_shortest(features.values[row])
            columns = "".join(f" {index}:{value}" for index, value in enumerate(values, 1))
            named = f"docid = {encode_word(judgments.doc[at])} query = {encode_word(judgments.query[at])}"
            file.write(f"{grade} qid:{number}{columns} # {named}\n")
    if features is None:
        return ["without `features=` the lines have grades and names only: nothing can be trained on them"]
    return []


def encode_word(name: str) -> str:
    """A name as one word; `urllib.parse.unquote` gives it back."""
    return "".join(
        "".join(f"%{byte:02X}" for byte in sign.encode())
        if sign in "#%" or not sign.isprintable() or sign == " "
        else sign
        for sign in name
    )


def _find_rows(judgments: Judgments, features: Features) -> NDArray[np.int64]:
    columns = features.key.column_names
    wanted = [pa.array(judgments.query, pa.string()), pa.array(judgments.doc, pa.string())][-len(columns) :]
    rows = match(wanted, id_columns(features.key, columns))
    bad = np.flatnonzero(rows < 0)
    if len(bad):
        at = int(bad[0])
        raise EluteError(
            f"{len(bad):,} of {len(rows):,} judged documents have no features in {features.label}, for instance query "
            f"{judgments.query[at]}, document {judgments.doc[at]}; add them, or leave `features=` out"
        )
    return rows
