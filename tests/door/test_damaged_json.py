"""Hundreds of damaged plans, counts, fits and audits, read as verbs read them: each is refused with an `EluteError`, or
is such as can be shown."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import elute
from elute.errors import EluteError
from elute.repair.plan import load
from elute.reporting.sections.verdicts import read_audit
from elute.simulation import toy
from fuzz.damage import change_json, nest_json

INPUTS = 250


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sound")
    pq.write_table(toy.simulate(600, 12, broken=True, seed=7), folder / "log.parquet")
    log = elute.read_log(folder / "log.parquet")
    elute.merge(log).save(folder / "merge.json")
    elute.swap(log, budget=100).save(folder / "swap.json")
    elute.count(log, folder / "counts")
    elute.fit(log, allow_unidentified=True).save(folder / "fit")
    elute.audit(folder / "fit", log=log, assumptions=True).save(folder / "audit.json")
    return folder


def show_plan(path: Path) -> object:
    plan = load(path)
    return plan.card(), plan.to_dict()


def show_counts(path: Path) -> object:
    return elute.check(path.parent).to_dict()


def show_fit(path: Path) -> object:
    fit = elute.Fit.load(path.parent)
    return fit.propensities, fit.relevance, fit.name, fit.reason


CASES: dict[str, tuple[str, Callable[[Path], object]]] = {
    "merge plan": ("merge.json", show_plan),
    "swap plan": ("swap.json", show_plan),
    "counts": ("counts/counts.json", show_counts),
    "fit": ("fit/fit.json", show_fit),
    "audit": ("audit.json", read_audit),
}


@pytest.mark.parametrize("case", CASES)
def test_damaged_json(world: Path, tmp_path: Path, case: str) -> None:
    name, show = CASES[case]
    if "/" in name:
        shutil.copytree((world / name).parent, (tmp_path / name).parent)
    path, sound, refused = tmp_path / name, (world / name).read_bytes(), 0
    path.write_bytes(sound)
    show(path)
    for number in range(INPUTS if case != "counts" else INPUTS // 5):
        path.write_bytes(sound)
        (nest_json if number % 10 == 0 else change_json)(path, random.Random(number))
        try:
            show(path)
        except EluteError as error:
            refused += 1
            assert "\n" not in str(error)
    assert refused > 20  # the rest says something else, which may be so
