"""The Spark session of a run: the one of a DataFrame, the active one, or a new one; and quiet calls into PySpark."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from likewise import errors
from likewise.base.extras import need
from likewise.errors import InputError, LikewiseError, ParameterError
from likewise.kernels import cache_directory
from likewise.spark.context import PACKAGES, master_of

USUAL = (
    "-XX:TieredStopAtLevel=1",
    "-XX:ReservedCodeCacheSize=240m",
    "-XX:+UseParallelGC",
    "-XX:+ExitOnOutOfMemoryError",
)
"""The optimising compiler of Java takes more time than the rest of a run of a few minutes, and speeds up little: the
work is done by kernels. Without it Java has room for 48 MB of machine code only, and a session of many queries would
compile them over and over. A collector that works beside the tasks takes cores from them. If a thread of Spark that
collects results runs out of memory, Spark waits for ever: better that it ends."""
SILENT = ("-XX:+IgnoreUnrecognizedVMOptions", "-Xlog:disable", "-Xlog:all=error:stderr")
"""An archive that does not fit, of other Java archives on the path for instance, is passed over without a word."""
SETTLED = 5.0
"""Seconds after which an archive that was not written to is taken for complete."""


def java_options(folder: Path | None = None) -> str:
    """Return the options: among them, to use the archive of classes or, if there is none, to write one at the end."""
    place = cache_directory() if folder is None else folder
    java = _java()
    if place is None or java is None:
        return " ".join(USUAL)
    archive = place / f"spark-{_key(java)}.jsa"
    for written in sorted(place.glob(f"{archive.name}.*")):
        with suppress(OSError):
            if time.time() - written.stat().st_mtime > SETTLED and not archive.exists():
                os.replace(written, archive)
    if archive.exists():
        return " ".join([*USUAL, *SILENT, f"-XX:SharedArchiveFile={archive}"])
    if " " in str(archive):
        return " ".join(USUAL)
    return " ".join([*USUAL, *SILENT, f"-XX:ArchiveClassesAtExit={archive}.{os.getpid()}"])


def _java() -> Path | None:
    """Return the program that Spark will start."""
    home = os.environ.get("JAVA_HOME")
    found = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    return Path(found).resolve() if found and os.path.exists(found) else None


def _key(java: Path) -> str:
    """Return what tells this version of Java and of Spark from others: an archive is of one of them."""
    import pyspark

    known = f"{java} {java.stat().st_mtime_ns} {pyspark.__version__} {pyspark.__file__}"
    return hashlib.sha256(known.encode()).hexdigest()[:16]


OPTIONS = {
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.maxResultSize": "0",
    "spark.python.daemon.module": "likewise.spark.daemon",
}
"""Settings of a session that likewise makes itself; files such as spark-defaults.conf have others."""
CONNECT = "sc://"
"""How the address of a server of Spark Connect begins."""
DETAILS = re.compile(r'details = "([^"]*)"')
LOST = ("StatusCode.UNAVAILABLE", "INVALID_HANDLE.SESSION_")
"""What Spark Connect says if its server is not there, or is another one than before."""
RAISED = re.compile(r"likewise\.errors\.(\w+): (.*)")
"""An error of likewise in the report of a task that failed."""
ABSENT = re.compile(r"ModuleNotFoundError: No module named 'likewise")
PYTHON_ERROR = re.compile(r"[\w.]*(Error|Exception|Interrupt)\b")
"""The line of a task's report that says what went wrong in Python."""
SENT = str(256 << 10)
"""Bytes of files of a table that is sent to every machine for a join, at most."""
BATCH_ROWS, BATCH_BYTES = "10000", str(64 << 20)
"""The largest Arrow batch that a task gets: some megabytes of ordinary documents, and never much more than 64 MiB."""


@contextmanager
def quiet() -> Iterator[None]:
    """Pass over what PySpark says about the versions of libraries that likewise does not use through it."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")
        warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")
        warnings.filterwarnings("ignore", category=ResourceWarning)
        yield


def session_of(owner: str, sources: list[Any], master: str | None) -> Any:
    """Return the session in which sources are read; a DataFrame brings its own."""
    need(f"{owner} on Spark", "spark")
    with quiet():
        from pyspark.sql import SparkSession
    own = next((one.sparkSession for one in sources if hasattr(one, "sparkSession")), None)
    if own is not None:
        if master is not None:
            raise ParameterError.of(owner, "master", "left out for a Spark DataFrame, which has its session", master)
        return own
    active = SparkSession.getActiveSession()
    if active is not None and (master is None or master_of(active) == master):
        return active
    if active is not None:
        running = master_of(active)
        raise ParameterError.of(owner, "master", f"{running!r}, the session that is running, or left out", master)
    if (master or "").startswith(CONNECT) or (master is None and "SPARK_REMOTE" in os.environ):
        return _connected(master or os.environ["SPARK_REMOTE"])
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    master = master or "local[*]"
    builder = SparkSession.builder.appName("likewise").master(master)
    own_process = master.startswith("local") and not master.startswith("local-cluster")
    for name, value in {**OPTIONS, **(local_options() if own_process else {})}.items():
        builder = builder.config(name, value)
    try:
        with quiet():
            session = builder.getOrCreate()
    except Exception as error:
        first = str(error).strip().splitlines()[0]
        raise InputError(
            f"Spark does not start: {first}; it needs Java 17 or later (JAVA_HOME, or java on the PATH)"
        ) from error
    session.sparkContext.setLogLevel("ERROR")
    if own_process:
        session.sparkContext._accumulatorServer.handle_error = _unheard
    threading.Thread(target=_start_python, args=(session,), daemon=True).start()
    return session


def _connected(url: str) -> Any:
    """Return a session of the server of Spark Connect at a URL."""
    with quiet():
        from pyspark.sql import SparkSession

        try:
            return SparkSession.builder.remote(url).getOrCreate()
        except Exception as error:
            raise InputError(f"{url}: no session of Spark Connect: {_first_line(error)}") from error


def _first_line(error: BaseException) -> str:
    """Return what an error says first; of gRPC, the details that it quotes."""
    details = DETAILS.search(str(error))
    return details[1] if details else (str(error).strip() or type(error).__name__).splitlines()[0]


def _unheard(request: Any, client: Any) -> None:
    """Say nothing in the thread that listens to a Java process when that has ended: whoever calls it next is told."""


def local_options() -> dict[str, str]:
    """Return settings of a session that likewise makes itself and whose tasks run in this process."""
    return {"spark.driver.extraJavaOptions": java_options()}


def _start_python(session: Any) -> None:
    """Let the processes of which those of tasks are forked load their libraries while the driver looks at the input.

    Spark has one such process for each environment, and tasks of tables have a variable more than others.
    """
    with suppress(Exception):
        context = session.sparkContext
        context.environment["SPARK_SIMPLIFIED_TRACEBACK"] = "1"
        cores = context.defaultParallelism
        context.parallelize(range(cores), cores).foreachPartition(_nothing)


def _nothing(rows: Any) -> None:
    """Do nothing: a task whose process is ready afterwards."""


@contextmanager
def spark_errors() -> Iterator[None]:
    """Turn what Spark raises into an error of likewise: the one that a task raised, or one that quotes Spark."""
    from pyspark.errors import PySparkException

    gone, raised_there = _java_errors()
    try:
        yield
    except (PySparkException, *raised_there) as error:
        if any(word in str(error) for word in LOST):
            raise LikewiseError(f"Spark failed: the server of Spark Connect is gone: {_first_line(error)}") from error
        if any(isinstance(one, gone) for one in _behind(error)):
            raise LikewiseError(
                "Spark failed: its Java process has ended. If it says that it ran out of memory, give it more with "
                "spark.driver.memory: in spark-defaults.conf, or by "
                "PYSPARK_SUBMIT_ARGS='--driver-memory 4g pyspark-shell'"
            ) from error
        raised = RAISED.search(str(error))
        if raised is not None:
            raise getattr(errors, raised[1], InputError)(raised[2]) from error
        if ABSENT.search(str(error)):
            raise InputError(
                f"likewise is not installed on the machines of Spark; install likewise[spark] there, {PACKAGES}"
            ) from error
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        told = next((line[1:].strip() for line in lines if line.startswith(": ")), lines[0] if lines else "")
        if told.endswith(":"):
            told += next((f" {line}" for line in reversed(lines) if PYTHON_ERROR.match(line)), "")
        raise InputError(f"Spark failed: {told or type(error).__name__}") from error


def _java_errors() -> tuple[tuple[type[BaseException], ...], tuple[type[BaseException], ...]]:
    """Return what is raised when the Java process of a classic session has ended, and all that is raised about it; a
    client of Spark Connect may be installed without the package for that."""
    ended: tuple[type[BaseException], ...] = (ConnectionError, EOFError)
    try:
        from py4j.protocol import Py4JError, Py4JNetworkError
    except ImportError:
        return ended, ended
    return (*ended, Py4JNetworkError), (*ended, Py4JError)


def _behind(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and those that led to it."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


@contextmanager
def bounded(session: Any) -> Iterator[None]:
    """Bound the memory of tasks of the session while a run works, and restore its settings afterwards.

    Tables are joined by sorting, which spills, but where one is small: Spark would send up to ten megabytes of
    compressed files to every machine, which are ten times that in memory, for each of many joins in one query.
    """
    wanted = {
        "spark.sql.autoBroadcastJoinThreshold": SENT,
        "spark.sql.execution.arrow.maxRecordsPerBatch": BATCH_ROWS,
        "spark.sql.execution.arrow.maxBytesPerBatch": BATCH_BYTES,
        "spark.sql.execution.arrow.useLargeVarTypes": "false",
    }
    before = {name: session.conf.get(name, None) for name in wanted}  # None: Spark's own default
    for name, value in wanted.items():
        session.conf.set(name, value)
    try:
        with quiet():
            yield
    finally:
        for name, value in before.items():
            if value is None:
                session.conf.unset(name)
            else:
                session.conf.set(name, value)
