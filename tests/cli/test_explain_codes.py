"""`elute explain`: every code that elute emits has an explanation, and no other has."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from elute.cli import main
from elute.io.logs.tally import Tally
from elute.results.explanations import EXPLANATIONS, explain
from elute.results.watched import ALARMS
from shell import ROOT, run

SOURCE = ROOT / "src" / "elute"


def calls(tree: ast.AST, name: str) -> Iterator[str]:
    """The first arguments, where they are text, of calls of a function."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name and node.args:
            first = node.args[0]
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield first.value


def keys(tree: ast.AST, target: str) -> Iterator[str]:
    """The keys that a variable's dictionary is made with, and those set later."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assign):
            continue
        for to in node.targets:
            if isinstance(to, ast.Name) and to.id == target and isinstance(node.value, ast.Dict):
                yield from (str(key.value) for key in node.value.keys if isinstance(key, ast.Constant))
            if isinstance(to, ast.Subscript) and isinstance(to.value, ast.Name) and to.value.id == target:
                yield from (str(key.value) for key in [to.slice] if isinstance(key, ast.Constant))


def parsed(path: str) -> list[ast.Module]:
    """The sources under a folder, or one file; of all of elute only those that could hold a warning's code."""
    at = SOURCE / path
    texts = [file.read_text(encoding="utf-8") for file in ([at] if at.is_file() else at.rglob("*.py"))]
    return [ast.parse(text) for text in texts if path or "Concern(" in text]


def names(tree: ast.AST) -> Iterator[str]:
    """What findings are called."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "NAME":
            yield ast.literal_eval(node.value).replace(" ", "_")


def emitted(verb: str) -> set[str]:
    """Codes as the sources say them."""
    if verb == "check":
        return {code for tree in parsed("") for code in calls(tree, "Concern")}
    if verb == "audit":
        return {code for tree in parsed("auditing/assumptions") for code in names(tree)}
    if verb == "judge":
        return {code for tree in parsed("judging") for code in (*calls(tree, "drop"), *keys(tree, "left"))}
    if verb == "watch":
        rules = {code for tree in parsed("watching/faults.py") for code in codes(tree)}
        return rules | {code for tree in parsed("watching/findings.py") for code in codes(tree)}
    counted = {"orphans", "repeated_clicks", "malformed"}
    assert counted <= set(Tally.__dataclass_fields__)
    return counted | {code for tree in parsed("cli/verbs/convert.py") for code in keys(tree, "left_out")}


def codes(tree: ast.AST) -> Iterator[str]:
    """Text that is the code of an alarm, wherever it stands."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and node.value in ALARMS:
            yield str(node.value)


@pytest.mark.parametrize("verb", ["check", "audit", "judge", "convert", "watch"])
def test_every_code_is_explained_and_nothing_else(verb: str) -> None:
    explained = {code for code, entry in EXPLANATIONS.items() if entry.verb.split()[0] == verb}
    assert emitted(verb) == explained
    assert len(explained) > 5


def test_every_explanation_is_of_a_verb_and_complete() -> None:
    for code, entry in EXPLANATIONS.items():
        assert entry.verb.split()[0] in main.commands, code
        for text in (entry.meaning, entry.why, entry.do):
            assert text.endswith("."), (code, text)
        assert entry.example.startswith("elute ")


def test_a_code_is_found_however_it_is_written() -> None:
    for name in ("linear in labels", "linear-in-labels", "Linear_In_Labels"):
        assert explain(name)[0] == "linear_in_labels"


def test_the_page_says_all(tmp_path: Path) -> None:
    done = run("elute explain thin_factors", tmp_path)
    assert done.exit_code == 0
    words = " ".join(done.output.split())
    entry = EXPLANATIONS["thin_factors"]
    for text in ("thin_factors", entry.meaning, entry.example):
        assert text in words


def test_the_list_names_every_code(tmp_path: Path) -> None:
    listed = run("elute explain", tmp_path).output
    for code in EXPLANATIONS:
        assert code in listed


def test_json(tmp_path: Path) -> None:
    one = json.loads(run("elute explain thin_factors --json", tmp_path).stdout)
    assert one["code"] == "thin_factors"
    assert one["meaning"] == EXPLANATIONS["thin_factors"].meaning
    assert set(json.loads(run("elute explain --json", tmp_path).stdout)) == set(EXPLANATIONS)


def test_a_typo_gets_what_is_near(tmp_path: Path) -> None:
    done = run("elute explain thin_factor", tmp_path)
    assert done.exit_code == 1
    assert done.stderr == "elute: no code 'thin_factor'; did you mean thin_factors or new_factors?\n"
    assert "'elute explain' lists all codes" in run("elute explain xyz", tmp_path).stderr


def test_a_check_names_the_way_here(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("query_id,doc_id,position,click\nq,a,1,1\nq,a,2,0\nq,b,1,0\n")
    done = run("elute check log.csv", tmp_path)
    assert "elute explain CODE" in done.output
    for warning in json.loads(run("elute check log.csv --json", tmp_path).stdout)["warnings"]:
        assert warning["code"] in EXPLANATIONS
