"""Help that teaches: the flow, examples that run as written, completion in a shell."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete

import elute
from elute.cli import main
from elute.cli.commands import VERBS
from elute.results.explanations import EXPLANATIONS
from shell import ROOT, beside_docs, run

FLOW = ["check", "repair", "fit", "audit", "judge", "report"]

TRAIN = "elute train clicks.parquet --features docs/data/letor.txt"

SKIPPED = {
    "elute reproduce identifiability-table1 --data data/identifiability --seeds 3": "needs real data",
    "elute reproduce identifiability-figure6 --out docs/reproductions": "needs real data",
    "elute demo --out demo": "the fixture runs it",
    "elute demo": "the fixture runs it",
    "elute fit demo/sound.parquet --bootstrap 200 --cluster query_id --out fit": "200 fits; docs/fit.md runs 50",
    "elute fit demo/sound.parquet --model dbn --session session_id --out browsed": "compiles; docs/audit.md runs ubm",
    f"{TRAIN} --learner upe --model linear --steps 50 --out upe": "compiles; tests/neural trains it",
    f"{TRAIN} --learner ipw --propensities fit --model lightgbm --out ipw": "300 trees; docs/train.md grows 50",
    "elute audit --assumptions --log demo/broken.parquet": "docs/assumptions.md runs it",
}
"""Examples that this test does not run, and why."""


def examples(command: click.Command) -> list[str]:
    """The commands under Example or Examples in a verb's help."""
    lines = [line.strip() for line in (command.epilog or "").splitlines()]
    return [line for line in lines if line.startswith("elute ")]


def printed(*words: str) -> str:
    return run(" ".join(["elute", *words]), Path.cwd()).output


def test_the_help_shows_the_flow_and_then_the_rest() -> None:
    page = printed("--help")
    assert " → ".join(["log", *FLOW]) in page
    flow, beside = page.split("The flow:")[1].split("Beside it:")
    listed = [re.findall(r"^  (\w+)  +\S", part, re.MULTILINE) for part in (flow, beside)]
    assert listed[0] == FLOW
    assert {"convert", "count", "simulate", "train", "rank", "export", "reproduce", "demo", "explain"} <= set(listed[1])
    assert {*listed[0], *listed[1]} == set(main.commands)


@pytest.mark.parametrize("verb", sorted(main.commands))
def test_every_verb_has_a_sentence_and_an_example_of_itself(verb: str) -> None:
    page = printed(verb, "--help")
    assert main.commands[verb].help
    assert any(line.startswith(f"elute {verb}") for line in examples(main.commands[verb])), page
    for line in examples(main.commands[verb]):
        assert line in page, "the epilog wraps an example"


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_the_list_says_of_a_verb_what_the_verb_says(verb: str) -> None:
    assert VERBS[verb] == main.commands[verb].get_short_help_str(200)


def test_every_verb_is_listed() -> None:
    modules = {path.stem for path in (ROOT / "src/elute/cli/verbs").rglob("*.py")} - {"__init__"}
    assert set(main.commands) == modules
    assert main.list_commands(click.Context(main)) == [*FLOW, *(verb for verb in VERBS if verb not in FLOW)]
    assert main.get_command(click.Context(main), "chekc") is None


def loaded(*words: str) -> set[str]:
    """What a process of its own has imported once it has answered."""
    lines = (
        "import sys; from elute.cli import main",
        f"main({list(words)}, prog_name='elute', standalone_mode=False)",
    )
    script = f"try:\n  {'; '.join(lines)}\nexcept Exception: pass\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


def test_help_and_wrong_usage_import_no_verb() -> None:
    for words in (["--help"], ["chekc"]):
        assert not {name for name in loaded(*words) if name.startswith("elute.cli.verbs")}, words


@pytest.mark.parametrize("words", [*([verb, "--help"] for verb in sorted(VERBS)), ["check"], ["check", "x", "--nope"]])
def test_help_of_a_verb_imports_none_of_what_the_verb_works_with(words: list[str]) -> None:
    modules = loaded(*words)
    assert {f"elute.cli.verbs.{home}{words[0]}" for home in ("", "counting.")} & modules
    assert not modules & {"numpy", "pyarrow", "duckdb", "numba", "scipy", "pandas", "jax"}


@pytest.mark.parametrize(
    "words", [["check"], ["count", "--out", "counts"], ["fit", "--out", "fit"]], ids=lambda w: w[0]
)
def test_what_is_slow_to_import_waits_until_it_is_needed(
    words: list[str], demo_logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    modules = loaded(words[0], str(demo_logs / "sound.parquet"), *words[1:])
    assert "elute.log" in modules and list(tmp_path.iterdir()) == [tmp_path / name for name in words[2:]]
    assert not modules & {"pyarrow.dataset", "scipy.stats", "scipy.interpolate", "jax", "pyspark"}


def test_it_runs_as_a_module() -> None:
    done = subprocess.run([sys.executable, "-m", "elute", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"elute, version {elute.__version__}\n"
    wrong = subprocess.run([sys.executable, "-m", "elute", "chekc"], capture_output=True, text=True, check=False)
    assert wrong.returncode == 2
    assert "Usage: elute [OPTIONS]" in wrong.stderr


def test_every_skipped_example_is_still_there() -> None:
    shown = {line for command in (main, *main.commands.values()) for line in examples(command)}
    assert set(SKIPPED) <= shown | {entry.example for entry in EXPLANATIONS.values()}


@pytest.mark.xdist_group("demo")
def test_examples_run_as_written(tmp_path: Path, demo_folder: Path, quick_compiling: None) -> None:
    """Verb by verb, then those of explanations."""
    lines = [line for command in (main, *main.commands.values()) for line in examples(command)]
    lines += [entry.example for entry in EXPLANATIONS.values()]
    folder = beside_docs(tmp_path, demo_folder)
    for line in dict.fromkeys(lines):
        if line in SKIPPED:
            continue
        done = run(line, folder)
        broken = line.startswith("elute check") and "not recoverable" in done.output
        assert done.exit_code == (3 if broken else 0), (line, done.output)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script(shell: str) -> None:
    """Run as the entry point is, since click looks at the program's name."""
    command = [sys.executable, "-c", "from elute.cli import main; main(prog_name='elute')"]
    variables = {**os.environ, "_ELUTE_COMPLETE": f"{shell}_source"}
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=True)
    assert "_ELUTE_COMPLETE" in done.stdout
    assert "elute" in done.stdout
    assert not done.stderr


def completed(*words: str, typed: str = "") -> list[tuple[str, str]]:
    found = ShellComplete(main, {}, "elute", "_ELUTE_COMPLETE").get_completions(list(words), typed)
    return [(item.type, item.value) for item in found]


def test_completion_knows_verbs_options_choices_and_codes() -> None:
    assert completed() == [("plain", verb) for verb in VERBS]
    assert completed(typed="ch") == [("plain", "check")]
    assert ("plain", "--version") in completed(typed="--v")
    assert ("plain", "--precision") in completed("check", typed="--pre")
    assert ("plain", "affine") in completed("fit", "log.parquet", "--model", typed="aff")
    assert ("plain", "opensearch") in completed("judge", "fit", "--format", typed="o")
    assert completed("explain", typed="thin") == [("plain", "thin_factors")]


@pytest.mark.parametrize(
    "words",
    [
        ("check",),
        ("check", "a.parquet"),
        ("check", "a.parquet", "--plan"),
        ("audit", "--log"),
        ("convert",),
        ("simulate", "--data"),
        ("train", "a.parquet", "--features"),
        ("rank", "ranker", "--features"),
        ("judge", "fit", "--format", "quepid", "--features"),
    ],
)
def test_completion_leaves_file_names_to_the_shell(words: tuple[str, ...]) -> None:
    assert completed(*words, typed="dem") == [("file", "dem")]


def test_completion_leaves_folders_to_the_shell() -> None:
    assert completed("judge", typed="fi") == [("dir", "fi")]
