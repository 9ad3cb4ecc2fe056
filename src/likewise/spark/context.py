"""What the engine needs of a session beside DataFrames, of a classic one and of one of Spark Connect.

A classic session has a context in this process, whose Java knows the cluster. Spark Connect has a client here that
sends plans to a server: values for all tasks go there as files, and what the cluster is like is asked of tasks.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import platform
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from likewise.errors import IncompatibleError, InputError

CARRIED = 1 << 16
"""Bytes of a value that travels in the function of a task; a plan may have a dozen of them, and a message 128 MB."""
CACHED = 8
"""Values that a Python process of tasks holds; one step needs four at most."""
MANY = 1 << 16
"""Rows of a table of which every core of a cluster has some."""
PACKAGES = "see Packaging in docs/spark.md"
_CACHE: dict[str, Any] = {}
_TASKS: WeakKeyDictionary[Any, int] = WeakKeyDictionary()


class SharedValue(Protocol):
    """A value that every task can have."""

    @property
    def value(self) -> Any:
        """The value."""

    def destroy(self) -> None:
        """Let go of it where that is possible."""


@dataclass(frozen=True)
class CarriedValue:
    """A small value, which travels in the function of each task that needs it."""

    value: Any

    def destroy(self) -> None:
        """Do nothing: nobody holds it."""


class SharedFile:
    """A value in a file that the server of Spark Connect gives to every machine; it is there as long as the session."""

    def __init__(self, name: str, value: Any = None) -> None:
        self._name = name
        self._value = value

    def __reduce__(self) -> tuple[type[SharedFile], tuple[str]]:
        return SharedFile, (self._name,)

    @property
    def value(self) -> Any:
        """The value; a process of tasks reads it once."""
        if self._value is not None:
            return self._value
        if self._name not in _CACHE:
            from pyspark import SparkFiles

            while len(_CACHE) >= CACHED:
                del _CACHE[next(iter(_CACHE))]
            _CACHE[self._name] = pickle.loads(Path(SparkFiles.get(self._name)).read_bytes())
        return _CACHE[self._name]

    def destroy(self) -> None:
        """Let go of the value here; the file goes with the session."""
        self._value = None


def is_connect(session: Any) -> bool:
    """Tell whether a session is one of Spark Connect."""
    return any(kind.__module__.startswith("pyspark.sql.connect.") for kind in type(session).__mro__)


def share(session: Any, value: Any) -> SharedValue:
    """Send a value to every machine."""
    if not is_connect(session):
        return session.sparkContext.broadcast(value)  # type: ignore[no-any-return]
    content = pickle.dumps(value, protocol=5)
    if len(content) <= CARRIED:
        return CarriedValue(value)
    name = f"likewise-{hashlib.sha256(content).hexdigest()[:32]}"
    with tempfile.TemporaryDirectory(prefix="likewise-") as folder:
        path = os.path.join(folder, name)
        Path(path).write_bytes(content)
        session.addArtifacts(path, file=True)
    return SharedFile(name, value)


def master_of(session: Any) -> str:
    """Return the master of a session; that of Spark Connect may not say."""
    if not is_connect(session):
        return str(session.sparkContext.master)
    return str(session.conf.get("spark.master", None) or "sc://")


def one_machine(session: Any) -> bool:
    """Tell whether tasks run in the process of Spark, not on machines of a cluster."""
    master = master_of(session)
    return master.startswith("local") and not master.startswith("local-cluster")


def parallelism(session: Any) -> int:
    """Return how many tasks work at the same time, about."""
    if not is_connect(session):
        return int(session.sparkContext.defaultParallelism)
    return check_machines(session)


def partition_count(frame: Any) -> int:
    """Return the number of partitions of a frame: of Spark Connect, of those that have a row."""
    if not is_connect(frame.sparkSession):
        return int(frame._jdf.queryExecution().toRdd().getNumPartitions())
    from pyspark.sql import functions as F

    return int(frame.select(F.spark_partition_id()).distinct().count())


def check_machines(session: Any) -> int:
    """Raise unless the machines of tasks have this version of likewise; return how many tasks said so.

    A session is asked once. A classic one whose tasks run on this machine is not: its first step would tell.
    """
    if session not in _TASKS:
        told = session.range(MANY).mapInArrow(_versions(), "host string, python string, version string").toArrow()
        for machine in told.to_pylist():
            check_version(**machine)
        _TASKS[session] = max(1, told.num_rows)
    return _TASKS[session]


def check_version(host: str, python: str, version: str | None) -> None:
    """Raise if a machine has another version of likewise than this process, or none."""
    from likewise import __version__

    if version is None:
        raise InputError(
            f"likewise is not installed on the machines of Spark ({host}, {python}); install likewise[spark]"
            f" {__version__} there, {PACKAGES}"
        )
    if version != __version__:
        raise IncompatibleError(
            f"{host} has likewise {version} ({python}), and this process {__version__}; install the same, {PACKAGES}"
        )


def _versions() -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return what a task does to say what it has. The function travels as code, not by its name: a machine without
    likewise could not look that up."""

    def versions(batches: Any) -> Any:
        import platform
        import sys

        import pyarrow as pa

        for _ in batches:
            pass
        row = {"host": platform.node(), "python": sys.executable, "version": None}
        try:
            import likewise

            row["version"] = getattr(likewise, "__version__", "")
        except ImportError:
            pass
        yield pa.RecordBatch.from_pylist([row], pa.schema([(name, pa.string()) for name in row]))

    return versions


def check_seen(session: Any, folder: Any, work: Any) -> None:
    """Raise if the server of Spark Connect does not see a folder of this machine as it is here."""
    if not is_connect(session):
        return
    token, place = f"{platform.node()} {os.getpid()} {os.urandom(8).hex()}", work / "seen"
    work.make()
    place.write(token)
    try:
        seen, why = session.read.text(place.path).first(), "it has another file there"
    except Exception as error:
        seen, why = None, str(error).strip().splitlines()[0]
    place.remove()
    if seen is None or seen[0] != token:
        for mine in (work, folder):
            if not mine.names():
                mine.remove()
        raise InputError(
            f"{folder.path}: the server of Spark Connect does not see what this machine has written there; name a"
            f" folder that both reach, in a store or a mounted file system ({why})"
        )
