"""Where the time of the tests goes: `pytest --durations=0 -vv > LOG`, then `python tests/seconds.py LOG`.

Prints the table of CONTRIBUTING.md with its seconds filled in; `--write` puts it there. Seconds are those of all
processes together. `--fast SECONDS` instead lists what to mark as slow, longest first, until the rest takes no longer
than that.
"""

from __future__ import annotations

import argparse
import re
from collections import defaultdict
from pathlib import Path

PAGE = Path(__file__).resolve().parents[1] / "CONTRIBUTING.md"
HEAD = "| tests | what they test | seconds |\n|---|---|---:|\n"
LINE = re.compile(r"^\s*([\d.]+)s (call|setup|teardown)\s+(tests/\S+?\.py)::([^\[\s@]+)", re.MULTILINE)


def durations(log: str) -> dict[str, float]:
    """Seconds by test function, with all of its cases, and what was set up and torn down for it."""
    found: defaultdict[str, float] = defaultdict(float)
    for seconds, _, file, function in LINE.findall(log):
        found[f"{file}::{function}"] += float(seconds)
    return found


def folder(test: str) -> str:
    """The row that a test belongs to: its folder in tests/, or tests/ itself."""
    parts = test.split("::")[0].split("/")
    return parts[1] if len(parts) > 2 else "tests/*.py"


def table(page: str, spent: dict[str, float]) -> str:
    """The table of the page, with seconds; a folder that it does not have yet comes last."""
    rows = dict(re.findall(r"^\| `([^`]+)` \| (.*?) \| [\d ]*\|$", page, re.MULTILINE))
    by_folder: defaultdict[str, float] = defaultdict(float)
    for test, seconds in spent.items():
        by_folder[folder(test)] += seconds
    names = [*rows, *sorted(by_folder.keys() - rows.keys())]
    lines = [f"| `{name}` | {rows.get(name, '')} | {by_folder[name]:.0f} |\n" for name in names]
    return f"{HEAD}{''.join(lines)}| all | | {sum(spent.values()):.0f} |\n"


def to_mark(spent: dict[str, float], left: float) -> list[tuple[str, float]]:
    """The longest tests, as many as it takes to bring the rest down to `left` seconds."""
    rest, chosen = sum(spent.values()), []
    for test, seconds in sorted(spent.items(), key=lambda pair: pair[1], reverse=True):
        if rest <= left:
            break
        rest -= seconds
        chosen.append((test, seconds))
    return chosen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("log", type=Path)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--fast", type=float, metavar="SECONDS")
    given = parser.parse_args()
    spent, page = durations(given.log.read_text(encoding="utf-8")), PAGE.read_text(encoding="utf-8")
    if given.fast is not None:
        for test, seconds in to_mark(spent, given.fast):
            print(f"{seconds:8.1f}  {test}")
        return
    made = table(page, spent)
    if given.write:
        begin = page.index(HEAD)
        end = page.index("\n\n", begin) + 1
        PAGE.write_text(page[:begin] + made + page[end:], encoding="utf-8")
    print(made, end="")


if __name__ == "__main__":
    main()
