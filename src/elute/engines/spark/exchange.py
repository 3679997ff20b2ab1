"""Tables too large to collect, from Spark to one machine: Parquet files in a folder that both see."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.fs

from elute._util import scratch
from elute.engines.spark.errors import translate_errors
from elute.engines.spark.frame import SparkFrame, restore_unsigned
from elute.errors import EluteError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Exchange:
    """A folder of its own below `spill`, or in this machine's scratch space where Spark runs here too."""

    def __init__(self, log: SparkFrame, spill: str | Path | None) -> None:
        self._log, self._spill = log, None if spill is None else str(spill)
        self._place = ""

    def fetch(self, frame: DataFrame, name: str) -> pa.Table:
        """Written by the executors, read here."""
        return pa.concat_tables(self.stream(frame, name))

    def stream(self, frame: DataFrame, name: str) -> Iterator[pa.Table]:
        """Written by the executors, read here bit by bit; at least one table, which may be empty."""
        place, what = f"{self._make_folder()}/{name}", f"cannot hand over the cells of {self._log.label}"
        with translate_errors(what):
            frame.write.mode("overwrite").parquet(place)
            files, path = pyarrow.fs.FileSystem.from_uri(place)
            written = ds.dataset(path, format="parquet", filesystem=files)
            batches = iter(written.to_batches())
        yield restore_unsigned(written.schema.empty_table())
        while True:
            with translate_errors(what):
                batch = next(batches, None)
            if batch is None:
                return
            yield restore_unsigned(pa.Table.from_batches([batch]))

    def close(self) -> None:
        """Delete what was handed over."""
        if self._place:
            files, path = pyarrow.fs.FileSystem.from_uri(self._place)
            with suppress(FileNotFoundError):  # nothing was handed over
                files.delete_dir(path)
            self._place = ""

    def _make_folder(self) -> str:
        if self._place:
            return self._place
        if self._spill is not None and "://" in self._spill:
            self._place = f"{self._spill.rstrip('/')}/elute-{uuid4().hex}"
            return self._place
        master = self._log.frame.sparkSession.sparkContext.master or ""
        if self._spill is None and not master.startswith("local"):
            raise EluteError(
                "on a cluster, cells are handed over in a folder that all machines can see; name one with `spill=`"
            )
        folder, remove = scratch.make_folder(self._spill)
        weakref.finalize(self, remove)
        self._place = folder.resolve().as_uri()
        return self._place
