"""Which structure of several bias columns a log can bear: from the richest, what each determines and how precisely, and
which of them its clicks contradict.

Between one propensity for each combination of values and a column that does not matter lie effects that multiply,
perhaps with an interaction. Proposed is the richest structure that is recoverable and not contradicted.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from elute.cells.formula import BiasFormula, BiasTerm, BiasVariable, formula_of, tie_factors
from elute.checking.rung import Rung, find_rung
from elute.estimate.solve.effect_boundary import find_problem_parts
from elute.identify.components import Components, number_components
from elute.identify.effects.classes import join_classes, span_forest
from elute.identify.effects.design import EffectDesign, build_design
from elute.identify.effects.span import TooManyEffects
from elute.known.additivity import LEVEL, ColumnTest, assess_columns, build_null, list_untested
from elute.known.precision import Precision, measure
from elute.known.sample import sample_counts
from elute.log import ClickLog
from elute.progress import Progress, silent

MOST = 4
"""Columns up to which structures with an interaction of two are tried."""


class BiasStructure(NamedTuple):
    """The verdict for one structure. `contradicted` is None where nothing richer could be tested, `components` where it
    would take too long to find them; `note` then says so."""

    formula: str
    columns: tuple[str, ...]
    effects: int
    components: int | None
    rankable_share: float | None
    rung: Rung | None
    median_log_se: float | None
    largest_log_se: float | None
    contradicted: bool | None
    p_value: float | None
    """The smallest of its tests, times their number."""
    tests: list[ColumnTest]
    note: str | None = None

    @property
    def recoverable(self) -> bool:
        return self.components == 1

    def to_dict(self) -> dict[str, Any]:
        tests = [test.to_dict() for test in self.tests]
        return {**self._asdict(), "columns": list(self.columns), "tests": tests, "recoverable": self.recoverable}


def propose(structures: list[BiasStructure]) -> str | None:
    """The richest that is recoverable and not contradicted."""
    return next((one.formula for one in structures if one.recoverable and not one.contradicted), None)


def list_structures(columns: list[str]) -> list[BiasFormula]:
    """From every combination by itself to one column left out."""
    every = [BiasTerm((BiasVariable(column),)) for column in columns]
    found = [BiasFormula((BiasTerm(tuple(map(BiasVariable, columns))),))]
    pairs = [BiasTerm(tuple(map(BiasVariable, pair))) for pair in combinations(columns, 2)]
    if 2 < len(columns) <= MOST:
        found.append(BiasFormula((*every, *pairs)))
        found += [BiasFormula((*every, pair)) for pair in pairs]
    if len(columns) > 1:
        found.append(BiasFormula(tuple(every)))
        found += [BiasFormula(tuple(one for one in every if one is not left)) for left in reversed(every)]
    return found


def explore_structures(log: ClickLog, target: float | None, progress: Progress = silent) -> list[BiasStructure]:
    """Richest first: by the comparisons that a structure asks for."""
    factors, root = tie_factors(log.survey.factors, None), log.structure(progress).root
    formulas = list_structures(factors.column_names)
    own = formula_of(log.survey.factors)
    if own is not None and str(own) not in map(str, formulas):
        formulas.append(own)
    sample = None
    if target is not None and log.roles.click is not None and log.partitions(progress) is None:
        sample = sample_counts(log.counts(progress).tie(None), None)
    judged = []
    for done, formula in enumerate(formulas):
        progress("trying structures of the bias columns", done, len(formulas))
        design = build_design(factors, formula).roughen()
        precision, tests = None, list[ColumnTest]()
        asks = span_forest(design, np.zeros_like(root)).rank
        try:
            found = number_components(join_classes(root, tie_factors(factors, formula)), log.survey.impressions)
        except TooManyEffects as error:
            judged.append((asks, _leave_out(formula, asks, str(error))))
            continue
        if sample is not None and target is not None:
            tied = None if formula.saturated else design
            problem = replace(sample.problem, design=tied, component=found.of_factor)
            posed = replace(sample, problem=problem, part=find_problem_parts(problem))
            precision = measure(posed, target, query=log.roles.query)
            tests = _test_columns(precision, design)
        share = None
        if log.roles.query is not None:
            share = log.count_rankable(found.of_factor, len(found), progress).share
        judged.append((asks, _judge(formula, asks, found, share, precision, tests)))
    return [one for _, one in sorted(judged, key=lambda pair: -pair[0])]


def _test_columns(precision: Precision, design: EffectDesign) -> list[ColumnTest]:
    """What the formula leaves out: columns, and pairs of them that it does not join."""
    sample, left = precision.sample, list_untested(design.formula, design.factors.column_names)
    if not left or not sample.clicked.any():
        return []
    cluster = np.arange(sample.problem.n_items) if sample.query is None else sample.query
    null = build_null(design, sample.problem.cells, precision.propensity, precision.apart, cluster)
    return [assess_columns(null, some) for some in left]


def _leave_out(formula: BiasFormula, asks: int, why: str) -> BiasStructure:
    """A structure that is not compared with others."""
    return BiasStructure(str(formula), formula.columns, asks, None, None, None, None, None, None, None, [], why)


def _judge(
    formula: BiasFormula,
    asks: int,
    found: Components,
    share: float | None,
    precision: Precision | None,
    tests: list[ColumnTest],
) -> BiasStructure:
    told = [test.p_value for test in tests if test.p_value is not None]
    p_value = min(1.0, min(told) * len(told)) if told else None
    return BiasStructure(
        formula=",".join(formula.columns) if formula.saturated else str(formula),
        columns=formula.columns,
        effects=asks,
        components=len(found),
        rankable_share=share,
        rung=None if precision is None else find_rung(len(found) == 1, precision, False),
        median_log_se=None if precision is None else precision.median_log_se,
        largest_log_se=None if precision is None else precision.largest_log_se,
        contradicted=None if p_value is None else p_value < LEVEL,
        p_value=p_value,
        tests=tests,
    )
