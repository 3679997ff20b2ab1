"""The library's messages in the command line's words.

The library speaks Python to those who call it from Python (`elute.errors`). Only what stands in backticks exactly as
it writes it is spelled anew: everything else may be a name from a log.
"""

from __future__ import annotations

import re
import shlex

from elute.cli.commands import VERBS

_FLAGS = {
    "all_items": "all",
    "fits": "fit",
    "form": "format",
    "kind": "from",
    "learner_settings": "learner-setting",
    "rankings": "ranking",
    "vectors": "bias-features",
}
"""Parameters whose flag is not their name with dashes."""

_COMMANDS = {
    "follow": "'elute repair --continue'",
    "link": "'elute repair --method score'",
    "merge": "'elute repair --method merge'",
    "read_log": "the command",
    "swap": "'elute repair --method swap'",
    **{verb: f"'elute {verb}'" for verb in VERBS},
}
"""What the command line has for a function of the library."""

_PARAMETER = re.compile(r"""`([a-z][a-z_]*)=(|True|False|None|-?[0-9][0-9.e+-]*|'[^'`]*'|"[^"`]*")`""")
_QUOTES = ("'", '"')
_FUNCTION = re.compile(r"`elute\.([a-z_]+)`")


def spell(message: str) -> str:
    """`` `session=` `` becomes --session, `` `elute.fit` `` becomes 'elute fit'."""
    return _FUNCTION.sub(_spell_command, _PARAMETER.sub(_spell_option, message))


def _spell_option(found: re.Match[str]) -> str:
    flag = "--" + _FLAGS.get(found[1], found[1].replace("_", "-"))
    value = found[2]
    if value in ("", "True"):
        return flag
    if value in ("False", "None"):
        return f"no {flag}"
    return f"{flag} {shlex.quote(value[1:-1] if value[0] in _QUOTES else value)}"


def _spell_command(found: re.Match[str]) -> str:
    """A name of the library that no command stands for stays as it is."""
    return _COMMANDS.get(found[1], found[0])
