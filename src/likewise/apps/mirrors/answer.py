"""The answer of `find`: tables of host pairs, of mirrors and of folded pages, and the folder they are written to."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from likewise.errors import OutputError
from likewise.store import WORK, sync, told
from likewise.write import MANIFEST, check_directory, write_json, write_table

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
        folder = Path(directory)
        check_folder(folder)
        staged = folder / WORK
        tables = dict(zip(TABLES, (self.hosts, self.mirrors, self.pages), strict=True))
        with told(folder):
            if staged.exists():
                shutil.rmtree(staged)
            staged.mkdir(parents=True)
            for name, table in tables.items():
                if table is not None:
                    write_table(table, staged / name)
            write_json(self.stats, staged / MANIFEST)
            (folder / MANIFEST).unlink(missing_ok=True)
            for name, table in tables.items():
                if table is None:
                    (folder / name).unlink(missing_ok=True)
                else:
                    os.replace(staged / name, folder / name)
            os.replace(staged / MANIFEST, folder / MANIFEST)
            sync(folder)
            staged.rmdir()


def check_folder(folder: Path, inputs: Iterable[str | os.PathLike[str]] = ()) -> None:
    """Raise now what `save` would raise later: other files in the folder, another command's answer, an input."""
    check_directory(folder, inputs)
    try:
        content = json.loads((folder / MANIFEST).read_bytes())
        command = content.get("command") if isinstance(content, dict) else None
    except (OSError, ValueError):
        command = None
    if command not in (None, "mirrors"):
        raise OutputError(f"{folder}: the answer of likewise {command} is there; choose another folder")
    replaced = [(folder / name).resolve() for name in TABLES]
    for place in inputs:
        if Path(place).resolve() in replaced:
            raise OutputError(f"{folder}: this run would replace its own input {place}; choose another folder")
