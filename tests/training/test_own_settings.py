"""Settings of learners: one table for learners, library, command line and docs; what is not in it is refused."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import elute
from conftest import call_elute
from elute.neural.learners import LEARNERS
from elute.neural.networks import LINEAR
from elute.options.learners import SETTINGS, take_settings
from elute.training.networks import as_learner

LETOR = "docs/data/letor.txt"
ALL = [(learner, name) for learner, settings in SETTINGS.items() for name in settings]
OF_EVERY_LEARNER = {"network", "optimiser", "objective", "stages", "confounding", "given", "documents", "clicks"}
"""What learners take beside: of `elute train` itself, or of research in Python."""


pytestmark = pytest.mark.usefixtures("quick_compiling")


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("log") / "clicks.parquet"
    elute.simulate(LETOR, path, sessions=300, seed=4)
    return path


@pytest.mark.parametrize("learner", list(LEARNERS))
def test_the_table_has_every_setting_of_a_learner(learner: str) -> None:
    assert set(inspect.signature(LEARNERS[learner]).parameters) - OF_EVERY_LEARNER - {"settings"} == set(
        SETTINGS[learner]
    )


@pytest.mark.parametrize(("learner", "name"), ALL)
def test_the_page_has_its_default(learner: str, name: str) -> None:
    page = Path("docs/train.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| `") and f"`{learner}`" in line.split("|")[1]]
    default = getattr(as_learner(learner, LINEAR, 0.1), name)
    said = default if isinstance(default, str) else json.dumps(default).removesuffix(".0")
    assert any(f"`{name}={said}`" in row for row in rows), f"`{name}={said}`"


@pytest.mark.parametrize(("learner", "name"), ALL)
def test_what_it_may_not_be(learner: str, name: str) -> None:
    for value in (-1, float("nan"), "a", None, [0.5], 10**400):
        with pytest.raises(elute.EluteError, match=f"the setting '{name}' is .*; give "):
            take_settings(learner, {name: value})


@pytest.mark.parametrize(
    ("learner", "given", "says"),
    [
        ("rem", {"drop": 0.1}, "the learner 'rem' has no setting 'drop'; it takes: rate, start"),
        ("dla", {"rate": 0.1}, "the learner 'dla' has no setting 'rate'; it takes none"),
        ("rem", {"rate": 1.5}, "the setting 'rate' is 1.5; give a number from 0 to 1"),
        ("upe", {"average": "mean"}, "the setting 'average' is 'mean'; give logit, exponential or probability"),
        ("regression-em", {}, "no learner 'regression-em'; there are: elute, score-adjusted, naive, "),
    ],
)
def test_it_is_refused_before_anything_is_read(learner: str, given: dict[str, Any], says: str, tmp_path: Path) -> None:
    with pytest.raises(elute.EluteError, match=re.escape(says)):
        elute.train(tmp_path / "nowhere.parquet", LETOR, tmp_path / "out", learner=learner, learner_settings=given)
    assert not (tmp_path / "out").exists()


def test_in_python_settings_come_by_name(tmp_path: Path) -> None:
    with pytest.raises(elute.EluteError, match=r"`learner_settings=` is 'rate=1'; give values by name"):
        elute.train("log", LETOR, tmp_path, learner="rem", learner_settings="rate=1")  # type: ignore[arg-type]


def test_they_reach_the_learner_and_its_files(log: Path, tmp_path: Path) -> None:
    """A θ that starts at 0.3 and is never renewed stays there: all propensities are 1 relative to the first."""
    how = ("--learner", "rem", "--model", "linear", "--steps", 3, "--batch", 8)
    words = ("--learner-setting", "rate=0", "--learner-setting", "start=0.3")
    done = call_elute("train", log, "--features", LETOR, *how, *words, "--out", tmp_path / "still", "--json")
    assert done.code == 0, done.err
    assert {row["propensity"] for row in done.json["propensities"]} == {1.0}
    assert done.json["learner_settings"] == {"rate": 0, "start": 0.3}
    asked: dict[str, Any] = {"learner": "rem", "model": "linear", "steps": 3, "batch": 8}
    same = elute.train(log, LETOR, tmp_path / "python", **asked, learner_settings={"rate": 0, "start": 0.3})
    with np.load(tmp_path / "still" / "ranker.npz") as one, np.load(tmp_path / "python" / "ranker.npz") as two:
        assert all(np.array_equal(one[name], two[name]) for name in one.files)
    assert same.learner_settings == done.json["learner_settings"]
    moved = elute.train(log, LETOR, tmp_path / "moved", **asked)
    assert moved.learner_settings is None
    assert len({row["propensity"] for row in moved.propensities}) > 1
    with pytest.raises(elute.EluteError, match=r"made with learner_settings None, not {'rate': 0.5}; use what it was"):
        elute.train(log, LETOR, tmp_path / "moved", **asked, learner_settings={"rate": 0.5}, resume=True)


def test_the_command_line_says_what_there_is(log: Path, tmp_path: Path) -> None:
    call = ("train", log, "--features", LETOR, "--out", tmp_path / "out", "--learner", "multr", "--learner-setting")
    unknown = call_elute(*call, "drop=1")
    assert (unknown.code, unknown.err) == (
        1, "elute: the learner 'multr' has no setting 'drop'; it takes: pretraining, orders\n"
    )  # fmt: skip
    assert "'clip' is not NAME=VALUE" in call_elute(*call, "clip").err
    short = call_elute(*call, "pretraining=30", "--steps", "30")
    assert short.code == 1 and "prepares for 30 steps, and there are 30 in all; give more" in short.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("learner", ["vectorization", "upe"])
def test_others_than_numbers(log: Path, tmp_path: Path, learner: str) -> None:
    every: dict[str, dict[str, object]] = {
        "vectorization": {"dimensions": 3},
        "upe": {"average": "logit", "frozen": True, "over": "log"},
    }
    given = every[learner]
    asked: dict[str, Any] = {"learner": learner, "model": "linear", "steps": 2, "batch": 8}
    found = elute.train(log, LETOR, tmp_path / "out", **asked, learner_settings=given)
    assert json.loads((tmp_path / "out" / "train.json").read_text())["learner_settings"] == given
    if learner == "vectorization":
        with np.load(tmp_path / "out" / "ranker.npz") as saved:
            assert saved["base"].shape == (3,)
    assert elute.rank(found, LETOR).documents > 0
