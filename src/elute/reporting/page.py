"""The page as a whole: what is known of a log, on one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from elute._util.files import write_text
from elute._util.text import format_count, format_share, to_one_line
from elute.checking.check import Check
from elute.checking.check import check as run_check
from elute.errors import EluteError
from elute.estimate.inference.certificate import Certificate
from elute.fits.fit import Fit
from elute.judging.judgments import find_known
from elute.repair.plan import AnyPlan
from elute.reporting.document import render_document
from elute.reporting.parts import Commands, Section
from elute.reporting.sections import across, curves, moves, repair_plan, structure, usable, verdicts, worth
from elute.results.base import Fields, Result
from elute.results.card import Card, Tone

_TILES = 6
"""Of the first screen: one line of them."""


@dataclass(frozen=True, eq=False, repr=False)
class Report(Result):
    """A page on a checked log, whose log must still be open. What is not given is left out of the page.

    `certificate`: of `elute.certify`. `audit`: the fields of `elute audit --json`; `value`: those of
    `elute value --json`. `fits`: of `elute.fit`;
    the one the audit selects, else the first, is set against click rates. `commands`: lines that make it all again,
    each with what it is for. `missing`: likewise, what would add what the page lacks.
    """

    check: Check
    certificate: Certificate | None = None
    plan: AnyPlan | None = None
    fits: Sequence[Fit] = ()
    audit: Fields | None = None
    commands: Sequence[tuple[str, str]] = ()
    missing: Sequence[tuple[str, str]] = ()
    out: str | None = None
    """Where the page is written to."""
    value: Fields | None = None

    @cached_property
    def repaired(self) -> Check | None:
        """The check as if the plan had been carried out."""
        return None if self.plan is None else run_check(self.check.log, plan=self.plan)

    @property
    def verdict(self) -> tuple[Tone, str, str]:
        """A tone, a word, and a sentence."""
        check, repaired = self.check, self.repaired
        if check.recoverable:
            return check.look.tone, check.look.word, to_one_line(check.sentence, 600)
        if repaired is not None and repaired.recoverable and self.plan is not None:
            word = f"With a {self.plan.method} plan: {repaired.look.word.lower()}"
            if repaired.merged is not None and repaired.caution:
                word = f"With a {self.plan.method} plan: {repaired.merged.word.lower()}"
            tone: Tone = "warn" if repaired.reaches("estimable") else "bad"
            return tone, word, f"{check.sentence} {_describe_repair(repaired)}"
        if check.ranking is not None and check.ranking.share == 1:
            return "warn", "Recoverable query by query", check.sentence
        return "bad", "Not recoverable", check.sentence

    @property
    def figures(self) -> list[tuple[str, str]]:
        """Numbers for the first screen, each with its word."""
        planned = self.repaired is not None and self.repaired.recoverable
        fields = (self.repaired if planned and self.repaired is not None else self.check).to_dict()
        out, known = [], fields["precision"]
        if known is not None:
            out.append((format_share(known["impressions_known_share"]), "of impressions with a known propensity"))
            if known["queries_ordered_share"] is not None:
                out.append((format_share(known["queries_ordered_share"]), "of pairs in queries certain"))
        if self.fits and (judged := find_known(self._main_fit, self.check.log.roles.query)) is not None:
            out.append((_shorten(int(judged.sum())), "judgments to stand behind"))
        parts = (_shorten(fields["components"]), "component" if fields["components"] == 1 else "components")
        out += [] if self.check.recoverable else [parts]
        words = [name for name in ("impressions", "clicks", "items", "factors") if fields[name] is not None]
        out += [(_shorten(fields[name]), name) for name in words]
        out += [parts] if self.check.recoverable else []
        if fields["rankable_share"] is not None:
            out.append((format_share(fields["rankable_share"]), "of queries linked"))
        return out[:_TILES]

    @cached_property
    def sections(self) -> list[Section]:
        """Everything below the first screen, in the order of the work: log, repair, fit, audit."""
        check = self.check
        several = None if check.recoverable else structure.size_section(check)
        found: list[Section | None] = [
            usable.usable_section(check, self._main_fit if self.fits else None),
            structure.graph_section(check, self.plan),
            several,
            structure.rankable_section(check),
            across.bounds_section(check, self.fits),
            structure.subsets_section(check),
            structure.links_section(check, self.certificate),
        ]
        if self.plan is not None and self.repaired is not None:
            found.append(repair_plan.plan_section(check, self.repaired, self.plan))
        found.append(curves.propensity_section(check, self.fits))
        if self.fits:
            found.append(moves.moves_section(self._main_fit, check.log.roles))
        if self.audit is not None:
            found += [verdicts.audit_section(self.audit), verdicts.assumptions_section(self.audit)]
        if self.value is not None:
            found.append(worth.value_section(self.value))
        found.append(structure.health_section(check))
        if self.commands:
            lead = "These commands produce the results on this page."
            found.append(Section("again", "Run it again", lead, [Commands(self.commands)]))
        if self.missing:
            lead = "These commands would add what this page lacks."
            found.append(Section("more", "Not on this page", lead, [Commands(self.missing)]))
        return [section for section in found if section is not None]

    @property
    def _main_fit(self) -> Fit:
        selected = None if self.audit is None else self.audit.get("selected")
        return next((fit for fit in self.fits if fit.name == selected), self.fits[0])

    def html(self) -> str:
        """The page."""
        return render_document(self.check.log.engine.label, self.verdict, self.figures, self.missing[:1], self.sections)

    def save(self, path: str | Path) -> None:
        """Write the page, whole or not at all."""
        if Path(path).is_dir():
            raise EluteError(f"'{path}' is a folder; name a file, as in `out='{Path(path) / 'report.html'}'`")
        write_text(path, self.html())

    def to_dict(self) -> dict[str, Any]:
        """The fields of `elute report --json`."""
        tone, word, sentence = self.verdict
        return {
            **({} if self.out is None else {"report": self.out, "bytes": Path(self.out).stat().st_size}),
            "recoverable": self.check.recoverable,
            "rung": self.check.rung,
            "verdict": sentence,
            "headline": word,
            "tone": tone,
            "sections": [section.key for section in self.sections],
        }

    @classmethod
    def describe(cls, fields: Fields) -> Card:
        return Card(fields["tone"], fields["headline"], fields["verdict"])

    def card(self) -> Card:
        """The page's first screen; `html` is all of it."""
        tone, word, sentence = self.verdict
        where = "save the report to open the page" if self.out is None else f"the page is in {self.out}: open it"
        return Card(tone, word, sentence, self.figures, notes=[f"{where} in a browser"])


def _describe_repair(repaired: Check) -> str:
    """What the plan brings, in a sentence; in two where it leaves nothing to debias with."""
    caution = f" {repaired.caution}" if repaired.caution else ""
    if repaired.ranking is None:
        return f"The plan joins them into one component.{caution}"
    queries = format_count(repaired.ranking.queries)
    return f"The plan joins them into one component, which then has all items of all {queries} queries.{caution}"


def _shorten(n: int) -> str:
    """A number that fits a tile: the sections have it in full."""
    for size, letter in ((1e9, "G"), (1e6, "M")):
        if n >= size:
            return f"{n / size:.3g} {letter}"
    return format_count(n)
