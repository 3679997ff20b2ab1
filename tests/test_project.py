"""What the project says of itself in several files is the same in each."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from conftest import SLOW

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
TOOLS = {"elute", "hypothesis", "ipykernel", "mypy", "nbclient", "networkx", "playwright", "pytest"}
TOOLS |= {"pytest-xdist", "ruff"}
"""Only tests and lint use them: any version will do."""


def numbers(version: str) -> tuple[int, ...]:
    """2.0 is 2.0.0."""
    return (*map(int, version.split(".")), 0, 0)[:3]


def test_the_lowest_versions_are_those_that_are_allowed() -> None:
    """Where the library and its tests need different ones, the higher."""
    extras = PROJECT["optional-dependencies"]
    needed: dict[str, tuple[int, ...]] = {}
    for line in [*PROJECT["dependencies"], *(line for name in extras if name != "docs" for line in extras[name])]:
        name, _, version = line.partition(">=")
        if name.split("[")[0] not in TOOLS:
            needed[name] = max(numbers(version), needed.get(name, (0,)))
    text = (ROOT / "constraints-lowest.txt").read_text(encoding="utf-8")
    assert {name: numbers(version) for name, version in re.findall(r"^([\w-]+)==(.+)$", text, re.MULTILINE)} == needed


def test_the_version_is_the_same_everywhere() -> None:
    cited = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    latest = re.search(r"^## (.+)$", (ROOT / "docs" / "releases.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert cited is not None
    assert latest is not None
    assert cited[1] == latest[1] == PROJECT["version"]


def test_what_is_called_slow_is_there() -> None:
    """Otherwise a test that was renamed would creep back into `make test-fast`."""
    for line in SLOW:
        module, _, name = line.partition("::")
        text = (ROOT / module).read_text(encoding="utf-8")
        assert not name or f"def {name}(" in text, line
