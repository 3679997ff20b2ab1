"""Which columns a statement is about. Nobody is asked whether they are there: the warehouse says so."""

from __future__ import annotations

from collections.abc import Iterable

from elute.cells.formula import BiasFormula, read_formula
from elute.cells.roles import DEFAULT_QUERY, BiasNames, ColumnNames, Roles, refuse_lookalikes, resolve_roles
from elute.errors import EluteError


def name_roles(
    table: str,
    *,
    query: str | None,
    doc: str,
    item: ColumnNames | None,
    bias: BiasNames,
    click: str,
    impressions: str | None,
    session: str | None,
) -> Roles:
    """`query`: None for the usual column where items have it, and for none where `item` names others."""
    items = [query or DEFAULT_QUERY, doc] if item is None else _list_names("item", item)
    formula = read_formula(bias, bias.split("*")) if isinstance(bias, str) else None
    biases = formula or (bias if isinstance(bias, BiasFormula) else _list_names("bias", bias))
    others = [one for one in (query, click, impressions, session) if one is not None]
    existing = [*items, *(biases.columns if isinstance(biases, BiasFormula) else biases), *others]
    roles, problems = resolve_roles(
        existing,
        query=query or DEFAULT_QUERY,
        item=items,
        bias=biases,
        click=click,
        impressions=impressions,
        session=session,
    )
    if problems:
        raise EluteError(f"{table}: {'; '.join(problems)}")
    refuse_lookalikes(roles.columns, table)
    return roles


def _list_names(option: str, given: ColumnNames) -> list[str]:
    if not isinstance(given, str):
        return list(dict.fromkeys(given))
    names = list(dict.fromkeys(name.strip() for name in given.split(",")))
    _refuse_patterns(option, names)
    return names


def _refuse_patterns(option: str, names: Iterable[str]) -> None:
    for name in names:
        if not name:
            raise EluteError(f"`{option}=` has an empty name; write names joined by commas")
        if any(sign in name for sign in "*?"):
            raise EluteError(f"`{option}=`: the columns that '{name}' stands for are in the warehouse; name them")
