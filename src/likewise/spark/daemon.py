"""The process from which Spark forks the Python processes of tasks, with all that they need loaded once.

A session that likewise makes has it; another gets it by `spark.python.daemon.module=likewise.spark.daemon`. Without it
each process loads libraries and kernels by itself, which takes about two seconds of a core.
"""

from __future__ import annotations

import gc
import os
import sys


def unzip() -> None:
    """Import PySpark from where it is installed, if that is the home of Spark: the same files are in an archive before
    it on the path, in which Python keeps no bytecode and compiles every module again."""
    home = os.environ.get("SPARK_HOME", "")
    if home and os.path.dirname(home) in sys.path:
        sys.path[:] = [path for path in sys.path if not (path.startswith(home + os.sep) and path.endswith(".zip"))]


def preload() -> None:
    """Load the modules of all steps, those of PySpark for its tasks, and the kernels."""
    import pyspark.worker  # noqa: F401

    from likewise.spark import bands, copies, dedup, in_place, meetings, rounds, sketch, vectors  # noqa: F401
    from likewise.spark.node import ready, run_kernels

    ready()
    run_kernels()
    gc.freeze()


if __name__ == "__main__":
    unzip()
    from pyspark import daemon

    preload()
    daemon.manager()
