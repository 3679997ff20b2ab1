"""Every option that verbs share a name for, and what it may be: what the library checks and the command line reads.

An end that is not one of mathematics is where figures would no longer fit into the files that hold them.
"""

from __future__ import annotations

from elute.options.kinds import (
    POSITIVE,
    PROBABILITY,
    SHARE,
    Flag,
    Kind,
    NamedNumbers,
    Number,
    Numbers,
    OneOf,
    OneOrMore,
    PathName,
    Text,
    Texts,
    TextsOrFormula,
    Whole,
    WordOr,
)

_COLUMN = Text("a column's name")
_COLUMNS = Texts("a column's name, or several")
_DAYS = Number(1e-6, 1e6)

DIALECTS = (
    *("bigquery", "clickhouse", "databricks", "duckdb", "mysql", "postgres", "redshift", "snowflake", "spark"),
    *("sqlite", "trino"),
)
"""Of SQL, that a statement can be written in."""

OPTIONS: dict[str, Kind] = {
    # reading a log
    "query": _COLUMN,
    "doc": _COLUMN,
    "item": _COLUMNS,
    "bias": TextsOrFormula("a column's name, several, or a formula"),
    "click": _COLUMN,
    "impressions": _COLUMN,
    "session": _COLUMN,
    "where": Text("an SQL expression over the log's columns"),
    "max_position": Whole(),
    "min_factor_impressions": Whole(1),
    "last": Whole(1),
    "drop": Text("a condition on the keys of parts, as in 'day < 2026-10-17'"),
    "engine": OneOf(words=("duckdb", "spark")),
    "exact": Flag(),
    "memory": Whole(1, 2**60),
    "spill": PathName(),
    "threads": Whole(1, 4_096),
    # drawing
    "seed": Whole(0, 2**31 - 1),  # more would be the same to LightGBM and jax as something less
    # check and fit
    "explore": Flag(),
    "curve": Flag(),
    "precision": Flag(),
    "model": Text("the name of a model"),
    "target_log_se": Number(1e-6, 1e3),
    "bounds": Flag(),
    "monotone": _COLUMNS,
    "at_most": Texts("'position=2 <= position=1', or several such"),
    "tolerance": Number(0),
    "max_iter": Whole(1),
    "prior": OneOf(words=("smooth",)),
    "relevance_prior": OneOf(words=("auto", "beta", "none")),
    "score": _COLUMNS,
    "score_scale": OneOf(words=("raw", "query", "rank")),
    "clip": WordOr("auto", Number(0)),
    "self_normalised": Flag(),
    "policy_aware": Flag(),
    "bootstrap": Whole(2, 10**6),
    "cluster": _COLUMN,
    "holdout": Number(0, 1, (True, True)),
    "by": OneOf(words=("session", "query", "time")),
    "time": _COLUMN,
    "allow_unidentified": Flag(),
    # repair
    "weights": NamedNumbers(Number(0, 1e9)),
    "prefer": OneOf(words=("cost", "distortion")),
    "consequence": Flag(),
    "target_se": Number(1e-6, 1e3),
    "max_position_change": Number(0),
    "only_positions": Numbers(),
    "min_impressions": Whole(),
    "fixed": _COLUMNS,
    "movable": _COLUMNS,
    "share": SHARE,
    "days": _DAYS,
    "log_days": _DAYS,
    "top": Whole(2, 10**6),
    "budget": Whole(1, 10**15),
    "objective": OneOf(words=("max", "mean")),
    # audit
    "grade": _COLUMN,
    "negative_grades": OneOf(words=("refuse", "zero")),
    "assumptions": Flag(),
    "groups": _COLUMN,
    "estimator": OneOf(words=("knn", "ksg", "copula", "dv")),
    # value
    "missing": OneOf(words=("refuse", "logged")),
    "at": Whole(1, 10**6),
    "switch": Flag(),
    # judge
    "grades": Text("quantiles, or thresholds such as 0.1,0.3,0.6"),
    "levels": Whole(2, 1_000),
    "min_precision": POSITIVE,
    "all_items": Flag(),
    # train
    "learner": Text("the name of a learner"),
    "items": OneOf(words=("ids", "features")),
    "patience": Whole(1),
    "steps": Whole(1, 10**12),
    "batch": Whole(1, 10**9),
    "rate": OneOrMore(Number(0, 1e6, (True, False))),
    "hidden": OneOrMore(Whole(1, 65_536)),
    "dropout": Number(0, 1, (False, True)),
    "naive": Flag(),
    "on_disk": Flag(),
    "resume": Flag(),
    # simulate
    "policy": Text("the name of a policy"),
    "user": Text("the name of a user"),
    "sessions": Whole(1, 10**12),
    "width": Whole(1, 32_767),
    "epsilon": PROBABILITY,
    "top_grade": Whole(1, 1_000),
    # convert and reproduce
    "kind": Text("the name of a format"),
    "skip_malformed": Flag(),
    "seeds": Whole(1, 10**6),
    # warehouses
    "table": Text("a table's name, such as schema.table"),
    "dialect": OneOf(words=DIALECTS),
    "from_cells": Flag(),
    # count
    "append": Flag(),
    "key": Text("a name and a value, as in 'day=2026-11-14'"),
    # watch
    "every": Text("a name of the keys of parts, as in 'day'"),
    "baseline": Whole(7, 1_000),
    "false_alarms": Number(1e-6, 1e3),
    "prometheus": PathName(),
    # all
    "out": PathName(),
}
"""By the name of the parameter; None, where a parameter has it as its default, is left to whoever reads it."""
