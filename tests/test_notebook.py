"""The notebook runs from a pandas frame to judgments and a report, and shows what it showed when it was committed."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")

DOCS = Path(__file__).parents[1] / "docs"
MOST_LINES = 25
CARDS = 8
"""Results that show themselves."""


def shown(notebook: Any) -> list[list[str]]:
    """By cell of code: its results as text."""
    return [
        ["".join(output.get("text", "") or output.data["text/plain"]) for output in cell.outputs]
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


@pytest.mark.filterwarnings("ignore")
def test_the_notebook_runs_and_shows_what_it_says(tmp_path: Path) -> None:
    notebook = nbformat.read(DOCS / "notebook.ipynb", 4)
    committed = shown(notebook)
    code = [line for cell in notebook.cells if cell.cell_type == "code" for line in cell.source.splitlines()]
    assert sum(bool(line.strip()) for line in code) <= MOST_LINES
    shutil.copytree(DOCS / "data", tmp_path / "data")
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert shown(notebook) == committed
    pages = [
        o.data["text/html"]
        for cell in notebook.cells
        for o in cell.get("outputs", [])
        if "text/html" in o.get("data", {})
    ]
    assert sum("border-left: 3px solid" in page for page in pages) == CARDS
    assert sum("<svg" in page for page in pages) >= 6
    assert (tmp_path / "report.html").stat().st_size > 100_000
    assert (tmp_path / "ratings.csv").read_text().startswith("query,docid,rating")
