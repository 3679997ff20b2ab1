"""Every command and every line of Python in docs/judge.md runs as written, in the order written."""

from __future__ import annotations

import re
import shlex
import warnings
from pathlib import Path

import pytest
from click.testing import CliRunner

from elute.cli import main

PAGE = Path(__file__).parents[2] / "docs" / "judge.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "docs").symlink_to(PAGE.parent)
    monkeypatch.chdir(tmp_path)
    for line in "".join(blocks("sh")).splitlines():
        done = CliRunner().invoke(main, shlex.split(line)[1:])
        assert done.exit_code == 0, (line, done.output)
    scope: dict[str, object] = {}
    trained = []
    for block in blocks("python"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)  # json.load(open(…)), for brevity
            exec(block, scope)  # noqa: S102
        trained.append(scope.pop("ranker", None))
    assert [type(ranker).__module__.split(".")[0] for ranker in trained] == [*["lightgbm"] * 2, *["xgboost"] * 2]


def test_every_reason_is_explained() -> None:
    from elute.cli.verbs.judge import _REASONS

    text = PAGE.read_text(encoding="utf-8")
    assert [reason for reason in _REASONS if f"`{reason}`" not in text and not reason.startswith("pages_")] == []


def test_links_lead_somewhere() -> None:
    text = PAGE.read_text(encoding="utf-8")
    headings = {
        re.sub(r"[^\w -]", "", h).lower().replace(" ", "-") for h in re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    }
    for target in re.findall(r"\]\(([^)]+)\)", text):
        assert target[1:] in headings if target.startswith("#") else (PAGE.parent / target).exists()
