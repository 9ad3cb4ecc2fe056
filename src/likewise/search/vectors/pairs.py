"""All pairs of vectors within a distance: read, collapse copies, plan, meet, verify."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from threadpoolctl import threadpool_limits

from likewise.base.arrays import Ints, to_arrow
from likewise.base.copies import Groups
from likewise.base.memory import Budget, peak_memory
from likewise.base.parallel import check_threads
from likewise.base.runlog import Observer, Record
from likewise.errors import InputError, ParameterError
from likewise.families.minhash import check_seed
from likewise.families.tuning import check_recall
from likewise.search.expand import nearest_rows
from likewise.search.matches import Matches, listed_pairs
from likewise.search.prepare import METHODS
from likewise.search.vectors.load import Vectors, space_of, vectors
from likewise.search.vectors.plan import Plan, cost_of_all, plan, spread
from likewise.search.vectors.spaces import Space, check_measure, check_within
from likewise.search.vectors.tables import Found, Most, Overrun, all_pairs, by_tables

OWNER = "pairs"
PAIR_BYTES = 64
SMALL = 3000
"""Up to so many vectors all pairs are compared: that takes less time than to think about it."""


@dataclass(frozen=True)
class Aim:
    """What is sought in a space, and what it may take."""

    within: float
    recall: float
    seed: int
    method: str
    threads: int
    memory: int
    spill: Path | None

    @property
    def room(self) -> tuple[int, Path | None]:
        """How much the bits of vectors may take in memory, and where to put them if they are more."""
        return self.memory // 4, self.spill


def vector_pairs(
    source: Any,
    other: Any = None,
    *,
    measure: str,
    within: object,
    vector: str = "vector",
    id: str | None = None,
    recall: float = 0.99,
    method: str = "auto",
    top: int | None = None,
    threads: int | None = None,
    seed: int = 1,
    memory: str | int | None = None,
    spill: str | Path | None = None,
    progress: Observer | None = None,
) -> Any:
    """Return a table (id_a, id_b, distance) of the pairs within a distance; see `likewise.pairs`."""
    check_measure(OWNER, measure)
    check_seed(OWNER, seed)
    check_recall(OWNER, recall)
    if method not in METHODS:
        raise ParameterError.of(OWNER, "method", "'auto', 'lsh' or 'exact'", method)
    if top is not None and (isinstance(top, bool) or not isinstance(top, int) or top < 1):
        raise ParameterError.of(OWNER, "top", "a positive whole number", top)
    budget = Budget.of(OWNER, memory)
    count = check_threads(OWNER, threads)
    record = Record(progress) if progress else Record()
    folder = Path(spill) if spill is not None else None
    with record.stage("read"):
        parts = [vectors(source, vector, id, budget.texts, folder)]
        if other is not None:
            parts.append(vectors(other, vector, id, budget.texts, folder))
        space = space_of(measure, parts, budget.texts, folder)
    split = len(parts[0].table) if other is not None else 0
    aim = Aim(check_within(OWNER, space, within), recall, seed, method, count, budget.total, folder)
    with threadpool_limits(1, "blas"):
        left, right, distance = joined(space, split, other is not None, aim, record, top)
    record.counts["pairs"] = len(left)
    parameters = {
        "measure": measure, "within": aim.within, "recall": recall, "method": method, "seed": seed, "top": top,
        "vector": vector, "id": id, "threads": count, "memory": budget.total,
    }  # fmt: skip
    return named_table(parts, split, left, right, distance, record, parameters, "pairs")


def joined(
    space: Space, split: int, across: bool, aim: Aim, record: Record, top: int | None = None
) -> tuple[Ints, Ints, Any]:
    """Return the pairs of rows within the distance, left < right, sorted, and their distances.

    Copies of a vector are looked for once; of pairs of two collections, one row is from each.
    """
    if len(space) >= 1 << 31:
        raise InputError(f"{len(space):,} vectors are more than one run can pair; split the input")
    with record.stage("look", len(space)):
        groups = Groups.by_digest(space.look(aim.threads, split))
    record.counts.update({"items": len(space), "different": len(groups)})
    nothing = np.zeros(0, np.int64)
    found = Found(nothing, nothing, np.zeros(0), 0)
    here = int(np.searchsorted(groups.first, split)) if across else 0
    if len(groups) > 1 and (not across or 0 < here < len(groups)):
        one_each = space if len(groups) == len(space) else space.chosen(groups.first, *aim.room)
        found = found_pairs(one_each, here, aim, record)
    if top is not None:
        left, right, closeness = nearest_rows(
            groups, found.left, found.right, -found.distance, top, here, across, same=0.0, both=not across
        )
        return left, right, 0 - closeness
    matches = Matches(groups, groups.of, found.left, found.right, found.distance)
    left, right, distance, abridged = listed_pairs(matches, within=not across, same=0.0)
    if abridged:
        record.notes["abridged"] = abridged
    return left, right, distance


def found_pairs(space: Space, split: int, aim: Aim, record: Record) -> Found:
    """Find the pairs of different vectors, in the way that is predicted to be cheaper."""
    chosen, allowed = planned(space, split, aim, record)
    if chosen is not None:
        most = Most(aim.memory // PAIR_BYTES, space, aim.within)
        try:
            with record.stage("meet", len(chosen.tables)) as tick:
                found = by_tables(space, chosen, aim.within, split, aim.threads, allowed, most, aim.room, tick)
            record.notes["method"] = {
                "chosen": "lsh", "plan": str(chosen), "recall": round(chosen.recall, 6), "compared": found.compared
            }  # fmt: skip
            return found
        except Overrun:
            record.notes["overrun"] = "so many vectors share buckets that all pairs were compared instead"
    most = Most(aim.memory // PAIR_BYTES, space, aim.within)
    with record.stage("compare") as tick:
        found = all_pairs(space, aim.within, split, aim.threads, most, tick)
    record.notes["method"] = {"chosen": "exact", "recall": 1.0, "compared": found.compared}
    return found


def planned(space: Space, split: int, aim: Aim, record: Record) -> tuple[Plan | None, float]:
    """Return the plan, None to compare all pairs, and how many nanoseconds it may take."""
    n = len(space)
    every = split * (n - split) if split else n * (n - 1) // 2
    cost = cost_of_all(space, every)
    if aim.method == "exact" or (aim.method == "auto" and n <= SMALL):
        return None, 0.0
    with record.stage("plan"):
        known = spread(space, aim.within, split, aim.seed)
        chosen = plan(space, aim.within, aim.recall, known, aim.seed, forced=aim.method == "lsh")
    if chosen is None and aim.method == "lsh" and aim.within > 0:
        raise ParameterError(
            f"no tables of moderate size find pairs within {aim.within:g} ({space.measure}) with recall {aim.recall:g};"
            " method='exact' compares all pairs"
        )
    return chosen, cost if aim.method == "auto" else float("inf")


def named_table(
    parts: list[Vectors],
    split: int,
    left: Ints,
    right: Ints,
    distance: Any,
    record: Record,
    parameters: dict[str, Any],
    command: str,
) -> Any:
    """Return the table of pairs, with what the run says of itself."""
    stats = {
        "likewise": version("likewise"),
        "command": command,
        "parameters": parameters,
        "counts": record.counts,
        "seconds": {stage: round(seconds, 4) for stage, seconds in record.seconds.items()},
        "peak_memory_bytes": peak_memory(),
        **record.notes,
    }
    table = pa.table(
        {
            "id_a": parts[0].name(left),
            "id_b": parts[-1].name(right - split),
            "distance": to_arrow(np.asarray(distance, np.float64)),
        }
    )
    return table.replace_schema_metadata({"likewise": json.dumps(stats, default=str)})
