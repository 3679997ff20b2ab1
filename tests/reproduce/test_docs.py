"""Every reproduction has its page in the docs, made by the command it shows, with its pictures."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from elute_reproduce.studies import STUDIES

PAGES = Path(__file__).parents[2] / "docs" / "reproductions"


@pytest.mark.parametrize("name", STUDIES)
def test_the_page_is_there(name: str) -> None:
    text = (PAGES / f"{name}.md").read_text(encoding="utf-8")
    assert f"elute reproduce {name}\n" in text
    for picture in re.findall(r"\]\((img/[^)]+)\)", text):
        assert (PAGES / picture).stat().st_size > 1_000, picture
    assert f"({name}.md)" in (PAGES / "README.md").read_text(encoding="utf-8")
