"""What the codes of warnings, omissions and findings mean: one place for all of their texts.

A code is the short name under which a verb counts something that its reader should know of: `warnings` of a check,
`assumptions` of an audit, `withheld` of judgments, what a conversion leaves out.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import NamedTuple

from elute.errors import EluteError
from elute.results.watched import ALARMS


class Explanation(NamedTuple):
    """A code in words. `example` is a command to look closer with, on the logs of `elute demo`."""

    verb: str
    meaning: str
    why: str
    do: str
    example: str


_CHECK = "elute check demo/sound.parquet --session session_id"
_PRECISION = "elute check demo/sound.parquet --precision"
_ASSUME = "elute audit --assumptions --log demo/broken.parquet"
_LABELS = "elute audit --assumptions --log demo/sound.parquet --labels demo/truth.csv"
_JUDGE = "elute judge demo/fits/pbm --format quepid --out ratings.csv"
_PRECISE = "elute judge demo/fits/pbm --format quepid --min-precision 20 --out ratings.csv"
_BUNDLE = "elute judge clicks-fit --format xgboost --log clicks.parquet --features docs/data/letor.txt --out bundle"
_WATCH = "elute watch daily"
_UBI = "elute convert docs/data/ubi_queries.ndjson docs/data/ubi_events.ndjson --from ubi --out ubi.parquet"

EXPLANATIONS: dict[str, Explanation] = {
    "null_ids": Explanation(
        "check",
        "Rows with a null in an item, query or bias column were left out.",
        "Such a row belongs to no item or no factor. If nulls come with one client or one kind of result, what is left "
        "is no longer a fair picture of what users saw.",
        "See which column the message names. A few rows do no harm; if there are many, fix the export.",
        _CHECK,
    ),
    "no_impression": Explanation(
        "check",
        "Rows of an aggregated log (--impressions) that count no impression were left out.",
        "Without an impression there is nothing that could have been clicked.",
        "Nothing, if these rows are padding. If they have clicks, impressions are lost on the way: fix the export.",
        _CHECK,
    ),
    "position_from_zero": Explanation(
        "check",
        "A position column starts at 0.",
        "Harmless if every part of the log counts this way. If one client counts from 0 and another from 1, the same "
        "place has two names and two places share one, and propensities are mixtures of both.",
        "Compare the clients. If they differ, add 1 where it is missing, or add the client to --bias.",
        _CHECK,
    ),
    "repeated_on_page": Explanation(
        "check",
        "An item appears twice or more on one result page (the column given by --session).",
        "Rows that were exported twice count twice and make error bars too small. An item with two slots on a page "
        "splits its clicks between them.",
        "Remove duplicates from the export. If pages do repeat items, leave them and read error bars with care.",
        _CHECK,
    ),
    "thin_factors": Explanation(
        "check",
        "Some factors have fewer than 100 impressions.",
        "They may be connected, but their propensity is a guess, and so is everything that depends on them alone.",
        "Look at the standard errors with --precision; use fewer or coarser bias columns (--explore shows which); "
        "or collect more of the log.",
        _PRECISION,
    ),
    "factors_without_clicks": Explanation(
        "check",
        "Some factors have impressions but not a single click.",
        "Their propensity is estimated as 0: items that were shown only there cannot be told apart.",
        "Check that clicks there are logged at all. If they are, the place is rarely seen: leave its rows out, or "
        "merge it with a neighbour through coarser bias columns.",
        _PRECISION,
    ),
    "dominant_query": Explanation(
        "check",
        "One query has more than half of the impressions.",
        "Propensities are then mostly those of its users, and its clicks hardly count as independent.",
        "Take error bars by query: 'elute fit --bootstrap 200'. Or fit with and without that query and compare.",
        _CHECK,
    ),
    "items_seen_once": Explanation(
        "check",
        "Some items were shown only once.",
        "They link no factors, and one click or none says next to nothing about their relevance.",
        "Nothing, if they are the tail of the log: 'elute fit' has a prior for them, 'elute judge --min-precision' "
        "leaves them out. If most are, check that ids are stable: ids that change with every export look like this.",
        _PRECISE,
    ),
    "hash_collisions": Explanation(
        "check",
        "There are so many items that two may share a 64-bit hash.",
        "Two items taken for one could link components that nothing links, and the verdict would be too good.",
        "Run again with --exact: items are then told apart by value.",
        "elute check demo/sound.parquet --exact",
    ),
    "unique_fit": Explanation(
        "audit --assumptions",
        "Whether the relevance found is the only one that fits these clicks.",
        "Where it is not, items and factors that only scale together are known up to that scale, and the fit has "
        "picked one by chance.",
        "Rejected: compare relevance only within what is connected, or repair the log with 'elute repair'.",
        _ASSUME,
    ),
    "examination": Explanation(
        "audit --assumptions",
        "Whether clicks are relevance times propensity, r·o, with the bias columns given.",
        "All that elute fit's pbm says rests on it. A large log rejects it for small deviations too: read the size.",
        "Rejected: try --groups COL with columns that might matter, and read 'linear' and 'affine' beside it.",
        _ASSUME,
    ),
    "additivity": Explanation(
        "audit --assumptions",
        "Whether several bias columns act by the product of their effects, as a formula for --bias says.",
        "Where two columns act otherwise together, propensities of the combinations that differ most are wrong.",
        "Rejected: join the two columns that are named by ':' in the formula, and check that the log can bear it.",
        "elute audit --assumptions --log demo/layouts.parquet --bias 'position + device + layout'",
    ),
    "groups": Explanation(
        "audit --assumptions --groups COL",
        "Whether factors act alike for every value of a column: every device, country or query.",
        "If positions matter more on a phone, one propensity a position is wrong for everybody.",
        "Rejected: add the column to --bias, check that the log is still recoverable, and audit again.",
        "elute audit --assumptions --log demo/sound.parquet --groups query_id --charts evidence",
    ),
    "linear": Explanation(
        "audit --assumptions",
        "Whether click rates of the same items at two factors are proportional, as under r·o, without an offset.",
        "An offset means clicks that do not come from relevance: trust in the first places, or clicks by accident. "
        "Dividing by a propensity does not remove it.",
        "Rejected while 'affine' holds: 'elute fit --model affine', then 'affine-ipw' instead of 'ipw'.",
        _ASSUME,
    ),
    "affine": Explanation(
        "audit --assumptions",
        "Whether click probability is an affine function (a·R + b) of any relevance at all, by factor.",
        "If it is not, no weighting of clicks can be unbiased (Theorem 5.5 of the limits paper).",
        "Rejected: look for what is missing from --bias, other results on the page for instance; try a session model.",
        _ASSUME,
    ),
    "linear_in_labels": Explanation(
        "audit --assumptions --labels FILE",
        "Whether the click rate at each factor is linear in the relevance that labels give.",
        "Clicks alone cannot show a bend that all factors share; labels can.",
        "Rejected: labels must be probabilities of relevance. Raw grades are often not; give a column 'relevance'.",
        _LABELS,
    ),
    "pairwise_debiasing": Explanation(
        "audit --assumptions",
        "Whether the assumption of unbiased LambdaMART holds, which XGBoost's lambdarank_unbiased rests on.",
        "It implies that there is no position bias at all (Theorem 7.2 of the limits paper).",
        "Rejected is the normal case. Train on weights from a fit instead: 'elute judge --format xgboost'.",
        _ASSUME,
    ),
    "not_in_fit": Explanation(
        "judge",
        "The log (--log) shows a query and document that the fit has no item for.",
        "Without an item there is no relevance to grade.",
        "Give the log that was fitted, or fit this one.",
        _JUDGE,
    ),
    "several_items": Explanation(
        "judge",
        "One query and document stand for several items of the fit.",
        "Its items have several relevances, and nothing says which to take.",
        "Name columns that tell items apart with --query and --doc, or fit with --item query_id,doc_id.",
        _JUDGE,
    ),
    "not_rankable": Explanation(
        "judge",
        "The query's items lie in more than one component.",
        "Across components relevance has no common scale: an order between such items would be arbitrary.",
        "Repair the log ('elute repair'), fit with the plan, and judge again.",
        "elute repair demo/broken.parquet --method merge --out merge.json",
    ),
    "no_estimate": Explanation(
        "judge",
        "The clicks leave the item's relevance open.",
        "Connected is not enough: where no chain of clicks ties a factor to the rest, a ratio may be anything.",
        "More of the log, or a prior: 'elute fit --prior smooth'.",
        _PRECISION,
    ),
    "imprecise": Explanation(
        "judge --min-precision P",
        "The item's relevance has a standard error above 1/P.",
        "A grade that next week's clicks would change is worse than none.",
        "Nothing, or a lower --min-precision, or more of the log.",
        _PRECISE,
    ),
    "alone_in_query": Explanation(
        "judge",
        "The item is the only one of its query that can be compared.",
        "Quantiles grade an item by its place among others of its query; here there are none.",
        "Nothing. With thresholds (--grades 0.1,0.3,0.6) it gets a grade if its place among all items is known; with "
        "--all in any case, marked.",
        "elute judge demo/fits/pbm --format quepid --grades 0.1,0.3,0.6 --out ratings.csv",
    ),
    "place_not_known": Explanation(
        "judge",
        "The clicks leave more than half of the item's place in its query open.",
        "An item that was shown a few times and never clicked may be good or bad. A grade would be a guess that "
        "whoever reads it takes for a finding.",
        "More of the log. If a guess is better than nothing: --all exports such items too, marked.",
        "elute judge demo/fits/pbm --format quepid --all --out ratings.csv",
    ),
    "pages_without_click": Explanation(
        "judge --format lightgbm|xgboost",
        "Result pages on which nothing was clicked.",
        "A ranking loss compares a clicked document with the others; there is none.",
        "Nothing.",
        _BUNDLE,
    ),
    "pages_of_one_document": Explanation(
        "judge --format lightgbm|xgboost",
        "Result pages with a single document.",
        "There is nothing to rank on them.",
        "Nothing, unless most are: then check that --session names a page.",
        _BUNDLE,
    ),
    "pages_with_gaps": Explanation(
        "judge --format xgboost",
        "Result pages whose positions do not count up without gaps; left out of positions.parquet only.",
        "XGBoost takes the order of rows as the position, so a gap would shift everything that follows.",
        "Train on weighted.parquet, which has them all. If gaps are an accident, log all results of a page.",
        _BUNDLE,
    ),
    "orphans": Explanation(
        "convert",
        "Clicks on a result that was not shown on their page; left out.",
        "A few come from banners and late clicks. Many mean that clicks and pages name documents differently, or that "
        "the page's id does not reach the click.",
        "Above a few per cent: compare an orphan's ids with its page by hand, and fix the client.",
        _UBI,
    ),
    "repeated_clicks": Explanation(
        "convert",
        "Clicks after the first on one result of a page; counted as one click.",
        "A result is clicked or not: a second click on it is a user coming back, not more relevance.",
        "Nothing.",
        _UBI,
    ),
    "malformed": Explanation(
        "convert --skip-malformed",
        "Lines that could not be read; left out.",
        "One broken line is an accident; many often mean a wrong --from or a file that was cut off.",
        "The file and line of the first ones are named: look at them, and fix them.",
        "elute convert docs/data/ubi_queries.ndjson docs/data/ubi_events.ndjson --from ubi --skip-malformed "
        "--out ubi.parquet",
    ),
    "queries_without_results": Explanation(
        "convert --from ubi",
        "Queries without query_response_hit_ids; left out.",
        "What was shown is not known, so a missing click says nothing.",
        "Have the client, or the UBI plugin, log the ids of the results.",
        _UBI,
    ),
    "queries_without_text": Explanation(
        "convert --from ubi",
        "Queries without user_query; left out.",
        "The text is what makes two searches the same query, and so two impressions the same item.",
        "Have the client log user_query; for pages without text (categories) put the category there.",
        _UBI,
    ),
    "repeated_queries": Explanation(
        "convert --from ubi",
        "Documents of ubi_queries with the query_id of an earlier one; left out.",
        "A query_id names one page. Two pages under one name would share their clicks.",
        "A few are retries. Many: the client must make a new query_id for every search.",
        _UBI,
    ),
}

EXPLANATIONS |= {code: Explanation("watch", *texts, _WATCH) for code, texts in ALARMS.items()}


def explain(code: str) -> tuple[str, Explanation]:
    """The code as it is written and its explanation; spaces, hyphens and case do not matter."""
    wanted = code.strip().lower().replace(" ", "_").replace("-", "_")
    if wanted in EXPLANATIONS:
        return wanted, EXPLANATIONS[wanted]
    near = get_close_matches(wanted, EXPLANATIONS, n=3, cutoff=0.6)
    hint = f"did you mean {' or '.join(near)}?" if near else "'elute explain' lists all codes"
    raise EluteError(f"no code '{code}'; {hint}")
