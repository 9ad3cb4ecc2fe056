"""A standalone Spark cluster on this machine: a master, and workers of one core each that get no other core; and a
server of Spark Connect."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

MOST_SECONDS = 60
"""Within which all workers must have come to the master."""


def free_port() -> int:
    """Return a port that nobody listens to."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def second_core(repeats: int = 3) -> float:
    """Return how much faster two processes, each on a core of its own, do the work of two than one after the other.

    2 on cores that share nothing; less on those that share memory, caches or, in a virtual machine, one core.
    """
    work = "import likewise.cli.warmup as w; from time import *; w.PARTS['words'](); t = perf_counter()\n"
    work += "for _ in range(400): w.PARTS['words']()\nprint(perf_counter() - t)"
    cores = sorted(os.sched_getaffinity(0))[:2]

    def seconds(some: list[int]) -> float:
        running = [
            subprocess.Popen(["taskset", "-c", str(core), sys.executable, "-c", work], stdout=subprocess.PIPE)
            for core in some
        ]
        return max(float(one.communicate()[0]) for one in running)

    alone = min(seconds(cores[:1]) for _ in range(repeats))
    return 2 * alone / min(seconds(cores) for _ in range(repeats))


def tree_seconds(pid: int) -> float:
    """Return the processor time of a process, of those it started, and of theirs that have ended."""
    above, ticks = {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            words = path.read_text().rpartition(")")[2].split()
            above[int(path.parent.name)] = int(words[1])
            ticks[int(path.parent.name)] = sum(map(int, words[11:15]))

    def within(one: int) -> bool:
        while one and one != pid:
            one = above.get(one, 0)
        return one == pid

    return sum(ticks[one] for one in ticks if within(one)) / os.sysconf("SC_CLK_TCK")


def counted_main() -> None:
    """Run the command line of likewise, and write its processor time to the file that CPU_FILE names."""
    from likewise.cli import main

    most, done = 0.0, threading.Event()

    def look() -> None:  # now and then: Java may be gone at the end
        nonlocal most
        while not done.wait(0.25):
            most = max(most, tree_seconds(os.getpid()))

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    try:
        main()
    finally:
        done.set()
        watcher.join()
        Path(os.environ["CPU_FILE"]).write_text(str(max(most, tree_seconds(os.getpid()))))


@contextmanager
def connect_server(master: str) -> Iterator[tuple[str, int]]:
    """Start a server of Spark Connect from the PySpark package, yield its URL and the id of its process, end it."""
    import pyspark

    from likewise.spark.session import OPTIONS, local_options

    home, port = Path(pyspark.__file__).parent, free_port()
    settings = {**OPTIONS, **local_options(), "spark.connect.grpc.binding.port": str(port)}
    settings |= {"spark.ui.enabled": "false", "spark.log.level": "ERROR"}
    words = [str(home / "bin" / "spark-submit"), "--master", master]
    words += [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    words += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
    own = {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    server = subprocess.Popen(
        words, env={**os.environ, **own}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        since = time.monotonic()
        while time.monotonic() - since < 5 * MOST_SECONDS:
            with socket.socket() as asked:
                if asked.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        yield f"sc://127.0.0.1:{port}", server.pid
    finally:
        with suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGKILL)
        server.wait()


@contextmanager
def standalone(workers: int, memory: str = "2g") -> Iterator[str]:
    """Start a cluster, yield its URL, end it. Each worker, its executor and their Python processes share one core.

    Without `taskset` the system gives an executor more than its core: Java and Python of one task run side by side.
    """
    import pyspark

    home = Path(pyspark.__file__).parent
    environment = {**os.environ, "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1"}
    started: list[subprocess.Popen[bytes]] = []
    port = free_port()
    url = f"spark://127.0.0.1:{port}"
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "cluster.log"

        def start(kind: str, *words: str, core: int | None = None) -> None:
            pinned = ["taskset", "-c", str(core)] if core is not None and shutil.which("taskset") else []
            command = [*pinned, str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind}", *words]
            with log.open("ab") as to:
                process = subprocess.Popen(command, env=environment, stdout=to, stderr=to, start_new_session=True)
            started.append(process)

        here = ["--host", "127.0.0.1", "--webui-port", "0"]
        start("master.Master", *here, "--port", str(port))
        cores = sorted(os.sched_getaffinity(0))
        for place in range(workers):
            own = [*here, "--cores", "1", "--memory", memory, "--work-dir", f"{folder}/{place}", url]
            start("worker.Worker", *own, core=cores[place % len(cores)])
        try:
            since = time.monotonic()
            while log.read_text(errors="replace").count("Successfully registered with master") < workers:
                if time.monotonic() - since > MOST_SECONDS:
                    raise TimeoutError(f"the workers did not come to {url}: {log.read_text(errors='replace')[-2000:]}")
                time.sleep(0.1)
            yield url
        finally:
            for process in reversed(started):
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
