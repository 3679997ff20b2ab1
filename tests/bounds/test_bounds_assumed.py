"""What people may assume: parsed, matched, and refused with a reason."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from elute.bounds.assumptions import Assumptions
from elute.errors import EluteError

FACTORS = pa.table(
    {
        "position": [2, 1, 3, 1, 2, 7],
        "device": ["phone", "phone", "phone", "desk", "desk", "desk"],
    }
)


def pairs(assumed: Assumptions) -> list[tuple[int, int]]:
    [found] = assumed.order(FACTORS)
    return sorted(zip(found.below.tolist(), found.above.tolist(), strict=True))


def test_neighbours_in_a_column_are_ordered_where_all_else_is_equal() -> None:
    assert pairs(Assumptions.collect("position")) == [(0, 1), (2, 0), (4, 3), (5, 4)]


def test_columns_and_inequalities_come_as_one_or_several() -> None:
    assert Assumptions.collect("a, b").monotone == ("a", "b")
    assert Assumptions.collect(None, "x=1 <= x=2; x=2 <= x=3").at_most == ("x=1 <= x=2", "x=2 <= x=3")
    assert Assumptions.collect(["a,b", "c"]).monotone == ("a", "b", "c")


def test_an_inequality_is_matched_where_the_other_columns_are_equal() -> None:
    assert pairs(Assumptions(at_most=("position=2 <= position=1",))) == [(0, 1), (4, 3)]
    assert pairs(Assumptions(at_most=("device=phone <= device=desk",))) == [(0, 4), (1, 3)]
    assert pairs(Assumptions(at_most=("position = 3 , device=phone<=device= desk,position =1",))) == [(2, 3)]


@pytest.mark.parametrize(
    ("assumed", "message"),
    [
        (Assumptions(monotone=("page",)), "'page' is no bias column; there are: position, device"),
        (Assumptions(monotone=("device",)), "not numbers"),
        (Assumptions(at_most=("position=2",)), "not an inequality of two factors"),
        (Assumptions(at_most=("position=3 <= position=2 <= position=1",)), "not an inequality"),
        (Assumptions(at_most=("position <= device",)), "not an inequality"),
        (Assumptions(at_most=("position=1,position=2 <= position=3",)), "not an inequality"),
        (Assumptions(at_most=("position=2 <= device=desk",)), "the same columns"),
        (Assumptions(at_most=("page=2 <= page=1",)), "no bias column"),
        (Assumptions(at_most=("position=two <= position=1",)), "of type int64"),
        (Assumptions(at_most=("position=9 <= position=1",)), "no factor has position 9"),
        (Assumptions(at_most=("position=3 <= position=7",)), "no two factors differ in that alone"),
        (Assumptions(at_most=("position=1 <= position=1",)), "no two factors differ"),
        (Assumptions(propensities=pa.table({"position": [1], "propensity": [1.0]})), "no column 'device'"),
        (
            Assumptions(propensities=pa.table({"position": [9], "device": ["desk"], "propensity": [1.0]})),
            "no factor of the log has a propensity above 0",
        ),
        (
            Assumptions(propensities=pa.table({"position": [1, 1], "device": ["desk"] * 2, "propensity": [1.0, 0.5]})),
            "two rows for one factor",
        ),
        (
            Assumptions(propensities=pa.table({"position": ["x"], "device": ["desk"], "propensity": [1.0]})),
            "do not match the log's",
        ),
    ],
)
def test_what_does_not_match_is_refused(assumed: Assumptions, message: str) -> None:
    with pytest.raises(EluteError, match=message):
        assumed.require(FACTORS)


def test_given_ratios_have_a_scale_for_every_component_and_the_larger_error() -> None:
    given = pa.table(
        {
            "position": [1, 2, 3, 9, 7],
            "device": ["phone", "phone", "phone", "phone", "desk"],
            "component": [4, 4, 2, 2, 2],
            "propensity": [1.0, 0.5, 0.2, 0.1, 0.0],
            "log_se": [0.0, 0.1, 0.2, 0.2, 0.1],
            "log_se_clusters": [0.0, 0.3, np.nan, 0.2, 0.1],
        }
    )
    found = Assumptions(propensities=given).match(FACTORS)
    assert found is not None
    assert found.factor.tolist() == [1, 0, 2]
    assert found.scale.tolist() == [1, 1, 0]
    assert found.log_se.tolist() == [0.0, 0.3, 0.2]
    assert np.exp(found.log_o).tolist() == pytest.approx([1.0, 0.5, 0.2])
    assert found.left_out == 2
