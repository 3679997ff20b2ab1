"""TREC's qrels: `query 0 document grade`, separated by blanks, so that no id may hold one."""

from __future__ import annotations

from pathlib import Path

from elute._util.atomic import write_atomically
from elute.errors import EluteError
from elute.judging.judgments import Judgments


def write(path: str | Path, judgments: Judgments) -> list[str]:
    """Write the file, unless an id cannot be written."""
    for kind, names in (("query", judgments.query), ("document", judgments.doc)):
        bad = sorted({name for name in names if name.split() != [name]})
        if bad:
            raise EluteError(
                f"qrels are separated by blanks, and {len(bad):,} {kind} ids are empty or contain one, for instance "
                f"{bad[0]!r}; name a column of ids without blanks "
                f"(`{'query' if kind == 'query' else 'doc'}=` with `log=`), or use another format"
            )
    with write_atomically(Path(path)) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        rows = zip(judgments.query, judgments.doc, judgments.grade.tolist(), strict=True)
        file.writelines(f"{query} 0 {doc} {grade}\n" for query, doc, grade in rows)
    return []
