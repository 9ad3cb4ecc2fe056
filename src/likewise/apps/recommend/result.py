"""The result of `recommend`: similar customers, similar items, recommendations."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from likewise.apps.recommend.inverted_lists import SharedCounts
from likewise.apps.recommend.ratings import SIDES
from likewise.base.arrays import to_arrow
from likewise.base.words import counted
from likewise.errors import InputError
from likewise.io.publish import publish
from likewise.jobs.result import Result
from likewise.jobs.rows import Rows


def pair_rows(found: SharedCounts, ids: Any) -> Rows:
    """Return the table of pairs with their ids, made in batches."""
    return Rows(
        len(found),
        {
            "id_a": lambda part: ids.take(to_arrow(found.left[part].astype(np.int64))),
            "id_b": lambda part: ids.take(to_arrow(found.right[part].astype(np.int64))),
            "similarity": lambda part: to_arrow(found.part(part)),
            "shared": lambda part: to_arrow(found.shared[part].astype(np.int64)),
        },
    )


class Recommendations(Result):
    """The result of `recommend`: tables `.customers`, `.items`, `.recommendations`, `.stats`, and `.save(dir)`.

    customers, items: pairs of similar customers and of similar items (id_a, id_b, similarity, shared: the number of
    elements that both sets have). recommendations: user, item, score, because_of. A table left out by `only` is None.
    groups: with `groups`, the items of groups of two or more: id, cluster, size, keeper; otherwise None.
    """

    files: ClassVar[dict[str, str]] = {
        "customers.parquet": "customers",
        "items.parquet": "items",
        "recommendations.parquet": "recommendations",
        "groups.parquet": "groups",
    }
    recommendations: Any | None

    def __init__(
        self,
        pairs: dict[str, Rows],
        recommendations: Any | None,
        users: Any,
        stats: dict[str, Any],
        groups: Any | None = None,
    ) -> None:
        self._pairs = pairs
        self._users = users
        self.recommendations = recommendations
        self.groups = groups
        self.stats = stats

    @cached_property
    def customers(self) -> Any | None:
        """The pairs of similar customers."""
        return self._pairs["customers"].table() if "customers" in self._pairs else None

    @cached_property
    def items(self) -> Any | None:
        """The pairs of similar items."""
        return self._pairs["items"].table() if "items" in self._pairs else None

    def for_user(self, user: Any) -> Any:
        """Return the recommendations for one customer, the best first."""
        name = str(user).strip()
        asked = None if self._users is None else self._users.cast(pa.string())
        if self.recommendations is None or not pc.any(pc.equal(asked, name)).as_py():
            raise InputError(f"there are no recommendations for {name!r}; pass users=[{user!r}] to recommend")
        return self.recommendations.filter(pc.equal(self.recommendations["user"].cast(pa.string()), name))

    def save(self, directory: str | os.PathLike[str]) -> Path:
        """Write the tables as Parquet and run.json to a folder, all or nothing, and return the folder."""
        folder = Path(directory)
        pairs = {f"{side}.parquet": self._pairs[side].write if side in self._pairs else None for side in SIDES}
        others = {"recommendations.parquet": self.recommendations, "groups.parquet": self.groups}
        publish(folder, {**pairs, **others}, self.stats)
        return folder

    def _summary(self) -> str:
        counts = self.stats["counts"]
        found = {
            "similar_customers": ("pair of similar customers", "pairs of similar customers"),
            "similar_items": ("pair of similar items", "pairs of similar items"),
            "recommendations": ("recommendation", "recommendations"),
        }
        some = ", ".join(counted(counts[name], *nouns) for name, nouns in found.items() if name in counts)
        return f"{counted(counts['customers'], 'customer')}, {counted(counts['items'], 'item')}; {some}"
