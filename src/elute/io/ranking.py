"""Ranking data in whichever format a path holds, and scores for its documents."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from elute.errors import EluteError
from elute.io import letor, ultra
from elute.ranking.data import RankingData

_KEY, SCORE = ("query_id", "doc_id"), "score"


def read_ranking(source: str | Path | list[str]) -> RankingData:
    """LETOR/SVMlight files (a path, a glob, a folder, several), or a folder in ULTRA's format."""
    single = source[0] if isinstance(source, list) and len(source) == 1 else source
    if ultra.is_ultra(single):
        return ultra.read_ranking(single).data
    return letor.read(single)


def read_scores(path: str | Path, data: RankingData) -> NDArray[np.float64]:
    """Scores by document from a Parquet file with the columns `query_id, doc_id, score`."""
    table = _read_parquet(path)
    missing = [column for column in (*_KEY, SCORE) if table.column_names.count(column) != 1]
    if missing:
        raise EluteError(
            f"{path} lacks {', '.join(missing)}; scores need the columns query_id, doc_id, score, once each"
        )
    try:
        named = zip(*(table[column].cast(pa.string()).to_pylist() for column in _KEY), strict=True)
        scores = table[SCORE].cast(pa.float64()).to_pylist()
    except (pa.ArrowException, UnicodeError) as error:
        raise EluteError(f"{path} has ids that are not text, or scores that are not numbers ({error})") from None
    known = dict(zip(named, scores, strict=True))
    names = zip(data.queries[data.query_of].tolist(), data.documents.tolist(), strict=True)
    found = [known.get(name) for name in names]
    for row, score in enumerate(found):
        if score is None or not math.isfinite(score):
            query = data.queries[data.query_of[row]]
            raise EluteError(f"{path} has no score for query '{query}', document '{data.documents[row]}'")
    return np.array(found, np.float64)


def _read_parquet(path: str | Path) -> pa.Table:
    try:
        return pq.read_table(path, partitioning=None)
    except FileNotFoundError:
        raise EluteError(f"no file '{path}'") from None
    except (OSError, pa.ArrowException, ValueError) as error:
        raise EluteError(f"{path} is not a Parquet file: {re.sub(chr(10), ' ', str(error))[:200]}") from None
