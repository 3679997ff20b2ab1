"""Large logs to measure on, made once and kept in `.benchmarks/`."""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from pathlib import Path

import duckdb

FOLDER = Path(".benchmarks")


def click_log(rows: int) -> Path:
    """Result pages of ten: string ids, 500 contexts × 10 positions = 5,000 factors, about 11 items for 100 rows.

    A query's candidates shift by a few places from page to page, queries and contexts follow power laws. The last
    page is like no other: its ten factors stay alone, so that connectivity is not settled before the last row.
    """
    path = FOLDER / f"pages-{rows}.parquet"
    if not path.exists():
        _write_pages(path, rows, 0, rows // 10)
    return path


def layout_log(rows: int) -> Path:
    """The same pages, each in one of 10 layouts: 10 positions × 10 layouts × 500 contexts = 50,000 factors."""
    path = FOLDER / f"layouts-{rows}.parquet"
    if not path.exists():
        _write_pages(path, rows, 0, rows // 10, layouts=10)
    return path


def split_click_log(rows: int, files: int, queries: int | None = None) -> Path:
    """The same log as a folder of files, which as many processes write. `queries`: of so many, where `click_log` has
    one for 112 rows."""
    folder = FOLDER / (f"pages-{rows}" if queries is None else f"pages-{rows}-{queries}")
    folder.mkdir(parents=True, exist_ok=True)
    ends = [rows // 10 * part // files for part in range(files + 1)]
    paths = [folder / f"{part:03}.parquet" for part in range(files)]
    pages = zip(paths, pairwise(ends), strict=True)
    jobs = [(path, rows, *page, 0, queries) for path, page in pages if not path.exists()]
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        list(pool.map(_write_pages, *zip(*jobs, strict=True))) if jobs else None
    return folder


def _write_pages(path: Path, rows: int, first: int, end: int, layouts: int = 0, queries: int | None = None) -> None:
    """Those from `first` to before `end`; with a column of layouts, if there are any."""
    FOLDER.mkdir(exist_ok=True)
    queries = queries or max(rows // 8 // 14, 1)

    def uniform(seed: str) -> str:
        return f"(hash({seed}) / 18446744073709551616.0)"

    lone = f"UNION ALL SELECT -1, {queries}, 0, 499" if end == rows // 10 else ""
    layout = f"floor({uniform('page * 16 + 4')} * {layouts})::INTEGER AS layout," if layouts else ""
    temporary = path.with_suffix(".tmp")
    duckdb.connect(config={"threads": 1}).execute(
        f"""
        COPY (
            SELECT 'q' || lpad(query::VARCHAR, 8, '0') AS query_id,
                   'd' || lpad(((query * 9 + (slot + shift) % 14) % {queries * 7})::VARCHAR, 9, '0') AS doc_id,
                   (slot + 1)::INTEGER AS position,
                   context,
                   {layout}
                   ({uniform("(page * 16 + slot) * 16 + 5")} < 0.5 / (slot + 1))::UTINYINT AS click
            FROM (
                SELECT page,
                       floor(pow({uniform("page * 16 + 1")}, 3) * {queries})::BIGINT AS query,
                       floor(pow({uniform("page * 16 + 2")}, 4) * 5)::INTEGER AS shift,
                       floor(pow({uniform("page * 16 + 3")}, 5) * 499)::INTEGER AS context
                FROM range({first}, {end - bool(lone)}) pages(page)
                {lone}
            ), range(10) slots(slot)
        ) TO '{temporary}' (FORMAT parquet)
        """
    )
    temporary.rename(path)
