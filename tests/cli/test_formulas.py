"""A formula for `--bias` on the command line: pages, JSON, exit codes, messages."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

import elute
from conftest import call_elute
from elute.simulation.layouts import simulate_layouts

ADDITIVE = "position + device + layout"


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("formulas") / "layouts.parquet"
    pq.write_table(simulate_layouts(6_000, 110, 5), path)
    return path


def test_the_check_prints_effects_and_its_json_is_the_verdict(log: Path) -> None:
    page = call_elute("check", log, "--bias", ADDITIVE)
    assert page.code == 0 and f"Effects of {ADDITIVE}" in " ".join(page.out.split())
    assert f"--bias '{ADDITIVE}'" in page.out  # the next command, as a shell takes it
    said = call_elute("check", log, "--bias", ADDITIVE, "--json")
    assert said.json == {**elute.check(str(log), bias=ADDITIVE).to_dict(), **{k: said.json[k] for k in ("verdict",)}}
    assert call_elute("check", log, "--bias", "position,device,layout").code == 3


def test_explore_names_the_structure_to_take(log: Path) -> None:
    page = call_elute("check", log, "--bias", "position,device,layout", "--explore")
    assert page.code == 3 and "How the bias columns may act together" in page.out and "Proposed" in page.out
    chosen = call_elute("check", log, "--bias", "position,device,layout", "--explore", "--json").json["proposal"]
    assert f"--bias '{chosen}'" in page.out.replace("\n", " ").replace("  ", " ")


def test_the_fit_prints_and_writes_effects(log: Path, tmp_path: Path) -> None:
    page = call_elute("fit", log, "--bias", ADDITIVE, "--out", tmp_path / "fit")
    assert page.code == 0 and "What multiplies propensities" in page.out and "effects.parquet" in page.out
    assert pq.read_table(tmp_path / "fit" / "effects.parquet").num_rows == 21
    plain = call_elute("fit", log, "--bias", "position", "--out", tmp_path / "fit")
    assert plain.code == 0 and not (tmp_path / "fit" / "effects.parquet").exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("check", "--bias", "position +"), "--bias is 'position +', which is no formula"),
        (("check", "--bias", ADDITIVE, "--curve"), "--curve takes every combination"),
        (("fit", "--bias", ADDITIVE, "--model", "dla"), "only pbm fits"),
        (("fit", "--bias", "smooth(position)", "--model", "ubm", "--session", "session_id"), "reads pages"),
    ],
)
def test_what_is_refused_is_one_line_with_the_flags_of_the_command(
    log: Path, words: tuple[str, ...], says: str
) -> None:
    done = call_elute(words[0], log, *words[1:])
    line = done.err.strip().splitlines()[-1]
    assert done.code == 1 and says in line and "`" not in line
