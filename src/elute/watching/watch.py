"""The watch over a folder of parts: every period of late against those before it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from elute._util.text import format_count
from elute.progress import Progress, silent
from elute.results.base import Fields, Recorded
from elute.results.card import Card, Tone
from elute.watching.alarms import Alarm
from elute.watching.changes import LEAST
from elute.watching.checks import check_log
from elute.watching.faults import RowShares, measure_shares
from elute.watching.findings import Findings, judge_periods, list_untested, show_figures
from elute.watching.observed import Observed
from elute.watching.page import save_page
from elute.watching.periods import FactorGroups, Periods, choose_groups, fit_reference


class Watch(Recorded):
    """What a folder of parts says over time. Fields are attributes: `quiet` and `alarms` are of the newest period,
    `earlier_alarms` of those before, `series` has every period."""

    @classmethod
    def describe(cls, fields: Fields) -> Card:
        newest = fields["series"][-1]
        figures = [(format_count(newest["impressions"]), "impressions"), (format_count(newest["clicks"]), "clicks")]
        figures += [(str(fields["judged"]), "periods judged"), (str(len(fields["earlier_alarms"])), "earlier alarms")]
        tone: Tone = "bad" if fields["alarms"] else "good" if fields["judged"] else "calm"
        word = "Alarm" if fields["alarms"] else "Quiet" if fields["judged"] else "Too few periods"
        return Card(tone, word, fields["verdict"], figures, notes=[alarm["message"] for alarm in fields["alarms"]])

    def save_page(self, path: str | Path) -> None:
        """Write a page for people, whole or not at all."""
        save_page(self.to_dict(), path)

    def lines(self) -> list[str]:
        """The alarms of the newest period, each as one line of JSON."""
        return [json.dumps(alarm, ensure_ascii=False, allow_nan=False) for alarm in self.to_dict()["alarms"]]


def watch_folder(
    folder: str | Path,
    every: str | None,
    baseline: int,
    false_alarms: float,
    last: int | None,
    drop: str | None,
    progress: Progress = silent,
) -> Watch:
    """Read the last periods, twice the baseline and one, and judge each that has a baseline."""
    with Periods(folder, every, last, drop, 2 * baseline + 1) as held:
        progress("reading the parts", 0, 0)
        seen, names = held.observe(), [period.name for period in held.periods]
        with held.open(held.periods) as whole:
            reference = fit_reference(whole.counts(progress), progress)
        clicked, shown = (seen.tabulate(amounts).sum(0) for amounts in (seen.clicks, seen.impressions))
        groups = choose_groups(held.factors, clicked if clicked.any() else shown, seen.periods)
        shares = measure_shares(seen, held.say(), [len(period.parts) for period in held.periods])
        found, alarms = judge_periods(seen, held.factors, reference, groups, shares, names, baseline, false_alarms)
        judged = found.judged
        checks: list[dict[str, Any] | None] = [None] * len(names)
        looked_at = range(max(0, len(names) - baseline - 1), len(names))
        for number, at in enumerate(looked_at):
            progress("checking each period", number, len(looked_at))
            with held.open([held.periods[at]]) as log:
                checks[at] = check_log(log)
        window = _check_window(held, baseline, progress) if judged else None
        label, by = held.label, held.every
    series = _list_series(seen, names, found, groups, shares, alarms, checks)
    newest = [alarm.to_dict(label, by) for alarm in alarms[-1]]
    fields = {
        "verdict": _write_verdict(names, judged, alarms, baseline),
        "quiet": not newest,
        "folder": label,
        "every": by,
        "baseline": baseline,
        "false_alarms": false_alarms,
        "level": found.level,
        "periods": len(names),
        "judged": len(judged),
        "newest": names[-1],
        "alarms": newest,
        "earlier_alarms": [alarm.to_dict(label, by) for some in alarms[:-1] for alarm in some],
        "untested": list_untested(found, len(judged) - 1) if judged else [],
        "groups": [{"group": name, "factor": values} for name, values in zip(groups.names, groups.values, strict=True)],
        "window": window,
        "series": series,
    }
    return Watch(fields)


def _check_window(held: Periods, baseline: int, progress: Progress) -> dict[str, Any]:
    """Of the newest period: what those before it tell as one log."""
    progress("checking the window", 0, 0)
    before = held.periods[:-1][-baseline:]
    with held.open(before) as log:
        return {"first": before[0].name, "last": before[-1].name, "periods": len(before), **check_log(log)}


def _list_series(
    seen: Observed,
    names: list[str],
    found: Findings,
    groups: FactorGroups,
    shares: RowShares,
    alarms: list[list[Alarm]],
    checks: list[dict[str, Any] | None],
) -> list[dict[str, Any]]:
    clicks, shown = (seen.tabulate(amounts).sum(1) for amounts in (seen.clicks, seen.impressions))
    items = [len(np.unique(seen.item[begin:end])) for begin, end in zip(seen.starts, seen.starts[1:], strict=False)]
    return [
        {
            "period": name,
            "impressions": int(shown[at]),
            "clicks": int(clicks[at]),
            "items": items[at],
            "parts": int(shares.parts[at]),
            "dropped_share": float(shares.dropped[at]),
            "repeated_share": float(shares.repeated[at]),
            "known_items_share": float(shares.known[at]),
            "thinnest_link": _find_thinnest(found, groups, at),
            "judged": at in found.judged,
            "alarms": [alarm.code for alarm in alarms[at]],
            "figures": show_figures(found, at),
            "check": checks[at],
        }
        for at, name in enumerate(names)
    ]


def _find_thinnest(found: Findings, groups: FactorGroups, at: int) -> dict[str, Any] | None:
    """The group that fewest items tie to the others within the period."""
    if len(groups.names) < 2:
        return None
    moved = found.figures.moved[at]
    group = int(moved.argmin())
    return {"group": groups.names[group], "items": int(moved[group])}


def _write_verdict(names: list[str], judged: list[int], alarms: list[list[Alarm]], baseline: int) -> str:
    if not judged:
        return f"{len(names)} periods are too few: a baseline takes {LEAST}, and the one that is judged comes after it."
    before = min(len(names) - 1, baseline)
    if not alarms[-1]:
        return f"Quiet: {names[-1]} is as the {before} periods before it let expect."
    said = "; ".join(alarm.message for alarm in alarms[-1])
    return f"{'Alarm' if len(alarms[-1]) == 1 else f'{len(alarms[-1])} alarms'} for {names[-1]}: {said}."
