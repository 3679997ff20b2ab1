"""The rules of the house: imports go one way, rooms and files stay small, and the picture of the rooms is current.

All imports count, also those within functions and those for type checkers only: they tell who knows whom.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import pytest
import rooms

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "elute"
EVERY = rooms.imports(SOURCE)
PACKAGES = sorted(name for name, path in rooms.modules(SOURCE).items() if path.name == "__init__.py")

MOST_FILES = 16
MOST_LINES = 300
LONGER: set[str] = set()
"""Files that may have more lines, because they are mostly data."""

BARE = ("elute.neural", "elute.clicks", "elute.kernels", "elute.ranking")
"""Rooms that run on arrays alone."""


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert rooms.circles(EVERY) == []


@pytest.mark.parametrize("package", PACKAGES)
def test_no_circle_among_what_lies_in_a_room(package: str) -> None:
    """Of `elute`: among the rooms."""
    assert rooms.circles(rooms.rooms(EVERY, package)) == []


def test_the_command_line_is_known_by_nobody() -> None:
    """But by what starts it."""
    knows = {name for name, targets in EVERY.items() if any(inside(target, "elute.cli") for target in targets)}
    assert {name for name in knows if not inside(name, "elute.cli")} <= {"elute.__main__"}


@pytest.mark.parametrize("room", BARE)
def test_rooms_of_arrays_need_no_engine_and_no_tables(room: str) -> None:
    """Nor does anything that they import."""
    for name in (name for name in EVERY if inside(name, room)):
        needed = rooms.reachable(EVERY, name)
        assert {target for target in needed if target.split(".")[0] in ("duckdb", "pyarrow")} == set(), name


def test_no_room_is_crowded() -> None:
    files = [path for path in SOURCE.rglob("*.py") if path.name != "__init__.py"]
    crowd = Counter(str(path.parent.relative_to(ROOT)) for path in files)
    assert {folder: count for folder, count in crowd.items() if count > MOST_FILES} == {}


def test_files_are_read_in_one_sitting() -> None:
    lines = {
        str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines())
        for path in (ROOT / "src").rglob("*.py")
    }
    assert lines.keys() >= LONGER
    assert {path: count for path, count in lines.items() if count > MOST_LINES and path not in LONGER} == {}


def test_the_picture_of_the_rooms_is_current() -> None:
    drawn = rooms.PICTURE.read_text(encoding="utf-8") == rooms.draw(SOURCE)
    assert drawn, (
        f"{rooms.PICTURE.relative_to(ROOT)} shows other rooms or imports than there are: run 'make architecture'"
    )


def test_every_room_is_on_the_page() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = {name.split(".")[1] for name in EVERY if "." in name} - {"__main__"}
    assert {name for name in named if f"`{name}`" not in page} == set()


def test_files_named_for_contributors_exist() -> None:
    """Names in capitals stand for one's own."""
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = set(re.findall(r"[`(]((?:src|tests|docs|research)/[\w./-]+)[`)]", page))
    assert len(named) > 40
    own = {name for name in named if re.search(r"\b(test_)?(NAME|VERB|PAPER|TABLE)\b", name)}
    assert {name for name in named - own if not (ROOT / name).exists()} == set()


def test_circles_are_found(tmp_path: Path) -> None:
    """What finds them, on a package that has some: within a function, relative, and under TYPE_CHECKING."""
    files = {
        "house/__init__.py": "",
        "house/a/__init__.py": "",
        "house/a/one.py": "def lazy():\n    from house.b.two import f\n",
        "house/b/__init__.py": "",
        "house/b/two.py": "from ..c import three\n",
        "house/c/__init__.py": "",
        "house/c/three.py": "import typing\nif typing.TYPE_CHECKING:\n    import house.a.one\n",
        "house/d.py": "from house.a import one, other\nfrom house.a.one import f\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    every = rooms.imports(tmp_path / "house")
    assert every["house.d"] == {"house.a", "house.a.one"}
    assert rooms.circles(every) == [["house.a.one", "house.b.two", "house.c.three"]]
    assert rooms.circles(rooms.rooms(every, "house")) == [["house.a", "house.b", "house.c"]]
    assert rooms.circles(rooms.rooms(every, "house.a")) == []
    assert 'class="e back"' in rooms.draw(tmp_path / "house")


def inside(name: str, room: str) -> bool:
    return name == room or name.startswith(f"{room}.")


PUBLISHED = {"DLA", "IPW", "Naive", "PBM", "RegressionEM"}
"""Models that have one name in the literature, and here one class for counts, sessions or networks each."""


def test_no_two_classes_have_one_name() -> None:
    found = Counter(
        node.name
        for root in ("src", "research")
        for path in (ROOT / root).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert {name for name, times in found.items() if times > 1} <= PUBLISHED


def test_no_two_test_files_have_one_name() -> None:
    """They are imported by their bare names: the second of two would not run."""
    found = Counter(path.name for path in (ROOT / "tests").rglob("test_*.py"))
    assert not [name for name, times in found.items() if times > 1]
