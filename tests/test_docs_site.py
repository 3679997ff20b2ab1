"""The docs site: built without a warning, asks nothing of the network, and its commands run as written."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

import elute
from elute._util.files import write_parquet
from elute.results.explanations import EXPLANATIONS
from elute.simulation import toy
from elute.simulation.layouts import simulate_layouts, simulate_phones
from shell import ROOT, beside_docs, run

pytestmark = pytest.mark.xdist_group("site")  # built once for all
DOCS = ROOT / "docs"
PAGES = [
    "index.md",
    "tutorial.md",
    *(f"{part}/{p.name}" for part in ("how-to", "explain") for p in (DOCS / part).iterdir()),
]


class Requests(HTMLParser):
    """What a browser fetches by itself when it opens a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        fetches = tag in ("script", "img", "iframe", "source", "video")
        if fetches and given.get("src"):
            self.found.append(str(given["src"]))
        if tag == "link" and given.get("rel") not in ("canonical", "prev", "next"):
            self.found.append(str(given["href"]))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    variables = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return folder


def test_every_page_is_there_and_fetches_nothing_from_elsewhere(site: Path) -> None:
    pages = [path.relative_to(DOCS) for path in DOCS.rglob("*.md")]
    assert len(pages) > 30
    for page in pages:
        built = site / (page.parent / "index.html" if page.name == "README.md" else page.with_suffix(".html"))
        parser = Requests()
        parser.feed(built.read_text(encoding="utf-8"))
        assert any(source.endswith(".js") for source in parser.found)
        for source in parser.found:
            assert "//" not in source, (page, source)
            assert (built.parent / source.split("?")[0]).exists(), (page, source)
    for sheet in site.rglob("*.css"):
        assert not re.search(r"url\(['\"]?(https?:)?//", sheet.read_text(encoding="utf-8")), sheet


def test_the_codes_are_on_their_page(site: Path) -> None:
    page = (site / "codes.html").read_text(encoding="utf-8")
    for code in EXPLANATIONS:
        assert f"<code>{code}</code>" in page


def test_the_reference_has_every_public_name(site: Path) -> None:
    page = (site / "api.html").read_text(encoding="utf-8")
    for name in set(elute.__all__) - {"__version__"}:
        assert f'id="elute.{name}"' in page, name


def test_every_picture_is_well_formed_and_described(site: Path) -> None:
    for page in PAGES:
        for label, target in re.findall(r"!\[([^\]]*)\]\(([^)]+)\)", (DOCS / page).read_text(encoding="utf-8")):
            assert len(label) > 40, (page, target)
            picture = ElementTree.parse((DOCS / page).parent / target).getroot()  # noqa: S314 (our own files)
            assert picture.tag == "{http://www.w3.org/2000/svg}svg"
            assert not picture.findall(".//{http://www.w3.org/2000/svg}script")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With logs like those of `elute demo`, a quarter of them."""
    folder = beside_docs(tmp_path_factory.mktemp("commands"))
    for name in ("sound", "broken"):
        write_parquet(folder / "demo" / f"{name}.parquet", toy.simulate(5000, 120, broken=name == "broken", seed=7))
    write_parquet(folder / "demo" / "layouts.parquet", simulate_layouts(5000, 120, 7))
    write_parquet(folder / "demo" / "phones.parquet", simulate_phones(5000, 120, 7))
    return folder


def test_commands_run_and_print_what_pages_show(folder: Path) -> None:
    """In order, page by page. Every line of output on a page is one that the commands above it print, times apart."""
    commands = compared = 0
    for page in PAGES:
        text = (DOCS / page).read_text(encoding="utf-8")
        printed = ""
        for language, block in re.findall(r"^ *```(sh|text)\n(.*?)^ *```", text, re.DOTALL | re.MULTILINE):
            lines = [line.strip() for line in block.splitlines() if line.strip()]
            if language == "sh":
                printed = " ".join(_words(_printed(line, folder)) for line in lines if line != "elute demo")
                commands += len(lines)
                continue
            for line in lines:
                assert _words(line) in printed, (page, line, printed)
            compared += len(lines)
    assert commands > 40
    assert compared > 40


def _printed(line: str, folder: Path) -> str:
    """Only a check may end with the verdict that a log is not recoverable."""
    done = run(line, folder)
    broken = line.startswith("elute check") and "not recoverable" in done.output
    assert done.exit_code == (3 if broken else 0), (line, done.output)
    return done.output


def _words(text: str) -> str:
    """One line, without bars and times, which depend on the width of the terminal and on the machine."""
    return " ".join(re.sub(r"\(\d+\.\d\d s\)|[█├┤]", " ", text).split())
