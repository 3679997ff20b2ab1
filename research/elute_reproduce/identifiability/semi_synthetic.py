"""What the semi-synthetic reproductions share (section 5.2 of the identifiability paper): documents of a real set in
the order of a weak ranker, a random context for each, and clicks of the contextual position-based model. Relevance
belongs to feature vectors: documents with equal features are one item."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute.auditing.ranking_metrics import ndcg
from elute.auditing.recovery import click_mse, mcc
from elute.cells.counts import Counts
from elute.errors import EluteError
from elute.estimate.models.base import Estimator
from elute.io.letor import read
from elute.kernels.jit import jit
from elute.kernels.unionfind import link
from elute.log import ClickLog, read_log
from elute.ranking.data import RankingData
from elute.simulation.grades import relevance_of_grades
from elute.simulation.policies.ranking_svm import RankingSVM
from elute.simulation.users.contextual import ContextualPositionBased, draw_contexts
from elute_reproduce.identifiability.synthetic import CLICKS, items_of

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Features = NDArray[np.float32]

POSITIONS = 10
"""Documents shown for a query."""
CONTEXTS = 5_000
"""Context types of Tables 2, 4 and 6."""
FEW = 3
"""Features that tell items apart where, with all of them, hardly any feature vector occurs twice."""
YAHOO, ISTELLA = "Yahoo!", "Istella-S"
"""The paper's sets: published values stand beside measured ones only for these."""
PUBLISHED = "{}, published"
"""What the rows of a paper's set are called that is not here: nothing is measured beside them."""
_KNOWN = {
    YAHOO: re.compile(r"yahoo|(?<![a-z])set1(?!\d)", re.IGNORECASE),
    ISTELLA: re.compile("istella", re.IGNORECASE),
}
"""By the name of the folder or of the training file."""

TREES = 500
_MANY = 100_000
"""Items from which more threads than one save trees time; results do not depend on it."""
_AT = (5, 10)
METRICS = (
    "MCC",
    *(f"nDCG@{k}" for k in _AT),
    "click MSE",
    *(f"test nDCG@{k}" for k in _AT),
)


@dataclass(frozen=True, eq=False)
class RankedPages:
    """What was shown: rows of the training data, page by page, and where each stood; `lists` are the pages' offsets."""

    row: Ints
    position: Ints
    lists: Ints


@dataclass(frozen=True, eq=False)
class Dataset:
    """Graded documents. `known` is the paper's name of the set, None for any other."""

    name: str
    known: str | None
    train: RankingData
    test: RankingData
    validation: RankingData | None = None
    """Where there is a file of it."""
    pages: RankedPages | None = None
    """Of a structural twin, which has its lists as they were shown, and no test data but itself."""
    twin_of: str | None = None

    @property
    def like(self) -> str | None:
        """The paper's set whose claims it is held to: itself, or the one that it is a twin of."""
        return self.known or self.twin_of


@dataclass(frozen=True, eq=False)
class SemiSyntheticWorld:
    """Everything known about a simulated log. By impression: item, position, context, grade, propensity."""

    item: Ints
    position: Ints
    context: Ints
    grade: Ints
    propensity: Floats
    lists: Ints
    relevance: Floats
    """By item: the mean of Eq. C.1 over its impressions, should equal features bear unequal grades."""
    features: Features
    """By item: the features that tell items apart."""
    vectors: Floats
    """By context."""

    def draw_log(self, rng: np.random.Generator) -> ClickLog:
        """Clicks nearly free of noise: Binomial(10⁶, r·o) for every impression."""
        clicks = rng.binomial(CLICKS, self.relevance[self.item] * self.propensity)
        columns = {"item": self.item, "position": self.position, "context": self.context, "click": clicks}
        table = pa.table(columns | {"shown": np.full(len(clicks), CLICKS)})
        return read_log(table, item="item", bias="position,context", impressions="shown")

    @property
    def bias_features(self) -> pa.Table:
        """The context vectors by context. Beside them a merge weighs positions by 10, as in Appendix C.3."""
        named = {f"x{i}": column for i, column in enumerate(self.vectors.T)}
        return pa.table({"context": np.arange(len(self.vectors)), **named})


def load_datasets(data: Path | None) -> list[Dataset]:
    """The LETOR set in a folder (`*train*.txt`, `*test*.txt`, gzip too), or those in the folders below it."""
    if data is None:
        raise EluteError(
            "a graded set is needed: pass `data=`, a folder with LETOR's train.txt and test.txt (or set ELUTE_DATA)"
        )
    inside = sorted(folder for folder in data.iterdir() if folder.is_dir()) if data.is_dir() else []
    found = [folder for folder in (data, *inside) if _find_files(folder, "train") and _find_files(folder, "test")]
    if not found:
        raise EluteError(f"no LETOR set in or below {data}; expected train.txt and test.txt there (.gz too)")
    return [_load(folder) for folder in (found[:1] if found[0] == data else found)]


def _find_files(folder: Path, split: str) -> list[Path]:
    return sorted(file for end in (".txt", ".txt.gz") for file in folder.glob(f"*{split}*{end}"))


def _load(folder: Path) -> Dataset:
    splits = [split for split in ("train", "test", "vali") if _find_files(folder, split)]
    parts = [read(_find_files(folder, split)) for split in splits]
    width = max(part.features.shape[1] for part in parts)
    train, test, *validation = (_keep_usable(_widen(part, width)) for part in parts)
    if not (train.n_queries and test.n_queries):
        raise EluteError(f"{folder}: no query has two documents and a grade above 0; nothing to rank")
    name = folder.resolve().name
    words = " ".join((name, *(file.name for file in _find_files(folder, "train"))))
    known = next((known for known, pattern in _KNOWN.items() if pattern.search(words)), None)
    return Dataset(name, known, train, test, next((part for part in validation if part.n_queries), None))


def _widen(data: RankingData, width: int) -> RankingData:
    """With zeros for features that only the other part of the split has."""
    missing = width - data.features.shape[1]
    return data.with_features(np.pad(data.features, ((0, 0), (0, missing)))) if missing else data


def _keep_usable(data: RankingData) -> RankingData:
    """Without queries of one document or none relevant, as ULTRA prepares its data."""
    relevant = np.bincount(data.query_of, data.grades > 0, data.n_queries) > 0
    return data.keep((relevant & (np.diff(data.offsets) > 1))[data.query_of])


def rank(dataset: Dataset, seed: int) -> RankedPages:
    """What is shown of a set: a twin's own lists, else those of a weak ranker."""
    return dataset.pages or rank_weakly(dataset.train, seed)


def rank_weakly(train: RankingData, seed: int) -> RankedPages:
    """The first ten documents of every query in the order of a Ranking SVM trained on 1% of them (Appendix C.1)."""
    order = np.lexsort((-RankingSVM(seed=seed).fit(train).scores(train), train.query_of))
    length = np.diff(train.offsets)
    position = np.arange(len(order)) - np.repeat(train.offsets[:-1], length)
    top = position < POSITIONS
    lists = np.concatenate(([0], np.cumsum(np.minimum(length, POSITIONS))))
    return RankedPages(order[top], position[top], lists)


def identify_items(features: Features, columns: Ints | None = None) -> Ints:
    """Items numbered from 0: rows that agree in all `columns`. Told apart by 64-bit hashes of their values."""
    chosen = np.arange(features.shape[1]) if columns is None else columns
    bits = (features + np.float32(0)).view(np.uint32)  # -0 and 0 are one value
    return np.asarray(np.unique(_hash_rows(bits, chosen), return_inverse=True)[1], np.int64)


@jit
def _hash_rows(bits: NDArray[np.uint32], columns: Ints) -> NDArray[np.uint64]:
    """SplitMix64's scrambling, value by value."""
    out = np.zeros(bits.shape[0], dtype=np.uint64)
    for row in range(bits.shape[0]):
        z = np.uint64(0)
        for column in columns:
            z = (z ^ np.uint64(bits[row, column])) + np.uint64(0x9E3779B97F4A7C15)
            z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            z = z ^ (z >> np.uint64(31))
        out[row] = z
    return out


def draw_columns(width: int, count: int, rng: np.random.Generator) -> Ints:
    """Some features, at random."""
    return np.asarray(rng.permutation(width)[:count], np.int64)


def count_components(item: Ints, factor: Ints) -> int:
    """Components of the identifiability graph over the factors that occur: a log's, without reading one."""
    return _count_components(item, np.unique(factor, return_inverse=True)[1])


@jit
def _count_components(item: Ints, factor: Ints) -> int:
    first = np.full(item.max() + 1, -1)
    parent = np.arange(factor.max() + 1).astype(np.int32)
    left: int = parent.shape[0]
    for i in range(item.shape[0]):
        if first[item[i]] < 0:
            first[item[i]] = factor[i]
        else:
            left -= link(parent, first[item[i]], factor[i])
    return left


def is_connected_by_position(train: RankingData, pages: RankedPages) -> bool:
    """Whether the graph is connected when items are whole feature vectors and positions the only bias."""
    return count_components(identify_items(train.features[pages.row]), pages.position) == 1


def scale_contexts(pages: RankedPages) -> int:
    """As many contexts as leave about 4 impressions a factor, which is what 5,000 leave on Yahoo!."""
    return max(1, len(pages.row) // (4 * POSITIONS))


def draw(
    train: RankingData, pages: RankedPages, contexts: int, rng: np.random.Generator, columns: Ints | None = None
) -> SemiSyntheticWorld:
    """Contexts at random, and the truth of Appendix C.2. `columns`: the features that tell items apart."""
    features = train.features[pages.row]
    item = identify_items(features, columns)
    grade = train.grades[pages.row].astype(np.int64)
    relevance = relevance_of_grades(grade, int(train.grades.max()))
    drawn = draw_contexts(contexts, rng)
    context = rng.integers(contexts, size=len(item))
    rows = np.unique(item, return_index=True)[1]
    return SemiSyntheticWorld(
        item,
        pages.position,
        context,
        grade,
        ContextualPositionBased(*drawn).propensities[context, pages.position],
        pages.lists,
        np.bincount(item, relevance) / np.bincount(item),
        features[rows] if columns is None else features[rows][:, columns],
        drawn.vectors,
    )


def relevance_of(counts: Counts, model: Estimator, items: int) -> Floats:
    """By item of the world, at the scale the model itself ended at; that is what the paper measures."""
    relevance = np.full(items, np.nan)
    relevance[counts.items["item"].to_numpy()] = model.solution_.relevance
    return relevance


def score_training(world: SemiSyntheticWorld, counts: Counts, model: Estimator) -> dict[str, float]:
    """MCC over items, nDCG of the pages shown, and click MSE against the click rates drawn."""
    relevance = relevance_of(counts, model, len(world.relevance))
    found = {"MCC": mcc(world.relevance, relevance)}
    for k in _AT:
        found[f"nDCG@{k}"] = ndcg(world.grade, relevance[world.item], world.lists, k).mean
    predicted = model.relevance_values_[items_of(counts)] * model.propensity_[counts.factor]
    return found | {"click MSE": click_mse(counts.clicks / counts.impressions, predicted, counts.impressions)}


def score_held_out(features: Features, relevance: Floats, test: RankingData) -> dict[str, float]:
    """nDCG over whole test lists of boosted trees that learnt the estimated relevance of every item (Appendix C.3).

    The text gives 500 trees, rate 0.1 and 255 leaves; the least leaf is the public code's."""
    try:
        import lightgbm
    except ImportError as error:
        raise EluteError('this reproduction needs LightGBM: pip install "elute[trees]"') from error
    settings = {
        "objective": "regression",
        "learning_rate": 0.1,
        "num_leaves": 255,
        "min_data_in_leaf": 0,
        "min_sum_hessian_in_leaf": 100,
        "deterministic": True,
        "force_row_wise": True,
        "num_threads": 1 if len(features) < _MANY else 0,
        "verbosity": -1,
    }
    model = lightgbm.train(settings, lightgbm.Dataset(features, label=relevance), num_boost_round=TREES)
    scores = np.asarray(model.predict(test.features), np.float64)
    return {f"test nDCG@{k}": ndcg(test.grades, scores, test.offsets, k).mean for k in _AT}
