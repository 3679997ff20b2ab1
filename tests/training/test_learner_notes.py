"""Learners whose propensities are known to be wrong say so, wherever these are shown."""

from __future__ import annotations

import pytest

import elute
from elute.neural.learners import LEARNERS, build_learner


@pytest.mark.parametrize("name", [name for name in LEARNERS if name != "ipw-random"])
def test_only_upe_has_something_to_say(name):
    settings = {"given": (1.0, 0.5)} if name == "ipw" else {}
    note = build_learner(name, **settings).note
    assert note.startswith("UPE's propensities follow the scale") if name.startswith("upe") else note == ""


def test_the_result_carries_it(tmp_path):
    elute.simulate("docs/data/letor.txt", tmp_path / "clicks.parquet", sessions=200)
    given = (tmp_path / "clicks.parquet", "docs/data/letor.txt")
    upe = elute.train(*given, tmp_path / "upe", learner="upe", model="linear", steps=2)
    assert upe.note == build_learner("upe").note
    assert upe.note in upe._repr_html_().replace("&#x27;", "'")
    assert elute.train(*given, tmp_path / "dla", learner="dla", model="linear", steps=2).note is None
