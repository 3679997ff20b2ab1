"""Train a ranker from a log into a folder: what `elute train` does, without the command line."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from elute._util.atomic import write_atomically
from elute._util.folders import hold_folder
from elute._util.storage import exceeds_memory, open_storage
from elute.errors import Diverged, EluteError
from elute.io.features import feature_bytes, is_parquet, read_features
from elute.log import ClickLog
from elute.progress import Progress, silent
from elute.training import folder as folders
from elute.training import task as tasks
from elute.training.quality import compare_with_log, compare_with_naive, measure_quality
from elute.training.rates import Trial, name_stages, search_rates
from elute.training.task import Inputs, Task
from elute.training.weights import WEIGHTED

_STEPS = {"mlp": 10_000, "linear": 10_000, "lightgbm": 300}
_RATE = {"mlp": 0.05, "linear": 0.05, "lightgbm": 0.1}
"""By model: the UPE paper's for networks; for trees, a usual choice."""

_IMPRESSION = 20
"""Bytes of an impression on its page."""


@dataclass(frozen=True)
class TrainingOptions:
    """How to train; `steps` are trees for lightgbm. None: the model's own choice."""

    model: str = "mlp"
    steps: int | None = None
    batch: int = 256
    rate: float | Sequence[float] | None = None
    """Several: each is tried, and the one that validates best is kept."""
    patience: int | None = None
    """Validations in a row without a better one (for lightgbm, trees) after which to stop."""
    seed: int = 0
    on_disk: bool = False
    """Leave features and pages on disk; they stay there anyway where they are large."""
    holdout: tuple[float, str] | None = None
    """What share of the log is held out, and by what."""
    hidden: int | Sequence[int] | None = None
    """Units of the hidden layers of a network."""
    dropout: float | None = None
    own: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the learner."""
    naive: bool = False
    """Train the naive learner too, to compare with."""

    @property
    def rates(self) -> list[float]:
        rate = self.rate or _RATE[self.model]
        return [float(one) for one in dict.fromkeys(rate)] if isinstance(rate, Sequence) else [float(rate)]

    @property
    def widths(self) -> list[int] | None:
        if self.hidden is None:
            return None
        return list(self.hidden) if isinstance(self.hidden, Sequence) else [self.hidden]


def train(
    log: ClickLog,
    features: Sequence[str],
    key: tuple[str, str],
    inputs: Inputs,
    how: TrainingOptions,
    out: Path,
    *,
    resume: bool = False,
    progress: Progress = silent,
) -> dict[str, Any]:
    """Train and write the ranker; returns the fields of `train.json`.

    `features` are files, `key` the columns that name a document in them."""
    began = time.perf_counter()
    _check_options(inputs, how, resume)
    on_disk = _stays_on_disk(log, features, key, how)
    with open_storage(out, on_disk) as storage:
        progress("reading features", 0, 0)
        task = tasks.build_task(log, read_features(features, key, storage=storage), inputs, progress, storage)
        steps, rates = how.steps or _STEPS[how.model], how.rates
        settings = {
            "learner": inputs.learner,
            "learner_settings": dict(how.own) or None,
            "model": how.model,
            "batch": how.batch,
            "rate": rates[0] if len(rates) == 1 else rates,
            "hidden": how.widths,
            "dropout": how.dropout,
            "clip": inputs.clip,
            "seed": how.seed,
            "holdout": None if how.holdout is None else list(how.holdout),
            "features": list(task.features.names),
            "pages": len(task.pages.documents),
            "positions": task.pages.documents.shape[1],
            "clicks": int(log.survey.clicks.sum()),
            "items": inputs.items,
        }
        with hold_folder(out, folders.SUMMARY):
            checkpoint = folders.prepare(out, settings, resume)
            run = _train_trees if how.model == "lightgbm" else _train_network
            found = search_rates(rates, partial(run, task, inputs.learner, how, steps, out, checkpoint), progress)
            folders.clear(out)
            found.write()
            fields = settings | {
                "key": task.features.key.column_names,
                "on_disk": on_disk,
                "note": task.weighing.note or None if task.weighing is not None else None,
                **found.fields,
                "provenance": asdict(log.provenance()),
            }
            beside = None
            if how.naive:
                told = replace(how, own={}, naive=False)
                said = name_stages(progress, "naive")
                train(log, features, key, inputs.make_naive(), told, out / folders.NAIVE, resume=resume, progress=said)
                beside = folders.load(out / folders.NAIVE)
            fields["metrics"], fields["metrics_se"], fields["baselines"] = _measure(task, out, fields, beside)
            fields["holdout"] = _measure_clicks(task, out, fields, how)
            fields["files"] = folders.seal_ranker(out)
            fields["seconds"] = time.perf_counter() - began
            folders.save_summary(out, fields)
    return fields


def _stays_on_disk(log: ClickLog, features: Sequence[str], key: tuple[str, str], how: TrainingOptions) -> bool:
    """Whether features and pages stay on disk: where asked for, or where they are large beside the memory."""
    if how.on_disk and not is_parquet(features):
        raise EluteError(
            f"{features[0]} is not Parquet, the only format that can be read piece by piece; leave `on_disk=True` out"
        )
    if how.model == "lightgbm" or not is_parquet(features):
        return False
    return how.on_disk or exceeds_memory(feature_bytes(features, key) + _IMPRESSION * log.survey.rows)


def _measure(
    task: Task, out: Path, fields: dict[str, Any], naive: folders.Ranker | None
) -> tuple[Any, Any, dict[str, Any]]:
    """By the ranker as it was written; and beside it, the order in which the log shows the same documents, and the
    naive ranker."""
    ranker = folders.load_ranker(out, fields)
    both = {"validation": task.validation, "test": task.test}
    judged = {name: data for name, data in both.items() if data is not None}
    beside = compare_with_log(ranker.score, judged, task.logged)
    if naive is not None:
        for name, found in compare_with_naive(ranker.score, naive.score, judged).items():
            beside[name] = {"queries": 0, "of_queries": judged[name].n_queries} | beside.get(name, {}) | found
    return *measure_quality(ranker.score, judged), beside


def _measure_clicks(task: Task, out: Path, fields: dict[str, Any], how: TrainingOptions) -> dict[str, Any] | None:
    """The held-out clicks as the ranker orders them, with the propensities that it goes with."""
    if task.held_out is None or how.holdout is None:
        return None
    score = folders.load_ranker(out, fields).score
    learnt = None if task.weighing is not None else np.array([row["propensity"] for row in fields["propensities"]])
    share, by = how.holdout
    chose = task.validation is None
    return {"share": share, "by": by, "chose_ranker": chose, **task.held_out.describe(score, learnt)}


def _check_options(inputs: Inputs, how: TrainingOptions, resume: bool) -> None:
    if how.model not in _STEPS:
        raise EluteError(f"no model '{how.model}'; there are: {', '.join(_STEPS)}")
    if how.model == "lightgbm" and inputs.learner not in WEIGHTED:
        raise EluteError(
            f"learner '{inputs.learner}' learns propensities by gradients through its network, which trees do not "
            f"have; `model='lightgbm'` goes with {', '.join(WEIGHTED)}"
        )
    if how.model != "lightgbm":
        from elute.training.networks import require_steps

        require_steps(inputs.learner, how.own, how.steps or _STEPS[how.model])
    if how.model == "lightgbm" and resume:
        raise EluteError("trees have no checkpoint to resume from; leave `resume=True` out")
    if how.model == "lightgbm" and how.on_disk:
        raise EluteError("trees keep their features in memory; leave `on_disk=True` out, or train a network")
    if how.model != "mlp" and (how.hidden or how.dropout) is not None:
        given = "hidden" if how.hidden is not None else "dropout"
        raise EluteError(f"`model='{how.model}'` has no hidden layers; `{given}=` goes with `model='mlp'`")
    if len(how.rates) > 1 and not inputs.validation and inputs.held_out is None:
        raise EluteError("several rates are chosen from by validation; add `validation=`, or `holdout=`")
    if len(how.rates) > 1 and resume:
        raise EluteError("there is no checkpoint of several rates to resume from; give one `rate=`")
    if how.naive and inputs.learner == "naive":
        raise EluteError("`learner='naive'` is what `naive=True` compares with; leave one of them out")
    if how.naive and not inputs.validation and not inputs.test:
        raise EluteError("`naive=True` compares by grades; add `validation=` or `test=`")
    if how.patience is not None and not inputs.validation and inputs.held_out is None:
        raise EluteError("`patience=` counts validations; add `validation=`, or `holdout=` to validate by clicks")


def _train_network(
    task: Task,
    learner: str,
    how: TrainingOptions,
    steps: int,
    out: Path,
    checkpoint: Path,
    rate: float,
    progress: Progress,
) -> Trial:
    from elute.neural.train import Settings
    from elute.training.networks import build_network, learn

    def advance(stage: str, done: int, total: int) -> None:
        folders.clear(out)
        progress(stage, done, total)

    progress("training", 0, steps)
    settings = Settings(steps=steps, batch=how.batch, patience=how.patience)
    found = learn(
        task,
        learner,
        build_network(how.model, how.widths, how.dropout),
        settings,
        rate=rate,
        seed=how.seed,
        own=how.own,
        checkpoint=checkpoint if len(how.rates) == 1 else None,
        progress=advance,
    )
    history = [(moment.step, moment.loss, moment.ndcg) for moment in found.history]
    if task.weighing is None:
        by_position = [
            {"position": number, "propensity": value} for number, value in enumerate(found.propensities.tolist(), 1)
        ]
        fields = _summarise(history, task) | {"propensities": by_position, "note": found.note or None}
    else:
        fields = _summarise(history, task) | {"propensities": task.weighing.to_list()}
    return Trial(fields, partial(folders.save_network, out, found.arrays))


def _train_trees(
    task: Task,
    learner: str,
    how: TrainingOptions,
    steps: int,
    out: Path,
    checkpoint: Path,
    rate: float,
    progress: Progress,
) -> Trial:
    from elute.training.trees import grow

    found = grow(task, trees=steps, rate=rate, seed=how.seed, patience=how.patience, progress=progress)

    def write() -> None:
        with write_atomically(out / folders.TREES) as temporary:
            found.model.save_model(temporary, num_iteration=found.trees)

    weighing = [] if task.weighing is None else task.weighing.to_list()
    return Trial(_summarise(found.history, task) | {"trees": found.trees, "propensities": weighing}, write)


def _summarise(history: list[tuple[int, float, float]], task: Task) -> dict[str, Any]:
    """The last loss, the best nDCG@10 on validation data, and all of them; or DCG of held-out clicks."""
    name = "click_dcg" if task.validation is None and task.held_out is not None else "ndcg"
    wild = next((step for step, loss, _ in history if not math.isfinite(loss)), None)
    if wild is not None:
        raise Diverged(f"the loss is not a finite number at step {wild:,}: training ran away; lower `rate=`")
    rows: list[dict[str, Any]] = [
        {"step": step, "loss": loss, "ndcg": None} | ({} if math.isnan(value) else {name: value})
        for step, loss, value in history
    ]
    best = max((row["ndcg"] for row in rows if row["ndcg"] is not None), default=None)
    return {"steps": rows[-1]["step"], "loss": rows[-1]["loss"], "ndcg": best, "history": rows}
