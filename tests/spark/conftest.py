"""One Spark session for all tests of the engine, on two cores of this machine; none if Java or PySpark is missing."""

import os
import re
import shutil
import sys
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
            if why:
                item.add_marker(pytest.mark.skip(reason=why))


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pyspark.sql import SparkSession

        from likewise.spark.session import OPTIONS, local_options

        builder = SparkSession.builder.master("local[2]")
        here = {
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "2",
            "spark.driver.memory": "1g",
            # Java code made for each query takes longer to compile than a query of a few hundred rows takes without
            "spark.sql.codegen.wholeStage": "false",
            "spark.sql.codegen.factoryMode": "NO_CODEGEN",
            "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        }
        # this session keeps none: that would take as long as several tests
        options = {name: re.sub(r" -XX:ArchiveClassesAtExit=\S+", "", value) for name, value in local_options().items()}
        for name, value in {**OPTIONS, **options, **here}.items():
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
        patch.setattr("likewise.spark.dedup.publish_frames", fail)
        with pytest.raises(KeyboardInterrupt):
            likewise.dedup(given, engine="spark", out=out, **settings)
    assert not (out / "run.json").exists()
    found = likewise.dedup(given, engine="spark", out=out, **settings)
    local = likewise.dedup(given, out=folder / "local", **settings)
    return ResumedRun(files, local, folder / "local", found, out)
