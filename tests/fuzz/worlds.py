"""Sound files of every kind that elute reads, small enough to be copied for each input; and which verbs read them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

DATA = Path(__file__).resolve().parents[2] / "docs" / "data"


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
    "repair {world}/broken.parquet --method merge --propensity {it} --out {out}.json",
    "repair {world}/broken.parquet --method swap --relevance {it} --propensity {it} --out {out}.json",
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
        ("rank {it} --features {world}/letor.txt --out {out}.parquet",),
        ("train.json", "ranker.npz"),
        "train.json",
    ),
    "trees": FileKind(
        "trees",
        ("rank {it} --features {world}/letor.txt --out {out}.parquet",),
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
}


def _run(folder: Path, command: str) -> None:
    from fuzz.worker import call

    answer = call([word.format(world=folder) for word in command.split(" ")])
    if answer["code"] not in (0, 3) or answer["trace"]:  # 3: a plan that does not join all of it
        raise RuntimeError(f"elute {command}: {answer['err']}{answer['trace']}")


def build(folder: Path) -> None:
    """Write all of them."""
    from elute.simulation import toy

    for name, broken in (("log", False), ("broken", True)):
        pq.write_table(toy.simulate(1500, 20, broken=broken, seed=7), folder / f"{name}.parquet")
    log = pq.read_table(folder / "log.parquet")
    pa.csv.write_csv(log.slice(0, 300), folder / "log.csv")
    rows = "".join(json.dumps(row, default=str) + "\n" for row in log.slice(0, 300).to_pylist())
    (folder / "log.ndjson").write_text(rows, encoding="utf-8")
    items = log.select(["query_id", "doc_id"]).group_by(["query_id", "doc_id"]).aggregate([])
    chance = np.random.default_rng(1)
    labels = items.append_column("grade", pa.array(chance.integers(0, 5, items.num_rows)))
    labels = labels.append_column("score", pa.array(chance.random(items.num_rows)))
    pq.write_table(labels, folder / "labels.parquet")
    pa.csv.write_csv(labels, folder / "labels.csv")
    pa.csv.write_csv(items.slice(0, 20), folder / "excluded.csv")
    positions = np.arange(1, 11, dtype=np.int32)
    pq.write_table(pa.table({"position": positions, "seen": 1.0 / positions}), folder / "vectors.parquet")
    _write_ultra(folder / "ultra")
    shutil.copy(DATA / "letor.txt", folder / "letor.txt")
    for name in ("ubi_queries.ndjson", "ubi_events.ndjson"):
        shutil.copy(DATA / name, folder / name)
    train = "train {world}/letor_log.parquet --features {world}/letor.txt --learner naive"
    for command in (
        "count {world}/log.parquet --out {world}/counts",
        "count {world}/log.parquet --append --key day=1 --out {world}/parts",
        "count {world}/log.parquet --append --key day=2 --out {world}/parts",
        "count {world}/log.parquet --item doc_id --out {world}/pairs",
        "fit {world}/log.parquet --out {world}/fit",
        "fit {world}/broken.parquet --bounds --monotone position --allow-unidentified --out {world}/bounded",
        "fit {world}/log.parquet --model dbn --session session_id --out {world}/browsed",
        "repair {world}/broken.parquet --method merge --out {world}/merge.json",
        "simulate --data {world}/letor.txt --sessions 400 --policy weak --out {world}/letor_log.parquet",
        "simulate --data {world}/letor.txt --sessions 400 --policy weak --seed 3 --out {world}/letor_more.parquet",
        "repair {world}/letor_log.parquet --method swap --budget 200 --out {world}/swap.json",
        "repair {world}/letor_log.parquet --method score --score score --out {world}/score.json",
        "fit {world}/letor_log.parquet --allow-unidentified --out {world}/letor_fit",
        f"{train} --model linear --steps 2 --out {{world}}/network",
        f"{train} --model lightgbm --steps 3 --out {{world}}/trees",
        "rank {world}/network --features {world}/letor.txt --out {world}/scores.parquet",
    ):
        _run(folder, command)
    for name in ("propensities.parquet", "relevance.parquet"):
        shutil.copy(folder / "fit" / name, folder / name)
    from fuzz.worker import call

    words = f"audit --fit {folder}/fit --log {folder}/log.parquet --labels {folder}/labels.csv --assumptions --json"
    (folder / "audit.json").write_text(call(words.split(" "))["out"], encoding="utf-8")
    _write_features(folder)


def _write_features(folder: Path) -> None:
    """The LETOR data as a table."""
    from elute.io.letor import read

    data = read(folder / "letor.txt")
    columns = {"query_id": data.queries[data.query_of], "doc_id": data.documents, "grade": data.grades}
    columns |= {f"feature_{number + 1}": data.features[:, number] for number in range(data.features.shape[1])}
    pq.write_table(pa.table(columns), folder / "features.parquet")


def _write_ultra(folder: Path) -> None:
    folder.mkdir()
    lists = [(query, [(3 * query + place) % 12 for place in range(5)]) for query in range(8)]
    for name, line in (
        ("init_list", lambda query, shown: f"q{query} {' '.join(map(str, shown))}"),
        ("labels", lambda query, shown: f"q{query} {' '.join(str(document % 3) for document in shown)}"),
    ):
        (folder / f"train.{name}").write_text("".join(f"{line(*one)}\n" for one in lists), encoding="utf-8")
    rows = "".join(f"d{document} 1:{document / 10} 2:{document % 2}\n" for document in range(12))
    (folder / "train.feature").write_text(rows, encoding="utf-8")
    (folder / "settings.json").write_text('{"feature_size": 2}', encoding="utf-8")
