"""The reproductions by name. Modules are imported when they run: some need what only an extra installs."""

from __future__ import annotations

import time
from dataclasses import replace
from importlib import import_module

from elute.errors import EluteError
from elute_reproduce.result import Reproduction
from elute_reproduce.study import Study

STUDIES: dict[str, str] = {
    "identifiability-table1": "learners on a set in two components, alone and repaired",
    "identifiability-figure3": "recovery over components and clicks",
    "identifiability-figure4ab": "which swap to show, which factors to merge",
    "identifiability-figure6": "observation curves, alone and merged",
    "identifiability-table2": "learners under contextual bias, from two starts, alone and merged (with Table 6)",
    "identifiability-table4": "the identifiability graph under positions and 5,000 contexts",
    "identifiability-figure4cd": "how often the graph is connected, over the number of contexts",
    "identifiability-figure7": "how often the graph is connected, over sample size and number of features",
    "plans": "swap plans carried out: what they promise, beside other ways to the same",
    "plans-looks": "a swap plan looked at as often as one likes",
    "plans-budget": "whether standard errors that a budget promises come",
    "plans-bounds": "whether bounds across components hold",
    "repair-budget": "a traffic budget spent well, at random, or on the links alone",
    "upe-figure3": "propensities that learners find under weak and strong logging policies",
    "upe-table1": "neural learners online, with lists of their own (hours without a GPU, as all of upe-*)",
    "upe-figure4": "the propensity of position 1 as lists are renewed online",
    "upe-table2": "neural learners offline, on the lists of a weak policy",
    "upe-table3": "what UPE's confounding effect is fitted to",
    "upe-figure5": "UPE and the naive joint model",
    "upe-propensities": "which learner finds the propensities, and why UPE cannot: its optimum solved exactly",
    "upe-readings": "readings of UPE that the other pages leave out, beside their exact optimum",
    "fit-yandex": "propensities and held-out perplexity on real clicks",
    "clicks-yandex": "session click models and their held-out perplexity on real clicks",
    "clicks-sparse": "session click models from 2 to 200 impressions a document, and on real clicks with intervals",
    "fit-priors": "where the priors help, and whether their error bars hold",
    "fit-coverage": "how often 95% intervals of propensities hold the truth",
    "additive": "several biases at once: effects that multiply beside combinations, merging, leaving a column out",
    "known": "whether what a check calls known is, from dense to very sparse logs",
    "score-adjusted": "clicks adjusted for the logging policy's score: propensities, intervals, tests of it",
    "watch": "false alarms of a watch over daily parts, and days until it tells of changes",
    "value": "what rankings would earn: bias, coverage and errors by world, and on real clicks",
    "value-metrics": "whether intervals of DCG, nDCG and success of rankings hold",
    "cmip-figure1": "relevance of two click models against the logging policy's ranks",
    "cmip-figure2": "seven click models: what is known in advance, and perplexity under another policy",
    "cmip-table1": "which metrics predict perplexity under another policy",
    "cmip-table2": "what choosing a click model by these metrics loses",
    "cmip-selection": "what elute audit takes, beside the nine strategies of Table 2",
    "cmip-calibrated": "whether right models pass and wrong ones fail, from dense to sparse logs",
    "limits": "how often tests find where a click model's assumptions fail, and the limits paper's own numbers",
}
"""Name and what it shows. The module is the paper's folder and the rest of the name: `upe-table1` is `upe.table1`."""


def reproduce(name: str, study: Study) -> Reproduction:
    """Run one."""
    if name not in STUDIES:
        raise EluteError(f"no reproduction '{name}'; there are: {', '.join(STUDIES)}")
    began = time.perf_counter()
    result: Reproduction = import_module(module_name(name)).run(study)
    return replace(result, command=study.command(name), seconds=time.perf_counter() - began)


def module_name(name: str) -> str:
    """Where a reproduction lies."""
    paper, _, of_paper = name.partition("-")
    return f"elute_reproduce.{paper}.{of_paper or 'study'}"
