"""The answer of `stories`: two tables, and the folder they are written to."""

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
        folder = Path(directory)
        check_folder(folder)
        staged = folder / WORK
        with told(folder):
            if staged.exists():
                shutil.rmtree(staged)
            staged.mkdir(parents=True)
            for name, table in zip(TABLES, (self.stories, self.pairs), strict=True):
                write_table(table, staged / name)
            write_json(self.stats, staged / MANIFEST)
            (folder / MANIFEST).unlink(missing_ok=True)
            for name in (*TABLES, MANIFEST):
                os.replace(staged / name, folder / name)
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
    if command not in (None, COMMAND):
        raise OutputError(f"{folder}: the answer of likewise {command} is there; choose another folder")
    replaced = [(folder / name).resolve() for name in TABLES]
    for place in inputs:
        if Path(place).resolve() in replaced:
            raise OutputError(f"{folder}: this run would replace its own input {place}; choose another folder")
