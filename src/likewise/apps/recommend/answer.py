"""The answer of `tastes`: similar customers, similar items, recommendations, and the folder they are written to."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from likewise.apps.recommend.counting import Found
from likewise.base.arrays import to_arrow
from likewise.io.publish import publish
from likewise.jobs.result import Rows

COMMAND = "tastes"
TABLES = ("customers.parquet", "items.parquet", "recommendations.parquet")


def pair_rows(found: Found, ids: Any) -> Rows:
    """Return pairs with their ids, made some rows at a time."""
    return Rows(
        len(found),
        {
            "id_a": lambda part: ids.take(to_arrow(found.left[part].astype(np.int64))),
            "id_b": lambda part: ids.take(to_arrow(found.right[part].astype(np.int64))),
            "similarity": lambda part: to_arrow(found.part(part)),
            "shared": lambda part: to_arrow(found.shared[part].astype(np.int64)),
        },
    )


@dataclass(frozen=True)
class Tastes:
    """Similar customers and similar items as Arrow tables (id_a, id_b, similarity, shared), and recommendations.

    A side that was not asked for is None, and so are recommendations (user, item, score, because_of).
    """

    rows: dict[str, Rows] = field(repr=False)
    recommendations: Any | None = field(repr=False)
    stats: dict[str, Any] = field(repr=False)

    @cached_property
    def customers(self) -> Any | None:
        """The similar customers."""
        return self.rows["customers"].table() if "customers" in self.rows else None

    @cached_property
    def items(self) -> Any | None:
        """The similar items."""
        return self.rows["items"].table() if "items" in self.rows else None

    def save(self, directory: str | os.PathLike[str]) -> None:
        """Write customers.parquet, items.parquet, recommendations.parquet, or what there is of them, and run.json."""
        written = [self.rows[side].write if side in self.rows else None for side in ("customers", "items")]
        publish(directory, dict(zip(TABLES, (*written, self.recommendations), strict=True)), self.stats)
