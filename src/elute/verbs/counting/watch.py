"""`elute.watch`."""

from __future__ import annotations

from pathlib import Path

from elute._util.files import write_text
from elute._util.paths import refuse_harm, refuse_same
from elute.options.takes import takes
from elute.progress import Progress, silent
from elute.watching.prometheus import write_metrics
from elute.watching.watch import Watch, watch_folder


@takes()
def watch(
    folder: str | Path,
    out: str | Path | None = None,
    *,
    every: str | None = None,
    baseline: int = 28,
    false_alarms: float = 1.0,
    last: int | None = None,
    drop: str | None = None,
    prometheus: str | Path | None = None,
    progress: Progress = silent,
) -> Watch:
    """What changed in a folder of parts, period by period, and whether that is more than chance.

    `folder`: what `elute.count` (`append=True`) wrote. `every`: the name of the parts' keys that counts time (`day`);
    by default their first. Each of the last periods, `baseline` of them and the newest, is judged against as many
    before it. `false_alarms`: how many are to be expected at most in 365 periods in which nothing happens. `last`,
    `drop`: as for `elute.read_log`. `out`: where to write a page for people, a single HTML file; `prometheus`: where to
    write the newest period in that format.
    """
    refuse_harm(out, [folder])
    refuse_harm(prometheus, [folder], "prometheus")
    if out is not None and prometheus is not None:
        refuse_same(prometheus, {"out": out}, "prometheus")
    found = watch_folder(folder, every, baseline, false_alarms, last, drop, progress)
    if out is not None:
        found.save_page(out)
    if prometheus is not None:
        write_text(prometheus, write_metrics(found.to_dict()))
    return found
