"""The one error users see: a line that says what is wrong, where, and what to do next."""

from __future__ import annotations


class EluteError(Exception):
    """Input that elute cannot use. The message is one line, meant to be read by a person."""
