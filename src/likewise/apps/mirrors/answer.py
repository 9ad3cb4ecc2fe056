"""The answer of `find`: tables of host pairs, of mirrors and of folded pages, and the folder they are written to."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

from likewise.io.publish import publish

COMMAND = "mirrors"
TABLES = ("hosts.parquet", "mirrors.parquet", "pages.parquet")


@dataclass(frozen=True)
class Mirrors:
    """Pairs of hosts, groups of mirrors and, where links were given, folded pages, as Arrow tables.

    hosts: host_a, host_b; similarity, the Jaccard similarity of their sets of positional bigrams, exact; pages_a,
    pages_b; shared_paths, how many paths both have; top_a, top_b, the folders that stand above them on one of the
    hosts; compared, how many of them had texts to compare, and confirmed, the fraction of these with similar texts
    (null: none was compared); mirror, whether they are taken for mirrors.
    mirrors: host, group, keeper (the host of the group with the most pages), pages, top (the folders above the pages
    that the group shares), size (hosts in the group).
    pages: url, folded_into; None without links.
    """

    hosts: Any
    mirrors: Any
    pages: Any | None
    stats: dict[str, Any] = field(repr=False)

    def save(self, directory: str | os.PathLike[str]) -> None:
        """Write hosts.parquet, mirrors.parquet, pages.parquet (with links) and run.json, the last when all is there."""
        tables = dict(zip(TABLES, (self.hosts, self.mirrors, self.pages), strict=True))
        publish(directory, tables, self.stats)
