"""The errors users see: a line that says what is wrong, where, and what to do next.

Messages speak Python. A parameter of the library stands in them as `` `name=` `` or `` `name='value'` ``, a verb as
`` `elute.verb` ``; the command line spells these as its own flags and commands (`elute.cli.spelling`).
"""

from __future__ import annotations


class EluteError(Exception):
    """Input that elute cannot use. The message is one line, meant to be read by a person; `code` names the kind of
    problem for programs."""

    code = "unusable"

    def __init__(self, message: str, *, code: str | None = None) -> None:
        super().__init__(message)
        if code is not None:
            self.code = code


class NotRecoverable(EluteError):
    """The log falls into components between which nothing can be compared."""

    code = "not_recoverable"

    def __init__(self, components: int) -> None:
        self.components = components
        super().__init__(
            f"not recoverable: {components:,} components, between which nothing can be compared. Repair the log first: "
            "`elute.merge` gives a plan to pass as `plan=`; or pass `allow_unidentified=True` and compare only within "
            "components"
        )


class NotEstimable(NotRecoverable):
    """Items link all factors of the log, but no chain of clicks determines their ratios."""

    code = "not_estimable"

    def __init__(self, reason: str) -> None:
        self.components, self.reason = 1, reason
        EluteError.__init__(
            self,
            f"not estimable: {reason} Leave out what hangs loose (`max_position=`, `min_factor_impressions=`), or pass "
            "`allow_unidentified=True`, with `prior='smooth'` where neighbouring factors are alike",
        )


class MissingExtra(EluteError):
    """Something needs a package that the core install does not bring."""

    code = "missing_extra"

    def __init__(self, what: str, needs: str, extra: str) -> None:
        self.extra = extra
        super().__init__(f'{what} needs {needs}; run: pip install "elute[{extra}]"')


class Diverged(EluteError):
    """Training whose loss ran away to what is no number."""


class NotFitted(EluteError, AttributeError):
    """A result was asked of a model before `fit`."""

    code = "not_fitted"
