"""A process that runs verbs for the fuzzer, one after the other: to start Python for each would take most of the time.

It reads a line of JSON for each call and answers with one. Where it dies of a signal, the fuzzer sees that and starts
another.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import traceback
import warnings
from typing import Any


def serve() -> None:
    """Answer calls until there are no more."""
    from elute.cli import progress

    progress._PATIENCE_ELSEWHERE = 1e6  # how far it is says nothing of what it makes of a file
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)  # what libraries print past Python is not an answer
    for line in sys.stdin:
        answers.write(json.dumps(call(json.loads(line))) + "\n")
        answers.flush()


def call(arguments: list[str]) -> dict[str, Any]:
    """Run the command line; `code`, what it printed, and the traceback of what it did not foresee."""
    from elute.cli import main

    out, err, code, trace = io.StringIO(), io.StringIO(), 0, ""
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), warnings.catch_warnings():
        try:
            main(arguments, prog_name="elute")
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        except BaseException:
            code, trace = 1, traceback.format_exc()
    return {"code": code, "out": out.getvalue(), "err": err.getvalue(), "trace": trace}


if __name__ == "__main__":
    serve()
