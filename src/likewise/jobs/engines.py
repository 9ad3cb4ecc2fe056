"""Where a job runs: in this process, or on a Spark cluster, whose engine is loaded when it is asked for.

The engine stands above the jobs, because it uses them; it is found by its name, like any other optional part.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from likewise.base import checks
from likewise.base.extras import need

ENGINES = ("auto", "local", "spark")
SPARK = "likewise.spark"


def is_spark_frame(source: object) -> bool:
    """Tell whether an object is a Spark DataFrame, without importing PySpark."""
    return any(
        kind.__module__.startswith("pyspark.sql") and kind.__name__ == "DataFrame" for kind in type(source).__mro__
    )


def cluster_engine(
    owner: str, engine: str, master: str | None, *sources: object
) -> Callable[[dict[str, Any]], Any] | None:
    """Return the function of the Spark engine that does this job, or None if it is done in this process.

    A Spark DataFrame chooses the Spark engine by itself.
    """
    checks.choice(owner, "engine", engine, ENGINES)
    if engine == "auto":
        engine = "spark" if any(map(is_spark_frame, sources)) else "local"
    if engine == "local":
        checks.unused(owner, {"master": (master, None)}, "without engine='spark'")
        return None
    need(f"{owner} on Spark", "spark")
    found: Callable[[dict[str, Any]], Any] = getattr(importlib.import_module(f"{SPARK}.{owner}"), owner)
    return found
