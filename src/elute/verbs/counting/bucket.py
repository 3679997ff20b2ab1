"""The counts of one log, in an object store."""

from __future__ import annotations

from pathlib import Path

from elute._util import scratch
from elute.engines.buckets.bucket import Bucket
from elute.engines.counts_folder.layout import FILES, MARK, PARTS, AboutCounts
from elute.errors import EluteError
from elute.log import ClickLog
from elute.progress import Progress


def save_in_bucket(log: ClickLog, url: str | Path, progress: Progress) -> AboutCounts:
    """Without `counts.json` there are no counts: it goes first and comes last."""
    bucket = Bucket(url)
    if bucket.read(PARTS) is not None:
        raise EluteError(f"'{bucket.label}' is a folder of parts; add to it with `append=True`, or choose another")
    others = {one.name for one in bucket.list(most=len(FILES) + 2)} - {MARK, *FILES}
    if others:
        raise EluteError(f"'{bucket.label}' already exists and is not a counts folder; choose another")
    with scratch.open_folder() as place:
        about = log.save_counts(place / "counts", progress)
        bucket.delete(MARK)
        for name in FILES:
            if (place / "counts" / name).exists():
                bucket.upload(name, place / "counts" / name)
            else:
                bucket.delete(name)
        bucket.upload(MARK, place / "counts" / MARK)
    return about
