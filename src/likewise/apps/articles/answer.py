"""The answer of `stories`: two tables, and the folder they are written to."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

from likewise.io.publish import publish

COMMAND = "stories"
TABLES = ("stories.parquet", "pairs.parquet")


@dataclass(frozen=True)
class Stories:
    """Pages and the stories on them, as Arrow tables.

    stories: id of the page; story, named after the page that comes first by the keep policy; size, how many pages carry
    the story; keeper, the page that stands for this one; similarity of these two; title; language. The pages of a story
    stand together, stories in the order of their first page.
    pairs: id_a, id_b, similarity of every two pages at or above the threshold.
    """

    stories: Any
    pairs: Any
    stats: dict[str, Any] = field(repr=False)

    def save(self, directory: str | os.PathLike[str]) -> None:
        """Write stories.parquet, pairs.parquet and run.json; a folder without run.json is not finished."""
        publish(directory, dict(zip(TABLES, (self.stories, self.pairs), strict=True)), self.stats)
