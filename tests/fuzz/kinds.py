"""Kinds of files that elute reads, where a sound one of each is (`worlds`), and which verbs read it."""

from __future__ import annotations

from typing import NamedTuple


class FileKind(NamedTuple):
    """`source`: a file or folder of the world; `files`: what is damaged of a folder. In calls, {it} is the damaged
    copy, {out} where to write, {world} the rest. `mark`: the JSON that has seals of the files. `kept`: what
    outlives a failure where a verb writes to what it reads."""

    source: str
    calls: tuple[str, ...]
    files: tuple[str, ...] = ()
    mark: str = ""
    kept: tuple[str, ...] = ()


_COUNTS = (
    "check {it} --json",
    "check {it} --memory 600MB --json",
    "check {it} --max-position 3 --json",
    "fit {it} --allow-unidentified --out {out}",
    "fit {it} --allow-unidentified --memory 600MB --out {out}",
    "repair {it} --method merge --out {out}.json",
    "repair {it} --method swap --out {out}.json",
    "report {it} --out {out}.html",
    "audit --assumptions --log {it} --json",
)
_TABLES = ("factors.parquet", "items.parquet", "cells.parquet")
_FIT = (
    "audit --fit {it} --log {world}/log.parquet --json",
    "judge {it} --format quepid --out {out}.csv",
    "judge {it} --format trec --all --out {out}.txt",
    "report {world}/log.parquet --fit {it} --out {out}.html",
    "fit {world}/log.parquet --model ipw --propensities {it} --out {out}",
    "fit {world}/log.parquet --warm {it} --out {out}",
    "repair {world}/broken.parquet --method merge --propensity {it} --out {out}.json",
    "repair {world}/broken.parquet --method swap --relevance {it} --propensity {it} --out {out}.json",
)


def _make_conversions(form: str) -> tuple[str, ...]:
    return (
        f"convert {{it}} --from {form} --out {{out}}.parquet",
        f"convert {{it}} --from {form} --skip-malformed --out {{out}}.parquet",
    )


_LOG = ("check {it} --json", "fit {it} --allow-unidentified --out {out}", "count {it} --out {out}")

KINDS: dict[str, FileKind] = {
    "counts folder": FileKind("counts", _COUNTS, ("counts.json", *_TABLES), "counts.json"),
    "counts with pairs": FileKind(
        "pairs",
        ("check {it} --json", "check {it} --memory 600MB --json", "fit {it} --allow-unidentified --out {out}"),
        ("counts.json", "pairs.parquet", *_TABLES),
        "counts.json",
    ),
    "folder of parts": FileKind(
        "parts",
        (
            "check {it} --json",
            "check {it} --last 1 --memory 600MB --json",
            "fit {it} --allow-unidentified --out {out}",
            "watch {it} --json",
            "count {world}/log.parquet --append --key day=2 --out {it}",
        ),
        ("parts.json",),
        kept=("parts.json", "parts"),
    ),
    "fit folder": FileKind("fit", _FIT, ("fit.json", "propensities.parquet", "relevance.parquet"), "fit.json"),
    "fit with bounds": FileKind(
        "bounded",
        ("report {world}/broken.parquet --fit {it} --out {out}.html", "judge {it} --format quepid --out {out}.csv"),
        ("fit.json", "bounds.parquet"),
        "fit.json",
    ),
    "session fit": FileKind(
        "browsed",
        (
            "audit --fit {it} --log {world}/log.parquet --session session_id --json",
            "judge {it} --format quepid --out {out}.csv",
        ),
        ("fit.json", "relevance.parquet", "queries.parquet", "model.npz"),
        "fit.json",
    ),
    "merge plan": FileKind(
        "merge.json",
        (
            "check {world}/broken.parquet --plan {it} --json",
            "fit {world}/broken.parquet --plan {it} --out {out}",
            "report {world}/broken.parquet --plan {it} --out {out}.html",
        ),
    ),
    "swap plan": FileKind(
        "swap.json",
        (
            "check {world}/letor_log.parquet --plan {it} --json",
            "report {world}/letor_log.parquet --plan {it} --out {out}.html",
            "repair --continue {it} --log {world}/letor_more.parquet {world}/letor_log.parquet --out {out}.json",
            "simulate --data {world}/letor.txt --sessions 20 --swap {it} --out {out}.parquet",
        ),
    ),
    "score plan": FileKind(
        "score.json",
        (
            "check {world}/letor_log.parquet --plan {it} --json",
            "fit {world}/letor_log.parquet --plan {it} --out {out}",
            "report {world}/letor_log.parquet --plan {it} --out {out}.html",
        ),
    ),
    "audit": FileKind("audit.json", ("report {world}/log.parquet --audit {it} --out {out}.html",)),
    "network": FileKind(
        "network",
        ("rank {it} --features {world}/letor.txt --out {out}.parquet", "export {it} --out {out}.onnx"),
        ("train.json", "ranker.npz"),
        "train.json",
    ),
    "trees": FileKind(
        "trees",
        ("rank {it} --features {world}/letor.txt --out {out}.parquet", "export {it} --out {out}.onnx"),
        ("train.json", "ranker.txt"),
        "train.json",
    ),
    "checkpoint": FileKind(
        "network",
        (
            "train {world}/letor_log.parquet --features {world}/letor.txt --learner naive --model linear --steps 2 "
            "--resume --out {it}",
        ),
        ("checkpoint.npz", "settings.json"),
        kept=("train.json", "ranker.npz"),
    ),
    "propensities": FileKind(
        "propensities.parquet",
        (
            "fit {world}/log.parquet --model ipw --propensities {it} --out {out}",
            "repair {world}/broken.parquet --method merge --propensity {it} --out {out}.json",
        ),
    ),
    "relevance": FileKind(
        "relevance.parquet",
        (
            "repair {world}/broken.parquet --method swap --relevance {it} "
            "--propensity {world}/propensities.parquet --out {out}.json",
        ),
    ),
    "labels": FileKind(
        "labels.csv",
        (
            "audit --fit {world}/fit --log {world}/log.parquet --labels {it} --json",
            "audit --fit {world}/fit --log {world}/log.parquet --labels {world}/labels.csv --policy-scores {it} --json",
            "judge {world}/fit --format quepid --labels {it} --out {out}.csv",
        ),
    ),
    "labels in Parquet": FileKind(
        "labels.parquet",
        (
            "audit --fit {world}/fit --log {world}/log.parquet --labels {it} --json",
            "audit --fit {world}/fit --log {world}/log.parquet --labels {world}/labels.csv --policy-scores {it} --json",
            "judge {world}/fit --format quepid --labels {it} --out {out}.csv",
        ),
    ),
    "features": FileKind(
        "features.parquet",
        (
            "rank {world}/network --features {it} --out {out}.parquet",
            "rank {world}/trees --features {it} --out {out}.parquet",
            "judge {world}/letor_fit --format lightgbm --log {world}/letor_log.parquet --features {it} --out {out}",
        ),
    ),
    "LETOR": FileKind(
        "letor.txt",
        (
            "rank {world}/network --features {it} --out {out}.parquet",
            "simulate --data {it} --sessions 50 --out {out}.parquet",
        ),
    ),
    "scores": FileKind(
        "scores.parquet",
        ("simulate --data {world}/letor.txt --policy scores --scores {it} --sessions 50 --out {out}.parquet",),
    ),
    "bias features": FileKind(
        "vectors.parquet", ("repair {world}/broken.parquet --method merge --bias-features {it} --out {out}.json",)
    ),
    "excluded items": FileKind(
        "excluded.csv", ("repair {world}/broken.parquet --method swap --exclude-items {it} --out {out}.json",)
    ),
    "validation": FileKind(
        "features.parquet",
        (
            "train {world}/letor_log.parquet --features {world}/letor.txt --learner naive --model linear --steps 2 "
            "--validation {it} --out {out}",
        ),
    ),
    "ULTRA": FileKind(
        "ultra",
        ("check {it} --json", "simulate --data {it} --sessions 20 --out {out}.parquet"),
        ("train.init_list", "train.labels", "train.feature", "settings.json"),
    ),
    "log in Parquet": FileKind("log.parquet", _LOG),
    "log in CSV": FileKind("log.csv", _LOG),
    "log in NDJSON": FileKind("log.ndjson", _LOG),
    "UBI": FileKind("ubi_queries.ndjson", ("convert {it} {world}/ubi_events.ndjson --from ubi --out {out}.parquet",)),
    "UBI's events": FileKind(
        "ubi_events.ndjson", ("convert {world}/ubi_queries.ndjson {it} --from ubi --out {out}.parquet",)
    ),
    "Yandex's text": FileKind("yandex.txt", _make_conversions("yandex")),
    "TianGong-ST": FileKind("tiangong.xml", _make_conversions("tiangong")),
    "Baidu-ULTR": FileKind("baidu.txt", _make_conversions("baidu")),
    "pages as lists": FileKind("pages.parquet", _make_conversions("sessions")),
    "cells of a warehouse": FileKind("cells.parquet", ("count --from-cells {it} --out {out}",)),
    "ranking": FileKind(
        "ranking.parquet",
        (
            "value {world}/log.parquet --fit {world}/fit --ranking {it} --out {out}",
            "value {world}/log.parquet --fit {world}/fit --ranking {it} --missing logged --estimator dr --out {out}",
        ),
    ),
    "fit to be valued by": FileKind(
        "fit",
        ("value {world}/log.parquet --fit {it} --ranking {world}/ranking.parquet --out {out}",),
        ("fit.json", "propensities.parquet", "relevance.parquet"),
        "fit.json",
    ),
    "fit under a formula": FileKind(
        "devices_fit",
        (
            "report {world}/devices.parquet --bias position+device --fit {it} --out {out}.html",
            "judge {it} --format quepid --out {out}.csv",
            "value {world}/devices.parquet --bias position+device --fit {it} "
            "--ranking {world}/ranking.parquet --out {out}",
        ),
        ("fit.json", "propensities.parquet", "relevance.parquet", "effects.parquet"),
        "fit.json",
    ),
    "value folder": FileKind(
        "value", ("report {world}/log.parquet --value {it} --out {out}.html",), ("value.json", "queries.parquet")
    ),
}
