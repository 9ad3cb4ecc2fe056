"""The answer of `tastes`: similar customers, similar items, recommendations, and the folder they are written to."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from likewise.answer import Rows
from likewise.apps.ratings.counting import Found
from likewise.arrays import to_arrow
from likewise.errors import OutputError
from likewise.store import WORK, sync, told
from likewise.write import MANIFEST, check_directory, write_json, write_table

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
        folder = Path(directory)
        check_folder(folder)
        staged = folder / WORK
        with told(folder):
            if staged.exists():
                shutil.rmtree(staged)
            staged.mkdir(parents=True)
            for name, rows in self.rows.items():
                rows.write(staged / f"{name}.parquet")
            if self.recommendations is not None:
                write_table(self.recommendations, staged / TABLES[2])
            write_json(self.stats, staged / MANIFEST)
            for name in (MANIFEST, *TABLES):
                (folder / name).unlink(missing_ok=True)
            for name in (*TABLES, MANIFEST):
                if (staged / name).exists():
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
