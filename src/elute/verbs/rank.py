"""`elute.rank`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from elute._util.files import write_parquet
from elute._util.paths import refuse_harm
from elute._util.storage import exceeds_memory, open_storage
from elute.errors import EluteError
from elute.io.features import feature_bytes, is_parquet, read_features
from elute.options.takes import takes
from elute.results.base import Fields, Recorded
from elute.results.card import Card
from elute.training.folder import CHECKPOINT, NETWORK, SETTINGS, SUMMARY, TREES, load
from elute.verbs.source import as_paths
from elute.verbs.train import Trained


class Ranked(Recorded):
    """Scores of documents. Fields are attributes."""

    def __init__(self, fields: dict[str, Any], table: pa.Table | None = None) -> None:
        super().__init__(fields)
        self.table = table
        """The columns that name a document, and `score`; None where they are only on disk."""

    @classmethod
    def describe(cls, fields: Fields) -> Card:
        to = "" if fields["scores"] is None else f", written to {fields['scores']}"
        return Card("calm", "Ranked", f"{fields['documents']:,} documents scored{to}")


RANKER = (SUMMARY, SETTINGS, NETWORK, TREES, CHECKPOINT)
"""What `elute.train` leaves in its folder."""


def list_read(folder: str | Path) -> list[Path]:
    """What is read of a ranker: scores may lie beside it, and not over it."""
    return [Path(folder) / name for name in RANKER]


@takes()
def rank(
    ranker: Trained | str | Path, features: str | Path | Sequence[str | Path], out: str | Path | None = None
) -> Ranked:
    """Score documents with a ranker of `elute.train`, or its folder; a higher score ranks higher.

    `features`: Parquet, or LETOR files. Scores come with the columns that name a document, in the order of the
    features, as `table` and, where named, in the Parquet file `out`. A network needs nothing but numpy.
    """
    folder = ranker.folder if isinstance(ranker, Trained) else ranker
    if folder is None:
        raise EluteError("this is only the summary of a ranker; load it from its folder")
    files = as_paths(features)
    refuse_harm(out, [*list_read(folder), *files])
    found = load(Path(folder))
    large = is_parquet(files) and exceeds_memory(feature_bytes(files, found.key))
    if large and out is None:
        raise EluteError("these scores are too many to be held in memory: name a file with `out=`")
    with open_storage(Path(out or "scores"), large) as storage:
        table = read_features(files, found.key, found.features, storage)
        scores = found.score(table.values)
        scored = table.key.append_column("score", pa.array(scores))
        if out is not None:
            write_parquet(out, scored)
    return Ranked({"documents": len(scores), "scores": None if out is None else str(out)}, None if large else scored)
