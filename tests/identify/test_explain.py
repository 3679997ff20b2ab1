"""Components and isolated factors in words."""

from __future__ import annotations

import pyarrow as pa

import elute


def test_components_and_isolated_factors(chain: pa.Table) -> None:
    check = elute.check(elute.read_log(chain))
    assert [(p.factors, p.items, p.impressions, p.clicks) for p in check.component_details] == [
        (2, 2, 3, 1),
        (2, 1, 2, 2),
        (1, 1, 1, 0),
    ]
    assert check.component_details[1].example_factors == [{"position": 3}, {"position": 4}]
    assert check.component_details[1].example_items == [{"query_id": "q2", "doc_id": "c"}]
    assert check.isolated_factors == 1
    assert check.isolated[0].factor == {"position": 5}
    assert check.isolated[0].reason == "position 5 was only ever shown with 1 item, not seen under any other factor"


def test_lists_are_short_and_totals_are_not() -> None:
    n = 300
    log = pa.table({"query_id": [0] * n, "doc_id": range(n), "position": range(n), "click": [0] * n})
    fields = elute.check(elute.read_log(log)).to_dict()
    assert fields["components"] == fields["isolated_factors"] == n
    assert len(fields["component_sizes"]) == len(fields["component_details"]) == len(fields["isolated"]) == 20


def test_examples_do_not_depend_on_the_order_of_rows(chain: pa.Table) -> None:
    forward, backward = (
        elute.check(elute.read_log(t)).component_details for t in (chain, chain.take(list(range(5, -1, -1))))
    )
    assert forward == backward


def test_verdict_in_words(chain: pa.Table) -> None:
    broken = elute.check(elute.read_log(chain))
    assert broken.sentence == (
        "Relevance is not recoverable from this log as a whole: its 5 factors fall into 3 components that no item "
        "links. 3 of 3 queries (100.0%) can still be ranked."
    )
    sound = elute.check(elute.read_log(chain.slice(0, 3)))
    assert sound.sentence.startswith(
        "Loose: relevance is recoverable in principle (its 2 factors form one component), but"
    )
    assert broken.sentence in repr(broken)
    page = broken._repr_html_()
    assert "<svg" in page
    assert "not recoverable" in page
