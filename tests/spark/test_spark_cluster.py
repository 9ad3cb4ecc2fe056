"""A standalone cluster on this machine, a master and two workers: what is killed is not missed in the answer."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from spark_corpora import documents, settled, table, templates

import likewise

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1500)]
TABLES = ("pairs", "removed", "clusters")


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


@pytest.fixture
def cluster(tmp_path):
    """The URL of a master, and the processes of its two workers of one core each."""
    import pyspark

    home = Path(pyspark.__file__).parent
    port = free_port()
    environment = {**os.environ, "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1"}
    here = ["--host", "127.0.0.1", "--webui-port", "0"]
    deploy = [str(home / "bin" / "spark-class"), "org.apache.spark.deploy"]

    def start(kind, *words):
        with open(tmp_path / f"{kind}-{words[-1].replace('/', '')}.log", "wb") as log:
            command = [deploy[0], f"{deploy[1]}.{kind}", *words]
            return subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)

    master = start("master.Master", *here, "--port", str(port))
    url = f"spark://127.0.0.1:{port}"
    one = [*here, "--cores", "1", "--memory", "1g"]
    workers = [start("worker.Worker", *one, "--work-dir", str(tmp_path / f"w{n}"), url) for n in range(2)]
    yield url, workers
    for process in (*workers, master):
        kill(process)


def kill(process):
    """End a process that a test started, and all that it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def begin(given, out, url):
    command = [sys.executable, "-m", "likewise", "dedup", str(given), "--method", "lsh", "--engine", "spark"]
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}
    with open(out.with_suffix(".log"), "ab") as log:
        words = [*command, "--master", url, "--out", str(out)]
        return subprocess.Popen(words, stdout=log, stderr=log, start_new_session=True, env=environment)


def write_lines(path, rows):
    """Write JSON lines, whose documents go to tasks to be compared: the driver does not read such files itself."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows.to_pylist()))


def wait_for(path, process):
    while not path.exists():
        assert process.poll() is None, "the run ended before it came there"
        time.sleep(0.01)


def agree(given, out):
    local = likewise.dedup(given, method="lsh")
    for name in TABLES:
        assert settled(getattr(local, name)) == settled(pq.read_table(out / f"{name}.parquet")), name
    assert settled(local.kept) == settled(pq.read_table(out / "kept"))


def test_a_worker_is_killed_in_the_middle_of_a_shuffle(cluster, tmp_path):
    url, workers = cluster
    given, out = tmp_path / "given.jsonl", tmp_path / "out"
    write_lines(given, table(documents(4000) + templates(2000)))
    run = begin(given, out, url)
    wait_for(out / ".likewise" / "spark" / "verify" / "_temporary", run)
    kill(workers[0])
    assert run.wait() == 0, out.with_suffix(".log").read_text()
    agree(given, out)


def test_a_driver_is_killed_and_the_run_is_resumed(cluster, tmp_path):
    url, _ = cluster
    given, out = tmp_path / "given.jsonl", tmp_path / "out"
    write_lines(given, table(documents(2000)))
    run = begin(given, out, url)
    wait_for(out / ".likewise" / "spark" / "verify" / "_temporary", run)
    kill(run)
    assert not (out / "run.json").exists()
    run = begin(given, out, url)
    assert run.wait() == 0, out.with_suffix(".log").read_text()
    agree(given, out)
    assert '"sketch"' in (out / "run.json").read_text().split('"resumed"')[1]
