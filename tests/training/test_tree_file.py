"""Files of trees: what LightGBM wrote passes and scores the same; what is cut or changed never reaches LightGBM."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from elute.door.fields import Damaged
from elute.training.tree_file import read_trees

lightgbm = pytest.importorskip("lightgbm")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    chance = np.random.default_rng(1)
    features = chance.normal(size=(400, 4))
    told = {"objective": "custom", "num_leaves": 12, "verbosity": -1, "deterministic": True, "force_row_wise": True}
    model = lightgbm.Booster(told, lightgbm.Dataset(features))
    for _ in range(4):
        model.update(fobj=lambda now, _: (now - features[:, 0] * features[:, 1], np.ones(400)))
    path = tmp_path_factory.mktemp("trees") / "ranker.txt"
    model.save_model(path)
    return path


def test_the_same_scores(written: Path) -> None:
    features = np.random.default_rng(2).normal(size=(50, 4))
    ours, theirs = lightgbm.Booster(model_str=read_trees(written, 4)), lightgbm.Booster(model_file=str(written))
    assert ours.num_trees() == 4
    np.testing.assert_array_equal(ours.predict(features), theirs.predict(features))


def test_cut_short_anywhere(written: Path, tmp_path: Path) -> None:
    data, path = written.read_bytes(), tmp_path / "cut.txt"
    end = data.index(b"end of trees") + len(b"end of trees")
    for size in (*range(0, end, 37), end - 1):
        path.write_bytes(data[:size])
        with pytest.raises(Damaged):
            read_trees(path, 4)
    path.write_bytes(data[:end])
    read_trees(path, 4)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("left_child=", "left_child=9 ", "left_child has"),
        ("num_leaves=12", "num_leaves=11", "values, not"),
        ("num_leaves=12", "num_leaves=-5", "values, not|cut short"),
        ("max_feature_idx=3", "max_feature_idx=9", "features of the ranker"),
        ("num_cat=0", "num_cat=1", "another kind"),
        ("is_linear=0", "is_linear=1", "another kind"),
        ("tree_sizes=", "tree_sizes=9", "tree 0"),
        ("num_class=1", "num_class=7", "several trees"),
        ("leaf_value=", "leaf_valve=", "does not belong there"),
        ("leaf_value=", "leaf_value=nan ", "not numbers|cut short"),
        ("shrinkage=", "shrinkage=1\nshrinkage=", "does not belong there|cut short"),
    ],
)
def test_what_does_not_fit_together(written: Path, tmp_path: Path, before: str, after: str, said: str) -> None:
    text, path = written.read_text(), tmp_path / "changed.txt"
    path.write_text(_with_sizes(text.replace(before, after, 1), before))
    with pytest.raises(Damaged, match=said):
        read_trees(path, 4)


def _with_sizes(text: str, changed: str) -> str:
    """The sizes of the blocks as they are now, so that only the change itself is wrong."""
    if changed == "tree_sizes=":
        return text
    head, _, rest = text.partition("tree_sizes=")
    rest = rest.partition("\n")[2]
    blocks = rest[: rest.index("end of trees")].split("Tree=")[1:]
    return f"{head}tree_sizes={' '.join(str(len(block) + 5) for block in blocks)}\n{rest}"


def test_branches_that_lead_back(written: Path, tmp_path: Path) -> None:
    """A split that is its own child would never end."""
    lines = written.read_text().split("\n")
    place = next(number for number, line in enumerate(lines) if line.startswith("left_child="))
    values = lines[place].removeprefix("left_child=").split(" ")
    inner = next(number for number, value in enumerate(values) if int(value) > 0)
    for wrong in ("0", "999", str(-999)):
        changed = [*values[:inner], wrong, *values[inner + 1 :]]
        path = tmp_path / "back.txt"
        path.write_text(
            _with_sizes("\n".join([*lines[:place], f"left_child={' '.join(changed)}", *lines[place + 1 :]]), "")
        )
        with pytest.raises(Damaged, match="branches"):
            read_trees(path, 4)


def test_more_or_fewer_features(written: Path) -> None:
    for width in (3, 5):
        with pytest.raises(Damaged, match="features of the ranker"):
            read_trees(written, width)
