"""The page as text: what it says, what it may do, and that a log's text stays text wherever it goes."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from report_worlds import EVIL, charts_of, evil_log, toy_log, whole_report

import elute
from elute.reporting import document
from elute.reporting.charts.looks import separate_labels
from elute.reporting.markup import Safe, escape_text, script_json, tag
from elute.reporting.page import Report
from elute.reporting.sections.moves import rank_moves

KNOWN = set(
    re.findall(
        r"\w+",
        "html head meta title style body header div span button p h1 h2 h3 dl dt dd nav a main section figure "
        "figcaption b table thead tbody tr th td ol li code footer script",
    )
)


class Elements(HTMLParser):
    """Every element of a page with its attributes, and the text outside scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = [("html", {})]
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, name: str, attributes: list[tuple[str, str | None]]) -> None:
        self.found.append((name, dict(attributes)))

    def handle_data(self, data: str) -> None:
        if self.found[-1][0] not in ("script", "style"):
            self.texts.append(data)

    def named(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for tag_name, attributes in self.found if tag_name == name]


@pytest.fixture(scope="module")
def evil() -> str:
    with elute.read_log(evil_log(), bias=["position", "dev<i>ce.x[0]"]) as log:
        return whole_report(log).html()


@given(st.text(), st.text())
def test_markup_keeps_any_text(inside: str, attribute: str) -> None:
    page = Elements(tag("p", inside, title=attribute) + tag("b", "end"))
    assert [name for name, _ in page.found[1:]] == ["p", "b"]
    shown = "".join(page.texts)
    assert shown.endswith("end")
    if inside.isprintable() and attribute.isprintable():
        assert page.found[1][1] == {"title": attribute}
        assert shown == inside + "end"


@settings(max_examples=40)
@given(st.dictionaries(st.text(max_size=9), st.lists(st.text(max_size=9) | st.integers() | st.none(), max_size=3)))
def test_json_in_a_script_is_the_same_json_and_ends_no_script(data: Any) -> None:
    written = script_json(data)
    assert json.loads(written) == data
    assert not set("<>&\u2028\u2029") & set(written)


def test_safe_is_the_only_way_past_escaping() -> None:
    assert escape_text("<b>") == "&lt;b&gt;"
    assert escape_text(Safe("<b>")) == "<b>"
    assert tag("a", Safe("<i></i>"), href=None) == "<a><i></i></a>"


def test_a_log_of_hostile_names_makes_no_elements(evil: str) -> None:
    page = Elements(evil)
    assert len(page.named("script")) == 3
    assert not page.named("img")
    assert {name for name, _ in page.found} <= KNOWN
    assert not [key for _, attributes in page.found for key in attributes if key.startswith("on")]
    shown = "".join(page.texts)
    assert (
        EVIL[:20] in shown and "<b>phone</b>" in shown and "p<b>m" in shown and "No sign of the <u>policy</u>." in shown
    )


def test_names_reach_charts_as_data_only(evil: str) -> None:
    """Field names, expressions and keys are ours; hostile text appears as values of rows and as titles."""

    def walk(part: Any, path: tuple[str, ...]) -> None:
        if isinstance(part, dict):
            for key, value in part.items():
                assert not set("<>{}[]'\"`") & set(key), key
                walk(value, (*path, key))
        elif isinstance(part, list):
            for value in part:
                walk(value, path)
        elif isinstance(part, str) and set("<>`") & set(part) and "values" not in path:
            assert path[-1] in ("title", "test") and (path[-1] == "title" or part.startswith(("!pick", "datum.kind")))

    found = charts_of(evil)
    for one in found.values():
        walk(one["spec"], ())
    assert any("</script>desk" in json.dumps(one["spec"]) for one in found.values())


def test_the_page_names_its_scripts_and_asks_for_nothing(evil: str) -> None:
    page = Elements(evil)
    policy = next(one["content"] for one in page.named("meta") if one.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None and policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-eval" not in policy and "http" not in policy
    scripts = re.findall(r"<script>(.*?)</script>", evil, re.DOTALL)
    for script in scripts:
        assert base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() in policy
    assert len(scripts) == 2
    outside = [value for _, attributes in page.found for value in attributes.values() if value and "//" in value]
    assert outside == []
    assert [one["href"] for one in page.named("a") if not str(one["href"]).startswith("#")] == []
    assert len(evil) < 2_000_000


def test_every_chart_says_what_it_shows_and_how_to_read_it(evil: str) -> None:
    page = Elements(evil)
    figures = len(page.named("figure"))
    assert figures == len(charts_of(evil)) == evil.count("What it shows.") == evil.count("How to read it.") >= 8


def test_every_chart_compiles(evil: str) -> None:
    """By Vega-Lite itself; warnings of unknown parts are errors."""
    import vl_convert

    for key, one in charts_of(evil).items():
        compiled = vl_convert.vegalite_to_vega(one["spec"])
        assert compiled["marks"], key


def test_the_evidence_behind_assumptions_is_drawn(evil: str) -> None:
    """A row a factor, with its name as it came, in the colour of its own verdict."""
    drawn = {one["spec"].get("title", key): json.dumps(one["spec"]) for key, one in charts_of(evil).items()}
    (offsets,) = [spec for spec in drawn.values() if "offset in its standard errors" in spec]
    assert "position <2>" in offsets
    assert offsets.count('"verdict": "off"') == 1
    assert offsets.count('"verdict": "as expected"') == 1
    assert sum("times what chance leaves" in spec for spec in drawn.values()) == 1


def test_sections_follow_what_is_given() -> None:
    with elute.read_log(toy_log(broken=False)) as log:
        check = elute.check(log)
        bare = Report(check)
        assert [section.key for section in bare.sections] == ["usable", "graph", "rankable", "links", "health"]
        assert bare.verdict[:2] == ("warn", "Estimable, not precisely known")
        fitted = Report(
            check,
            elute.certify(check.counts),
            fits=[elute.fit(log, relevance_prior="none")],
        )
        assert [section.key for section in fitted.sections][4:6] == ["propensity", "moves"]
    with elute.read_log(toy_log(broken=True)) as log:
        check = elute.check(log)
        assert Report(check).verdict[:2] == ("bad", "Not recoverable")
        assert "components" in [section.key for section in Report(check).sections]
        repaired = Report(check, plan=elute.merge(check))
        assert repaired.verdict[:2] == ("warn", "With a merge plan: estimable, not precisely known")
        assert "all items of all 30 queries" in repaired.verdict[2]


def test_where_every_query_can_be_ranked_the_verdict_says_so(chain: pa.Table) -> None:
    with elute.read_log(chain) as log:
        assert Report(elute.check(log)).verdict[:2] == ("warn", "Recoverable query by query")


def test_the_drawn_graph_has_the_logs_factors_and_links(chain: pa.Table) -> None:
    with elute.read_log(chain) as log:
        graph = charts_of(Report(elute.check(log)).html())["graph"]
    links, nodes = graph["spec"]["layer"][0]["data"]["values"], graph["spec"]["layer"][1]["data"]["values"]
    assert [(link["a"], link["b"]) for link in links] == [(0, 1), (2, 3)]
    assert [node["name"] for node in nodes] == [f"position {k}" for k in range(1, 6)]
    parts = {node["name"]: node["component"] for node in nodes}
    assert parts["position 1"] == parts["position 2"] != parts["position 3"] == parts["position 4"]
    assert ("shares most items with", "none: no item links it to another") in map(tuple, graph["details"]["4"])


def test_no_line_joins_components() -> None:
    """Each has a scale of its own: position 4 and position 5 cannot be compared."""
    with elute.read_log(toy_log(broken=True)) as log:
        fit = elute.fit(log, relevance_prior="none", allow_unidentified=True)
        page = Report(elute.check(log), fits=[fit]).html()
    rows = charts_of(page)["propensity"]["spec"]["data"]["values"]
    by_line = {name: {row["x"] for row in rows if row["series"] == name} for name in {row["series"] for row in rows}}
    assert sorted(map(sorted, by_line.values())) == [[1, 2, 3, 4], [5, 6, 7, 8, 9, 10]]
    assert "in its component" in page


def test_error_bars_take_in_that_clicks_depend_on_each_other() -> None:
    """On the page and on the card: every row three times."""
    log_table = pa.concat_tables([toy_log(broken=False)] * 3)
    with elute.read_log(log_table) as log:
        fit = elute.fit(log)
        rows = charts_of(Report(elute.check(log), fits=[fit]).html())["propensity"]["spec"]["data"]["values"]
    assert fit.propensities is not None
    plain, error = fit.propensities["log_se"].to_numpy(), fit.propensities["log_se_clusters"].to_numpy()
    assert (error[plain > 0] > 1.3 * plain[plain > 0]).all()
    value, drawn = fit.propensities["propensity"].to_numpy(), sorted(rows, key=lambda row: row["x"])
    assert [row["low"] for row in drawn] == pytest.approx(value * np.exp(-2 * error))
    chart = fit.card().chart
    assert chart is not None and chart.low is not None
    assert chart.low[1:] == pytest.approx((value * np.exp(-2 * error))[1:])


def test_names_cut_alike_keep_their_lines() -> None:
    rows = [{"label": "a", "value": 1}, {"label": "b", "value": 2}, {"label": "a", "value": 3}]
    assert [row["label"] for row in separate_labels(rows)] == ["a", "b", "a (2)"]


def test_moves_rank_within_the_largest_component_what_is_known() -> None:
    table = pa.table(
        {
            "doc_id": list("abcdef"),
            "component": [0, 0, 0, 0, 1, 0],
            "relevance": [0.1, 0.2, 0.3, 0.4, 0.9, 0.5],
            "log_se": [0.1, 0.1, 0.1, 0.1, 0.1, 0.6],
            "impressions": [10, 10, 10, 10, 10, 10],
            "clicks": [4, 3, 2, 1, 9, 5],
        }
    )
    found = rank_moves(table)
    assert found.row.tolist() == [0, 1, 2, 3]
    assert np.allclose(found.rate, [0.4, 0.3, 0.2, 0.1])
    assert np.allclose(found.move, [-0.75, -0.25, 0.25, 0.75])


def test_clicks_of_hidden_items_are_found_under_rated() -> None:
    """The truth is known: of the items named under-rated, the true relevance beats the click rate's rank."""
    from elute.simulation import toy

    log_table = toy_log(broken=False, sessions=20_000)
    truth = toy.draw_truth(30, 3)
    known = dict(zip(truth["doc_id"].to_pylist(), truth["relevance"].to_pylist(), strict=True))
    with elute.read_log(log_table) as log:
        table = elute.PBM(relevance_prior="none").fit(log).relevance_
    found = rank_moves(table)
    ranked = np.array([known[table["doc_id"][int(row)].as_py()] for row in found.row]).argsort().argsort() / len(
        found.row
    )
    order = np.argsort(-found.move)
    assert (ranked[order[:8]] > found.by_rate[order[:8]] + 0.2).all()
    assert (ranked[order[-8:]] < found.by_rate[order[-8:]] - 0.2).all()


def test_a_log_without_clicks_or_queries_still_has_a_page() -> None:
    table = pa.table({"doc_id": [1, 1, 2, 3], "place": ["top", "side", "side", "foot"], "click": [0, 0, 0, 0]})
    with elute.read_log(table, item="doc_id", bias="place") as log:
        page = Report(elute.check(log))
        assert page.verdict[1] == "Not recoverable"
        assert "names no queries" in page.html()


def test_without_the_extra_the_install_line_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "vl_convert", None)
    document.load_library.cache_clear()
    with pytest.raises(elute.EluteError, match=r'pip install "elute\[report\]"'):
        document.load_library()
    document.load_library.cache_clear()
