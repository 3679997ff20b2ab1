"""The library's messages in the command line's words."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest

from elute.cli import main
from elute.cli.commands import VERBS
from elute.cli.ending import NOT_RECOVERABLE
from elute.cli.spelling import spell
from elute.errors import EluteError, NotRecoverable
from shell import ROOT, run

COMMAND_LINE_ONLY = {"as_json", "sources"}
"""Names that no message holds: how to print is not the library's to know, and its logs are `log=`."""


@pytest.mark.parametrize(
    ("message", "spelled"),
    [
        ("name one with `session=`", "name one with --session"),
        ("say `query='q'` and `doc='d'`", "say --query q and --doc d"),
        ("`item='a,b'`", "--item a,b"),
        ("`item='my item'` or `bias=\"it's\"`", "--item 'my item' or --bias 'it'\"'\"'s'"),
        ("`item=''`", "--item ''"),
        ("`seed=3` and `tolerance=1e-06`", "--seed 3 and --tolerance 1e-06"),
        ("or pass `allow_unidentified=True`", "or pass --allow-unidentified"),
        ("`all_items=True` exports all", "--all exports all"),
        ("with `exact=False`", "with no --exact"),
        ("`fits=`, `format=`, `kind=`", "--fit, --format, --from"),
        ("write one with `elute.fit`", "write one with 'elute fit'"),
        ("`elute.merge` or `elute.swap`", "'elute repair --method merge' or 'elute repair --method swap'"),
        ("give these to `elute.read_log`", "give these to the command"),
    ],
)
def test_parameters_and_functions_become_flags_and_commands(message: str, spelled: str) -> None:
    assert spell(message) == spelled


@pytest.mark.parametrize(
    "message",
    [
        "no column 'session=' (closest: `session`)",
        "the item `q 1` = `a`",
        "item `session= x`",
        "`item=[1]`",
        "`Session=`",
        "session=",
        "elute.fit",
        "`elute.PBM` and `elute.clicks`",
        "'elute fit --out fit'",
        "a ` b",
        "`item='a`b'`",
    ],
)
def test_everything_else_is_left_alone(message: str) -> None:
    assert spell(message) == message


def flags() -> set[str]:
    """Every option that some verb has."""
    options = [option for verb in VERBS for option in main.commands[verb].params if isinstance(option, click.Option)]
    return {flag for option in options for flag in option.opts}


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_every_option_is_spelled_as_the_flag_that_it_is(verb: str) -> None:
    for option in main.commands[verb].params:
        if isinstance(option, click.Option) and option.name not in COMMAND_LINE_ONLY:
            assert spell(f"`{option.name}=`") in option.opts


def messages(path: Path) -> Iterator[str]:
    """Text of a module outside of docstrings; a dot stands for what is put into it."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docstrings = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "." for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in docstrings:
            yield node.value


LIBRARY_ONLY = {"consequence", "n_features", "offsets", "pivot", "ranks", "start", "zero_based"}
"""Parameters that no command passes on: only Python users can get them wrong."""


def test_every_parameter_in_a_message_is_spelled_as_a_flag_that_exists() -> None:
    named = {
        (found[0], path.name)
        for path in (ROOT / "src" / "elute").rglob("*.py")
        for message in messages(path)
        for found in re.finditer(r"`[a-z_]+=[^` ]*`", message)
    }
    options = [option for verb in VERBS for option in main.commands[verb].params if isinstance(option, click.Option)]
    flags = {flag for option in options for flag in option.opts}
    assert len(named) > 10
    unknown = {name for name in named if spell(name[0]).removeprefix("no ").split()[0] not in flags}
    assert {found.strip("`").partition("=")[0] for found, _ in unknown} == LIBRARY_ONLY


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Callable[[Exception], None]:
    """Make `elute explain` fail with an error."""

    def explain_fails(error: Exception) -> None:
        @click.command()
        def explain() -> None:
            raise error

        monkeypatch.setattr("elute.cli.verbs.explain.explain", explain)

    return explain_fails


def test_an_error_is_spelled_on_its_way_out(failing: Callable[[Exception], None], tmp_path: Path) -> None:
    failing(EluteError("postgres://me:secret@host: name one with `session=`"))
    done = run("elute explain", tmp_path)
    assert done.stderr == "elute: postgres://me@host: name one with --session\n"
    assert done.exit_code == 1


def test_a_log_that_is_not_recoverable_has_an_exit_code_of_its_own(
    failing: Callable[[Exception], None], tmp_path: Path
) -> None:
    failing(NotRecoverable(3))
    done = run("elute explain", tmp_path)
    assert done.exit_code == NOT_RECOVERABLE == 3
    assert "`" not in done.stderr
    for words in ("'elute repair --method merge'", "--plan", "--allow-unidentified"):
        assert words in done.stderr


def test_no_error_of_the_library_names_a_flag() -> None:
    """Python users have no flags; the command line spells parameters itself."""
    named = [
        (path.name, text.value)
        for path in (ROOT / "src" / "elute").rglob("*.py")
        if "cli" not in path.parts
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(call, ast.Raise)
        for text in ast.walk(call)
        if isinstance(text, ast.Constant)
        and isinstance(text.value, str)
        and re.search(r"(^|[\s('\"])--[a-z]", text.value)
    ]
    assert named == []
