"""Values by `elute value` beside Open Bandit Pipeline's IIPS and RIPS, on the same slates.

    python -m benchmarks.slates --obp PYTHON [--runs 100]

PYTHON: an interpreter that has `obp` (its own environment: it pins old versions of much). Documents are shown in random
order, so that the logging policy's probabilities, which OBP asks for, are known exactly: 1/D for a document at a place,
the product of 1/(D - k) for a page's beginning. elute asks for the clicks alone, and fits the propensities. Both value
one ranking by clicks of position-based users. IIPS weighs each click by how likely its document stood there, RIPS by
how likely all above it did.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa

import elute

QUERIES, DOCS, PLACES, PAGES = 20, 6, 4, 6_000

_CHILD = """
import sys, warnings
warnings.filterwarnings("ignore")
import numpy as np
from obp.ope import SlateIndependentIPS, SlateRewardInteractionIPS
for path in sys.argv[1:]:
    d = np.load(path)
    common = dict(slate_id=d["page"], reward=d["click"].astype(float), position=d["place"])
    iips = SlateIndependentIPS(len_list=int(d["places"])).estimate_policy_value(
        **common, pscore_item_position=d["item"], evaluation_policy_pscore_item_position=d["new_item"])
    rips = SlateRewardInteractionIPS(len_list=int(d["places"])).estimate_policy_value(
        **common, pscore_cascade=d["cascade"], evaluation_policy_pscore_cascade=d["new_cascade"])
    print(iips, rips)
"""


def draw(seed: int) -> tuple[dict[str, np.ndarray], pa.Table, pa.Table, float]:
    """Slates as OBP takes them, the same as a log, the ranking, and its true value."""
    world, rng = np.random.default_rng(0), np.random.default_rng([1, seed])
    relevance = world.beta(1.0, 2.0, (QUERIES, DOCS))
    look = 1.0 / np.arange(1, PLACES + 1)
    ranking = np.argsort(-(relevance + 0.2 * world.normal(size=relevance.shape)), axis=1)[:, :PLACES]
    query = rng.integers(QUERIES, size=PAGES)
    order = np.argsort(rng.random((PAGES, DOCS)), axis=1)[:, :PLACES]
    click = rng.random(order.shape) < np.take_along_axis(relevance[query], order, 1) * look
    same = order == ranking[query]
    chance = np.cumprod(1.0 / (DOCS - np.arange(PLACES)))
    flat = {
        "page": np.repeat(np.arange(PAGES), PLACES),
        "place": np.tile(np.arange(PLACES), PAGES),
        "click": click.ravel(),
        "item": np.full(PAGES * PLACES, 1.0 / DOCS),
        "new_item": same.astype(float).ravel(),
        "cascade": np.tile(chance, PAGES),
        "new_cascade": np.cumprod(same, axis=1).astype(float).ravel(),
        "places": np.array(PLACES),
    }
    log = pa.table(
        {
            "query_id": np.repeat(query, PLACES),
            "doc_id": order.ravel(),
            "position": flat["place"] + 1,
            "click": click.ravel(),
        }
    )
    listed = np.indices(ranking.shape)
    table = pa.table({"query_id": listed[0].ravel(), "doc_id": ranking.ravel(), "rank": listed[1].ravel() + 1})
    truth = float((np.take_along_axis(relevance, ranking, 1) * look).sum(axis=1).mean())
    return flat, log, table, truth


def main() -> None:
    """Print bias and root mean squared error of each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--obp", required=True, metavar="PYTHON")
    parser.add_argument("--runs", type=int, default=100)
    given = parser.parse_args()
    errors: dict[str, list[float]] = {}
    plain = []
    with TemporaryDirectory() as scratch:
        files, truth = [], 0.0
        for seed in range(given.runs):
            flat, log, ranking, truth = draw(seed)
            files.append(str(Path(scratch) / f"{seed}.npz"))
            np.savez(files[-1], **flat)  # type: ignore[arg-type]
            weights = flat["new_item"] / flat["item"]
            plain.append(float((weights * flat["click"]).sum() / PAGES))
            row = elute.value(log, elute.fit(log), ranking).to_dict()["rankings"][1]
            for one in row["estimators"]:
                errors.setdefault(f"elute, {one['estimator']}", []).append(one["value"] - truth)
        done = subprocess.run([given.obp, "-c", _CHILD, *files], check=True, capture_output=True, text=True)
    found = np.array([[float(word) for word in line.split()] for line in done.stdout.splitlines()])
    errors |= {"OBP, iips": list(found[:, 0] - truth), "OBP, rips": list(found[:, 1] - truth)}
    for name, each in errors.items():
        print(f"{name:<20} bias {np.mean(each):+.4f}   RMSE {np.sqrt(np.mean(np.square(each))):.4f}")
    print(f"OBP's iips against its formula, written plainly: off by {np.abs(found[:, 0] - plain).max():.1e} at most")
    sys.exit(bool(np.abs(found[:, 0] - plain).max() > 1e-9))


if __name__ == "__main__":
    main()
