"""The page on a watch: whole, harmless, and drawn in a browser where there is one."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from watch_worlds import add_day, log_of, make_folder

import elute

CHROMIUM = shutil.which("chromium")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a folder with an earlier alarm and a new one, under a name that would break a page."""
    place = tmp_path_factory.mktemp("page")
    folder = make_folder(place / "<b>daily", 9)
    add_day(folder, 9, log_of(9, lost=2))
    add_day(folder, 10, log_of(10, layout=True))
    elute.watch(folder, place / "watch.html")
    return place / "watch.html"


def charts_of(page: Path) -> dict[str, Any]:
    found = re.search(r'<script id="charts" type="application/json">(.*?)</script>', page.read_text("utf-8"), re.DOTALL)
    assert found is not None
    charts: dict[str, Any] = json.loads(found[1])
    return charts


def test_the_page_says_what_changed_and_what_to_do(page: Path) -> None:
    text = page.read_text("utf-8")
    assert "<b>daily" not in text
    assert "&lt;b&gt;daily" in text
    assert "default-src &#x27;none&#x27;" in text
    for said in ("position 101", "not one click", "Earlier alarms", "elute watch", "Has anything changed in this log?"):
        assert said in text, said
    charts = charts_of(page)
    assert {"traffic", "level", "curve", "links", "health"} <= set(charts)
    rows = charts["traffic"]["spec"]["data"]["values"]
    assert len(rows) == 11
    assert [row["t"] for row in rows] == sorted(row["t"] for row in rows)
    red = [row for row in charts["curve"]["spec"]["data"]["values"] if row["alarm"]]
    assert {(row["t"], row["group"]) for row in red} == {("2026-10-10", "position 2")}


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed: no browser to draw in")
def test_the_page_in_a_browser(page: Path) -> None:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: no browser to drive")
    problems: list[str] = []
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        opened = browser.new_context(offline=True).new_page()
        opened.on("console", lambda message: problems.append(message.text))
        opened.on("pageerror", lambda error: problems.append(str(error)))
        opened.goto(page.as_uri())
        opened.wait_for_selector("html[data-ready]", state="attached", timeout=60_000)
        ready = opened.evaluate("document.documentElement.dataset.ready")
        drawn = opened.evaluate(
            "[...document.querySelectorAll('.chart')].map(e => e.querySelectorAll('svg path').length)"
        )
        browser.close()
    assert ready == "yes"
    assert not problems
    assert all(many > 5 for many in drawn)
