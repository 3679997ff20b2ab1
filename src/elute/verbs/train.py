"""`elute.train`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal, Self, Unpack

from elute._util.paths import refuse_harm
from elute._util.text import format_count
from elute.cells.factors import describe as describe_factor
from elute.cells.roles import DEFAULT_DOC, DEFAULT_QUERY, ColumnNames
from elute.errors import EluteError
from elute.estimate.scored.rows import ScoreScale
from elute.fits.propensities import PropensitySource, read_propensities
from elute.log import ClickLog, LogOptions, LogSource, as_log, read_log
from elute.options.kinds import SHARE
from elute.options.learners import take_settings
from elute.options.takes import takes
from elute.progress import Progress, silent
from elute.results.base import Fields, Recorded
from elute.results.card import Bars, Card
from elute.training.folder import SUMMARY
from elute.training.learn import TrainingOptions
from elute.training.learn import train as train_ranker
from elute.training.task import SESSION, Inputs
from elute.verbs.holdout import TIME, By, split_log
from elute.verbs.source import as_paths, name_source

Files = str | Path | Sequence[str | Path]


class Trained(Recorded):
    """A ranker in a folder, and how its training went. Fields are attributes."""

    def __init__(self, fields: dict[str, Any], folder: Path | None = None) -> None:
        super().__init__(fields)
        self.folder = folder

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """A ranker from its folder, or what `save` wrote of it."""
        if not Path(path).is_dir():
            return super().load(path)
        found = super().load(Path(path) / SUMMARY)
        found.folder = Path(path)
        return found

    @classmethod
    def describe(cls, fields: Fields) -> Card:
        unit = "trees" if fields["model"] == "lightgbm" else "steps"
        held = "" if fields["ndcg"] is None else f", nDCG@10 {fields['ndcg']:.4f} on the validation data"
        what = f"{fields['learner']} ({fields['model']}): {fields['steps']:,} {unit} in {fields['seconds']:.1f} s"
        rows = fields["propensities"]
        named = [{k: v for k, v in row.items() if k not in ("propensity", "log_se")} for row in rows]
        chart = Bars("Propensities", [describe_factor(row) for row in named], [row["propensity"] for row in rows])
        figures = [(format_count(fields["pages"]), "pages"), (format_count(fields["clicks"]), "clicks")]
        for data, found in fields["metrics"].items():
            figures += [(f"{value:.4f}", f"{metric} on {data}") for metric, value in found.items()]
        notes = [fields["note"]] if fields["note"] else []
        if fields.get("holdout"):
            notes.append(fields["holdout"]["sentence"])
        return Card("calm", "Trained", f"{what}, loss {fields['loss']:.4f}{held}.", figures, chart, notes)


@takes(clip=SHARE)
def train(
    log: LogSource,
    features: Files,
    out: str | Path,
    *,
    learner: str = "elute",
    learner_settings: Mapping[str, object] | None = None,
    model: str = "mlp",
    score: ColumnNames | None = None,
    score_scale: ScoreScale | None = None,
    propensities: PropensitySource | None = None,
    randomised: LogSource | None = None,
    items: Literal["ids", "features"] | None = None,
    validation: Files = (),
    test: Files = (),
    holdout: float | None = None,
    by: By | None = None,
    time: str | None = None,
    patience: int | None = None,
    steps: int | None = None,
    batch: int = 256,
    rate: float | Sequence[float] | None = None,
    hidden: int | Sequence[int] | None = None,
    dropout: float | None = None,
    clip: float | None = None,
    naive: bool = False,
    seed: int = 0,
    on_disk: bool = False,
    resume: bool = False,
    progress: Progress = silent,
    **columns: Unpack[LogOptions],
) -> Trained:
    """Learn a ranker from the clicks of a log and features of its documents, into the folder `out`.

    `features`: Parquet with the query and document columns of the log and a numeric column a feature, or LETOR
    files; `validation` and `test`: the same with grades. `learner`: how to learn, some with `learner_settings` by
    name; `model`: mlp, linear or lightgbm. `score` (score-adjusted, with its `score_scale`, and upe),
    `propensities` (ipw) and `randomised` (ipw-random) are what these learners need; `items` is what the learner
    `elute` takes for one item. `holdout`: a share of the log that is not learnt from; without `validation`, the
    ranker that orders its clicks best is kept; `by`: sessions, queries, or the last by the column `time`. Of
    several values of `rate`, the one that validates best is kept. `hidden`, `dropout`: of the network; `clip`: the
    least propensity that weights take. `naive`: train the naive learner too, into a folder within `out`, and show
    how much better this one is. A page is a session and a query. `columns`: as for `elute.read_log`.
    """
    if holdout is None and (by or time) is not None:
        raise EluteError("`by=` and `time=` say what `holdout=` holds out: give that too")
    own = take_settings(learner, learner_settings)
    named = [name_source(log), as_paths(features), propensities, name_source(randomised)]
    refuse_harm(out, [*named, as_paths(validation), as_paths(test)], folder=True)
    opened = as_log(log, **columns)
    if opened.roles.formula is not None:
        raise EluteError(
            f"`elute.train` takes bias columns, not the formula '{opened.roles.formula}': join them by commas"
        )
    options = opened.options
    if items is None and learner == "elute" and options.get("item") is not None:
        items = "ids"
    key = (str(options.get("query", DEFAULT_QUERY)), str(options.get("doc", DEFAULT_DOC)))
    random = None if randomised is None else as_log(randomised, **columns)
    known = read_propensities(propensities)
    with ExitStack() as parts:
        held, way = None, None
        if holdout is not None:
            way = (holdout, by or "session")
            opened, held = map(parts.enter_context, _split(opened, holdout, by or "session", time or TIME, seed))
        inputs = Inputs(
            learner, score, score_scale, known, random, as_paths(validation), as_paths(test), items, held, clip
        )
        how = TrainingOptions(model, steps, batch, rate, patience, seed, on_disk, way, hidden, dropout, own, naive)
        fields = train_ranker(opened, as_paths(features), key, inputs, how, Path(out), resume=resume, progress=progress)
    return Trained(fields, Path(out))


def _split(log: ClickLog, share: float, by: By, time: str, seed: int) -> tuple[ClickLog, ClickLog]:
    """What to learn from, and what is held out; sessions are those of pages."""
    if by == "session" and log.roles.session is None:
        log = read_log(log.source, **{**log.options, "session": SESSION})
    return split_log(log, share, by, time, seed)
