"""Every command in the README and the docs runs as written, in the order written; so does the README's Python."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from shell import ROOT, beside_docs, run

pytestmark = pytest.mark.xdist_group("demo")  # one demo for all
PAGES = [
    "README.md",
    "docs/convert.md",
    "docs/check.md",
    "docs/repair.md",
    "docs/fit.md",
    "docs/simulate.md",
    "docs/train.md",
    "docs/audit.md",
    "docs/value.md",
    "docs/report.md",
    "docs/daily.md",
    "docs/watch.md",
    "docs/assumptions.md",
]


def blocks(language: str, page: str = "README.md") -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)


def commands(page: str) -> list[str]:
    return [line.split("#")[0].strip() for block in blocks("sh", page) for line in block.splitlines()]


ELUTE = list(dict.fromkeys(line for page in PAGES for line in commands(page) if line.startswith("elute ")))


@pytest.fixture(scope="module")
def folder(demo_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which `elute demo` has run, with the docs in it as in the repository."""
    return beside_docs(tmp_path_factory.mktemp("readme"), demo_folder)


def test_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = [line.split()[1] for line in commands("README.md") if line.startswith("make ")]
    assert targets
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_commands_run(folder: Path, quick_compiling: None) -> None:
    """In order, because later ones use what earlier ones write."""
    for line in ELUTE:
        done = run(line, folder)
        assert done.exit_code in (0, 3), (line, done.stderr)
        if done.exit_code == 3:
            assert "check" in line or "min-impressions" in line, line


def test_the_page_shown_is_the_page_printed(folder: Path) -> None:
    printed = subprocess.run(
        [sys.executable, "-c", "from elute.cli import main; main()", "check", "demo/broken.parquet"],
        cwd=folder,
        env={**os.environ, "COLUMNS": "106"},
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    shown = [line.rstrip() for line in blocks("text")[0].splitlines() if line.strip()]
    lines = [line.rstrip()[2:] for line in printed.splitlines() if line.strip()]
    assert lines[: len(shown)] == shown


def test_python_gives_what_its_comments_say(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    scope: dict[str, object] = {}
    for line in blocks("python")[0].splitlines():
        code, _, comment = line.partition("#")
        if re.match(r"[(\d']|True", comment.strip()):
            assert eval(code, scope) == eval(comment)  # noqa: S307
        else:
            exec(code, scope)  # noqa: S102


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    for target in re.findall(r"\]\((?!http)([^)]+)\)", text):
        path, _, anchor = target.partition("#")
        found = (ROOT / page).parent / path if path else ROOT / page
        assert found.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.+)$", found.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in {re.sub(r"[^\w -]", "", h).lower().replace(" ", "-") for h in headings}, target
