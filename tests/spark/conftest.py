"""One Spark session for all tests of the engine, on two cores of this machine; none if Java or PySpark is missing."""

import os
import shutil
import sys
import warnings
from pathlib import Path

import pytest

JAVA = shutil.which("java") or (Path(os.environ.get("JAVA_HOME", "/nowhere")) / "bin" / "java").exists()


def pytest_collection_modifyitems(items):
    """Mark the tests of this folder, and skip them where they cannot run."""
    try:
        import pyspark  # noqa: F401

        why = None if JAVA else "Java is not installed (apt-get install openjdk-17-jre-headless)"
    except ImportError:
        why = "PySpark is not installed (pip install 'likewise[spark]')"
    for item in items:
        if Path(item.path).parent == Path(__file__).parent:
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
            "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        }
        for name, value in {**OPTIONS, **local_options(), **here}.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("ERROR")
        yield session
        session.stop()
