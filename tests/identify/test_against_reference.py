"""`elute.check` against Algorithm 1 written plainly, and properties that need no reference."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

import elute
from reference.algorithm1 import complete_rows, reference_check, reference_explore

Row = dict[str, Any]

INTEGER_FIELDS = ("impressions", "clicks", "items", "factors", "cells", "queries", "components")
FIELDS = (
    *INTEGER_FIELDS,
    "recoverable",
    "component_sizes",
    "rankable_queries",
    "rankable_share",
    "comparable_pairs_share",
    "impressions_in_largest_share",
)
# What describes the graph alone, however often each cell was shown and clicked.
STRUCTURE = tuple(name for name in FIELDS if name not in ("impressions", "clicks"))

# Ids that a careless comparison, quoting, trimming, case folding, number parsing or join would confuse.
ODD_TEXT = (
    "", " ", "  ", "\t", "\n", "\r\n", "a", "A", "a ", " a", "'", "''", '"', '""', "`", "\\", "\\n", ",", "|",
    ";", "%", "_", "--", "/*", "0", "00", "7", "07", "007", "7.0", "7e0", "+7", "-7", "NULL", "null", "None",
    "nan", "NaN", "true", "é", "e\u0301", "ß", "ss", "İ", "ı", "i", "ﬁ", "fi", "漢字", "🙂", "🙂🙂", "👩‍👩‍👧",
    "\u200b", "\ufeff", "\u202e", "\x01", "\x1e", "\x1f", "\x7f", "\U0010ffff", "ab", "a,b", "b", "x" * 300,
)  # fmt: skip
# Neighbours that a float64 cannot tell apart, and the ends of the type.
ODD_INT64 = (0, 1, -1, 2**31, 2**32, 2**53, 2**53 + 1, 2**63 - 2, 2**63 - 1, -(2**63), -(2**63) + 1)
ODD_UINT64 = (0, 1, 2**53, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 2, 2**64 - 1)
ODD_FLOAT = (0.0, 0.1, 0.1 + 2**-56, 0.3, 0.1 + 0.2, 1.0, -1.0, 1e300, 5e-324, float("inf"), float("-inf"))

TEXT = st.sampled_from(ODD_TEXT) | st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=5
)
DICTIONARY = pa.dictionary(pa.int32(), pa.string())

# The kinds of column an id can come in: Arrow type and values.
KINDS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "text": (pa.string(), TEXT),
    "large text": (pa.large_string(), TEXT),
    "dictionary": (DICTIONARY, TEXT),
    "letters": (pa.string(), st.text("ab", max_size=3)),
    "digits": (pa.string(), st.text("07", max_size=3)),
    "int64": (pa.int64(), st.sampled_from(ODD_INT64) | st.integers(-(2**63), 2**63 - 1)),
    "uint64": (pa.uint64(), st.sampled_from(ODD_UINT64) | st.integers(0, 2**64 - 1)),
    "small": (pa.int32(), st.integers(0, 9)),
    "float": (pa.float64(), st.sampled_from(ODD_FLOAT) | st.floats(allow_nan=False)),
    "bool": (pa.bool_(), st.booleans()),
}
ID_KINDS = tuple(kind for kind in KINDS if kind not in ("float", "bool"))

# Item and bias columns; the query column is always `query`. None: elute's own default, (query, doc).
SHAPES: dict[str, tuple[list[str] | None, list[str]]] = {
    "plain": (None, ["position"]),
    "several bias columns": (None, ["position", "device", "style"]),
    "several item columns": (["query", "doc", "feature"], ["position"]),
    "features as item": (["feature", "other"], ["position", "device"]),
    "item is the doc": (["doc"], ["position"]),
    "doc with several bias columns": (["doc"], ["position", "device"]),
    "query as bias": (None, ["query", "position"]),
    "query as bias of docs": (["doc"], ["query", "position"]),
    "a column in both roles": (["doc", "device"], ["position", "device"]),
}
COLUMNS = ("query", "doc", "feature", "other", "position", "device", "style")

# How clicks come: Arrow type of the click column, whether a column of impressions goes with it.
CLICKS: dict[str, tuple[pa.DataType, bool]] = {
    "bool": (pa.bool_(), False),
    "int64": (pa.int64(), False),
    "int8": (pa.int8(), False),
    "counts": (pa.int64(), True),
}


@dataclass(frozen=True)
class Case:
    """A log as row dicts, with what is needed to hand it both to elute and to the reference."""

    rows: list[Row]
    item: list[str] | None
    bias: list[str]
    clicks: str
    types: dict[str, pa.DataType] = field(repr=False)

    @property
    def item_columns(self) -> list[str]:
        """The item columns, the default written out."""
        return ["query", "doc"] if self.item is None else self.item

    @property
    def impressions(self) -> str | None:
        """The column of impressions, for a log of counts."""
        return "impressions" if CLICKS[self.clicks][1] else None

    @property
    def complete(self) -> list[Row]:
        """The rows that no id is missing from."""
        return complete_rows(self.rows, self.item_columns, self.bias, "query")

    @property
    def table(self) -> pa.Table:
        """The log as an Arrow table, as it would be handed in from Python."""
        schema = pa.schema([(name, self.types[name]) for name in COLUMNS])
        schema = schema.append(pa.field("click", CLICKS[self.clicks][0]))
        if self.impressions:
            schema = schema.append(pa.field(self.impressions, pa.int64()))
        return pa.Table.from_pylist(self.rows, schema=schema)

    def reference(self) -> dict[str, Any]:
        """The verdict of the reference."""
        return reference_check(self.rows, self.item_columns, self.bias, "query", "click", impressions=self.impressions)

    def reference_subsets(self) -> list[dict[str, Any]]:
        """The reference's verdict on every subset of the bias columns."""
        return reference_explore(
            self.rows, self.item_columns, self.bias, "query", "click", impressions=self.impressions
        )


def elute_check(case: Case, table: pa.Table | None = None, **options: Any) -> dict[str, Any]:
    """elute's verdict as its JSON says it."""
    roles: dict[str, Any] = {"query": "query", "doc": "doc", "bias": case.bias, "click": "click"}
    if case.item is not None:
        roles["item"] = case.item
    if case.impressions is not None:
        roles["impressions"] = case.impressions
    log = elute.read_log(case.table if table is None else table, **roles)
    verdict: dict[str, Any] = json.loads(json.dumps(elute.check(log, **options).to_dict()))
    return verdict


def assert_equal(got: dict[str, Any], expected: dict[str, Any], fields: tuple[str, ...] = FIELDS) -> None:
    """Every field the same: counts and lists exactly, shares up to rounding."""
    same = {
        name: pytest.approx(expected[name], rel=0, abs=1e-12) if isinstance(expected[name], float) else expected[name]
        for name in fields
    }
    assert {name: got[name] for name in fields} == same
    assert isinstance(got["recoverable"], bool)


def assert_agrees(case: Case) -> None:
    """elute says what the reference says, or refuses a log without a complete row."""
    if not case.complete:
        with pytest.raises(elute.EluteError):
            elute_check(case)
        return
    got = elute_check(case)
    assert_equal(got, case.reference())
    dropped = len(case.rows) - len(case.complete)
    counts = [warning["count"] for warning in got["warnings"] if warning["code"] == "null_ids"]
    assert counts == ([dropped] if dropped else [])


@st.composite
def logs(
    draw: st.DrawFn,
    *,
    shapes: tuple[str, ...] = tuple(SHAPES),
    clicks: tuple[str, ...] = tuple(CLICKS),
    nulls: bool = False,
    max_rows: int = 30,
) -> Case:
    """A random log over a few values a column, so that both links and gaps are common."""
    item, bias = SHAPES[draw(st.sampled_from(shapes))]
    how = draw(st.sampled_from(clicks))
    types: dict[str, pa.DataType] = {}
    values: dict[str, st.SearchStrategy[Any]] = {}
    used = {"query", "doc", *(item or ()), *bias}
    for name in COLUMNS:
        kinds = ID_KINDS if name in ("query", "doc") else tuple(KINDS)
        kind = draw(st.sampled_from(kinds)) if name in used else "small"
        types[name], ids = KINDS[kind]
        pool = draw(st.lists(ids, min_size=1, max_size=6, unique=True)) if name in used else [0]
        # A null in one of 4 to 19 values, where nulls are wanted.
        values[name] = st.sampled_from([*pool * 3, None] if nulls and name in used else pool)
    rows = draw(st.lists(st.fixed_dictionaries(values), min_size=1, max_size=max_rows))
    for row in rows:
        if CLICKS[how][1]:
            row["impressions"] = draw(st.integers(1, 1000))
            row["click"] = draw(st.integers(0, row["impressions"]))
        else:
            clicked = draw(st.booleans())
            row["click"] = clicked if how == "bool" else int(clicked)
    return Case(rows, item, bias, how, types)


def plain(cells: list[tuple[Any, Any, Any]], kind: str = "small", clicks: str = "int64") -> Case:
    """A log of (query, doc, position) rows whose ids are all of one kind."""
    types = dict.fromkeys(COLUMNS, KINDS["small"][0])
    types |= dict.fromkeys(("query", "doc", "position"), KINDS[kind][0])
    rest = {name: 0 for name in COLUMNS if name not in ("query", "doc", "position")}
    rows = [
        {"query": q, "doc": d, "position": p, "click": n % 3 == 0, "impressions": n % 7 + 1, **rest}
        for n, (q, d, p) in enumerate(cells)
    ]
    for row in rows:
        row["click"] = row["click"] if clicks == "bool" else int(row["click"])
        if not CLICKS[clicks][1]:
            del row["impressions"]
    return Case(rows, None, ["position"], clicks, types)


def sparse(random: Random, rows: int, queries: int, docs: int, positions: int, shape: str = "plain") -> Case:
    """A larger log in which a doc keeps to a few neighbouring positions, so that components vary in size."""
    cells = []
    for _ in range(rows):
        doc = random.randrange(docs)
        home = doc * 7919 % positions
        position = min(positions - 1, home + (random.random() < 0.3))
        cells.append((random.randrange(queries), doc, position))
    item, bias = SHAPES[shape]
    return replace(plain(cells), item=item, bias=bias)


def run(examples: int, shrink: bool = True) -> settings:
    """Settings of one property: this many random logs, no limit on the time of each."""
    phases = [phase for phase in Phase if shrink or phase is not Phase.shrink]
    slow = [HealthCheck.too_slow, HealthCheck.data_too_large]
    return settings(max_examples=examples, deadline=None, phases=phases, suppress_health_check=slow)


# --- Equality with the reference ---------------------------------------------------------------------------


@run(200)
@given(logs())
@example(plain([(1, 1, 1)]))
@example(plain([(1, 1, 1)], clicks="bool"))
@example(plain([(1, 1, 1)], clicks="counts"))
@example(plain([("", "", "")], "text"))
@example(plain([(q, d, 1) for q in range(3) for d in range(3)]))
@example(plain([(1, n, n) for n in range(30)]))
@example(plain([(n, n, n) for n in range(30)], clicks="counts"))
@example(plain([("a", "bc", "1"), ("ab", "c", "2"), ("abc", "", "3"), ("", "abc", "4")], "text"))
@example(plain([("q", "007", "1"), ("q", "7", "2"), ("q", "07", "3"), ("q", "7", "03")], "text"))
@example(plain([("q", text, text) for text in ODD_TEXT], "text"))
@example(plain([(text, "d", "1") for text in ODD_TEXT] + [("", "d", "2")], "dictionary"))
@example(plain([(1, number, number) for number in ODD_INT64], "int64"))
@example(plain([(1, number, number) for number in ODD_UINT64], "uint64"))
def test_random_logs(case: Case) -> None:
    """Every field of the verdict, over all column roles, id types and ways of counting clicks."""
    assert_agrees(case)


@run(50)
@given(logs(nulls=True, max_rows=12))
@example(plain([(None, 1, 1)]))
@example(plain([(1, None, 1), (1, 1, None)]))
@example(plain([(1, None, 1), (1, 1, 1), (1, 1, 2), (None, 2, 2)], clicks="counts"))
@example(plain([("", None, "1"), ("", "", "1"), ("NULL", "None", "2"), (None, "d", "2")], "text"))
def test_rows_without_an_id_are_dropped_and_counted(case: Case) -> None:
    """Nulls in any role, up to a log that has nothing else: that one is refused."""
    assert_agrees(case)


def test_a_table_without_rows_is_refused() -> None:
    """An empty log has no verdict."""
    with pytest.raises(elute.EluteError):
        elute_check(plain([]))


def test_a_null_in_a_column_without_a_role_is_no_matter() -> None:
    """The doc is not part of the item here, so that a row without one counts."""
    case = plain([(1, None, 1), (1, None, 2), (2, 5, 2)])
    for number, row in enumerate(case.rows):
        row["feature"] = row["other"] = number // 2
    assert_agrees(replace(case, item=["feature", "other"]))


def test_zero_and_minus_zero_are_one_value() -> None:
    """As numbers they are equal, whatever their bits."""
    case = plain([("q", "d", 0.0), ("q", "e", -0.0), ("q", "e", 1.0)], "text")
    assert_agrees(replace(case, types=case.types | {"position": pa.float64()}))


@pytest.mark.parametrize("shape", ["plain", "item is the doc", "query as bias"])
@run(6, shrink=False)
@given(random=st.randoms(use_true_random=True), rows=st.integers(100, 600), positions=st.integers(20, 80))
def test_many_components(shape: str, random: Random, rows: int, positions: int) -> None:
    """More components than `component_sizes` lists."""
    assert_agrees(sparse(random, rows, queries=25, docs=150, positions=positions, shape=shape))


@pytest.mark.parametrize("shape", ["plain", "item is the doc"])
@run(2, shrink=False)
@given(random=st.randoms(use_true_random=True))
def test_logs_of_several_batches(shape: str, random: Random) -> None:
    """Enough rows for several batches, vectors and threads of an engine."""
    case = sparse(random, rows=20_000, queries=400, docs=3_000, positions=60, shape=shape)
    table = pa.Table.from_batches(case.table.to_batches(max_chunksize=random.choice([997, 2048, 5000])))
    assert_equal(elute_check(case, table), case.reference())


@run(40)
@given(logs(shapes=("several bias columns", "doc with several bias columns", "query as bias", "plain")))
def test_explore(case: Case) -> None:
    """One verdict for each non-empty subset of the bias columns, and the main one unchanged."""
    got = elute_check(case, explore=True)
    assert_equal(got, case.reference())
    names = ("bias", "factors", "components", "recoverable", "rankable_share")
    # The order of the subsets, and of the columns within one, is free.
    subsets = {tuple(sorted(subset["bias"])): {name: subset[name] for name in names} for subset in got["subsets"]}
    expected = {tuple(sorted(subset["bias"])): subset for subset in case.reference_subsets()}
    assert len(got["subsets"]) == len(expected) == 2 ** len(case.bias) - 1
    assert subsets.keys() == expected.keys()
    for columns, subset in expected.items():
        subset["rankable_share"] = pytest.approx(subset["rankable_share"], rel=0, abs=1e-12)
        assert subsets[columns] | {"bias": None} == subset | {"bias": None}


def test_explore_sees_the_same_rows_for_every_subset() -> None:
    """A row that lacks one bias column is dropped for all subsets: they differ by columns, not by rows."""
    case = plain([(1, 1, 1), (1, 1, 2), (1, 2, 2)])
    case.rows[1]["device"] = None
    case = replace(case, bias=["position", "device"])
    factors = {tuple(subset["bias"]): subset["factors"] for subset in elute_check(case, explore=True)["subsets"]}
    assert factors == {("position",): 2, ("device",): 1, ("position", "device"): 2}


def test_column_names_may_be_odd() -> None:
    """Names are quoted, not pasted: keywords, spaces, quotes and dots included."""
    names = {
        "query": "select",
        "doc": 'the "doc"',
        "position": "po.si tion; --",
        "click": "clïck'",
        "impressions": "group",
    }
    case = plain([(1, 1, 1), (1, 1, 2), (1, 2, 2), (2, 3, 3)], clicks="counts")
    table = case.table.select(list(names)).rename_columns(list(names.values()))
    log = elute.read_log(
        table,
        query=names["query"],
        doc=names["doc"],
        item=[names["query"], names["doc"]],
        bias=[names["position"]],
        click=names["click"],
        impressions=names["impressions"],
    )
    assert_equal(elute.check(log).to_dict(), case.reference())


def test_one_column_may_be_given_by_its_name_alone() -> None:
    """A string and a list of one are the same role; the verdict's attributes say what its fields say."""
    case = replace(plain([(1, 1, 1), (2, 1, 2), (1, 2, 3)]), item=["doc"])
    log = elute.read_log(case.table, query="query", doc="doc", item="doc", bias="position", click="click")
    verdict = elute.check(log)
    assert_equal(verdict.to_dict(), case.reference())
    assert (verdict.recoverable, verdict.components) == (False, 2)


# --- Properties that need no reference ---------------------------------------------------------------------


@run(20)
@given(logs(), st.randoms(use_true_random=False), st.integers(1, 7))
def test_the_order_of_rows_is_no_matter(case: Case, random: Random, chunk: int) -> None:
    """Shuffled, and cut into record batches of another size."""
    shuffled = list(case.rows)
    random.shuffle(shuffled)
    other = replace(case, rows=shuffled)
    table = pa.Table.from_batches(other.table.to_batches(max_chunksize=chunk))
    assert_equal(elute_check(other, table), elute_check(case))


@run(20)
@given(logs(), st.data())
def test_the_names_of_ids_are_no_matter(case: Case, data: st.DataObject) -> None:
    """Every column under its own bijection, into ids that may be of another type."""
    types = dict(case.types)
    relabelled = [dict(row) for row in case.rows]
    for name in COLUMNS:
        present = list({row[name]: None for row in case.rows})
        types[name], ids = KINDS[data.draw(st.sampled_from(["text", "int64", "uint64", "large text"]))]
        names = data.draw(st.lists(ids, min_size=len(present), max_size=len(present), unique=True))
        bijection = dict(zip(present, names, strict=True))
        for row in relabelled:
            row[name] = bijection[row[name]]
    assert_equal(elute_check(replace(case, rows=relabelled, types=types)), elute_check(case))


@run(20)
@given(logs(max_rows=20), st.data())
def test_more_impressions_never_disconnect(case: Case, data: st.DataObject) -> None:
    """Rows that show items, old or new, under factors the log already has: components only ever join."""
    role = {*case.item_columns, "query", "doc"} - set(case.bias)
    added = []
    for _ in range(data.draw(st.integers(1, 6))):
        row = dict(data.draw(st.sampled_from(case.rows)))
        for name in sorted(role):
            row[name] = data.draw(st.sampled_from(case.rows))[name]
        added.append(row)
    before, after = elute_check(case), elute_check(replace(case, rows=case.rows + added))
    assert after["factors"] == before["factors"]
    assert after["components"] <= before["components"]
    assert after["recoverable"] or not before["recoverable"]
    assert after["component_sizes"][0] >= before["component_sizes"][0]
    assert after["impressions"] > before["impressions"]


@run(20)
@given(logs())
def test_every_row_twice(case: Case) -> None:
    """The structure stays, the impressions and clicks double."""
    before, after = elute_check(case), elute_check(replace(case, rows=case.rows + case.rows))
    assert_equal(after, before, STRUCTURE)
    assert (after["impressions"], after["clicks"]) == (2 * before["impressions"], 2 * before["clicks"])


@run(20)
@given(logs(clicks=("bool", "int64")))
def test_counting_first_is_no_matter(case: Case) -> None:
    """A log of single impressions and the same log with equal rows counted give one verdict."""
    counted: dict[tuple[Any, ...], Row] = {}
    for row in case.rows:
        ids = {name: row[name] for name in COLUMNS}
        cell = counted.setdefault(tuple(ids.values()), ids | {"impressions": 0, "click": 0})
        cell["impressions"] += 1
        cell["click"] += int(row["click"])
    assert_equal(elute_check(replace(case, rows=list(counted.values()), clicks="counts")), elute_check(case))
