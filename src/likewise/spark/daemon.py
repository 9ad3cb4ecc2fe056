"""The process from which Spark forks the Python processes of tasks, with all that they need loaded once.

A session that likewise makes has it; another gets it by `spark.python.daemon.module=likewise.spark.daemon`. Without it
each process loads libraries and kernels by itself, which takes about two seconds of a core.
"""

from __future__ import annotations

import gc
import os
import sys
from importlib.util import find_spec


def unzip() -> None:
    """Import PySpark from where it is installed, if that is the home of Spark: the same files are in an archive before
    it on the path, in which Python keeps no bytecode and compiles every module again."""
    home, before = os.environ.get("SPARK_HOME", ""), sys.path[:]
    if not os.path.isfile(os.path.join(home, "__init__.py")) or os.path.basename(home) != "pyspark":
        return
    sys.path[:] = [path for path in before if not (path.startswith(home + os.sep) and path.endswith(".zip"))]
    found = find_spec("pyspark")
    if find_spec("py4j") is None or found is None or found.origin != os.path.join(home, "__init__.py"):
        sys.path[:] = before


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
