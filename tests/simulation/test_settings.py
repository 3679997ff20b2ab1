"""Every setting of every user and policy with hostile values: refused in one line, or taken and worked with."""

from __future__ import annotations

import inspect
from pathlib import Path

import numpy as np
import pytest

import elute
from elute.neural.learners import LEARNERS, build_learner
from elute.simulation.policies.registry import POLICIES, make_policy
from elute.simulation.policies.registry import settings_of as settings_of_policy
from elute.simulation.users.registry import USERS, build_user
from elute.simulation.users.registry import settings_of as settings_of_user

HOSTILE: tuple[object, ...] = (
    -1, 0, 1e300, 5e-324, float("nan"), float("inf"), "", "a", 10**30, 10**400, True, None, [], {}, [[1], [1, 2]],
    [float("nan")], ["a"], [0.5, "a"], {"a": 1}, b"a", 1j, np.float32(0.5), np.int64(1), np.array(0.5),
)  # fmt: skip
"""As JSON can hold them, and as Python and numpy can."""

LETOR = Path(__file__).parents[2] / "docs" / "data" / "letor.txt"


@pytest.mark.parametrize(("user", "setting"), [(user, setting) for user in USERS for setting in settings_of_user(user)])
def test_settings_of_users(user: str, setting: str, tmp_path: Path) -> None:
    for value in HOSTILE:
        try:
            build_user(user, **{setting: value})
        except elute.EluteError as refused:
            assert "\n" not in str(refused)
            continue
        if setting != "contexts":
            try:
                elute.simulate(LETOR, tmp_path / "log.parquet", user=user, user_settings={setting: value}, sessions=2)
            except elute.EluteError as refused:
                assert "\n" not in str(refused)


@pytest.mark.parametrize(
    ("policy", "setting"), [(policy, setting) for policy in POLICIES for setting in settings_of_policy(policy)]
)
def test_settings_of_policies(policy: str, setting: str) -> None:
    taken = []
    for value in HOSTILE:
        try:
            make_policy(policy, np.zeros(3) if policy == "scores" else None, **{setting: value})
            taken.append(value)
        except elute.EluteError as refused:
            assert str(refused).startswith(f"the setting '{setting}' is ")
            assert "; give a" in str(refused)
    kinds = {type(value) for value in taken}
    assert kinds <= {int, float, np.float32, np.int64}, kinds


@pytest.mark.parametrize(
    ("learner", "setting"),
    [
        (learner, setting)
        for learner, made in LEARNERS.items()
        for setting in inspect.signature(made).parameters
        if setting in ("drop", "reversal", "pretraining", "orders", "rate", "regularisation", "start", "dimensions")
    ],
)
def test_settings_of_learners(learner: str, setting: str) -> None:
    for value in (-1, float("nan"), float("inf"), "a", None, [0.5], 10**400):
        with pytest.raises(elute.EluteError, match=f"the setting '{setting}' is .*; give a"):
            build_learner(learner, **{setting: value})


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"policy_settings": {"temperature": -1}}, "'temperature' is -1; give a number from 0"),
        ({"user_settings": {"eta": "a"}}, "'eta' is 'a'; give a number from 0"),
        ({"policy": "weakest"}, "no policy 'weakest'"),
        ({"user": ["pbm"]}, "`user=` is"),
        ({"seed": -1}, "`seed=` is -1; give a whole number from 0"),
        ({"width": 10**6}, "give a whole number from 1 to 32,767"),
    ],
)
def test_settings_are_refused_before_anything_is_read(settings: dict[str, object], says: str, tmp_path: Path) -> None:
    with pytest.raises(elute.EluteError, match=says):
        elute.simulate(tmp_path / "nowhere.txt", tmp_path / "log.parquet", **settings)  # type: ignore[arg-type]
