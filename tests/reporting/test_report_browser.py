"""The page in a browser, from disk, with the network off: drawn, interactive, dark, narrow, and harmless.

Chromium as Debian packages it, driven by Playwright; skipped where either is missing.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from report_worlds import charts_of, evil_log, whole_report

import elute
from elute.reporting.page import Report

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: no browser to drive")
CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed: apt-get install chromium")

READY = "document.documentElement.dataset.ready"
PATIENCE = 60_000
"""Milliseconds, for machines that are busy with other tests; what is slow is measured by the page's own clock."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def evil(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with every section, of a log of hostile names."""
    path = tmp_path_factory.mktemp("page") / "report.html"
    with elute.read_log(evil_log(), bias=["position", "dev<i>ce.x[0]"]) as log:
        whole_report(log).save(path)
    return path


class Opened:
    """A page, and everything that went wrong while it was open."""

    def __init__(self, browser: Any, path: Path, **options: Any) -> None:
        self.problems: list[str] = []
        self.context = browser.new_context(offline=True, **options)
        self.page = self.context.new_page()
        self.page.on("console", lambda message: self.problems.append(message.text))
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("dialog", lambda dialog: self.problems.append(f"dialog {dialog.message}"))
        self.asked: list[str] = []
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("html[data-ready]", state="attached", timeout=PATIENCE)

    def __enter__(self) -> Opened:
        return self

    def __exit__(self, *_: object) -> None:
        self.context.close()

    def marks(self, chart: str) -> int:
        """Shapes with a size on the screen, inside the plot of a chart."""
        return int(
            self.page.evaluate(
                """key => [...document.querySelectorAll(`[data-chart="${key}"] svg .role-mark :is(path, line)`)]
                    .filter(e => { const b = e.getBoundingClientRect(); return b.width + b.height > 1 }).length""",
                chart,
            )
        )

    def dots(self) -> Any:
        return self.page.locator('[data-chart="graph"] .mark-symbol.role-mark path')


def test_everything_is_drawn_and_nothing_is_asked_or_run(browser: Any, evil: Path) -> None:
    with Opened(browser, evil) as opened:
        assert opened.page.evaluate(READY) == "yes"
        keys = opened.page.evaluate("[...document.querySelectorAll('.chart')].map(e => e.dataset.chart)")
        assert len(keys) >= 9
        for key in keys:
            assert opened.marks(key) >= 2, key
        layers = charts_of(evil.read_text(encoding="utf-8"))["graph"]["spec"]["layer"]
        assert opened.marks("graph") == sum(len(layer["data"]["values"]) for layer in layers[:-1])
        texts = opened.page.locator('[data-chart="moves"] svg .role-axis text').all_text_contents()
        assert sum(text.startswith("<script>") for text in texts) == 16
        assert "<script>document.title" in opened.page.locator("#moves table").inner_text()
        assert opened.page.title().startswith("elute: With a merge plan: estimable, not precisely known: the table")
        assert opened.page.locator("img, iframe, script").count() == 3
        opened.page.mouse.move(0, 0)
        for at in range(3):
            opened.dots().nth(at).hover()
            opened.page.wait_for_selector("#vg-tooltip-element.visible")
        assert opened.page.locator("#vg-tooltip-element b, #vg-tooltip-element script").count() == 0
        assert "dev<i>ce.x[0] " in opened.page.locator("#vg-tooltip-element").inner_text()
        assert opened.page.title().startswith("elute: ")
        assert opened.asked == [evil.as_uri()]
        assert opened.problems == []


def test_an_injected_script_would_not_run(browser: Any, evil: Path) -> None:
    """The second wall: even markup that got past escaping is refused by the page's own policy."""
    with Opened(browser, evil) as opened:
        opened.page.evaluate(
            "document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"document.title=1\">');"
            "const s = document.createElement('script'); s.textContent = 'document.title=1'; document.body.append(s)"
        )
        opened.page.wait_for_timeout(200)
        assert opened.page.title() != "1"
        assert any("Content Security Policy" in problem for problem in opened.problems)


def test_the_graph_answers_a_click(browser: Any, evil: Path) -> None:
    with Opened(browser, evil) as opened:
        panel = opened.page.locator(".details")
        lines = opened.page.locator('[data-chart="graph"] .mark-rule line')

        def faded() -> int:
            return sum(float(lines.nth(at).get_attribute("opacity") or 1) < 0.1 for at in range(lines.count()))

        assert panel.inner_text() == "Click on a dot." and faded() == 0
        opened.dots().nth(0).click()
        opened.page.wait_for_selector(".details dl")
        said = panel.inner_text()
        assert said.startswith("position 1, dev<i>ce.x[0] ") and "shares most items with" in said
        assert 0 < faded() < lines.count()
        opened.dots().nth(5).click()
        playwright.expect(panel).not_to_have_text(said)
        opened.page.locator('[data-chart="graph"] svg').click(position={"x": 15, "y": 90})
        playwright.expect(panel).to_have_text("Click on a dot.")
        assert faded() == 0 and opened.problems == []


COLOURS = """() => ['body', 'h1', '.mark-symbol.role-mark path', '.mark-rect path', '.role-axis text'].map(
    s => { const e = document.querySelector(s), c = getComputedStyle(e); return s == 'body' ? c.backgroundColor :
           s == 'h1' ? c.color : c.fill })"""


def test_dark_is_dark_by_preference_and_by_the_button(browser: Any, evil: Path) -> None:
    with Opened(browser, evil, color_scheme="light") as opened:
        light = opened.page.evaluate(COLOURS)
        opened.page.click("#theme")
        pressed = opened.page.evaluate(COLOURS)
        opened.page.click("#theme")
        assert opened.page.evaluate(COLOURS) == light
        opened.page.click("#theme")
        opened.page.emulate_media(media="print")
        assert opened.page.evaluate(COLOURS) == light
        assert not opened.page.locator("nav").is_visible()
    with Opened(browser, evil, color_scheme="dark") as opened:
        dark = opened.page.evaluate(COLOURS)
    assert dark == pressed
    assert all(one != other for one, other in zip(light, dark, strict=True))
    assert light[0] == "rgb(255, 255, 255)" and sum(map(int, dark[0][4:-1].split(","))) < 120


def test_a_phone_scrolls_one_way_only(browser: Any, evil: Path) -> None:
    with Opened(browser, evil, viewport={"width": 390, "height": 844}, is_mobile=True, has_touch=True) as opened:
        assert opened.page.evaluate("document.documentElement.scrollWidth") <= 390
        wide = opened.page.evaluate(
            "[...document.querySelectorAll('.chart svg, figure, section > p, h1, h2, code')]"
            ".filter(e => e.getBoundingClientRect().right > 390.5).map(e => e.outerHTML.slice(0, 80))"
        )
        assert wide == []
        assert opened.page.locator("h1").bounding_box()["y"] < 400
        opened.dots().nth(0).tap()
        opened.page.wait_for_selector(".details dl")
        assert opened.problems == []


def test_fifty_thousand_factors(browser: Any, tmp_path: Path) -> None:
    """5,000 contexts of 10 positions, each with items of its own: a small page that is soon drawn."""
    contexts, positions = 5000, 10
    rows = [(c, p, (c, p + step)) for c in range(contexts) for p in range(positions) for step in (0, 1)]
    table = pa.table(
        {
            "query_id": [c for c, _, _ in rows],
            "doc_id": [f"{c}-{d}" for _, _, (c, d) in rows],
            "position": [p + 1 for _, p, _ in rows],
            "context": [f"c{c}" for c, _, _ in rows],
            "click": [0] * len(rows),
        }
    )
    with elute.read_log(table, bias=["position", "context"]) as log:
        Report(elute.check(log)).save(tmp_path / "big.html")
        assert (tmp_path / "big.html").stat().st_size < 5_000_000
    with Opened(browser, tmp_path / "big.html") as opened:
        assert opened.marks("graph") == 41
        opened.dots().nth(40).click()
        opened.page.wait_for_selector(".details dl")
        assert "49,600 factors of the smaller components" in opened.page.locator(".details").inner_text()
        assert opened.problems == []
        cdp = opened.context.new_cdp_session(opened.page)
        cdp.send("Performance.enable")
        spent = {one["name"]: one["value"] for one in cdp.send("Performance.getMetrics")["metrics"]}
        assert 0 < spent["ProcessTime"] < 3.0
