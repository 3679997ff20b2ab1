"""`elute.convert`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from elute.io.logs.convert import Conversion
from elute.io.logs.convert import convert as convert_log
from elute.options.takes import takes
from elute.progress import Progress, silent
from elute.verbs.source import as_paths


@takes()
def convert(
    source: str | Path | Sequence[str | Path],
    format: str,
    out: str | Path,
    *,
    skip_malformed: bool = False,
    progress: Progress = silent,
) -> Conversion:
    """Write a log of another format as the Parquet that the other verbs read: a row for every result shown.

    `format`: ubi, yandex, tiangong, baidu or sessions. `skip_malformed`: leave out and count what cannot be read,
    instead of stopping.
    """
    return convert_log(as_paths(source), format, out, skip_malformed=skip_malformed, progress=progress)
