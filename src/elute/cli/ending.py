"""How a command ends that did not do what it was asked for: in one line on stderr, and with an exit code.

Errors that somebody foresaw say what to do. All others end with a code for whoever repairs them (the kind of error and
where it came from) and the version; `--debug` shows the rest. Ctrl-C ends within two seconds whatever runs: Python
itself would wait for a kernel, or for a server that does not answer.
"""

from __future__ import annotations

import errno
import os
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

from elute.errors import EluteError, NotRecoverable

FAILED = 1
NOT_RECOVERABLE = 3
"""Exit code of a verb that ran and found, or left, the log not recoverable."""
ALARM = 4
"""Exit code of `elute watch` where something changed."""
INTERRUPTED = 130
"""As shells have it: 128 and the number of the signal."""

LONGEST = 2000
"""Characters of an error; names from a log may be of any length."""
_PATIENCE = 1.3
"""Seconds in which Python may unwind by itself after Ctrl-C."""
_FULL = (errno.ENOSPC, errno.EDQUOT)
_MEMORY = ("OutOfMemoryException", "OutOfMemoryError")
"""Of DuckDB and jax, which are not imported for this."""
_PACKAGE = Path(__file__).parents[1]


def end(error: BaseException, debug: bool) -> NoReturn:
    """Say what happened, and leave."""
    if debug:
        traceback.print_exception(error)
    _print_line(describe(error))
    recoverable = not isinstance(error, NotRecoverable)
    code = INTERRUPTED if isinstance(error, KeyboardInterrupt) else FAILED if recoverable else NOT_RECOVERABLE
    raise SystemExit(code) from error


def leave_if_interrupted(left: SystemExit) -> None:
    """Of a process of its own: at once. What libraries do at the end, Spark's for one, can take many seconds."""
    if left.code == INTERRUPTED:
        _leave_at_once()


def describe(error: BaseException) -> str:
    """One line, in the command line's words, without secrets and without end."""
    from elute._util.text import to_one_line
    from elute._util.urls import censor_urls
    from elute.cli.spelling import spell

    said = str(error) or type(error).__name__
    if isinstance(error, KeyboardInterrupt):
        said = "interrupted"
    elif isinstance(error, MemoryError) or type(error).__name__ in _MEMORY:
        said = f"out of memory ({said}); give it more, or less to do: `memory=` keeps on disk what does not fit"
    elif isinstance(error, OSError) and error.errno in _FULL:
        at = f" for {error.filename}" if error.filename else ""
        said = f"no space left on the disk{at}; free some, or write elsewhere"
    elif not isinstance(error, EluteError | OSError):
        said = f"this was not foreseen ({_name_place(error)}): {said}; --debug shows the rest, which is worth a report"
    return to_one_line(censor_urls(spell(said)), LONGEST)


def _name_place(error: BaseException) -> str:
    """The code of an error that nobody foresaw: its kind, the last line of elute's that it came by, the version."""
    from elute import __version__

    places = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    own = [(Path(file), line) for file, line in places if Path(file).is_relative_to(_PACKAGE)]
    at = f" at {own[-1][0].relative_to(_PACKAGE)}:{own[-1][1]}" if own else ""
    return f"{type(error).__name__}{at}, elute {__version__}"


def _print_line(line: str) -> None:
    with suppress(OSError, ValueError):  # nobody listens
        print(f"elute: {line}", file=sys.stderr, flush=True)


@contextmanager
def in_one_line(debug: bool) -> Iterator[None]:
    """Within this, whatever is raised ends the process as above, and nothing else is printed of it."""
    with ExitStack() as until_done:
        until_done.enter_context(_hear_interrupts())
        if not debug:
            until_done.enter_context(_keep_others_quiet())
        try:
            try:
                yield
            finally:
                _flush()
        except Exception as error:
            end(error, debug)


def _flush() -> None:
    """Now, while an error can still be told; Python's own attempt at the end must not fail again."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except OSError as error:
            with suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
            if stream is sys.stdout and error.errno != errno.EPIPE:
                raise


@contextmanager
def _keep_others_quiet() -> Iterator[None]:
    """Errors that nobody can catch, of threads that only report and of what Python destroys; and libraries' own logs,
    where Spark's has a traceback for Ctrl-C."""
    import logging

    before: tuple[Any, Any, int] = threading.excepthook, sys.unraisablehook, logging.root.manager.disable
    threading.excepthook, sys.unraisablehook = (lambda _: None), (lambda _: None)
    logging.disable()
    try:
        yield
    finally:
        threading.excepthook, sys.unraisablehook = before[:2]
        logging.disable(before[2])


@contextmanager
def _hear_interrupts() -> Iterator[None]:
    """Leave on Ctrl-C within two seconds, unless Python has unwound by then.

    The system's handler writes a byte for every signal, whatever the main thread does; a thread of its own reads them.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ear, mouth = socket.socketpair()
    mouth.setblocking(False)
    before = signal.set_wakeup_fd(mouth.fileno(), warn_on_full_buffer=False)
    done = threading.Event()
    threading.Thread(target=_listen, args=(ear, done), daemon=True).start()
    try:
        yield
    finally:
        done.set()
        signal.set_wakeup_fd(before)
        mouth.close()


def _listen(ear: socket.socket, done: threading.Event) -> None:
    with ear:
        while heard := ear.recv(1):
            if heard[0] == signal.SIGINT:
                threading.Thread(target=_silence_spark, daemon=True).start()
                if not done.wait(_PATIENCE):
                    _print_line("interrupted")
                    _leave_at_once()


def _silence_spark() -> None:
    """Its own process would tell of every task that ends now."""
    session = getattr(sys.modules.get("pyspark"), "SparkContext", None)
    context = getattr(session, "_active_spark_context", None)
    if context is not None:
        with suppress(Exception):
            context.setLogLevel("OFF")


def _leave_at_once() -> NoReturn:
    from elute._util import leaving

    removing = threading.Thread(target=leaving.remove_all, daemon=True)
    removing.start()
    removing.join(0.4)
    os._exit(INTERRUPTED)
