"""The result of `fingerprints`: matches, and the prints of each finger."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from likewise.apps.fingerprints.comparison import ComparedPrints
from likewise.apps.fingerprints.grouping import groups
from likewise.base.arrays import Ints, strings, to_arrow
from likewise.base.words import counted
from likewise.jobs.result import Result


class Fingerprints(Result):
    """The result of `fingerprints`: tables `.matches`, `.fingers`, `.scored`, `.stats`, and `.save(dir)`.

    matches: pairs of prints of one finger, best first: id_a, id_b, score; minutiae, the number that agree; overlap_a,
    overlap_b, the minutiae of each print in the overlap; rotation (degrees, from the x axis towards the y axis),
    shift_x, shift_y (pixels at 500 dpi), which move print a onto print b; triples, the number that led to the pair.
    fingers: id, cluster (its first print), size, keeper (the print with the most minutiae); None unless all prints were
    compared with each other.
    scored: id_a, id_b, score of all pairs that were compared; all others share too little. It is not saved.
    """

    files: ClassVar[dict[str, str]] = {"matches.parquet": "matches", "fingers.parquet": "fingers"}

    def __init__(self, matches: Any, fingers: Any | None, scored: Any, stats: dict[str, Any]) -> None:
        self.matches = matches
        self.fingers = fingers
        self.scored = scored
        self.stats = stats

    def _summary(self) -> str:
        counts = self.stats["counts"]
        others = f" and {counted(counts['others'], 'other')}" if counts["others"] else ""
        clusters = f", {counted(counts['clusters'], 'cluster')}" if "clusters" in counts else ""
        return (
            f"{counted(counts['prints'], 'print')}{others}, {counted(counts['matches'], 'match', 'matches')}{clusters}"
        )


def match_table(found: ComparedPrints, names: list[str]) -> Any:
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


def score_table(found: ComparedPrints, names: list[str]) -> Any:
    """Return the scores of all pairs that were compared."""
    columns = {"id_a": _named(names, found.left), "id_b": _named(names, found.right)}
    return pa.table({**columns, "score": to_arrow(found.score)})


def finger_table(found: ComparedPrints, names: list[str], minutiae: Ints) -> Any:
    """Return the cluster of every print; its keeper is the print with the most minutiae, the first if several."""
    first = groups(len(names), found.left, found.right, found.score)
    sizes = np.bincount(first, minlength=len(names))[first]
    order = np.lexsort((np.arange(len(names)), first))
    best = np.lexsort((np.arange(len(names)), -minutiae, first))
    keeper = best[np.searchsorted(first[best], first)]
    columns = {"id": _named(names, order), "cluster": _named(names, first[order])}
    columns["size"] = to_arrow(sizes[order].astype(np.int64))
    return pa.table({**columns, "keeper": _named(names, keeper[order])})


def _named(names: list[str], rows: Ints) -> Any:
    return strings(names).take(to_arrow(rows.astype(np.int64)))
