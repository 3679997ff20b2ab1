"""The newest period in Prometheus' text format, for its collector of text files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from elute.cells.factors import describe
from elute.results.watched import ALARMS

_RUNGS = ("apart", "linked", "loose", "known")

Sample = tuple[Mapping[str, str], float | None]


def write_metrics(fields: Mapping[str, Any]) -> str:
    """`fields`: of `elute watch --json`. What is not known has no line."""
    newest = fields["series"][-1]
    told = _list_metrics(fields, newest)
    return "".join(_write(name, says, samples, fields["folder"]) for name, says, samples in told)


def _list_metrics(fields: Mapping[str, Any], newest: Mapping[str, Any]) -> Iterator[tuple[str, str, Iterable[Sample]]]:
    raised = {alarm["code"] for alarm in fields["alarms"]}
    yield "alarms", "Alarms of the newest period.", [({}, float(len(fields["alarms"])))]
    yield "alarm", "Whether there is an alarm of this code.", [({"code": c}, float(c in raised)) for c in ALARMS]
    yield "period", "The newest period, as a label.", [({"every": fields["every"], "name": fields["newest"]}, 1.0)]
    yield "judged", "Whether the newest period had a baseline.", [({}, float(newest["judged"]))]
    for name in ("impressions", "clicks", "items", "parts"):
        yield name, f"{name.capitalize()} of the newest period.", [({}, float(newest[name]))]
    for name in ("dropped_share", "repeated_share", "known_items_share"):
        yield name, f"{name.capitalize().replace('_', ' ')} of the newest period.", [({}, newest[name])]
    figures = newest["figures"]
    ratio = figures["click_rate"]["ratio"]
    yield "click_ratio", "Clicks at fixed items over those of all periods.", [({}, ratio)]
    chances = [({"test": test}, figures[test]["p"]) for test in ("traffic", "click_rate", "doubled")]
    yield "p", "The chance of as much where nothing happens.", chances
    of_groups = [({"factor": one["group"]}, one["p"]) for one in figures["curve"]]
    yield "curve_p", "The same of each factor beside the others.", of_groups
    check = newest["check"]
    if check is None:
        return
    yield "components", "Components of the newest period.", [({}, float(check["components"]))]
    yield (
        "rung",
        "How far the newest period leads by itself.",
        [({"rung": r}, float(r == check["rung"])) for r in _RUNGS],
    )
    for name in ("rankable_share", "ordered_share", "known_share"):
        yield name, f"{name.capitalize().replace('_', ' ')} of the newest period.", [({}, check[name])]
    for name in ("propensity", "log_se"):
        word = "Propensity" if name == "propensity" else "Standard error of the logarithm of the propensity"
        known = [({"factor": describe(one["factor"])}, one[name]) for one in check["propensities"]]
        yield name if name == "propensity" else "propensity_log_se", f"{word} in the newest period.", known


def _write(name: str, says: str, samples: Iterable[Sample], folder: str) -> str:
    lines = [
        f"elute_watch_{name}{{{_spell({'folder': folder, **labels})}}} {value:.10g}\n"
        for labels, value in samples
        if value is not None
    ]
    head = f"# HELP elute_watch_{name} {says}\n# TYPE elute_watch_{name} gauge\n"
    return head + "".join(lines) if lines else ""


def _spell(labels: Mapping[str, str]) -> str:
    return ",".join(f'{name}="{_escape(value)}"' for name, value in labels.items())


def _escape(value: str) -> str:
    return str(value).replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
