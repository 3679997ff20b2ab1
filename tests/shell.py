"""Commands as help and docs show them, run in this process: a process for each would mostly start up."""

from __future__ import annotations

import re
import shlex
import shutil
from contextlib import chdir
from glob import glob
from pathlib import Path

from click.testing import CliRunner, Result

from elute.cli import main

ROOT = Path(__file__).parent.parent


def run(line: str, folder: Path) -> Result:
    """Run `elute …` in a folder, with the shell's globs; what it printed is in the result."""
    with chdir(folder):
        words = [word for token in _tokens(line) for word in token][1:]
        return CliRunner().invoke(main, words, prog_name="elute", catch_exceptions=False)


def _tokens(line: str) -> list[list[str]]:
    """Words of a line; those with a star outside quotes become the files they stand for."""
    found = []
    for token in re.findall(r"(?:'[^']*'|\"[^\"]*\"|\S)+", line):
        word = shlex.split(token)[0]
        bare = "*" in token and not token.startswith(("'", '"'))
        found.append(sorted(glob(word)) if bare else [word])  # noqa: PTH207 (relative to the current folder)
    return found


def beside_docs(folder: Path, demo_folder: Path | None = None) -> Path:
    """The folder, with the docs in it as in the repository, and with what the demo left."""
    if demo_folder is not None:
        shutil.copytree(demo_folder / "demo", folder / "demo")
    (folder / "docs").symlink_to(ROOT / "docs")
    return folder
