"""The Spark session there is, or one of our own."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from elute._util import scratch
from elute.engines.spark.errors import translate_errors
from elute.errors import MissingExtra

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_QUIET = {"spark.ui.showConsoleProgress": "false", "spark.ui.enabled": "false", "spark.log.level": "OFF"}
"""Settings of a session that elute starts itself; one that is there already stays as it is."""

_HOME = "127.0.0.1"
_ADDRESS = ("spark.driver.host", "spark.driver.bindAddress")
_FOLDER = "spark.local.dir"


def get_session() -> SparkSession:
    """The active session, or a new one set up by the user's own Spark configuration."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise MissingExtra("`engine='spark'`", "PySpark", "spark") from None
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("elute")
    with translate_errors("cannot start Spark"), _not_left_behind():
        for setting, value in {**_QUIET, **_keep_private()}.items():
            builder = builder.config(setting, value)
        before = signal.getsignal(signal.SIGINT)
        started = builder.getOrCreate()
    if before is not None and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, before)  # Spark's own asks Spark to stop in the middle of another question to it
    return started


def _keep_private() -> dict[str, str]:
    """Where Spark runs on this machine alone, it listens to this machine alone, and what it puts on disk lies in a
    folder that nobody else may open. What the user has set stays."""
    from pyspark import SparkConf, SparkContext

    if "SPARK_REMOTE" in os.environ:
        return {}
    SparkContext._ensure_initialized()  # reads the user's configuration
    set_already = dict(SparkConf().getAll())
    if not set_already.get("spark.master", "local").startswith("local"):
        return {}
    own = {} if "SPARK_LOCAL_IP" in os.environ else dict.fromkeys(_ADDRESS, _HOME)
    if _FOLDER not in set_already and "SPARK_LOCAL_DIRS" not in os.environ:
        folder, remove = scratch.make_folder(None)
        atexit.register(remove)
        own[_FOLDER] = str(folder)
    return {setting: value for setting, value in own.items() if setting not in set_already}


@contextmanager
def _not_left_behind() -> Iterator[None]:
    """A virtual machine that is still starting when this is interrupted is ended: Spark would leave it running, with
    nobody to talk to, and holding this process's output open."""
    from pyspark import SparkContext, java_gateway

    starting: Any = java_gateway
    plain, started = starting.Popen, []

    def start(*args: Any, **options: Any) -> Any:
        started.append(plain(*args, **options))
        return started[-1]

    starting.Popen = start
    try:
        yield
    except BaseException:
        if SparkContext._gateway is None:
            for process in started:
                process.kill()
        raise
    finally:
        starting.Popen = plain
