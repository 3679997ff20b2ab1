"""Large logs to measure on, made once and kept in `.benchmarks/`."""

from __future__ import annotations

from pathlib import Path

import duckdb

FOLDER = Path(".benchmarks")


def click_log(rows: int) -> Path:
    """Result pages of ten: string ids, 499 contexts × 10 positions = 4,990 factors, about 11 items for 100 rows.

    A query's candidates shift by a few places from page to page, queries and contexts follow power laws.
    """
    path = FOLDER / f"clicks-{rows}.parquet"
    if path.exists():
        return path
    FOLDER.mkdir(exist_ok=True)
    queries = max(rows // 8 // 14, 1)

    def uniform(seed: str) -> str:
        return f"(hash({seed}) / 18446744073709551616.0)"

    temporary = path.with_suffix(".tmp")
    duckdb.connect().execute(
        f"""
        COPY (
            SELECT 'q' || lpad(query::VARCHAR, 8, '0') AS query_id,
                   'd' || lpad(((query * 9 + (slot + shift) % 14) % {queries * 7})::VARCHAR, 9, '0') AS doc_id,
                   (slot + 1)::INTEGER AS position,
                   context,
                   ({uniform("(page * 16 + slot) * 16 + 5")} < 0.5 / (slot + 1))::UTINYINT AS click
            FROM (
                SELECT page,
                       floor(pow({uniform("page * 16 + 1")}, 3) * {queries})::BIGINT AS query,
                       floor(pow({uniform("page * 16 + 2")}, 4) * 5)::INTEGER AS shift,
                       floor(pow({uniform("page * 16 + 3")}, 5) * 499)::INTEGER AS context
                FROM range({rows // 10}) pages(page)
            ), range(10) slots(slot)
        ) TO '{temporary}' (FORMAT parquet)
        """
    )
    temporary.rename(path)
    return path
