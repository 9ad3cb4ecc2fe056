"""One Spark session for all tests of the engine, on two cores of this machine; none if Java or PySpark is missing.

`make soak` runs them all once more with a session of Spark Connect, whose server is a process of its own.
"""

import gc
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from spark_corpora import documents, table

import likewise

JAVA = shutil.which("java") or (Path(os.environ.get("JAVA_HOME", "/nowhere")) / "bin" / "java").exists()


def pytest_collection_modifyitems(items):
    """Mark the tests of this folder, and skip them where they cannot run."""
    try:
        import pyspark  # noqa: F401

        why = None if JAVA else "Java is not installed (apt-get install openjdk-17-jre-headless)"
    except ImportError:
        why = "PySpark is not installed (pip install 'likewise[spark]')"
    here = Path(__file__).parent
    # A session of its own first: Java keeps an archive of classes when it ends, which the others' session begins with.
    items.sort(
        key=lambda item: item.path.name != "test_spark_docs.py" and 1 + ("spark" in getattr(item, "fixturenames", ()))
    )
    for item in items:
        if item.path.parent == here:
            item.add_marker(pytest.mark.spark)
            connected = getattr(item, "callspec", None) and item.callspec.params.get("spark") == "connect"
            if connected and item.get_closest_marker("classic"):
                item.add_marker(pytest.mark.skip(reason="it looks into the Java process of a classic session"))
            if why:
                item.add_marker(pytest.mark.skip(reason=why))


def settings_of_spark(folder):
    """The settings of a session or server for small corpora."""
    from likewise.spark.session import OPTIONS, local_options

    here = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.memory": "1g",
        # Java code made for each query takes longer to compile than a query of a few hundred rows takes without
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.warehouse.dir": str(folder),
    }
    # these sessions keep no archive of classes: that would take as long as several tests
    options = {name: re.sub(r" -XX:ArchiveClassesAtExit=\S+", "", value) for name, value in local_options().items()}
    return {**OPTIONS, **options, **here}


SMALL = {
    # small tables are planned once, and not again after each exchange, which would be a job of its own; sessions of
    # Spark Connect and those that likewise makes itself have what is usual
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.ui.explainMode": "simple",
    "spark.sql.ui.retainedExecutions": "20",
    "spark.ui.retainedJobs": "60",
    "spark.ui.retainedStages": "100",
    "spark.ui.retainedTasks": "1000",
}
"""Further settings of the classic session."""


@pytest.fixture(scope="session")
def connect_url(tmp_path_factory):
    """The address of a server of Spark Connect, a process of its own, from the PySpark package."""
    import pyspark

    home, folder = Path(pyspark.__file__).parent, tmp_path_factory.mktemp("connect")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    settings = {**settings_of_spark(folder), "spark.connect.grpc.binding.port": str(port), "spark.log.level": "ERROR"}
    words = [str(home / "bin" / "spark-submit"), "--master", "local[2]"]
    words += [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    words += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
    likely = {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_HOME": str(home)}
    sources = os.pathsep.join([str(Path(likewise.__file__).parent.parent), os.environ.get("PYTHONPATH", "")])
    with open(folder / "log", "wb") as log:
        environment = {**os.environ, **likely, "PYTHONPATH": sources}
        server = subprocess.Popen(words, env=environment, stdout=log, stderr=log)
    until = time.monotonic() + 300
    while time.monotonic() < until:
        with socket.socket() as asked:
            if asked.connect_ex(("127.0.0.1", port)) == 0:
                break
        assert server.poll() is None, (folder / "log").read_text()
        time.sleep(0.2)
    yield f"sc://127.0.0.1:{port}"
    from pyspark.sql.connect.client import SparkConnectClient

    # a client that is still open when Python ends asks its server, which is gone then, for ten minutes
    for client in [one for one in gc.get_objects() if isinstance(one, SparkConnectClient)]:
        client.close()
    server.kill()
    server.wait()


def connected(url):
    """A session of Spark Connect, which may be beside a classic one in this process."""
    from pyspark.sql.connect.session import SparkSession

    return SparkSession.builder.remote(url).getOrCreate()


MODE = "SPARK_CONNECT_MODE_ENABLED"
"""What tells PySpark that its functions are to make columns of Spark Connect."""


@pytest.fixture
def connect(connect_url, monkeypatch):
    """A session of Spark Connect."""
    monkeypatch.setenv(MODE, "1")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield connected(connect_url)


@pytest.fixture(scope="session", params=["classic", pytest.param("connect", marks=pytest.mark.soak)])
def spark(request, tmp_path_factory):
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if request.param == "connect":
            url = request.getfixturevalue("connect_url")
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv(MODE, "1")
                yield connected(url)
            return
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.master("local[2]")
        for name, value in {**settings_of_spark(tmp_path_factory.mktemp("warehouse")), **SMALL}.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("ERROR")
        yield session
        session.stop()


@dataclass(frozen=True)
class ResumedRun:
    """A run of several files whose driver was lost before it wrote the result, and the same run of the local engine.

    Tests that change a folder or a file take a copy, or restore it.
    """

    files: list[Path]
    local: Any
    local_out: Path
    found: Any
    out: Path


@pytest.fixture(scope="session")
def resumed(spark, tmp_path_factory):
    folder = tmp_path_factory.mktemp("resumed")
    rows, files = table(documents(600)), []
    for number, (start, stop) in enumerate([(0, 20), (20, 400), (400, 440), (440, 600)]):
        files.append(folder / f"part-{number}.parquet")
        pq.write_table(rows.slice(start, stop - start), files[-1], row_group_size=100)
    given, settings = str(folder / "part-*.parquet"), {"keep": "max:score", "method": "lsh", "threshold": 0.6}

    def fail(*_):
        raise KeyboardInterrupt

    out = folder / "spark"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("likewise.spark.run.publish_frames", fail)
        with pytest.raises(KeyboardInterrupt):
            likewise.dedup(given, engine="spark", out=out, **settings)
    assert not (out / "run.json").exists()
    found = likewise.dedup(given, engine="spark", out=out, **settings)
    local = likewise.dedup(given, out=folder / "local", **settings)
    return ResumedRun(files, local, folder / "local", found, out)
