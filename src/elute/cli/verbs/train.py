"""`elute train`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from elute.cli.options import FILES, parse_settings, reads_log
from elute.cli.text import print_json
from elute.cli.types import PathType, of_kind, typed
from elute.options.kinds import SHARE
from elute.options.learners import SETTINGS
from elute.progress import Progress
from elute.results.invocation import Invocation

if TYPE_CHECKING:
    from rich.table import Table

    from elute.log import ClickLog

_EPILOG = """\b
Examples:
  elute simulate --data docs/data/letor.txt --sessions 5000 --out clicks.parquet
  elute fit clicks.parquet --out fit
  elute train clicks.parquet --features docs/data/letor.txt --learner elute --model linear --steps 200 --out ranker
  elute train clicks.parquet --features docs/data/letor.txt --learner ipw --propensities fit --model lightgbm --out ipw
  elute train clicks.parquet --features docs/data/letor.txt --learner upe --model linear --steps 50 --out upe
  elute train clicks.parquet --features docs/data/letor.txt --learner score-adjusted --steps 200 --out adjusted
  elute rank ranker --features docs/data/letor.txt --out scores.parquet

\b
Features: Parquet with the query and document columns of the log and a numeric column a feature,
or LETOR/SVMlight files. Validation: the same with grades (Parquet: a column 'grade').
"""


@click.command(epilog=_EPILOG)
@reads_log
@click.option(
    "--features", multiple=True, type=FILES, required=True, help="Features of the documents: Parquet, or LETOR files."
)
@click.option("--learner", type=click.Choice(tuple(SETTINGS)), default="elute", show_default=True, help="How to learn.")
@click.option(
    "--learner-setting",
    "learner_settings",
    metavar="NAME=VALUE",
    multiple=True,
    callback=parse_settings,
    help="Of learners that have settings, for example drop=0.3.",
)
@click.option(
    "--model",
    type=click.Choice(["mlp", "linear", "lightgbm"]),
    default="mlp",
    show_default=True,
    help="What to learn; lightgbm goes with elute, score-adjusted, naive, ipw and ipw-random.",
)
@click.option(
    "--score",
    type=typed("score"),
    metavar="COL[,COL]",
    help="score-adjusted, upe: what pages were ranked by; of upe one column.  [default: score]",
)
@click.option(
    "--score-scale",
    type=typed("score_scale"),
    help="score-adjusted: as it is, standardised within queries, or their ranks.  [default: raw]",
)
@click.option("--propensities", type=PathType(), help="ipw: the folder of a fit, or its Parquet file.")
@click.option(
    "--randomised", metavar="LOG", type=FILES, help="ipw-random: a log of pages in random order, with the same columns."
)
@click.option(
    "--items",
    type=typed("items"),
    help="elute: one item is what --item names, or all with equal features.  "
    "[default: ids, or features where only these join the log]",
)
@click.option(
    "--validation", multiple=True, type=FILES, help="Graded documents: the ranker with the best nDCG@10 there is kept."
)
@click.option("--test", multiple=True, type=FILES, help="Graded documents on which the ranker is measured at the end.")
@click.option(
    "--holdout",
    type=typed("holdout"),
    metavar="SHARE",
    help="Learn without this share of the log; without --validation, what orders its clicks best is kept.",
)
@click.option("--by", type=typed("by"), help="What --holdout holds out.  [default: session]")
@click.option(
    "--time", type=typed("time"), metavar="COL", help="When a page was shown, for --by time.  [default: timestamp]"
)
@click.option("--patience", type=typed("patience"), help="Stop after this many validations without a better one.")
@click.option("--steps", type=typed("steps"), help="Steps, or trees.  [default: 10000; lightgbm: 300]")
@click.option("--batch", type=typed("batch"), default=256, show_default=True, help="Pages in a step.")
@click.option(
    "--rate",
    type=typed("rate"),
    help="Learning rate; of several (0.01,0.1), what validates best is kept.  [default: 0.05; lightgbm: 0.1]",
)
@click.option("--hidden", type=typed("hidden"), help="mlp: units of its hidden layers.  [default: 512,256,128]")
@click.option("--dropout", type=typed("dropout"), help="mlp: share of units left out at a step.  [default: 0.1]")
@click.option(
    "--clip",
    type=of_kind(SHARE),
    metavar="TAU",
    help="elute, ipw, ipw-random, score-adjusted: propensities count as at least TAU; no click weighs over 1/TAU.",
)
@click.option(
    "--naive", is_flag=True, help="Train the naive learner too, into DIR/naive; with --validation or --test, compare."
)
@click.option("--seed", type=typed("seed"), default=0, show_default=True, help="Seed for everything drawn.")
@click.option("--on-disk", is_flag=True, help="Read features and pages as needed, as is always done with large ones.")
@click.option("--resume", is_flag=True, help="Continue from the folder's checkpoint, if there is one.")
@click.option("--out", type=PathType(file_okay=False, path_type=Path), required=True, help="Folder to write to.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout, nothing else.")
def train(
    log: ClickLog,
    call: Invocation,
    progress: Progress,
    features: tuple[str, ...],
    randomised: str | None,
    out: Path,
    as_json: bool,
    **options: Any,
) -> None:
    """Learn a ranker from the clicks of a log and features of its documents.

    A page is a session (--session, by default session_id) and a query. Needs elute[neural], or
    elute[trees] for --model lightgbm; 'elute rank' then needs neither for a network.
    """
    from contextlib import ExitStack

    from elute.log import read_log
    from elute.verbs.train import train as run

    with ExitStack() as stack:
        random = None if randomised is None else stack.enter_context(read_log(randomised, **call.options))
        found = run(log, features, out, randomised=random, progress=progress, **options)
    if as_json:
        print_json(found.to_json())
    else:
        _show(found.to_dict(), out, features)


def _show(fields: dict[str, Any], out: Path, features: tuple[str, ...]) -> None:
    """How it ended, the propensities, and what to run next."""
    import shlex

    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from elute._util.urls import hide_secrets
    from elute.cells.factors import describe
    from elute.cli.text import to_one_line

    console = Console()
    unit = "trees" if fields["model"] == "lightgbm" else "steps"
    held = "" if fields["ndcg"] is None else f", nDCG@10 {fields['ndcg']:.4f} on the validation data"
    what = f"{fields['learner']} ({fields['model']}): {fields['steps']:,} {unit} in {fields['seconds']:.1f} s"
    console.print(Text(f"\n  {what}, loss {fields['loss']:.4f}{held}.", style="bold"), soft_wrap=True)
    if fields["note"]:
        console.print(Text(f"  Note: {to_one_line(fields['note'], 600)}.", style="red"))
    grid = Table(box=None, padding=(0, 2, 0, 2), header_style="dim")
    for head in ("factor", "propensity", "± 2 se of log"):
        grid.add_column(head, justify="left" if head == "factor" else "right")
    for row in fields["propensities"][:_SHOWN]:
        factor = {name: value for name, value in row.items() if name not in ("propensity", "log_se")}
        error = row.get("log_se")
        spread = "" if error is None else "reference" if error == 0 else f"{2 * error:.3f}"
        grid.add_row(Text(to_one_line(describe(factor))), f"{row['propensity']:.3f}", spread)
    console.print(grid)
    if len(fields["propensities"]) > _SHOWN:
        console.print(f"  … {len(fields['propensities']) - _SHOWN:,} more in train.json")
    if "rates" in fields:
        tried = (f"{one['rate']:g} {_format_value(one['validation'])}" for one in fields["rates"])
        console.print(Text(f"  Rate {fields['rate']:g} was chosen by validation: {', '.join(tried)}."), soft_wrap=True)
    if fields["holdout"]:
        console.print(Text(f"  {fields['holdout']['sentence']}."), soft_wrap=True)
    if fields["metrics"]:
        console.print(_tabulate_quality(fields))
    words = ["elute", "rank", str(out), "--features", *features[:1], "--out", "scores.parquet"]
    command = shlex.join(map(hide_secrets, words))
    console.print(Text.assemble(("\n  Next: ", "bold"), command), soft_wrap=True)


def _format_value(value: float | None) -> str:
    return "ran away" if value is None else f"{value:.4f}"


def _tabulate_quality(fields: dict[str, Any]) -> Table:
    """nDCG and ERR by where a list is cut, how far other queries might have them, and those of the log's own order."""
    from rich.table import Table

    metrics: dict[str, dict[str, float]] = fields["metrics"]
    grid = Table(box=None, padding=(0, 2, 0, 2), header_style="dim")
    cuts = list(dict.fromkeys(name.partition("@")[2] for found in metrics.values() for name in found))
    for number, head in enumerate(("\nat", *cuts)):
        grid.add_column(head, justify="right" if number else "left")
    for data, found in metrics.items():
        for metric, said in (("ndcg", "nDCG"), ("err", "ERR")):
            names = [f"{metric}@{cut}" for cut in cuts]
            _add_rows(grid, f"{said} on the {data} data", names, found, fields["metrics_se"][data])
            beside = fields["baselines"].get(data, {"queries": 0})
            if beside["queries"]:
                some = "" if beside["queries"] == beside["of_queries"] else f", {beside['queries']:,} queries"
                _add_rows(grid, f"  as the log shows them{some}", names, beside["logged"])
                more = beside["ranker_less_logged"], beside["ranker_less_logged_se"]
                _add_rows(grid, "  ranker less log", names, *more)
            if "naive" in beside:
                _add_rows(grid, "  naive learner", names, beside["naive"])
                _add_rows(
                    grid, "  ranker less naive", names, beside["ranker_less_naive"], beside["ranker_less_naive_se"]
                )
    return grid


def _add_rows(
    grid: Table,
    title: str,
    names: list[str],
    means: dict[str, float],
    errors: dict[str, float | None] | None = None,
) -> None:
    grid.add_row(title, *(f"{means[name]:.4f}" for name in names))
    if errors is not None:
        spread = ("" if (se := errors[name]) is None else f"{2 * se:.4f}" for name in names)
        grid.add_row("  ± 2 se over queries", *spread, style="dim")


_SHOWN = 20
