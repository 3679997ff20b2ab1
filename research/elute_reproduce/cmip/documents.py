"""The documents of the CMIP paper's experiment (sections 5.1.2, 5.1.3): a graded set cut to lists, and LambdaMART."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from elute.errors import EluteError
from elute.io.letor import read
from elute.ranking.data import RankingData
from elute.ranking.truncate import keep_stratified
from elute.simulation.policies.lambdamart import LambdaMART
from elute_reproduce.cmip.world import LONG, SHORT, Documents, Floats

FEW = 1_000
"""With fewer training queries than this, a set's other files are used too, and LambdaMART is cross-fitted."""
FOLDS = 5


@dataclass(frozen=True, eq=False)
class GradedSet:
    """A graded set; `few`: whether it has few queries. Lists and LambdaMART are made when first asked for."""

    name: str
    data: RankingData
    few: bool

    @property
    def is_papers(self) -> bool:
        """Whether this is MSLR-WEB10K, or could be: then published values are what to expect."""
        return not self.few and self.top == 4 and bool(re.search("mslr|web10k", self.name, re.IGNORECASE))

    @property
    def top(self) -> int:
        """The highest grade."""
        return int(self.data.grades.max())

    @cached_property
    def digest(self) -> str:
        """Tells this set from any other."""
        found = hashlib.sha256()
        for part in (self.data.features, self.data.grades, self.data.offsets):
            found.update(np.ascontiguousarray(part).tobytes())
        return found.hexdigest()[:16]

    @cached_property
    def lists(self) -> dict[int, RankingData]:
        """The queries' documents cut to 10 and to 25; the only feature is the document's row in `data`."""
        rows = self.data.with_features(np.arange(self.data.n_documents, dtype=np.float32)[:, None])
        cut = {k: keep_stratified(rows, k, seed=0) for k in (SHORT, LONG)}
        for k, kept in cut.items():
            if kept.n_queries < 2:
                raise EluteError(f"{self.name}: fewer than two queries have {k} documents; the experiment needs more")
        return cut

    @cached_property
    def documents(self) -> dict[int, Documents]:
        """The same with LambdaMART's scores."""
        scores = score_by_lambdamart(self.data, FOLDS if self.few else 1)
        return {
            k: Documents(kept, scores[kept.features[:, 0].astype(np.int64)], self.top) for k, kept in self.lists.items()
        }


def load(place: Path | None) -> GradedSet:
    """The LETOR set in a folder; of several in folders below it the one named MSLR, else the first."""
    if place is None:
        raise EluteError(
            "a graded set is needed: pass `data=`, a folder with LETOR's train.txt, .gz too (or set ELUTE_DATA)"
        )
    inside = sorted(folder for folder in place.iterdir() if folder.is_dir()) if place.is_dir() else []
    found = [folder for folder in (place, *inside) if _find_files(folder, "train")]
    if not found:
        raise EluteError(f"no LETOR set in or below {place}; expected train.txt there (.gz too)")
    named = [folder for folder in found if re.search("mslr", folder.name, re.IGNORECASE)]
    folder = found[0] if found[0] == place else (named or found)[0]
    data = read(_find_files(folder, "train"))
    few = data.n_queries < FEW
    if few:
        data = read([file for part in ("train", "vali", "test") for file in _find_files(folder, part)])
    if data.grades.max() < 1:
        raise EluteError(f"{folder}: no document has a grade above 0; nothing to rank")
    return GradedSet(folder.resolve().name, data, few)


def score_by_lambdamart(graded: RankingData, folds: int) -> Floats:
    """Scores of every document. On a small set trees know their training queries by heart; so with `folds` above 1
    a query's scores come from trees that learnt from the other folds' queries."""
    if folds == 1:
        return LambdaMART().fit(graded).scores(graded)
    fold = np.random.default_rng(0).permutation(np.arange(graded.n_queries) % folds)[graded.query_of]
    scores = np.empty(graded.n_documents)
    for f in range(folds):
        scores[fold == f] = LambdaMART().fit(graded.keep(fold != f)).scores(graded.keep(fold == f))
    return scores


def _find_files(folder: Path, split: str) -> list[Path]:
    return sorted(file for end in (".txt", ".txt.gz") for file in folder.glob(f"*{split}*{end}"))
