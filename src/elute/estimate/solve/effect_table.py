"""The effects of a fit, as a table: `effects.parquet`.

One row a level of a term, with the log of what it multiplies propensities by, relative to the term's reference; a
linear term has one row, the slope; a spline one for each value, relative to the first. Each is a combination of the
formula's coefficients, and has a value where the log determines that combination, or a prior speaks of it.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.sparse import csr_array, eye_array

from elute.estimate.solve.effect_errors import EffectErrors
from elute.estimate.solve.problem import Codes, Floats
from elute.identify.effects.design import EffectDesign, TermColumns

Ints = NDArray[np.int64]


def tabulate_effects(design: EffectDesign, component: Codes, propensity: Floats, errors: EffectErrors) -> pa.Table:
    """`term`, the bias columns (null where the term leaves one out), `effect, log_se, reference, determined`."""
    covered, space = np.isfinite(propensity) & (propensity > 0), errors.space
    log_o = np.zeros(space.x.shape[0])
    log_o[: len(propensity)] = np.log(np.where(covered, propensity, 1.0))
    latent = np.zeros(len(log_o) - len(propensity), np.bool_)
    found = space.find_effects(log_o, component, np.concatenate((covered, latent)))
    return pa.concat_tables(_tabulate_term(design, one, found, errors) for one in design.terms)


def _tabulate_term(design: EffectDesign, one: TermColumns, found: Floats, errors: EffectErrors) -> pa.Table:
    space, span = errors.space, errors.span
    example, first = _find_examples(design.factors, one)
    free = design.free_of_plan or design
    rows = _combine(free.matrix, one, example, first)
    reference = np.diff(rows.indptr) == 0 if first is None else example == first
    determined = np.ones(rows.shape[0], np.bool_)
    for z, p in zip(span.z, span.primes, strict=True):
        own = design.follow(p) @ z % p
        exact = _combine(free.residues(p), one, example, first)
        exact.data = exact.data * own[one.start + exact.indices] % p
        determined &= np.asarray(exact.sum(axis=1)).ravel() % p == 0
    inside = np.flatnonzero(space.kept < design.size)
    kept = csr_array((rows @ design.follow()[one.start : one.stop])[:, space.kept[inside]])
    error = errors._replace(root=errors.root[inside]).find_errors(kept)
    speaks = determined | (one.term.variables[0].kind == "smooth")
    named = {part.column for part in one.term.variables if part.kind != "linear"}
    columns = {
        name: values.take(pa.array(example)) if name in named else pa.nulls(len(determined), values.type)
        for name in design.factors.column_names
        for values in (design.factors[name].combine_chunks(),)
    }
    return pa.table(
        {
            "term": [str(one.term)] * len(determined),
            **columns,
            "effect": np.where(speaks, kept @ found[inside], np.nan),
            "log_se": np.where(speaks, error, np.nan),
            "reference": reference,
            "determined": determined,
        }
    )


def _find_examples(factors: pa.Table, one: TermColumns) -> tuple[Ints, Ints | None]:
    """A factor for each row of a term, and the one that it is measured by: None where that has no effect."""
    curve = next((part for part in one.term.variables if part.kind == "spline"), None)
    if curve is None and any(part.is_number for part in one.term.variables):
        return one.example[one.column >= 0], None
    if curve is None:
        home = one.example[np.bincount(one.level).argmax()]  # no level was left out: one that most factors have
        return one.example, np.full(len(one.example), home) if one.column.min() >= 0 else None
    value = np.unique(factors[curve.column].to_numpy(), return_inverse=True)[1]
    _, example = np.unique(np.stack((one.level, value)), axis=1, return_index=True)
    example = example[one.column[one.level[example]] >= 0]
    _, begin, code = np.unique(one.level[example], return_index=True, return_inverse=True)
    return example, example[begin][code]


def _combine(x: csr_array, one: TermColumns, example: Ints, first: Ints | None) -> csr_array:
    """Combinations of the term's coefficients, one a row; `x`: the design, or its residues."""
    if any(part.kind == "linear" for part in one.term.variables):
        return csr_array(eye_array(one.stop - one.start, dtype=x.dtype, format="csr"))
    block = csr_array(x[:, one.start : one.stop])
    rows = block[example] if first is None else block[example] - block[first]
    return csr_array(rows)
