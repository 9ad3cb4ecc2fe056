"""The process from which Spark forks the Python processes of tasks, with all that they need loaded once.

A session that likewise makes has it; another gets it by `spark.python.daemon.module=likewise.spark.daemon`. Without it
each process loads libraries and kernels by itself, which takes about two seconds of a core.
"""

from __future__ import annotations

import gc


def preload() -> None:
    """Load the modules of all steps, and the kernels."""
    from likewise.spark import bands, copies, dedup, in_place, rounds, sketch, vectors, verify  # noqa: F401
    from likewise.spark.node import ready, run_kernels

    ready()
    run_kernels()
    gc.freeze()


if __name__ == "__main__":
    from pyspark import daemon

    preload()
    daemon.manager()
