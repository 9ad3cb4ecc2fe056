"""The answer of `match`: tables, and the folder they are written to."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from likewise.apps.fingerprints.comparing import Compared
from likewise.apps.fingerprints.grouping import groups
from likewise.base.arrays import Ints, strings, to_arrow
from likewise.io.publish import publish

COMMAND = "fingerprints"
TABLES = ("matches.parquet", "fingers.parquet")


@dataclass(frozen=True)
class Matches:
    """Prints that are of one finger, best matches first.

    matches: id_a, id_b, score; minutiae, how many agree; overlap_a, overlap_b, how many each print has where the two
    overlap; rotation (degrees, from the x axis towards the y axis), shift_x, shift_y (pixels at 500 dpi), which take
    print a to print b; triples, how many led to the pair.
    fingers: id, group (its first print), size; None if prints were looked for in others.
    scored: id_a, id_b, score of all pairs that were compared; all others share too little.
    """

    matches: Any
    fingers: Any | None
    scored: Any = field(repr=False)
    stats: dict[str, Any] = field(repr=False)

    def save(self, directory: str | os.PathLike[str]) -> None:
        """Write matches.parquet, fingers.parquet and run.json; a folder without run.json is not finished."""
        publish(directory, dict(zip(TABLES, (self.matches, self.fingers), strict=True)), self.stats)


def make_matches(found: Compared, names: list[str]) -> Any:
    """Return the table of matches, best first."""
    order = np.lexsort((found.right, found.left, -found.score))
    found = found.take(order)
    columns = {"id_a": _named(names, found.left), "id_b": _named(names, found.right)}
    columns["score"] = to_arrow(np.round(found.score, 6))
    counts = {"minutiae": found.agreed, "overlap_a": found.own, "overlap_b": found.other}
    columns |= {name: to_arrow(values) for name, values in counts.items()}
    columns["rotation"] = to_arrow(np.round(np.degrees(found.rotation), 3))
    columns |= {f"shift_{axis}": to_arrow(np.round(found.shift[:, i], 3)) for i, axis in enumerate("xy")}
    return pa.table({**columns, "triples": to_arrow(found.triples)})


def make_scored(found: Compared, names: list[str]) -> Any:
    """Return all pairs that were compared."""
    columns = {"id_a": _named(names, found.left), "id_b": _named(names, found.right)}
    return pa.table({**columns, "score": to_arrow(found.score)})


def make_fingers(found: Compared, names: list[str]) -> Any:
    """Return the group of every print: those that mostly match each other."""
    first = groups(len(names), found.left, found.right, found.score)
    sizes = np.bincount(first, minlength=len(names))[first]
    order = np.lexsort((np.arange(len(names)), first))
    columns = {"id": _named(names, order), "group": _named(names, first[order])}
    return pa.table({**columns, "size": to_arrow(sizes[order].astype(np.int64))})


def _named(names: list[str], rows: Ints) -> Any:
    return strings(names).take(to_arrow(rows.astype(np.int64)))
