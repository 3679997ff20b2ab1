"""The identifiability paper's fully simulated sets (section 5.1, Appendix C): rankings in ULTRA's format, where
an item is a document whatever the query, and relevance and propensities are known."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute.errors import EluteError
from elute.log import ClickLog, read_log
from elute.simulation.grades import PROPENSITIES, relevance_of_grades

TOP_GRADE = 5
"""Eq. C.1 with y_max = 5, though no grade is above 4: relevance lies between .10 and .535."""

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PaperSet:
    """Impressions, row by row; the first `listed` of them are the queries' lists, ten rows each."""

    doc: Ints
    position: Ints
    grade: Ints
    listed: int

    @property
    def relevance(self) -> Floats:
        """By document."""
        r = np.zeros(int(self.doc.max()) + 1)
        r[self.doc] = relevance_of_grades(self.grade, TOP_GRADE)
        return r

    @property
    def click_probability(self) -> Floats:
        """By impression."""
        return np.asarray(self.relevance[self.doc] * np.array(PROPENSITIES)[self.position])

    def show(self, pairs: list[tuple[int, int]]) -> PaperSet:
        """The set with each of these documents also shown at this position: a node intervention."""
        grade = np.zeros(len(self.relevance), np.int64)
        grade[self.doc] = self.grade
        docs, positions = np.array([doc for doc, _ in pairs]), np.array([position for _, position in pairs])
        return replace(
            self,
            doc=np.concatenate((self.doc, docs)),
            position=np.concatenate((self.position, positions)),
            grade=np.concatenate((self.grade, grade[docs])),
        )

    def draw_log(self, clicks: int, rng: np.random.Generator) -> ClickLog:
        """A log in which every row was shown `clicks` times (the paper's "number of clicks")."""
        clicked = rng.binomial(clicks, self.click_probability)
        shown = np.full(len(self.doc), clicks)
        table = pa.table({"doc": self.doc, "position": self.position, "click": clicked, "shown": shown})
        return read_log(table, item="doc", impressions="shown")


def load(data: Path | None, name: str) -> PaperSet:
    """One of `K=1`, `K=2`, `K=3`, `K=4`, `K=2_node_intervention`, below the folder of the public code's data."""
    if data is None:
        raise EluteError(
            "the paper's own sets are needed: pass `data=`, the folder published with its code (or set ELUTE_DATA)"
        )
    folder = next((f for f in (data, *data.glob("**/dataset_fully_simulation")) if (f / name).is_dir()), None)
    if folder is None:
        raise EluteError(
            f"no set '{name}' below {data}; expected dataset_fully_simulation/{name}/train/train.init_list"
        )
    shown, grades = (_read_rows(folder / name / "train" / f"train.{kind}") for kind in ("init_list", "labels"))
    doc = np.concatenate(shown)
    position = np.concatenate([np.arange(len(row)) for row in shown])
    return PaperSet(doc, position, np.concatenate(grades), len(doc))


def _read_rows(path: Path) -> list[Ints]:
    return [np.array(line.split()[1:], np.int64) for line in path.read_text(encoding="utf-8").splitlines()]
