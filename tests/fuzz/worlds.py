"""Sound files of every kind that elute reads, small enough to be copied for each input."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

DATA = Path(__file__).resolve().parents[2] / "docs" / "data"


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
    _write_pages(folder)
    pq.write_table(items.append_column("score", pa.array(chance.random(items.num_rows))), folder / "ranking.parquet")
    device = pa.array(["phone" if odd else "desk" for odd in chance.integers(2, size=log.num_rows)])
    pq.write_table(log.append_column("device", device), folder / "devices.parquet")
    shutil.copy(DATA / "letor.txt", folder / "letor.txt")
    for name in ("ubi_queries.ndjson", "ubi_events.ndjson", "cells.parquet"):
        shutil.copy(DATA / name, folder / name)
    train = "train {world}/letor_log.parquet --features {world}/letor.txt --learner naive"
    for command in (
        "count {world}/log.parquet --out {world}/counts",
        "count {world}/log.parquet --append --key day=1 --out {world}/parts",
        "count {world}/log.parquet --append --key day=2 --out {world}/parts",
        "count {world}/log.parquet --item doc_id --out {world}/pairs",
        "fit {world}/log.parquet --out {world}/fit",
        "fit {world}/devices.parquet --bias position+device --out {world}/devices_fit",
        "value {world}/log.parquet --fit {world}/fit --ranking {world}/ranking.parquet --out {world}/value",
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


def _write_pages(folder: Path) -> None:
    """Three pages in the formats that `elute convert` reads: of four results, of which the second was clicked."""
    shown, clicks = [[f"u{3 * page + place}" for place in range(4)] for page in range(3)], [0, 1, 0, 0]
    text = "".join(
        f"{page}\t0\tQ\tq{page}\t0\t" + "\t".join(urls) + f"\n{page}\t9\tC\t{urls[1]}\n"
        for page, urls in enumerate(shown)
    )
    (folder / "yandex.txt").write_text(text, encoding="utf-8")
    rest = "\t".join(["0"] * 26)
    text = "".join(
        f"q{page}\t11\x0112\t0\n"
        + "".join(f"{place + 1}\t{url}\t11\t13\t3\t{clicks[place]}\t{rest}\n" for place, url in enumerate(urls))
        for page, urls in enumerate(shown)
    )
    (folder / "baidu.txt").write_text(text, encoding="utf-8")
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', "<sessions>"]
    for page, urls in enumerate(shown):
        lines += [
            f'<session num="{page}">',
            '<interaction num="1">',
            "<query>a</query>",
            f"<query_id>{page}</query_id>",
        ]
        lines.append("<results>")
        for place, url in enumerate(urls, start=1):
            lines += [f'<result rank="{place}">', f"<docid>{url}</docid>", "<vtype>1#2</vtype>", "</result>"]
        lines += ["</results>", "<clicked>", '<click num="1">', f"<docid>{urls[1]}</docid>", "<rank>2</rank>"]
        lines += ["</click>", "</clicked>", "</interaction>", "</session>"]
    (folder / "tiangong.xml").write_text("\n".join([*lines, "</sessions>"]) + "\n", encoding="utf-8")
    documents = [[f"q{page}\t{url}" for url in urls] for page, urls in enumerate(shown)]
    table = pa.table({"query_id": ["q0", "q1", "q2"], "query_doc_ids": documents, "clicks": [clicks] * 3})
    pq.write_table(table, folder / "pages.parquet")


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
